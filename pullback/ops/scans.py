"""Running logarithms of sums and running extremes: logcumsumexp, cummax."""

from __future__ import annotations

from ..array.dims import wrap_dim
from ..core.op import Op
from . import special_kernels as kernels
from .batching import dims
from .pointwise import refuse


def _along(s):
    """Samples of a scan."""
    yield s(s.real(3, 4), 1)
    yield s(s.real(5, 3).T, -1)
    yield s(s.real(2, 3, 4), -2)
    yield s(s.real(), 0)
    yield s(s.real(0, 3), 0)
    yield s(s.real(3, 0), 0)


def _logaddexp(xp, left, right):
    """log(exp(x) + exp(y)) of complex numbers."""
    first = left.real >= right.real
    high, low = xp.where(first, left, right), xp.where(first, right, left)
    same = xp.isinf(high.real) & (high.real == low.real)
    return xp.where(same, high, high + xp.log1p(xp.exp(xp.where(same, 0, low - high))))


def _logcumsumexp(xp, self, dim):
    axis = wrap_dim(dim, self.ndim)
    refuse("logcumsumexp_out_cpu", self, "biu")
    if self.ndim == 0:
        return self.copy()
    if self.dtype.kind != "c":
        return kernels.scan(
            xp, (self.copy(),), axis, lambda left, right: (xp.logaddexp(left[0], right[0]),)
        )[0]
    out = self.copy()  # one after the other: the order decides which branch of the logarithm is met
    rows = xp.moveaxis(out, axis, 0)
    for i in range(1, len(rows)):
        rows[i] = _logaddexp(xp, rows[i - 1], rows[i])
    return out


class LogCumSumExp(Op):
    """Running log of the sum of exp along a dim, without overflow."""

    run = _logcumsumexp
    grad = {"self": "logcumsumexp_pullback(grad, self, result, dim)"}
    push = "logcumsumexp_push(self_p, self_t, result, dim)"
    shape = "self.shape"
    batch = dims("dim")
    cost = "reduce"
    complex = True
    kept = "scan"
    samples = _along


class logcumsumexp(LogCumSumExp):
    """Running log of the sum of exp along a dim, without overflow."""

    schema = "logcumsumexp(Tensor self, int dim) -> Tensor"


class logcumsumexp_kernel(LogCumSumExp):
    """Running log of the sum of exp along a dim, as a bare kernel."""

    schema = "_logcumsumexp(Tensor self, int dim) -> Tensor"
    method = False


def _running_extreme(xp, self, dim, sign: int):
    """Values and places of running extremes: the last of equal ones, and NaN once there is one."""
    axis = wrap_dim(dim, self.ndim)
    refuse("cummax_cpu" if sign > 0 else "cummin_cpu", self, "c")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    shape = [1] * self.ndim
    shape[axis] = self.shape[axis]
    places = xp.broadcast_to(
        xp.reshape(xp.arange(self.shape[axis], dtype=xp.int64), shape), self.shape
    )

    def combine(left, right):
        better = right[0] >= left[0] if sign > 0 else right[0] <= left[0]
        better = better | (right[0] != right[0])
        return tuple(xp.where(better, r, l) for l, r in zip(left, right))

    return kernels.scan(xp, (self.copy(), places.copy()), axis, combine)


def _apart(s):
    """Samples of a running extreme: no two elements are nearly equal."""
    yield s(s.values([[0.1, 1.3, 0.7, 2.9], [2.2, -1.1, -0.4, 0.5], [-0.3, -2.0, 1.9, -1.6]]), 1)
    yield s(s.values([[0.1, 1.3, 0.7, 2.9, 2.5], [2.2, -1.1, -0.4, 0.5, -1.5]]).T, -2)
    yield s(s.values([[[0.1, 1.3]], [[0.7, -2.9]], [[0.4, 0.2]]]), -3)
    yield s(s.real(), 0)
    yield s(s.real(0, 3), 0)
    yield s(s.real(3, 0), 0)


class RunningExtreme(Op):
    """Running extremes along a dim, and where they are."""

    sign: int  # 1 for maxima, -1 for minima
    grad = {"self": "scattered_sum(grad, indices, dim)"}
    push = {"values": "selected_push(self_t, indices, dim, True)"}
    diff_outputs = (True, False)
    shape = "[self.shape, self.shape]"
    dtype = "[self.dtype, dt.int64]"
    batch = dims("dim")
    cost = "reduce"
    samples = _apart

    @classmethod
    def run(cls, xp, self, dim):
        return _running_extreme(xp, self, dim, cls.sign)


class cummax(RunningExtreme):
    """Running maxima along a dim, and where they are."""

    schema = "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)"
    kept = "scan"
    sign = 1


class cummin(RunningExtreme):
    """Running minima along a dim, and where they are."""

    schema = "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)"
    kept = "scan"
    sign = -1
