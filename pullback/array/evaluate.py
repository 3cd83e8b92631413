"""Level 0: promotion, then one kernel call on raw arrays (or one shape rule on fake ones).

Promotion kinds (`Op.promote`): `default` standard promotion; `float` the same, integers then
become the default float; `bool` promote, result bool; `real` promote, complex results become
real; `same` result has the first tensor's dtype; `keep` the kernel decides.  float16 and bfloat16
compute in float32, complex32 in complex64.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import errors
from ..core.handle import Box, Tensor, make
from ..threads.state import state
from . import device as dev
from . import dtype as dt
from . import lazy
from .dims import broadcast_shapes
from .fake import Fake, contiguous_strides, device_name
from .layout import arranged, is_arranged, wants_channels_last
from .size import Symbolic, hinted, is_symbolic

_HALF = {dt.float16.np: dt.float32.np, dt.bfloat16.np: dt.float32.np} | {
    d.np: dt.complex64.np for d in dt.ALL if d.name == "complex32"
}
_FLOATING = {d.np: d for d in dt.ALL if d.category == 2}
_ndarray = np.ndarray


def raw_of(value):
    """Arrays out of handles, lists included."""
    if isinstance(value, Tensor):
        return value._payload
    if type(value) is list or type(value) is tuple:
        return [raw_of(v) for v in value]
    return value


def wrap(result):
    """Handles around a kernel's result."""
    if type(result) is tuple or type(result) is list:
        numbers = type(result) is list and result and type(result[0]) is int
        return result if numbers else tuple([wrap(r) for r in result])
    if (
        result is None
        or isinstance(result, (bool, int, float, complex, Symbolic))
        and not isinstance(result, np.generic)
    ):
        return result
    return make(result)


def wrap_all(ov, out):
    """Handles around all results of an operator, in a named tuple where its schema names them."""
    cls = ov.result_class
    return wrap(out) if cls is None else cls(*wrap(tuple(out)))


def is_array(value) -> bool:
    """Is this a raw array, of any device, or a box in the place of one?"""
    return (
        type(value) is _ndarray
        or isinstance(value, Box)
        or (dev.lookup(value) is not None and not isinstance(value, np.generic))
    )


def _arrays(values):
    for v in values:
        if type(v) is list:
            yield from _arrays(v)
        elif is_array(v):
            yield v


def space_of(ov, raw: tuple):
    """The array namespace of the arguments, None if any is fake; refuses mixed devices.

    Arrays without dims go to the device of the others.
    """
    found: dict = {}  # device name -> namespace, of arrays with dims
    numbers: dict = {}  # the same of 0-d arrays
    for v in _arrays(raw):
        if type(v) is Fake:
            return None
        place = dev.lookup(v)
        if place is None:
            raise escaped(ov, v)
        (found if v.ndim else numbers)[place[0]] = place[1]
    elsewhere = getattr(ov.op, "elsewhere", None)
    if elsewhere is not None and len(found | numbers) > 1:
        found = _without(ov, raw, elsewhere) or found
    if len(found) > 1:
        raise errors.DeviceError(
            errors.text(
                f"{ov.op.base_name} got tensors on different devices, {' and '.join(found)} "
                f"({errors.user_line(2)})",
                cure="move one of them with .to(device)",
            )
        )
    mode = state.fakes.mode
    if found and mode is not None and not (ov.is_view and mode.allow_non_fake_inputs):
        return None  # the mode refuses it, or takes its shape; a view shares memory in any case
    if found:
        return next(iter(found.values()))
    if numbers:
        return next((xp for name, xp in numbers.items() if name != "cpu"), np)
    if state.fakes.creates:
        return None
    for a, v in zip(ov.schema.args, raw):
        if a.base == "Device" and (v is not None or state.switches.devices):
            v = dev.chosen(v)
            return None if v.type == "meta" else dev.namespace(v)
    return np


def _without(ov, raw: tuple, elsewhere: dict[str, str]) -> dict:
    """The device of `self`, if the other arguments are there, or else where they may be.

    Index tensors may be in the memory of the host (`"host"`), what is copied anywhere (`"any"`).
    """
    name, xp = dev.lookup(raw[0])
    for a, v in zip(ov.schema.args, raw):
        allowed = elsewhere.get(a.name)
        for array in _arrays([v]):
            place = dev.lookup(array)[0]
            if place != name and allowed != "any" and (
                    place != "cpu" or allowed is None and array.ndim):
                return {}
    return {name: xp}


def _moved(xp, value):
    """Arrays of the host on the device of the namespace, or the other way round."""
    if type(value) is list:
        return [_moved(xp, v) for v in value]
    if xp is np:
        return dev.transfer(value, dev.CPU) if is_array(value) else value
    return xp.asarray(value) if type(value) is _ndarray else value


def escaped(ov, box) -> Exception:
    """The error for a box that outlived its transform."""
    interp = getattr(box, "interp", None)
    return errors.EscapedTensor(
        errors.text(
            f"a tensor escaped from {getattr(interp, 'title', 'a transform')} and was used by "
            f"{ov.op.base_name} after that transform had finished ({errors.user_line(2)})",
            cure="return the value from the transformed function instead of keeping it outside",
        )
    )


def run_raw(ov, raw, xp=None):
    """Promotion and kernel on raw arguments; `xp` is given where all arrays are known to be its."""
    marked = lazy.in_use and lazy.among(raw)
    out = lazy.run(ov, raw, xp, _run_raw) if marked else _run_raw(ov, raw, xp)
    return in_rows(out) if ov.in_rows else out


def in_rows(out):
    """A result in row-major order, whatever order the array library has chosen for it."""
    if type(out) is _ndarray:
        return out if out.ndim < 2 or out.flags.c_contiguous else out.copy()
    if type(out) is tuple or type(out) is list:
        return type(out)([in_rows(o) for o in out])
    return out


def _mode_of(raw):
    """The mode that fake arguments belong to."""
    for v in raw:
        if type(v) is Fake:
            if v.mode is not None:
                return v.mode
        elif type(v) is list:
            found = _mode_of(v)
            if found is not None:
                return found
    return None


def _with_constants(ov, raw, out):
    """Results whose values are known, as those of all arguments are, know them.

    A view has to do with a known value in any case: who writes it changes that.
    """
    shared = raw[0].known if ov.is_view and type(raw[0]) is Fake else None
    if shared is not None:
        for o in out if isinstance(out, (list, tuple)) else (out,):
            o.known = None, shared[1]
    if type(out) is not Fake or out.symbolic or out.size != 1 or ov.is_random or ov.custom:
        return out
    known, seen = [], False
    for v in raw:
        if type(v) is Fake:
            if v.constant is None:
                return out
            seen, v = True, v.constant
        elif is_array(v) or type(v) is list and any(is_array(e) for e in v):
            return out
        known.append(v)
    if seen or ov.kind not in _MAKERS:
        out.known = run_raw(ov, known, np), [True] if shared is None else shared[1]
    return out


def _faked(ov, raw):
    if not state.fakes.reals:
        return run_fake(ov, raw)
    from .reals import with_data

    return with_data(ov, raw, run_fake)


def _run_raw(ov, raw, xp):
    if xp is None:
        xp = space_of(ov, raw)
        if xp is None:
            mode = state.fakes.mode
            if mode is not None:
                mode.check(ov, raw)
                return _with_constants(ov, raw, _faked(ov, raw))
            mode = _mode_of(raw)
            if mode is None:
                return _faked(ov, raw)
            mode.check_modes(ov, raw)
            # fakes outlive the block of their mode, and so do their results
            before, state.fakes.mode = state.fakes, mode
            try:
                return _with_constants(ov, raw, _faked(ov, raw))
            finally:
                state.fakes = before
        if xp is not np or getattr(ov.op, "elsewhere", None) is not None:
            raw = [_moved(xp, v) for v in raw]
    if ov.same_dtype:
        refuse_mixed(ov, raw)
    if ov.real_only:
        refuse_complex_tensors(ov, raw)
    rule = ov.op.promote
    if rule == "keep" or rule == "same" and ov.is_view:
        out = ov.kernel(xp, *raw)
        return out if type(out) is _ndarray else _arrays_only(xp, out)
    if rule == "same":
        return _run_same(ov, xp, raw)
    if ov.check is not None:
        ov.check(*raw)
    common, target = promoted(ov, raw)
    if ov.numbers:
        refuse_complex(ov, raw, common)
    if ov.dtype_rule is not None:
        target = ov.dtype_rule(*(spec(v) for v in raw))
    values, compute = list(raw), common.np
    if compute in _HALF:
        values, compute = in_half(ov, xp, raw, compute), _HALF[compute]
    for i in ov.promoted:
        values[i] = _cast(xp, values[i], compute)
    out = ov.kernel(xp, *values)
    if isinstance(target, (list, tuple)):
        return tuple(_finish(xp, o, t.np) for o, t in zip(out, target))
    return _finish(xp, out, target.np)


def refuse_mixed(ov, raw) -> None:
    """Refuse arguments of several dtypes, where the entry says that they are of one."""
    wanted = None
    for i, wide in ov.same_dtype:
        for v in raw[i] if type(raw[i]) is list else (raw[i],):
            if v is None:
                continue
            if wanted is None:
                wanted = v.dtype
            elif v.dtype != wanted and not (wide and v.dtype == _HALF.get(wanted, wanted)):
                raise errors.DTypeError(f"expected scalar type {dt.title(wanted)} but found "
                                        f"{dt.title(v.dtype)}")


def refuse_complex_tensors(ov, raw) -> None:
    """Refuse complex tensors where the entry takes none."""
    for v in _arrays(raw):
        if v.dtype.kind == "c":
            raise NotImplementedError(
                f"\"{ov.op.base_name}\" not implemented for '{dt.title(v.dtype)}'")


def refuse_complex(ov, raw, dtype: dt.DType) -> None:
    """Refuse complex numbers where the operator computes with real ones."""
    if dtype.category < 3 and any(type(raw[i]) is complex for i in ov.numbers):
        raise errors.DTypeError(
            f"value cannot be converted to type {dtype.name} without overflow")


def promoted(ov, raw: tuple) -> tuple[dt.DType, dt.DType]:
    """(computation dtype, result dtype) of an operator with promotion."""
    common = _one_floating(ov, raw)
    if common is None:
        values = [raw[i] for i in ov.promoted]
        common = dt.result_type(
            [v for item in values for v in (item if type(item) is list else (item,))]
        )
    rule = ov.op.promote
    if rule == "float" and common.category < 2:
        common = dt.default()
    if rule == "bool":
        return common, dt.bool_
    if rule == "real":
        return common, common.to_real()
    return common, common


def _one_floating(ov, raw: tuple) -> dt.DType | None:
    """The one floating dtype of all operands, beside Python numbers that cannot raise it."""
    dtype = None
    for i in ov.promoted:
        v = raw[i]
        if type(v) is _ndarray:
            if dtype is None:
                dtype = v.dtype
            elif v.dtype is not dtype:
                return None
        elif type(v) is not float and type(v) is not int and v is not None:
            return None
    return _FLOATING.get(dtype)


def in_half(ov, xp, raw, half) -> list:
    """The arguments with operands and numbers rounded to half precision, ready to compute with."""
    values = list(raw)
    for i in ov.promoted:
        if i not in ov.unrounded or getattr(raw[i], "ndim", 0):
            values[i] = _widen(xp, _cast(xp, raw[i], half), half)
    for i in ov.rounds:
        if not isinstance(raw[i], Symbolic):
            values[i] = rounded(raw[i], half)
    return values


def rounded(number, half):
    """A Python number with the digits of half precision."""
    if type(number) is complex:
        return number
    with np.errstate(over="ignore"):
        fitting = float(np.asarray(number, np.float64).astype(dt.of(half).to_real().np))
    return number if fitting == number else fitting


def _cast(xp, value, dtype):
    if value is None:
        return None
    if type(value) is list:
        return [_cast(xp, v, dtype) for v in value]
    if is_array(value):
        return value if value.dtype == dtype else recast(xp, value, dtype)
    return xp.asarray(value).astype(dtype)


def recast(xp, array, dtype):
    """An array in another dtype, its dims in the same order: `astype` puts repeated ones last."""
    if 0 in array.strides and array.ndim > 1:
        return relaid(xp, array.astype(dtype, order="C"), (array,))
    return array.astype(dtype)


def widened(xp, array, half):
    """Half precision to compute with.  What is repeated stays so, and results lie as without."""
    if 0 in array.strides and array.ndim > 1 and array.size:
        once = array[tuple(slice(0, 1) if s == 0 else slice(None) for s in array.strides)]
        return xp.broadcast_to(once.astype(_HALF[half]), array.shape)
    return array.astype(_HALF[half])


def _run_same(ov, xp, raw: tuple):
    """No promotion; half precision still computes in float32."""
    first = raw[0] if raw and type(raw[0]) is _ndarray else next(_arrays(raw), None)
    if ov.numbers and first is not None:
        refuse_complex(ov, raw, dt.of(first.dtype))
    values = raw
    if first is not None and first.dtype in _HALF:
        half = first.dtype
        if any(v.dtype == _HALF[half] for v in _arrays(raw)):
            from .consult import consult_kernel

            consult_kernel(ov, raw)  # of widened ones it could not tell
        values = tuple(_widen(xp, v, half) for v in raw)
        out = _arrays_only(xp, ov.kernel(xp, *values))
        if ov.dtype_rule is not None:
            return _as_ruled(out, ov.dtype_rule(*(spec(v) for v in raw)))
        return _narrow(out, half)
    if ov.dtype_rule is None and first is not None and len(ov.schema.returns) == 1:
        return _finish(xp, ov.kernel(xp, *values), first.dtype)
    return _arrays_only(xp, ov.kernel(xp, *values))


def _widen(xp, value, half):
    if type(value) is list:
        return [_widen(xp, v, half) for v in value]
    if is_array(value) and value.dtype == half:
        return widened(xp, value, half)
    return value


def _narrow(value, half):
    """Results of a computation that was widened, in half precision again."""
    if type(value) in (list, tuple):
        return type(value)(_narrow(v, half) for v in value)
    return value.astype(half) if value is not None and value.dtype == _HALF[half] else value


def _as_ruled(value, dtype):
    """Results in the dtype(s) that the entry's rule names."""
    if type(value) in (list, tuple):
        dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(value)
        return type(value)(_as_ruled(v, d) for v, d in zip(value, dtypes))
    return value if value is None or value.dtype == dtype.np else value.astype(dtype.np)


def _finish(xp, out, dtype):
    if type(out) is tuple or type(out) is list:
        return type(out)(_finish(xp, o, dtype) for o in out)
    if not is_array(out):
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
        shape = array.shape
        self.shape = shape if isinstance(shape, tuple) else tuple(shape)
        self.ndim = len(self.shape)
        self.dtype = dt.of(array.dtype)

    def numel(self) -> int:
        return math.prod(self.shape)


def spec(value):
    """A raw argument as a shape rule sees it."""
    if type(value) is list:
        return [spec(v) for v in value]
    return Spec(value) if is_array(value) else value


def run_fake(ov, raw: tuple):
    """Shapes and dtypes instead of values."""
    from .consult import consult, has_checks

    if ov.is_view:
        return _fake_view(ov, raw)
    if ov.op.fake is not None:
        return ov.op.fake(*raw)
    if has_checks(ov):
        consult(ov, raw)
    specs = tuple(spec(v) for v in raw)
    rule = ov.op.promote
    dtype = None
    if ov.dtype_rule is not None:
        dtype = ov.dtype_rule(*specs)
    elif rule in ("default", "float", "bool", "real"):
        dtype = promoted(ov, [hinted(v) for v in raw] if is_symbolic(raw) else raw)[1]
    else:
        first = next((v for v in _arrays(raw)), None)
        if first is not None:
            dtype = dt.of(first.dtype)
    shape = shape_of(ov, specs)
    if shape is not None:
        pass
    elif ov.decomposition is not None:
        return raw_of(ov.decomposition(*wrap(raw)))
    else:
        raise errors.DerivativeNotWritten(
            f"operator '{ov.name}' has no shape rule for fake tensors; give its table entry a "
            "`shape`"
        )
    if ov.kind in _MAKERS:
        _check_sizes(shape)
    returns, where = ov.schema.returns, _fake_device(ov, raw)
    if ov.op.memory_format == "parts":  # fresh memory by name, views of the input in fact
        parts = _fake_pieces(ov, raw)
        for part in parts:
            part.base = None
        return parts
    if len(returns) == 1 and returns[0].is_list:
        dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(shape)
        return [Fake(s, d.np, None, where) for s, d in zip(shape, dtypes)]
    if len(returns) == 1:
        return Fake(shape, dtype.np, _fake_strides(ov, shape, dtype.np, raw, where), where)
    shapes = (
        shape
        if isinstance(shape, (list, tuple)) and not _is_shape(shape)
        else [shape] * len(returns)
    )
    dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(returns)
    return tuple(
        None if s is None else Fake(s, d.np, _fake_strides(ov, s, d.np, raw, where), where)
        for s, d in zip(shapes, dtypes))


def shape_of(ov, specs):
    """The shape(s) of the results by the entry's rule; None if it has none."""
    if ov.shape_rule is not None:
        return ov.shape_rule(*specs)
    if ov.kind == "pointwise":
        return broadcast(ov, [s for s in specs if isinstance(s, Spec)])
    return None


_MAKERS = ("creation", "random")


def _check_sizes(shape) -> None:
    """Numbers that are not known yet may be negative, unless they are sizes already."""
    for n in shape:
        if isinstance(n, Symbolic) and n.hint is not None and n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n.hint}")


def _fake_device(ov, raw: tuple) -> str:
    """The device of a result: the one that was asked for, or that of the operands."""
    if "device" in ov.schema.names:
        wanted = raw[ov.schema.names.index("device")]
        if wanted is not None:
            return str(wanted)
    names = [device_name(a) for a in _arrays(raw)]
    if not names and state.switches.devices and "device" in ov.schema.names:
        return str(dev.chosen())
    return next((name for name in names if name != "cpu"), "cpu")  # a CPU number goes along


def _fake_strides(ov, shape: tuple, dtype, raw: tuple, device: str) -> tuple | None:
    """Byte strides of a result, None for those of a row-major array."""
    copies = "memory_format" in ov.schema.names
    if ov.kind == "creation" and "stride" in ov.schema.names:  # empty_strided and its kin
        return tuple([s * dtype.itemsize for s in raw[ov.schema.names.index("stride")]])
    if ov.op.memory_format in ("self", "channels"):
        raw = raw[ov.followed:]
    if ov.op.memory_format == "self" and not copies and device == "cpu":
        return pointwise_strides(shape, dtype, tuple(_arrays(raw))[:1])
    if ov.op.memory_format == "channels":
        kind = channels_last(raw, len(shape))
        return None if kind is None or device != "cpu" else _channels_inside(shape, dtype)
    if ov.kind in ("creation", "random") and copies:  # zeros_like and its kin: not the gaps of one
        if any(n > 1 and type(t) is int and not t
               for a in _arrays(raw) for n, t in zip(a.shape, a.strides)):
            return None
    elif ov.kind != "pointwise" or device != "cpu" and not copies:
        return None  # CuPy's results are row-major whatever the operands are, but for copies
    if copies:
        wanted = raw[ov.schema.names.index("memory_format")]
        if wanted is not None and not str(wanted).endswith("preserve_format"):
            return _channels_inside(shape, dtype) if wants_channels_last(
                wanted, len(shape)) else None
    return pointwise_strides(shape, dtype, raw)


def _channels_inside(shape: tuple, dtype) -> tuple:
    steps = contiguous_strides((shape[0], *shape[2:], shape[1]), dtype.itemsize)
    return steps[0], steps[-1], *steps[1:-1]


def pointwise_strides(shape: tuple, dtype, raw: tuple) -> tuple | None:
    """Byte strides of an element-wise result: the dims in the order of the operands' memory.

    The array library itself says which order that is, asked about two elements in each dim.
    """
    operands = [a for a in _arrays(raw) if len(a.shape) <= len(shape)]
    if all(a.strides == contiguous_strides(a.shape, a.dtype.itemsize) for a in operands):
        return None
    small = [
        as_strided(np.empty(1, np.int8), [min(n, 2) for n in hinted(a.shape)], hinted(a.strides))
        for a in operands
    ]
    flags = [["readonly"]] * len(small) + [["writeonly", "allocate"]]
    order = np.nditer([*small, None], ["zerosize_ok"], flags, order="K").operands[-1].strides
    strides, step = [0] * len(shape), dtype.itemsize
    for dim in sorted(range(len(shape)), key=lambda d: (order[d], -d)):
        n = shape[dim]
        strides[dim] = step
        step = step * (n.clamped(1) if isinstance(n, Symbolic) else max(n, 1))
    return tuple(strides)


def relaid(xp, out, operands: tuple):
    """A pointwise result with its dims in the order that ufuncs of the namespace give them.

    That is the order of the operands' memory; CuPy's results are row-major.
    """
    if out.ndim < 2:
        return out
    if xp is not np:
        return xp.ascontiguousarray(out)
    strides = pointwise_strides(out.shape, out.dtype, operands)
    if strides is None:
        return out
    order = sorted(range(out.ndim), key=lambda d: -strides[d])
    return xp.ascontiguousarray(out.transpose(order)).transpose(
        sorted(range(out.ndim), key=order.__getitem__)
    )


def lying_like_self(xp, out, operands: tuple):
    """Results whose dims lie in memory in the order of those of the first tensor."""
    first = operands[0] if type(operands[0]) is _ndarray else next(_arrays(operands))
    if type(out) in (tuple, list):
        return type(out)([lying_like_self(xp, o, (first,)) for o in out])
    if out is None or out.ndim < 2 or out.flags.c_contiguous and first.flags.c_contiguous:
        return out
    return relaid(xp, out, (first,)) if out.ndim == first.ndim else in_rows(out)


def lying_with_channels(xp, out, operands: tuple):
    """Results with channels last if the first operand, or each of its items, has them there."""
    if type(operands[0]) is _ndarray and operands[0].flags.c_contiguous:
        return in_rows(out)
    if type(out) in (tuple, list):
        return type(out)([lying_with_channels(xp, o, operands) for o in out])
    kind = None if out is None or out.ndim < 4 else channels_last(operands, out.ndim)
    if kind is None or is_arranged(out, kind):
        return out if kind else in_rows(out)
    return arranged(out, kind)


def channels_last(operands: tuple, ndim: int) -> str | None:
    """The memory format with channels last that the first operand has; None if it is another."""
    kind = {4: "channels_last", 5: "channels_last_3d"}.get(ndim)
    first = operands[0] if type(operands[0]) is list else next(_arrays(operands), None)
    for a in first if type(first) is list else (first,):
        if kind is None or a is None or a.ndim != ndim or is_arranged(a) or not is_arranged(
                a, kind):
            return None
    return kind


def _is_shape(value) -> bool:
    return all(isinstance(v, (int, Symbolic)) for v in value)


def broadcast(ov, specs: list) -> tuple:
    """Broadcast shape of pointwise operands."""
    return broadcast_shapes(*(s.shape for s in specs)) if specs else ()


def _fake_view(ov, raw: tuple):
    out, marks = _fake_pieces(ov, raw), lazy.through(ov, raw[0])
    for o in out if type(out) is list else (out,):
        o.marks = marks
    return out


def _fake_pieces(ov, raw: tuple):
    source = raw[0]
    if source.symbolic or is_symbolic(raw) or ov.op.absolute:
        from ..symbolic.views import view

        return view(ov, source, raw[1:])
    ghost = source.ghost()
    out = ov.kernel(np, ghost, *raw[1:])
    if type(out) in (list, tuple):
        return [source.view_of(ghost, o) for o in out]
    return source.view_of(ghost, out)
