"""`trace`: a function captured for export, and what no exported graph can say.

The graph of an export has the arguments as inputs, in their order, and tensors from outside as
constants.  Read next: `export.py`, which makes the graphs that users see of it.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import errors
from ..array import reals
from ..core.handle import Tensor, is_buffer, make, meta_of
from ..core.overload import overload
from ..core.tape import Accumulate
from ..cut.settings import config
from ..graph.dialect import TABLE, standard
from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.tables import normalized
from ..pytree import TreeSpec, tree_flatten
from ..table.packets import ops
from . import shared_inputs as sharing
from .capture import Capture, CaptureRecorder, capture
from .effects.gradients import LeaveGradient
from .effects.leaves import BeginLeaf
from .effects.metadata import ChangeMetadata
from .effects.numbers import ReadNumber
from .joint import Backward, Joint, Sizes
from .retrace import renumbered


class ExportRecorder(CaptureRecorder):
    """Names inputs `argN_1`, as graphs without a backward have them."""

    def input(self, value: Tensor, example: Tensor | None = None) -> Node:
        """The node of the next input."""
        node = self._last = self.placeholder(f"arg{self.inputs}_1", value, example)
        self.inputs += 1
        self.arrays[node] = value._payload
        return node


class ExportCapture(Capture):
    """A capture whose graph is what the user gets to see."""

    title = "an exported function"
    exports = True

    def __init__(self, recorder: CaptureRecorder, decompositions: dict, pre_dispatch: bool,
                 switches: bool):
        super().__init__(recorder, decompositions)
        self.keeps_composites, self.pre_dispatch, self.switches = True, pre_dispatch, switches
        self.frozen: list[Tensor] = []  # results that must not be written

    def process(self, ov: Any, flat: tuple) -> Any:
        """`detach` is part of the graph, also where there is no history."""
        if ov.op.ends_history and self.mine(flat[0]):
            return self.detached(flat[0])
        return super().process(ov, flat)

    def switched(self, mode: bool, leaves: bool) -> None:
        """Grad modes are shown where they are wanted."""
        if self.switches:
            super().switched(mode, leaves)

    def whole(self, ov: Any, flat: tuple) -> Any:
        """A composite operator as one node, if they are to be seen.

        One that is idle, as `dropout` in evaluation, gives its input back in eager mode.  Here it
        is an operator: what is done to its result must not be done to the input.
        """
        idle = ov.op.idle
        if idle and not flat[ov.schema.names.index(idle)] and self.mine(flat[0]):
            if self.decompositions or not self.pre_dispatch:
                return ops.clone(flat[0])
            out = self._recorded(ov, flat, make(flat[0]._payload.inner._payload))
            self.frozen.append(out)
            return out
        return super().whole(ov, flat) if self.pre_dispatch else NotImplemented


@dataclass
class Exported:
    """A function that has been captured for export."""

    joint: Joint
    module: GraphModule  # inputs (and tangents) -> what is written, results, gradients
    arguments: list  # the flat arguments
    given: list[Tensor]  # those that are tensors
    tensors: list[Tensor]  # the same as the capture saw them
    results: list  # nodes of the user's flat results, or plain values
    in_spec: TreeSpec
    functions: list[type]  # custom functions that the function has called
    constants: dict[str, Tensor] = field(default_factory=dict)  # tensors from outside

    def moved(self, copied: dict[Node, Node]) -> None:
        """The graph was copied."""
        self.results = [copied[r] if type(r) is Node else r for r in self.results]

    def twice(self, i: int) -> bool:
        """Is an input given more than once?"""
        return sum(t is self.given[i] for t in self.given) > 1

    @property
    def written(self) -> list[int]:
        """The inputs that the function wrote."""
        return [m.input for m in self.joint.mutated]

    @property
    def inputs(self) -> list[Node]:
        """The placeholders of the arguments, parameters and buffers included."""
        return [n for n in self.module.graph.find_nodes(op="placeholder")
                if not n.name.startswith("tangents_")]

    def outputs(self, kind: str) -> list:
        """The nodes that the graph returns: "written", "forward" or "gradients"."""
        all_of = list(self.module.graph.output_node().args[0])
        count = self.joint.forward_count
        return {"written": all_of[:len(self.joint.mutated)], "forward": all_of[:count],
                "gradients": all_of[count:]}[kind]


def trace(
    function: Callable, args: tuple, kwargs: dict, *, joint: bool, pre_dispatch: bool = False,
    switches: bool | None = None, decompositions: Any = None, title: str = "<lambda>",
    sizes: Sizes | None = None, history: bool = False, for_reading: bool = True
) -> Exported:
    """Capture a function of the arguments, without history unless the joint graph is wanted.

    `pre_dispatch` keeps composite operators whole, and grad modes unless `switches` says otherwise.
    With `sizes` those of the arguments are symbols.  With `history` inputs have the histories that
    the arguments have, for functions that differentiate themselves.  Graphs `for_reading` are in
    PyTorch's dialect, others can be differentiated again.
    """
    _refuse_settings()
    flat, spec = tree_flatten((args, kwargs))
    given = [v for v in flat if isinstance(v, Tensor)]
    fresh = iter([_input(t, joint or history) for t in given])
    flat = [next(fresh) if isinstance(v, Tensor) else v for v in flat]
    leaves: list = []
    outside: dict[int, Node] = {}

    def traced(*args: Any, **kwargs: Any) -> Any:
        out = function(*args, **kwargs)
        found = tree_flatten(out)[0]
        for o in found:
            if isinstance(o, Tensor) and is_buffer(o._payload):  # from outside, given as it is
                level.adopt(o)
        for known in level.adopted:
            if any(known.handle is o for o in found):
                outside[id(known.handle)] = known.handle._payload.node
        leaves.extend(found if sizes is None else level.recorder.sizes.in_place_of(found))
        return out

    table = normalized(decompositions)
    recorder = CaptureRecorder() if joint else ExportRecorder()
    level = ExportCapture(
        recorder, table, pre_dispatch, pre_dispatch if switches is None else switches)
    if sizes is not None:
        sizes.data = True
    with reals.computing(sizes is not None), _refusing_writes(joint):
        dialect = standard("aot", whole=True) if for_reading else TABLE
        found = capture(traced, flat, spec, table, level=level, dialect=dialect, sizes=sizes)
    _refuse_frozen(level)
    results = [(outside.get(id(o)) or o._payload.node) if isinstance(o, Tensor) else o
               for o in leaves]
    tensors = [v for v in flat if isinstance(v, Tensor)]
    made = Exported(
        found, found.module, flat, given, tensors, results, spec, level.functions,
        {node.target: t for t, node in level.recorder._nodes.values()})
    made.module._class_name = title
    if not joint:
        _drop_gradients(made)
    _refuse(made)
    _lift_constants(made)
    if joint:
        made.moved(renumbered(made.module))
        _mark_sums(made.module)
    return made


def _refuse_settings() -> None:
    if config.functionalize_rng_ops:
        raise errors.ExportError(errors.text(
            "Functionalized RNG is not currently supported in the aot_export workflow "
            f"({errors.user_line(4)})", cure="set config.functionalize_rng_ops = False"))


def _refuse_frozen(level: ExportCapture) -> None:
    if any(t._cell is not None and t._cell.version for t in level.frozen):
        raise errors.ExportError(errors.text(
            "cannot mutate tensors with frozen storage: the result of dropout() in evaluation is "
            f"its input, and is written ({errors.user_line(3)})",
            cure="write to a copy of it: clone()"))


def _mark_sums(module: GraphModule) -> None:
    """Gradients of a value that is used more than once are added by no formula of the user's."""
    for node in module.graph.find_nodes(op="call_function", target=overload("add.Tensor")):
        if not node.meta.get("autograd_backward") and all(
                n.meta.get("autograd_backward") or n.meta.get("is_gradient_acc")
                or n.name.startswith("tangents_") for n in node.all_input_nodes):
            node.meta["is_gradient_acc"] = True


def _drop_gradients(found: Exported) -> None:
    """A forward graph of a capture that had histories."""
    joint, graph = found.joint, found.module.graph
    # arguments that the function wanted gradients for: these are in the graph
    joint.effects = [e for e in joint.effects if not isinstance(e, BeginLeaf)]
    if not joint.differentiable:
        return
    graph.output_node().args = (tuple(found.outputs("forward")),)
    joint.backward = Backward()
    graph.eliminate_dead_code()
    for node in graph.find_nodes(op="placeholder"):
        if node.name.startswith("tangents_"):
            graph.erase_node(node)


def _input(t: Tensor, history: bool) -> Tensor:
    """A tensor as the capture gets it: another handle even where one is given twice."""
    made = make(t._payload)
    if history and t.requires_grad:
        made._edge = Accumulate(made)
    if t._record is not None:
        meta_of(made)
    return made


def _refuse(found: Exported) -> None:
    """What no exported graph can say."""
    joint, given = found.joint, found.given
    changed = [*joint.of(ChangeMetadata), *joint.of(BeginLeaf)]
    if changed:
        raise _refused(
            "Found an input that received a metadata mutation, through e.g. a call to "
            "`.resize_()` or `.transpose_()`.", found, changed[0].input,
            "return the changed tensor, as in x = x.transpose(0, 1)")
    adopted = len(found.tensors)
    for m in joint.mutated:
        if m.input >= adopted:
            raise errors.ExportError(errors.text(
                "a tensor that is neither an argument nor a buffer is written by the exported "
                f"function ({errors.user_line(3)})",
                f"tensor: {_facts(joint.inputs.adopted[m.input - adopted])}",
                ["register_buffer() it", "or pass it as an argument"]))
    if joint.of(LeaveGradient) or joint.of(ReadNumber) or joint.backward.late:
        raise errors.ExportError(errors.text(
            f"the function leaves gradients in .grad or writes in its backward "
            f"({errors.user_line(3)}), which an exported graph cannot do",
            cure="return the gradients (torch.autograd.grad) instead of calling backward()"))
    if found.written:
        for i in found.written:
            if found.twice(i):
                raise _refused(
                    "Encountered duplicated inputs that are mutated in the graph you are trying "
                    "to export.", found, i, "pass a copy of it for one of the arguments")
        shared = sharing.groups([t._payload for t in given], found.written)
        if shared:
            raise _refused(
                "Encountered aliased inputs that are mutated in the graph you are trying to "
                "export.", found, shared[0][0],
                "pass tensors that do not share memory: clone() one of them")
    if joint.differentiable:
        for m in joint.mutated:
            if m.tracked or found.tensors[m.input].requires_grad:
                raise _refused(_WRITTEN, found, m.input, _CLONE)


_WRITTEN = "Found a graph input that requires gradients, and received a mutation."
_CLONE = ["write to a copy: x = x.clone()", "or detach() it before"]


@contextlib.contextmanager
def _refusing_writes(joint: bool) -> Iterator[None]:
    """The same where autograd refuses it: inputs of a joint graph are its leaves."""
    try:
        yield
    except errors.LeafWriteError as error:
        if not joint:
            raise
        said = str(error).splitlines()[0]
        raise errors.ExportError(errors.text(_WRITTEN, said, _CLONE)) from error


def _refused(what: str, found: Exported, number: int, cure: str | list[str]) -> Exception:
    return errors.ExportError(errors.text(
        what, f"input {number}: {_facts(found.tensors[number])} ({errors.user_line(4)})", cure))


def _facts(t: Any) -> str:
    return f"{t.dtype.name}{list(t.shape)}" if isinstance(t, Tensor) else repr(t)


def _lift_constants(found: Exported) -> None:
    """Tensors that were reached from outside become attributes of the graph."""
    joint, module = found.joint, found.module
    outside = found.inputs[len(found.tensors):]
    if not outside:
        return
    graph = module.graph
    for node, tensor in zip(outside, joint.inputs.adopted):
        number = sum(n.target.startswith("_tensor_constant") for n in
                     graph.find_nodes(op="get_attr"))
        name = f"_tensor_constant{number}"
        module._install(name, make(tensor._payload))
        found.constants[name] = tensor
        with graph.inserting_before(next(iter(node.users), graph.output_node())):
            constant = graph.get_attr(name)
        constant.meta.update(node.meta)
        node.replace_all_uses_with(constant)
        found.results = [constant if r is node else r for r in found.results]
        graph.erase_node(node)
    dropped = [i for i, n in enumerate(joint.backward.grad_of) if n >= len(found.tensors)]
    if dropped:
        output, count = graph.output_node(), joint.forward_count
        kept = [n for i, n in enumerate(output.args[0]) if i - count not in dropped]
        output.args = (tuple(kept),)
        joint.backward.grad_of = [
            n for n in joint.backward.grad_of if n < len(found.tensors)]
    joint.inputs.adopted = []


def finish(found: Exported, results: tuple | list, descs: list | None,
            kept: list | tuple = ()) -> GraphModule:
    """The graph with other outputs, without what they do not need; `kept` inputs are written."""
    graph = found.module.graph
    output = graph.output_node()
    output.args = (results,)
    with graph.inserting_before(output):
        for into, value in kept:
            write = graph.call_function(ops.copy_.default, (into, value))
            write.meta["val"] = into.meta["val"]
    if descs is not None:
        output.meta["desc"] = descs
    _settle(graph)
    graph.eliminate_dead_code()
    found.module.recompile()
    return found.module


def _settle(graph: Any) -> None:
    """Running statistics get the values that batch norm gave, without a copy of these."""
    for node in graph.find_nodes(op="call_function", target=overload("copy")):
        into, value = node.args[:2]
        source = value.args[0] if value.target is operator.getitem else None
        if source is not None and source.target is _STATISTICS and into in source.args[3:5]:
            if _same_facts(into, value):
                node.replace_all_uses_with(value)
    for node in reversed(graph.nodes):
        if node.meta.get("cut") and not node.users:
            graph.erase_node(node)


_STATISTICS = overload("_native_batch_norm_legit_functional")


def _same_facts(a: Node, b: Node) -> bool:
    x, y = a.meta["val"], b.meta["val"]
    return x.shape == y.shape and x.dtype is y.dtype
