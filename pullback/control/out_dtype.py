"""`out_dtype`: an operator whose result has a wider dtype than its arguments, one node of a graph.

`out_dtype(ops.aten.mm.default, torch.int32, x, w)` of bytes is the exact product, which the
operator itself would cut to bytes.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor, is_buffer, tensors_in
from ..core.op import registry
from ..core.overload import OpOverload
from ..graph.make_fx import fake_of
from ..interp.trace import Trace
from ..pytree import tree_map
from ..threads.state import state
from .subgraph import HigherOrder, below, inner


def _refused(what: str) -> Exception:
    return ValueError(f"{what} ({errors.user_line(3)})")


def _out_dtype(op: Any, output_dtype: dt.DType, *args: Any) -> Tensor:
    """The operator on arguments of the wider dtype."""
    if not isinstance(op, OpOverload):
        functional = not hasattr(op, "functional")  # `add_`
        raise _refused("out_dtype's first argument must be an OpOverload" if functional else
                       "out_dtype's first argument needs to be a functional operator")
    if len(op.schema.returns) != 1:
        raise _refused("out_dtype's can only apply to ops that return a single tensor")
    if not op.op.widens:
        allowed = [name for name, entry in registry.items() if entry.widens]
        raise _refused(f"out_dtype only allows the following operators: {allowed}")
    if not isinstance(output_dtype, dt.DType):
        raise TypeError(f"out_dtype: the dtype must be torch.dtype, not "
                        f"{type(output_dtype).__name__} ({errors.user_line(2)})")
    level = state.stack[state.mode]
    if isinstance(level, Trace) and _stays_whole(level, args):
        with below(level):
            values = tree_map(lambda v: inner(level, v) if isinstance(v, Tensor) else v, args)
            out = _out_dtype(op, output_dtype, *values)
        nodes = tree_map(lambda v: level.node(v) if isinstance(v, Tensor) else v, args)
        node = level.recorder.graph.call_function(out_dtype, (op, output_dtype, *nodes))
        node.meta["val"] = fake_of(out)
        level.recorder.place(node.meta)
        return level.wrap(out, node)
    common = output_dtype
    for v in tensors_in(args):
        common = dt.promote_types(common, v.dtype)
    moved = [v.to(common) if isinstance(v, Tensor) else v for v in args]
    return op(*moved).to(output_dtype)


def _stays_whole(level: Trace, args: tuple) -> bool:
    """Is it a node of a graph that people read, of values without histories?"""
    if level.adopts and not getattr(level, "exports", False):
        return False
    return all((level.mine(v) or is_buffer(v._payload)) and not (
        v._edge is not None and state.record[level.level]) for v in tensors_in(args))


out_dtype = HigherOrder("out_dtype", _out_dtype)
