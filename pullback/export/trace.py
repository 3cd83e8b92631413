"""`export`: a module becomes a program.

The module runs once on shapes, as in `capture/export.py`, with composite operators whole; inputs
get the names that they have in the module and among its arguments.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import itertools
import re
import warnings
from collections.abc import Iterator
from typing import Any

from .. import control, errors
from ..array.size import Symbolic
from ..autograd.grad_mode import _set_grad_enabled
from ..capture.export import Exported, finish, trace
from ..core.handle import Tensor, make
from ..graph import traceback
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.interpreter import Interpreter
from ..graph.node import Node, map_arg
from ..memory.assign import assign
from ..nn.module import Module
from ..nn.stateless import functional_call
from ..nn.traced import TracedModule
from ..pytree import tree_flatten, tree_flatten_with_path
from ..tensor.hooks import hooks_as_now
from ..threads.blocks import restored_on_error
from . import graph_signature as sig
from .dynamic_shapes import Varying, forked, requested_dims
from .origins import argument_names, as_nodes, noted
from .program import CallSpec, ExportedModule, ExportedProgram, ModuleCallSignature, placeholder
from .shapes_collection import AdditionalInputs, ShapesCollection


def export(
    mod: Module,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """A module as a program, for arguments like those given.

    The program has the module's parameters and buffers themselves, not copies.  `strict` makes no
    difference: nothing is read from bytecode here.
    """
    if type(mod) is GraphModule:  # what a backend is given
        mod = TracedModule(mod, copy.deepcopy(mod.graph))
    if not isinstance(mod, Module):
        raise errors.BadValue(
            f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}. "
            f"({errors.user_line(2)})")
    if not isinstance(args, tuple):
        raise errors.UserError(
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}. "
            f"({errors.user_line(2)})")
    for path in preserve_module_call_signature:
        if path not in dict(mod.named_modules()):
            raise errors.UserError(f"preserve_module_call_signature: there is no module {path!r} "
                                   f"({errors.user_line(2)})")
    call = _Call(mod, args, kwargs or {}, dynamic_shapes, preserve_module_call_signature)
    try:
        found, sizes = call.traced(False)
    except errors.NoGraph:  # it differentiates
        found, sizes = call.traced(True)
    _refuse_functions(found)
    program = call.program(found, sizes)
    if isinstance(dynamic_shapes, AdditionalInputs):
        dynamic_shapes.verify(program)
    return program


class _Call:
    """A module and its arguments, as they are traced and become a program."""

    def __init__(self, mod: Module, args: tuple, kwargs: dict, shapes: Any, preserved: tuple):
        self.mod, self.args, self.kwargs, self.preserved = mod, args, kwargs, preserved
        if isinstance(shapes, (AdditionalInputs, ShapesCollection)):
            shapes = shapes.dynamic_shapes(mod, args, kwargs)
        self.shapes = _spread(mod, shapes, args, kwargs)
        self.parameters, self.buffers = dict(mod.named_parameters()), dict(mod.named_buffers())
        self.held = {**self.parameters, **self.buffers}
        self.names = argument_names(mod, args, kwargs)
        self.kept: dict[str, list] = {}  # calls of the modules whose signatures are preserved

    def run(self, *given: Any, **named: Any) -> Any:
        """The module on its tensors and arguments, all of them given."""
        replaced = dict(zip(self.held, given))
        out = functional_call(self.mod, replaced, given[len(self.held):], named, tie_weights=True)
        for old, new in zip(given, replaced.values()):
            if new is not old:  # the module has put another buffer in its place
                _replace(old, new)
        return out

    def traced(self, history: bool) -> tuple[Exported, Varying]:
        """The graph of a call and its sizes; `history`: with what autograd records on the way."""
        sizes = _sizes(self.shapes, self.names, self.args, self.kwargs, self.held)
        self.kept.clear()
        self.kept.update({path: [] for path in self.preserved})
        again = isinstance(self.mod, ExportedModule)  # whose nodes say where they come from
        parts = _parts(self.mod)
        back = functools.partial(_put_back, parts)
        with (restored_on_error(hooks_as_now(self.mod), back), _unchanged(parts),
              noted(self.mod, self.kept),
              traceback.preserve_node_meta(again)):
            return trace(self.run, (*self.held.values(), *self.args), self.kwargs, joint=False,
                         pre_dispatch=True, title="GraphModule", sizes=sizes, history=history,
                         for_reading=False), sizes

    def program(self, found: Exported, sizes: Varying) -> ExportedProgram:
        """The program that the graph is, with the module's tensors."""
        given, in_spec = tree_flatten((self.args, self.kwargs))
        transient, constants = _transient(self.mod), _constants(self.mod, found)
        builder = self.built(found, given, transient, constants)
        module = builder.finish()
        held = self.held
        for every in (self.mod.named_parameters, self.mod.named_buffers):
            held.update(every(remove_duplicate=False))  # shared ones under all their names
        state = {k: v for k, v in held.items() if k not in transient}
        others = {k: v for k, v in held.items() if k in transient}
        others.update((name, t) for names, t in constants.values() for name in names)
        return ExportedProgram(
            module, builder.signature, state, others,
            CallSpec(in_spec, found.joint.out_spec), self.names, (self.args, self.kwargs),
            sizes.checked() if sizes.env.symbols else None, builder.calls(self.kept))

    def built(self, found: Exported, given: list, transient: set, constants: dict) -> _Builder:
        """The graph with its inputs named: parameters, buffers, constants, arguments."""
        specs = [
            *[_Input("p", sig.InputKind.PARAMETER, name) for name in self.parameters],
            *[_Input("b", sig.InputKind.BUFFER, name, name not in transient)
              for name in self.buffers]]
        lifted = [_Input("c", sig.InputKind.CONSTANT_TENSOR, own[0])
                  for own, _ in constants.values()]
        builder, leaves = _Builder(found), _leaf_names(self.names, self.args, self.kwargs)
        for spec, name in zip([*specs, *lifted], _apart(
                [*leaves, *[s.name for s in (*specs, *lifted)]])[len(leaves):]):
            spec.name = name
        for spec in specs:
            builder.held(spec, self.held[spec.target].requires_grad)
        for attribute, spec in zip(constants, lifted):
            builder.constant(attribute, spec)
        builder.arguments(_apart(leaves), given)
        return builder


def _replace(old: Tensor, new: Any) -> None:
    """What a buffer became by assignment is written to it."""
    if not isinstance(new, Tensor) or new.shape != old.shape or new.dtype is not old.dtype:
        raise errors.ExportError(errors.text(
            f"a buffer of {list(old.shape)} elements ({old.dtype.name}) became something else "
            f"({errors.user_line(3)}): {new!r:.80}", cure="keep its shape and dtype"))
    assign(old, new)


@contextlib.contextmanager
def _unchanged(parts: list) -> Iterator[None]:
    """Attributes that the module gets or changes in between are taken back."""
    try:
        yield
    finally:
        for m, held, _ in parts:
            changed = [k for k, v in m.__dict__.items()
                       if isinstance(v, Tensor) and held.get(k) is not v]
            if changed:
                warnings.warn(
                    f"The tensor attribute self.{changed[0]} was assigned during export. Such "
                    "attributes must be registered as buffers using the `register_buffer` API",
                    stacklevel=5)
        _put_back(parts)


def _parts(mod: Module) -> list:
    """The attributes of a module and of those in it, and what is in the plain containers there."""
    return [(m, dict(m.__dict__), {k: copy.copy(v) for k, v in m.__dict__.items()
                                   if type(v) in (list, dict, set)}) for m in mod.modules()]


def _put_back(parts: list) -> None:
    """Give modules their attributes back; once more does no harm."""
    for m, held, inside in parts:
        m.__dict__.update(held)
        for name in m.__dict__.keys() - held.keys():
            del m.__dict__[name]
        for name, kept in inside.items():
            value = held[name]
            value.clear()
            value.extend(kept) if type(value) is list else value.update(kept)


def _sizes(
    dynamic_shapes: Any, names: list[str], args: tuple, kwargs: dict[str, Any], held: dict
) -> Varying:
    """Symbols for the sizes that vary; others may come from data."""
    leaves = list(zip(_leaf_names(names, args, kwargs), tree_flatten((args, kwargs))[0]))
    titles = [name for name, value in leaves if isinstance(value, Tensor)]
    wanted = requested_dims(dynamic_shapes, names, args, kwargs) or [
        [None] * value.ndim for _, value in leaves if isinstance(value, Tensor)]
    fixed: list[list] = [[None] * t.ndim for t in held.values()]
    return Varying([*fixed, *wanted], [*held, *titles])


def _spread(mod: Module, dynamic_shapes: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Shapes for `*args` and `**kwargs`, which stand together, one for each argument."""
    try:
        parameters = list(inspect.signature(mod.forward).parameters.values())
    except (TypeError, ValueError):
        return dynamic_shapes
    fixed = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL and isinstance(dynamic_shapes, dict):
            if p.name in dynamic_shapes:
                rest = {k: v for k, v in dynamic_shapes.items() if k != p.name}
                given = dynamic_shapes[p.name] or [None] * (len(args) - fixed)
                dynamic_shapes = {**rest, **{f"{p.name}_{i}": v for i, v in enumerate(given)}}
        elif p.kind is p.VAR_POSITIONAL and isinstance(dynamic_shapes, (tuple, list)):
            together = dynamic_shapes[fixed:fixed + 1]
            if len(args) > fixed and len(dynamic_shapes) == fixed + 1 + len(kwargs) and isinstance(
                    together[0], (tuple, list)) and len(together[0]) == len(args) - fixed:
                dynamic_shapes = [*dynamic_shapes[:fixed], *together[0],
                                  *dynamic_shapes[fixed + 1:]]
        elif p.kind is p.VAR_KEYWORD and isinstance(dynamic_shapes, dict):
            if p.name in dynamic_shapes and p.name not in kwargs:
                rest = {k: v for k, v in dynamic_shapes.items() if k != p.name}
                dynamic_shapes = {**rest, **(dynamic_shapes[p.name] or {})}
    count = len(args)
    if isinstance(dynamic_shapes, (tuple, list)) and len(dynamic_shapes) == count + len(kwargs):
        order = [p.name for p in parameters if p.name in kwargs]  # by place: as in the signature
        order += [name for name in kwargs if name not in order]
        named = dict(zip(order, dynamic_shapes[count:]))
        dynamic_shapes = [*dynamic_shapes[:count], *[named[name] for name in kwargs]]
    return dynamic_shapes


def _refuse_functions(found: Exported) -> None:
    """A custom backward is Python code, and would be lost."""
    own = [f for f in found.functions if getattr(f, "_registered", None) is None
           and not f.__module__.startswith(control.__name__)]  # these are operators of graphs
    if own:
        name = own[0].__name__
        raise errors.ExportError(errors.text(
            f"{name} has a backward of its own, in Python, which an exported program cannot hold "
            f"({errors.user_line(3)})", cure=[
                "export under torch.no_grad() if gradients are not needed",
                "or write it in operators, whose gradients are known"]))


class _Input:
    """An input to be: its kind and what it stands for."""

    def __init__(self, prefix: str, kind: sig.InputKind, target: str,
                 persistent: bool | None = None):
        self.kind, self.target, self.persistent = kind, target, persistent
        self.name = f"{prefix}_{_identifier(target)}"


def _identifier(text: str) -> str:
    return re.sub(r"\W", "_", text)


class _Builder:
    """Makes the graph of a program: the captured one with inputs named and in order."""

    def __init__(self, found: Exported):
        self.found, self.graph = found, Graph()
        self.copied: dict[Node, Any] = {}
        self.signature = sig.ExportGraphSignature()
        self.inputs = iter(found.inputs)
        self.attributes: dict[str, Node] = {}  # constants, by their name in the captured graph

    def _placeholder(self, name: str, old: Node | None, tracked: bool = False) -> Node:
        node = placeholder(self.graph, name)
        if old is not None:
            node.meta = {k: v for k, v in old.meta.items() if k != "desc"}
            self.copied[old] = node
            if tracked:
                node.meta["val"] = make(node.meta["val"]._payload).requires_grad_()
        return node

    def held(self, spec: _Input, tracked: bool) -> None:
        """A parameter or a buffer."""
        node = self._placeholder(spec.name, next(self.inputs), tracked)
        self._add(spec, node)

    def constant(self, attribute: str, spec: _Input) -> None:
        """A tensor that the graph has as an attribute."""
        nodes = [n for n in self.found.module.graph.find_nodes(op="get_attr")
                 if n.target == attribute]
        node = self._placeholder(spec.name, nodes[0] if nodes else None)
        node.meta = {"val": nodes[0].meta["val"]} if nodes else {}
        self.copied.update(dict.fromkeys(nodes, node))
        self._add(spec, node)

    def _add(self, spec: _Input, node: Node) -> None:
        self.signature.input_specs.append(
            sig.InputSpec(spec.kind, sig.TensorArgument(node.name), spec.target, spec.persistent))

    def arguments(self, names: list[str], given: list) -> None:
        """The user's arguments; those that are no tensors are inputs that nobody reads."""
        for name, value in zip(names, given):
            tensor = isinstance(value, Tensor)
            node = self._placeholder(name, next(self.inputs) if tensor else None,
                                     tensor and value.requires_grad)
            if not tensor:
                node.meta["val"] = value
            arg: sig.Argument = sig.TensorArgument(node.name) if tensor else sig.ConstantArgument(
                node.name, value)
            self.signature.input_specs.append(sig.InputSpec(sig.InputKind.USER_INPUT, arg, None))

    def finish(self) -> GraphModule:
        """Copy the rest, and describe the outputs."""
        found = self.found
        finish(found, (*found.outputs("written"), *found.results), None)
        for node in found.module.graph.nodes:
            if node in self.copied:
                continue
            if node.op == "output":
                self.graph.output(map_arg(node.args[0], self.copied.__getitem__))
                continue
            if _repeated(node):
                continue
            self.copied[node] = self.graph.node_copy(node, self.copied.__getitem__)
        specs = self.signature.input_specs
        results = list(self.graph.output_node().args[0])
        for number, node in zip(found.written, results):
            spec = specs[self._position(number)]
            kind = {sig.InputKind.PARAMETER: sig.OutputKind.PARAMETER_MUTATION,
                    sig.InputKind.BUFFER: sig.OutputKind.BUFFER_MUTATION}.get(
                        spec.kind, sig.OutputKind.USER_INPUT_MUTATION)
            target = spec.target if spec.target is not None else spec.arg.name
            self._result(kind, node, target)
        for node in results[len(found.written):]:
            self._result(sig.OutputKind.USER_OUTPUT, node, None)
        return GraphModule(found.module, self.graph, "GraphModule")

    def calls(self, kept: dict[str, list]) -> dict[str, ModuleCallSignature]:
        """How modules were called, in terms of the program's values."""
        def argument(value: Any) -> sig.Argument:
            if not isinstance(value, Node):
                return sig.ConstantArgument("", value)
            made = self.copied.get(value)
            return sig.TensorArgument("" if made is None else made.name)

        return {title: ModuleCallSignature([argument(v) for v in given], [argument(v) for v in out],
                                           in_spec, out_spec, names)
                for title, (names, given, in_spec, out, out_spec) in kept.items()}

    def _position(self, number: int) -> int:
        """The place among all inputs of the n-th tensor of the capture."""
        tensors = [i for i, s in enumerate(self.signature.input_specs)
                   if isinstance(s.arg, sig.TensorArgument)
                   and s.kind is not sig.InputKind.CONSTANT_TENSOR]
        return tensors[number]

    def _result(self, kind: sig.OutputKind, node: Any, target: str | None) -> None:
        arg: sig.Argument = sig.ConstantArgument("", node)
        if isinstance(node, Node):
            number = isinstance(node.meta.get("val"), Symbolic)
            arg = sig.SymIntArgument(node.name) if number else sig.TensorArgument(node.name)
        self.signature.output_specs.append(sig.OutputSpec(kind, arg, target))


def _repeated(node: Node) -> bool:
    """`set_grad_enabled` switches when it is made, and once more when its block begins."""
    last = node.prev
    return (node.target is _set_grad_enabled and last.target is _set_grad_enabled
            and node.args == last.args and not (
                node.meta.get("leaves") or last.meta.get("leaves")))


def _transient(mod: Module) -> set[str]:
    """Buffers that are not part of the state dict."""
    return {f"{path}.{name}".lstrip(".") for path, m in mod.named_modules()
            for name in m._non_persistent_buffers_set}


def _constants(mod: Module, found: Exported) -> dict[str, tuple[list[str], Tensor]]:
    """Attribute of the captured graph -> the module's names for it, and the tensor."""
    known: dict[int, list[str]] = {}
    for path, m in mod.named_modules():
        for name, value in m.__dict__.items():
            if isinstance(value, Tensor):
                known.setdefault(id(value), []).append(f"{path}.{name}".lstrip("."))
    used = {n.target for n in found.module.graph.find_nodes(op="get_attr")
            if n.users or n in found.results}
    out, lifted = {}, 0
    for attribute, tensor in found.constants.items():
        if attribute not in used:
            continue
        names = known.get(id(tensor))
        if names is None:
            names, lifted = [f"lifted_tensor_{lifted}"], lifted + 1
        out[attribute] = (names, make(tensor._payload))
    return out


def _leaf_names(names: list[str], args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """A name for each leaf of the arguments: the argument's, then the way to the leaf."""
    out = []
    for name, value in zip(names, (*args, *kwargs.values())):
        for path, _ in tree_flatten_with_path(value)[0]:
            keys = [str(getattr(key, key.__match_args__[0])) for key in path]
            out.append(_identifier("_".join([name, *keys])))
    return out


def _apart(names: list[str]) -> list[str]:
    """Names of which none is another's: the first to come has its own."""
    out: dict[str, None] = {}
    for name in names:
        free = (f"{name}_{i}" if i else name for i in itertools.count())
        out[next(n for n in free if n not in out)] = None
    return list(out)


def decomposed(program: ExportedProgram, table: dict | None) -> ExportedProgram:
    """A program captured again, with operators taken apart."""
    from ..decomp import core_aten_decompositions

    if table is None:
        table = core_aten_decompositions()
    old = program.graph_signature
    specs = old.input_specs
    examples = [n.meta.get("val", s.arg.value if isinstance(s.arg, sig.ConstantArgument) else None)
                for n, s in zip(program.graph.find_nodes(op="placeholder"), specs)]

    kept: dict[str, list] = {}
    runner = _Noting(program, kept)

    def call(*given: Any) -> Any:
        kept.clear()
        with traceback.preserve_node_meta():
            return tuple(runner.run(*given, enable_io_processing=False))

    tensors = [e for e in examples if isinstance(e, Tensor)]
    sizes = None if program.env is None else Varying(
        [[None] * t.ndim for t in tensors], [""] * len(tensors), program.env)
    before = None if sizes is None else forked(program.env)
    found = trace(call, tuple(examples), {}, joint=False, pre_dispatch=True, switches=True,
                  decompositions=table, title="GraphModule", sizes=sizes, for_reading=False)
    env = None
    if before is not None:  # what the parts rely on is not for the old program
        env = forked(program.env)
        program.env.symbols, program.env.guards = before.symbols, before.guards
        program.env.replacements = before.replacements
    for new, was in zip(_switches(found.module.graph), _switches(program.graph)):
        new.meta["leaves"] = was.meta.get("leaves")
    builder = _Builder(found)
    for spec in specs:
        if isinstance(spec.arg, sig.ConstantArgument):
            node = builder._placeholder(spec.arg.name, None)
        else:
            tracked = examples[len(builder.signature.input_specs)].requires_grad
            node = builder._placeholder(spec.arg.name, next(builder.inputs), tracked)
        builder.signature.input_specs.append(
            sig.InputSpec(spec.kind, type(spec.arg)(node.name, *_value(spec.arg)), spec.target,
                      spec.persistent))
    module = builder.finish()
    results = list(module.graph.output_node().args[0])
    builder.signature.output_specs = []
    for spec, node in zip(old.output_specs, results):
        builder._result(spec.kind, node, spec.target)
    return ExportedProgram(
        module, builder.signature, program.state_dict, program.constants, program.call_spec,
        program.arg_names, program.example_inputs, env, builder.calls(kept))


class _Noting(Interpreter):
    """Runs a program, and notes the arguments and results of the calls that it knows."""

    def __init__(self, program: ExportedProgram, kept: dict[str, list]):
        super().__init__(program.graph_module, garbage_collect_values=False)
        self.calls, self.kept = program.calls, kept

    def output(self, target: Any, args: tuple, kwargs: dict) -> Any:
        """At the end all values are known."""
        values = {node.name: value for node, value in self.env.items()}
        for title, call in self.calls.items():
            given, out = (as_nodes([
                a.value if isinstance(a, sig.ConstantArgument) else values.get(a.name)
                for a in side])[0] for side in (call.inputs, call.outputs))
            self.kept[title] = [call.forward_arg_names, given, call.in_spec, out, call.out_spec]
        return super().output(target, args, kwargs)


def _switches(graph: Graph) -> list[Node]:
    return graph.find_nodes(op="call_function", target=_set_grad_enabled)


def _value(arg: sig.Argument) -> tuple:
    return (arg.value,) if isinstance(arg, sig.ConstantArgument) else ()
