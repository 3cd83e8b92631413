"""What operators do to masked tensors.

Three kinds of operators need no rule of their own: those of single elements act on the data, and
masks must agree; views, and what else moves elements, act on data and mask alike; reductions take
the functions of `pullback.masked`, and their result is there where anything was.  Products count
what is left out as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import errors, return_types
from ... import masked as functions
from ...array import dtype as dt
from ...array.layout import STRIDED
from ...core.handle import Tensor, tensors_in
from ...core.stack import bind
from ...ops.kinds import Moving
from ...parts.rules import rule
from ...table.packets import ops
from .core import MaskedTensor, behind

REDUCTIONS: dict[str, Callable] = {}  # base name -> function of data, mask and the arguments


def answer(ov, flat: tuple):
    """What an operator gives that has no rule."""
    reduce = REDUCTIONS.get(ov.op.base_name)
    if reduce is not None:
        return _reduced(reduce, dict(zip(ov.schema.names, flat)))
    if ov.is_view or issubclass(ov.op, Moving):
        return moved(ov, flat)
    if ov.kind == "pointwise" or ov.is_random:
        return on_elements(ov, flat)
    if ov.kind == "creation":  # like another tensor, or of its dtype
        x = flat[0]
        out = bind(ov, (x.data_part, *flat[1:]))
        return x.with_carrier(out) if ov.op.base_name.endswith("_like") else out
    return NotImplemented


def _replaced(value: Any, function: Callable) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_replaced(v, function) for v in value])
    return function(value) if isinstance(value, Tensor) else value


# elements


def on_elements(ov, flat: tuple):
    """An operator of single elements: on the data, where the masks agree."""
    mask = common_mask([t for t in tensors_in(flat) if isinstance(t, MaskedTensor)])
    first = next(t for t in tensors_in(flat) if isinstance(t, MaskedTensor))

    def data(t: Tensor) -> Tensor:
        return shown_behind(t.data_part if isinstance(t, MaskedTensor) else dense(t), mask)

    out = bind(ov, _replaced(flat, data))
    outs = out if isinstance(out, (list, tuple)) else [out]
    made = []
    for t in outs:
        wide = mask if t.shape == mask.shape else mask.expand(t.shape)
        made.append(MaskedTensor.make(t, wide, first.shown_as))
    return type(out)(made) if isinstance(out, (list, tuple)) else made[0]


@rule(MaskedTensor, "_to_copy")
def to_copy(t: MaskedTensor, dtype: Any = None, layout: Any = None, device: Any = None,
            pin_memory: Any = None, non_blocking: bool = False, memory_format: Any = None):
    """A copy: the mask is where the data is."""
    out = ops._to_copy(shown_behind(t.data_part, t.mask_part), dtype=dtype, layout=layout,
                       device=device, pin_memory=pin_memory, non_blocking=non_blocking,
                       memory_format=memory_format)
    return MaskedTensor.make(out, t.mask_part.to(out.device), t.shown_as)


def dense(t: Tensor) -> Tensor:
    """A plain operand, which may be sparse."""
    return t if t.layout is STRIDED else t.to_dense()


def shown_behind(t: Tensor, mask: Tensor) -> Tensor:
    """An operand whose gradient is zero where the mask is False; it may broadcast to the mask."""
    if not t.requires_grad or t.ndim > mask.ndim:
        return t
    return behind(t.expand(mask.shape) if t.shape != mask.shape else t, mask)


def common_mask(given: list) -> Tensor:
    """The mask of an operator's operands, which must be the same for all."""
    mask = given[0].mask_part
    for t in given[1:]:
        other = t.mask_part
        if other is mask or other._payload is mask._payload:
            continue
        wide = [mask, other]
        if other.shape != mask.shape:
            wide = ops.broadcast_tensors(wide)
        check_equal(*wide)
        mask = mask if wide[0].shape == mask.shape else wide[0]
    return mask


def check_equal(a: Tensor, b: Tensor) -> None:
    """Refuse operands of which different elements are there."""
    if not _equal(a, b):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on "
            f"Github.\n  masked tensors of an operator ({errors.user_line(4)}) have different "
            "masks\n  Fix: as_masked_tensor(x.get_data(), mask) with one mask for both")


def _equal(a: Tensor, b: Tensor) -> bool:
    from ...errors import DataDependentError, TransformError

    try:
        return bool((a == b).all())
    except (DataDependentError, TransformError):
        raise ValueError(
            "Input masks must match, and inside of a transform they must be one tensor\n"
            "  Fix: give both operands the same mask") from None


@rule(MaskedTensor, "where.self", "where.ScalarOther", "where.ScalarSelf")
def where(condition: Any, a: Any, b: Any):
    """Elements of both, with their masks; those of plain tensors are there."""
    if isinstance(condition, MaskedTensor):
        condition = condition.to_tensor(False)
    shown = next((t.shown_as for t in (a, b) if isinstance(t, MaskedTensor)), None)
    if shown is None:
        return ops.where(condition, a, b)
    data = [t.seen() if isinstance(t, MaskedTensor) else dense(t) if isinstance(t, Tensor) else t
            for t in (a, b)]
    masks = [t.mask_part if isinstance(t, MaskedTensor) else True for t in (a, b)]
    return MaskedTensor.make(ops.where(condition, *data), ops.where(condition, *masks), shown)


# places


def moved(ov, flat: tuple):
    """Elements that go elsewhere, and take their masks with them."""
    shown = next(t.shown_as for t in tensors_in(flat) if isinstance(t, MaskedTensor))
    several = any(isinstance(v, (list, tuple)) and any(
        isinstance(t, MaskedTensor) for t in v) for v in flat)  # those are joined

    def mask(t: Tensor) -> Tensor:
        if isinstance(t, MaskedTensor):
            return t.mask_part
        return ops.ones_like(t, dtype=dt.bool_) if several else t

    data = bind(ov, _replaced(flat, lambda t: t.data_part if isinstance(t, MaskedTensor) else t))
    masks = bind(ov, _replaced(flat, mask))
    if isinstance(data, (list, tuple)):
        return type(data)([MaskedTensor.make(d, m, shown) for d, m in zip(data, masks)])
    return MaskedTensor.make(data, masks, shown)


@rule(MaskedTensor, "constant_pad_nd")
def constant_pad_nd(x: MaskedTensor, pad: Any, value: Any = 0):
    """What is padded is there."""
    return MaskedTensor.make(ops.constant_pad_nd(x.data_part, pad, value),
                             ops.constant_pad_nd(x.mask_part, pad, True), x.shown_as)


@rule(MaskedTensor, "copy")
def copy(x: Any, source: Any, non_blocking: bool = False):
    """All numbers of another tensor; the mask stays, and that of a masked one has to be it."""
    if not isinstance(x, MaskedTensor):
        raise errors.LayoutError(errors.text(
            f"copy_: a masked tensor cannot be copied into a plain one ({errors.user_line(3)})",
            cure="x.copy_(source.to_tensor(fill))"))
    if isinstance(source, MaskedTensor):
        check_equal(x.mask_part, source.mask_part.expand(x.shape))
        source = source.data_part
    return x.with_carrier(ops.copy(x.data_part, source, non_blocking))


@rule(MaskedTensor, "fill.Tensor", "fill.Scalar")
def fill(x: MaskedTensor, value: Any):
    """One number for all elements that are there."""
    return x.with_carrier(ops.fill(x.data_part, value))


@rule(MaskedTensor, "index_put")
def index_put(x: MaskedTensor, indices: Any, values: Any, accumulate: bool = False):
    """Numbers at places; the mask stays, and that of masked numbers has to be it there."""
    if not isinstance(x, MaskedTensor):
        return NotImplemented
    if isinstance(values, MaskedTensor):
        check_equal(*ops.broadcast_tensors([ops.index(x.mask_part, indices), values.mask_part]))
        values = values.data_part
    return x.with_carrier(ops.index_put(x.data_part, indices, values, accumulate))


# reductions


def _over(mask: Tensor, given: dict, several: bool = True) -> Tensor:
    """Where anything is left of what was reduced."""
    dim = given.get("dim")
    if dim is None or several and not isinstance(dim, int) and not len(dim):
        return mask.any() if not given.get("keepdim") else mask.any(
            list(range(mask.ndim)), True)
    return mask.any(dim, bool(given.get("keepdim")))


def _reduced(function: Callable, given: dict):
    x = given.pop("self")
    data, mask = x.data_part, x.mask_part
    out = function(data, mask, **given)
    outs = out if isinstance(out, tuple) else (out,)
    there = _over(mask, given)
    made = [MaskedTensor.make(t, there, "strided") for t in outs]
    return type(out)(*made) if isinstance(out, tuple) else made[0]


def _by(function: Callable) -> Callable:
    """A function of `pullback.masked` with the arguments of an operator."""
    def run(data: Tensor, mask: Tensor, dim: Any = None, keepdim: Any = False, **more: Any):
        return function(data, dim, keepdim=bool(keepdim), mask=mask, **more)

    return run


def _spread(function: Callable) -> Callable:
    def run(data: Tensor, mask: Tensor, dim: Any = None, correction: Any = None,
            keepdim: Any = False):
        # a variance of nothing has a slope of NaN: numbers that are left out have none
        return function(data, dim, correction=1.0 if correction is None else float(correction),
                        keepdim=bool(keepdim), mask=mask)

    return run


def _truths(neutral: bool) -> Callable:
    def run(data: Tensor, mask: Tensor, dim: Any = None, keepdim: Any = False):
        left = ops.where(mask, data != 0, neutral)
        function = left.all if neutral else left.any
        return function() if dim is None else function(dim, bool(keepdim))

    return run


def _norm(data: Tensor, mask: Tensor, ord: Any = 2, dim: Any = None, keepdim: Any = False,
          dtype: Any = None):
    return functions.norm(data, ord, dim, keepdim=bool(keepdim), dtype=dtype, mask=mask)


def _count(data: Tensor, mask: Tensor, dim: Any = None):
    return ops.where(mask, data != 0, False).sum(dim)


def _extreme(name: str) -> Callable:
    """`max` and `min`, and with a dim where it is."""
    filled = functions._lowest if name == "max" else functions._highest

    def run(data: Tensor, mask: Tensor, dim: Any = None, keepdim: Any = False):
        values = functions._filled(data, mask, filled)
        function = getattr(ops, name)
        return function(values) if dim is None else function(values, dim, bool(keepdim))

    return run


def _median(data: Tensor, mask: Tensor, dim: Any = None, keepdim: Any = False):
    """The lower of two; NaN among what is there gives NaN."""
    wide = data if data.dtype.is_floating_point else data.to(dt.float64)
    values = ops.where(mask, wide, float("nan"))
    broken = ops.where(mask, wide.isnan(), False)
    if dim is None:
        out = ops.where(broken.any(), float("nan"), values.nanmedian())
        return _as_data(out, data)
    found = values.nanmedian(dim, bool(keepdim))
    out = ops.where(broken.any(dim, bool(keepdim)), float("nan"), found[0])
    return return_types.median(_as_data(out, data), found[1])


def _nanmedian(data: Tensor, mask: Tensor, dim: Any = None, keepdim: Any = False):
    """The lower of two, of what is there and a number."""
    values = ops.where(mask, data, float("nan"))
    return values.nanmedian() if dim is None else values.nanmedian(dim, bool(keepdim))


def _nansum(data: Tensor, mask: Tensor, dim: Any = None, keepdim: Any = False, dtype: Any = None):
    return ops.where(mask, data, 0).nansum(dim, bool(keepdim), dtype=dtype)


def _as_data(t: Tensor, data: Tensor) -> Tensor:
    return t if t.dtype is data.dtype else t.nan_to_num().to(data.dtype)


def _reduces(name: str, function: Callable) -> None:
    """Say what a reduction does to data and mask."""
    REDUCTIONS[name] = function


_reduces("sum", _by(functions.sum))
_reduces("mean", _by(functions.mean))
_reduces("prod", _by(functions.prod))
_reduces("amin", _by(functions.amin))
_reduces("amax", _by(functions.amax))
_reduces("argmin", _by(functions.argmin))
_reduces("argmax", _by(functions.argmax))
_reduces("var", _spread(functions.var))
_reduces("std", _spread(functions.std))
_reduces("all", _truths(True))
_reduces("any", _truths(False))
_reduces("linalg_vector_norm", _norm)
_reduces("logsumexp", _by(functions.logsumexp))
_reduces("median", _median)
_reduces("nanmedian", _nanmedian)
_reduces("nansum", _nansum)
_reduces("count_nonzero", _count)
_reduces("max", _extreme("max"))
_reduces("min", _extreme("min"))


# along a dim, and products


def _along(name: str, function: Callable) -> None:
    @rule(MaskedTensor, name)
    def run(x: MaskedTensor, dim: int, last: Any = None):
        more = {} if name.startswith("_") else {"dtype": last}
        return x.with_carrier(function(x.data_part, dim, mask=x.mask_part, **more))


_along("_softmax", functions.softmax)
_along("_log_softmax", functions.log_softmax)
_along("cumsum", functions.cumsum)
_along("cumprod", functions.cumprod)


def _product(function: Callable, *pair: Any) -> MaskedTensor:
    """A product: what is left out counts as zero, and the result is there where anything was
    multiplied."""
    data = [t.to_tensor(0) if isinstance(t, MaskedTensor) else dense(t) for t in pair]
    masks = [t.mask_part.float() if isinstance(t, MaskedTensor) else ops.ones_like(
        d, dtype=dt.float32) for t, d in zip(pair, data)]
    there = function(*[m.detach() for m in masks]) > 0
    return MaskedTensor.make(function(*data), there, "strided")


@rule(MaskedTensor, "mm")
def mm(a: Any, b: Any):
    return _product(ops.mm, a, b)


@rule(MaskedTensor, "bmm")
def bmm(a: Any, b: Any):
    return _product(ops.bmm, a, b)


@rule(MaskedTensor, "mv")
def mv(a: Any, x: Any):
    return _product(ops.mv, a, x)


@rule(MaskedTensor, "dot")
def dot(x: Any, y: Any):
    return _product(ops.dot, x, y)


@rule(MaskedTensor, "addmm", "baddbmm")
def addmm(c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1):
    """A product, and what is added to it: there where both are."""
    product = ops.bmm(a, b) if a.ndim == 3 else ops.mm(a, b)
    if not isinstance(product, MaskedTensor):  # only what is added is masked
        return c * beta + product * alpha
    there, added = product.mask_part, c
    if isinstance(c, MaskedTensor):
        there = there & c.mask_part
        added = c.to_tensor(0)
    data = behind(product.data_part * alpha + added * beta, there)
    return MaskedTensor.make(data, there, "strided")
