"""Places along one dim: index_select, index_add, gather, scatter and their like.

Either one index vector for a whole dim, or one index per element. Read next: `index.py`, whose
checks these share; `formulas/index.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import numel, wrap_dim
from ..array.xp import accumulate_at, taken
from ..core.op import Composite, Op
from ..table.packets import ops
from .create import as_number
from .index import Accumulating, accumulate_into, in_range, same_dtype, whole
from .kinds import Moving
from .layout import along, in_front, inner

# --- one index vector along one dim ---------------------------------------------------------------


def index_vector(index, name: str):
    """The index of index_select and its kin as a vector."""
    if index.ndim > 1:
        raise IndexError(f"{name}: Index is supposed to be a vector")
    if dt.name_of(index.dtype) not in ("int32", "int64"):
        raise RuntimeError(f"{name}: Expected dtype int32 or int64 for index")
    return index.reshape((-1,))


def _batched_vector(n, is_batched, index):
    """A batched index as (n, k), whatever its logical rank was."""
    return index.reshape((n, -1 if index.numel() else 0)) if is_batched else index


def _spread(index, like, dim: int, size: int):
    """Index (n, k) as (n, 1.., k, ..1) expanded to `like` with k = size at `dim`."""
    view = [1] * like.ndim
    view[0], view[dim] = index.shape[0], size
    shape = list(like.shape)
    shape[dim] = size
    return index.view(view).expand(shape)


class index_select(Moving):
    """The indices of one dim that a vector lists."""

    schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor"
    native = "index_select"
    lower = "index.index_select"
    core = True
    linear = ("self",)
    nondiff = ("index",)
    grad = {"self": "grad.new_zeros(self.shape).index_add(dim, index, grad)"}

    def run(xp, self, dim, index):
        dim = wrap_dim(dim, self.ndim)
        index = index_vector(index, "index_select()")
        size = self.shape[dim] if self.ndim else 1
        if self.ndim == 0 and index.size != 1:
            raise RuntimeError(
                f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)"
            )
        if index.size and (index.min() < 0 or index.max() >= size):
            raise IndexError("index out of range in self")
        return xp.take(self, index, axis=dim) if self.ndim else self.copy()

    def shape(self, dim, index):
        dim = wrap_dim(dim, self.ndim)
        return (*self.shape[:dim], numel(index.shape), *self.shape[dim + 1 :]) if self.ndim else ()

    def batch(n, batched, self, dim, index):
        if not batched[2]:
            if self.ndim == 1:
                return self.clone()
            return self.index_select(inner(dim, self), index)
        index = _batched_vector(n, True, index)
        if not batched[0]:
            dim = wrap_dim(dim, self.ndim)
            if self.ndim == 0:
                return self.expand((n,)).clone()
            out = self.index_select(dim, index.reshape((-1,)))
            return out.unflatten(dim, (n, index.shape[1])).movedim(dim, 0)
        if self.ndim == 1:
            return self.clone()
        dim = inner(dim, self)
        return self.gather(dim, _spread(index, self, dim, index.shape[1]))

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(3, high=4))
        yield s(s.real(4, 5), -1, s.int(6, high=5))
        yield s(s.real(4, 5).T, 0, s.int(high=4))
        yield s(s.real(), 0, whole(s, [0]))
        yield s(s.real(4, 5), 0, s.int(0, high=4))


def slices_match(self, source, dim: int) -> None:
    """Source of index_add: the shape of self, except along the indexed dim."""
    mine = (*self.shape[:dim], *self.shape[dim + 1 :])
    theirs = (*source.shape[:dim], *source.shape[dim + 1 :])
    if self.ndim != source.ndim or mine != theirs:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(self.shape)} source.shape = {list(source.shape)}"
        )


def _times(source, alpha):
    """`source * alpha` in the dtype of `source`: truth values and whole numbers stay such."""
    return source if alpha == 1 else ops.mul(source, alpha).to(source.dtype)


class index_add(Accumulating):
    """A copy of `self` with slices of `source` added at the listed indices of one dim."""

    schema = (
        "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor"
    )
    trusts = "values"
    bad_index = RuntimeError
    lower = "index.index_add"
    linear = ("self", "source")
    grad = {
        "self": "grad",
        "source": "index_source_backward(grad, dim, index, source.ndim, source.shape)"
        " * (alpha.conjugate() if isinstance(alpha, complex) else alpha)",
    }

    def run(xp, self, dim, index, source, alpha):
        dim = wrap_dim(dim, self.ndim)
        index = index_vector(index, "index_add_()")
        same_dtype(self, source, "index_add_(): self and source must have the same scalar type")
        if source.ndim == 0 and index.size != 1:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        count = source.shape[wrap_dim(dim, source.ndim)] if source.ndim else 1
        if index.size != count:
            raise RuntimeError(
                f"index_add_(): Number of indices ({index.size}) should be equal to "
                f"source.size(dim): ({count}), for dim: {dim}"
            )
        slices_match(self, source, dim)
        size = self.shape[dim] if self.ndim else 1
        index = in_range(xp, index, size, dim, RuntimeError, negative=False)
        if alpha != 1:
            source = (source * alpha).astype(self.dtype)
        if self.ndim == 0:
            return self + source
        return accumulate_into(xp, self, [None] * dim + [index], source)

    def batch(n, batched, self, dim, index, source, alpha):
        self, source = in_front(self, batched[0], n), in_front(source, batched[3], n)
        if self.ndim == 1:
            return self + _times(source, alpha)
        if source.ndim < self.ndim:
            source = source.unsqueeze(1)
        dim = inner(dim, self)
        if not batched[2]:
            return self.index_add(dim, index, source, alpha=alpha)
        index = _batched_vector(n, True, index)
        spread = _spread(index, self, dim, index.shape[1])
        return self.scatter_add(dim, spread, _times(source, alpha))

    def decomp(self, dim, index, source, alpha):
        if self.ndim == 0 and (alpha == 1 or self.dtype.is_inexact):
            return ops.add(self, source, alpha=alpha)
        source = _times(source, alpha)
        if self.ndim == 0:
            return self + source
        index = [None] * wrap_dim(dim, self.ndim) + [ops.reshape(index, (-1,))]
        return ops.index_put(self, index, source, True)

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(6, high=4), s.real(6, 5))
        yield s(s.real(4, 5), -1, s.int(2, high=5), s.real(4, 2), alpha=2)
        yield s(s.real(4, 5).T, 0, s.int(3, high=5), s.real(3, 4))
        yield s(s.real(), 0, whole(s, [0]), s.real())


class _Rewritten(Moving):
    """A copy of `self` with other values at the places that an index lists."""

    inplace = True
    nondiff = ("index",)
    shape = "tuple(self.shape)"


class index_copy(_Rewritten):
    """A copy of `self` with slices of `source` at the listed indices of one dim."""

    schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor"
    trusts = "values"
    autocast = "widest"
    linear = ("self", "source")
    grad = {
        "self": "grad.index_fill(dim, index, 0)",
        "source": "index_source_backward(grad, dim, index, source.ndim, source.shape)",
    }

    def run(xp, self, dim, index, source):
        dim = wrap_dim(dim, self.ndim)
        if dt.name_of(index.dtype) != "int64":
            raise RuntimeError("index_copy_(): Expected a long tensor for index")
        index = index_vector(index, "index_copy_()")
        same_dtype(self, source, "index_copy_(): self and source expected to have the same dtype")
        count = source.shape[dim] if source.ndim else 1
        if index.size != count:
            raise IndexError(
                f"index_copy_(): Number of indices ({index.size}) should be equal to "
                f"source.size(dim) ({count})"
            )
        mine = (*self.shape[:dim], *self.shape[dim + 1 :])
        theirs = (*source.shape[:dim], *source.shape[dim + 1 :])
        if mine != theirs:
            raise RuntimeError(
                "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
                f"slice shape: {list(mine)} and source slice shape: {list(theirs)}"
            )
        size = self.shape[dim] if self.ndim else 1
        in_range(xp, index, size, dim, IndexError, negative=False)
        out = self.copy()
        out[along(dim, index) if self.ndim else ...] = source
        return out

    def batch(n, batched, self, dim, index, source):
        self, source = in_front(self, batched[0], n), in_front(source, batched[3], n)
        if self.ndim == 1:
            return source.reshape((n,)).clone()
        if source.ndim < self.ndim:
            source = source.unsqueeze(1)
        dim = inner(dim, self)
        if not batched[2]:
            return self.index_copy(dim, index, source)
        index = _batched_vector(n, True, index)
        return ops.scatter(self, dim, _spread(index, self, dim, index.shape[1]), source)

    def decomp(self, dim, index, source):
        if self.ndim == 0:
            return ops.reshape(source, ())
        if source.ndim == 0:
            source = ops.unsqueeze(source, 0)
        index = [None] * wrap_dim(dim, self.ndim) + [ops.reshape(index, (-1,))]
        return ops.index_put(self, index, source)

    def samples(s):
        yield s(s.real(4, 5), 0, whole(s, [2, 0]), s.real(2, 5))
        yield s(s.real(4, 5), -1, whole(s, [3, 1, 0]), s.real(4, 3))
        yield s(s.real(4), 0, whole(s, 1), s.real())
        yield s(s.real(), 0, whole(s, 0), s.real())


def _filled(xp, self, dim, index, value):
    dim = wrap_dim(dim, self.ndim)
    if dt.name_of(index.dtype) != "int64":
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    size = self.shape[dim] if self.ndim else 1
    index = in_range(xp, index.reshape((-1,)), size, dim)
    out = self.copy()
    if index.size:
        out[along(dim, index) if self.ndim else ...] = as_number(self, value)
    return out


def _index_fill_decomp(self, dim, index, value):
    if self.ndim == 0:
        return ops.expand(value, ())
    index = [None] * wrap_dim(dim, self.ndim) + [ops.reshape(index, (-1,))]
    return ops.index_put(self, index, value)


def _index_fill_batch(n, batched, self, dim, index, value):
    self = in_front(self, batched[0], n)
    if not batched[2] and not (len(batched) > 3 and batched[3]):
        if self.ndim == 1:
            return self.unsqueeze(1).index_fill(1, index, value).squeeze(1)
        return self.index_fill(inner(dim, self), index, value)
    scalar = self.ndim == 1
    if scalar:
        self = self.unsqueeze(1)
    dim = 1 if scalar else inner(dim, self)
    index = _batched_vector(n, batched[2], index)
    if not batched[2]:
        index = index.reshape((1, -1 if index.numel() else 0)).expand((n, index.numel()))
    size = self.shape[dim]
    hit = ops.zeros((n, size), dtype=dt.bool_, device=self.device)
    index = ops.where(index < 0, index + size, index)
    hit = ops.scatter(hit, 1, index, True)
    view = [1] * self.ndim
    view[0], view[dim] = n, size
    if hasattr(value, "ndim"):
        value = value.to(self.dtype)
        value = value.view((n, *(1,) * (self.ndim - 1))) if value.ndim else value
        out = ops.where(hit.view(view), value, self)
    else:
        out = self.masked_fill(hit.view(view), value)
    return out.squeeze(1) if scalar else out


class index_fill_int_Tensor(_Rewritten):
    """A copy of `self` with one 0-d tensor at the listed indices of one dim."""

    schema = "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor"
    memory_format = "self"
    number = 1
    linear = ("self", "value")
    grad = {
        "self": "grad.index_fill(dim, index, 0)",
        "value": "index_fill_value_backward(grad, dim, index)",
    }

    def run(xp, self, dim, index, value):
        if value.ndim:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, "
                f"but got tensor with {value.ndim} dimension(s)."
            )
        return _filled(xp, self, dim, index, value)

    batch = _index_fill_batch

    def decomp(self, dim, index, value):
        return _index_fill_decomp(self, dim, index, value.to(self.dtype))

    def samples(s):
        yield s(s.real(4, 5), 0, whole(s, [2, 0, 2]), s.real())
        yield s(s.real(4, 5), -1, whole(s, [-1]), s.real())
        yield s(s.real(), 0, whole(s, [0]), s.real())


class index_fill_int_Scalar(_Rewritten):
    """A copy of `self` with a number at the listed indices of one dim."""

    schema = "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor"
    memory_format = "self"
    number = 0
    grad = {"self": "grad.index_fill(dim, index, 0)"}
    push = "self_t.index_fill(dim, index, 0)"
    run = _filled

    batch = _index_fill_batch

    def decomp(self, dim, index, value):
        return _index_fill_decomp(self, dim, index, ops.full((), value, dtype=self.dtype))

    def samples(s):
        yield s(s.real(4, 5), 0, whole(s, [2, 0, 2]), 1.5)
        yield s(s.real(4, 5), -1, whole(s, 1), 2)


# --- one index per element along one dim ----------------------------------------------------------


def check_along(name: str, self, index, dim: int, src=None) -> int:
    """Wrapped dim of gather or scatter after checking ranks, sizes and the index dtype."""
    dim = wrap_dim(dim, self.ndim)
    if numel(index.shape) == 0:
        return dim
    if dt.name_of(index.dtype) not in ("int32", "int64"):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if max(self.ndim, 1) != max(index.ndim, 1):
        kind = "input" if name == "gather" else "self"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {kind} tensor")
    if src is not None and max(src.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if self.ndim == 0 or index.ndim == 0:
        return dim
    for d in range(self.ndim):
        small = d == dim or index.shape[d] <= self.shape[d]
        fits = src is None or src.ndim == 0 or index.shape[d] <= src.shape[d]
        if small and fits:
            continue
        if name == "gather":
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} to be no "
                f"larger than self {list(self.shape)} apart from dimension {dim}"
            )
        also = f" and to be no larger size than src {list(src.shape)}" if src is not None else ""
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} "
            f"apart from dimension {dim}{also}"
        )
    return dim


def flat_places(index, shape, dim: int, xp):
    """Position in the flattened array of shape `shape` of each entry of an index along `dim`."""
    steps = [numel(shape[d + 1 :]) for d in range(len(shape))]
    flat = index if steps[dim] == 1 else index * xp.int64(steps[dim])
    for d, size in enumerate(index.shape):
        if d != dim and size > 1:
            view = [1] * index.ndim
            view[d] = size
            flat = flat + (xp.arange(size) * steps[d]).reshape(view)
    return flat.reshape(-1)


def line(array):
    """A 0-d array as a vector of one."""
    return array.reshape((1,)) if array.ndim == 0 else array


def _along_batch(n, batched, dim, *parts):
    """Operands of gather or scatter with batch dims in front and at least one more dim."""
    flags = (batched[0], *batched[2 : 2 + len(parts) - 1])
    parts = [in_front(x, f, n) for x, f in zip(parts, flags, strict=True)]
    rank = max(p.ndim for p in parts)
    scalar = parts[0].ndim == 1
    parts = [p.unsqueeze(1) if p.ndim == 1 and rank >= 1 else p for p in parts]
    return parts, wrap_dim(dim, 1 if scalar else parts[0].ndim - 1) + 1, scalar


class _PerElement(Op):
    """An operator with one index for each element of its result or source."""

    bad_index = RuntimeError
    nondiff = ("index",)


class gather(_PerElement, Moving):
    """One element along a dim for each entry of an index."""

    schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"
    native = "gather"
    lower = "index.gather"
    core = True
    linear = ("self",)
    out = ("exact", "apart")
    shape = "tuple(index.shape)"
    grad = {"self": ("grad.new_zeros(self.shape).scatter_add(dim, index, grad) if not sparse_grad"
                     " else gathered_grad(grad, self.shape, dim, index)")}

    def run(xp, self, dim, index, sparse_grad):
        dim = check_along("gather", self, index, dim)
        if index.size == 0:
            return xp.empty(index.shape, self.dtype)
        shape, places = self.shape or (1,), line(index)
        places = in_range(xp, places, shape[dim], dim, RuntimeError, negative=False)
        flat = flat_places(places, shape, dim, xp)
        return taken(xp, self.reshape(-1), flat).reshape(index.shape)

    def batch(n, batched, self, dim, index, sparse_grad):
        flat = index.ndim - batched[2] == 0
        (self, index), dim, _ = _along_batch(n, batched, dim, self, index)
        out = self.gather(dim, index)
        return out.reshape((n,)) if flat else out

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(2, 5, high=4))
        yield s(s.real(4, 5), -1, s.int(3, 7, high=5))
        yield s(s.real(4, 5).T, 1, s.int(2, 3, high=4))
        yield s(s.real(), 0, whole(s, 0))
        yield s(s.real(4, 5), 0, s.int(0, 5, high=4))


def _scattered(xp, self, dim, index, src, name="scatter"):
    """Checked flat copy of self, flat places, and the part of src that is used."""
    is_array = hasattr(src, "ndim")
    dim = check_along(name, self, index, dim, src if is_array else None)
    if is_array:
        same_dtype(self, src, f"{name}(): Expected self.dtype to be equal to src.dtype")
    out = self.copy(order="C").reshape(-1)
    if index.size == 0:
        return out, None, None
    shape = self.shape or (1,)
    places = in_range(xp, line(index), shape[dim], dim, RuntimeError, negative=False)
    if is_array:
        part = tuple(slice(0, size) for size in places.shape)
        src = line(src)[part].reshape(-1)
    else:
        src = as_number(self, src)
    return out, flat_places(places, shape, dim, xp), src


def _written(xp, self, dim, index, value):
    """`self` with a number, or elements of an array, at places along a dim."""
    out, places, values = _scattered(xp, self, dim, index, value)
    if places is not None:
        out[places] = values
    return out.reshape(self.shape)


class _Scatter(_PerElement, _Rewritten):
    """Writes elements, or a number, at the places that an index lists along a dim."""

    lower = "index.scatter(False)"
    run = _written


class scatter_src(_Scatter):
    """A copy of `self` with one element of src written for each entry of an index."""

    schema = "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"
    core = True
    linear = ("self", "src")
    grad = {
        "self": "scatter_zero(grad, dim, index)",
        "src": "scatter_src_backward(grad, dim, index, src.shape)",
    }

    def batch(n, batched, self, dim, index, src):
        (self, index, src), dim, scalar = _along_batch(n, batched, dim, self, index, src)
        out = ops.scatter(self, dim, index, src)
        return out.squeeze(1) if scalar else out

    def samples(s):
        yield s(s.real(4, 5), 0, whole(s, [[0, 1, 2, 3, 0]]), s.real(1, 5))
        yield s(s.real(4, 5), -1, whole(s, [[0, 3], [4, 2]]), s.real(3, 4))
        yield s(s.real(), 0, whole(s, 0), s.real())


class scatter_value(_Scatter):
    """A copy of `self` with a number written for each entry of an index."""

    schema = "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor"
    core = True
    grad = {"self": "scatter_zero(grad, dim, index)"}
    push = "scatter_zero(self_t, dim, index)"

    def batch(n, batched, self, dim, index, value):
        (self, index), dim, scalar = _along_batch(n, batched, dim, self, index)
        out = ops.scatter(self, dim, index, value)
        return out.squeeze(1) if scalar else out

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(2, 5, high=4), 1.5)
        yield s(s.real(4, 5), -1, s.int(3, 2, high=5), 2)
        yield s(s.real(), 0, whole(s, 0), 3)


class scatter_add(_PerElement, Accumulating):
    """A copy of `self` with one element of src added for each entry of an index."""

    schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"
    lower = "index.scatter(True)"
    core = True
    linear = ("self", "src")
    grad = {"self": "grad", "src": "scatter_src_backward(grad, dim, index, src.shape)"}

    def run(xp, self, dim, index, src):
        out, places, values = _scattered(xp, self, dim, index, src)
        if places is not None:
            accumulate_at(xp, "add", out, places, values)
        return out.reshape(self.shape)

    def batch(n, batched, self, dim, index, src):
        (self, index, src), dim, scalar = _along_batch(n, batched, dim, self, index, src)
        out = self.scatter_add(dim, index, src)
        return out.squeeze(1) if scalar else out

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(6, 5, high=4), s.real(6, 5))
        yield s(s.real(4, 5), -1, s.int(3, 7, high=5), s.real(4, 8))
        yield s(s.real(), 0, whole(s, 0), s.real())


REDUCTIONS = {"sum": "add", "prod": "multiply", "mean": "add", "amax": "maximum", "amin": "minimum"}


class scatter_reduce_two(_PerElement, Accumulating):
    """A copy of `self` reduced with one element of src for each entry of an index."""

    complex = None
    schema = (
        "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
        "bool include_self=True) -> Tensor"
    )
    core = True
    lower = "entries.scatter_reduce"
    grad = {
        "self, src": "scatter_reduce_backward(grad, self, dim, index, src, reduce, include_self, "
        "result, grad_input_mask)"
    }

    def run(xp, self, dim, index, src, reduce, include_self):
        if reduce not in REDUCTIONS:
            raise RuntimeError(
                f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
            )
        out, places, values = _scattered(xp, self, dim, index, src)
        if places is None:
            return out.reshape(self.shape)
        if not include_self:
            out[places] = _identity(xp, reduce, self.dtype)
        accumulate_at(xp, REDUCTIONS[reduce], out, places, values)
        if reduce == "mean":
            count = (xp.ones if include_self else xp.zeros)(out.shape, self.dtype)
            accumulate_at(xp, "add", count, places, xp.ones_like(values))
            count = xp.where(count == 0, 1, count).astype(self.dtype)
            out = out // count if self.dtype.kind in "iu" else out / count
        return out.reshape(self.shape)

    def batch(n, batched, self, dim, index, src, reduce, include_self):
        (self, index, src), dim, scalar = _along_batch(n, batched, dim, self, index, src)
        out = ops.scatter_reduce(self, dim, index, src, reduce, include_self=include_self)
        return out.squeeze(1) if scalar else out

    def samples(s):
        for reduce in REDUCTIONS:
            yield s(s.real(3, 4), 0, s.int(5, 4, high=3), s.real(5, 4), reduce)
            yield s(s.real(3, 4), 1, s.int(3, 6, high=4), s.real(3, 6), reduce, include_self=False)


def _identity(xp, reduce: str, dtype):
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind in "iu":
        info = xp.iinfo(dtype)
        return info.min if reduce == "amax" else info.max
    if dtype.kind == "b":
        return reduce == "amin"
    return -xp.inf if reduce == "amax" else xp.inf


def _old_reduce(self, dim, index, src, reduce):
    if reduce == "add":
        return self.scatter_add(dim, index, src)
    if reduce == "multiply":
        return ops.scatter_reduce(self, dim, index, src, "prod")
    raise RuntimeError("reduce argument must be either add or multiply.")


class scatter_reduce(Composite):
    """`scatter` that adds or multiplies."""

    schema = (
        "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor"
    )
    bad_index = RuntimeError
    inplace = True
    compose = _old_reduce

    samples = lambda s: [s(s.real(3, 4), 0, s.int(2, 4, high=3), s.real(2, 4), reduce="add")]


class scatter_value_reduce(Composite):
    """`scatter` that adds or multiplies a number."""

    schema = (
        "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)"
        " -> Tensor"
    )
    bad_index = RuntimeError
    inplace = True

    def compose(self, dim, index, value, reduce):
        return _old_reduce(self, dim, index, self.new_full(index.shape, value), reduce)

    samples = lambda s: [s(s.real(3, 4), 0, s.int(2, 4, high=3), 2.0, reduce="multiply")]


class index_reduce(Composite):
    """A copy of `self` reduced with slices of source at the listed indices of one dim."""

    schema = (
        "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
        "bool include_self=True) -> Tensor"
    )
    bad_index = RuntimeError
    inplace = True

    def compose(self, dim, index, source, reduce, include_self):
        if reduce not in ("prod", "mean", "amax", "amin"):
            raise RuntimeError(
                "index_reduce(): Expected reduce to be one of prod, mean, amax or amin "
                f"but got {reduce}."
            )
        dim = wrap_dim(dim, self.ndim)
        view = [1] * max(self.ndim, 1)
        view[dim] = index.numel()
        places = index.reshape(view if self.ndim else ()).expand(source.shape)
        return ops.scatter_reduce(self, dim, places, source, reduce, include_self=include_self)

    def samples(s):
        yield s(s.real(3, 4), 0, s.int(5, high=3), s.real(5, 4), "prod")
        yield s(s.real(3, 4), 1, s.int(5, high=4), s.real(3, 5), "amax", include_self=False)
