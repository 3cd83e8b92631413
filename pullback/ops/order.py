"""Order: sorting and selection by rank, different values, search in sorted tables.

Sorting is stable and counts NaN as the largest value. Longer derivatives are in
`formulas/index.py`. Read `create.py` next.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import numel, wrap_dim
from ..array.xp import comparable, picked
from ..core.op import Composite, Op
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .index import needs_data, size_by_data
from .kinds import Free, Keeping
from .layout import along, in_front, inner
from .pointwise import refuse, title

# --- order ----------------------------------------------------------------------------------------


def sorted_places(xp, array, dim: int, descending: bool):
    """Stable argsort; NaN counts as the largest value."""
    array = comparable(xp, array)
    if not descending:
        return xp.argsort(array, axis=dim, kind="stable")
    size = array.shape[dim]
    back = along(dim, slice(None, None, -1))
    return size - 1 - xp.argsort(array[back], axis=dim, kind="stable")[back]


def _sort(xp, self, dim: int, descending: bool):
    dim = wrap_dim(dim, self.ndim)
    if self.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), xp.int64)
    places = sorted_places(xp, self, dim, descending).astype(xp.int64)
    return picked(xp, self, places, dim), places


def _two_shapes(shape) -> list:
    return [tuple(shape), tuple(shape)]


class sort(Keeping):
    """Elements in order along a dim, and where they were."""

    schema = (
        "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)"
    )
    core = True
    memory_format = "self"
    cost = "reduce"
    diff_outputs = (True, False)
    grad = {"self": "selected_backward(grad, dim, indices, self.shape)"}
    push = {"values": "self_t.gather(dim, indices)"}
    run = _sort

    def shape(self, dim, descending):
        return _two_shapes(self.shape)

    def dtype(self, dim, descending):
        return [self.dtype, dt.int64]

    def batch(n, batched, self, dim, descending):
        if self.ndim == 1:
            return self.clone(), self.new_zeros((n,), dtype=dt.int64)
        return tuple(self.sort(inner(dim, self), descending))

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4), 0, True)
        yield s(s.real())
        yield s(s.real(3, 4).T, -1)
        yield s(s.real(0, 3), 0)


class sort_stable(Keeping):
    """`sort` that keeps the order of equal elements; ours always does."""

    schema = (
        "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)"
        " -> (Tensor values, Tensor indices)"
    )
    writing = "values_stable"
    memory_format = "self"
    cost = "reduce"
    diff_outputs = (True, False)
    grad = {"self": "selected_backward(grad, dim, indices, self.shape)"}
    push = {"values": "self_t.gather(dim, indices)"}

    def run(xp, self, stable, dim, descending):
        return _sort(xp, self, dim, descending)

    def shape(self, stable, dim, descending):
        return _two_shapes(self.shape)

    def dtype(self, stable, dim, descending):
        return [self.dtype, dt.int64]

    def batch(n, batched, self, stable, dim, descending):
        if self.ndim == 1:
            return self.clone(), self.new_zeros((n,), dtype=dt.int64)
        return tuple(self.sort(stable=stable, dim=inner(dim, self), descending=descending))

    def decomp(self, stable, dim, descending):
        return ops.sort(self, dim, descending)

    def samples(s):
        yield s(s.real(3, 4), stable=True)
        yield s(s.real(3, 4), stable=True, dim=0, descending=True)


class argsort(Composite):
    """Where the elements in order along a dim were."""

    schema = "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor"

    def compose(self, dim, descending):
        return self.sort(dim, descending)[1]

    samples = lambda s: [s(s.real(3, 4)), s(s.real(3, 4), 0, True)]


class argsort_stable(Composite):
    """`argsort` that keeps the order of equal elements."""

    schema = (
        "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor"
    )
    out = ("exact",)

    def compose(self, stable, dim, descending):
        return self.sort(dim, descending)[1]

    samples = lambda s: [s(s.real(3, 4), stable=True)]


class msort(Composite):
    """Elements in order along the first dim."""

    schema = "msort(Tensor self) -> Tensor"
    out = ("exact",)

    def compose(self):
        return self.sort(0)[0]

    samples = lambda s: [s(s.real(3, 4))]


def _topk_dim(shape, k: int, dim: int) -> int:
    dim = wrap_dim(dim, len(shape))
    if not 0 <= k <= (shape[dim] if shape else 1):
        raise RuntimeError("selected index k out of range")
    return dim


def _topk_shape(shape, k: int, dim: int) -> tuple[int, ...]:
    dim = _topk_dim(shape, k, dim)
    return (*shape[:dim], k, *shape[dim + 1 :]) if shape else ()


def _few_places(xp, array, k: int, dim: int, largest: bool):
    """Where the k extreme elements are, by choosing them first and ordering only these; None where
    the last of them has equals that were left out: the choice among equals is by their order.
    """
    size = array.shape[dim]
    cut = size - k if largest else k - 1
    chosen = xp.argpartition(array, cut, axis=dim)
    last = picked(xp, array, chosen[along(dim, slice(cut, cut + 1))], dim)
    chosen = xp.sort(chosen[along(dim, slice(size - k, None) if largest else slice(0, k))], axis=dim)
    values = picked(xp, array, chosen, dim)
    if (last != last).any() or (
            xp.count_nonzero(array == last) > xp.count_nonzero(values == last)):
        return None
    return picked(xp, chosen, sorted_places(xp, values, dim, largest), dim)


class topk(Keeping):
    """The k largest or smallest elements along a dim, and where they were."""

    schema = (
        "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True)"
        " -> (Tensor values, Tensor indices)"
    )
    core = True
    cost = "reduce"
    diff_outputs = (True, False)
    grad = {"self": "selected_backward(grad, dim, indices, self.shape)"}
    push = {"values": "self_t.gather(dim, indices)"}

    def run(xp, self, k, dim, largest, sorted):
        dim = _topk_dim(self.shape, k, dim)
        if self.dtype.kind in "cb":
            raise RuntimeError(f"topk does not support {self.dtype} on CPU")
        if self.ndim == 0:
            return (self.copy(), xp.zeros((), xp.int64))
        size = self.shape[dim]
        places = None
        if 0 < k < size // 8 and self.dtype.kind in "fiu":
            places = _few_places(xp, self, k, dim, largest)
        if places is None:
            places = sorted_places(xp, self, dim, largest)[along(dim, slice(0, k))]
        return picked(xp, self, places, dim), places.astype(xp.int64)

    def shape(self, k, dim, largest, sorted):
        return _two_shapes(_topk_shape(tuple(self.shape), k, dim))

    def dtype(self, k, dim, largest, sorted):
        return [self.dtype, dt.int64]

    def batch(n, batched, self, k, dim, largest, sorted):
        _topk_dim(self.shape[1:], k, dim)
        if self.ndim == 1:
            return self.clone(), self.new_zeros((n,), dtype=dt.int64)
        return tuple(self.topk(k, inner(dim, self), largest, sorted))

    def samples(s):
        yield s(s.real(3, 4), 2)
        yield s(s.real(40, 2), 3, 0, False)
        yield s(s.real(), 1)
        yield s(s.real(3, 4).T, 3, -1)


class kthvalue(Keeping):
    """The k-th smallest element along a dim, and where it was."""

    schema = (
        "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False)"
        " -> (Tensor values, Tensor indices)"
    )
    kept = "order"
    out = ("exact", "apart")
    cost = "reduce"
    diff_outputs = (True, False)
    grad = {"self": "selected_backward(grad, dim, indices, self.shape, keepdim)"}
    push = {"values": "selected_tangent(self_t, dim, indices, keepdim)"}

    def run(xp, self, k, dim, keepdim):
        dim = wrap_dim(dim, self.ndim)
        size = self.shape[dim] if self.ndim else 1
        if not 1 <= k <= size:
            raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
        if self.ndim == 0:
            return self.copy(), xp.zeros((), xp.int64)
        places = sorted_places(xp, self, dim, False)[along(dim, slice(k - 1, k))]
        values = picked(xp, self, places, dim)
        if not keepdim:
            values, places = values.squeeze(dim), places.squeeze(dim)
        return values.copy(), places.astype(xp.int64)

    def shape(self, k, dim, keepdim):
        dim = wrap_dim(dim, self.ndim)
        kept = (1,) if keepdim else ()
        out = (*self.shape[:dim], *kept, *self.shape[dim + 1 :]) if self.ndim else ()
        return _two_shapes(out)

    def dtype(self, k, dim, keepdim):
        return [self.dtype, dt.int64]

    def batch(n, batched, self, k, dim, keepdim):
        if self.ndim == 1:
            return self.clone(), self.new_zeros((n,), dtype=dt.int64)
        return tuple(self.kthvalue(k, inner(dim, self), keepdim))

    samples = lambda s: [s(s.real(3, 4), 2), s(s.real(3, 4), 3, 0, True), s(s.real(), 1)]


# --- different values -----------------------------------------------------------------------------


def _rows_first(xp, array, dim: int):
    """Slices along a dim as rows of a matrix."""
    moved = xp.moveaxis(array, dim, 0)
    return moved.reshape((moved.shape[0], numel(moved.shape[1:])))


def _unique(xp, array, inverse: bool, counts: bool):
    values, back, number = xp.unique(
        comparable(xp, array), return_inverse=True, return_counts=True, equal_nan=False
    )
    values = values.astype(array.dtype, copy=False)
    none = xp.empty((0,), xp.int64)
    back = back.reshape(array.shape).astype(xp.int64)
    return values, back if inverse else none, number.astype(xp.int64) if counts else none


def _unique_rows(self, dim: int) -> list:
    """The shapes of different slices along a dim, of the places of all, and of their counts."""
    dim = wrap_dim(dim, self.ndim)
    count = size_by_data("unique")
    return [(*self.shape[:dim], count, *self.shape[dim + 1 :]), (self.shape[dim],), (count,)]


class _Unique(Op):
    promote = "keep"
    diff_outputs = (True, False, False)
    method = False

    def dtype(self, *rest):
        return [self.dtype, dt.int64, dt.int64]


class unique2(_Unique):
    """The different values in order; for each element its place among them; how often each is."""

    schema = (
        "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, "
        "bool return_counts=False) -> (Tensor, Tensor, Tensor)"
    )
    kept = "values"
    tags = ("dynamic_output_shape",)

    def run(xp, self, sorted, return_inverse, return_counts):
        return _unique(xp, self, return_inverse, return_counts)

    def shape(self, sorted, return_inverse, return_counts):
        count = (size_by_data("unique", shape=self.shape),)
        return [count, self.shape if return_inverse else (0,), count if return_counts else (0,)]

    def batch(n, batched, self, sorted, return_inverse, return_counts):
        raise needs_data("unique under vmap")

    samples = lambda s: [s(s.int(3, 4), True, True, True)]


class unique_pair(Keeping):
    """The different values in order, and for each element its place among them."""

    schema = "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)"
    kept = "values"
    tags = ("dynamic_output_shape",)
    method = False
    diff_outputs = (True, False)

    def run(xp, self, sorted, return_inverse):
        return _unique(xp, self, return_inverse, False)[:2]

    def shape(self, sorted, return_inverse):
        return [(size_by_data("unique", shape=self.shape),), self.shape if return_inverse else (0,)]

    def dtype(self, *rest):
        return [self.dtype, dt.int64]

    samples = lambda s: [s(s.int(3, 4))]


class unique_dim(_Unique):
    """The different slices along a dim in order."""

    schema = (
        "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, "
        "bool return_counts=False) -> (Tensor, Tensor, Tensor)"
    )
    kept = "values"
    tags = ("dynamic_output_shape",)
    function = False

    def run(xp, self, dim, sorted, return_inverse, return_counts):
        dim = wrap_dim(dim, self.ndim, scalar_ok=False)
        rows = comparable(xp, _rows_first(xp, self, dim))
        order = xp.lexsort(rows.T[::-1]) if rows.shape[1] else xp.arange(rows.shape[0])
        ordered = rows[order]
        new = xp.ones(rows.shape[0], bool)
        new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        number = xp.cumsum(new) - 1
        back = xp.empty(rows.shape[0], xp.int64)
        back[order] = number
        values = xp.take(self, order[new], axis=dim)
        return values, back, xp.bincount(number).astype(xp.int64)

    def shape(self, dim, sorted, return_inverse, return_counts):
        return _unique_rows(self, dim)

    samples = lambda s: [s(s.int(5, 2, high=2), 0)]


class unique_dim_consecutive(_Unique):
    """Slices along a dim without immediate repetitions."""

    schema = (
        "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, "
        "bool return_counts=False) -> (Tensor, Tensor, Tensor)"
    )
    kept = "values"
    tags = ("dynamic_output_shape",)
    function = False

    def run(xp, self, dim, return_inverse, return_counts):
        dim = wrap_dim(dim, self.ndim, scalar_ok=False)
        rows = _rows_first(xp, self, dim)
        new = xp.ones(rows.shape[0], bool)
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        number = (xp.cumsum(new) - 1).astype(xp.int64)
        values = self[along(dim, xp.nonzero(new)[0])]
        return values, number, xp.bincount(number).astype(xp.int64)

    def shape(self, dim, return_inverse, return_counts):
        return _unique_rows(self, dim)

    samples = lambda s: [s(s.int(5, 2, high=2), 0)]


def _chosen(results, inverse: bool, counts: bool):
    """What Python's unique() returns: the values alone, or a tuple of what was asked for."""
    wanted = (True, inverse, counts)
    out = tuple(r for r, w in zip(results, wanted, strict=True) if w)
    return out if len(out) > 1 else out[0]


class unique(Composite):
    """The different values, and what else was asked for."""

    schema = (
        "unique(Tensor self, bool sorted=True, bool return_inverse=False, "
        "bool return_counts=False, int? dim=None) -> Tensor[]"
    )

    def compose(self, sorted, return_inverse, return_counts, dim):
        if dim is None:
            found = ops._unique2(self, sorted, return_inverse, return_counts)
        else:
            found = ops.unique_dim(self, dim, sorted, True, True)
        return _chosen(found, return_inverse, return_counts)

    samples = lambda s: [s(s.int(3, 4)), s(s.int(5, 2, high=2), dim=0)]


class unique_consecutive(Composite):
    """Values without immediate repetitions, and what else was asked for."""

    schema = (
        "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
        "int? dim=None) -> (Tensor, Tensor, Tensor)"
    )
    tags = ("dynamic_output_shape",)
    method = False  # the method and the function return only what was asked for

    def compose(self, return_inverse, return_counts, dim):
        source = self.reshape((-1,)) if dim is None else self
        values, inverse, counts = ops.unique_dim_consecutive(source, dim or 0, True, True)
        inverse = inverse.reshape(self.shape) if dim is None else inverse
        return (values, inverse if return_inverse else inverse.new_empty((0,)),
                counts if return_counts else counts.new_empty((0,)))

    samples = lambda s: [s(s.int(9, high=2))]


# --- search ---------------------------------------------------------------------------------------


def _side(right: bool, side) -> str:
    if side is None:
        return "right" if right else "left"
    if side not in ("left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    return side


def _check_sorter(table, sorter) -> None:
    """An order of the last dim of a table."""
    if sorter.shape != table.shape:
        raise ShapeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
            f"tensor {list(table.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if dt.name_of(sorter.dtype) != "int64":
        raise DTypeError(
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
            f"{title(sorter.dtype)}"
        )
    if sorter.size and (sorter.min() < 0 or sorter.max() >= table.shape[-1]):
        raise ShapeError("torch.searchsorted(): sorter index out of range")


def _search(xp, table, values, side: str, int32: bool, sorter=None):
    kind = xp.int32 if int32 else xp.int64
    refuse("searchsorted_out_cpu", table, "bc")
    if sorter is not None:
        _check_sorter(table, sorter)
        table = xp.take_along_axis(table, sorter, axis=-1)
    table, values = comparable(xp, table), comparable(xp, values)
    if table.ndim == 1:
        return xp.searchsorted(table, values, side=side).astype(kind)
    if values.ndim != table.ndim or values.shape[:-1] != table.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(table.shape)} and input value tensor {list(values.shape)}"
        )
    rows = table.reshape((numel(table.shape[:-1]), table.shape[-1]))
    points = values.reshape((rows.shape[0], values.shape[-1]))
    out = xp.empty(points.shape, kind)
    for i in range(rows.shape[0]):
        out[i] = xp.searchsorted(rows[i], points[i], side=side)
    return out.reshape(values.shape)


class searchsorted_Tensor(Op):
    """Where values would be inserted into a sorted last dim."""

    schema = (
        "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, "
        "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor"
    )
    kept = "order"
    method = False
    nondiff = ("sorted_sequence", "self", "sorter")
    cost = "reduce"

    def dtype(sorted_sequence, self, out_int32, right, side, sorter):
        return dt.int32 if out_int32 else dt.int64

    def run(xp, sorted_sequence, self, out_int32, right, side, sorter):
        return _search(xp, sorted_sequence, self, _side(right, side), out_int32, sorter)

    def shape(sorted_sequence, self, out_int32, right, side, sorter):
        return tuple(self.shape)

    def batch(n, batched, sorted_sequence, self, out_int32, right, side, sorter):
        options = {"out_int32": out_int32, "right": right, "side": side}
        if not batched[0] and not batched[5] and sorted_sequence.ndim == 1:
            return ops.searchsorted(sorted_sequence, self, sorter=sorter, **options)
        shape = self.shape if batched[1] else (n, *self.shape)
        table = in_front(sorted_sequence, batched[0], n)
        points = in_front(self, batched[1], n)
        if sorter is not None:
            sorter = in_front(sorter, batched[5], n)
        if table.ndim == 2:
            points = points.reshape((n, numel(points.shape[1:])))
        out = ops.searchsorted(table, points, sorter=sorter, **options)
        return out.reshape(shape)

    def samples(s):
        yield s(s.values([1.0, 3.0, 5.0]), s.real(2, 3, low=0, high=6))
        yield s(s.values([[1.0, 3.0, 5.0], [0.0, 1.0, 2.0]]), s.real(2, 4), right=True)


class searchsorted_Scalar(Free):
    """Where a number would be inserted into a sorted vector."""

    schema = (
        "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, "
        "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor"
    )

    def compose(sorted_sequence, self, out_int32, right, side, sorter):
        point = ops.full((), self, dtype=sorted_sequence.dtype, device=sorted_sequence.device)
        return ops.searchsorted(
            sorted_sequence, point, out_int32=out_int32, right=right, side=side, sorter=sorter
        )

    samples = lambda s: [s(s.values([1.0, 3.0, 5.0]), 3)]


class bucketize_Tensor(Free):
    """The interval between sorted boundaries that each element lies in."""

    schema = (
        "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, "
        "bool right=False) -> Tensor"
    )

    def compose(self, boundaries, out_int32, right):
        if boundaries.ndim != 1:
            raise RuntimeError(
                f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})"
            )
        return ops.searchsorted(boundaries, self, out_int32=out_int32, right=right)

    samples = lambda s: [s(s.real(3, 4), s.values([-1.0, 0.0, 1.0]))]


class bucketize_Scalar(Free):
    """The interval between sorted boundaries that a number lies in."""

    schema = (
        "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, "
        "bool right=False) -> Tensor"
    )

    def compose(self, boundaries, out_int32, right):
        return ops.searchsorted(boundaries, self, out_int32=out_int32, right=right)

    samples = lambda s: [s(0.5, s.values([-1.0, 0.0, 1.0]))]


def _check_isin(tensor, number=0) -> None:
    if type(number) is complex:
        raise DTypeError("Unsupported input type encountered for isin(): ComplexDouble")
    if tensor.dtype.kind in "bc":
        raise DTypeError(
            f"Unsupported input type encountered for isin(): {title(tensor.dtype)}"
        )


class isin_Tensor_Tensor(Op):
    """Whether each element occurs among others."""

    schema = (
        "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, "
        "bool invert=False) -> Tensor"
    )
    method = False
    nondiff = ("elements", "test_elements")
    cost = "reduce"
    dtype = dt.bool_

    def run(xp, elements, test_elements, assume_unique, invert):
        _check_isin(elements)
        _check_isin(test_elements)
        return xp.isin(elements, test_elements, invert=invert)

    def decomp(elements, test_elements, assume_unique, invert):
        dtype = dt.result_type((elements, test_elements))
        sought, tests = elements.to(dtype), test_elements.to(dtype).reshape(-1)
        count = tests.shape[0]
        if count < 10 * elements.numel() ** 0.145:
            found = ops.any(sought.unsqueeze(-1) == tests, -1)
        else:  # a comparison of all pairs would be too large
            ordered = ops.sort(tests)[0]
            place = ops.searchsorted(ordered, sought).clamp(max=count - 1)
            found = ops.take(ordered, place) == sought
        return ops.logical_not(found) if invert else found

    def shape(elements, test_elements, assume_unique, invert):
        return tuple(elements.shape)

    def batch(n, batched, elements, test_elements, assume_unique, invert):
        if not batched[1]:
            return ops.isin(elements, test_elements, invert=invert)
        elements = in_front(elements, batched[0], n)
        tests = test_elements.reshape((n, *(1,) * (elements.ndim - 1), -1))
        found = ops.any(elements.unsqueeze(-1) == tests, -1)
        return ops.logical_not(found) if invert else found

    def samples(s):
        yield s(s.int(3, 4), s.int(5))
        yield s(s.int(3, 4), s.int(40, high=100))
        yield s(s.int(3), s.int(0))


OPTIONS = "*, bool assume_unique=False, bool invert=False"


class isin_Tensor_Scalar(Free):
    """Whether each element equals a number."""

    schema = f"isin.Tensor_Scalar(Tensor elements, Scalar test_element, {OPTIONS}) -> Tensor"

    def compose(elements, test_element, assume_unique, invert):
        _check_isin(elements, test_element)
        return elements != test_element if invert else elements == test_element

    samples = lambda s: [s(s.int(3, 4), 3)]


class isin_Scalar_Tensor(Free):
    """Whether a number occurs among others."""

    schema = f"isin.Scalar_Tensor(Scalar element, Tensor test_elements, {OPTIONS}) -> Tensor"

    def compose(element, test_elements, assume_unique, invert):
        _check_isin(test_elements, element)
        found = ops.any(test_elements == element)
        return found.logical_not() if invert else found

    samples = lambda s: [s(3, s.int(3, 4))]


class bincount(Keeping):
    """How often each small integer occurs, optionally weighted."""

    schema = "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor"
    kept = "values"
    tags = ("dynamic_output_shape",)
    nondiff = ("self", "weights")
    cost = "reduce"

    def run(xp, self, weights, minlength):
        refuse("bincount_cpu", self, "bfcV")
        if self.ndim != 1 or (self.size and self.min() < 0):
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        if weights is not None and weights.shape != self.shape:
            raise RuntimeError("weights should be 1-d and have the same length as input")
        out = xp.bincount(self, weights, minlength)
        if weights is not None and weights.dtype == xp.float32:
            return out.astype(xp.float32)
        return out

    def shape(self, weights, minlength):
        return (size_by_data("bincount"),)

    def dtype(self, weights, minlength):
        if weights is None:
            return dt.int64
        return dt.float32 if weights.dtype is dt.float32 else dt.float64

    samples = lambda s: [s(s.int(6)), s(s.int(6), s.real(6), 12)]
