"""Random programs that write through views, as Python text that Pullback and PyTorch can run.

`make(seed)` chooses a base (argument or made inside, tracked or not, of several layouts and
dtypes), views of it, in-place operators of all families, sources with other dtypes and histories,
and what is returned. Statements that eager refuses are left out. `shrunk` drops statements while
a failure stays one. `write_ways.py` runs them: `python write_ways.py FIRST LAST [WAY ...]`.
"""

import functools
import random
import re
import warnings

import numpy as np

import pullback as pb

# views, by the least number of dims: `{v}` is a tensor of shape `{shape}` with `{n}` elements
VIEWS = {
    0: ["{v}.view(1)", "{v}.unsqueeze(0)", "{v}.expand(1)", "{v}.detach()",
        "torch.ops.aten.alias({v})",
        "{v}.view_as({v})", "{v}.reshape(-1)", "{v}[...]", "{v}[None]",
        "torch.ops.aten._reshape_alias({v}, [{n}], [1])"],
    1: ["{v}.view(-1)", "{v}[1:]", "{v}[::2]", "{v}[0]", "{v}[-1]", "{v}.narrow(0, 0, 2)",
        "{v}.select(-1, 1)", "{v}.unfold(0, 2, 2)", "{v}.unfold(-1, 2, 1)", "{v}.unbind(0)[0]",
        "{v}.split(2, 0)[0]", "{v}.chunk(2)[-1]", "{v}.tensor_split(2)[1]", "{v}.squeeze()",
        "{v}.split_with_sizes([1, {rest}], 0)[1]",
        "{v}.narrow(0, torch.tensor(1), 1)",
        "{v}.as_strided((2,), (1,), {offset})", "{v}.as_strided((2, 2), (2, 1))",
        "{v}.unflatten(0, ({first}, 1))", "{v}.expand(2, *{shape})", "{v}.unsqueeze(1)",
        "{v}.hsplit(1)[0]", "{v}.ravel()", "{v}.view({v}.dtype)"],
    2: ["{v}.t()", "{v}.mT", "{v}.T", "{v}.transpose(0, -1)", "{v}.permute(*{back})",
        "{v}.flatten()", "{v}[:, 1]", "{v}[:, ::2]", "{v}[1:, 1:]", "{v}.diagonal()",
        "{v}.diagonal(1)", "{v}.movedim(0, -1)", "{v}.swapaxes(0, 1)", "{v}[1, 1]",
        "{v}.select(1, 0)", "{v}.unbind(1)[1]", "{v}.squeeze(0)", "{v}.reshape(-1)",
        "{v}.view(*{back_shape})", "{v}.unfold(1, 2, 1)", "{v}[0].unsqueeze(0)",
        "{v}.as_strided(({last},), (1,), {offset})", "{v}[..., None, 0]"],
}
COMPLEX_VIEWS = ["torch.view_as_real({v})", "{v}.real", "{v}.imag", "{v}.conj()"]

# writes; `{s}` is a source of the tensor's shape, `{k}` one that broadcasts, `{m}` a mask
POINTWISE = ["add_({s})", "sub_({k}, alpha=2)", "mul_({s})", "mul_({k})", "div_({k} + 9)", "sin_()",
             "neg_()", "square_()", "clamp_(-1, 1.5)", "clamp_min_({k})", "pow_(2)", "tanh_()",
             "addcmul_({s}, {k}, value=0.5)", "addcdiv_({s}, {k} + 9)", "lerp_({s}, 0.25)",
             "lerp_({s}, {k})", "sigmoid_()", "relu_()", "abs_()", "floor_()", "round_()",
             "nan_to_num_()", "atan2_({k} + 9)", "copysign_({k})", "hypot_({s})", "exp_()",
             "mul_(2)", "add_(1)", "remainder_(1.5)", "sgn_()", "trunc_()",
             "xlogy_({k} + 9)", "ldexp_({k})", "sinc_()", "mul_(True)", "true_divide_({k} + 9)"]
COMPARISONS = ["gt_(0)", "le_({k})", "eq_({s})", "ne_(0.5)", "logical_not_()", "logical_and_({s})",
               "lt_({s})", "ge_(1)"]
FILLS = ["fill_(2.5)", "fill_({k0})", "zero_()", "copy_({s})", "copy_({k})",
         "masked_fill_({m}, 1.5)",
         "masked_fill_({m}, {k0})", "masked_scatter_({m}, {s})", "__setitem__({m}, 0.25)",
         "__setitem__(..., {s})", "__setitem__({m}, {k0})"]
INDEXED = ["index_put_((torch.tensor([0]),), {k0})", "__setitem__(0, {k0})", "__setitem__(-1, 1.5)",
           "index_put_((torch.tensor([0, 0]),), {k0}, accumulate=True)", "index_fill_(0, {i}, 0.5)",
           "index_fill_(0, {i}, {k0})", "index_copy_(0, {i}, {row})", "index_add_(0, {i}, {row})",
           "put_(torch.tensor([0]), {k0}.reshape(1).to({v}.dtype))", "__setitem__({i}, {row})",
           "scatter_(0, {where}, {s})", "scatter_(-1, {where}, 0.75)",
           "scatter_add_(0, {where}, {s})", "scatter_reduce_(0, {where}, {s}, 'sum')",
           "__setitem__((..., slice(1, None)), 0.5)", "__setitem__(slice(0, 1), {row})",
           "index_reduce_(0, {i}, {row}, 'prod')", "renorm_(2, 0, 1.0)"]
SCANS = ["cumsum_(0)", "cumprod_(-1)", "cumsum_(-1)"]
MATRICES = ["tril_()", "triu_(1)", "addr_({column}, {lastrow})", "addmm_({s}, {square})",
            "fill_diagonal_(0.5)", "addmv_({s}, {lastrow})"]
RANDOM = ["normal_()", "uniform_(-1, 1)", "bernoulli_(0.5)", "random_(0, 5)", "exponential_()"]
SHAPES = ["t_()", "unsqueeze_(0)", "squeeze_()", "transpose_(0, -1)"]
WRITES = {"pointwise": POINTWISE, "comparison": COMPARISONS, "fill": FILLS, "indexed": INDEXED,
          "scan": SCANS, "matrix": MATRICES, "random": RANDOM, "shape": SHAPES}
# whole statements
OTHERS = ["torch._foreach_mul_([{v}], 2)", "torch.sin({s}.detach(), out={v})", "{v} += {s}",
          "{v}.data.mul_(2)", "{v}.detach_()", "torch._foreach_add_([{v}], [{s}])"]

BASES = ["a", "a", "a * 1", "a * 1", "a.detach().clone()", "torch.zeros({shape}, dtype=a.dtype)",
         "torch.ones({shape})", "(a * 1).mT.contiguous().mT", "a.clone()", "a[...]", "a.detach()"]
ARGUMENTS = ["plain", "inner", "inner", "view", "turned"]


@functools.cache
def compiled(text: str, torch) -> callable:
    space = {"torch": torch}
    exec(compile(text, f"<program {hash(text)}>", "exec"), space)
    return space["program"]


class Program:
    """Statements on variables; `a` is the base and `s` a vector of numbers to take sources from."""

    def __init__(self, shape: tuple, dtype: str, kind: str, source: str, lines: list, out: list,
                 dtype_of_source: str = "float64"):
        self.shape, self.dtype, self.kind, self.source = shape, dtype, kind, source
        self.dtype_of_source = dtype_of_source
        self.lines, self.out = lines, out

    def __str__(self) -> str:
        body = "".join(f"    {line}\n" for line in self.lines)
        return (f"# a: {self.dtype}{list(self.shape)} {self.kind}; s: {self.dtype_of_source} "
                f"{self.source}\ndef program(a, s):\n{body}    return [{', '.join(self.out)}]\n")

    def function(self, torch=pb) -> callable:
        return compiled(str(self), torch)

    @property
    def is_random(self) -> bool:
        return self.has(*(w.split("(")[0] for w in RANDOM))

    @property
    def is_narrow(self) -> bool:
        """Are numbers of single precision on the way?"""
        return "32" in self.dtype + self.dtype_of_source or self.has(
            "float()", "ones(", "full(", "long()")

    @property
    def reaches_beyond(self) -> bool:
        """Does a view by strides show memory that its tensor does not show?"""
        for k, line in enumerate(self.lines):
            found = re.search(r"(\w+) = (\w+)\.as_strided", line)
            if found:
                whole, part = map(_places, _run(Program(
                    self.shape, self.dtype, self.kind, self.source, self.lines[:k + 1],
                    [found[2], found[1]], self.dtype_of_source)))
                if not part <= whole:
                    return True
        return False

    def has(self, *texts: str) -> bool:
        return any(text in line for line in self.lines for text in texts)

    def values(self, example: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Those of `a`, as it lies in memory, and of `s`."""
        rng = np.random.default_rng(example)
        a, s = rng.uniform(-2, 2, self.shape), rng.uniform(-2, 2, 36)
        if self.dtype.startswith("complex"):
            a = a + 1j * rng.uniform(-2, 2, self.shape)
        if self.dtype.startswith("int"):
            a = a * 4
        return np.asarray(a).astype(self.dtype), s.astype(self.dtype_of_source)

    def start(self, torch=pb, example: int = 0) -> tuple[list, list]:
        """(leaves, arguments)."""
        a, s = map(torch.from_numpy, self.values(example))
        leaves = []
        if self.kind != "plain" and not self.dtype.startswith("int"):
            leaves.append(a.requires_grad_())
            a = a * 1
        if self.kind == "view":
            a = torch.stack([a, a]).select(0, 1)
        if self.kind == "turned" and a.ndim == 2:
            a = a.t().contiguous().t()
        if self.source == "tracked":
            leaves.append(s.requires_grad_())
        return leaves, [a, s]


def _places(t) -> set[int]:
    """Where the elements of a tensor lie in its memory."""
    return {t.storage_offset() + int(np.dot(i, t.stride())) for i in np.ndindex(*t.shape)}


class Start:
    """The start of a program for the yardstick (`oracle.py`)."""

    held = None

    def __init__(self, program: Program):
        self.program = program

    def __call__(self):
        return self.program.start()


def _source(rng, shape: tuple, broadcast: bool) -> str:
    if broadcast and rng.random() < 0.5:
        shape = shape[-1:] if rng.random() < 0.5 else ()
    n = int(np.prod(shape))
    at = rng.randrange(3)
    text = f"s[{at}:{at + n}].reshape({shape})"
    return rng.choice([text, text, text, f"({text} * 1.5)", f"{text}.float()", f"{text}.double()",
                       f"{text}.detach()", f"torch.full({shape}, 1.25)", f"{text}.long()"])


def _write(rng, v: str, t) -> str:
    """A write to the variable `v`, which holds `t`."""
    shape, n = tuple(t.shape), t.numel()
    family = rng.choice(["pointwise", "pointwise", "comparison", "fill", "fill", "indexed",
                         "indexed", "scan", "matrix", "random", "shape"])
    family = "fill" if t.is_complex() and family in ("random", "matrix") else family
    text = rng.choice(WRITES[family])
    text = rng.choice(OTHERS) if rng.random() < 0.08 else "{v}." + text
    first = shape[0] if shape else 1
    row = f"s[:{n // max(first, 1)}].reshape({(1, *shape[1:])}).to({v}.dtype)"
    mask = f"(torch.arange({n}).reshape({shape}) % 2 == 0)"
    last = shape[-1] if shape else 1
    return text.format(
        v=v, s=_source(rng, shape, False), k=_source(rng, shape, True),
        k0=rng.choice(["s[0]", "(s[1] * 2)", "torch.tensor(0.5)", "s[2].detach()"]), m=mask,
        i=rng.choice(["torch.tensor([0])", "torch.tensor([-1])" if "index_" not in text else
                      f"torch.tensor([{max(first - 1, 0)}])"]), row=row,
        where=f"torch.zeros({shape}, dtype=torch.int64)", column=f"s[:{first}]",
        lastrow=f"s[:{last}]", square=f"s[:{last * last}].reshape({last}, {last})")


def _view(rng, v: str, t) -> str:
    shape = tuple(t.shape)
    known = [text for least, some in VIEWS.items() if t.ndim >= least for text in some]
    if t.is_complex() and rng.random() < 0.5:
        known = COMPLEX_VIEWS
    return rng.choice(known).format(
        v=v, shape=shape, n=t.numel(), first=shape[0] if shape else 1,
        rest=shape[0] - 1 if shape else 0, last=shape[-1] if shape else 1,
        offset=int(t.storage_offset()), back=tuple(range(t.ndim))[::-1], back_shape=shape[::-1])


@functools.cache
def make(seed: int) -> Program:
    """The program with a number."""
    rng = random.Random(seed)
    shape = rng.choice([(4, 4), (4, 4), (2, 3), (2, 3, 2), (6,), (3, 1), (), (1, 4)])
    dtype = rng.choice(["float64"] * 5 + ["float32"] * 3 + ["complex128", "int64"])
    kind = "inner" if len(shape) < 2 and rng.random() < 0.5 else rng.choice(ARGUMENTS)
    program = Program(shape, dtype, kind, rng.choice(["tracked", "plain"]), [], [],
                      rng.choice(["float64", "float64", "float32"]))
    program.lines.append("b = " + rng.choice(BASES).format(shape=shape))
    names = ["b"]
    for _ in range(rng.choice([2, 3, 4, 5, 7])):
        known = {}
        program.out = names
        values = _run(program)
        if values is None:  # a base that cannot be
            program.lines[0] = "b = a * 1"
            values = _run(program)
        known = dict(zip(names, values))
        v = rng.choice([names[-1], rng.choice(names)])
        what = rng.random()
        if what < 0.45:
            name = f"v{len(names)}"
            line = f"{name} = {_view(rng, v, known[v])}"
        elif what < 0.9:
            name, line = None, _write(rng, v, known[v])
        else:
            name = f"c{len(names)}"
            line = f"{name} = {v} * 2" if rng.random() < 0.7 else f"{name} = {v} * {names[0]}.sum()"
        # a history does not follow where a tensor takes another shape while nothing is recorded
        if rng.random() < 0.05 and not any(f".{w.split('(')[0]}(" in line for w in SHAPES):
            line = f"with torch.no_grad(): {line}"
        trial = Program(shape, dtype, kind, program.source, [*program.lines, line],
                        [*names, name] if name else names, program.dtype_of_source)
        if _run(trial) is not None:
            program.lines.append(line)
            names = trial.out
    program.out = sorted({rng.choice(names) for _ in range(rng.choice([1, 2, 3]))} | {names[-1]})
    return program


def _run(program: Program):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pb.manual_seed(0)
            return program.function()(*program.start()[1])
    except (RuntimeError, ValueError, TypeError, IndexError, AttributeError, NotImplementedError,
            NameError):
        return None


def shrunk(program: Program, fails) -> Program:
    """A shorter program that fails, too."""
    again = True
    while again:
        again = False
        for field in ("lines", "out"):
            items = getattr(program, field)
            for k in reversed(range(1 if field == "lines" else 0, len(items))):
                if len(items) == 1:
                    continue
                fields = dict(lines=program.lines, out=program.out)
                fields[field] = [*items[:k], *items[k + 1:]]
                trial = Program(program.shape, program.dtype, program.kind, program.source,
                                dtype_of_source=program.dtype_of_source, **fields)
                if _run(trial) is not None and fails(trial):
                    program, again = trial, True
                    break
            if again:
                break
    return program
