"""What hooks and custom backwards may ask about the sweep that runs around them.

PyTorch keeps these questions in `torch._C`; `_C.py` leads there.  The sweep is an object, the
thread's `state.task`, which is asked.  Read next: `GraphTask` in `engine.py`.
"""

from __future__ import annotations

from heapq import heappop, heappush

from .. import errors
from ..core.handle import Tensor
from ..core.tape import Accumulate as AccumulateGrad
from ..core.tape import Node
from ..threads.state import sequence, state
from . import engine
from .function import Function
from .saved_values import SavedTensor

__all__ = ["AccumulateGrad", "DelayedError", "SavedTensor", "UndefinedGrad"]


def _running(name: str):
    """The sweep that runs in this thread; refused where none does."""
    if state.task is None:
        raise errors.NoGraph(errors.text(
            f"{name}() should only be called during the backward pass ({errors.user_line(2)})",
            cure="ask from a hook, or in the backward of a custom function"))
    return state.task


def _current_autograd_node() -> Node | None:
    """The node whose formula or hooks run."""
    return None if state.task is None else state.task.node


def _current_graph_task_id() -> int:
    """The number of the sweep that runs, -1 outside of all sweeps."""
    task = state.task
    if task is None:
        return -1
    if task.number is None:
        task.number = next(engine.task_numbers)
    return task.number


def _get_current_graph_task_keep_graph() -> bool:
    """May there be another sweep through the same nodes?"""
    return state.task is None or state.task.keep


def _will_engine_execute_node(node: Node) -> bool:
    """Will the sweep that runs come to a node, or has it already?"""
    if not isinstance(node, Node):
        raise errors.RefusedValue(
            f"_will_engine_execute_node() expects an grad_fn, but got {type(node).__name__} "
            f"({errors.user_line()})")
    task = _running("_will_engine_execute_node")
    if isinstance(node, AccumulateGrad) and task.gives and (node, 0) in task.targets:
        raise errors.RefusedValue(errors.text(
            "_will_engine_execute_node() was asked about a leaf, but we are currently running "
            f"autograd.grad(), which gives its gradient away ({errors.user_line()})",
            cure="ask about the node of a tensor that was computed"))
    return task.runs(node)


def _current_graph_task_execution_order() -> list[Node]:
    """The nodes of the sweep that runs, in the order in which it comes to them."""
    task = _running("_current_graph_task_execution_order")
    waiting: dict = {}  # node -> edges that lead to it
    roots = list(dict.fromkeys(engine.node_of(e) for e in task.roots))
    todo = list(roots)
    seen = set(roots)
    while todo:
        for after in _after(task, todo.pop()):
            waiting[after] = waiting.get(after, 0) + 1
            if after not in seen:
                seen.add(after)
                todo.append(after)
    heap: list = []
    order = []
    for node in roots:
        if node not in waiting:
            heappush(heap, (_rank(node), node))
    while heap:
        order.append(heappop(heap)[1])
        for after in _after(task, order[-1]):
            waiting[after] -= 1
            if not waiting[after]:
                heappush(heap, (_rank(after), after))
    return order


def _after(task, node: Node) -> list:
    found = [engine.node_of(e) for e in node.edges if e is not None]
    return [n for n in found if task.wanted is None or n in task.wanted]


def _rank(node: Node) -> tuple:
    """Leaves are served as soon as they are complete, other nodes newest first."""
    return (0, sequence()) if isinstance(node, AccumulateGrad) else (1, -node.seq)


def _saved_tensors_hooks_is_enabled() -> bool:
    """May saved tensors be packed here?"""
    return state.observers.hooks_refused is None


class _Failing(Function):
    @staticmethod
    def forward(ctx, text, *tensors):
        ctx.text = text
        return tuple([t.view_as(t) for t in tensors])

    @staticmethod
    def backward(ctx, *grads):
        raise errors.NoGraph(ctx.text)


class _Ending(Function):
    @staticmethod
    def forward(ctx, *tensors):
        return tuple([t.view_as(t) for t in tensors])

    @staticmethod
    def backward(ctx, *grads):
        return (None,) * len(grads)


class DelayedError(Node):
    """Tensors as they are, whose gradient raises an error when it is asked for."""

    def __init__(self, text: str, number: int):
        self.text = text

    def __call__(self, *tensors: Tensor):
        found = _Failing.apply(self.text, *tensors)
        return found[0] if len(found) == 1 else found


class UndefinedGrad(Node):
    """Tensors as they are, through which no gradient goes."""

    def __init__(self) -> None:
        pass

    def __call__(self, *tensors: Tensor):
        found = _Ending.apply(*tensors)
        return found[0] if len(found) == 1 else found
