"""Draws of which nobody knows beforehand how many numbers they take: poisson, binomial, gamma.

The loops are in `array/rejection.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array import rejection
from ..array.dims import broadcast_shapes
from ..core.op import Pointwise, Random
from ..errors import BadValue, DTypeError
from ..table.packets import ops
from .gamma_kernels import beta_ratio, beta_slope, gamma_ratio
from .layout import in_front, pad_rank
from .pointwise import DerivativeOfOrder, title
from .random import on_host, placed, source


def _double_or_single(array, name: str) -> None:
    """Refuse dtypes in which such numbers are not drawn."""
    kind = dt.of(array.dtype)
    if kind not in (dt.float32, dt.float64):
        raise NotImplementedError(f"\"{name}\" not implemented for '{title(kind)}'")


class DrawnWith(Random):
    """Numbers that `draw` gives, drawn with the parameters that a tensor holds."""

    draw = None
    label = ""  # how messages call the kernel
    method = False
    shape = "tuple(self.shape)"

    @classmethod
    def run(cls, xp, self, generator):
        _double_or_single(self, cls.label)
        return placed(xp, cls.draw(source(generator), on_host(self)))

    @classmethod
    def batch(cls, n, batched, self, generator):
        return getattr(ops, cls.base_name)(in_front(self, batched[0], n), generator)


class poisson(DrawnWith):
    """Poisson numbers with the rates that a tensor gives."""

    schema = "poisson(Tensor self, Generator? generator=None) -> Tensor"
    constant = ("self",)

    def run(xp, self, generator):
        if dt.of(self.dtype).category != 2:
            raise NotImplementedError(f"\"poisson_cpu\" not implemented for '{title(self.dtype)}'")
        return placed(xp, rejection.poisson(source(generator), on_host(self)))

    samples = lambda s: [s(s.real(2, 3, low=0.1, high=30)), s(s.real(0, 3, low=0.1, high=30))]


class binomial(Random):
    """Successes of trials whose numbers and probabilities tensors give."""

    schema = "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor"
    method = False
    constant = ("count", "prob")

    def shape(count, prob, generator):
        return broadcast_shapes(count.shape, prob.shape)

    def run(xp, count, prob, generator):
        for name, array in (("count", count), ("prob", prob)):
            if dt.of(array.dtype).category != 2:
                raise BadValue(f"binomial only supports floating-point dtypes for {name}, got: "
                               f"{title(array.dtype)}")
        if count.dtype != prob.dtype:
            raise DTypeError(f"Found dtype {title(prob.dtype)} but expected {title(count.dtype)}")
        _double_or_single(count, "binomial_cpu")
        return placed(xp, rejection.binomial(source(generator), on_host(count), on_host(prob)))

    def batch(n, batched, count, prob, generator):
        rank = max(count.ndim - batched[0], prob.ndim - batched[1])
        count = pad_rank(in_front(count, batched[0], n), rank)
        prob = pad_rank(in_front(prob, batched[1], n), rank)
        return ops.binomial(count, prob, generator)

    def samples(s):
        yield s(s.tensor([[3.0], [40.0]], dt.float64), s.tensor([0.2, 0.5, 0.9], dt.float64))


class _standard_gamma(DrawnWith):
    """Gamma numbers with the shapes that a tensor gives, and scale 1."""

    schema = "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor"
    draw, label = rejection.standard_gamma, "gamma_cpu"
    grad = {"self": "grad * _standard_gamma_grad(self, result)"}
    push = "self_t * _standard_gamma_grad(self_p, result)"

    samples = lambda s: [s(s.real(2, 3, low=0.1, high=5)), s(s.real(low=0.1, high=5))]


class _gamma_ratio(DerivativeOfOrder):
    """Derivative of some order by a of the incomplete gamma function P(a, x), over the density."""

    schema = "_gamma_ratio(Tensor self, Tensor other, int order) -> Tensor"
    grad = {
        "self": "grad * (_gamma_ratio(self, other, order + 1) - _gamma_ratio(self, other, order)"
        " * (other.log() - self.digamma()))",
        "other": "grad * (gamma_log_derivatives(self, other, order)"
        " - _gamma_ratio(self, other, order) * ((self - 1) / other - 1))",
    }
    cost = "heavy"
    run = gamma_ratio

    def samples(s):
        for order in (1, 2):
            yield s(s.real(3, 4, low=0.4, high=4), s.real(4, low=0.3, high=5), order)
        yield s(s.values([0.01, 0.5, 30.0]), s.values([0.1, 0.01, 24.0]), 1)


class _standard_gamma_grad(Pointwise):
    """How a gamma number moves with its shape: -(dP(a, x) / da) / density."""

    ordered = False
    schema = "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor"
    kept = "function"
    tags = ()
    grad = {
        "self": "grad * (result * (self.digamma() - output.log()) - _gamma_ratio(self, output, 2))",
        "output": "grad * (self.digamma() - output.log() - result * ((self - 1) / output - 1))",
    }
    inplace = method = False
    cost = "heavy"

    def check(self, output):
        if output.dtype != self.dtype:
            raise DTypeError(f"Found dtype {title(output.dtype)} but expected {title(self.dtype)}")
        _double_or_single(self, "_standard_gamma_grad_cpu")

    def run(xp, self, output):
        return -gamma_ratio(xp, self, output, 1)

    def samples(s):
        yield s(s.real(3, 4, low=0.4, high=4), s.real(4, low=0.3, high=5))
        yield s(s.values([0.01, 0.5, 30.0]), s.values([0.1, 0.01, 24.0]))
        yield s(s.real(0, low=0.4, high=4), s.real(0, low=0.4, high=4))


class _sample_dirichlet(DrawnWith):
    """Points of the simplex in the last dim, drawn with the concentrations that a tensor gives."""

    schema = "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor"
    draw, label = rejection.dirichlet, "dirichlet"
    grad = {"self": "dirichlet_pullback(grad, self, result)"}
    push = "dirichlet_push(self_p, self_t, result)"

    def batch(n, batched, self, generator):
        self = in_front(self, batched[0], n)
        rows = self if self.ndim > 1 else self.unsqueeze(1)
        return ops._sample_dirichlet(rows, generator).reshape(self.shape)

    samples = lambda s: [s(s.real(2, 3, low=0.1, high=5))]


class _beta_ratio(DerivativeOfOrder):
    """Derivative of some order by a and b of the beta distribution function, over the density."""

    schema = "_beta_ratio(Tensor self, Tensor a, Tensor b, int i, int j) -> Tensor"
    grad = {
        "self": "grad * (beta_derivatives(self, a, b, i, j)"
        " - result * ((a - 1) / self - (b - 1) / (1 - self)))",
        "a": "grad * (_beta_ratio(self, a, b, i + 1, j)"
        " - result * beta_derivatives(self, a, b, 1, 0))",
        "b": "grad * (_beta_ratio(self, a, b, i, j + 1)"
        " - result * beta_derivatives(self, a, b, 0, 1))",
    }
    cost = "heavy"
    run = beta_ratio

    def samples(s):
        x, a, b = s.values([0.2, 0.5, 0.9]), s.values([0.7, 2.0, 5.0]), s.values([3.0, 1.0, 0.6])
        for i, j in ((1, 0), (2, 0), (1, 1), (0, 1)):
            yield s(x, a, b, i, j)


class _dirichlet_grad(Pointwise):
    """How a coordinate of a Dirichlet point moves with its concentration, over 1 - itself."""

    schema = "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor"
    kept = "function"
    tags = ()
    grad = {"x, alpha, total": "dirichlet_slope_pullback(grad, x, alpha, total, result)"}
    inplace = method = False
    cost = "heavy"

    def check(x, alpha, total):
        for other in (alpha, total):
            if other.dtype != x.dtype:
                raise DTypeError(f"Found dtype {title(other.dtype)} but expected {title(x.dtype)}")
        _double_or_single(x, "_dirichlet_grad_cpu")

    run = beta_slope

    def samples(s):
        yield s(s.values([0.2, 0.3, 0.5]), s.values([0.5, 1.0, 2.0]), s.values([3.5]))
        yield s(s.values([0.9, 0.1]), s.values([30.0, 0.4]), s.values(40.0))
