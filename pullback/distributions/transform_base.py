"""Transforms: invertible maps with the logarithms of their Jacobian determinants.

`t(x)`, `t.inv(y)`, `t.log_abs_det_jacobian(x, y)`, `t.domain` and `t.codomain`.  With
`cache_size=1` a transform remembers its last pair, so that `t.inv(t(x)) is x`.  Here are the base,
compositions and maps of single numbers.  Read next: `transforms.py` for those of vectors and
matrices, `TransformedDistribution` in `wrappers.py`.
"""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Callable, Sequence

from .. import errors
from ..array import dtype as dt
from ..array.dims import broadcast_shapes
from ..array.size import Size
from ..core.handle import Tensor
from ..table.packets import ops
from . import constraints
from .constraints import Constraint
from .utils import _sum_rightmost, broadcast_all, surely

Value = Tensor | float


class Transform:
    """A map from `domain` to `codomain` with `_call`, `_inverse` and `log_abs_det_jacobian`."""

    bijective = False
    domain: Constraint
    codomain: Constraint

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise errors.named(errors.BadValue, type(self).__name__,
                               f"cache_size must be 0 or 1, got {cache_size!r}")
        self._cache_size = cache_size
        self._inv = None
        self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_inv": None}  # a weak reference cannot be pickled

    @property
    def event_dim(self) -> int:
        """How many of the last dims the map takes together, if it keeps their number."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise errors.named(errors.BadValue, type(self).__name__,
                               "domain and codomain have different event dims",
                               cure="use .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse; `t.inv.inv is t`."""
        found = None if self._inv is None else self._inv()
        if found is None:
            found = self._make_inverse()
            self._inv = weakref.ref(found)
        return found

    def _make_inverse(self) -> Transform:
        return _InverseTransform(self)

    @property
    def sign(self):
        """The sign of the derivative, where it is the same everywhere."""
        raise errors.named(errors.NoFormula, type(self).__name__, "the derivative has no one sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with another cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is not Transform.__init__:
            raise errors.named(errors.NoFormula, type(self).__name__,
                               "a transform with arguments needs its own with_cache")
        return type(self)(cache_size=cache_size)

    def __eq__(self, other) -> bool:
        return self is other

    __hash__ = None  # equality of transforms compares values

    def __ne__(self, other) -> bool:
        return not self == other

    def __call__(self, x: Tensor) -> Tensor:
        return self._mapped(self._call, x, 0)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._mapped(self._inverse, y, 1)

    def _mapped(self, way: Callable, given: Tensor, side: int) -> Tensor:
        """`way(given)`, or what the cache has for it; x is its side 0, y its side 1."""
        if self._cache_size == 0:
            return way(given)
        if given is self._cached_x_y[side]:
            return self._cached_x_y[1 - side]
        found = way(given)
        self._cached_x_y = (found, given) if side else (given, found)
        return found

    def _call(self, x: Tensor) -> Tensor:
        raise errors.named(errors.NoFormula, type(self).__name__, "no forward map is defined")

    def _inverse(self, y: Tensor) -> Tensor:
        raise errors.named(errors.NoFormula, type(self).__name__, "no inverse is defined")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx| for each event, from x and y = t(x)."""
        raise errors.named(errors.NoFormula, type(self).__name__,
                           "no Jacobian determinant is defined")

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of t(x), given that of x."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of x, given that of t(x)."""
        return shape


class _InverseTransform(Transform):
    """A transform the other way round."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform  # a strong reference here, a weak one there

    inv = property(lambda self: self._inv)
    domain = property(lambda self: self._inv.codomain)
    codomain = property(lambda self: self._inv.domain)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)

    def __getstate__(self) -> dict:
        return self.__dict__

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """Several transforms, the first one first."""

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def _region(self, parts: list[Transform], outer: str, inner: str) -> Constraint:
        """The domain (or codomain) of the composition: that of the first (last) part.

        Parts further on may take more dims together, and then so does the whole.
        """
        if not parts:
            return constraints.real
        region = getattr(parts[0], outer)
        event_dim = getattr(parts[-1], inner).event_dim
        for part in reversed(parts):
            event_dim += getattr(part, outer).event_dim - getattr(part, inner).event_dim
            event_dim = max(event_dim, getattr(part, outer).event_dim)
        extra = event_dim - region.event_dim
        return constraints.independent(region, extra) if extra else region

    @property
    def domain(self) -> Constraint:
        return self._region(self.parts, "domain", "codomain")

    @property
    def codomain(self) -> Constraint:
        return self._region(self.parts[::-1], "codomain", "domain")

    bijective = property(lambda self: all(part.bijective for part in self.parts))
    sign = property(lambda self: functools.reduce(operator.mul, [p.sign for p in self.parts], 1))

    def _make_inverse(self) -> Transform:
        inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
        inverse._inv = weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return ops.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, values, values[1:]):
            terms.append(_sum_rightmost(part.log_abs_det_jacobian(before, after),
                                        event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(p) for p in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform with more of the last dims taken as one event: determinants are added up."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int,
                 cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    domain = property(lambda self: constraints.independent(
        self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(lambda self: constraints.independent(
        self.base_transform.codomain, self.reinterpreted_batch_ndims))
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(_with_dims(self, x, self.domain.event_dim))

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(_with_dims(self, y, self.codomain.event_dim))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(terms, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}({self.base_transform!r}, "
                f"{self.reinterpreted_batch_ndims})")

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.inverse_shape(shape)


def _with_dims(transform: Transform, x: Tensor, count: int) -> Tensor:
    if x.ndim < count:
        raise errors.named(errors.BadValue, type(transform).__name__,
                           f"too few dims: {x.ndim} of {count}")
    return x


class ReshapeTransform(Transform):
    """Events of one shape as events of another."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int],
                 cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise errors.named(errors.BadValue, "ReshapeTransform",
                               f"{tuple(in_shape)} and {tuple(out_shape)} have different numbers "
                               "of elements")
        super().__init__(cache_size=cache_size)

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ReshapeTransform(
            self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.ndim - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.ndim - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        batch = x.shape[: x.ndim - len(self.in_shape)]
        return ops.zeros(batch, dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._swapped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._swapped(shape, self.out_shape, self.in_shape)

    def _swapped(self, shape: Sequence[int], old: Size, new: Size) -> Size:
        shape, cut = Size(shape), len(shape) - len(old)
        if cut < 0 or shape[cut:] != old:
            raise errors.named(errors.BadValue, "ReshapeTransform",
                               f"the last dims of {tuple(shape)} are not {tuple(old)}")
        return shape[:cut] + new


# --- element by element ---------------------------------------------------------------------------


class _Elementwise(Transform):
    """A strictly monotonic function of each element, without arguments: equal to its likes."""

    bijective = True
    domain, codomain = constraints.real, constraints.real
    sign = +1

    def __eq__(self, other) -> bool:
        return type(other) is type(self)


class ExpTransform(_Elementwise):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(_Elementwise):
    """y = 1 / (1 + exp(-x)), kept away from 0 and 1."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        info = dt.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -ops.softplus(-x) - ops.softplus(x)


def clipped_sigmoid(x: Tensor) -> Tensor:
    """The logistic function, kept away from 0 and 1."""
    info = dt.finfo(x.dtype)
    return x.sigmoid().clamp(min=info.tiny, max=1 - info.eps)


class SoftplusTransform(_Elementwise):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return ops.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -ops.softplus(-x)


class TanhTransform(_Elementwise):
    """y = tanh(x).  The inverse is infinite at +-1; a cache avoids taking it."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)^2) without the cancellation at large x
        return 2.0 * (math.log(2.0) - x - ops.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|, which has no inverse; `inv` gives the one that is not negative."""

    domain, codomain = constraints.real, constraints.positive

    def __eq__(self, other) -> bool:
        return isinstance(other, AbsTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """y = x ** exponent of positive numbers."""

    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent: Value, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    sign = property(lambda self: self.exponent.sign())

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    def __eq__(self, other) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size(broadcast_shapes(shape, self.exponent.shape))

    inverse_shape = forward_shape


def _same(a: Value, b: Value) -> bool:
    """Are two arguments, numbers or tensors, equal?"""
    if a is not b and (isinstance(a, Tensor) or isinstance(b, Tensor)):
        return surely(ops.eq(*broadcast_all(a, b)), "whether two transforms are the same")
    return a is b or a == b


class AffineTransform(Transform):
    """y = loc + scale * x."""

    bijective = True

    def __init__(self, loc: Value, scale: Value, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @property
    def domain(self) -> Constraint:
        dims = self._event_dim
        return constraints.independent(constraints.real, dims) if dims else constraints.real

    codomain = domain

    @property
    def sign(self):
        scale = self.scale
        return scale.sign() if isinstance(scale, Tensor) else (scale > 0) - (scale < 0)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else AffineTransform(
            self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other) -> bool:
        return (isinstance(other, AffineTransform) and _same(self.loc, other.loc)
                and _same(self.scale, other.scale))

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            term = self.scale.abs().log()
        else:
            term = ops.full_like(x, math.log(abs(self.scale)))
        term = term.expand(broadcast_shapes(term.shape, x.shape))
        return _sum_rightmost(term, self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size(broadcast_shapes(
            shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = F(x), the distribution function of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CumulativeDistributionTransform(
            self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
