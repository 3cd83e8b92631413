"""Vmap: batching.  A `Batched` hides one dimension of the handle below.

Rules get batched operands with the hidden dimension in front.  Pointwise operators need none,
composites neither; a missing rule falls back to the decomposition, then to a loop that says so
once.
"""

from __future__ import annotations

import warnings

from .. import errors
from ..array import dtype as dt
from ..array.failures import failure
from ..array.generator import Generator, default_generator
from ..array.layout import is_arranged
from ..core.events import BEGINS_LEAF
from ..core.handle import Tensor, make
from ..core.stack import bind
from ..table.packets import ops
from .box import Wrapped, map_tensors
from .interpreter import Interpreter


class _Fallback:
    """Whether operators without a rule may run once per example, and whether that is said."""

    allowed = warns = True


fallback = _Fallback()
_warned: set = set()


class Batched(Wrapped):
    """A handle with a hidden dimension."""

    __slots__ = ("dim",)
    hides = True

    def __init__(self, interp, inner, dim: int):
        self.interp, self.inner, self.dim = interp, inner, dim

    def rewritten(self, new, everywhere):
        if isinstance(new, Batched) and new.interp is self.interp and new.dim != self.dim:
            new = Batched(new.interp, ops.movedim(new.inner, new.dim, self.dim), self.dim)
        return super().rewritten(new, everywhere)

    @property
    def shape(self):
        shape = self.inner._payload.shape
        return shape[: self.dim] + shape[self.dim + 1 :]

    @property
    def ndim(self):
        return self.inner._payload.ndim - 1

    @property
    def strides(self):
        strides = self.inner._payload.strides
        return strides[: self.dim] + strides[self.dim + 1 :]

    def concrete(self, handle, what: str):
        raise errors.DataDependentError(
            errors.text(
                f"vmap: {what} on a Tensor with a different value for each example "
                f"({errors.user_line(3)})",
                f"tensor: {handle.dtype.name}{list(handle.shape)} under vmap",
                "use where() instead of data-dependent control flow",
            )
        )

    def describe(self, handle) -> str:
        return f"BatchedTensor(lvl={self.interp.level}, bdim={self.dim}, value={self.inner!r})"


class Vmap(Interpreter):
    """One level of batching over `size` examples."""

    title = "vmap"
    random = maps = True
    counts_births = True

    def __init__(self, size: int, randomness: str = "error"):
        self.size, self.randomness = size, randomness

    def wrap(self, t: Tensor) -> Tensor:
        return make(Batched(self, t, 0))

    def stacked(self, t: Tensor) -> Tensor:
        """The handle below with the hidden dimension in front; repeated if there is none."""
        if self.mine(t):
            return self.front(t)
        return ops.expand(ops.unsqueeze(t, 0), (self.size, *t.shape))

    def front(self, t):
        """The handle below with the hidden dimension in front."""
        if not self.mine(t):
            return t
        box = t._payload
        return box.inner if box.dim == 0 else ops.movedim(box.inner, box.dim, 0)

    def process(self, ov, flat):
        if ov.is_random:
            return self._random(ov, flat)
        batched, args = self._opened(flat)
        rule = ov.batch_rule
        if (ov.op.promote in _PROMOTES or ov.op.promotes is not None) and not ov.same_dtype:
            args = _promoted(ov, batched, args)
        if rule is not None:
            if ov.op.or_float32:
                rule = _in_one_dtype(ov, rule)
            try:
                out = rule(self.size, batched, *args)
            except Exception as error:
                shown = failure(ov, flat, error)
                if shown is error:
                    raise
                raise shown from error
            if ov.result_class is not None and type(out) is tuple:
                out = ov.result_class(*out)
        elif ov.kind == "pointwise":
            out = pointwise(ov, batched, args)
        elif ov.decomposition is not None:
            return _cut(ov, ov.decomposition(*flat))
        else:
            out = self._loop(ov, batched, args)
        return map_tensors(self._in_rows if ov.in_rows else self.wrap, out)

    def _opened(self, flat) -> tuple[tuple, tuple]:
        """Which arguments are batched; and the handles below, their hidden dimension in front."""
        batched, args = [], []
        for v in flat:
            if isinstance(v, Tensor):
                box = v._payload
                if getattr(box, "interp", None) is self and not box.outer:
                    batched.append(True)
                    args.append(box.inner if box.dim == 0 else self.front(v))
                    continue
            elif type(v) in (list, tuple):
                batched.append([self.mine(x) for x in v])
                args.append(map_tensors(self.front, v))
                continue
            batched.append(False)
            args.append(v)
        return tuple(batched), tuple(args)

    def _in_rows(self, t: Tensor) -> Tensor:
        """Wrap a result whose examples are row-major, as those of a loop: so it has its views."""
        box = Batched(self, t, 0)
        return make(box if is_arranged(box) else Batched(self, t.contiguous(), 0))

    def _random(self, ov, flat):
        if self.randomness == "error":
            raise errors.TransformError(
                errors.text(
                    "vmap: called random operation while in randomness error mode: "
                    f"{ov.op.base_name} ({errors.user_line(2)})",
                    cure="pass randomness='same' or 'different' to vmap",
                )
            )
        batched = any(self.mine(v) for v in flat)
        if self.randomness == "same":
            if not batched:
                return bind(ov, flat) if self.level == 0 else self._below(ov, flat)
            if ov.op.by_shape:  # one draw is that of all examples
                return self._below(ov, tuple(
                    self._pick(v, 0).contiguous() if self.mine(v) else v for v in flat))
            return self._same_numbers(ov, flat)
        if ov.batch_rule is not None:  # one draw for all, as PyTorch has it
            flags = tuple(isinstance(v, Tensor) for v in flat)
            args = tuple(v if not f else self.front(v) if self.mine(v) else
                         self.stacked(v).contiguous() for v, f in zip(flat, flags))
            return map_tensors(self.wrap, self._below_in(ov.batch_rule, self.size, flags, *args))
        outs = [self._below(ov, tuple(self._pick(v, i) for v in flat)) for i in range(self.size)]
        if isinstance(outs[0], Tensor):
            return self.wrap(ops.stack(outs, 0))
        return tuple(self.wrap(ops.stack(list(parts), 0)) for parts in zip(*outs))

    def _same_numbers(self, ov, flat):
        """A draw that depends on values: each example gets it from the same state."""
        from ..threads.state import state

        if state.mode:
            raise errors.TransformError(errors.text(
                "Vmap does not currently support same randomness with a batched tensor input in a "
                f"captured function: {ov.op.base_name} ({errors.user_line(3)})",
                cure="draw numbers of its shape first (torch.rand_like), and use these"))
        source = next((v for v in flat if type(v) is Generator), default_generator)
        before, outs = source.get_state(), []
        for i in range(self.size):
            source.set_state(before)
            out = self._below(ov, tuple(self._pick(v, i) for v in flat))
            outs.append(out if isinstance(out, tuple) else (out,))
        found = tuple([self.wrap(ops.stack(list(parts), 0)) for parts in zip(*outs)])
        return found if isinstance(out, tuple) else found[0]

    def _below(self, ov, flat):
        return self._below_in(bind, ov, flat)

    def _below_in(self, function, *args):
        """Call a function with this level's randomness out of the way."""
        from ..threads.state import state

        before, state.random = state.random, self.previous[1]
        try:
            return function(*args)
        finally:
            state.random = before

    def _pick(self, value, i: int):
        return ops.select(self.front(value), 0, i) if self.mine(value) else value

    def _loop(self, ov, batched, args):
        if not fallback.allowed or not self.size:
            raise errors.TransformError(errors.text(
                f"vmap: Batching rule not implemented for {ov.name} ({errors.user_line(2)})",
                "running it once per example is switched off" if self.size else
                "The fallback path does not support vmap over dims of size 0",
                "give its table entry a `batch`"))
        if fallback.warns and ov.name not in _warned:
            _warned.add(ov.name)
            warnings.warn(
                f"vmap: operator '{ov.name}' has no batching rule; it runs once per example. Give "
                "its "
                "table entry a `batch` to make it fast.",
                stacklevel=2,
            )

        def pick(value, flag, i):
            if type(value) is list:
                return [pick(v, f, i) for v, f in zip(value, flag)]
            return ops.select(value, 0, i) if flag else value

        outs = [
            bind(ov, tuple(pick(v, f, i) for v, f in zip(args, batched))) for i in range(self.size)
        ]
        if isinstance(outs[0], Tensor):
            return ops.stack(outs, 0)
        stacked = [ops.stack(list(parts), 0) for parts in zip(*outs)]
        return type(outs[0])(*stacked) if hasattr(outs[0], "_fields") else tuple(stacked)

    def begin_leaf(self, t: Tensor) -> None:
        """Give each example its own leaf, if the tensor was made inside."""
        if id(t) in self.born:
            t._payload = Batched(self, self.stacked(make(t._payload)), 0)

    on = {BEGINS_LEAF: begin_leaf}

    def note_rebinding(self, handle, old) -> None:
        if id(handle) not in self.born:
            raise errors.BatchedWriteError(
                errors.text(
                    "vmap: this inplace write is not possible: a value that differs per example "
                    "was written into a tensor from outside of vmap "
                    f"({errors.user_line(2)})",
                    f"tensor: {handle.dtype.name}{list(handle._payload.shape)}"
                    f"{errors.variable_of(handle)}",
                    "create the tensor inside the mapped function, or pass it as a mapped argument",
                )
            )


_PROMOTES = ("default", "float", "bool", "real")


class _Logical:
    """What promotion sees of a batched operand."""

    __slots__ = ("dtype", "ndim")

    def __init__(self, tensor, batched):
        self.dtype, self.ndim = tensor.dtype, tensor.ndim - bool(batched)


def _cut(ov, out):
    """The results of a decomposition, without history where the operator's results have none."""
    kept = ov.op.diff_outputs
    if not isinstance(kept, tuple) or all(kept) or not isinstance(out, (list, tuple)):
        return out
    cut = [o if k or not isinstance(o, Tensor) else o.detach() for o, k in zip(out, kept)]
    return cut if isinstance(out, list) else tuple(cut)


def _promoted(ov, batched, args) -> tuple:
    """Operands in the dtype of one example: a number of each example has a dim, but is 0-d."""
    if not _mixed(ov, args):
        return args
    logical = []
    for i in ov.promoted:
        value, flags = args[i], batched[i]
        if type(value) not in (list, tuple):
            value, flags = (value,), (flags,)
        logical += [_Logical(v, f) if isinstance(v, Tensor) else v for v, f in zip(value, flags)]
    if all(v.ndim for v in logical if type(v) is _Logical):
        return args
    common = dt.result_type(logical)
    if ov.op.promote == "float" and common.category < 2:
        common = dt.default()  # at once: 256 beside uint8 is not 0 on the way

    def cast(t):
        return t if t.dtype is common else t.to(common)

    return tuple([map_tensors(cast, v) if i in ov.promoted else v for i, v in enumerate(args)])


def _mixed(ov, args) -> bool:
    """Are there several dtypes among the tensors that are promoted?"""
    first = None
    for i in ov.promoted:
        value = args[i]
        for v in value if type(value) in (list, tuple) else (value,):
            if isinstance(v, Tensor):
                dtype = v.dtype
                if first is None:
                    first = dtype
                elif dtype is not first:
                    return True
    return False


def _in_one_dtype(ov, rule):
    """A rule for operands of which some may be wider than half precision: it gets all of them in
    the wide dtype, and its results have the dtypes of the operator's own, rounded once."""

    def run(n, batched, *args):
        dtypes = {a.dtype for a in args if isinstance(a, Tensor) and a.dtype.is_floating_point}
        if len(dtypes) < 2:
            return rule(n, batched, *args)
        wide = max(dtypes, key=lambda d: d.itemsize)
        outs = rule(n, batched, *[a.to(wide) if isinstance(a, Tensor) and a.dtype in dtypes else a
                                  for a in args])
        return tuple([o if o is None else o.to(d) for o, d in zip(outs, ov.dtype_rule(*args))])

    return run


def pointwise(ov, batched, args):
    """Pad batched operands so that their own dims line up from the right."""
    rank = max((a.ndim - bool(b) for a, b in zip(args, batched) if isinstance(a, Tensor)),
               default=0)
    aligned = []
    for a, b in zip(args, batched):
        if b is True and a.ndim - 1 < rank:
            a = ops.reshape(a, (a.shape[0],) + (1,) * (rank - a.ndim + 1) + tuple(a.shape[1:]))
        aligned.append(a)
    return bind(ov, tuple(aligned))
