"""Level 0: promotion, then one kernel call on raw arrays (or one shape rule on fake ones).

Promotion kinds (`Op.promote`): `default` standard promotion; `float` the same, integers then become the
default float; `bool` promote, result bool; `real` promote, complex results become real; `same` result has
the first tensor's dtype; `keep` the kernel decides.  float16 and bfloat16 compute in float32.
"""

from __future__ import annotations

import math

import numpy as np

from .. import errors
from . import device as dev
from . import dtype as dt
from .fake import Fake
from .handle import Box, Tensor, make
from .state import state

_HALF = {dt.float16.np: dt.float32.np, dt.bfloat16.np: dt.float32.np}
_ndarray = np.ndarray


def raw_of(value):
    """Arrays out of handles, lists included."""
    if isinstance(value, Tensor):
        return value._data
    if type(value) is list or type(value) is tuple:
        return [raw_of(v) for v in value]
    return value


def wrap(result):
    """Handles around a kernel's result."""
    if type(result) is tuple or type(result) is list:
        return type(result)(wrap(r) for r in result)
    if result is None or isinstance(result, (bool, int, float, complex)) and not isinstance(result, np.generic):
        return result
    return make(result)


def evaluate(ov, flat: tuple):
    """Run an operator whose tensors all hold arrays (or fakes)."""
    out = run_raw(ov, tuple(raw_of(v) for v in flat))
    cls = ov.result_class
    if cls is not None:
        return cls(*wrap(tuple(out)))
    return wrap(out)


def _arrays(values):
    for v in values:
        if type(v) is _ndarray or isinstance(v, Box) or (hasattr(v, "__array_namespace__")
                                                         and not isinstance(v, np.generic)):
            yield v
        elif type(v) is list:
            yield from _arrays(v)


def space_of(ov, raw: tuple):
    """The array namespace of the arguments, None if any is fake; refuses mixed devices."""
    space, name, fake = None, None, False
    for v in _arrays(raw):
        if type(v) is _ndarray:
            found = ("cpu", np)
        elif type(v) is Fake:
            fake = True
            continue
        else:
            found = dev.lookup(v)
            if found is None:
                raise escaped(ov, v)
        if name is not None and found[0] != name and v.ndim:
            raise errors.DeviceError(errors.text(
                f"{ov.op.base_name} got tensors on different devices, {name} and {found[0]} "
                f"({errors.user_line(2)})", cure="move one of them with .to(device)"))
        if space is None or v.ndim:
            name, space = found
    if fake:
        return None
    if space is None and state.fake:
        return None
    if space is None:
        for a, v in zip(ov.schema.args, raw):
            if a.base == "Device" and v is not None:
                return None if v.type == "meta" else dev.namespace(v)
        space = np
    return space


def escaped(ov, box) -> Exception:
    """The error for a box that outlived its transform."""
    interp = getattr(box, "interp", None)
    return errors.EscapedTensor(errors.text(
        f"a tensor escaped from {getattr(interp, 'title', 'a transform')} and was used by "
        f"{ov.op.base_name} after that transform had finished ({errors.user_line(2)})",
        cure="return the value from the transformed function instead of keeping it in an outer variable"))


def run_raw(ov, raw: tuple):
    """Promotion and kernel on raw arguments."""
    xp = space_of(ov, raw)
    if xp is None:
        return run_fake(ov, raw)
    rule = ov.op.promote
    if rule == "keep" or rule == "same" and ov.is_view:
        return _arrays_only(xp, ov.kernel(xp, *raw))
    if rule == "same":
        return _run_same(ov, xp, raw)
    if ov.check is not None:
        ov.check(*raw)
    common, target = promoted(ov, raw)
    if ov.dtype_rule is not None:
        target = ov.dtype_rule(*(_spec(v) for v in raw))
    compute = _HALF.get(common.np, common.np)
    values = list(raw)
    for i in ov.promoted:
        values[i] = _cast(xp, raw[i], compute)
    out = ov.kernel(xp, *values)
    if isinstance(target, (list, tuple)):
        return tuple(_finish(xp, o, t.np) for o, t in zip(out, target))
    return _finish(xp, out, target.np)


def promoted(ov, raw: tuple) -> tuple[dt.DType, dt.DType]:
    """(computation dtype, result dtype) of an operator with promotion."""
    values = [raw[i] for i in ov.promoted]
    common = dt.result_type([v for item in values for v in (item if type(item) is list else (item,))])
    rule = ov.op.promote
    if rule == "float" and common.category < 2:
        common = dt.default()
    if rule == "bool":
        return common, dt.bool_
    if rule == "real":
        return common, common.to_real()
    return common, common


def _cast(xp, value, dtype):
    if value is None:
        return None
    if type(value) is list:
        return [_cast(xp, v, dtype) for v in value]
    if hasattr(value, "astype"):
        return value if value.dtype == dtype else value.astype(dtype)
    return xp.asarray(value).astype(dtype)


def _run_same(ov, xp, raw: tuple):
    """No promotion; half precision still computes in float32."""
    first = next(_arrays(raw), None)
    values = raw
    if first is not None and first.dtype in _HALF:
        half = first.dtype
        values = tuple(_widen(v, half) for v in raw)
        out = _arrays_only(xp, ov.kernel(xp, *values))
        if ov.dtype_rule is not None:
            return _as_ruled(out, ov.dtype_rule(*(_spec(v) for v in raw)))
        return _narrow(out, half)
    if ov.dtype_rule is None and first is not None and len(ov.schema.returns) == 1:
        return _finish(xp, ov.kernel(xp, *values), first.dtype)
    return _arrays_only(xp, ov.kernel(xp, *values))


def _widen(value, half):
    if type(value) is list:
        return [_widen(v, half) for v in value]
    if hasattr(value, "astype") and value.dtype == half:
        return value.astype(np.float32)
    return value


def _narrow(value, half):
    """float32 results of a computation that was widened, in half precision again."""
    if type(value) in (list, tuple):
        return type(value)(_narrow(v, half) for v in value)
    return value.astype(half) if value is not None and value.dtype == np.float32 else value


def _as_ruled(value, dtype):
    """Results in the dtype(s) that the entry's rule names."""
    if type(value) in (list, tuple):
        dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(value)
        return type(value)(_as_ruled(v, d) for v, d in zip(value, dtypes))
    return value if value is None or value.dtype == dtype.np else value.astype(dtype.np)


def _finish(xp, out, dtype):
    if type(out) is tuple or type(out) is list:
        return type(out)(_finish(xp, o, dtype) for o in out)
    if type(out) is not _ndarray and not hasattr(out, "__array_namespace__") or isinstance(out, np.generic):
        return xp.asarray(out, dtype=dtype)
    return out if out.dtype == dtype else out.astype(dtype)


def _arrays_only(xp, out):
    """NumPy scalars become 0-d arrays; Python numbers stay."""
    if type(out) is tuple or type(out) is list:
        return type(out)(_arrays_only(xp, o) for o in out)
    return xp.asarray(out) if isinstance(out, np.generic) else out


# fake arrays


class Spec:
    """What a shape rule sees of a tensor."""

    __slots__ = ("dtype", "fake", "ndim", "shape")

    def __init__(self, array):
        self.fake = array
        self.shape = tuple(array.shape)
        self.ndim = len(self.shape)
        self.dtype = dt.of(array.dtype)

    def numel(self) -> int:
        return math.prod(self.shape)


def _spec(value):
    if type(value) is list:
        return [_spec(v) for v in value]
    return Spec(value) if isinstance(value, Fake) or hasattr(value, "__array_namespace__") else value


def run_fake(ov, raw: tuple):
    """Shapes and dtypes instead of values."""
    if ov.is_view:
        return _fake_view(ov, raw)
    specs = tuple(_spec(v) for v in raw)
    rule = ov.op.promote
    dtype = None
    if ov.dtype_rule is not None:
        dtype = ov.dtype_rule(*specs)
    elif rule in ("default", "float", "bool", "real"):
        dtype = promoted(ov, raw)[1]
    else:
        first = next((v for v in _arrays(raw)), None)
        if first is not None:
            dtype = dt.of(first.dtype)
    if ov.shape_rule is not None:
        shape = ov.shape_rule(*specs)
    elif ov.kind == "pointwise":
        shape = broadcast(ov, [s for s in specs if isinstance(s, Spec)])
    elif ov.decompose is not None:
        return raw_of(ov.decompose(*wrap(raw)))
    else:
        raise errors.DerivativeNotWritten(
            f"operator '{ov.name}' has no shape rule for fake tensors; give its table entry a `shape`")
    returns = ov.schema.returns
    if len(returns) == 1 and returns[0].is_list:
        dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(shape)
        return [Fake(s, d.np) for s, d in zip(shape, dtypes)]
    if len(returns) == 1:
        return Fake(shape, dtype.np)
    shapes = shape if isinstance(shape, (list, tuple)) and not _is_shape(shape) else [shape] * len(returns)
    dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(returns)
    return tuple(None if s is None else Fake(s, d.np) for s, d in zip(shapes, dtypes))


def _is_shape(value) -> bool:
    return all(isinstance(v, int) for v in value)


def broadcast(ov, specs: list) -> tuple:
    """Broadcast shape of pointwise operands, or the error that names them."""
    try:
        return np.broadcast_shapes(*(s.shape for s in specs))
    except ValueError:
        raise shape_error(ov, [s.shape for s in specs]) from None


def shape_error(ov, shapes: list) -> errors.ShapeError:
    """Operands that cannot be broadcast."""
    return errors.ShapeError(errors.text(
        f"{ov.op.base_name}: the shapes {' and '.join(str(list(s)) for s in shapes)} cannot be broadcast "
        f"together ({errors.user_line(2)})",
        cure="sizes must be equal or 1, counted from the last dimension; unsqueeze or transpose an operand"))


def _fake_view(ov, raw: tuple):
    source = raw[0]
    ghost = source.ghost()
    out = ov.kernel(np, ghost, *raw[1:])
    if type(out) in (list, tuple):
        return [source.view_of(ghost, o) for o in out]
    return source.view_of(ghost, out)
