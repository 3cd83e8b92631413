"""`ExportedProgram`: a graph, what its inputs and outputs are, and the tensors that it holds.

`module()` makes it a module again: parameters that can be trained, buffers that are written,
arguments that are checked against those of the export.  `trace.py` makes programs, `parse.py` reads
them.
"""

from __future__ import annotations

import builtins
import copy
import keyword
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from .. import errors
from ..array.size import Symbolic
from ..autograd.grad_mode import _set_grad_enabled, is_grad_enabled, set_grad_enabled
from ..capture import shared_inputs as sharing
from ..core.handle import Tensor
from ..graph import traceback
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.interpreter import Interpreter
from ..graph.node import Node, fetch_attribute, map_arg
from ..graph.printer import Trees
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..nn.traced import TracedModule
from ..pytree import TreeSpec, tree_flatten, tree_unflatten, treespec_tuple
from ..symbolic.checker import Checker
from ..symbolic.env import ShapeEnv, ValueRanges
from ..symbolic.expr import Expr, symbol
from ..table.packets import ops
from .graph_signature import ConstantArgument, ExportGraphSignature, InputKind, OutputKind


@dataclass
class CallSpec:
    """Structures of (args, kwargs) and of the results."""

    in_spec: TreeSpec
    out_spec: TreeSpec


@dataclass
class ModuleCallSignature:
    """How a module is called."""

    inputs: list
    outputs: list
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """One module of a program, by its name in it."""

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclass(eq=False)
class ExportedProgram:
    """A program that needs nobody's code: graph, signature, state."""

    graph_module: GraphModule
    graph_signature: ExportGraphSignature
    state_dict: dict[str, Tensor]  # parameters and buffers, but for those that are not saved
    constants: dict[str, Tensor]  # buffers that are not saved, and other tensors
    call_spec: CallSpec
    arg_names: list[str]  # of the module's arguments, keyword ones last
    example_inputs: tuple[tuple, dict] | None = None
    env: ShapeEnv | None = None  # the sizes that vary, and what must hold of them
    calls: dict[str, ModuleCallSignature] = field(default_factory=dict)  # of modules, where wanted
    _report: Any = None  # what is wrong with it, if it is a draft

    @property
    def range_constraints(self) -> dict[Any, ValueRanges]:
        """The sizes that vary, with their ranges."""
        if self.env is None:
            return {}
        found = {symbol(s.name): ValueRanges(*s.range) for s in self.env.symbols.values()
                 if s.name not in self.env.replacements}
        for node in self.graph.find_nodes(op="placeholder"):  # sizes that follow from others
            for n in getattr(node.meta.get("val"), "shape", ()):
                e = n.node.expr if isinstance(n, Symbolic) else None
                if isinstance(e, Expr) and e.number is None and e.symbol is None:
                    found[e] = ValueRanges(*self.env.bounds(e))
        return found

    @property
    def graph(self) -> Graph:
        """The graph: parameters, buffers, constants, arguments -> writes, results."""
        return self.graph_module.graph

    @property
    def dialect(self) -> str:
        """Which operators the graph has: all of the table, without writes."""
        return "ATEN"

    @property
    def tensor_constants(self) -> dict[str, Tensor]:
        """The tensors that are part of the program."""
        return self.constants

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """How the program is called."""
        spec = self.call_spec
        return [ModuleCallEntry("", ModuleCallSignature(
            [], [], spec.in_spec, spec.out_spec, list(self.arg_names))),
            *[ModuleCallEntry(title, known) for title, known in self.calls.items()]]

    @property
    def parts(self) -> list[TreeSpec]:
        """The structure of each argument, those by keyword last."""
        args, kwargs = self.call_spec.in_spec.children_specs
        return [*args.children_specs, *kwargs.children_specs]

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "example_inputs" and value is not None and "env" in self.__dict__:
            if type(value) is not tuple or len(value) != 2 or type(value[0]) is not tuple or (
                    type(value[1]) is not dict):
                raise errors.BadValue(errors.text(
                    "Example inputs should be a tuple of the arguments (a tuple) and those by "
                    f"keyword (a dict), got {value!r:.60} ({errors.user_line(2)})",
                    cure="program.example_inputs = args, kwargs"))
            bound(self, *value)
        super().__setattr__(name, value)

    def _update(self, graph_module: GraphModule, graph_signature: ExportGraphSignature, *,
                state_dict: dict | None = None, constants: dict | None = None,
                verifiers: Any = None) -> ExportedProgram:
        """The same program with another graph, which is checked."""
        made = replace(
            self, graph_module=graph_module, graph_signature=graph_signature,
            state_dict=dict(self.state_dict if state_dict is None else state_dict),
            constants=dict(self.constants if constants is None else constants))
        made.validate()
        return made

    def tensor(self, target: str) -> Tensor:
        """A parameter, a buffer or a constant, by its name."""
        return self.state_dict[target] if target in self.state_dict else self.constants[target]

    @property
    def aliases(self) -> dict[str, str]:
        """Further names of tensors that modules share -> the one that the signature has."""
        held = {**self.constants, **self.state_dict}
        specs = self.graph_signature.input_specs
        targets = {s.target for s in specs if s.kind is not InputKind.USER_INPUT}
        known = {id(held[t]): t for t in targets if t in held}
        return {name: known[id(value)] for name, value in held.items()
                if name not in targets and id(value) in known}

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Names and values of the parameters."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def parameters(self) -> Iterator[Tensor]:
        """The parameters."""
        for _, value in self.named_parameters():
            yield value

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Names and values of the buffers."""
        for name in self.graph_signature.buffers:
            yield name, self.tensor(name)

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, value in self.named_buffers():
            yield value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise errors.ExportError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` "
            f"instead. ({errors.user_line(2)})")

    def module(self, check_guards: bool = True) -> ExportedModule:
        """The program as a module, which shares the program's parameters and buffers."""
        return ExportedModule(self, check_guards)

    def run_decompositions(self, decomp_table: dict | None = None) -> ExportedProgram:
        """The same program in simpler operators: core ones, or those that a table leaves."""
        from .trace import decomposed

        return decomposed(self, decomp_table)

    def validate(self) -> None:
        """Check that the graph is sound, and gives what it says it gives."""
        from .check import check_program

        check_program(self)

    def __deepcopy__(self, memo: dict) -> ExportedProgram:
        return ExportedProgram(
            copy.deepcopy(self.graph_module, memo), copy.deepcopy(self.graph_signature, memo),
            copy.deepcopy(self.state_dict, memo), copy.deepcopy(self.constants, memo),
            self.call_spec, list(self.arg_names), self.example_inputs, self.env, self.calls)

    def __str__(self) -> str:
        code = self.graph_module.print_readable(print_output=False)
        signature = str(self.graph_signature)
        return (f"ExportedProgram:\n{_indented(code)}\nGraph signature:{_indented(signature)[4:]}\n"
                f"Range constraints: {self.range_constraints}\n")

    __repr__ = __str__


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


class ExportedModule(TracedModule):
    """A program as a module.

    Its `graph` reads parameters and buffers as attributes and writes into them.  Who changes it and
    calls `recompile()` gets what it says then; until then the program itself runs.
    """

    def __init__(self, program: ExportedProgram, check_guards: bool = True) -> None:
        Module.__init__(self)
        signature = program.graph_signature
        held = []
        for spec in signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                continue
            value = program.tensor(spec.target)
            held.append((install(self, spec.target, value, spec.persistent), spec.target))
        for name, target in program.aliases.items():
            install(self, name, program.tensor(target), name in program.state_dict)
        switches = grad_modes(program.graph.nodes)
        # outside of the tables of modules: these are not part of the module's state
        self.__dict__.update(
            _program=program,
            _run=_following(program) if switches else program.graph_module,
            _edited=False,
            _class_name="ExportedModule",
            _source_name=None,
            meta={},
            _check=check_guards,
            _held=[(owner._parameters if path.rpartition(".")[2] in owner._parameters
                    else owner._buffers, path.rpartition(".")[2]) for owner, path in held],
            _inputs=_expected(program),
            _fits=None if program.env is None else _fitting(program),
            _switches=bool(switches),
            _writes=_places(program),
            _writes_arguments=bool(signature.user_inputs_to_mutate),
        )

        for node in program.graph.find_nodes(op="get_attr"):  # branches, bodies of loops
            self._install(node.target, fetch_attribute(program.graph_module, node.target))
        graph = _unlifted(program)
        graph.owning_module = self
        self.__dict__["_graph"] = graph
        self._changed()

    def check(self, *args: Any, **kwargs: Any) -> list:
        """The leaves of the arguments; refuses those that the program is not for."""
        leaves = bound(self._program, args, kwargs)
        for value, expected in zip(leaves, self._inputs):
            expected.check(value)
        if self._fits is not None:
            self._fits(leaves)
        return leaves

    def recompile(self) -> Any:
        """From now on the module does what its graph says."""
        self.__dict__["_edited"] = True
        return super().recompile()

    def train(self, mode: bool = True) -> Module:
        """Refused: which mode the program is for was decided when it was exported."""
        raise NotImplementedError(errors.text(
            f"Calling train() is not supported yet.  A program keeps the mode in which it was "
            f"exported ({errors.user_line()})",
            cure="export the module again in the other mode"))

    def eval(self) -> Module:
        """Refused, as `train`."""
        raise NotImplementedError(errors.text(
            f"Calling eval() is not supported yet.  A program keeps the mode in which it was "
            f"exported ({errors.user_line()})", cure="export the module again in the other mode"))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph, write what it says is written, and give results their structure."""
        program = self._program
        leaves = self.check(*args, **kwargs) if self._check else bound(program, args, kwargs)
        if self._edited:
            with set_grad_enabled(is_grad_enabled()):
                found = iter(leaves)
                parts = [tree_unflatten(islice(found, p.num_leaves), p) for p in program.parts]
                function, graph = self._forward or self._compile(), self.graph
                out = function(self, *(leaves if graph.trees is None else parts))
            plain = graph.trees is None and graph.codegen is None
            return tree_unflatten(out, program.call_spec.out_spec) if plain else out
        held = [table[name] for table, name in self._held]
        run = self._run
        if traceback.has_preserved_node_meta():
            run = partial(Interpreter(run).run, enable_io_processing=False)
        if self._writes_arguments:
            _refuse_shared([*held, *leaves], self._writes)
        if self._switches:
            caller = is_grad_enabled()
            with set_grad_enabled(caller):
                out = run(*held, *leaves, caller)
        else:
            out = run(*held, *leaves)
        count = len(self._writes)
        inputs = (*held, *leaves)
        for number, value in zip(self._writes, out):
            inputs[number].copy_(value)
        results = list(out[count:])
        for i, value in enumerate(results):  # what is returned as it was written is the input
            for number, new in zip(self._writes, out):
                if value is new:
                    results[i] = inputs[number]
        return tree_unflatten(results, program.call_spec.out_spec)


def placeholder(graph: Graph, name: str) -> Node:
    """An input under a name that may be one of Python's functions (`input`), but no keyword."""
    node = graph.create_node("placeholder", name, name=name)
    allowed = hasattr(builtins, name) and not keyword.iskeyword(name)
    if allowed and all(n.name != name for n in graph.nodes):
        node.name = name
    node.target = node.name
    return node


CALLERS = "caller"  # the grad mode in which a program is called


def grad_modes(nodes: Iterable[Node]) -> dict[Node, tuple[Any, bool]]:
    """The grad mode that each switch of a graph leads to, and whether it ends a block.

    A block that ends restores what was before it: at the outermost, what the caller has.
    """
    out: dict[Node, tuple[Any, bool]] = {}
    now: Any = CALLERS
    before: list = []
    for node in nodes:
        if node.target is not _set_grad_enabled:
            continue
        mode = node.args[0]
        back = bool(node.meta.get("leaves") and before)
        if back:
            now = before.pop()
            back = now in (CALLERS, mode)
        else:
            before.append(now)
        now = now if back else mode
        out[node] = now, back
    return out


def _unlifted(program: ExportedProgram) -> Graph:
    """The graph with attributes of a module in the place of inputs, and writes into them."""
    graph = Graph()
    values: dict[Node, Any] = {}
    specs = iter(program.graph_signature.input_specs)
    for node in program.graph.nodes:
        if node.op == "output":
            break
        spec = next(specs) if node.op == "placeholder" else None
        if spec is None or spec.kind is InputKind.USER_INPUT:
            values[node] = graph.node_copy(node, values.__getitem__)
        else:
            values[node] = graph.get_attr(spec.target)
            values[node].meta = dict(node.meta)
    inputs = [values[n] for n in program.graph.find_nodes(op="placeholder")]
    results = list(map_arg(program.graph.output_node().args[0], values.__getitem__))
    places = _places(program)
    for number, value in zip(places, results[: len(places)]):
        written = graph.call_function(ops.copy_.default, (inputs[number], value))
        written.meta = dict(value.meta)
        results = [written if r is value else r for r in results]
    graph.output(tuple(results[len(places) :]))
    names = program.arg_names
    if len(names) == len(program.parts):
        graph.trees = Trees(tuple(names), treespec_tuple(program.parts), program.call_spec.out_spec)
    return graph


def _following(program: ExportedProgram) -> GraphModule:
    """The graph with one more input, the caller's grad mode."""
    graph = copy.deepcopy(program.graph)
    last = graph.find_nodes(op="placeholder")[-1:]
    with graph.inserting_after(last[0]) if last else graph.inserting_before(
            next(iter(graph.nodes))):
        caller = placeholder(graph, "grad_mode")
    for node, (mode, _) in grad_modes(graph.nodes).items():
        node.args = (caller if mode is CALLERS else mode,)
    return GraphModule(program.graph_module, graph)


def install(module: Module, path: str, value: Tensor, persistent: bool | None) -> Module:
    """Put a tensor at a dotted path; gives the module that holds it."""
    *parents, last = path.split(".")
    for part in parents:
        child = module._modules.get(part)
        if child is None:
            child = Module()
            module.add_module(part, child)
        module = child
    if isinstance(value, Parameter):
        module.register_parameter(last, value)
    else:
        module.register_buffer(last, value, persistent=bool(persistent))
    return module


def _places(program: ExportedProgram) -> list[int]:
    """The inputs that the first outputs are new values of."""
    signature = program.graph_signature
    by_target = {s.target: i for i, s in enumerate(signature.input_specs) if s.target is not None}
    by_name = {s.arg.name: i for i, s in enumerate(signature.input_specs)}
    return [by_name[s.target] if s.kind is OutputKind.USER_INPUT_MUTATION else by_target[s.target]
            for s in signature.written]


def _refuse_shared(inputs: list, written: list[int]) -> None:
    """Refuse arguments that would see what is written to others: the program was made without."""
    places = [i for i, v in enumerate(inputs)
              if isinstance(v, Tensor) and type(v._payload) is np.ndarray]
    arrays = [inputs[i]._payload for i in places]
    found = sharing.groups(arrays, [places.index(i) for i in written if i in places])
    if found:
        raise errors.SignatureError(errors.text(
            "arguments of an exported program share memory, and one of them is written "
            f"({errors.user_line(3)})", cure="pass a copy: clone()"))


@dataclass
class _Expected:
    """What an argument must be."""

    name: str
    shape: tuple | None = None
    dtype: Any = None
    value: Any = None

    def check(self, given: Any) -> None:
        if self.shape is None:
            same = type(given) is type(self.value) and (
                given == self.value or given != given and self.value != self.value)
            if same:
                return
            found, wanted = repr(given), f"the value {self.value!r}, which is part of the program"
        elif not isinstance(given, Tensor):
            found, wanted = f"a {type(given).__name__}", "a tensor"
        elif given.dtype is not self.dtype:
            found, wanted = given.dtype.name, f"dtype {self.dtype.name}"
        elif len(self.shape) != given.ndim or any(
                n != m for n, m in zip(given.shape, self.shape) if m is not None):
            found, wanted = f"shape {list(given.shape)}", f"shape {_shown(self.shape)}"
        else:
            return
        raise errors.SignatureError(errors.text(
            f"the argument {self.name!r} of an exported program has {found} "
            f"({errors.user_line(3)})", f"it was exported for {wanted}",
            "pass what it was exported for, or export it again"))


def _shown(shape: tuple) -> str:
    return f"[{', '.join(['any' if n is None else str(n) for n in shape])}]"


def _fitting(program: ExportedProgram) -> Callable[[list], None]:
    """A function that refuses tensors whose sizes are not those that the program is for."""
    nodes = program.graph.find_nodes(op="placeholder")
    tensors = [(s.arg.name, n.meta["val"]) for s, n in zip(
        program.graph_signature.input_specs, nodes)
        if s.kind is InputKind.USER_INPUT and not isinstance(s.arg, ConstantArgument)]
    check = Checker(program.env, [val.shape for _, val in tensors], [name for name, _ in tensors])

    def fits(leaves: list) -> None:
        shapes = [tuple(v.shape) for v in leaves if isinstance(v, Tensor)]
        found = check.bind(shapes)
        if isinstance(found, str):
            raise errors.SignatureError(errors.text(
                f"an exported program is not for these sizes: {found} ({errors.user_line(3)})",
                cure="pass sizes that it was exported for, or export it again"))

    return fits


def _expected(program: ExportedProgram) -> list[_Expected]:
    nodes = program.graph.find_nodes(op="placeholder")
    out = []
    for spec, node in zip(program.graph_signature.input_specs, nodes):
        if spec.kind is InputKind.USER_INPUT:
            if isinstance(spec.arg, ConstantArgument):
                out.append(_Expected(spec.arg.name, value=spec.arg.value))
            else:
                val = node.meta["val"]
                shape = [None if isinstance(n, Symbolic) else n for n in val.shape]
                out.append(_Expected(spec.arg.name, tuple(shape), val.dtype))
    return out


def bound(program: ExportedProgram, args: tuple, kwargs: dict) -> list:
    """The leaves of the arguments, which must have the structure of the export."""
    want = program.call_spec.in_spec
    positional, keywords = want.children()
    names, count = program.arg_names, positional.num_children
    twice = any(name in kwargs for name in names[count:len(args)])
    if count < len(args) <= len(names) and not twice:  # keyword arguments given by position
        kwargs = {**dict(zip(names[count:], args[count:])), **kwargs}
        args = args[:count]
    elif len(args) < count and kwargs:  # positional ones given by name
        more = names[len(args):count]
        if all(n in kwargs for n in more):
            args = (*args, *[kwargs[n] for n in more])
            kwargs = {k: v for k, v in kwargs.items() if k not in more}
    if kwargs:
        order = {k: i for i, k in enumerate(keywords.context or ())}
        kwargs = dict(sorted(kwargs.items(), key=lambda item: order.get(item[0], len(order))))
    leaves, found = tree_flatten((args, kwargs))
    if found != want:
        raise errors.SignatureError(errors.text(
            "the arguments of an exported program do not have the structure that it was exported "
            f"for ({errors.user_line(2)})",
            [f"exported for: {signature_text(names, want)}",
             f"given: {signature_text([], found)}"],
            "pass arguments of the same number, names and nesting"))
    return leaves


def signature_text(names: list[str], spec: TreeSpec) -> str:
    """A structure of (args, kwargs) as a call."""
    positional, keywords = spec.children()
    shown = [f"{name}={_tree(child)}" if name else _tree(child) for name, child in zip(
        [*names, *[""] * positional.num_children], positional.children())]
    shown += [f"{key}={_tree(child)}" for key, child in zip(
        keywords.context or (), keywords.children())]
    return f"({', '.join(shown)})"


def _tree(spec: TreeSpec) -> str:
    if spec.is_leaf():
        return "*"
    inside = [_tree(child) for child in spec.children()]
    if spec.type is dict:
        return "{" + ", ".join(f"{k!r}: {v}" for k, v in zip(spec.context, inside)) + "}"
    text = ", ".join(inside)
    return {list: f"[{text}]", tuple: f"({text})"}.get(
        spec.type, f"{getattr(spec.type, '__name__', spec.type)}({text})")
