"""`with_effects`: a call that happens in its place among others, as PyTorch's graphs write it.

`with_effects(token, op, *args)` calls an operator and returns a new token before its results: who
needs the token comes later.  Tokens carry nothing.  `print` is an operator with an effect of its
own.  `table/effects.py` knows which operators have one, `capture/effect_tokens.py` writes such
graphs.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from .. import errors
from ..core.handle import Tensor, make
from ..core.overload import OpOverload
from ..graph.make_fx import fake_of
from ..graph.traits import has_side_effect
from ..interp.trace import Trace
from ..pytree import tree_map
from ..table.effects import EffectType, effect_of, get_effect, register_effect
from ..threads.state import state
from .subgraph import HigherOrder, below, inner

__all__ = ["has_aliasing", "has_effects", "new_token_tensor", "with_effects"]

# PyTorch's names
_EffectType, _get_effect, _register_effectful_op = EffectType, get_effect, register_effect


def has_aliasing(op: Any) -> bool:
    """Does an operator write its arguments, or return views of them?"""
    schema = getattr(op, "schema", None)
    if schema is None:
        return False
    return any(a.alias for a in (*schema.args, *schema.returns)) or op.is_view


def has_effects(op: Any) -> bool:
    """Is it an operator with an effect that graphs can say?"""
    return isinstance(op, (OpOverload, HigherOrder)) and effect_of(op) is not None and (
        not has_aliasing(op))


def new_token_tensor() -> Tensor:
    """A token: an empty tensor."""
    return make(np.empty(0, np.float32))


def _capture() -> Trace | None:
    """The capture that sees operators now."""
    level = state.stack[state.mode]
    return level if isinstance(level, Trace) else None


def _nodes(level: Trace, value: Any) -> Any:
    return tree_map(lambda v: level.node(v) if isinstance(v, Tensor) else v, value)


def _values(level: Trace, value: Any) -> Any:
    return tree_map(lambda v: inner(level, v) if isinstance(v, Tensor) else v, value)


def _with_effects(token: Tensor | None, op: Any, *args: Any, **kwargs: Any) -> tuple:
    """The results of an operator behind a new token."""
    if not isinstance(op, (OpOverload, HigherOrder)):
        if not hasattr(op, "functional"):  # `add_`, `add.out`
            raise AssertionError(
                f"with_effects: op must be an operator, got {builtins.type(op)} "
                f"({errors.user_line(2)})")
        raise AssertionError(f"Ops with aliasing is not supported: {op} ({errors.user_line(2)})")
    if has_aliasing(op):
        raise AssertionError(f"Ops with aliasing is not supported: {op} ({errors.user_line(2)})")
    level = _capture()
    if level is not None:
        with below(level):
            out = _with_effects(token, op, *_values(level, args), **_values(level, kwargs))
        return _recorded(level, with_effects, (token, op, *args), kwargs, out)
    out = op(*args, **kwargs)
    return (new_token_tensor(), *out) if isinstance(out, tuple) else (new_token_tensor(), out)


def _recorded(level: Trace, target: HigherOrder, args: tuple, kwargs: dict, out: tuple) -> tuple:
    """A call as a node, and tensors for its results."""
    recorder = level.recorder
    node = recorder.graph.call_function(target, _nodes(level, args), _nodes(level, kwargs))
    node.meta["val"] = tree_map(lambda v: fake_of(v) if isinstance(v, Tensor) else v, out)
    recorder.place(node.meta)
    return tuple([level.wrap(o, recorder.pick(node, i, o)) if isinstance(o, Tensor) else o
                  for i, o in enumerate(out)])


def _print(format_str: str, *args: Any, **kwargs: Any) -> None:
    """Print a text with values in it, also from compiled functions."""
    if not isinstance(format_str, str):
        raise errors.ArgumentError(
            f"print: the format must be a string, got {builtins.type(format_str).__name__} "
            f"({errors.user_line(2)})")
    level = _capture()
    if level is None:
        builtins.print(format_str.format(*args, **kwargs), flush=True)
        return
    recorder = level.recorder
    given = _nodes(level, args), _nodes(level, kwargs)
    node = recorder.graph.call_function(operator_print, (format_str, *given[0]), given[1])
    node.meta["val"] = None
    recorder.place(node.meta)
    level.recorded_effect(node)


with_effects = has_side_effect(HigherOrder("with_effects", _with_effects))
operator_print = HigherOrder("print", _print, effect="ordered")
