"""Sampled functions: diff, gradient, trapezoid."""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import wrap_dim, wrap_dims
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .kinds import ComplexComposite, ComplexFree, Free
from .reduce import reduced

# ---------------------------------------------------------------------------------------------
# Differences


def _ends(self, dim, prepend, append):
    """Self with what is to be put in front of it and behind it along a dim."""
    parts = []
    for part in (prepend, self, append):
        if part is None:
            continue
        if part.ndim != self.ndim:
            raise ShapeError("diff expects prepend or append to be the same dimension as input")
        for d in range(self.ndim):
            if d != dim and part.shape[d] != self.shape[d]:
                raise ShapeError(
                    "diff expects the shape of tensor to prepend or append to match that of input "
                    f"except along the differencing dimension; input.size({d}) = {self.shape[d]}, "
                    f"but got tensor.size({d}) = {part.shape[d]}")
        parts.append(part)
    return ops.cat(parts, dim) if len(parts) > 1 else self


def _steps(x, dim):
    """Each element minus the one before it."""
    size = x.shape[dim]
    if size == 0:
        return x
    sooner, later = x.narrow(dim, 0, size - 1), x.narrow(dim, 1, size - 1)
    return ops.logical_xor(later, sooner) if x.dtype is dt.bool_ else later - sooner


class diff(ComplexComposite):
    """n-th differences of neighbours along a dim; bools differ or not."""
    schema = ("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)"
              " -> Tensor")

    def compose(self, n, dim, prepend, append):
        if self.ndim == 0:
            raise ShapeError("diff expects input to be at least one-dimensional")
        if n < 0:
            raise RuntimeError(f"order must be non-negative but got {n}")
        whole = _ends(self, wrap_dim(dim, self.ndim), prepend, append)
        if n == 0:
            return self.clone()
        for _ in range(min(n, whole.shape[dim])):
            whole = _steps(whole, dim)
        return whole

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4), 2, 0)
        yield s(s.real(3, 4), 9)
        yield s(s.real(3, 4), 1, -1, s.real(3, 1), s.real(3, 2))
        yield s(s.bool(5))
        yield s(s.real(4, 3).T, 1, 0)
        yield s(s.real(0, 3), 1, 0)


# ---------------------------------------------------------------------------------------------
# Gradients of sampled functions


def _gradient_dims(self, dim, spacing, edge_order) -> list[int]:
    """The dims to differentiate along."""
    if self.dtype is dt.uint8:
        raise DTypeError("torch.gradient does not support uint8 input.")
    dim = list(range(self.ndim)) if dim is None else dim
    if isinstance(spacing, list) and len(spacing) != len(dim):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            "arguments to have the same length, but got a spacing argument of length "
            f"{len(spacing)} and a dim argument of length {len(dim)}.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    chosen = list(wrap_dims(dim, self.ndim, empty_is_all=False))
    for d in dim:
        wrap_dim(d, self.ndim, scalar_ok=False)
    for d in chosen:
        if self.shape[d] < edge_order + 1:
            raise ShapeError("torch.gradient expected each dimension size to be at least "
                             f"edge_order+1, but dim {d} has {self.shape[d]}")
    return chosen


def _gradient(self, spacing, dim, edge_order):
    """Central differences inside, one-sided ones of first or second order at the ends."""
    chosen = _gradient_dims(self, dim, spacing, edge_order)
    steps = spacing if isinstance(spacing, list) else [spacing] * len(chosen)
    for step in steps:
        if hasattr(step, "_edge") and step.ndim != 1:
            raise ShapeError("torch.gradient expected each element of spacing to have one "
                             f"dimension, but got an element with {step.ndim} dimensions!")
    return tuple((_slopes_uneven if hasattr(step, "_edge") else _slopes_even)(
        self, step, d, edge_order) for step, d in zip(steps, chosen, strict=True))


def _slopes_even(f, step, dim, edge_order):
    """Slopes on an even grid."""
    size = f.shape[dim]
    at = lambda i, count=1: f.narrow(dim, i, count)
    center = (at(2, size - 2) - at(0, size - 2)) / step / 2
    if edge_order == 1:
        first, last = (at(1) - at(0)) / step, (at(size - 1) - at(size - 2)) / step
    else:
        first = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / step
        last = (0.5 * at(size - 3) - 2 * at(size - 2) + 1.5 * at(size - 1)) / step
    return ops.cat([first, center, last], dim)


def _slopes_uneven(f, x, dim, edge_order):
    """Slopes on a grid with the coordinates `x`: those of the parabola through three points."""
    shape = [1] * f.ndim
    shape[dim] = -1
    size = f.shape[dim]
    at = lambda i, count=1: f.narrow(dim, i, count)
    if not (x.dtype.is_inexact or x.dtype is dt.bool_):
        x = x.to(dt.int64)  # products of narrow numbers wrap, as do differences without a sign
    step = _steps(x, 0).reshape(shape)
    count = step.shape[dim]
    h = lambda i, count=1: step.narrow(dim, i, count)
    one, two = h(0, count - 1), h(1, count - 1)
    center = (-two / (one * (one + two)) * at(0, size - 2)
              + (two - one) / (one * two) * at(1, size - 2)
              + one / (two * (one + two)) * at(2, size - 2))
    if edge_order == 1:
        first = (at(1) - at(0)) / h(0)
        last = (at(size - 1) - at(size - 2)) / h(count - 1)
    else:
        one, two = h(0), h(1)
        first = (-(2 * one + two) / (one * (one + two)) * at(0)
                 + (one + two) / (one * two) * at(1)
                 - one / (two * (one + two)) * at(2))
        one, two = h(count - 2), h(count - 1)
        last = (two / (one * (one + two)) * at(size - 3)
                - (one + two) / (one * two) * at(size - 2)
                + (2 * two + one) / (two * (one + two)) * at(size - 1))
    return ops.cat([first, center, last], dim)


class gradient_scalarint(ComplexFree):
    """Slopes of sampled values along dims, from central differences."""
    schema = ("gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None,"
              " int edge_order=1) -> Tensor[]")

    def compose(self, spacing, dim, edge_order):
        dim = None if dim is None else [dim]
        return _gradient(self, 1 if spacing is None else spacing, dim, edge_order)

    def samples(s):
        yield s(s.real(4))
        yield s(s.real(4, 3), dim=-1, spacing=0.5)
        yield s(s.real(4, 3), edge_order=2)


class gradient_scalararray(ComplexFree):
    """`gradient` along some dims of an even grid."""
    schema = ("gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1)"
              " -> Tensor[]")
    compose = _gradient

    samples = lambda s: [s(s.real(4, 3), spacing=2, dim=[1, 0])]


class gradient_array(ComplexFree):
    """`gradient` along some dims of the unit grid."""
    schema = "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]"

    def compose(self, dim, edge_order):
        return _gradient(self, 1, dim, edge_order)

    samples = lambda s: [s(s.real(4, 3), dim=[1, 0])]


class gradient_scalarrayint(ComplexFree):
    """`gradient` with one step size for each dim."""
    schema = ("gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None,"
              " int edge_order=1) -> Tensor[]")

    def compose(self, spacing, dim, edge_order):
        return _gradient(self, list(spacing), None if dim is None else [dim], edge_order)

    samples = lambda s: [s(s.real(4, 3), spacing=[2.0, 0.5])]


class gradient_scalarrayarray(ComplexFree):
    """`gradient` along some dims with one step size for each."""
    schema = ("gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim,"
              " int edge_order=1) -> Tensor[]")

    def compose(self, spacing, dim, edge_order):
        return _gradient(self, list(spacing), dim, edge_order)

    samples = lambda s: [s(s.real(4, 3), spacing=[2.0, 0.5], dim=[1, 0])]


class gradient_tensorarrayint(Free):
    """`gradient` on a grid with given coordinates."""
    schema = ("gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None,"
              " int edge_order=1) -> Tensor[]")

    def compose(self, spacing, dim, edge_order):
        return _gradient(self, list(spacing), None if dim is None else [dim], edge_order)

    def samples(s):
        yield s(s.real(4, 3), spacing=[s.values([0.0, 1.0, 3.0, 4.5])], dim=0, edge_order=2)


class gradient_tensorarray(Free):
    """`gradient` along some dims of a grid with given coordinates."""
    schema = ("gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1)"
              " -> Tensor[]")

    def compose(self, spacing, dim, edge_order):
        return _gradient(self, list(spacing), dim, edge_order)

    samples = lambda s: [s(s.real(4, 3), spacing=[s.values([0.0, 1.0, 3.0])], dim=[1])]


# ---------------------------------------------------------------------------------------------
# Integrals of sampled functions


def _no_bools(name: str, what: str, *tensors) -> None:
    if any(t.dtype is dt.bool_ for t in tensors):
        raise DTypeError(f"{name}: received a bool input for {what}, but bool is not supported")


def _real_step(name: str, dx):
    if isinstance(dx, (complex, bool)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    return dx


def _widths(name: str, y, x, dim):
    """Distances of neighbouring sample points, shaped to multiply what lies along a dim of y."""
    dim = wrap_dim(dim, y.ndim)
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise ShapeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.ndim
        shape[dim] = x.shape[0]
        x = x.reshape(shape)
    elif x.ndim < y.ndim:
        x = x.reshape((*(1,) * (y.ndim - x.ndim), *x.shape))
    return _steps(x, dim)


def _pairs(y, dim):
    """Sums of neighbours."""
    size = max(y.shape[dim] - 1, 0)
    return y.narrow(dim, min(1, y.shape[dim]), size) + y.narrow(dim, 0, size)


def _trapezoid_x(name, y, x, dim):
    dim = wrap_dim(dim, y.ndim, scalar_ok=False)
    if y.shape[dim] == 0:
        return y.new_zeros(reduced(y.shape, dim, False))
    _no_bools(name, "`x` or `y`", y, x)
    return (_widths(name, y, x, dim) * _pairs(y, dim)).sum(dim) / 2


def _trapezoid_dx(name, y, dx, dim):
    dim = wrap_dim(dim, y.ndim, scalar_ok=False)
    if y.shape[dim] == 0:
        return y.new_zeros(reduced(y.shape, dim, False))
    _no_bools(name, "`y`", y)
    ends = (y.select(dim, 0) + y.select(dim, -1)) * 0.5
    return (y.sum(dim) - ends) * _real_step(name, dx)


def _x_samples(s):
    yield s(s.real(3, 4), s.values([0.0, 1.0, 1.5, 3.0]))
    yield s(s.real(3, 4), s.values([0.0, 1.0, 3.0]), dim=0)
    yield s(s.real(2, 3, 4), s.real(3, 4))
    yield s(s.real(3, 4), s.real(3, 4), dim=-2)


def _dx_samples(s):
    yield s(s.real(3, 4))
    yield s(s.real(3, 4), dx=0.5, dim=0)
    yield s(s.real(3, 1))
    yield s(s.real(4, 3).T)


class trapezoid_x(ComplexFree):
    """Integral along a dim by the trapezoidal rule, at given sample points."""
    schema = "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor"
    samples = _x_samples

    def compose(y, x, dim):
        return _trapezoid_x("trapezoid", y, x, dim)


class trapezoid_dx(ComplexFree):
    """Integral along a dim by the trapezoidal rule, with even steps."""
    schema = "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor"
    samples = _dx_samples

    def compose(y, dx, dim):
        return _trapezoid_dx("trapezoid", y, dx, dim)


class trapz_x(trapezoid_x):
    """Another name of `trapezoid`."""
    schema = "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor"


class trapz_dx(trapezoid_dx):
    """Another name of `trapezoid`."""
    schema = "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor"


class cumulative_trapezoid_x(ComplexFree):
    """Running integral along a dim by the trapezoidal rule, at given sample points."""
    schema = "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor"
    samples = _x_samples

    def compose(y, x, dim):
        _no_bools("cumulative_trapezoid", "`x` or `y`", y, x)
        dim = wrap_dim(dim, y.ndim, scalar_ok=False)
        width = _widths("cumulative_trapezoid", y, x, dim)
        return (width * _pairs(y, dim)).cumsum(dim) / 2


class cumulative_trapezoid_dx(ComplexFree):
    """Running integral along a dim by the trapezoidal rule, with even steps."""
    schema = "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor"
    samples = _dx_samples

    def compose(y, dx, dim):
        _no_bools("cumulative_trapezoid", "`y`", y)
        dx = _real_step("cumulative_trapezoid", dx)
        dim = wrap_dim(dim, y.ndim, scalar_ok=False)
        return dx / 2 * _pairs(y, dim).cumsum(dim)
