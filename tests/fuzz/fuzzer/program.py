"""Programs as data: inputs, steps that are lines of text, and which results are returned.

A program prints as a plain function `program(a, b)` over the names `torch` and `F`
(`torch.nn.functional`), and is run by executing exactly that text, with Pullback or with PyTorch as
`torch`. Read `generate.py` next: it makes them from a seed.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass, field, replace

import numpy as np

COMPLEX = ("complex64", "complex128")
FLOATS = ("float64", "float32", "float16", "bfloat16", *COMPLEX)
WIDE = {"float32": "float64", "float16": "float64", "bfloat16": "float64",
        "complex64": "complex128"}
_NAME = re.compile(r"(?<![\w.'\"])[a-z]\d*(?![\w'\"(=])")


@dataclass(frozen=True)
class Input:
    """One argument: what it holds, how it lies in memory, whether it has a gradient."""

    dtype: str
    shape: tuple = ()
    seed: int = 0  # of the values, if these are not given
    values: object = None  # nested lists
    low: float = -2.0
    high: float = 2.0
    odd: str = ""  # "nan", "inf", "-inf" or "0": stands in one place
    layout: str = ""  # "t": transposed, "step": every second, "offset", "expanded"
    grad: str = ""  # "leaf", or "inner": a leaf's clone, which may be written
    of: str = ""  # an expression of earlier inputs: `a.t()`

    def array(self) -> np.ndarray:
        """The values, in float64, complex128 or a whole dtype."""
        if self.values is not None:
            array = np.array(self.values).reshape(self.shape)
            kind = np.complex128 if self.dtype in COMPLEX else np.float64
            return array.astype(kind) if self.dtype in FLOATS else array
        random = np.random.default_rng(self.seed)
        if self.dtype not in FLOATS:
            if self.dtype == "bool":
                return random.integers(0, 2, self.shape).astype(bool)
            return random.integers(int(self.low), int(self.high) + 1, self.shape)
        array = np.asarray(random.uniform(self.low, self.high, self.shape))
        if self.dtype in COMPLEX:
            array = array + 1j * random.uniform(self.low, self.high, self.shape)
        if self.odd and array.size:
            array.reshape(-1)[random.integers(array.size)] = float(self.odd)
        return array

    def tensor(self, torch):
        """A new tensor; what `of` says is the caller's business."""
        dtype = getattr(torch, self.dtype)
        array = self.array()
        if self.layout == "t" and array.ndim > 1:
            made = torch.tensor(np.ascontiguousarray(array.swapaxes(0, -1))).to(dtype)
            return made.transpose(0, -1)
        made = torch.tensor(array).to(dtype)
        if self.layout == "step" and made.ndim:
            return made.repeat_interleave(2, -1)[..., ::2]
        if self.layout == "offset" and made.ndim:
            return torch.cat([made[:1], made])[1:] if made.shape[0] else made
        if self.layout == "expanded" and made.ndim and made.shape[0]:
            return made[:1].expand(made.shape)
        return made

    def __repr__(self) -> str:
        shown = [repr(self.dtype), repr(tuple(self.shape))]
        for name, default in (("seed", 0), ("values", None), ("low", -2.0), ("high", 2.0),
                              ("odd", ""), ("layout", ""), ("grad", ""), ("of", "")):
            value = getattr(self, name)
            if value is not default and value != default:
                shown.append(f"{name}={value!r}")
        return f"Input({', '.join(shown)})"


@dataclass(frozen=True)
class Step:
    """A statement, the names that it makes and needs, and what it is (for reports)."""

    text: str
    makes: tuple[str, ...]
    needs: tuple[str, ...]
    what: str
    traits: frozenset = frozenset()


@dataclass
class Program:
    """What a seed stands for. `names` are the inputs' names, `result` the names returned."""

    inputs: dict[str, Input]
    steps: list[Step]
    result: tuple[str, ...]
    seed: int = -1
    traits: frozenset = field(default_factory=frozenset)

    def __post_init__(self):
        self.traits = frozenset(self.traits).union(*[s.traits for s in self.steps])

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(s.what for s in self.steps)

    def source(self, name: str = "program", after=None) -> str:
        """The function's text; `after(step)` may add lines behind a step."""
        lines = [f"def {name}({', '.join(self.inputs)}):"]
        for step in self.steps:
            lines += ["    " + line for line in step.text.splitlines()]
            lines += ["    " + line for line in (after(step) if after else ())]
        last = ", ".join(self.result)
        return "\n".join([*lines, f"    return {last}" if len(self.result) == 1
                          else f"    return ({last})"]) + "\n"

    def __str__(self) -> str:
        """All of it, in a form that `read` takes."""
        inputs = "\n".join(f"    {n}={i!r}," for n, i in self.inputs.items())
        traits = f"TRAITS = {sorted(self.traits)}\n" if self.traits else ""
        return f"INPUTS = dict(\n{inputs}\n)\n{traits}\n\n{self.source()}"

    def function(self, torch, after=None, **others):
        return function_of(self.source(after=after), torch, **others)

    def with_inputs(self, change) -> Program:
        """The same with `change(input)` in place of every input."""
        return replace(self, inputs={n: change(i) for n, i in self.inputs.items()})


@dataclass
class Written:
    """A program that was read from a file: its text is all there is."""

    inputs: dict[str, Input]
    text: str
    seed: int = -1
    traits: frozenset = frozenset()
    operators: tuple = ()

    def source(self, name: str = "program", after=None) -> str:
        return self.text.replace("def program(", f"def {name}(")

    def function(self, torch, after=None, **others):
        return function_of(self.source(), torch, **others)

    def with_inputs(self, change) -> Written:
        return replace(self, inputs={n: change(i) for n, i in self.inputs.items()})

    def __str__(self) -> str:
        inputs = "\n".join(f"    {n}={i!r}," for n, i in self.inputs.items())
        traits = f"TRAITS = {sorted(self.traits)}\n" if self.traits else ""
        return f"INPUTS = dict(\n{inputs}\n)\n{traits}\n\n{self.text}"


def read(text: str) -> Written:
    """The program that a printed text is."""
    head, _, body = text.partition("def program(")
    names = {"Input": Input, "inf": float("inf"), "nan": float("nan")}
    exec(head, names)
    traits = frozenset(names.get("TRAITS", ()))
    return Written(names["INPUTS"], f"def program({body}", traits=traits)


_numbers = iter(range(1 << 60))


def function_of(source: str, torch, name: str = "program", **others):
    """The function that a text defines; its lines can be looked up, as those of any function."""
    file = f"<fuzzed {next(_numbers)}>"
    names = {"torch": torch, "F": torch.nn.functional, "inf": float("inf"), "nan": float("nan"),
             **others}
    exec(compile(source, file, "exec"), names)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    if len(linecache.cache) > 2000:
        for old in [f for f in linecache.cache if f.startswith("<fuzzed")][:1000]:
            del linecache.cache[old]
    return names[name]


def arguments(torch, inputs: dict[str, Input]) -> tuple[list, list]:
    """(leaves with gradients, arguments) for a call."""
    leaves, given = [], {}
    for name, spec in inputs.items():
        if spec.of:
            given[name] = eval(spec.of, {"torch": torch}, given)
            continue
        made = spec.tensor(torch)
        if spec.grad:
            made = made.detach().requires_grad_()
            leaves.append(made)
            made = made.clone() if spec.grad == "inner" else made
        given[name] = made
    return leaves, list(given.values())


def names_in(text: str) -> list[str]:
    """Names of values in a text: one letter, or one with a number."""
    return _NAME.findall(text)


def renamed(text: str, old: str, new: str) -> str:
    """The text with one name in place of another."""
    return re.sub(rf"(?<![\w.'\"]){old}(?![\w'\"])", new, text)
