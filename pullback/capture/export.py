"""Graphs to keep: a module or a function as one graph of values, with all that it takes and gives.

`aot_export_module` lifts parameters and buffers to inputs and returns what is written to inputs in
front of the results; `aot_export_joint_simple` exports a function that does neither;
`aot_export_joint_with_descriptors` gives the joint graph with a descriptor on every input and
output, to be looked at, changed and compiled (`aot_compile_joint_with_descriptors`).

What a graph of values cannot say is refused here, each case with its own message.  Read
`capture.py` first, `descriptors.py` and `signature.py` beside.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..core.overload import overload
from ..cut import refusals
from ..cut.settings import config
from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.printer import Trees
from ..pytree import TreeSpec, tree_flatten
from ..table.packets import ops
from . import signature as sig
from .descriptors import (
    BackwardTokenAOTInput,
    BackwardTokenAOTOutput,
    BufferAOTInput,
    ForwardTokenAOTInput,
    ForwardTokenAOTOutput,
    GradAOTOutput,
    InputMutationAOTOutput,
    IntermediateBaseAOTOutput,
    ParamAOTInput,
    PlainAOTInput,
    PlainAOTOutput,
    TangentAOTInput,
)
from .effect_tokens import Threaded, effectful, unthreaded
from .effects.results import Output, ReturnView
from .export_trace import Exported, finish, trace
from .export_trace import _facts as facts_of
from .joint import Joint, Sizes
from .retrace import traced_again

__all__ = [
    "JointWithDescriptors", "aot_compile_joint_with_descriptors", "aot_export_joint_simple",
    "aot_export_joint_with_descriptors", "aot_export_module",
]  # fmt: skip


# --- modules --------------------------------------------------------------------------------------


def _state(mod: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    return (dict(mod.named_parameters(remove_duplicate=False)),
            dict(mod.named_buffers(remove_duplicate=False)))


def _as_function(mod: Any, names: list[str]) -> Callable:
    """A module as a function of its parameters and buffers, then its arguments."""
    from ..func import functional_call

    def call(*args: Any, **kwargs: Any) -> Any:
        held = dict(zip(names, args))
        return functional_call(mod, held, args[len(names):], kwargs, tie_weights=False)

    return call


def aot_export_module(
    mod: Any,
    args: Iterable[Any],
    *,
    decompositions: Any = None,
    trace_joint: bool,
    output_loss_index: int | None = None,
    pre_dispatch: bool = False,
    dynamic_shapes: bool | None = None,
    kwargs: dict[str, Any] | None = None,
) -> tuple[GraphModule, sig.GraphSignature]:
    """A module as a graph of (parameters, buffers, arguments), and what these are.

    The graph returns new values of buffers and arguments that the module writes, then its results;
    with `trace_joint` the gradients of the loss (result number `output_loss_index`) follow.
    `pre_dispatch` keeps composite operators whole and grad modes as calls in the graph.
    """
    from ..autograd.grad_mode import no_grad

    refusals.module("aot_export_module", mod)
    refusals.arguments("aot_export_module", args)
    refusals.table("aot_export_module", decompositions)
    if pre_dispatch and trace_joint:
        raise errors.ExportError("pre_dispatch is not supported when trace_joint is True. "
                                 f"({errors.user_line(2)})")
    kwargs = kwargs or {}
    parameters, buffers = _state(mod)
    function = _as_function(mod, [*parameters, *buffers])
    held = [*parameters.values(), *buffers.values()]

    def checked(*given: Any, **named: Any) -> Any:
        out = function(*given, **named)
        return _with_loss(out, output_loss_index) if trace_joint else _as_tuple(out)

    with contextlib.nullcontext() if trace_joint or pre_dispatch else no_grad():
        found = trace(checked, (*held, *args), kwargs,
                      joint=trace_joint, decompositions=decompositions, pre_dispatch=pre_dispatch,
                      sizes=_symbols(held, (args, kwargs)) if dynamic_shapes else None)
    inputs, descs, tokens = found.inputs, None, 0
    gradients: dict[int, Node] = {}
    if trace_joint:
        _drop_ends(found)
        gradients = _gradients_of_loss(found)
    else:
        descs = _described(found)
    written, results = found.outputs("written"), found.results
    module = finish(found, (*written, *results, *gradients.values()), descs)
    if trace_joint:
        tracked = [t.requires_grad for t in found.tensors]
        copied = traced_again(module, inputs, tracked)
        inputs = [copied[n] for n in inputs]
        gradients = {i: copied[n] for i, n in gradients.items()}
        _rename(inputs)
    if effectful(module.graph):
        copied, tokens, _ = _threaded(module)
        inputs = [copied[n] for n in inputs]
        gradients = {i: copied[n] for i, n in gradients.items()}
    return module, sig.describe(
        module, inputs, list(parameters), list(buffers), found.written, len(results), gradients,
        found.in_spec, found.joint.out_spec, output_loss_index if trace_joint else None, tokens)


def _described(found: Exported) -> list:
    """Describe the inputs of a forward graph; gives what its outputs are."""
    plain = [PlainAOTInput(i) for i in range(len(found.inputs))]
    for node, desc in zip(found.inputs, plain):
        node.meta["desc"] = desc
    return [*[InputMutationAOTOutput(plain[i]) for i in found.written],
            *[PlainAOTOutput(i) for i in range(len(found.results))]]


def _threaded(
    module: GraphModule, named: str = "arg{0}_1"
) -> tuple[dict[Node, Node], int, int]:
    """Effects as chains of tokens; how many come before and after all other inputs and outputs."""
    output = module.graph.output_node()
    found = Threaded(module.graph, named, not config.unlift_effect_tokens)
    results = [found.copied[n] if isinstance(n, Node) else n for n in output.args[0]]
    made = found.graph.output(type(output.args[0])((*found.last, *results, *found.late)))
    if output.meta.get("desc"):
        made.meta["desc"] = [*map(ForwardTokenAOTOutput, range(len(found.last))),
                             *output.meta["desc"],
                             *map(BackwardTokenAOTOutput, range(len(found.late)))]
    placeholders = found.graph.find_nodes(op="placeholder")
    for i, node in zip(range(len(found.last)), placeholders):
        node.meta["desc"] = ForwardTokenAOTInput(i)
    for i, node in enumerate(placeholders[len(placeholders) - len(found.late):]):
        node.meta["desc"] = BackwardTokenAOTInput(i)
    found.graph.eliminate_dead_code()
    module.graph = found.graph
    module.recompile()
    return found.copied, len(found.last), len(found.late)


def _thread_joint(module: GraphModule, inputs: int, results: int) -> int:
    """The same for a joint graph; gives the number of tokens in front of its outputs."""
    if not effectful(module.graph):
        return 0
    tangents = len(module.graph.find_nodes(op="placeholder")) - inputs
    _, first, last = _threaded(module, "primals_{1}")
    given = (0,) * (inputs + first), [0] * (tangents + last)
    ends = (0,) * (results + first), (0,) * (inputs + last)
    module.graph.trees = Trees(("primals", "tangents"), tree_flatten(given)[1],
                               tree_flatten(ends)[1])
    module.recompile()
    return first


def _drop_tokens(graph: Any) -> None:
    """A joint graph as it was before its effects became chains."""
    output = graph.output_node()
    descs = output.meta.get("desc") or []
    kept = [i for i, d in enumerate(descs)
            if not isinstance(d, (ForwardTokenAOTOutput, BackwardTokenAOTOutput))]
    if len(kept) == len(descs):
        return
    output.args = (tuple([output.args[0][i] for i in kept]),)
    tokens = {n for n in graph.find_nodes(op="placeholder")
              if isinstance(n.meta.get("desc"), (ForwardTokenAOTInput, BackwardTokenAOTInput))}
    unthreaded(graph, tokens)


def _symbols(held: list[Tensor], arguments: Any) -> Sizes:
    """Symbols for all sizes of the arguments, numbers for those of parameters and buffers."""
    given = [t for t in tree_flatten(arguments)[0] if isinstance(t, Tensor)]
    wanted = [[False] * t.ndim for t in held] + [[True] * t.ndim for t in given]
    return Sizes(wanted, [f"arg{i}" for i in range(len(wanted))])


def _as_tuple(out: Any) -> Any:
    if not isinstance(out, (tuple, list)):
        raise errors.ExportError(
            "Graph output must be a (). This is so that we can avoid pytree processing of the "
            f"outputs. Please change the module to have tuple outputs ({errors.user_line(2)})")
    return out


def _with_loss(out: Any, index: int | None) -> Any:
    """The results of a module, of which one is a scalar to be differentiated."""
    _as_tuple(out)
    if index is None:
        raise errors.ExportError(errors.text(
            "If trace_joint=True it is required that one of your forward outputs must be a scalar "
            "loss.", cure="say which one: output_loss_index=0"))
    for i, o in enumerate(out):
        if i != index and isinstance(o, Tensor) and o.requires_grad:
            raise errors.ExportError(errors.text(
                "Found an output of the forward that requires gradients, that was not the scalar "
                "loss.", f"the loss is output {index}; output {i} requires gradients",
                "detach() the outputs that are not the loss"))
    loss = out[index]
    if not loss.requires_grad:
        raise errors.ExportError(f"The output at index {index} was marked as the loss, but it "
                                 "does not require gradients")
    if loss.numel() != 1:
        raise errors.ExportError("We require the output marked as the loss (at index "
                                 f"{index}) to be a scalar, but it has shape {loss.shape}")
    return out


def _gradients_of_loss(found: Exported) -> dict[int, Node]:
    """The gradient of each input that has one, with ones for the tangent of the loss."""
    graph, joint = found.module.graph, found.joint
    tangents = [n for n in graph.find_nodes(op="placeholder") if n.name.startswith("tangents_")]
    outputs = list(graph.output_node().args[0])
    for tangent, number in zip(tangents, joint.backward.tangent_of):
        first = next(iter(sorted(tangent.users)), graph.output_node())
        with graph.inserting_before(first):
            seed = graph.call_function(
                overload("ones_like"), (outputs[number],),
                {"pin_memory": False, "memory_format": "preserve_format"})
        seed.meta["val"] = tangent.meta["val"]
        tangent.replace_all_uses_with(seed)
        graph.erase_node(tangent)
    gradients = dict(zip(joint.backward.grad_of, outputs[joint.forward_count:]))
    for i, node in gradients.items():
        if node is None and found.twice(i):  # a tied parameter: it is read under its other name
            with graph.inserting_before(graph.output_node()):
                gradients[i] = graph.call_function(overload("zeros_like"), (found.inputs[i],))
            gradients[i].meta["val"] = found.inputs[i].meta["val"]
        elif node is None:
            raise errors.ExportError(errors.text(
                "Found a parameter that did not receive a gradient "
                f"({errors.user_line(3)})", f"input {i}: {facts_of(found.tensors[i])}",
                "freeze it (requires_grad_(False)) or use it"))
    return gradients


def _rename(inputs: list[Node]) -> None:
    """Inputs of a graph that needs no tangents are named as those of a forward graph."""
    for i, node in enumerate(inputs):
        node.name = node.target = f"arg{i}_1"


# --- functions ------------------------------------------------------------------------------------


def aot_export_joint_simple(
    func: Callable,
    args: tuple,
    *,
    trace_joint: bool,
    num_params_buffers: int = 0,
    decompositions: Any = None,
) -> GraphModule:
    """A function of tensors as a graph with the same arguments and results.

    With `trace_joint` the graph is that of (primals, tangents), as partitioners take it.  The
    function must not write to its arguments nor return views of them.
    """
    from ..autograd.grad_mode import no_grad

    refusals.functions("aot_export_joint_simple", {}, func=func)
    refusals.arguments("aot_export_joint_simple", args)
    with contextlib.nullcontext() if trace_joint else no_grad():
        found = trace(func, tuple(args), {}, joint=trace_joint, decompositions=decompositions,
                      title="inner_f" if trace_joint else "<lambda>")
    joint, prefix = found.joint, "aot_export_joint_simple"
    if joint.mutated:
        raise errors.ExportError(errors.text(
            f"{prefix} does not support input mutations. ViewAndMutationMeta: inputs "
            f"{found.written} are written ({errors.user_line(2)})",
            cure="return the new value, or use aot_export_module"))
    aliases = [i for i, o in enumerate(joint.outputs) if isinstance(o, Output) and _of_input(o)]
    if aliases:
        raise errors.ExportError(errors.text(
            f"{prefix} does not support outputs that alias inputs. ViewAndMutationMeta: outputs "
            f"{aliases} are inputs or views of them ({errors.user_line(2)})",
            cure="return copies: clone()"))
    in_spec, out_spec = found.in_spec.children()[0], joint.out_spec
    for word, spec in (("in", in_spec), ("out", out_spec)):
        if spec.is_leaf():
            raise errors.ExportError(
                f"{prefix} requires {word}puts to be a single list/tuple. {word}_spec={spec}")
        if not all(child.is_leaf() for child in spec.children()):
            raise errors.ExportError(f"{prefix} requires individual {word}puts not to be pytrees. "
                                     f"{word}_spec={spec}")
    plain = [PlainAOTInput(i) for i in range(len(found.inputs))]
    if trace_joint:
        module = _joint_graph(found, plain)[0]
        _thread_joint(module, len(found.inputs), len(found.results))
        return module
    for node, desc in zip(found.inputs, plain):
        node.meta["desc"] = desc
    module = finish(found, tuple(found.results),
                    [PlainAOTOutput(i) for i in range(len(found.results))])
    if effectful(module.graph):
        _threaded(module)
    return module


@dataclass
class Metadata:
    """What a function that was exported does to its inputs."""

    written: list[int]  # inputs whose new values the graph returns
    kept: list[int]  # inputs that the graph writes itself
    outputs: int  # how many results


def _aot_export_function(
    func: Callable,
    args: tuple,
    *,
    num_params_buffers: int = 0,
    decompositions: Any = None,
    no_tangents: bool = False,
    pre_dispatch: bool = False,
    dynamic_shapes: bool | None = None,
    keep_input_mutations: bool = False,
    trace_joint: bool = False,
    kwargs: dict[str, Any] | None = None,
) -> tuple[GraphModule, Metadata, TreeSpec, TreeSpec]:
    """A function of trees as a graph; with `keep_input_mutations` the graph writes its inputs."""
    given = tuple(args), kwargs or {}
    found = trace(func, *given, joint=trace_joint, decompositions=decompositions,
                  pre_dispatch=pre_dispatch, title="inner_f" if trace_joint else "<lambda>",
                  sizes=_symbols([], given) if dynamic_shapes else None)
    joint, inputs = found.joint, found.inputs
    plain = [PlainAOTInput(i) for i in range(len(inputs))]
    kept = [(inputs[m.input], n) for m, n in zip(joint.mutated, found.outputs("written"))
            if keep_input_mutations]
    meta = Metadata([] if kept else found.written, found.written if kept else [],
                    len(found.results))
    if trace_joint:
        module, _ = _joint_graph(found, plain, kept)
    else:
        for node, desc in zip(inputs, plain):
            node.meta["desc"] = desc
        written = [] if kept else found.outputs("written")
        module = finish(found, (*written, *found.results), [
            *[InputMutationAOTOutput(plain[i]) for i in meta.written],
            *[PlainAOTOutput(i) for i in range(len(found.results))]], kept)
    return module, meta, found.in_spec, joint.out_spec


def _of_input(o: Output) -> bool:
    return o.kind == "input" or isinstance(o, ReturnView) and _of_input(o.of)


def _joint_graph(
    found: Exported, descs: list, kept: list | tuple = ()
) -> tuple[GraphModule, list[int]]:
    """The joint graph as a function of (primals, tangents), every input and output described.

    Also: which of its forward outputs are those of the capture.  `kept` are inputs and their new
    values that the graph is to write itself.
    """
    joint, graph = found.joint, found.module.graph
    own = found.outputs("forward")
    written = len(joint.mutated)
    by_output = {m.output: InputMutationAOTOutput(descs[m.input]) for m in joint.mutated}
    placed = [o if isinstance(o, Output) else None for o in joint.outputs]
    for i, o in enumerate(placed):
        base = o
        while isinstance(base, ReturnView):
            base = base.of
        if base is not None and base.kind == "graph":
            new = PlainAOTOutput(i) if base is o else IntermediateBaseAOTOutput(PlainAOTOutput(i))
            by_output.setdefault(base.index, new)
    shown = [(own[k], by_output[k], k) for k in range(0 if kept else written)]
    for i, (o, node) in enumerate(zip(placed, found.results)):
        exact = o is not None and o.kind == "graph" and by_output[o.index] == PlainAOTOutput(i)
        shown.append((node, PlainAOTOutput(i), o.index if exact else None))
    shown += [(own[k], desc, k) for k, desc in sorted(by_output.items())
              if isinstance(desc, IntermediateBaseAOTOutput)]
    gradients = dict(zip(joint.backward.grad_of, found.outputs("gradients")))
    inputs = found.inputs
    for node, desc in zip(inputs, descs):
        node.meta["desc"] = desc
    tangents = [n for n in graph.find_nodes(op="placeholder") if n not in inputs]
    for node, k in zip(tangents, joint.backward.tangent_of):
        node.meta["desc"] = TangentAOTInput(by_output[k])
    ends = [(gradients.get(i), GradAOTOutput(descs[i]) if gradients.get(i) else None)
            for i in range(len(inputs))]
    forward = [node for node, _, _ in shown]
    module = finish(found, [*forward, *[n for n, _ in ends]],
                     [*[d for _, d, _ in shown], *[d for _, d in ends]], kept)
    shape = tuple(inputs), [*tangents]
    graph.trees = Trees(("primals", "tangents"), tree_flatten(shape)[1],
                        tree_flatten((tuple(forward), tuple(n for n, _ in ends)))[1])
    where = {k: i for i, (_, _, k) in enumerate(shown) if k is not None}
    return module, [where[k] for k in range(joint.forward_count) if k in where]


def _drop_ends(found: Exported) -> None:
    """Without the marks where histories end: nobody differentiates the graph again."""
    for node in found.module.graph.nodes:
        if node.meta.get("silent"):  # no call of the user's
            node.replace_all_uses_with(node.args[0])
            found.results = [node.args[0] if r is node else r for r in found.results]


def _forward_graph(found: Exported, descs: list, keep: bool) -> tuple[GraphModule, list]:
    """The graph of a function that is not differentiated; see `_joint_graph`.

    Where an output of the capture is none of the user's (the base of views), it is its node.
    """
    joint, inputs = found.joint, found.inputs
    _drop_ends(found)
    own = found.outputs("forward")
    written = [(m, own[m.output]) for m in joint.mutated]
    count = 0 if keep else len(written)
    exact = {o.index: count + i for i, o in enumerate(joint.outputs)
             if isinstance(o, Output) and o.kind == "graph"}
    places = [exact.get(k, own[k]) for k in range(joint.forward_count)]
    for i, (m, _) in enumerate(written):
        places[m.output] = None if keep else i  # those that the graph writes are taken out of it
    for node, desc in zip(inputs, descs):
        node.meta["desc"] = desc
    values = [] if keep else [value for _, value in written]
    shown = [] if keep else [InputMutationAOTOutput(descs[m.input]) for m, _ in written]
    module = finish(found, (*values, *found.results),
                    [*shown, *map(PlainAOTOutput, range(len(found.results)))],
                    [(inputs[m.input], value) for m, value in written] if keep else ())
    module._class_name = "<lambda>"
    _rename(inputs)
    module.recompile()
    if effectful(module.graph):
        _threaded(module)
    return module, places


# --- joint graphs with descriptors ----------------------------------------------------------------


@dataclass
class JointWithDescriptors:
    """A joint graph to be looked at and changed; `aot_compile_joint_with_descriptors` runs it."""

    graph_module: GraphModule
    params_spec: list[str]
    buffers_spec: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec
    _exported: Exported
    _outputs: list[Any]  # the capture's forward outputs: positions among the graph's, or nodes


def aot_export_joint_with_descriptors(
    stack: contextlib.ExitStack,
    mod: Any,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    *,
    decompositions: Any = None,
    keep_inference_input_mutations: bool = False,
    ignore_shape_env: bool = False,
    disable_functionalization: bool = False,
) -> JointWithDescriptors:
    """The joint graph of a module of any results, with `meta["desc"]` on inputs and outputs.

    `stack` is there for PyTorch's sake: nothing has to stay open until the graph is compiled.
    """
    refusals.module("aot_export_joint_with_descriptors", mod)
    refusals.arguments("aot_export_joint_with_descriptors", args)
    kwargs = kwargs or {}
    parameters, buffers = _state(mod)
    names = [*parameters, *buffers]
    held = [*parameters.values(), *buffers.values()]
    found = trace(_as_function(mod, names), (*held, *args), kwargs, joint=True,
                  decompositions=decompositions, title="inner_f")
    count = len(found.inputs) - len(names)
    descs = [*map(ParamAOTInput, parameters), *map(BufferAOTInput, buffers),
             *map(PlainAOTInput, range(count))]
    inputs = len(found.inputs)
    if found.joint.differentiable:
        module, outputs = _joint_graph(found, descs)
        _thread_joint(module, inputs, len(module.graph.output_node().args[0]) - inputs)
    else:
        module, outputs = _forward_graph(found, descs, keep_inference_input_mutations)
    in_spec = tree_flatten(([*held, *args], kwargs))[1]
    return JointWithDescriptors(module, list(parameters), list(buffers), in_spec,
                                found.joint.out_spec, found, outputs)


def _taken_out(graph: Any, found: Exported) -> dict[int, Node]:
    """The values that a graph writes to its inputs itself, which the run time will write."""
    inputs = found.inputs
    new: dict[int, Node] = {}
    for node in graph.find_nodes(op="call_function", target=ops.copy_.default):
        if node.args[0] in inputs:
            new[inputs.index(node.args[0])] = node.args[1]
            node.replace_all_uses_with(node.args[1])
    return new


def _as_captured(jd: JointWithDescriptors) -> Joint:
    """The captured program of a joint graph that may have been changed since."""
    found = jd._exported
    joint, graph = found.joint, jd.graph_module.graph
    _drop_tokens(graph)
    flat, count = list(graph.output_node().args[0]), len(found.inputs)
    gradients = flat[len(flat) - count:]
    new = _taken_out(graph, found)
    by_output = {m.output: new[m.input] for m in joint.mutated if m.input in new}
    forward = [by_output[k] if i is None else i if isinstance(i, Node) else flat[i]
               for k, i in enumerate(jd._outputs)]
    nodes = set(graph.nodes)
    if any(isinstance(n, Node) and n not in nodes for n in forward):
        raise errors.ExportError(errors.text(
            "a value that results of the function are views of is gone from the graph "
            f"({errors.user_line(3)})", cure="change the graph in place, and keep its views"))
    kept = [gradients[i] for i in joint.backward.grad_of] if joint.differentiable else []
    graph.trees = None
    graph.output_node().args = ((*forward, *kept),)
    graph.output_node().meta.pop("desc", None)
    for node in graph.find_nodes(op="call_function", target=ops.copy_.default):
        if not node.users:
            graph.erase_node(node)
    jd.graph_module.recompile()
    joint.module = jd.graph_module
    return joint


def aot_compile_joint_with_descriptors(
    jd: JointWithDescriptors,
    *,
    partition_fn: Callable | None = None,
    fw_compiler: Callable | None = None,
    bw_compiler: Callable | None = None,
    serializable: bool = False,
) -> Callable:
    """A function of (parameters, buffers, arguments) from a joint graph with descriptors."""
    from ..cut.partition import default_partition
    from .build import Backend, boxed_by, examples, make_program
    from .compilers import nop

    found = jd._exported
    joint = _as_captured(jd)

    def adapted(compiler: Callable) -> Callable:
        return lambda module, name: boxed_by(lambda graph: compiler(graph, examples(graph)), module)

    def cut(module: GraphModule, forward: int) -> tuple:
        return (partition_fn or default_partition)(module, None, num_fwd_outputs=forward)

    forward_compiler = fw_compiler or nop
    backend = Backend(adapted(forward_compiler), adapted(bw_compiler or forward_compiler), cut, {})
    program = make_program(joint, found.tensors, backend)

    names = list(jd.in_spec.children()[1].context or ())

    def call(*args: Any, **kwargs: Any) -> Any:
        order = sorted(kwargs, key=lambda n: names.index(n) if n in names else len(names))
        given, spec = tree_flatten((list(args), {n: kwargs[n] for n in order}))
        if order != names or spec.num_leaves != jd.in_spec.num_leaves:
            raise errors.ExportError(errors.text(
                f"the arguments do not have the structure that was captured "
                f"({errors.user_line(2)})", [f"captured: {jd.in_spec}", f"given: {spec}"],
                "pass parameters, buffers, then the arguments of the module"))
        tensors = [v for v in given if isinstance(v, Tensor)]
        return program.run(tensors)

    return call
