"""In-place operators, `out=` and versions: mutation as "pure operator + rebinding".

An eager write really changes the buffer and moves the version; a write to a boxed tensor rebinds
the handle. A write through a view is a scatter into its base, and stale views are replayed when
next used. Read next: `eager/steps.py`.
"""

from __future__ import annotations

import copy
import functools
import re
import warnings

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.evaluate import run_raw
from ..array.fake import Fake
from ..array.layout import strides_order
from ..memory import storages as memory
from . import events
from .handle import INFERENCE, Link, Tensor, cell_of, is_buffer, make, one_more
from .state import fast, state, tick
from .subclass_door import door

_ndarray = np.ndarray


# versions


def bump(t: Tensor) -> None:
    """Note that the memory of a handle was written."""
    cell = cell_of(t)
    if cell is not INFERENCE:
        cell.stamps = (*cell.stamps[1 - cell.KEPT :], tick())
        cell.where = tape.place()
        cell.version += 1


def mark_written(*tensors: Tensor) -> None:
    """For code that wrote the tensors' arrays directly."""
    where, now, old, new = tape.place(), tick(), None, None
    for t in tensors:
        cell = t._cell or cell_of(t)
        if cell is INFERENCE:
            continue
        if cell.stamps is not old:  # what is written together has the same ones
            old = cell.stamps
            new = (*old[1 - cell.KEPT :], now)
        cell.stamps, cell.where = new, where
        cell.version += 1


def mark_inference(out) -> None:
    """Results of inference mode have no version of their own; views get that of their base."""
    for t in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(t, Tensor) and t._cell is None:
            t._cell = INFERENCE


# writes


def inplace(ov, flat: tuple) -> Tensor:
    """`x.op_(...)`: the pure operator, then the result takes x's place."""
    x = flat[0]
    if fast["DISPATCHES"]:
        out = door.write(ov, flat)
        if out is not NotImplemented:
            return out
    if ov.is_view:
        return inplace_view(ov, flat)
    if not isinstance(x, Tensor):
        return _each_inplace(ov, flat)
    if x._link is not None:
        refresh(x)
    owner = state.stack[state.mode] if state.mode else None
    if owner is not None and owner.adopts and type(x._data) is _ndarray:
        owner.adopt(x)
    raw, tracked, space = stack.gather(ov, flat)
    recorded = tracked and state.record[0]
    same = ov.name in ("fill.Scalar", "zero")
    if same and _is_expanded(x):
        return _fill_expanded(ov, flat)
    may_write(x, tracked, stack.level_of(ov, x), same and not recorded)
    plain = not state.mode and not (state.random and ov.is_random) and (
        space is not None or all(is_buffer(t._data) for t in stack.tensors_in(flat))
    )
    if plain and not recorded and not ov.is_composite:
        return _write_memory(ov, flat, raw, space)
    return _write_value(ov, flat)


def _each_inplace(ov, flat: tuple):
    """The same for each tensor of a list, if it is one."""
    if type(flat[0]) is list:
        from ..table.lists import inplace as each

        return each(ov, flat)
    raise errors.ArgumentError(f"{ov.op.base_name}_ wants a tensor, got {type(flat[0]).__name__}")


def _write_memory(ov, flat: tuple, raw, space) -> Tensor:
    """`x.op_(...)` where nothing is recorded and memory is real: it is overwritten."""
    x, fill = flat[0], ov.op.fill
    try:
        if fill is not None and type(x._data) is _ndarray and filled(x, fill, raw):
            return x
        new = run_raw(ov, raw, space)
    except (errors.PullbackError, NotImplementedError, MemoryError):
        raise
    except Exception as error:
        raise stack.translated(ov, flat, error) from error
    if new.shape != x._data.shape or new.dtype != x._data.dtype:
        check_result(ov, x, new.shape, dt.of(new.dtype))
    bump(x)  # first: an interrupt between the two must not hide the write
    store(x._data, new)
    return x


def _write_value(ov, flat: tuple) -> Tensor:
    """`x.op_(...)` as the pure operator on what x was before, whose result is assigned."""
    x = flat[0]
    before = state.switches
    if before.filling is not ov.is_random:
        state.switches.filling = ov.is_random
    try:
        if ov.is_random and ov.op.lies == "rows":
            new = _drawn_in_order(ov, _shadowed(ov, flat, x))
        else:
            new = stack.bind_as_given(ov, _shadowed(ov, flat, x))
    finally:
        state.switches = before
    check_result(ov, x, new._data.shape, new.dtype)
    if ov.op.inplace_node:
        _rename(ov, new._edge)
    by = ov if new.dtype is x.dtype else None
    if by is None:
        new = new.to(x.dtype)
        if ov.op.promote == "bool" and x._edge is not None:
            from ..table.packets import ops

            new = ops.fill(make(x._data, x._edge), 0) + new  # tracked still, with derivative zero
    return assign(x, new, by)


def _drawn_in_order(ov, flat: tuple) -> Tensor:
    """What an operator that draws row by row gives for a tensor that is filled with it: numbers
    one after the other as the elements lie in memory."""
    x = flat[0]
    order = strides_order(x._data.shape, x._data.strides)
    if order is None:
        return stack.bind_as_given(ov, flat)
    from ..table.packets import ops

    new = stack.bind_as_given(ov, (ops.permute(x, order), *flat[1:]))
    return ops.permute(new, sorted(range(len(order)), key=order.__getitem__))


def filled(x: Tensor, fill, raw: tuple) -> bool:
    """Let an operator write into memory by itself, if it can."""
    try:
        done = fill(*raw)
        if done:
            bump(x)
        return done
    except Exception:
        raise
    except BaseException:
        bump(x)  # an interrupt between the two must not hide the write
        raise


def _rename(ov, node) -> None:
    """Give a node the name that it has after an in-place call, where that is another."""
    if isinstance(node, tape.Node) and node.rule is ov.rule and node.outputs == 1:
        node.__class__ = tape.node_class(_renamed(ov.rule, ov.op.inplace_node))


@functools.cache
def _renamed(rule, name: str):
    """The rule under another name; by rule, since an operator gets a new one with new formulas."""
    rule = copy.copy(rule)
    rule.name = name
    return rule


def _is_expanded(x: Tensor) -> bool:
    """Does a tensor show elements of another one several times, as the last step of a view?"""
    link = x._link
    if link is None or not link.steps or link.apart and is_buffer(x._data):
        return False
    return link.steps[1][0].name == "expand"


def _fill_expanded(ov, flat: tuple) -> Tensor:
    """Fill an expanded tensor: what was expanded is filled instead, each element once."""
    x = flat[0]
    link = x._link
    inplace(ov, (replay(link.base, link.chain[:-1]), *flat[1:]))
    refresh(x)
    return x


def inplace_view(ov, flat: tuple) -> Tensor:
    """`x.t_()` and the like: the handle itself becomes the view; no memory is written."""
    x = stack.outlived(flat[0])
    if x._link is not None:
        refresh(x)
    may_write(x, x._edge is not None, tape.level_own(x._data), True)
    link, interp = x._link, getattr(x._data, "interp", None)
    if link is None and x._cell is not None and not is_buffer(x._data):
        link = Link(found_anew(x), None, False, None, x._cell.version)  # older views go by steps
    elif link is not None and link.apart and interp is not None:
        base = found_anew(x)  # so they do of a detached alias
        base._link, link = link, Link(base, None, False, None, x._cell.version)
    recorded = state.record[tape.level_own(x._data)]
    # else it keeps its history, which does not end here
    new = stack.bind(ov, (make(x._data, x._edge if recorded else None), *flat[1:]))
    if ov.op.inplace_node:
        _rename(ov, new._edge)
    if interp is not None:
        base = x if link is None else link.base
        interp.event(events.RESHAPED, x, (ov, flat[1:]), new._data, base)
    made_by = getattr(new._data, "interp", None)
    if made_by is not None and not made_by.adopts:
        made_by.event(events.RESHAPES, x)
        if made_by is not interp:  # of a tensor from outside
            made_by.note_rebinding(x, x._data)
    x._data = new._data
    if recorded:
        x._edge = new._edge
    bump(x)
    if link is not None:
        steps = one_more(link.steps, (ov, flat[1:], None))
        seen = x._cell.version if recorded else -1
        x._link = link.__class__(link.base, steps, link.multi, link.hidden, seen)
        x._link.of = link.of
    if x._meta is not None and x._meta.retains:
        retain_again(x)
    return x


def store(buffer, values) -> None:
    """Overwrite a raw array."""
    if type(buffer) is _ndarray:
        try:
            np.copyto(buffer, values, casting="unsafe")
        except ValueError:
            if buffer.flags.writeable:
                raise
            raise errors.ViewWriteError(errors.text(
                f"this tensor's memory is read-only ({errors.user_line(2)}): another library owns "
                "it and does not allow writing", cure="write to a copy, x.clone()")) from None
    else:
        buffer[...] = values


def saves_self(ov, flat: tuple, x: Tensor) -> bool:
    """Does the derivative of an operator need the value that is about to be overwritten?"""
    return (
        ov.is_composite
        or ov.rule is None
        or any(
            kind == "arg" and flat[ov.schema.names.index(name)] is x
            for _, kind, name, _ in ov.rule.saves
        )
    )


def _shadowed(ov, flat: tuple, x: Tensor) -> tuple:
    """Flat arguments with x replaced by a stand-in that keeps its old value."""
    data = x._data
    saves = saves_self(ov, flat, x)
    if is_buffer(data) and saves and state.record[0]:
        data = data.copy("K")  # draws see the order of its elements
    elif saves and not is_buffer(data) and data.cell is not None:  # of memory to be written
        data = data.shadow()
    shadow = make(data, x._edge if x._link is None else unhooked(x))
    if saves and x._edge is not None and not is_buffer(data):
        interp = getattr(data, "interp", None)
        if interp is not None and state.record[interp.level]:
            interp.event(events.OVERWRITES, ov, flat, shadow)
    return tuple(shadow if v is x else v for v in flat)


def check_result(ov, x: Tensor, shape: tuple, dtype: dt.DType) -> None:
    """The result of an in-place operator must fit the tensor that it is stored in."""
    if tuple(shape) != tuple(x._data.shape):
        raise errors.ShapeError(
            errors.text(
                f"{ov.op.base_name}_: output with shape {list(x._data.shape)} doesn't match the "
                "broadcast shape "
                f"{list(shape)} ({errors.user_line(2)})",
                cure=f"use the out-of-place {ov.op.base_name}()",
            )
        )
    if not dt.can_cast(dtype, x.dtype):
        raise errors.DTypeError(
            errors.text(
                f"{ov.op.base_name}_: result type {dtype.name} can't be cast to the desired "
                "output type "
                f"{x.dtype.name} ({errors.user_line(2)})",
                cure=f"convert the tensor first, or use the out-of-place {ov.op.base_name}()",
            )
        )


def hand_back(x: Tensor, new: Tensor) -> None:
    """What a transform did to an argument in place, its shape included."""
    if tuple(x.shape) != tuple(new.shape):
        x.resize_(list(new.shape))
    assign(x, new)


def assign(x: Tensor, new: Tensor, by=None) -> Tensor:
    """Give x the value and the history of `new`, through the view chain if x is a view.

    `by` is the operator that made `new` of what x was before, its first argument.
    """
    level = max(tape.level_own(x._data), tape.level_own(new._data), state.mode)
    if is_buffer(x._data) and is_buffer(new._data):
        return _assign_memory(x, new, level)
    if type(x._data) is Fake and type(new._data) is Fake:
        return _assign_memory(x, new, level)
    return _assign_boxed(x, new, level, by)


def _assign_memory(x: Tensor, new: Tensor, level: int) -> Tensor:
    """`assign` where memory is real, or fake on both sides: it is overwritten."""
    link, real = x._link, type(x._data) is not Fake
    if real and link is not None and link.apart:
        link = None  # it has the memory, and nothing of the history
    base = x if link is None else link.base
    bump(x)  # first: an interrupt between the two must not hide the write
    if real:
        store(x._data, new._data)
    else:
        if x._data.known is not None:
            x._data.write_constant(new._data)
        if state.fakes.reals:
            from ..array.reals import write

            write(x._data, new._data)
    if state.record[level] and (new._edge is not None or base._edge is not None):
        base._edge = new._edge if link is None else copy_slices(base, x, new)
        if base._meta is not None and base._meta.retains:
            retain_again(base)
    if link is not None:
        link.seen = -1
    return x


def _assign_boxed(x: Tensor, new: Tensor, level: int, by) -> Tensor:
    """`assign` in a transform: the handle, or the base of a view, is bound to another value."""
    record, link, whole = state.record[level], x._link, None
    if link is not None and link.apart:
        link = None
    base = x if link is None else link.base
    if by is not None and link is not None and record and level:
        whole = state.stack[level].event(events.SCATTERS, base, link.chain, new, by)
    answered = whole is not None
    if not answered:
        whole = new if link is None else scatter(make(base._data, base._edge), link.chain, new)
    whole = laid_like(base, whole)
    if not record and not is_buffer(base._data):
        whole = make(base._data.rewritten(whole._data, False), whole._edge)
    moved = rebind(base, whole)
    if record:
        base._edge = whole._edge
    elif base._edge is not None:
        state.stack[level].event(events.WROTE_UNRECORDED, base)
    if base._link is not None:  # a detached alias: the memory is that of another tensor, too
        _assign_source(base, new, level, () if link is None else link.chain)
    if not moved:
        bump(x)
    if base._link is not None:
        base._link.seen = base._cell.version  # it has its own value, and its own history
    if link is not None:
        follow(x, new)
        x._edge, link.seen = new._edge, -1
        refresh(x)
        if link.multi and not record:
            link.seen = -1  # its history must not be asked for any more
        if answered:
            state.stack[level].event(events.WROTE_VIEW, x)
    if base._meta is not None and base._meta.retains:
        retain_again(base)
    return x


def _assign_source(alias: Tensor, new: Tensor, level: int, chain: tuple) -> None:
    """Write what was written through views of a detached alias into the tensor that it is of."""
    link = alias._link
    owner, root = state.stack[level], link.base
    with _recording(level, False):
        owner.event(events.WROTE_UNRECORDED, root)
        if not link.counts:
            link.writes += 1
            owner.event(events.WROTE_UNCOUNTED, root)
        value = owner.cut(new) if level else make(new._data)
        whole = laid_like(root, scatter(make(root._data), (*link.chain, *chain), value))
        if not is_buffer(root._data):
            whole = make(root._data.rewritten(whole._data, True))
        rebind(root, whole)


def rebind(handle: Tensor, new: Tensor) -> bool:
    """Point a handle at other data, and tell the interpreter if the data are of a higher level.

    Returns whether the version of the handle was moved on the way.
    """
    old = handle._data
    interp, owner = getattr(new._data, "interp", None), getattr(old, "interp", None)
    if interp is not None and owner is not interp:
        interp.note_rebinding(handle, old)
    if owner is not None and (interp is None or interp.level <= owner.level):
        return owner.rebound_to(handle, new)
    handle._data = new._data
    return False


def write_out(ov, flat: tuple, out):
    """`op(..., out=buffer)`: compute, resize the buffer if needed, copy."""
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    level = state.mode
    for t in (*stack.tensors_in(flat), *outs):
        own = tape.level_own(stack.outlived(t)._data)
        if t._link is not None:
            refresh(t)  # it may have got a history by a write to its base
        if t._edge is not None and state.record[max(level, own)]:
            raise errors.NotDifferentiable(
                errors.text(
                    f"{ov.op.base_name}(): functions with out=... arguments don't support "
                    "automatic "
                    "differentiation, but one of the arguments requires grad "
                    f"({errors.user_line(2)})",
                    cure="leave out= away, or run under no_grad()",
                )
            )
    _refuse_shared(ov, flat, outs)
    if fast["DISPATCHES"] and door.write_out(ov, flat, outs):
        return out
    result = stack.bind_as_given(ov, _in_dtype_of(ov, flat, outs[0]))
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for t, r in zip(outs, results):
        if r.dtype is not t.dtype and not _takes(ov, r.dtype, t.dtype):
            raise errors.DTypeError(
                errors.text(
                    f"{ov.op.base_name}(): result type {r.dtype.name} can't be cast to the "
                    "desired output "
                    f"type {t.dtype.name} ({errors.user_line(2)})",
                    cure=f"give out= a tensor of dtype {r.dtype.name}",
                )
            )
    for t, r in zip(outs, results):
        r = r if r.dtype is t.dtype else r.to(t.dtype)
        may_write(t, False, level)
        if tuple(t._data.shape) != tuple(r._data.shape):
            if not is_buffer(t._data):
                interp = getattr(t._data, "interp", None)
                if interp is not None and interp.adopts and (
                        t._link is not None or id(t) in interp.first):
                    raise interp.unfollowed(errors.text(
                        f"out= of {ov.op.base_name}() would be resized ({errors.user_line(2)}), "
                        "which is an input or a view", describe(t),
                        f"give out= a tensor of shape {list(r.shape)}"))
                rebind(t, r)
                bump(t)
                continue
            _resize_out(t, r)
        assign(t, r)
    return out


@functools.cache
def _takes(ov, result: dt.DType, given: dt.DType) -> bool:
    """May a result go into an `out` of another dtype?

    Elementwise operators of several operands, and those that make floats of integers, cast to any
    dtype that keeps the category; others want the very dtype, unless the entry's `out` says.
    """
    rule, kind = ov.op.out, ov.kind
    if "any" in rule or given.name in rule:
        return True
    operands = sum(a.is_tensor for a in ov.schema.args)
    plain = ov.op.promote == "default" and ov.op.promotes is None and operands == 1
    strict = kind in ("op", "reduction") or kind == "pointwise" and plain
    exact = "exact" in rule or strict and "castable" not in rule
    return not exact and dt.can_cast(result, given)


def _resize_out(t: Tensor, result: Tensor) -> None:
    """Give an `out` tensor the shape and the layout of the result."""
    size, item = tuple(result._data.shape), result._data.dtype.itemsize
    strides = tuple([s // item for s in result._data.strides])
    if t._data.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(t._data.shape)}, which does not match the required output shape {list(size)}; "
            "resize it to zero elements first, with t.resize_(0)",
            UserWarning,
            stacklevel=5,
        )
    memory.show(t, memory.owner_of(t), size, strides, t.storage_offset())


def without_derivative(t: Tensor, name: str, other: Tensor | None) -> None:
    """The history of a tensor after an operator whose derivative is not known: a refusal."""
    edges = tuple([x._edge for x in (t, other) if x is not None and x._edge is not None])
    node = tape.make_node(tape.Refusal, None, edges, (None,) * len(edges), (), 0)
    node.overload = _Named(name)
    t._edge = node


class _Named:
    def __init__(self, name: str):
        self.name = name


def _in_dtype_of(ov, flat: tuple, t: Tensor) -> tuple:
    """The arguments of an operator that takes `out`'s dtype for its own: those that make a tensor
    from numbers, and sums."""
    names = ov.schema.names
    makes = ov.kind in ("creation", "random") and "self" not in names
    if "dtype" not in names or not (makes or "any" in ov.op.out):
        return flat
    place = names.index("dtype")
    return flat if flat[place] is not None else (*flat[:place], t.dtype, *flat[place + 1 :])


def _refuse_shared(ov, flat: tuple, outs: list) -> None:
    """Refuse an `out` that shares memory with an input, where the operator wants it apart."""
    if "apart" not in ov.op.out:
        return
    for t in outs:
        for x in stack.tensors_in(flat):
            pair = t._data, x._data
            plain = all(type(a) is _ndarray and a.flags.forc for a in pair)
            if t is x or plain and np.may_share_memory(*pair):
                raise errors.ViewWriteError(
                    errors.text(
                        f"{ov.op.base_name}(): some elements of the input tensor and the "
                        f"written-to tensor refer to a single memory location "
                        f"({errors.user_line(2)})",
                        describe(t),
                        "clone() the tensor before performing the operation",
                    )
                )


def overload_name(ov) -> str:
    """`Tensor` of `add.Tensor`."""
    return ov.name.partition(".")[2] or "default"


def inplace_overload(ov) -> str:
    """The overload name of the in-place variant: that of the operator unless the entry says."""
    chosen = ov.op.inplace
    return chosen if isinstance(chosen, str) else overload_name(ov)


class _Writing:
    """What graphs ask the operator of an overload that writes."""

    cost, pure = "cheap", False


class Derived:
    """An overload that follows from one of the table; there is one object for each name."""

    namespace = "aten"
    is_view = is_composite = is_random = custom = False
    _known: dict = {}

    def __new__(cls, *args):
        made = super().__new__(cls)
        made._begin(*args)
        return Derived._known.setdefault(repr(made), made)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def _schema(self):
        from .schema import Qualified

        return Qualified(self.schema, self.namespace)

    @property
    def tags(self) -> list:
        """What PyTorch says of the operator."""
        from ..table.tags import tags_of

        return tags_of(self)

    def decompose(self, *args, **kwargs):
        """Asked for by dispatch handlers: it is no function of other operators."""
        return NotImplemented

    @property
    def overloadpacket(self):
        """The family of overloads that this one belongs to."""
        from ..table.packets import ops

        return getattr(ops, self.name.partition(".")[0])

    @property
    def _overloadname(self) -> str:
        return self.name.partition(".")[2] or "default"

    def __reduce__(self) -> tuple:
        return getattr, (self.overloadpacket, self._overloadname)


class InplaceOverload(Derived):
    """`ops.aten.add_.Tensor`: the in-place variant of an overload."""

    op = _Writing

    def _begin(self, ov):
        from .op import OpName

        self.functional = ov
        overload = inplace_overload(ov)
        self.name = OpName(f"{ov.op.base_name}_"
                           + ("" if overload == "default" else f".{overload}"))
        self.__name__ = repr(self)

    def __repr__(self) -> str:
        return f"aten.{self.functional.op.base_name}_.{inplace_overload(self.functional)}"

    @functools.cached_property
    def schema(self):
        """The schema: that of the operator, but the first argument is written and returned."""
        from .schema import Schema

        text = str(self.functional.schema)
        first, rest = text[text.index("(") :].rpartition(" -> ")[0].split(" ", 1)
        first = re.sub(r"\(a[^)]*\)", "", first)
        if first.endswith("[]"):
            return Schema(f"{self.name}{first[:-2]}(a!)[] {rest} -> ()")
        return Schema(f"{self.name}{first}(a!) {rest} -> Tensor(a!)")

    def __call__(self, *args, **kwargs):
        flat = self.functional.bind(args, kwargs)
        if flat is None:
            from .op import no_match

            raise no_match(repr(self), [self.functional], args, kwargs)
        return inplace(self.functional, flat)


# `aten.sum.IntList_out` writes what `sum.dim_IntList` gives: names that follow no rule
_OUT_OF = {
    "all_out": "default",
    "unary_out": "default",
    "dtype_out": "default",
    "float_out": "p",
    "dim_max": "dim",
    "dim_min": "dim",
    "dim_values": "dim",
    "eigvals": "default",
    "out_mode": "Tensor_mode",
    "out_rcond_tensor": "rcond_tensor",
    "out_tol_tensor": "tol_tensor",
    "values_stable": "stable",
    "OutTensor": "Tensor",
    "OutScalar_Self": "Scalar_Self",
    "OutScalar_Other": "Scalar_Other",
}


def writing_overloads(entries: list, name: str) -> list:
    """The overloads whose results an overload of this name would write into given tensors."""
    outputs = {o.schema.returns[0].name for o in entries if o.schema.returns} - {""}
    if name in outputs or name in ("out", "grad_input"):
        return [o for o in entries if not o.is_view]
    stem = _OUT_OF.get(name) or (name.endswith("_out") and name[: -len("_out")])
    if not stem:
        return []
    return [o for o in entries if f"_{overload_name(o)}".endswith(f"_{stem}") and not o.is_view]


class OutOverload(Derived):
    """`ops.aten.add.out`: an operator that writes its results into given tensors.

    They are given as `out=`, or under the names that the results have.
    """

    def _begin(self, base: str, name: str, functional: list):
        from .op import OpName

        self.base, self.functional = base, functional
        self.__name__ = self.name = OpName(f"{base}.{name}")

    def __repr__(self) -> str:
        return f"aten.{self.name}"

    @functools.cached_property
    def schema(self):
        """The schema of the first one: further arguments, which are written and returned."""
        from .schema import Schema

        text = str(self.functional[0].schema)
        head = text[text.index("(") :].rpartition(" -> ")[0]
        count = len(self.functional[0].schema.returns)
        names = [r.name or "out" for r in self.functional[0].schema.returns]
        names = ["out"] if count == 1 else names
        marks = [f"Tensor({'abcdefgh'[i]}!)" for i in range(count)]
        head = re.sub(r"\((a[^)!]*)\)", "", head[:-1])
        star = "" if "*, " in head else ", *"
        given = ", ".join(f"{m} {n}" for m, n in zip(marks, names))
        returned = marks[0] if count == 1 else f"({', '.join(marks)})"
        return Schema(f"{self.name}{head}{star}, {given}) -> {returned}")

    def __call__(self, *args, **kwargs):
        from .op import no_match

        out = kwargs.get("out")
        outs = list(out) if isinstance(out, (tuple, list)) else [] if out is None else [out]
        for ov in self.functional:
            known = {k: v for k, v in kwargs.items() if k in ov.schema.names}
            named = [v for k, v in kwargs.items() if k not in known and k != "out"]
            flat = ov.bind(args, known)
            results = [*outs, *named]
            if flat is not None and len(results) == len(ov.schema.returns):
                return write_out(ov, flat, results[0] if len(results) == 1 else tuple(results))
        raise no_match(self.name, self.functional, args, kwargs)


from ..memory.views import (  # noqa: E402
    _recording,
    _repeats,  # noqa: F401
    copy_slices,
    current,  # noqa: F401
    describe,
    follow,
    found_anew,
    laid_like,
    link_views,  # noqa: F401
    may_write,
    refresh,
    refuse_left_behind,  # noqa: F401
    replay,
    retain_again,
    scatter,
    unhooked,
)
from . import stack, tape  # noqa: E402  (they need the names above)
