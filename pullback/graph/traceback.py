"""What is noted on new nodes: the node that is being run again, and what the user says about a
region of a program.

`annotate({"stage": 1})` puts its dictionary into `meta["custom"]` of all nodes that are made
meanwhile, backward nodes of what is recorded then included.  Inside of `preserve_node_meta()` nodes
that come from running a graph get the notes of the node that was run.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .. import errors
from .provenance import NodeSource, NodeSourceAction, get_graph_provenance_json

current_meta: dict[str, Any] = {}
_KEPT = ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom", "from_node",
         "seq_nr")
_preserving = False


def source_line(depth: int = 2) -> str | None:
    """The user's line as it stands in a traceback."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        found = errors.generated.get(code.co_filename)
        if found is not None:  # a graph that runs: the line that its node came from
            line = found(errors.line_of(frame))
            if line is not None:
                return line
        elif errors.is_users(code.co_filename):
            return f'  File "{code.co_filename}", line {errors.line_of(frame)}, in {code.co_name}'
        frame = frame.f_back
    return None


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Nodes that come from running a graph keep the notes of the node that was run."""
    global _preserving, current_meta
    before, kept = _preserving, dict(current_meta)
    _preserving = enable
    try:
        yield
    finally:
        _preserving = before
        _replace(kept)


def _replace(notes: dict[str, Any]) -> None:
    current_meta.clear()
    current_meta.update(notes)


def has_preserved_node_meta() -> bool:
    """Are the notes of nodes handed on?"""
    return _preserving


__all__ = ["NodeSource", "NodeSourceAction", "annotate", "annotate_fn", "format_stack",
           "get_current_meta", "get_graph_provenance_json", "has_preserved_node_meta",
           "preserve_node_meta", "set_current_meta", "set_stack_trace"]
MEMORY_BUDGET = "memory_budget"  # the note of `autograd.graph.region_activation_memory_budget`


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Put notes of one's own on the nodes that are made meanwhile; inner ones win."""
    before = dict(current_meta)
    current_meta["custom"] = {**before.get("custom", {}), **annotation_dict}
    try:
        yield
    finally:
        _replace(before)


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable:
    """The same for all calls of a function: a decorator."""
    return annotate(annotation_dict)


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """What is made meanwhile comes from running this node."""
    if not (_preserving and node.meta):
        yield
        return
    before = dict(current_meta)
    _replace({**before, **{k: v for k, v in node.meta.items() if k in _KEPT}})
    if "custom" in before or "custom" in node.meta:
        current_meta["custom"] = {**node.meta.get("custom", {}), **before.get("custom", {})}
    current_meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
    try:
        yield
    finally:
        _replace(before)


def get_current_meta() -> dict[str, Any]:
    """What new nodes get."""
    return current_meta


def noted() -> dict[str, Any]:
    """A copy of that for one node."""
    return {k: copy.copy(v) if k in ("custom", "from_node") else v
            for k, v in current_meta.items()}


def set_stack_trace(stack: list[str]) -> None:
    """Give the nodes that are made from now on this source line."""
    if _preserving and stack:
        current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """The source lines of what is being run: those of the node, or where Python is."""
    if _preserving:
        return [current_meta.get("stack_trace", "")]
    import traceback

    return traceback.format_list(traceback.extract_stack()[:-1])
