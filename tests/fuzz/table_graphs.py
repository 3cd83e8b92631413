"""Random graphs of table entries, for comparing ways to run them: a seed is a program.

A program is made by running it: a step is an entry of the table with the arguments of one of its
samples, some of whose tensors are replaced by earlier results, and is kept if eager mode takes it.
Leaves have any shape, layout and dtype, and sometimes NaN, infinities or nothing in them.
Run as a script to try many seeds: `python tests/fuzz/table_graphs.py 0 500`.
"""

from __future__ import annotations

import functools
import math
import sys
import warnings

import numpy as np

import pullback as pb
from pullback.core.handle import Tensor
from pullback.core.op import overload_of, registry
from pullback.testing import samples

MOST = 2000  # elements of a result that others may use
FLOATS = (pb.float64, pb.float32, pb.float16, pb.bfloat16)
DTYPES = (*FLOATS[:1] * 6, *FLOATS[1:2] * 3, *FLOATS[2:], pb.int64, pb.int32, pb.bool, pb.uint8,
          pb.complex128, pb.complex64)
SHAPES = ((3, 4), (4,), (), (2, 3, 4), (1, 4), (3, 1), (5, 5), (0, 3), (2, 0), (1,), (17, 3),
          (2, 1, 3, 4))
# results whose values are nobody's promise (empty memory, bases of spaces), or that take long
LEFT_OUT = ("empty", "rand", "resize", "linalg_", "_linalg", "svd", "eig", "qr", "lu", "lstsq",
            "geqrf", "ormqr", "orgqr", "cholesky", "_bessel", "_beta", "_normal_hazard", "set_",
            "matrix_exp", "pinverse", "item", "_local_scalar", "is_", "logdet", "slogdet", "det",
            "inverse", "triangular_solve", "ctc", "lstm", "gru", "rnn", "_thnn", "fill_diagonal",
            "nonzero_static", "dropout", "histogram", "segment_reduce", "_pad_packed",
            "_pack_padded", "as_strided", "fractional", "rrelu", "quantize", "_moving_avg",
            "special_", "_igamma")


@functools.cache
def entries() -> list:
    """(overload, flat arguments of a sample) of what programs are made of."""
    found = []
    for name in sorted(registry):
        op = registry[name]
        own = op.__module__.startswith("pullback.ops.")
        if not own or op.kind in ("random", "creation") or name.startswith(LEFT_OUT):
            continue
        ov = overload_of(op)
        if any(a.is_write for a in ov.schema.args) or not ov.schema.returns:
            continue
        flats = [samples.flat(op, case) for case in samples.cases(op)[:4]]
        flats = [f for f in flats if any(isinstance(v, Tensor) for v in f)]
        if flats and all(r.is_tensor for r in ov.schema.returns):
            found.append((ov, flats))
    return found


class Program:
    """Leaves and steps; called with the leaves it gives the chosen results."""

    def __init__(self, seed: int, longest: int = 20):
        self.random = random = np.random.default_rng(seed)
        self.leaves = [self.leaf() for _ in range(random.integers(2, 4))]
        self.steps: list = []
        results = list(self.leaves)
        wanted = int(random.integers(5, longest + 1))
        table = entries()
        for _ in range(40 * wanted):
            if len(self.steps) == wanted:
                break
            ov, flats = table[random.integers(len(table))]
            step = ov, self.arguments(ov, flats[random.integers(len(flats))], results)
            try:
                new = self.step(step, results)
            except Exception:
                continue  # eager mode does not take it
            if new and all(t.numel() <= MOST and t.ndim < 6 for t in new):
                self.steps.append(step)
                results += new
        self.dtypes = {t.dtype for t in results}
        made = range(len(self.leaves), len(results))
        some = random.choice(made, min(3, len(made)), replace=False) if made else ()
        self.shown = sorted({*map(int, some), len(results) - 1})

    def leaf(self) -> Tensor:
        random = self.random
        shape = SHAPES[random.integers(len(SHAPES))]
        dtype = DTYPES[random.integers(len(DTYPES))]
        array = random.uniform(-2, 2, shape)
        if random.random() < 0.15 and array.size:
            array.reshape(-1)[random.integers(array.size)] = random.choice(
                [math.nan, math.inf, -math.inf, 0.0])
        if not (dtype.is_floating_point or dtype.is_complex):
            array = np.nan_to_num(array, posinf=3, neginf=-3) * 3
            array = abs(array) if dtype is pb.uint8 else array
        leaf = pb.tensor(np.array(array)).to(dtype)
        if dtype.is_complex:
            leaf = leaf * (1 + 0.5j)
        way = random.integers(5)
        if way == 0 and leaf.ndim > 1:
            leaf = leaf.transpose(0, -1)
        elif way == 1 and leaf.ndim:
            leaf = pb.cat([leaf, leaf], -1)[..., ::2]
        elif way == 2 and leaf.ndim:
            leaf = leaf[:1].expand(leaf.shape) if leaf.shape[0] else leaf
        return leaf

    def arguments(self, ov, flat: tuple, results: list) -> list:
        """The arguments of a sample, with `_Place`s of earlier results among them."""
        used = False

        def chosen(value):
            nonlocal used
            if isinstance(value, (list, tuple)):
                return [chosen(v) for v in value]
            if not isinstance(value, Tensor):
                return value
            exact = not (value.dtype.is_floating_point or value.dtype.is_complex)
            if used and self.random.random() < 0.5 or exact and ov.kind != "pointwise":
                return value.detach()
            used = True
            place = int(self.random.integers(max(0, len(results) - 6), len(results)))
            same = ov.kind in ("pointwise", "view", "reduction") or self.random.random() < 0.3
            return _Place(place, None if same else tuple(value.shape))

        return [chosen(v) for v in flat]

    def step(self, step: tuple, results: list) -> list[Tensor]:
        ov, arguments = step

        def filled(value):
            if isinstance(value, _Place):
                return value.of(results)
            return [filled(v) for v in value] if isinstance(value, list) else value

        values = list(zip(ov.schema.args, map(filled, arguments)))
        out = ov(*[v for a, v in values if not a.kwarg_only],
                 **{a.name: v for a, v in values if a.kwarg_only})
        return [t for t in (out if isinstance(out, (list, tuple)) else [out])
                if isinstance(t, Tensor)]

    def __call__(self, *leaves: Tensor) -> tuple[Tensor, ...]:
        results = list(leaves)
        for step in self.steps:
            results += self.step(step, results)
        return tuple([results[i] for i in self.shown])

    def __str__(self) -> str:
        lines = [f"x{i} = {t.dtype}{list(t.shape)} {t.stride()}" for i, t in enumerate(self.leaves)]
        results = list(self.leaves)
        for step in self.steps:
            new = self.step(step, results)
            shown = [v if not isinstance(v, Tensor) else f"{v.dtype}{list(v.shape)}"
                     for v in step[1]]
            names = ", ".join(f"x{len(results) + k}: {t.dtype}{list(t.shape)}"
                              for k, t in enumerate(new))
            lines.append(f"{names} = {step[0].name}({', '.join(map(str, shown))})")
            results += new
        return "\n".join([*lines, f"return {self.shown}"])


class _Place:
    """An earlier result, in the shape of what it replaces."""

    def __init__(self, number: int, shape: tuple | None):
        self.number, self.shape = number, shape

    def of(self, results: list) -> Tensor:
        x = results[self.number]
        if self.shape is None or tuple(x.shape) == self.shape:
            return x
        count = math.prod(self.shape)
        if x.numel() < count or not count:
            return x.mean().expand(self.shape) if x.numel() else x
        return x.reshape(-1)[:count].reshape(self.shape)

    def __repr__(self) -> str:
        return f"x{self.number}" + ("" if self.shape is None else f" as {list(self.shape)}")


def with_gradients(function, leaves: list) -> list:
    """Results of a program, and the gradients of the sum of those that have any."""
    pb.manual_seed(0)
    leaves = [t.detach().requires_grad_(t.dtype.is_floating_point or t.dtype.is_complex)
              for t in leaves]
    with np.errstate(all="ignore"):
        outs = list(function(*leaves))
        roots = [o for o in outs if o.requires_grad]
        inputs = [t for t in leaves if t.requires_grad]
        grads = pb.autograd.grad(roots, inputs, [pb.ones_like(r) for r in roots],
                                 allow_unused=True) if roots else ()
    return [o.detach() for o in outs] + [None if g is None else g.detach() for g in grads]


EPS = {pb.float16: 2e-2, pb.bfloat16: 1e-1, pb.float64: 1e-7, pb.complex128: 1e-7, pb.bool: 1e-7}


def difference(got: list, wanted: list, tolerance: float) -> str | None:
    """What is not the same in two lists of results, in words; None if all is."""
    if len(got) != len(wanted):
        return f"{len(got)} results, not {len(wanted)}"
    for i, (a, b) in enumerate(zip(got, wanted)):
        if (a is None) != (b is None):
            return f"result {i}: {'no' if a is None else 'a'} gradient"
        if a is None:
            continue
        if (a.dtype, a.shape, a.stride()) != (b.dtype, b.shape, b.stride()) and b.numel():
            if (a.dtype, a.shape) != (b.dtype, b.shape):
                return (f"result {i}: {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}")
        x, y = (_numbers(t) for t in (a, b))
        if a.dtype.is_floating_point or a.dtype.is_complex:
            fine = np.isfinite(y)
            scale = np.abs(y[fine]).max(initial=1e-2)
            with np.errstate(all="ignore"):
                near = np.abs(x - y) <= tolerance * scale
            same = near | (x == y) | np.isnan(x) & np.isnan(y)
        else:
            same = x == y
        if not same.all():
            at = tuple(int(k) for k in np.argwhere(~same)[0])
            return f"result {i} at {at}: {x[at]}, not {y[at]} ({(~same).sum()} of {same.size})"
    return None


def _numbers(t: Tensor) -> np.ndarray:
    t = t.detach().resolve_conj()
    return np.asarray((t.double() if t.dtype in FLOATS else t).numpy())


def check(seed: int, ways: dict, longest: int = 20) -> str | None:
    """The first difference between eager mode and other ways; None if there is none."""
    program = Program(seed, longest)
    try:
        wanted = with_gradients(program, program.leaves)
    except Exception as error:
        wanted = error
    tolerance = max(EPS.get(d, 1e-3) for d in program.dtypes)
    for name, way in ways.items():
        try:
            got = with_gradients(way(program), program.leaves)
        except Exception as error:
            if type(error) is not type(wanted):
                was = type(wanted).__name__ if isinstance(wanted, Exception) else "nothing"
                return f"{name}: {type(error).__name__}, eager {was}: {str(error)[:300]}"
            continue
        if isinstance(wanted, Exception):
            return f"{name}: nothing, eager {type(wanted).__name__}: {wanted}"
        found = difference(got, wanted, tolerance)
        if found and not _shaky(program, wanted, tolerance):
            return f"{name}: {found}"
    return None


def _shaky(program: Program, wanted: list, tolerance: float) -> bool:
    """Do rounding errors of the leaves alone make a difference?"""
    for k in (1, -1):
        moved = [t * (1 + k * tolerance / 30) if t.dtype in FLOATS[:2] or t.dtype.is_complex else t
                 for t in program.leaves]
        if difference(with_gradients(program, moved), wanted, tolerance):
            return True
    return False


WAYS = {
    "numpy": lambda f: pb.compile(lambda *a: f(*a), backend="numpy"),
    "native": lambda f: pb.compile(lambda *a: f(*a)),
    "dynamic": lambda f: pb.compile(lambda *a: f(*a), dynamic=True),
}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = {w: WAYS[w] for w in (sys.argv[3].split(",") if len(sys.argv) > 3 else WAYS)}
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        print("at", seed, file=sys.stderr, flush=True)
        found = check(seed, chosen)
        if found:
            print(f"--- {seed}: {found}\n{Program(seed)}", flush=True)
