"""Activations beyond the common ones of `ops/nonlinear.py`: shrinkage, hard forms, gates, slopes.

Each forward operator is followed by its backward operator, which is an ordinary differentiable
entry.  Formulas with more than one moving part are in `formulas/activation.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array import random as rng
from ..array.dims import broadcast_shapes, wrap_dim
from ..core.op import Composite, Op, Pointwise, Random
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .kinds import Free, InFunctional
from .layout import in_front
from .nonlinear import Activation
from .pointwise import Backward, PiecewiseBackward, backward_points, points, points_with, refuse
from .random import placed

# ---------------------------------------------------------------------------------------------
# Shrinkage: small values become zero


class hardshrink(InFunctional, Pointwise):
    """Each element, or 0 where its absolute value is at most `lambd`."""

    schema = "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor"
    grad = {"self": "hardshrink_backward(grad, self, lambd)"}
    c = "where(({self} >= -{lambd}) & ({self} <= {lambd}), 0, {self})"
    inplace = False
    samples = points_with(0.7)

    def run(xp, self, lambd):
        refuse("hardshrink_cpu", self, "biuc")
        return xp.where((self >= -lambd) & (self <= lambd), 0, self)

    def decomp(self, lambd=0.5):
        return self.masked_fill((self >= -lambd).logical_and(self <= lambd), 0)


class _ShrinkBackward(PiecewiseBackward):
    """The gradient where the absolute value exceeds `lambd`, else 0."""

    def run(xp, grad, self, lambd):
        return xp.where((self >= -lambd) & (self <= lambd), xp.asarray(0, grad.dtype), grad)

    def decomp(grad, self, lambd):
        return grad.masked_fill((self >= -lambd).logical_and(self <= lambd), 0)


class hardshrink_backward(_ShrinkBackward):
    """The gradient where the absolute value exceeds `lambd`, else 0."""

    schema = "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor"
    grad = {"grad_out": "hardshrink_backward(grad, self, lambd)"}
    c = "where(({self} >= -{lambd}) & ({self} <= {lambd}), 0, {grad_out})"
    samples = backward_points(0.5)


class softshrink(Activation):
    """Each element moved towards 0 by `lambd`, but not beyond it."""

    schema = "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor"
    grad = {"self": "softshrink_backward(grad, self, lambd)"}
    c = ("where({self} > {lambd}, {self} - {lambd}, "
         "where({self} < -{lambd}, {self} + {lambd}, {self} * 0))")
    inplace = False

    def run(xp, self, lambd):
        refuse("softshrink_cpu", self, "biuc")
        _check_lambd(lambd)
        inside = xp.where(self < -lambd, self + lambd, self * 0)  # times 0: NaN stays NaN
        return xp.where(self > lambd, self - lambd, inside)

    def decomp(self, lambd=0.5):
        _check_lambd(lambd)
        inside = ops.where(self < -lambd, self + lambd, self * 0)
        return ops.where(self > lambd, self - lambd, inside)

    samples = hardshrink.samples


def _check_lambd(lambd) -> None:
    if lambd < 0:
        raise ShapeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")


class softshrink_backward(_ShrinkBackward):
    """The gradient where the absolute value exceeds `lambd`, else 0."""

    schema = "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor"
    grad = {"grad_output": "softshrink_backward(grad, self, lambd)"}
    c = "where(({self} >= -{lambd}) & ({self} <= {lambd}), 0, {grad_output})"
    samples = backward_points(0.5)


# ---------------------------------------------------------------------------------------------
# Straight pieces in place of a sigmoid


def _straight_pieces(gradients: int = 0):
    """Samples in all three pieces, away from the kinks at -3 and 3."""

    def samples(s):
        x = s.values([[-4.5, -3.5, -2.6], [-1.1, 0.3, 2.4], [2.7, 3.4, 5.0]])
        for value in (x, x.T, s.real(), s.real(0, 3)):
            yield s(*[s.real(*value.shape)] * gradients, value)

    return samples


class _OfPieces(Activation):
    samples = _straight_pieces()


class hardsigmoid(_OfPieces):
    """(x + 3) / 6, cut off at 0 and 1."""

    schema = "hardsigmoid(Tensor self) -> Tensor"
    ahead = True
    grad = {"self": "hardsigmoid_backward(grad, self)"}
    c = "where({self} <= -3, 0, where({self} >= 3, 1, ({self} + 3) / 6))"

    def run(xp, self):
        refuse("hardsigmoid_cpu", self, "biuc")
        return xp.minimum(xp.maximum(self + 3, 0), 6) / 6

    def decomp(self):
        return (self + 3).clamp(0, 6) / 6


class hardsigmoid_backward(PiecewiseBackward):
    """A sixth of the gradient where -3 < x < 3, else 0."""

    schema = "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor"
    ahead = True
    run = "xp.where((self > -3) & (self < 3), grad_output / 6, xp.asarray(0, grad_output.dtype))"
    grad = {"grad_output": "hardsigmoid_backward(grad, self)"}
    c = "where(({self} > -3) & ({self} < 3), {grad_output} / 6, 0)"
    samples = _straight_pieces(1)

    def decomp(grad_output, self):
        return ops.where((self > -3).logical_and(self < 3), grad_output / 6, 0)


class hardswish(_OfPieces):
    """x times hardsigmoid(x)."""

    schema = "hardswish(Tensor self) -> Tensor"
    ahead = True
    tags = ()
    grad = {"self": "hardswish_backward(grad, self)"}
    c = "{self} * where({self} <= -3, 0, where({self} >= 3, 6, {self} + 3)) / 6"

    def run(xp, self):
        refuse("hardswish_cpu", self, "biuc")
        return self * xp.minimum(xp.maximum(self + 3, 0), 6) / 6

    def decomp(self):
        return self * (self + 3).clamp(0, 6) / 6


class hardswish_backward(Backward):
    """Gradient of hardswish: 0 up to -3, x / 3 + 1 / 2 between, 1 from 3 on."""

    schema = "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor"
    ahead = True
    tags = ()
    grad = {
        "grad_output": "hardswish_backward(grad, self)",
        "self": "where((self > -3).logical_and(self < 3), grad * grad_output / 3, 0)",
    }
    c = ("where({self} <= -3, 0, where({self} < 3, {grad_output} * ({self} / 3 + 0.5), "
         "{grad_output}))")
    samples = _straight_pieces(1)

    def run(xp, grad_output, self):
        inside = xp.where(self < 3, grad_output * (self / 3 + 0.5), grad_output)
        refuse("hardswish_backward_cpu", inside, "c")
        return xp.where(self <= -3, xp.asarray(0, inside.dtype), inside)

    def decomp(grad_output, self):
        inside = ops.where(self < 3, grad_output * (self / 3 + 0.5), grad_output)
        return ops.where(self <= -3, 0, inside)


# ---------------------------------------------------------------------------------------------
# Exponential units with fixed parameters


class celu(InFunctional, Pointwise):
    """x where positive, else alpha (exp(x / alpha) - 1)."""

    schema = "celu(Tensor self, Scalar alpha=1.0) -> Tensor"
    grad = {"self": "elu_backward(grad, alpha, 1, 1 / alpha, False, self)"}
    c = "where({self} > 0, {self}, expm1({self} / {alpha}) * {alpha})"
    method = False

    def run(xp, self, alpha):
        refuse("elu_cpu", self, "biuc")
        _check_alpha(alpha)
        return xp.where(self > 0, self, xp.expm1(self * (1 / alpha)) * alpha)

    def decomp(self, alpha=1.0):
        _check_alpha(alpha)
        return ops.where(self > 0, self, (self * (1 / alpha)).expm1() * alpha)

    samples = lambda s: [s(s.real(3, 4)), s(s.real(4, 3).T, 1.5), s(s.real(), 0.3), s(s.real(0, 3))]


def _check_alpha(alpha) -> None:
    if alpha == 0:
        raise ShapeError("ZeroDivisionError: alpha cannot be 0 for CELU")


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


class selu(InFunctional, Free):
    """The exponential unit whose scales keep mean 0 and variance 1 of independent normal inputs."""

    schema = "selu(Tensor self) -> Tensor"
    tags = ("pointwise",)
    inplace = True
    samples = points()

    def compose(self):
        return ops.elu(self, SELU_ALPHA, SELU_SCALE)


# ---------------------------------------------------------------------------------------------
# Learned and random slopes


class prelu(InFunctional, Composite):
    """Each element, times a learned slope (one for all, or one per channel) where negative."""

    schema = "prelu(Tensor self, Tensor weight) -> Tensor"
    autocast = "lower"

    def compose(self, weight):
        if self.dtype is not weight.dtype:
            raise DTypeError(f"prelu: Type promoting not supported. Got {self.dtype} and "
                             f"{weight.dtype}")
        if weight.numel() != 1:
            if self.ndim == 0:
                raise ShapeError("Not allow zero-dim input tensor.")
            channels = self.shape[1] if self.ndim > 1 else 1
            if channels != weight.numel():
                raise ShapeError("Mismatch of parameter numbers and input channel size. Found "
                                 f"parameter numbers = {weight.numel()} and channel size = "
                                 f"{channels}.")
        if weight.ndim > 1:
            raise ShapeError("prelu: Expected `weight` to be a scalar or 1D tensor, but got: "
                             f"ndim = {weight.ndim}")
        if self.ndim != weight.ndim:
            shape = [1] * self.ndim
            if self.ndim > 1:
                shape[1] = weight.numel()
            weight = weight.reshape(shape)
        return ops._prelu_kernel(self, weight)

    def samples(s):
        yield s(s.real(3, 4), s.real(4))
        yield s(s.real(2, 3, 4), s.real(1))
        yield s(s.real(4, 3).T, s.real())
        yield s(s.real(), s.real(1))
        yield s(s.real(0, 3), s.real(3))


class _prelu_kernel(Pointwise):
    """x where positive, else weight * x; the weight broadcasts."""

    schema = "_prelu_kernel(Tensor self, Tensor weight) -> Tensor"
    tags = ()
    run = "xp.where(self > 0, self, self * weight)"
    grad = {"self, weight": ("(None, None) if grad is None else"
                             " _prelu_kernel_backward(grad, self, weight)")}
    push = "prelu_push(self_p, self_t, weight_p, weight_t)"
    c = "where({self} > 0, {self}, {self} * {weight})"
    inplace = False
    method = function = False

    def decomp(self, weight):
        return ops.where(self > 0, self, self * weight)

    def samples(s):
        yield s(s.real(3, 4), s.real(1, 4))
        yield s(s.real(4, 3).T, s.real(3, 4))
        yield s(s.real(), s.real())
        yield s(s.real(0, 3), s.real(1, 3))


class _prelu_kernel_backward(Op):
    """Gradients of _prelu_kernel for its input and, not yet summed, for its weight."""

    schema = ("_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight)"
              " -> (Tensor, Tensor)")
    same_dtype = ("grad_output", "self", "weight")
    memory_format = "self"
    promote = "default"
    grad = {
        "grad_output": "prelu_backward_grad_output(grads, self, weight)",
        "self": "prelu_backward_self(grads, grad_output, self)",
        "weight": "prelu_backward_weight(grads, grad_output, self, weight)",
    }
    push = {
        "result0": ("where(self_p >= 0, grad_output_t,"
                    " grad_output_t * weight_p + grad_output_p * weight_t)"),
        "result1": "where(self_p >= 0, 0, grad_output_t * self_p + grad_output_p * self_t)",
    }
    cost = "cheap"
    method = function = False

    def run(xp, grad_output, self, weight):
        positive = self > 0
        return (xp.where(positive, grad_output, weight * grad_output),
                xp.where(positive, xp.asarray(0, grad_output.dtype), self * grad_output))

    def shape(grad_output, self, weight):
        full = broadcast_shapes(grad_output.shape, self.shape, weight.shape)
        return [full, broadcast_shapes(grad_output.shape, self.shape)]

    def batch(n, batched, grad_output, self, weight):
        if not (batched[0] or batched[1]):  # the second result has no dims of the weight
            self, batched = self.expand((n, *self.shape)), (False, True, batched[2])
        own = [tuple(t.shape[1:] if b else t.shape)
               for t, b in zip((grad_output, self, weight), batched)]
        rank = max(map(len, own))
        operands = [t.reshape((n, *(1,) * (rank - len(shape)), *shape)) if b else t
                    for t, b, shape in zip((grad_output, self, weight), batched, own)]
        first, second = ops._prelu_kernel_backward(*operands)
        return first, second.reshape((n, *broadcast_shapes(*own[:2])))

    def decomp(grad_output, self, weight):
        positive = self > 0
        return (ops.where(positive, grad_output, weight * grad_output),
                ops.where(positive, 0, self * grad_output))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.real(1, 4))
        yield s(s.real(3, 4), s.real(4, 3).T, s.real(3, 4))
        yield s(s.real(), s.real(), s.real())
        yield s(s.real(0, 3), s.real(0, 3), s.real(1, 3))


def _mean_slope(lower, upper) -> float:
    return (float(lower) + float(upper)) / 2


class rrelu(InFunctional, Free):
    """Each element, times a random (in training) or the mean slope where negative."""

    cost = "random"
    schema = ("rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333,"
              " bool training=False, Generator? generator=None) -> Tensor")
    tags = ("nondeterministic_seeded", "pointwise")
    inplace = True

    def compose(self, lower, upper, training, generator):
        return ops.rrelu_with_noise(self, ops.empty_like(self), lower, upper, training, generator)

    samples = lambda s: [s(s.real(3, 4)), s(s.real(4, 3).T, 0.1, 0.2), s(s.real())]


class rrelu_with_noise(Composite):
    """`rrelu` that writes the slopes into `noise`."""

    schema = ("rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125,"
              " Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None)"
              " -> Tensor")
    tags = ("nondeterministic_seeded",)
    method = function = False
    inplace = True
    namespace = "nn.functional"

    def compose(self, noise, lower, upper, training, generator):
        _check_slopes(lower, upper)
        if not training:
            return ops.leaky_relu(self, _mean_slope(lower, upper))
        out, slopes = ops.rrelu_with_noise_functional(self, noise, lower, upper, True, generator)
        noise.copy_(slopes)
        return out

    samples = lambda s: [s(s.real(3, 4), s.real(3, 4))]


def _check_slopes(lower, upper) -> None:
    if lower > upper:
        raise ShapeError("Lower bound should be less than or equal to the upper bound")


class rrelu_with_noise_functional(Random):
    """`rrelu` and the slopes that it drew: uniform where the element is not positive, else 1."""

    schema = ("rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125,"
              " Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None)"
              " -> (Tensor, Tensor noise_out)")
    memory_format = "self"
    grad = {"self": ("rrelu_with_noise_backward(grad, self, noise_out, lower, upper, training,"
                     " False)")}
    push = {"result0": ("rrelu_with_noise_backward(self_t, self_p, noise_out, lower, upper,"
                        " training, False)")}
    nondiff = ("noise",)
    diff_outputs = (True, False)
    method = function = False

    def run(xp, self, noise, lower, upper, training, generator):
        refuse("rrelu_with_noise_out_cpu", self, "biuc")
        _check_slopes(lower, upper)
        low = self <= 0
        if not training:
            slope = self.dtype.type(_mean_slope(lower, upper))
            return xp.where(low, self * slope, self), noise.copy()
        if noise.dtype != self.dtype:
            raise DTypeError(f"expected scalar type {dt.title(self.dtype)} but found "
                             f"{dt.title(noise.dtype)}")
        drawn = rng.uniform(generator or rng.default_generator, (int(low.sum()),),
                            dt.float64.np, float(lower), float(upper))
        slopes = xp.ones(self.shape, dtype=self.dtype)
        slopes[low] = placed(xp, drawn).astype(self.dtype)
        return self * slopes, slopes

    def shape(self, noise, lower, upper, training, generator):
        return [tuple(self.shape), tuple(self.shape if training else noise.shape)]

    def dtype(self, noise, lower, upper, training, generator):
        return [self.dtype, noise.dtype]

    def batch(n, batched, self, noise, *rest):
        return ops.rrelu_with_noise_functional(
            in_front(self, batched[0], n), in_front(noise, batched[1], n), *rest)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), 0.1, 0.3, True)
        yield s(s.real(3, 4), s.real(3, 4), 0.1, 0.3, False)


class rrelu_with_noise_backward(Backward):
    """The gradient times the slopes that were used."""

    complex = None
    schema = ("rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise,"
              " Scalar lower, Scalar upper, bool training, bool self_is_result) -> Tensor")
    tags = ()
    grad = {"grad_output": ("rrelu_with_noise_backward(grad, self, noise, lower, upper, training,"
                            " self_is_result)")}
    constant = ("self",)

    def run(xp, grad_output, self, noise, lower, upper, training, self_is_result):
        noise, self = xp.broadcast_arrays(noise, self)  # the unused one counts for the shape only
        if training and upper - lower > 1e-6:
            return grad_output * noise
        return xp.where(self > 0, grad_output, grad_output * _mean_slope(lower, upper))

    def decomp(grad_output, self, noise, lower, upper, training, self_is_result):
        if training and upper - lower > 1e-6:
            out, unused = grad_output * noise, self
        else:
            out = ops.leaky_relu_backward(grad_output, self, _mean_slope(lower, upper), False)
            unused = noise
        return out if unused.ndim <= out.ndim else out.expand(unused.shape)

    def samples(s):
        for training in (True, False):
            yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4), 0.1, 0.3, training, False)
        yield s(s.real(), s.real(), s.real(), 0.1, 0.3, True, False)


# ---------------------------------------------------------------------------------------------
# Gated linear units


def _halves(shape, dim: int) -> int:
    """The wrapped dim that a gated unit halves."""
    if len(shape) == 0:
        raise ShapeError("glu does not support 0-dimensional tensors")
    dim = wrap_dim(dim, len(shape))
    if shape[dim] % 2:
        raise ShapeError(f"Halving dimension must be even, but dimension {dim} is size "
                         f"{shape[dim]}")
    return dim


def _split(xp, self, dim):
    """The two halves of an array along a wrapped dim."""
    half = self.shape[dim] // 2
    lead = (slice(None),) * dim
    return self[(*lead, slice(0, half))], self[(*lead, slice(half, None))]


class glu(Op):
    """First half along a dim times the sigmoid of the second half."""

    schema = "glu(Tensor self, int dim=-1) -> Tensor"
    memory_format = "self"
    out = ("castable",)
    grad = {"self": "glu_backward(grad, self, dim)"}
    push = "glu_push(self_p, self_t, dim)"
    cost = "cheap"
    method = function = False
    namespace = "nn.functional"

    def run(xp, self, dim):
        refuse("glu_cpu", self, "biuc")
        a, b = _split(xp, self, _halves(self.shape, dim))
        return a / (1 + xp.exp(-b))

    def shape(self, dim):
        shape = list(self.shape)
        shape[_halves(shape, dim)] //= 2
        return tuple(shape)

    def batch(n, batched, self, dim):
        return ops.glu(self, _halves(self.shape[1:], dim) + 1)

    def decomp(self, dim=-1):
        a, b = ops.chunk(self, 2, _halves(self.shape, dim))
        return a * b.sigmoid()

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4, 3), 0)
        yield s(s.real(2, 4, 3), -2)
        yield s(s.real(4, 3).T)
        yield s(s.real(0, 4))
        yield s(s.real(2, 0))


class glu_backward(Op):
    """Gradient of glu: g s(b) for the first half, g a s'(b) for the second."""

    schema = "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor"
    same_dtype = ("grad_output", "self")
    grad = {
        "grad_output": "glu_push(self, grad, dim)",
        "self": "glu_curvature(grad_output, grad, self, dim)",
    }
    push = "glu_backward_push(grad_output_p, grad_output_t, self_p, self_t, dim)"
    shape = "self.shape"
    cost = "cheap"
    method = function = False

    def run(xp, grad_output, self, dim):
        dim = _halves(self.shape, dim)
        a, b = _split(xp, self, dim)
        gate = 1 / (1 + xp.exp(-b))
        first = grad_output * gate
        return xp.concatenate([first, first * (1 - gate) * a], axis=dim)

    def batch(n, batched, grad_output, self, dim):
        grad_output, self = in_front(grad_output, batched[0], n), in_front(self, batched[1], n)
        return ops.glu_backward(grad_output, self, _halves(self.shape[1:], dim) + 1)

    def decomp(grad_output, self, dim):
        dim = _halves(self.shape, dim)
        a, b = ops.chunk(self, 2, dim)
        gate = b.sigmoid()
        first = grad_output * gate
        return ops.cat([first, first * (1 - gate) * a], dim)

    def samples(s):
        yield s(s.real(3, 2), s.real(3, 4), -1)
        yield s(s.real(2, 3), s.real(4, 3), 0)
        yield s(s.real(2, 2, 3), s.real(2, 4, 3), -2)
        yield s(s.real(0, 2), s.real(0, 4), 1)


class infinitely_differentiable_gelu_backward(Composite):
    """Gradient of the exact gelu, of differentiable operators: grad (cdf(x) + x pdf(x))."""

    schema = "infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor"
    method = function = False
    samples = backward_points()

    def compose(grad, self):
        cdf = ((self * math.sqrt(0.5)).erf() + 1) * 0.5
        pdf = (self * self * -0.5).exp() / math.sqrt(2 * math.pi)
        return grad * (cdf + self * pdf)
