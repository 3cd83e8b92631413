"""From a captured function to its program: what a backend is, and the parts that it compiles.

`Backend` says how graphs become callables.  `CompiledParts` are the graphs of a captured function:
forward and backward, both in one for a loss, the joint graph operator by operator for gradients of
gradients.  `make_program` puts them behind a `Program` (`run.py`), which asks for each when it is
needed.  Here is also the simplest backend, which runs graphs on NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import errors
from ..array.size import hinted
from ..core.handle import Tensor, make
from ..core.overload import overload
from ..cut.settings import code_generator, config
from ..cut.split import give_away, tighten
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.passes import eliminate_common_subexpressions, eliminate_dead_code, remove_noops
from ..graph.passes.scans import merge_scans
from ..graph.traits import is_late
from ..threads.blocks import uncast
from ..threads.state import state
from .absent_tangents import without
from .custom_functions import with_histories
from .effect_tokens import without_forward_effects
from .effects.metadata import ChangeMetadata
from .joint import Joint, Sizes
from .layouts import coerced, strides_of
from .offload import offloading
from .run import Program
from .saved_tensor_hooks import graph_hooks, with_hooks


def simplify(module: GraphModule) -> GraphModule:
    """Common subexpressions, no-ops and dead code, until nothing changes; then loops that run over
    the same operands."""
    graph = module.graph
    for _ in range(4):
        changed = (eliminate_common_subexpressions(graph) or 0) + (remove_noops(graph) or 0)
        eliminate_dead_code(graph)
        if not changed:
            break
    merge_scans(module)
    module.recompile()
    return module


def as_it_is(module: GraphModule) -> GraphModule:
    """A graph for which nothing is to be done."""
    return module


def with_unit_seed(module: GraphModule) -> GraphModule:
    """A joint graph whose only tangent is the constant 1: primals -> outputs, gradients."""
    graph, copied = Graph(), {}
    for node in module.graph.nodes:
        if node.op == "placeholder" and node.name.startswith("tangents_"):
            val = node.meta["val"]
            copied[node] = graph.call_function(overload("full"), ([], 1.0), {"dtype": val.dtype})
            copied[node].meta["val"] = val
        else:
            copied[node] = graph.node_copy(node, lambda n: copied[n])
    new = GraphModule(module, graph)
    return new


@dataclass
class Request:
    """The arguments for which a function is to be captured, and what is known of them."""

    flat: list  # all of them, without their structure
    spec: Any
    roots: Any = ()  # memory that inputs share, and which inputs do (`shared_inputs.py`)
    shared: dict | None = None
    sizes: Sizes | None = None  # those that are to be symbols
    dynamic_dims: Any = None  # and which of them the user asked for
    numbers: dict = field(default_factory=dict)  # the arguments that are numbers, by their place
    hooks: list | None = None  # of inputs, which the function's own sweeps call (`hooks.py`)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return [v for v in self.flat if isinstance(v, Tensor)]


@dataclass
class Backend:
    """How captured graphs become callables of raw arrays."""

    forward: Callable  # (module, name) -> callable
    backward: Callable
    partition: Callable  # (joint module, number of forward outputs) -> (forward, backward)
    decompositions: Any  # operator -> what takes it apart
    fuse: bool = False  # may losses compute their gradients in the forward call?
    undecided: Callable | None = None  # told of a function that cannot be captured; None: refuse
    limited: bool = False  # does the partitioner go by the memory that is taken?
    layout: Any = None  # of the graphs, where it is not the run time's (`Convention`)
    within: Callable | None = None  # (halves, count, sizes) -> do they keep a limit of memory?
    seeded: Callable = with_unit_seed  # what makes the graph of a fused loss
    simplify: Callable = as_it_is  # (joint module) -> the same with fewer nodes
    # told of a function that runs as it is written, though it could be captured
    written: Callable = lambda function, why: None
    recall: Callable | None = None  # what the disk knows of a joint graph (`compile/warm.py`)
    results: dict | None = None  # what compilers of the user's gave, by part
    loose: Callable | None = None  # for graphs with sizes by data, where others need all sizes


def writes_of(joint: Joint) -> dict[int, int]:
    """Graph output -> input whose new value it is, where it may take the input's memory."""
    nodes = list(joint.module.graph.output_node().args[0])
    reshaped = {e.input for e in joint.of(ChangeMetadata)}
    return {
        m.output: m.input
        for m in joint.mutated
        if m.count and not (m.tracked or m.moved) and m.input not in reshaped
        and nodes.count(nodes[m.output]) == 1
    }


def checkpointed(module: GraphModule) -> bool:
    """Did the function ask for values to be computed again in the backward?"""
    policies = (node.meta.get("recompute") for node in module.graph.nodes)
    return any(hasattr(policy, "name") for policy in policies)  # not the hints of our own operators


def is_loss(module: GraphModule, count: int) -> bool:
    """Can forward and backward be one graph?  There is one tangent, for one result."""
    tangents = [n for n in module.graph.nodes if n.op == "placeholder" and "tangents" in n.name]
    return count == len(tangents) == 1 and tangents[0].meta["val"].ndim == 0 and not (
        checkpointed(module) or any(map(is_late, module.graph.nodes)))


class CompiledParts:
    """The compiled parts of a captured function, each made when first needed.

    `values` are those of its symbolic sizes, `known` is what the disk remembers: then the graph is
    not simplified before somebody needs it.
    """

    def __init__(self, joint: Joint, tensors: list, backend: Backend,
                 values: dict[str, int] | None = None, known: Any = None):
        self.joint, self.backend, self.values = joint, backend, values
        self.module, self.count = joint.module, joint.forward_count
        self.hooks = self.offload = None
        if joint.differentiable and state.observers.saved_hooks:
            self.hooks = graph_hooks()
        if joint.differentiable and (
                config.enable_activation_offloading or code_generator.post_grad_fusion_options):
            self.offload = offloading()
        # nobody is to hold them for longer
        self.tensors = tensors if self.offload is not None else []
        self.inlines = self.hooks is not None or self.offload is not None
        self.known = None if self.inlines else known
        self.settings = config.shallow_copy_dict()  # whenever it is cut, and by whoever asks
        self.simplified = functools.cache(lambda: backend.simplify(self.module))
        self.cut = functools.cache(self._cut)

    def _cut(self) -> tuple:
        """The halves of the joint graph, with what is done to saved values in them."""
        backend = self.backend
        with config.patch(self.settings):
            found = backend.partition(self.simplified(), self.count)
        results = self.count if backend.layout is None else backend.layout.count
        if self.offload is not None:
            found = self.offload(found, results, self.tensors)
        if self.hooks is not None:
            found = with_hooks(found, results, self.hooks)
        give_away(*tuple(found)[:2], results)
        if self.known is not None:
            self.known.was_cut(found[0])
        return found

    def halves(self) -> tuple[GraphModule, GraphModule | None]:
        """Forward and backward; of a function without gradients, the graph and None."""
        if self.joint.differentiable:
            return tuple(self.cut())[:2]
        layout = self.backend.layout
        return self.simplified() if layout is None else layout.module, None

    @functools.cached_property
    def makers(self) -> dict[str, Callable]:
        """What makes each part: "forward", "backward", "fused", ..."""
        backend, joint = self.backend, self.joint
        makers: dict[str, Callable] = {"forward": self._inference}
        if joint.differentiable:
            makers = {
                "forward": lambda: backend.forward(self.halves()[0], "forward"),
                "backward": lambda: backend.backward(self.halves()[1], "backward"),
                "backward without": self._backward_without,
                "eager": self._eager,
                "eager_forward": lambda: self._by_operators(
                    GraphModule(self.module, joint.backward.recorded.forward)),
            }
            if backend.fuse and is_loss(self.module, self.count):
                makers["fused"] = self._fused
        decisions = joint.guards.decisions
        if decisions is not None:
            makers["decisions"] = lambda: backend.forward(simplify(decisions), "decisions")
        return makers

    def _inference(self) -> Callable:
        self.simplified().writes = writes_of(self.joint)
        return self.backend.forward(self.halves()[0], "inference")

    def _backward_without(self, absent: tuple[int, ...]) -> Callable:
        backend, half = self.backend, without(self.halves()[1], absent)
        if backend.layout is None:
            return backend.backward(half, "backward")
        # what a user's compiler sees is PyTorch's: all of the backward
        return backend.layout.backward(eager_module(half, self.values))

    def _eager(self, absent: tuple[int, ...] = ()) -> Callable:
        return self._by_operators(self.joint.backward.recorded.grafted or self.simplified(), absent)

    def _by_operators(self, module: GraphModule, absent: tuple[int, ...] = ()) -> Callable:
        """A joint graph operator by operator, so that the tape can record it."""
        made = without_forward_effects(with_histories(module))
        return eager_module(without(made, absent), self.values)

    def _fused(self) -> Callable:
        """Forward and backward of a loss in one graph."""
        made = self.backend.seeded(self.simplified())
        if self.backend.limited and getattr(self.cut(), "fused", None) and self.cut().fused.tight:
            tighten(made)
        return self.backend.forward(made, "loss_and_gradients")

    def fuses(self) -> bool:
        """May gradients of a loss be computed in the forward call?"""
        if self.inlines or "fused" not in self.makers:
            return False
        if self.known is not None and self.known.facts is not None:
            return self.known.facts["fuse"]
        return not self.backend.limited or getattr(self.cut(), "fused", None) is not None

    def facts(self) -> list[tuple]:
        """Shape and dtype of each output of the graph."""
        nodes = self.module.graph.output_node().args[0][:self.count]
        found = [(tuple(n.meta["val"].shape), n.meta["val"].dtype.np) for n in nodes]
        if self.values is None:
            return found
        from ..graph.concrete import known_shape

        return [(known_shape(shape, self.values), dtype) for shape, dtype in found]


def make_program(
    joint: Joint, tensors: list, backend: Backend, values: dict[str, int] | None = None,
    known: Any = None
) -> Program:
    """The program of a captured function, for tensors like these (see `CompiledParts`)."""
    parts = CompiledParts(joint, tensors, backend, values, known)
    known = parts.known
    if known is None or known.facts is None:
        parts.simplified()
    program = Program(joint, parts, tensors)
    if known is not None:
        _remember(program, known)
    if backend.layout is None:  # else when it is called: inputs may share memory
        program.part("fused" if program.fuse else "forward")
    return program


def program_of(joint: Joint, request: Request, backend: Backend, known: Any = None) -> Program:
    """The program of a capture; of one with symbolic sizes, for those at hand."""
    tensors, sizes = request.tensors, request.sizes
    if sizes is None:
        return make_program(joint, joint.inputs.of(tensors), backend, known=known)
    from .dynamic import SymbolicProgram
    from .dynamic_dims import check_demands

    if request.dynamic_dims is not None:
        check_demands(sizes.env, request.dynamic_dims, sizes.shapes, sizes.names)
    made = SymbolicProgram(joint, sizes, backend)
    shapes = [hinted(t._payload.shape) for t in tensors]
    values = made.check.bind([*shapes, *[(hinted(request.numbers[k]),) for k in sizes.numbers]])
    if isinstance(values, str):  # what was assumed of sizes that nothing may depend on
        raise errors.CompileError(errors.text(
            f"these arguments do not fit what operators assume of sizes marked as unbacked: "
            f"{values} ({errors.user_line()})",
            cure="give arguments whose sizes fit one another, or leave the mark away"))
    return made.instance(tensors, values)


def _remember(program: Program, known: Any) -> None:
    """Take the parts of a program from the disk, and put there what is compiled."""
    if known.facts is None:
        known.keep(program)
    else:
        known.fill(program)
    makers = program.parts.makers

    def remembered(name: str, make: Callable) -> Callable:
        def made():
            found = known.part(name, program)
            if found is None:
                found = make()
                known.keep_part(name, found, program)
            return found

        return made

    for name in ("forward", "backward", "fused"):
        if name in makers:
            makers[name] = remembered(name, makers[name])


def eager_module(module: GraphModule, values: dict | None) -> Callable:
    """A joint graph, operator by operator."""
    if values is None:
        return module
    from .dynamic import runs_eagerly

    return runs_eagerly(module, values)


def examples(module: GraphModule) -> list:
    """Fake inputs of a graph."""
    return [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]


def interpreted(module: GraphModule, name: str):
    """Run a graph operator by operator on NumPy."""
    return Stepwise(module) if name == "backward" else boxed(module)


class Stepwise:
    """A backward graph that runs operator by operator."""

    def __init__(self, module: GraphModule):
        self.module, self.run = module, boxed(module)
        self.laid = layouts(module)

    def __repr__(self) -> str:
        return f"<backward graph on NumPy: {len(self.module.graph.nodes)} nodes>"

    def __call__(self, *arrays) -> tuple:
        return self.run(*self.laid(arrays))

    def consume(self, arrays: list) -> tuple:
        """The same for a list, which is emptied: what nobody else has ends with its last reader."""
        from ..autograd.grad_mode import no_grad
        from ..graph.interpreter import Interpreter

        handles = [make(a) if type(a) is not int else a for a in self.laid(arrays)]
        arrays.clear()
        with no_grad(), uncast():
            out = Interpreter(self.module).boxed_run(handles)
        return tuple(o._payload if isinstance(o, Tensor) else o for o in out)


def layouts(module: GraphModule) -> Callable[[Sequence], list]:
    """What lays the arguments of a graph as it expects them in memory: it may view tangents, which
    come as they please."""
    strides = [strides_of(n) if n.name.startswith("tangents_") else None
             for n in module.graph.nodes if n.op == "placeholder"]
    if not any(s is not None for s in strides):
        return list
    return lambda arrays: [a if s is None else coerced(a, s) for a, s in zip(arrays, strides)]


def boxed_by(compiler: Callable, module: GraphModule):
    """What a compiler makes of a graph as a function of raw arrays, tangents laid as expected."""
    laid = layouts(module)  # of the graph as it was captured: the compiler may change it
    run = boxed(compiler(module))
    return run if laid is list else lambda *arrays: run(*laid(arrays))


def boxed(function):
    """A function of tensors as a function of raw arrays."""
    from ..autograd.grad_mode import no_grad

    def run(*arrays):
        handles = [make(a) if type(a) is not int and type(a) is not float else a for a in arrays]
        with no_grad(), uncast():
            out = (
                function(handles) if getattr(function, "_boxed_call", False) else function(*handles)
            )
        if isinstance(out, Tensor):  # the test of a loop
            return (out._payload,)
        return tuple(o._payload if isinstance(o, Tensor) else o for o in out)

    return run
