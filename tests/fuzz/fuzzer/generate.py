"""Makes the program of a seed: steps are tried in eager mode one by one, and kept if it takes them.

A `Builder` knows the values made so far, so that results of one operator feed the next. Steps come
from the table (`entries.py`: every operator, with the arguments of its samples) and from idioms
(`idioms.py`: views, writes, normalisation, control flow and whatever else people write). To add a
step write a function of a Builder that returns a call of `builder.step`, and list it there.
"""

from __future__ import annotations

import warnings

import numpy as np

import pullback as pb

from . import entries, idioms
from .program import COMPLEX, FLOATS, Input, Program, Step, arguments

MOST = 3000  # elements of a value that others may use
SHAPES = ((3, 4), (4,), (), (2, 3, 4), (1, 4), (3, 1), (5, 5), (0, 3), (2, 0), (1,), (17, 3),
          (2, 1, 3, 4), (8, 16), (4, 4), (33,), (6, 7))
DTYPES = (*["float32"] * 6, *["float64"] * 5, "float16", "bfloat16", "bfloat16", "int64", "int32",
          "bool", "uint8", "int8", "int16", "complex64", "complex128")
LETTERS = "abcdefgh"


class Builder:
    """A program under construction: its values, and the choices of a seed."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng([seed, 77])
        self.inputs: dict[str, Input] = {}
        self.steps: list[Step] = []
        self.values: dict = {}  # name -> tensor
        self.count = 0
        self.shapes = [SHAPES[self.below(len(SHAPES))] for _ in range(2)]
        self.main = DTYPES[self.below(len(DTYPES))]  # most of its inputs have this dtype

    # --- choices ---

    def below(self, n: int) -> int:
        return int(self.random.integers(n))

    def chance(self, p: float) -> bool:
        return bool(self.random.random() < p)

    def choose(self, options):
        return options[self.below(len(options))]

    # --- values ---

    def input(self, spec: Input) -> str:
        """A new input; returns its name."""
        if len(self.inputs) == len(LETTERS):
            raise NotTaken
        name = LETTERS[len(self.inputs)]
        _, given = arguments(pb, {name: spec})
        self.inputs[name] = spec
        self.values[name] = given[0]
        return name

    def fresh(self, shape=None, dtype=None, **how) -> str:
        """A new input with values of a seed."""
        dtype = dtype or (self.main if self.chance(0.75) else self.choose(DTYPES))
        if shape is None:
            shape = self.choose(self.shapes) if self.chance(0.7) else self.choose(SHAPES)
        low, high = (-5, 5) if dtype not in FLOATS else (-2.0, 2.0)
        if dtype in ("uint8", "bool"):
            low = 0
        odd = self.choose(["nan", "inf", "-inf", "0"]) if self.chance(0.06) else ""
        layout = self.choose(["t", "step", "offset", "expanded"]) if self.chance(0.2) else ""
        if len(shape) < 1 or dtype not in FLOATS:
            layout = "" if layout == "expanded" else layout
        grad = ""
        if dtype in FLOATS and self.chance(0.7):
            grad = "leaf" if self.chance(0.6) else "inner"
        how = {"low": float(low), "high": float(high), "odd": odd if dtype in FLOATS else "",
               "layout": layout, "grad": grad} | how
        return self.input(Input(dtype, tuple(shape), self.below(10**6), **how))

    def pick(self, want=None) -> str:
        """The name of a value, rather a late one; made anew if there is none."""
        names = [n for n, v in self.values.items() if want is None or want(v)]
        if not names:
            raise NotTaken
        if self.chance(0.6):
            names = names[-3:]
        return self.choose(names)

    def real(self, ndim: int = 0) -> str:
        """A value with a floating dtype and at least so many dimensions."""
        return self.pick(lambda v: v.dtype.is_floating_point and v.ndim >= ndim and v.numel())

    def number(self, ndim: int = 0) -> str:
        return self.pick(lambda v: v.ndim >= ndim)

    def partner(self, name: str) -> str:
        """A value that broadcasts with another one."""
        value = self.values[name]

        def fits(other):
            if other.dtype.is_complex and not value.dtype.is_complex:
                return False
            try:
                return np.prod(np.broadcast_shapes(value.shape, other.shape)) <= MOST
            except ValueError:
                return False

        if self.chance(0.15):
            shape = [n if self.chance(0.7) else 1 for n in value.shape]
            dtype = str(value.dtype).removeprefix("torch.")
            try:
                return self.fresh(shape[self.below(len(shape) + 1):], dtype)
            except NotTaken:
                pass
        return self.pick(fits)

    def dim(self, name: str) -> int:
        n = self.values[name].ndim
        if not n:
            raise NotTaken
        return self.below(2 * n) - n if self.chance(0.5) else n - 1 - self.below(n) // 2

    def new(self) -> str:
        self.count += 1
        return f"x{self.count}"

    # --- steps ---

    def step(self, text: str, needs, what: str, makes: int = 1, traits=()) -> bool:
        """Add a step whose text gives its result(s); `NEW` in it is the new name, if need be."""
        names = tuple(self.new() for _ in range(makes))
        if makes and "NEW" not in text:
            text = f"{', '.join(names)} = {text}"
        elif makes:
            text = text.replace("NEW", names[0])
        step = Step(text, names, tuple(dict.fromkeys(needs)), what, frozenset(traits))
        space = {"torch": pb, "F": pb.nn.functional, "inf": np.inf, "nan": np.nan, **self.values}
        with np.errstate(all="ignore"):
            exec(text, space)
        made = {n: space[n] for n in names}
        if not all(isinstance(v, pb.Tensor) and v.numel() <= MOST and v.ndim < 6
                   for v in made.values()):
            raise NotTaken
        self.values |= made
        self.steps.append(step)
        return True

    def finish(self, seed: int) -> Program:
        made = [n for s in self.steps for n in s.makes]
        used = {n for s in self.steps for n in s.needs}
        last = [n for n in made if n not in used] or made[-1:] or list(self.inputs)[:1]
        if len(last) > 3:
            last = last[-3:]
        elif self.chance(0.3) and made:
            other = self.choose(made)
            last = [other, *last] if other not in last else last
        return pruned(Program(dict(self.inputs), list(self.steps), tuple(last), seed))


class NotTaken(Exception):
    """A step that does not fit what is there."""


def pruned(program: Program) -> Program:
    """Without inputs that nobody needs."""
    needed = {n for s in program.steps for n in s.needs} | set(program.result)
    while True:
        of = {m for n, i in program.inputs.items() if i.of and n in needed
              for m in program.inputs if m in i.of.split(".")[0].split("[")[0]}
        if of <= needed:
            break
        needed |= of
    inputs = {n: i for n, i in program.inputs.items() if n in needed}
    return Program(inputs, program.steps, program.result, program.seed)


def generate(seed: int) -> Program:
    """The program of a seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        b = Builder(seed)
        b.fresh()
        if b.chance(0.6):
            b.fresh()
        if b.chance(0.25):
            b.fresh(shape=b.choose(SHAPES))
        idioms.aliased(b)
        wanted = 1 + b.below(4) + b.below(4)
        style = b.choose(["table", "table", "table", "mixed", "mixed", "idioms", "kernels"])
        share = {"table": 0.85, "mixed": 0.5, "idioms": 0.08, "kernels": 0.0}[style]
        more = idioms.kernel if style == "kernels" else idioms.step
        wanted += 2 * (style == "kernels")
        for _ in range(12 * wanted):
            if len(b.steps) >= wanted:
                break
            before = (dict(b.inputs), dict(b.values), list(b.steps))
            pb.manual_seed(seed)
            try:
                (entries.step if b.chance(share) else more)(b)
            except Exception:  # eager mode does not take it, or nothing fits
                b.inputs, b.values, b.steps = before
                if any("write" in s.traits for s in b.steps):
                    _again(b)
        return b.finish(seed)


def _again(b: Builder) -> None:
    """Values anew: a step that failed may have written before it did."""
    _, given = arguments(pb, b.inputs)
    space = {"torch": pb, "F": pb.nn.functional, "inf": np.inf, "nan": np.nan,
             **dict(zip(b.inputs, given))}
    with np.errstate(all="ignore"):
        for s in b.steps:
            exec(s.text, space)
    b.values = {n: space[n] for n in [*b.inputs, *[n for s in b.steps for n in s.makes]]}


__all__ = ["COMPLEX", "Builder", "NotTaken", "generate", "pruned"]
