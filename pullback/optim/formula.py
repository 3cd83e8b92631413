"""The language that update rules are written in.

A rule is an ordinary Python function of a parameter, its gradient, its state and the options.  Run
on tensors it *is* the update: differentiable, captured, on any device.  Run once on symbols it
becomes a `Program`, a list of elementwise instructions, from which come the NumPy function and the
C kernel that eager steps use.  Both round after every instruction and so agree to the last bit.

Symbols are of two kinds.  A `Number` is a scalar that is computed once per step, in Python
(`o.lr / (1 - o.beta1**o.step)`); it is a text.  An `Array` is a value per element.  Read next:
`update.py`, which chooses the form.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ..core.handle import Tensor
from ..table.packets import ops

# instruction -> (NumPy function, C text)
_INSTRUCTIONS = {
    "add": ("add", "{0} + {1}"),
    "sub": ("subtract", "{0} - {1}"),
    "mul": ("multiply", "{0} * {1}"),
    "div": ("divide", "{0} / {1}"),
    "neg": ("negative", "-{0}"),
    "sqrt": ("sqrt", "SQRT({0})"),
    "abs": ("absolute", "FABS({0})"),
    "sign": ("sign", "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} == 0 ? 0 : {0}"),
    "max": ("maximum", "{0} >= {1} || {0} != {0} ? {0} : {1}"),
    "min": ("minimum", "{0} <= {1} || {0} != {0} ? {0} : {1}"),
    "gt": ("greater", "{0} > {1}"),
    "lt": ("less", "{0} < {1}"),
    "eq": ("equal", "{0} == {1}"),
    "where": ("where", "{0} ? {1} : {2}"),
}
_TRUTH = {"gt", "lt", "eq"}
_FLAGS = {bool, str, type(None)}  # kinds of options that are no numbers


class Number:
    """A scalar of a rule: Python text over the options `o`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __neg__(self) -> Number:
        return Number(f"(-{self.text})")


class Array:
    """A value per element: the result of an instruction of a program."""

    __slots__ = ("program", "place")

    def __init__(self, program: Program, place: int) -> None:
        self.program, self.place = program, place

    def __neg__(self) -> Array:
        return self.program.emit("neg", self)


def _arithmetic(name: str, sign: str) -> None:
    """Give both kinds of symbols an operator."""

    def number(self, other):
        if isinstance(other, Array):
            return NotImplemented
        return Number(f"({self.text} {sign} {_text(other)})")

    def number_reflected(self, other):
        return Number(f"({_text(other)} {sign} {self.text})")

    setattr(Number, f"__{name}__", number)
    setattr(Number, f"__r{name}__", number_reflected)
    if name != "pow":
        short = {"truediv": "div"}.get(name, name)
        setattr(Array, f"__{name}__", lambda self, other: self.program.emit(short, self, other))
        setattr(Array, f"__r{name}__", lambda self, other: self.program.emit(short, other, self))


for _name, _sign in dict(add="+", sub="-", mul="*", truediv="/", pow="**").items():
    _arithmetic(_name, _sign)
for _name in ("gt", "lt", "eq"):
    setattr(Array, f"__{_name}__",
            lambda self, other, name=_name: self.program.emit(name, self, other))
Array.__hash__ = object.__hash__


def _text(value) -> str:
    return value.text if isinstance(value, Number) else repr(float(value))


# the functions of the language: on tensors, symbols and plain numbers


def _function(name: str, operator: str, plain: Callable):
    def call(*args):
        for a in args:
            if isinstance(a, Tensor):
                return getattr(ops, operator)(*args)
            if isinstance(a, Array):
                return a.program.emit(name, *args)
        return plain(*args)

    call.__name__ = name
    return call


sqrt = _function("sqrt", "sqrt", lambda x: x**0.5)
absolute = _function("abs", "abs", abs)
sign = _function("sign", "sign", np.sign)


def maximum(a, b):
    """The larger of two values, each an array or a number."""
    if isinstance(a, Tensor):
        return ops.maximum(a, b) if isinstance(b, Tensor) else ops.clamp_min(a, b)
    return a.program.emit("max", a, b)


def minimum(a, b):
    """The smaller of two values, each an array or a number."""
    if isinstance(a, Tensor):
        return ops.minimum(a, b) if isinstance(b, Tensor) else ops.clamp_max(a, b)
    return a.program.emit("min", a, b)


def where(condition, a, b):
    """Choose per element."""
    if isinstance(condition, Tensor):
        return ops.where(condition, a, b)
    return condition.program.emit("where", condition, a, b)


def choose(condition, yes: Callable, no: Callable):
    """Choose by a property of the whole step: a Python condition, or a tensor where it is one."""
    if isinstance(condition, Tensor):
        return ops.where(condition, yes(), no())
    return yes() if condition else no()


def detach(x):
    """The value without its history."""
    return x.detach().clone() if isinstance(x, Tensor) else x


def lerp(a, b, weight):
    """`a` moved towards `b`."""
    return a + (b - a) * weight


def descent(p, g, o) -> tuple:
    """What most rules begin with: the direction, and weight decay, which shrinks the parameter
    itself if it is decoupled and is part of the gradient otherwise."""
    if o.maximize:
        g = -g
    if on(o.weight_decay):
        if getattr(o, "decoupled_weight_decay", False):
            p = p * (1 - o.lr * o.weight_decay)
        else:
            g = g + p * o.weight_decay
    return p, g


def on(option) -> bool:
    """Is an option in use, that is not zero?  A tensor always is: its value may change."""
    return isinstance(option, (Tensor, Number)) or option != 0


# programs


class Program:
    """A rule as instructions.  Values 0, 1, ... are the inputs; instructions count on from there.

    `results` says which value each input gets; it is not in there if it keeps its own.
    """

    def __init__(self, inputs: list[str]) -> None:
        self.inputs = inputs
        self.code: list[tuple[str, tuple]] = []
        self.texts: list[str] = []
        self.results: dict[int, int] = {}
        self.native = None  # the compiled kernels by dtype, once wanted; False: not here
        self.runs = 0

    def emit(self, name: str, *args) -> Array:
        """A new instruction."""
        self.code.append((name, tuple([self._argument(a) for a in args])))
        return Array(self, len(self.inputs) + len(self.code) - 1)

    def _argument(self, a):
        if isinstance(a, Array):
            return a.place
        text = _text(a)
        if text not in self.texts:
            self.texts.append(text)
        return f"n{self.texts.index(text)}"

    @functools.cached_property
    def numbers(self) -> Callable[[dict], tuple]:
        """The scalars of a step from the options."""
        items = "".join(f"float({t})," for t in self.texts)
        return eval(f"lambda o: ({items})", {"__builtins__": {"float": float}})

    def _last_uses(self) -> dict[int, int]:
        last = {a: i for i, (_, args) in enumerate(self.code) for a in args if isinstance(a, int)}
        return last | dict.fromkeys(self.results.values(), len(self.code))

    @functools.cached_property
    def numpy(self) -> tuple[Callable, int]:
        """(function of input arrays, numbers and temporaries; how many temporaries)."""
        first, last = len(self.inputs), self._last_uses()
        names = {k: f"a{k}" for k in range(first)}
        target_of = {v: k for k, v in self.results.items()}
        lines, free, count = [], [], 0
        for i, (name, args) in enumerate(self.code):
            place = first + i
            given = ", ".join(names[a] if isinstance(a, int) else a for a in args)
            for a in set(args):  # its memory may take the result of this very instruction
                if isinstance(a, int) and last[a] == i and names[a].startswith("t"):
                    free.append(names[a])
            function = _INSTRUCTIONS[name][0]
            target = target_of.get(place)
            if name == "where":  # numbers must not widen the result
                given = ", ".join(names[a] if isinstance(a, int) else f"real({a})" for a in args)
            if name in _TRUTH or name == "where":
                names[place] = f"w{i}"
                lines.append(f"w{i} = {function}({given})")
                continue
            if target is not None and last.get(target, -1) <= i:
                names[place] = f"a{target}"
            elif free:
                names[place] = free.pop()
            else:
                names[place] = f"t{count}"
                count += 1
            lines.append(f"{function}({given}, out={names[place]})")
        lines += [f"copyto(a{k}, {names[v]})" for k, v in self.results.items()
                  if names[v] != f"a{k}"]
        unpack = [f"{''.join(f'n{k}, ' for k in range(len(self.texts)))} = n"] if self.texts else []
        unpack += [f"{''.join(f't{k}, ' for k in range(count))} = t"] if count else []
        body = "\n    ".join(["real = a0.dtype.type", *unpack, *lines])
        heads = ", ".join([*[f"a{k}" for k in range(first)], "n", "t"])
        space = {f: getattr(np, f) for f, _ in _INSTRUCTIONS.values()} | {
            "copyto": np.copyto, "__name__": "pullback.generated"}
        exec(f"def run({heads}):\n    {body}\n", space)
        return space["run"], count

    def source(self) -> str:
        """The same as C, for both real types."""
        first = len(self.inputs)
        lines = []
        for i, (name, args) in enumerate(self.code):
            given = [f"v{a}" if isinstance(a, int) else a for a in args]
            kind = "int" if name in _TRUTH else "REAL"
            lines.append(f"const {kind} v{first + i} = {_INSTRUCTIONS[name][1].format(*given)};")
        used = {a for _, args in self.code for a in args} | set(self.results.values())
        loads = [f"const REAL v{k} = a{k}[i];" for k in range(first) if k in used]
        stores = [f"a{k}[i] = v{v};" for k, v in self.results.items()]
        inner = "\n    ".join([*loads, *lines, *stores])
        outer = "\n  ".join([
            *[f"REAL *restrict a{k} = a[{k}];" for k in range(first)],
            *[f"const REAL n{k} = (REAL)n[{k}];" for k in range(len(self.texts))],
        ])
        kernels = [
            f"#define REAL {real}\n#define SQRT {root}\n#define FABS {size}\n"
            f"void update_{letter}(void **a, const double *n, int64_t begin, int64_t end) {{\n"
            f"  {outer}\n  for (int64_t i = begin; i < end; i++) {{\n    {inner}\n  }}\n}}\n"
            "#undef REAL\n#undef SQRT\n#undef FABS\n"
            for letter, real, root, size in (("f", "float", "sqrtf", "fabsf"),
                                             ("d", "double", "sqrt", "fabs"))
        ]
        return "#include <math.h>\n#include <stdint.h>\n" + "".join(kernels)


class Slots:
    """The state of one parameter inside a rule; what is assigned is what is stored afterwards."""

    def __init__(self, values: dict) -> None:
        self.__dict__.update(values)


class Options:
    """The options of a group inside a rule, by name."""

    def __init__(self, values: dict) -> None:
        self.__dict__.update(values)


def shape_of(options: dict) -> tuple:
    """What a program depends on: flags, and which numbers are zero."""
    return tuple(options), tuple([
        v if v.__class__ in _FLAGS else bool(v) for v in options.values()])


_programs: dict[tuple, Program] = {}


def program_of(rule: Callable, buffers: tuple[str, ...], options: dict) -> Program:
    """The program of a rule for options of this shape."""
    key = (rule, buffers, shape_of(options))
    found = _programs.get(key)
    if found is None:
        found = _programs[key] = _trace(rule, buffers, options)
    return found


def _trace(rule: Callable, buffers: tuple[str, ...], options: dict) -> Program:
    program = Program(["p", "g", *buffers])
    p, g, *values = [Array(program, k) for k in range(len(program.inputs))]
    slots = Slots(dict(zip(buffers, values)))
    symbols = {
        k: v if v.__class__ in _FLAGS or not v else Number(f"o[{k!r}]")
        for k, v in options.items()
    }
    new = rule(p, g, slots, Options(symbols))
    for k, name in enumerate(buffers, 2):
        value = getattr(slots, name)
        if value.place != k:
            program.results[k] = value.place
    if new.place != 0:
        program.results[0] = new.place
    return program
