"""Views, in-place operators, `out=` and versions: mutation as "pure operator + rebinding".

An eager write really changes the buffer and moves the version; a write to a boxed tensor rebinds
the handle. A write through a view is a scatter into its base, and stale views are replayed when
next used. Read next: `fast.py`.
"""

from __future__ import annotations

import functools
import math
import re

import numpy as np

from .. import errors
from . import dtype as dt
from .evaluate import run_raw
from .fake import Fake
from .handle import INFERENCE, Link, Tensor, cell_of, is_buffer, make
from .state import state, tick

_ndarray = np.ndarray


# versions


def bump(t: Tensor) -> None:
    """Note that the memory of a handle was written."""
    cell = cell_of(t)
    if cell is not INFERENCE:
        cell.version += 1
        cell.stamps = (*cell.stamps[1 - cell.KEPT :], tick())
        cell.where = tape.place()


def mark_written(*tensors: Tensor) -> None:
    """For code that wrote the tensors' arrays directly."""
    where, now = tape.place(), tick()
    for t in tensors:
        cell = t._cell or cell_of(t)
        if cell is INFERENCE:
            continue
        cell.version += 1
        cell.stamps = (*cell.stamps[1 - cell.KEPT :], now)
        cell.where = where


def mark_inference(out) -> None:
    """Results of inference mode have no version of their own; views get that of their base."""
    for t in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(t, Tensor) and t._cell is None:
            t._cell = INFERENCE


# views


def link_views(ov, flat: tuple, out, level: int) -> None:
    """Tie the outputs of a view operator to the base whose memory they share."""
    source = flat[0]
    outs = out if isinstance(out, (list, tuple)) else (out,)
    cell = cell_of(source)
    link = source._link
    base, chain = (source, ()) if link is None else (link.base, link.chain)
    if chain and "storage_offset" in ov.schema.names:
        chain = ()  # as_strided names places of the memory, whatever view it is called on
    many = isinstance(out, (list, tuple))
    hidden = not state.record[level] or (link is not None and link.no_grad)
    kind = Link if link is None else link.__class__
    for i, t in enumerate(outs):
        t._cell = cell
        if ov.name != "detach":
            step = (ov, flat[1:], i if many else None)
            multi = many or (link is not None and link.multi)
            t._link = kind(base, (*chain, step), multi, hidden, cell.version)


def replay(t: Tensor, chain: tuple) -> Tensor:
    """Apply a chain of view operators."""
    for ov, rest, number in chain:
        t = stack.bind(ov, (t, *rest))
        if number is not None:
            t = t[number]
    return t


def refresh(t: Tensor) -> None:
    """Bring a view up to date with its base."""
    link = t._link
    version = t._cell.version
    if link.seen == version:
        return
    if link.__class__ is not Link:
        link.stale(t)  # an output of a custom function: its history cannot be made again
        return
    link.seen = version
    base = link.base
    _replay(t, link, base)
    if t._meta is not None and t._meta.retains:
        _retain_again(t)


def _replay(t: Tensor, link: Link, base: Tensor) -> None:
    if is_buffer(t._data) and is_buffer(base._data):
        if base._edge is None and (t._edge is None or isinstance(t._edge, tape.Accumulate)):
            return  # a view that was made a leaf stays one
        if not state.record[0] and not link.no_grad:
            with _recording(0):
                t._edge = replay(base, link.chain)._edge
            return
    again = replay(base, link.chain)
    t._edge = again._edge
    if not (is_buffer(t._data) and is_buffer(base._data)):
        follow(t, again)


def follow(view: Tensor, new: Tensor) -> None:
    """A view takes other data, because its base did; levels that ask are told."""
    interp = getattr(new._data, "interp", None)
    if interp is not None and interp.shares and is_buffer(view._data):
        interp.note_rebinding(view, view._data)
    view._data = new._data


def current(t: Tensor) -> Tensor:
    """A handle with the present value and history of another, safe from later rebinding."""
    if t._link is not None:
        refresh(t)
    return make(t._data, t._edge)


class _recording:
    """Switch the tape of one level on for a moment."""

    def __init__(self, level: int, on: bool = True):
        self.level, self.on = level, on

    def __enter__(self):
        self.before = state.record[self.level]
        state.record[self.level] = self.on

    def __exit__(self, *exc):
        state.record[self.level] = self.before


@functools.cache
def _scatter(ov):
    """Compiled `scatter` formula of a view: (base, new, *rest) -> new base."""
    from .formula import lookup

    text = ov.op.scatter
    names = [a.name for a in ov.schema.args[1:]]
    import ast

    space = {"__name__": "pullback.generated"}
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Name) and node.id not in ("base", "new", *names):
            found = lookup(node.id)
            if found is not None:
                space[node.id] = found
    return eval(f"lambda {', '.join(['base', 'new', *names])}: {text}", space)


def scatter(base: Tensor, chain: tuple, new: Tensor) -> Tensor:
    """The base with `new` in the place of the view that `chain` describes."""
    values = [base]
    for ov, rest, number in chain[:-1]:
        t = stack.bind(ov, (values[-1], *rest))
        values.append(t if number is None else t[number])
    for (ov, rest, number), value in zip(reversed(chain), reversed(values)):
        if number is not None:
            new = _scatter_piece(ov, rest, number, value, new)
        elif ov.op.scatter is None:
            new = _scatter_by_position(ov, rest, value, new)
        else:
            new = _scatter(ov)(value, new, *rest)
    return new


def _scatter_by_position(ov, rest, base, new):
    """Write through a view without scatter formula: ask the view where its elements come from."""
    from .table import ops

    count = math.prod(base.shape)
    places = run_raw(ov, (np.arange(count).reshape(base.shape), *rest)).reshape(-1)
    if len(np.unique(places)) != len(places):
        raise errors.ViewWriteError(
            errors.text(
                f"a tensor made by {ov.op.base_name} is being written, but several of its "
                "elements are one "
                f"element of its base ({errors.user_line(2)})",
                _state(new),
                "clone() it first",
            )
        )
    index = make(places) if base.device.type == "cpu" else make(places).to(base.device)
    flat = ops.index_put(ops.reshape(base, (count,)), [index], ops.reshape(new, (len(places),)))
    return ops.reshape(flat, tuple(base.shape))


def _scatter_piece(ov, rest, number, base, new):
    """Write one of several views made by one call (split, unbind): refill the dim."""
    from .table import ops

    pieces = list(stack.bind(ov, (base, *rest)))
    pieces[number] = new
    dim = rest[-1] if rest else 0
    return ops.stack(pieces, dim) if ov.op.base_name == "unbind" else ops.cat(pieces, dim)


# writes


def may_write(x: Tensor, tracked: bool, level: int, same: bool = False) -> None:
    """Refuse writes that would lose history or give one element two values."""
    data = x._data
    if x._cell is INFERENCE and not state.inference:
        raise errors.InferenceTensor(
            errors.text(
                "Inplace update to inference tensor outside InferenceMode is not allowed "
                f"({errors.user_line(2)})",
                _state(x),
                "clone() it to get a normal tensor before writing",
            )
        )
    if not same and _repeats(data):
        raise errors.ViewWriteError(
            errors.text(
                "unsupported operation: more than one element of the written-to tensor refers to "
                "a single memory "
                f"location ({errors.user_line(2)})",
                f"shape {list(data.shape)}, strides {list(x.stride())}",
                "clone() the tensor before performing the operation",
            )
        )
    if not state.record[level]:
        return
    link = x._link
    if isinstance(x._edge, tape.Accumulate) and x._edge.guarded:  # be it a view or not
        raise errors.LeafWriteError(
            errors.text(
                f"a leaf Variable that requires grad is being used in an in-place operation "
                f"({errors.user_line(2)})",
                _state(x),
                ["run the update under no_grad()", "or compute on x.clone()"],
            )
        )
    if link is None:
        return
    base_tracked = link.base._edge is not None
    if not (tracked or base_tracked):
        return
    leaf = isinstance(link.base._edge, tape.Accumulate) and link.base._edge.guarded
    if leaf or x._edge is not None and not base_tracked:  # then the leaf is itself a view
        raise errors.LeafWriteError(
            errors.text(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation "
                f"({errors.user_line(2)})",
                _state(x),
                "run the update under no_grad()",
            )
        )
    if link.__class__ is not Link:
        link.refuse(x, "is being modified inplace")
    if link.multi:
        maker = link.chain[-1][0].op.base_name
        raise errors.ViewWriteError(
            errors.text(
                f"Output of {maker} is a view and is being modified inplace "
                f"({errors.user_line(2)}). This view is the "
                "output of a function that returns multiple views. Such functions do not allow "
                "the output views "
                "to be modified inplace",
                _state(x),
                "index the base instead, or clone() the piece",
            )
        )
    if link.no_grad:
        raise errors.ViewWriteError(
            errors.text(
                "A view was created in no_grad mode and is being modified inplace with grad mode "
                "enabled "
                f"({errors.user_line(2)})",
                _state(x),
                "make the view outside of no_grad, or write under no_grad too",
            )
        )


def _repeats(data) -> bool:
    """Is an element of real memory met more than once, because a dim was expanded?"""
    return (
        is_buffer(data)
        and data.size > 1
        and 0 in data.strides
        and any(s == 0 and n > 1 for s, n in zip(data.strides, data.shape))
    )


def _state(x: Tensor) -> str:
    return f"tensor: {x.dtype.name}{list(x._data.shape)}"


def inplace(ov, flat: tuple) -> Tensor:
    """`x.op_(...)`: the pure operator, then the result takes x's place."""
    x = flat[0]
    if ov.is_view:
        return inplace_view(ov, flat)
    if not isinstance(x, Tensor):
        if type(x) is list:
            from .foreach import inplace as each

            return each(ov, flat)
        raise errors.ArgumentError(f"{ov.op.base_name}_ wants a tensor, got {type(x).__name__}")
    if x._link is not None:
        refresh(x)
    owner = state.stack[state.mode] if state.mode else None
    if owner is not None and owner.adopts and type(x._data) is _ndarray:
        owner.adopt(x)
    raw, tracked, space = stack.gather(ov, flat)
    same = ov.name in ("fill.Scalar", "zero")
    if same and x._link is not None and x._link.chain[-1][0].name == "expand":
        return _fill_expanded(ov, flat)
    same = same and not (tracked and state.record[0])
    may_write(x, tracked, stack.level_of(ov, x._data), same)
    plain = not state.mode and (
        space is not None or all(is_buffer(t._data) for t in stack.tensors_in(flat))
    )
    if plain and not (tracked and state.record[0]) and not ov.is_composite:
        fill = ov.op.fill
        try:
            if fill is not None and type(x._data) is _ndarray and fill(*raw):
                bump(x)
                return x
            new = run_raw(ov, raw, space)
        except (errors.PullbackError, NotImplementedError, MemoryError):
            raise
        except Exception as error:
            raise stack.translated(ov, flat, error) from error
        if new.shape != x._data.shape or new.dtype != x._data.dtype:
            check_result(ov, x, new.shape, dt.of(new.dtype))
        store(x._data, new)
        bump(x)
        return x
    new = stack.bind_as_given(ov, _shadowed(ov, flat, x))
    check_result(ov, x, new._data.shape, new.dtype)
    if new.dtype is not x.dtype:
        new = new.to(x.dtype)
        if ov.op.promote == "bool" and x._edge is not None:
            from .table import ops

            new = ops.fill(make(x._data, x._edge), 0) + new  # tracked still, with derivative zero
    return assign(x, new)


def _fill_expanded(ov, flat: tuple) -> Tensor:
    """Fill an expanded tensor: what was expanded is filled instead, each element once."""
    x = flat[0]
    link = x._link
    inplace(ov, (replay(link.base, link.chain[:-1]), *flat[1:]))
    refresh(x)
    return x


def inplace_view(ov, flat: tuple) -> Tensor:
    """`x.t_()` and the like: the handle itself becomes the view; no memory is written."""
    x = flat[0]
    if x._link is not None:
        refresh(x)
    if state.record[tape.level_own(x._data)] and isinstance(x._edge, tape.Accumulate):
        raise errors.LeafWriteError(
            errors.text(
                f"a leaf Variable that requires grad is being used in an in-place operation "
                f"({errors.user_line(2)})",
                _state(x),
                f"use {ov.op.base_name}() instead",
            )
        )
    link = x._link
    new = stack.bind(ov, (make(x._data, x._edge), *flat[1:]))
    x._data, x._edge = new._data, new._edge
    if x._meta is not None and x._meta.retains:
        _retain_again(x)
    cell_of(x)
    if link is not None:
        x._link = Link(
            link.base, (*link.chain, (ov, flat[1:], None)), link.multi, link.no_grad, link.seen
        )
    return x


def store(buffer, values) -> None:
    """Overwrite a raw array."""
    if type(buffer) is _ndarray:
        np.copyto(buffer, values, casting="unsafe")
    else:
        buffer[...] = values


def _shadowed(ov, flat: tuple, x: Tensor) -> tuple:
    """Flat arguments with x replaced by a stand-in that keeps its old value."""
    data = x._data
    saves_self = (
        ov.is_composite
        or ov.rule is None
        or any(
            kind == "arg" and flat[ov.schema.names.index(name)] is x
            for _, kind, name, _ in ov.rule.saves
        )
    )
    if is_buffer(data) and saves_self and state.record[0]:
        data = data.copy()
    elif saves_self and not is_buffer(data) and data.cell is not None:  # of memory to be written
        data = data.shadow()
    shadow = make(data, x._edge)
    return tuple(shadow if v is x else v for v in flat)


def _retain_again(t: Tensor) -> None:
    """A tensor that keeps its gradient has a new history by a write."""
    from .hooks import retain_again

    retain_again(t)


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


def assign(x: Tensor, new: Tensor) -> Tensor:
    """Give x the value and the history of `new`, through the view chain if x is a view."""
    level = max(tape.level_own(x._data), tape.level_own(new._data), state.mode)
    record = state.record[level]
    link = x._link
    real = is_buffer(x._data) and is_buffer(new._data)
    base = x if link is None else link.base
    if real or (type(x._data) is Fake and type(new._data) is Fake):
        if real:
            store(x._data, new._data)
        if record and (new._edge is not None or base._edge is not None):
            base._edge = new._edge if link is None else copy_slices(base, link.chain, new)
            if base._meta is not None and base._meta.retains:
                _retain_again(base)
        bump(x)
        if link is not None:
            link.seen = -1
        return x
    whole = new if link is None else scatter(make(base._data, base._edge), link.chain, new)
    moved = rebind(base, whole)
    base._edge = whole._edge if record else base._edge
    if not moved:
        bump(x)
    if link is not None:
        follow(x, new)
        x._edge, link.seen = new._edge, -1
        refresh(x)
    if base._meta is not None and base._meta.retains:
        _retain_again(base)
    return x


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
        if t._edge is not None and state.record[max(level, tape.level_own(t._data))]:
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
        if tuple(t._data.shape) != tuple(r._data.shape):
            may_resize(t)
            rebind(t, r)
            bump(t)
        else:
            may_write(t, False, level)
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


def may_resize(t: Tensor) -> None:
    """Refuse to give a tensor other memory if its own belongs to an array from outside."""
    base = t if t._link is None else t._link.base
    if base._meta is not None and base._meta.creation == "borrowed":
        raise errors.ShapeError(
            errors.text(
                f"Trying to resize storage that is not resizable ({errors.user_line(2)}): the "
                "memory belongs to an array of another library",
                _state(t),
                "give out= a tensor of the result's shape, or clone() it first",
            )
        )


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
                        _state(t),
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


class InplaceOverload:
    """`ops.aten.add_.Tensor`: the in-place variant of an overload."""

    def __init__(self, ov):
        self.functional = ov
        overload = inplace_overload(ov)
        self.name = f"{ov.op.base_name}_" + ("" if overload == "default" else f".{overload}")
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


class OutOverload:
    """`ops.aten.add.out`: an operator that writes its results into given tensors.

    They are given as `out=`, or under the names that the results have.
    """

    def __init__(self, base: str, name: str, functional: list):
        self.base, self.functional = base, functional
        self.__name__ = self.name = f"{base}.{name}"

    def __repr__(self) -> str:
        return f"aten.{self.name}"

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


from . import stack, tape  # noqa: E402  (they need the names above)


class CopySlices(tape.Node):
    """History of a base after a write through a view: the pullback of the scatter."""

    __slots__ = ("chain",)

    class _Rule:
        name, saves = "CopySlices", ()

    def apply(self, grads, needs):
        grad = grads[0]
        if grad is None:
            return [None, None]
        piece = replay(grad, self.chain)
        first = None
        if needs[0]:
            from .table import ops

            first = scatter(grad, self.chain, ops.zeros_like(piece))
        return [first, piece if needs[1] else None]


def copy_slices(base: Tensor, chain: tuple, new: Tensor) -> CopySlices:
    """The node of a base whose view was overwritten by `new`."""
    metas = [None if t._edge is None else (t._data.shape, t._data.dtype) for t in (base, new)]
    node = tape.make_node(
        CopySlices, CopySlices._Rule, (base._edge, new._edge), tuple(metas), (), 0
    )
    node.chain = chain
    return node
