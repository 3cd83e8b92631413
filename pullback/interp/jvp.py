"""Jvp: forward mode.  A `Dual` carries a primal and a tangent, both handles of the level below.

Where the tangent comes from, in this order: the operator is a view or linear (the operator
itself), multilinear (product rule), has a pushforward formula, is pointwise (its pullback
formulas, since the Jacobian is diagonal), decomposes, or the pullback is transposed.
"""

from __future__ import annotations

import functools
import operator

from .. import errors
from ..core.events import BEGINS_LEAF
from ..core.formula import push_of
from ..core.handle import Tensor, make
from ..core.stack import bind
from ..table.expression import conj_value
from ..table.packets import ops
from ..threads.blocks import called_by, tied
from ..threads.state import state
from .box import Wrapped, lower, map_flat
from .interpreter import Interpreter

transposer = None  # set by autograd: (overload, args, outs, tangents) -> output tangents


class Dual(Wrapped):
    """A primal (`inner`) and its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, interp, inner, tangent):
        self.interp, self.inner, self.tangent = interp, inner, tangent

    def rewritten(self, new, everywhere):
        if not everywhere:
            return super().rewritten(new, everywhere)
        primal = new.inner if getattr(new, "interp", None) is self.interp else make(new)
        return self.__class__(self.interp, self._inner_rewritten(primal, True), self.tangent)


class Jvp(Interpreter):
    """One level of forward mode."""

    leaves_values = True
    title = "func.jvp"
    label = "DualTensor"

    def wrap(self, primal: Tensor, tangent: Tensor) -> Tensor:
        return make(Dual(self, primal, tangent))

    def primal(self, t):
        return t._payload.inner if self.mine(t) else t

    def tangent(self, value):
        """The tangent of a handle; None for anything that has none."""
        if type(value) is list or type(value) is tuple:
            return [self.tangent(v) for v in value]
        return value._payload.tangent if self.mine(value) else None

    def __enter__(self):
        # the switch of `forward_ad.set_fwd_grad_enabled`: each level begins with its own
        if not self.continues_tape:
            self.outside, state.forward = state.forward, True
        return super().__enter__()

    @tied
    def __exit__(self, *exc):
        if not self.continues_tape:
            state.forward = self.outside
        Interpreter.__exit__(self, *exc)

    def process(self, ov, flat):
        inside = state.forward
        if inside is self.outside:
            return self._pushed(ov, flat, inside)
        state.forward = self.outside
        try:
            return self._pushed(ov, flat, inside)
        finally:
            state.forward = inside

    def _pushed(self, ov, flat, tangents_too: bool):
        args = map_flat(self.primal, flat)
        if not tangents_too:
            return bind(ov, args)
        tangents = [self.tangent(v) for v in flat]
        if needs_decomposition(ov):
            return ov.decomposition(*flat)
        out = bind(ov, args)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        with called_by(called_by.FORMULA):
            new = push(ov, args, tangents, out, outs)
        if new is None:
            return out
        made = [
            self.wrap(o, t if t.dtype is o.dtype else t.to(o.dtype))
            if t is not None and isinstance(o, Tensor) and o.dtype.category >= 2
            else o
            for o, t in zip(outs, new)
        ]
        if isinstance(out, Tensor):
            return made[0]
        return type(out)(*made) if hasattr(out, "_fields") else type(out)(made)

    def begin_leaf(self, t: Tensor) -> None:
        """Make a tensor of a lower level a dual of this one, with tangent zero."""
        if not self.continues_tape:
            self.note_rebinding(t, t._payload)
            primal = make(t._payload)
            t._payload = Dual(self, primal, zeros(primal))

    on = {BEGINS_LEAF: begin_leaf}

    def restore(self, handle, old) -> None:
        if isinstance(handle._payload, Dual):
            lower(handle)


def needs_decomposition(ov) -> bool:
    """No derivative of its own, but made of operators that have one."""
    return (
        ov.rule is None
        and ov.decomposition is not None
        and ov.kind not in ("creation", "random", "view")
    )


def zeros(t: Tensor) -> Tensor:
    return ops.zeros_like(t)


def fill(value, tangent, dtype=None):
    """The tangent, or zeros where a tensor has none: of a dtype, where its own is of integers."""
    if isinstance(value, list):
        return [fill(v, t, dtype) for v, t in zip(value, tangent)]
    if tangent is not None or not isinstance(value, Tensor):
        return tangent
    return zeros(value) if value.dtype.category >= 2 else ops.zeros_like(value, dtype=dtype)


def _floating(value, dtype):
    """A tensor of integers or truth values in another dtype, anything else as it is."""
    whole = isinstance(value, Tensor) and value.dtype.category < 2
    return value.to(dtype) if whole and dtype is not None else value


def _or_zeros(value, tangent):
    """The tangent, or zeros of the tensor's own dtype: beside it integers are operands, too."""
    if isinstance(value, list):
        return [_or_zeros(v, t) for v, t in zip(value, tangent)]
    return zeros(value) if tangent is None and isinstance(value, Tensor) else tangent


def has_tangent(tangent) -> bool:
    """Is there a tangent, or one in a list?"""
    return (
        any(t is not None for t in tangent)
        if isinstance(tangent, (list, tuple))
        else tangent is not None
    )


def push(ov, args: tuple, tangents: list, out, outs: list) -> list | None:
    """Tangents of the outputs; None if the outputs do not vary."""
    op, names = ov.op, ov.schema.names
    rule = ov.rule
    if ov.is_view and op.push is None and (rule is not None or op.linear):
        return _listed(bind(ov, (tangents[0], *args[1:])))
    floating = any(isinstance(o, Tensor) and o.dtype.category >= 2 for o in outs)
    if rule is not None and floating and rule.condition(args):
        refuse_unlisted(ov, tangents)
    if op.linear:
        chosen = [names.index(n) for n in op.linear]
        if not any(has_tangent(tangents[i]) for i in chosen):
            return None
        linear = list(args)
        for i in chosen:
            linear[i] = _or_zeros(args[i], tangents[i])
        return _listed(bind(ov, tuple(linear)))
    if rule is None:
        ignored = op.nondiff or ov.never_differentiable or ov.is_view
        if ov.kind in ("creation", "random") or not floating or ignored:
            return None
        raise errors.DerivativeNotWritten(
            errors.text(
                f"Trying to use forward AD with {ov.op.base_name} that does not support it "
                f"({errors.user_line(2)})",
                cure=f"give the table entry '{ov.name}' a `grad` or a `push`",
            )
        )
    if not any(has_tangent(tangents[i]) for i in rule.inputs) or not rule.condition(args):
        return None
    if op.multilinear:
        return _product_rule(ov, args, tangents)
    explicit = push_of(ov)
    if explicit is not None:
        found = [o.dtype for o in outs if isinstance(o, Tensor)]
        dtype = next((d for d in found if d.category >= 2), None)
        full = [
            fill(a, t, dtype) if i in rule.inputs else None
            for i, (a, t) in enumerate(zip(args, tangents))
        ]
        if op.promote in ("default", "float"):  # formulas see integers as the kernel does
            args = tuple([_floating(a, dtype) if i in rule.inputs else a
                          for i, a in enumerate(args)])
        return list(explicit.run(args, full, outs))
    if ov.kind == "pointwise":
        return [_diagonal(ov, args, tangents, outs)]
    return transposer(ov, args, tangents, outs)


def refuse_unlisted(ov, tangents: list) -> None:
    """Refuse tangents of arguments without derivative, as reverse mode refuses their history."""
    known = (*ov.rule.input_names, *ov.op.nondiff, "output")
    for i in ov.schema.tensor_positions:
        name = ov.schema.args[i].name
        if has_tangent(tangents[i]) and name not in known:
            raise errors.NotDifferentiable(
                errors.text(
                    f"{ov.op.base_name} is not differentiable with respect to argument '{name}', "
                    f"which has a tangent ({errors.user_line(2)})",
                    cure=f"pass {name}.detach()",
                )
            )


def _listed(value) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _product_rule(ov, args, tangents) -> list:
    names, terms = ov.schema.names, []
    for name in ov.op.multilinear:
        i = names.index(name)
        if has_tangent(tangents[i]):
            varied = list(args)
            varied[i] = fill(args[i], tangents[i])
            terms.append(_listed(bind(ov, tuple(varied))))
    return [functools.reduce(operator.add, parts) for parts in zip(*terms)]


def _diagonal(ov, args, tangents, outs) -> Tensor:
    """The pullback formulas applied to tangents: each partial Jacobian is diagonal."""
    rule = ov.rule
    flags = [True] * len(rule.inputs)
    saved = rule.save(flags, args, outs)
    complex_ = outs[0].dtype.is_complex or any(
        isinstance(args[i], Tensor) and args[i].dtype.is_complex for i in rule.inputs
    )
    backward = rule.backward_complex if complex_ else rule.backward_real
    total = None
    for k, i in enumerate(rule.inputs):
        t = tangents[i]
        if t is None:
            continue
        needs = [j == k for j in range(len(rule.inputs))]
        part = backward(saved, (conj_value(t) if complex_ else t,), needs)[k]
        if part is None:
            continue
        part = conj_value(part) if complex_ else part
        total = part if total is None else total + part
    if total is None:
        return zeros(outs[0])
    out = outs[0]
    if total.dtype.is_complex and not out.dtype.is_complex:
        total = total.real
    if total.dtype is not out.dtype:
        total = total.to(out.dtype)
    if tuple(total.shape) != tuple(out.shape):
        total = total.expand(out.shape)
    return total
