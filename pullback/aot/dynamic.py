"""Programs with symbolic sizes: captured once, run for all sizes that satisfy their guards.

A `SymbolicProgram` holds the joint graph, its halves and the guards.  For the sizes of a call it
makes an *instance*, an ordinary `Program` with numbers in the place of symbols, which is kept: so a
call with sizes that were seen before costs what any compiled call costs.  Read next: `api.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .. import errors
from ..core.fake import Fake, contiguous_strides
from ..core.handle import Tensor, make
from ..core.size import Symbolic, hinted, is_symbolic
from ..core.symbolic.env import ShapeEnv
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import map_aggregate
from .capture import Joint, Output


def valued(value: Any, of: Callable[[str], int]) -> Any:
    """A value with numbers in the place of symbolic ones, in all containers."""
    def number(v: Any) -> Any:
        return v.node.raw.value(of) if isinstance(v, Symbolic) else v

    return map_aggregate(value, number)


def concrete_fake(t: Any, of: Callable[[str], int]) -> Any:
    """The fake of a node for given sizes."""
    if isinstance(t, (list, tuple)):
        return [concrete_fake(v, of) for v in t]
    if isinstance(t, Symbolic):
        return valued(t, of)
    if not isinstance(t, Tensor) or not isinstance(t._data, Fake):
        return t
    data = t._data
    if not data.symbolic:
        return t
    return make(Fake(valued(data.shape, of), data.dtype, valued(data.strides, of),
                     data.device_name))


def concrete(module: GraphModule, values: dict[str, int]) -> tuple[GraphModule, list[int]]:
    """A graph for given sizes, without nodes that compute sizes; and which inputs it still has."""
    of = values.__getitem__
    graph, copied, kept, count = Graph(), {}, [], 0
    for node in module.graph.nodes:
        val = node.meta.get("val")
        if isinstance(val, Symbolic):
            copied[node] = valued(val, of)
            count += node.op == "placeholder"
            continue
        if node.op == "placeholder":
            kept.append(count)
            count += 1
        new = graph.node_copy(node, copied.__getitem__)
        if "val" in new.meta:
            new.meta["val"] = concrete_fake(val, of)
        copied[node] = new
    made = GraphModule(module, graph)
    if hasattr(module, "writes"):
        made.writes = module.writes
    return made, kept


def layout(data: Any) -> tuple | None:
    """What a symbolic capture needs to know of an array's strides; None if they are odd."""
    if isinstance(data, Fake):
        own = contiguous_strides(hinted(data.shape), data.itemsize)
        return () if tuple(hinted(data.strides)) == own else None
    if data.flags.c_contiguous:
        return ()
    order = sorted(range(data.ndim), key=lambda d: (-data.strides[d], d))
    return tuple(order) if data.transpose(order).flags.c_contiguous else None


def loose_key(value: Any) -> tuple:
    """What a symbolic graph depends on, for one argument: not its sizes."""
    if isinstance(value, Tensor):
        data = value._data
        order = layout(data)
        sizes = data.ndim if order is not None else data.shape
        return sizes, data.dtype, value._edge is not None, order
    try:
        hash(value)
    except TypeError:
        return ("id", id(value))
    return (type(value), value)


def names_of(function: Callable, args: Sequence, kwargs: dict) -> list[str]:
    """What the function calls its tensor arguments, one name for each tensor in them."""
    from ..core.pytree import tree_flatten

    try:
        parameters = list(inspect.signature(
            getattr(function, "forward", function)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    found = []
    for i, value in enumerate(args):
        name = plain[i] if i < len(plain) else f"args[{i}]"
        leaves = [v for v in tree_flatten(value)[0] if isinstance(v, Tensor)]
        single = len(leaves) == 1 and leaves[0] is value
        found += [name if single else f"{name}[{k}]" for k in range(len(leaves))]
    for name in kwargs:
        leaves = [v for v in tree_flatten(kwargs[name])[0] if isinstance(v, Tensor)]
        single = len(leaves) == 1 and leaves[0] is kwargs[name]
        found += [name if single else f"{name}[{k}]" for k in range(len(leaves))]
    return found


class Wishes:
    """Which dims of the arguments are symbolic, and between which bounds."""

    def __init__(self, tensors: list[Tensor], dynamic: bool | None, seen: list[tuple]):
        self.dims: list[list] = []
        self.demanded: list[tuple[int, int]] = []  # the user says that they must not be fixed
        for i, t in enumerate(tensors):
            data = t._data
            marks = t.__dict__ if t.__dict__ else {}
            static = marks.get("_dynamo_static_indices", ())
            own: list = []
            for d, n in enumerate(data.shape):
                if d in marks.get("_dynamo_dynamic_indices", ()):
                    wish: Any = marks.get("_dynamo_dynamic_range", {}).get(d, True)
                    self.demanded.append((i, d))
                elif d in marks.get("_dynamo_weak_dynamic_indices", ()):
                    wish = True
                elif d in static or dynamic is False or layout(data) is None:
                    wish = False
                elif dynamic:
                    wish = True
                else:
                    wish = any(shapes[i][d] != n for shapes in seen)
                own.append(wish)
            self.dims.append(own)

    def __bool__(self) -> bool:
        return any(w is not False for own in self.dims for w in own)


def check_demands(joint: Joint, env: ShapeEnv, wishes: Wishes, shapes: list, names: list) -> None:
    """Refuse a capture that has fixed a size which the user marked as dynamic."""
    for i, d in wishes.demanded:
        n = shapes[i][d]
        if isinstance(n, Symbolic):
            number = n.node.maybe_as_int()
            if number is None:
                continue
            guard = next(g for g in reversed(env.guards)
                         if n.node.raw.symbol in g.relation.symbols())
            why = f"{guard} was needed at {guard.where}: {guard.reason}"
        else:
            number, why = n, "sizes 0 and 1 are always specialised"
        raise errors.ConstraintViolationError(errors.text(
            f"Constraints violated ({names[i]}.size()[{d}])! It was marked as dynamic, but the "
            f"captured function is right for {number} only ({errors.user_line(2)})",
            why,
            ["do not mark it with mark_dynamic (maybe_mark_dynamic does not insist)",
             "or change the line so that it does not depend on the number"]))


class SymbolicProgram:
    """A function captured with symbolic sizes."""

    def __init__(self, joint: Joint, env: ShapeEnv, shapes: list, names: list[str], backend: Any):
        self.joint, self.env, self.backend = joint, env, backend
        self.check = env.checker(shapes, names)
        env.frozen = True
        self.halves = functools.cache(
            lambda: tuple(backend.partition(joint.module, joint.forward_count))[:2])
        self._shared: dict[str, Any] = {}
        self.first: Any = None  # the first instance
        self.notes: dict[str, Any] = {}  # what else its instances know

    def part(self, name: str, module: GraphModule, compiler: Callable, values: dict) -> Callable:
        """A compiled part for given sizes."""
        for node in module.graph.nodes:
            if is_symbolic(node.args) or is_symbolic(node.kwargs.values()):
                raise errors.CompileError(f"a symbolic size is written into the graph: {node.name} "
                                          f"{node.args}")
        found = self._shared.get(name)
        if found is None:
            found = self._shared[name] = compiler(module, name)
        at = getattr(found, "at", None)
        return found if at is None else at(values)

    def instance(self, tensors: list[Tensor], values: dict[str, int]) -> Any:
        """The program for given sizes."""
        from .api import make_program

        of, backend = values.__getitem__, self.backend
        joint = replace(
            self.joint,
            outputs=_outputs(self.joint.outputs, of),
            reviewed=[(i, valued(steps, of)) for i, steps in self.joint.reviewed],
        )
        own = replace(
            backend,
            forward=lambda m, n: self.part(n, m, backend.forward, values),
            backward=lambda m, n: self.part(n, m, backend.backward, values),
            partition=lambda module, count: self.halves(),
        )
        program = make_program(joint, joint.inputs(tensors), own, values)
        program.symbolic = self
        self.first = self.first or program
        for name, value in self.notes.items():
            setattr(program, name, value)
        return program


def _outputs(outputs: list, of: Callable[[str], int]) -> list:
    """How outputs are made, for given sizes; what belongs together stays together."""
    done: dict[int, Output] = {}

    def one(o: Any) -> Any:
        if type(o) is not Output:
            return valued(o, of)
        if o.of is None:
            return o
        if id(o) not in done:
            done[id(o)] = replace(o, of=one(o.of), chain=valued(o.chain, of))
        return done[id(o)]

    return [one(o) for o in outputs]
