"""Is a program what it says?  Shapes are computed again, without data, and compared."""

from __future__ import annotations

from .. import errors
from ..control import HigherOrder
from ..core.handle import Tensor, make
from ..core.overload import OpOverload
from ..graph.concrete import concrete
from ..graph.graph_module import GraphModule
from ..graph.node import Node, map_arg
from ..interp.box import map_tensors
from ..nn.parameter import Parameter
from ..table.derived_overloads import InplaceOverload, OutOverload
from ..threads.state import state
from .graph_signature import InputKind
from .program import ExportedProgram
from .reader import alike
from .text import type_text

_ANY = 7  # in the place of sizes that data decides, where that is in their range
_LONG = 1 << 16  # sizes up to which operators that give lists are run on shapes


def check_program(program: ExportedProgram) -> None:
    """Refuse a program whose values, inputs and outputs are not what it states."""
    check_signature(program)
    before, record = state.fakes.creates, state.record[-1]
    state.fakes.creates, state.record[-1] = True, False
    try:
        hints = None
        if program.env is not None:  # for the sizes that it was exported with
            hints = {s.name: min(max(_ANY, s.range[0]), s.range[1]) if s.hint is None else s.hint
                     for s in program.env.symbols.values()}
        try:
            _check_graph(program.graph_module, hints)
        except (ArithmeticError, KeyError) as error:
            raise errors.FileFormatError(errors.text(
                f"the sizes of the program cannot be computed: {error!r} "
                f"({errors.user_line(2)})", cure="get it again from where it came")) from None
    finally:
        state.fakes.creates, state.record[-1] = before, record


def check_signature(program: ExportedProgram) -> None:
    """Refuse a program whose signature is not that of its graph, or speaks of tensors that it has
    not."""
    signature, graph = program.graph_signature, program.graph
    results = graph.output_node().args[0]
    for what, nodes, specs in (
            ("input", graph.find_nodes(op="placeholder"), signature.input_specs),
            ("output", results, signature.output_specs)):
        if len(nodes) != len(specs):
            raise _violated(f"Number of {what} nodes is {len(nodes)}, its signature has "
                            f"{len(specs)}")
        for node, spec in zip(nodes, specs):
            if isinstance(node, Node) and node.name != spec.arg.name:
                raise _violated(f"the {what} {node.name!r} is {spec.arg.name!r} in the signature")
    for spec in signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            continue
        lasting = spec.kind is InputKind.PARAMETER or spec.persistent
        if spec.target not in (program.state_dict if lasting else program.constants):
            raise _violated(f"{spec.kind.name} {spec.target!r} is not in the "
                            f"{'state dict' if lasting else 'constants'}")
        if spec.kind is InputKind.PARAMETER and not isinstance(
                program.state_dict[spec.target], Parameter):
            raise _violated(f"State dict entry for parameter {spec.target} is not an instance of "
                            "torch.nn.Parameter")


def _violated(what: str) -> Exception:
    return errors.SpecViolationError(errors.text(
        f"{what} ({errors.user_line(3)})",
        cure="change graph, signature and tensors of a program together"))


def _check_graph(given: GraphModule, hints: dict[str, int] | None) -> list:
    """Check a graph and those that it calls; gives the facts of its results."""
    module = given if hints is None else concrete(given, hints)[0]
    inner = {}
    for node in module.graph.nodes:
        if node.op in ("call_module", "call_method") or isinstance(
                node.target, (InplaceOverload, OutOverload)):
            raise _violated(f"%{node.name} of the program is {node.format_node()}: programs call "
                            "operators that write nothing")
        if isinstance(node.target, OpOverload):
            _check(node)
        elif node.op == "get_attr":
            inner[node] = _check_graph(getattr(given, node.target), hints)
        elif isinstance(node.target, HigherOrder) and node.target.name() == "cond":
            for branch in node.args[1:3]:
                if not alike(inner[branch], node.meta["val"]):
                    raise _wrong(node, f"@{branch.target} gives {type_text(inner[branch])}")
    results = module.graph.output_node().args[0]
    several = [results] if isinstance(results, Node) else results
    return [r.meta.get("val") if isinstance(r, Node) else r for r in several]


def _check(node: Node) -> None:
    ov, stated = node.target, node.meta.get("val")
    if isinstance(ov, OpOverload) and not ov.schema.returns and stated is None:
        return  # it is called for what it does, and not now
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    values = [n.meta["val"] for n in node.all_input_nodes]
    sizes = [max(v.shape, default=0) for v in values if isinstance(v, Tensor)]
    if isinstance(stated, list) and max(sizes, default=0) > _LONG:
        return  # a list per element would be long; what is taken from it is checked
    try:
        found = ov(*args, **kwargs)
    except errors.DataDependentError:
        return
    except Exception as error:
        raise _wrong(node, f"{ov} refuses its arguments: {error}") from error
    if isinstance(found, tuple):
        found = list(found)
    found = map_tensors(lambda t: make(t._payload), found)
    if not alike(found, stated):
        raise _wrong(node, f"it is said to be {type_text(stated)}, and is {type_text(found)}")


def _wrong(node: Node, what: str) -> Exception:
    return errors.FileFormatError(errors.text(
        f"%{node.name} of the program is not what it should be: {what} ({errors.user_line(3)})",
        cure="get the program again from where it came, or export it again"))
