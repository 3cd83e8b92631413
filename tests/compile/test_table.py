"""Every table entry, compiled: values, gradients and aliases equal those of eager execution.

Samples of several operators are compiled as one function, because most of the time is the C
compiler's. When a group fails, its members are run alone, so that the message names the operator.
Composite operators are taken apart when they are captured, so what reaches the C compiler are the
other entries, and pointwise ones differ in an expression only: one sample of each is compiled.  The
captured graphs of all samples are compared in `decomp/test_closure.py`.

Tolerances: float64 `1e-9 + 1e-9 |x|`; float32 `3e-5 * scale + 3e-5 |x|`, where scale is the largest
element of the result (a reduction in another order may lose so much).
"""

import functools
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback import errors
from pullback.array import dtype as dt
from pullback.compile.errors import CompileWarning
from pullback.core.handle import Tensor, make
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.stack import bind
from pullback.testing import samples

SAMPLES = {"float64": 3, "float32": 1}  # per operator: the other dtype's loops are the same
GROUP = 24  # operators per compiled function
TOLERANCE = {"float64": 1e-9, "float32": 3e-5}

# `empty` and its relatives promise nothing about values
NO_VALUES = {
    "empty",
    "empty_like",
    "new_empty",
    "new_empty_strided",
    "empty_strided",
    "empty_permuted",
}


# they promise nothing about memory; their parts copy it
MAY_SHARE = {"unsafe_chunk", "unsafe_split.Tensor", "unsafe_split_with_sizes"}


class Sample:
    """One sample call as a function of its tensors."""

    def __init__(self, op, number: int, dtype):
        self.op, self.ov, self.dtype = op, overload_of(op), dtype
        case = samples.cases(op, dtype)[number]
        self.label, self.flat = f"{case.label} {dtype.name}", samples.flat(op, case)
        rule = None if self.ov.is_composite else self.ov.rule
        self.differentiable = (
            rule.inputs if rule else range(len(self.flat)) if self.ov.is_composite else ()
        )
        self.slots = [
            (i, j)
            for i, v in enumerate(self.flat)
            for j in (range(len(v)) if isinstance(v, list) else (None,))
            if isinstance(v[j] if j is not None else v, Tensor)
        ]

    def tensors(self) -> list[Tensor]:
        """Fresh copies of the tensors, leaves where derivatives exist."""
        made = []
        for i, j in self.slots:
            t = self.flat[i] if j is None else self.flat[i][j]
            t = make(np.array(t._payload, order="K"))
            wants = i in self.differentiable and t.dtype.category >= 2 and self.op.kind != "random"
            made.append(t.requires_grad_() if wants else t)
        return made

    def __call__(self, *tensors):
        flat = [list(v) if isinstance(v, list) else v for v in self.flat]
        for (i, j), t in zip(self.slots, tensors, strict=True):
            if j is None:
                flat[i] = t
            else:
                flat[i][j] = t
        return samples.leaves(bind(self.ov, tuple(flat)))


def together(group: list[Sample]):
    """The group as one function of all tensors, in order."""

    def run(*tensors):
        stream, out = iter(tensors), []
        for s in group:
            out.append(s(*[next(stream) for _ in s.slots]))
        return out

    return run


def measure(function, group: list[Sample]):
    """Outputs and gradients per sample; the gradients of everything by one backward pass."""
    tensors = [s.tensors() for s in group]
    pb.manual_seed(0)
    outs = function(*[t for ts in tensors for t in ts])
    shown = [shared(ts, out) for ts, out in zip(tensors, outs)]
    tracked = [o for sample in outs for o in sample if isinstance(o, Tensor) and o.requires_grad]
    seeds = []
    for i, o in enumerate(tracked):
        random = np.random.default_rng(i)
        seed = random.normal(size=tuple(o.shape)) + (
            1j * random.normal(size=tuple(o.shape)) if o.dtype.is_complex else 0
        )
        seeds.append(make(np.asarray(seed).astype(o._payload.dtype)))
    leaves = [t for ts in tensors for t in ts if t.requires_grad]
    grads = iter(
        pb.autograd.grad(tracked, leaves, seeds, allow_unused=True)
        if tracked
        else [None] * len(leaves)
    )
    found = [[next(grads) if t.requires_grad else None for t in ts] for ts in tensors]
    return list(zip(outs, found, shown))


def shared(tensors: list[Tensor], outs: list) -> list[tuple]:
    """Which results are a tensor that was given, or another result, and which show its memory."""
    made = [o for o in outs if isinstance(o, Tensor)]
    return [
        (i, j, o is t)
        for i, o in enumerate(made)
        for j, t in enumerate([*tensors, *made[:i]])
        if o is t or o._payload.size and np.may_share_memory(o._payload, t._payload)
    ]


def agree(sample: Sample, got, expected) -> None:
    """One sample's outputs and gradients, and whose memory the outputs show."""
    assert got[2] == expected[2] or sample.ov.name in MAY_SHARE, (
        f"{sample.label}: shares {got[2]}, eager {expected[2]}")
    for kind, some, others in zip(("output", "gradient"), got, expected):
        assert len(some) == len(others), (
            f"{sample.label}: {len(some)} {kind}s, expected {len(others)}"
        )
        for i, (a, b) in enumerate(zip(some, others)):
            what = f"{sample.label}: {kind} {i}"
            if not isinstance(b, Tensor):
                if (
                    kind == "gradient" and a is not None
                ):  # a gradient that eager does not even compute is zero
                    assert not a.detach().numpy().any(), f"{what} should be None"
                else:
                    assert a == b or a != a and b != b, f"{what}: {a!r}, expected {b!r}"
                continue
            if a is None and kind == "gradient":
                assert not b.detach().numpy().any(), f"{what} is missing"
                continue
            assert a.dtype is b.dtype and tuple(a.shape) == tuple(b.shape), (
                f"{what}: {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
            )
            if kind == "output":
                assert a.requires_grad == b.requires_grad, (
                    f"{what}: requires_grad {a.requires_grad}"
                )
            if sample.ov.name in NO_VALUES:
                continue
            x, y = a.detach()._payload, b.detach()._payload
            if y.dtype.kind in "biu":
                np.testing.assert_array_equal(x, y, err_msg=what)
                continue
            finite = np.abs(y[np.isfinite(y)]).max(initial=0)
            tol = TOLERANCE[sample.dtype.name]
            atol = tol * (max(1.0, float(finite)) if sample.dtype is dt.float32 else 1.0)
            np.testing.assert_allclose(x, y, rtol=tol, atol=atol, err_msg=what)


@functools.cache
def groups() -> list[tuple[str, str, tuple]]:
    """(first operator, dtype, operators): deterministic, the same in every worker."""
    names = [name for name, op in sorted(registry.items()) if op.samples is not None]
    # composites of one family do alike things: mixing families evens out the time of the groups
    return [
        (f"{dtype}-{chunk[0]}", dtype, tuple(chunk))
        for dtype in TOLERANCE
        for chunk in (names[i : i + GROUP] for i in range(0, len(names), GROUP))
    ]


def refused(sample: Sample) -> bool:
    """Whether eager execution refuses the sample, or capture cannot know its result's size."""
    try:
        measure(together([sample]), [sample])
    except Exception:
        return True
    try:
        whole = pb.compile(sample, backend=lambda module, examples: module, fullgraph=True)
        whole(*sample.tensors())
    except (errors.DataDependentError, errors.TransformError):  # resize_: there is no memory
        return True
    return False


@pytest.mark.parametrize("dtype, names", [pytest.param(d, n, id=i) for i, d, n in groups()])
def test_compiled_equals_eager(dtype, names):
    dtype = getattr(dt, dtype)
    group = []
    for name in names:
        op = registry[name]
        most = 1 if op.kind in ("composite", "pointwise") else SAMPLES[dtype.name]
        if op.kind == "composite" and dtype is dt.float64:
            continue
        for number in range(min(most, len(samples.cases(op, dtype)))):
            group.append(Sample(op, number, dtype))
    if not group:
        return
    try:
        check(group)
    except Exception:  # of one that is refused, for instance
        checked_without_refused([s for s in group if not refused(s)])


def checked_without_refused(group: list[Sample]) -> None:
    if not group:
        return
    try:
        check(group)
    except Exception as error:
        if len(group) < 2:
            raise
        alone = [message for s in group if (message := failure(s))]
        if not alone:
            raise AssertionError(f"only together: {error}") from error
        raise AssertionError("\n".join(alone)) from None


def check(group: list[Sample]) -> None:
    expected = measure(together(group), group)
    with warnings.catch_warnings():  # what ran as it is written would be compared with itself
        warnings.simplefilter("error", CompileWarning)
        got = measure(pb.compile(together(group), fullgraph=True), group)
    for s, a, b in zip(group, got, expected, strict=True):
        agree(s, a, b)


def failure(sample: Sample) -> str:
    try:
        check([sample])
    except Exception as error:
        return f"{sample.label}: {type(error).__name__}: {str(error)[:600]}"
    return ""
