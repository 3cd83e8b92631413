"""Trees flattened as a structure says that was seen before: how graphs take nested arguments.

A dictionary may have further keys or another order; what counts is the structure that was captured.
`pytree.py` has trees themselves.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from .. import pytree
from .errors import GraphError

_flattened: dict[type, Callable] = {}
_matches: dict[type, Callable] = {}


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: Callable[[Any, Any], list],
    flatten_fn_exact_match_spec: Callable[[Any, Any], bool] | None = None,
) -> None:
    """`flatten_fn_spec(value, spec)` gives the children of a container of a class of one's own."""
    _flattened[cls] = flatten_fn_spec
    if flatten_fn_exact_match_spec is not None:
        _matches[cls] = flatten_fn_exact_match_spec


def _children(value: Any, spec: Any) -> list:
    kind = spec.type
    if kind in _flattened:
        return _flattened[kind](value, spec)
    if isinstance(kind, type) and issubclass(kind, dict):
        return [value[key] for key in _keys(spec)]
    if isinstance(value, (tuple, list)):
        return list(value)
    if kind is namedtuple or isinstance(kind, type) and issubclass(kind, (tuple, list)):  # a proxy
        return [value[i] for i in range(spec.num_children)]
    return pytree.tree_flatten(value, is_leaf=lambda v: v is not value)[0]


def _keys(spec: Any) -> list:
    context = spec.context
    return list(context[1]) if isinstance(context, tuple) and len(context) == 2 and isinstance(
        context[1], (list, tuple)) else list(context)  # a defaultdict also says its factory


def tree_flatten_spec(value: Any, spec: Any, exact_structural_match: bool = False) -> list:
    """The leaves of a tree, picked by a structure; `GraphError` if it has not what that names."""
    found: list = []
    try:
        _collect(value, spec, found)
        fits = not exact_structural_match or pytree.tree_flatten(value)[1] == spec
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        fits = False
    if not fits:
        given = pytree.tree_flatten(value)[1]
        raise GraphError(f"the arguments do not have the structure that was captured: {given} "
                         f"instead of {spec}")
    return found


def _collect(value: Any, spec: Any, found: list) -> None:
    if spec.is_leaf():
        found.append(value)
        return
    children = _children(value, spec)
    if len(children) != spec.num_children:
        raise ValueError(f"{len(children)} children for {spec.num_children}")
    for child, inner in zip(children, spec.children_specs):
        _collect(child, inner, found)
