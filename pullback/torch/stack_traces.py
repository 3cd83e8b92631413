"""`setup_stacktrace_preservation_hooks`: nodes that a backward makes know the user's line.

Captures of ours note it by themselves (`graph/make_fx.py`); this is for programs that trace a
backward on their own, inside of `fx.traceback.preserve_node_meta()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import errors
from ..autograd.variable import Variable
from ..core.handle import Tensor
from ..graph import traceback
from ..pytree import tree_leaves

__all__ = ["setup_stacktrace_preservation_hooks",
           "setup_stacktrace_preservation_hooks_from_tensors"]
ACCUMULATES = "Gradient addition node due to multiple use of tensor around:"


def setup_stacktrace_preservation_hooks(roots: Iterable[Any]) -> None:
    """Let the nodes of the tape below `roots` say their line while they run.

    What is added up between two of them says so, and the line of the first.
    """
    known: dict = {}  # what was noted before the sweep, while one runs
    for node in _reachable(roots):
        line = errors.traceback_line(node.where)
        stack = list((node.metadata or {}).get("traceback_", [] if line is None else [line]))
        node.register_prehook(_before(stack, node._sequence_nr(), known))
        node.register_hook(_after([*stack, f"\n{ACCUMULATES}"]))


def setup_stacktrace_preservation_hooks_from_tensors(outputs: Any) -> None:
    """The same for the histories of all tensors among outputs."""
    setup_stacktrace_preservation_hooks(
        [t.grad_fn for t in tree_leaves(outputs)
         if isinstance(t, Tensor) and t.grad_fn is not None])


def _reachable(roots: Iterable[Any]) -> Iterator[Any]:
    seen: set = set()
    todo = [r for r in roots if r is not None]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += [below for below, _ in node.next_functions if below is not None]
            yield node


def _before(stack: list[str], number: int, known: dict) -> Callable:
    def restore() -> None:
        del known["began"]
        traceback.current_meta.clear()
        traceback.current_meta.update(known)
        known.clear()

    def hook(grad_outputs: Any) -> None:
        if "began" not in known:
            known.update(traceback.current_meta, began=True)
            Variable._execution_engine.queue_callback(restore)
        traceback.set_stack_trace(stack)
        traceback.current_meta["seq_nr"] = number

    return hook


def _after(stack: list[str]) -> Callable:
    def hook(grad_inputs: Any, grad_outputs: Any) -> None:
        traceback.set_stack_trace(stack)
        traceback.current_meta.pop("seq_nr", None)

    return hook
