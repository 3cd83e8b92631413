"""What a call of a registered operator is: an `autograd.Function` whose forward is the overload.

That is what gives reverse and forward mode, `vmap`, capture and `compile`.  Lists of tensors are
spread for it, since a `Function` takes tensors one by one.  Read next: `autograd/function.py`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .. import errors
from ..autograd.function import Function
from ..core.handle import Tensor
from ..core.stack import bind
from ..table.packets import ops

if TYPE_CHECKING:
    from .definition import CustomOpDef


def flattened(specs: list, flat) -> tuple:
    """(length of each list of tensors or None, all values with those lists spread)."""
    widths, leaves = [], []
    for a, v in zip(specs, flat):
        if a.is_list and a.is_tensor and v is not None:
            widths.append(len(v))
            leaves += v
        else:
            widths.append(None)
            leaves.append(v)
    return tuple(widths), leaves


def rebuilt(widths: tuple, leaves) -> tuple:
    """The values whose lists of tensors were spread; what comes behind them is left out."""
    items = iter(leaves)
    return tuple([next(items) if w is None else [next(items) for _ in range(w)] for w in widths])


def spread(widths: tuple, values) -> list:
    """One value per leaf from one per argument; what is no list stands for a whole one."""
    found = []
    for w, v in zip(widths, values):
        found += [v] if w is None else list(v) if isinstance(v, (list, tuple)) else [v] * w
    return found


def function_for(op: CustomOpDef) -> type:
    """The `autograd.Function` that a call of an operator is.

    Where a result is a list, it returns all tensors one by one, and then the lengths of the lists.
    """
    call = _Call(op)
    methods = {"forward": call.forward, "setup_context": call.setup_context,
               "backward": call.backward, "vmap": call.vmap}
    if op._jvp is not None:
        methods["jvp"] = call.jvp
    made = type(Function)(
        f"GeneratedBackwardFor_{op._namespace}_{op._base}_{op._overload or 'default'}",
        (Function,),
        {k: staticmethod(v) for k, v in methods.items()},
    )
    made._registered, made._emits = op, True
    return made


class _Call:
    """The static methods of the `Function` that a call of an operator is."""

    def __init__(self, op: CustomOpDef):
        self.op = op
        self.lists, self.lists_out = op._lists, op._lists_out  # are lists of tensors among them?

    def each(self, values):
        """One value for each result."""
        several = self.op._count > 1 and isinstance(values, (list, tuple))
        return values if several else (values,) * self.op._count

    def flat_results(self, out):
        """Results as the function returns them."""
        if not self.lists_out:
            return out
        widths, leaves = flattened(self.op.schema.returns, self.each(out))
        return *leaves, widths

    def arguments(self, inputs: tuple) -> tuple:
        """The user's arguments, lists of tensors put together again."""
        return rebuilt(inputs[0], inputs[1:]) if self.lists else inputs

    def named(self, args: tuple) -> dict:
        """Those of the arguments that are keyword-only."""
        first = self.op._keywords
        return dict(zip(self.op.schema.names[first:], args[first:]))

    def forward(self, *inputs):
        op, flat = self.op, tuple(self.arguments(inputs))
        if op._written:
            return self.flat_results(op._results(op._write(flat)))
        return self.flat_results(bind(op._pure, flat))

    def setup_context(self, ctx, inputs, output):
        op = self.op
        ctx._given = len(inputs)
        if self.lists:
            ctx._widths = inputs[0]
            ctx.needs_input_grad = rebuilt(inputs[0], ctx.needs_input_grad[1:])
        if self.lists_out:
            ctx._made = output[-1]
            output = op._results(rebuilt(output[-1], output))
        if op._setup is None:
            return
        args = self.arguments(inputs)
        named, args = self.named(args), args[: op._keywords]
        if named:
            op._setup(ctx=ctx, inputs=args, keyword_only_inputs=named, output=output)
        else:
            op._setup(ctx, args, output)

    def backward(self, ctx, *grads):
        op = self.op
        if op._backward is None and op._low:
            warn_of(op._qualname)
            return (None,) * ctx._given
        if op._backward is None:
            raise errors.DerivativeNotWritten(errors.text(
                f"Trying to backward through {op._opoverload!r} but no autograd formula was "
                f"registered (called at {errors.describe_place(ctx._where())})",
                cure=f"use {op._name}.register_autograd to add one"))
        found = op._backward(ctx, *(rebuilt(ctx._made, grads) if self.lists_out else grads))
        found = tuple(found) if isinstance(found, tuple) else (found,)
        missing = op.schema.args[len(found) : op._keywords]
        if not self.lists and not all(a.has_default for a in missing):
            return found  # too few, which is refused
        found = (*found, *[None] * (len(op.schema.args) - len(found)))
        if not self.lists:
            return found
        self.check_lists(ctx, found)
        return (None, *spread(ctx._widths, found))

    def check_lists(self, ctx, found: tuple) -> None:
        """Refuse gradients of a list of tensors that are not as many."""
        for width, grad, spec in zip(ctx._widths, found, self.op.schema.args):
            if width is not None and grad is not None and (
                    not isinstance(grad, (list, tuple)) or len(grad) != width):
                got = len(grad) if isinstance(grad, (list, tuple)) else type(grad).__name__
                raise errors.GradientShapeError(errors.text(
                    f"the backward of {self.op._qualname} has to return a list of gradients for "
                    f"{spec.name!r}: expected {width} gradients but got {got} (called at "
                    f"{errors.describe_place(ctx._where())})", cure="or None for all of them"))

    def jvp(self, ctx, *tangents):
        if self.lists:
            tangents = rebuilt(ctx._widths, tangents[1:])
        found = self.op._jvp(ctx, *tangents)
        return (*spread(ctx._made, self.each(found)), None) if self.lists_out else found

    def vmap(self, info, in_dims, *inputs):
        op, args, dims = self.op, self.arguments(inputs), in_dims
        if self.lists:
            dims = rebuilt(inputs[0], in_dims[1:])
        if op._vmap is None:
            return _looped(op, self.flat_results, info.batch_size, dims, args)
        named, first = self.named(args), op._keywords
        out, out_dims = op._vmap(info, dims[:first], *args[:first], **named)
        out = self.flat_results(out)
        return out, (*spread(out[-1], self.each(out_dims)), None) if self.lists_out else out_dims


def warn_of(name: str) -> None:
    """A sweep has come to an operator that has no gradient."""
    warnings.warn(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying "
        "to backprop through it. The gradients are those of what its kernel does to tensors, none "
        "if it leaves them or in a capture. Register one with torch.library.register_autograd, or "
        "impl(..., \"Autograd\").", stacklevel=2)


_warned: set = set()


def _looped(op: CustomOpDef, flat_results, size: int, dims: tuple, args: tuple) -> tuple:
    """An operator without batching rule: once per example."""
    if op._qualname not in _warned:
        _warned.add(op._qualname)
        warnings.warn(
            f"vmap: operator '{op._qualname}' has no batching rule; it runs once per example. "
            f"Register one with {op._name}.register_vmap to make it fast.",
            stacklevel=2,
        )

    def pick(value, dim, i):
        if type(value) is list:
            return [pick(v, d, i) for v, d in zip(value, dim)]
        return value if dim is None else ops.select(value, dim, i)

    def call(i):
        return flat_results(op._call(tuple([pick(v, d, i) for v, d in zip(args, dims)])))

    outs = [call(i) for i in range(size)]
    if not isinstance(outs[0], tuple):
        return (ops.stack(outs, 0), 0) if isinstance(outs[0], Tensor) else (outs[0], None)
    made, places = [], []
    for parts in zip(*outs):
        tensor = isinstance(parts[0], Tensor)
        made.append(ops.stack(list(parts), 0) if tensor else parts[0])
        places.append(0 if tensor else None)
    return tuple(made), tuple(places)
