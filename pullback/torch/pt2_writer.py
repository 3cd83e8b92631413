"""Programs as PyTorch's `.pt2` files, for `torch.export.load` of PyTorch 2.13; see `pt2.py`.

A graph is written as it is: one call of the operator table per node, with the facts of its results,
and the graphs of branches, loops and grad modes inside of the calls that take them.  Floats of
sizes are refused.
"""

from __future__ import annotations

import io
import json
import math
import operator
from collections import OrderedDict
from typing import Any

import numpy as np

from .. import errors
from ..array.device import Device
from ..array.dtype import DType
from ..array.layout import layout, memory_format
from ..array.size import Symbolic
from ..control import HigherOrder
from ..core.handle import Tensor
from ..core.overload import OpOverload
from ..export.archive import MODEL
from ..export.graph_signature import ConstantArgument, InputKind, OutputKind
from ..export.program import CALLERS, ExportedProgram, grad_modes
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node, fetch_attribute
from ..pytree import TreeSpec, as_written
from ..serialization.archive import Writer
from ..symbolic.env import MOST, Relation
from ..symbolic.expr import Atom, Expr
from ..symbolic.number import SymBool, SymFloat
from .pt2 import _DTYPES, _FORMATS, _OPERATORS, _STRIDED, MAJOR, SAMPLES

_CODES = {name: code for code, name in _DTYPES.items()}
_LAYOUTS = {name: code for code, name in _FORMATS.items()}
_HELD = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer",
         InputKind.CONSTANT_TENSOR: "tensor_constant"}
_WRITTEN = {OutputKind.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
            OutputKind.PARAMETER_MUTATION: ("parameter_mutation", "parameter_name"),
            OutputKind.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name")}
_TREES = {tuple: "builtins.tuple", list: "builtins.list", dict: "builtins.dict",
          OrderedDict: "collections.OrderedDict"}


def refused(what: str) -> Exception:
    """The error for a program that such a file cannot hold."""
    return errors.ExportError(errors.text(
        f"{what} ({errors.user_line(4)})", cure="save it without format='pt2'"))


def archive(program: ExportedProgram, extra: dict[str, Any] | None = None) -> bytes:
    """The bytes of a file with the program."""
    file = io.BytesIO()
    writer = Writer(file, "model")
    for name, data in _Writing(program).records().items():
        writer.add(name, data)
    for name, data in (extra or {}).items():
        writer.add(f"extra/{name}", data.encode() if isinstance(data, str) else data)
    writer.close()
    return file.getvalue()


class _Graph:
    """One graph, and what is known of its values."""

    def __init__(self, module: GraphModule):
        self.module = module
        self.names: dict[Node, str] = {}  # of values, where they are not the node's
        self.tensors: dict[str, dict] = {}
        self.sizes: dict[str, dict] = {}
        self.answers: dict[str, dict] = {}

    def inputs(self) -> list[dict]:
        """The inputs, tensors in a graph that another one calls."""
        return [self._noted(n, n.meta["val"])
                for n in self.module.graph.find_nodes(op="placeholder")]

    def written(self) -> dict:
        """The graph."""
        graph = self.module.graph
        inputs = self.inputs()
        nodes = []
        for mode, part in _regions(graph):
            nodes += map(self._call, part) if mode is CALLERS else [self._in_mode(mode, part)]
        results = graph.output_node().args[0]
        single = isinstance(results, Node)
        outputs = [self._argument(value) for value in ([results] if single else results)]
        return {
            "inputs": inputs, "outputs": outputs, "nodes": nodes, "tensor_values": self.tensors,
            "sym_int_values": self.sizes, "sym_bool_values": self.answers,
            "is_single_tensor_return": single, "custom_obj_values": {}, "sym_float_values": {}}

    def _call(self, node: Node) -> dict:
        target = node.target
        if isinstance(target, HigherOrder) and target.namespace == HigherOrder.namespace:
            return self._called(f"torch.ops.higher_order.{target.name()}", node, [
                {"name": "", "arg": self._operand(a), "kind": 1} for a in node.args], False)
        if isinstance(target, OpOverload) and getattr(target, "variant", "default") == "default":
            text = f"torch.ops.{target}"
            names = [a.name for a in target.schema.args]
        elif getattr(target, "__module__", "") == "_operator" and target.__name__ in _OPERATORS:
            text, names = f"_operator.{target.__name__}", ["a", "b"]
        else:
            raise refused(f"a .pt2 file cannot hold the call of {target} ({node.name})")
        if text.count(".") == 3 and isinstance(target, OpOverload):
            text += ".default"
        inputs = [{"name": n, "arg": self._argument(a), "kind": 1}
                  for n, a in zip(names, node.args)]
        inputs += [{"name": n, "arg": self._argument(a), "kind": 2}
                   for n, a in node.kwargs.items()]
        return self._called(text, node, inputs, None)

    def _called(self, text: str, node: Node, inputs: list[dict], single: bool | None) -> dict:
        trace = {"stack_trace": node.stack_trace} if node.stack_trace else {}
        return {"target": text, "inputs": inputs, "outputs": self._results(node),
                "metadata": trace, "is_hop_single_tensor_return": single, "name": node.name}

    def _in_mode(self, enabled: bool, nodes: list[Node]) -> dict:
        """Calls with gradients on or off, as a graph that is called in that mode."""
        part, values = Graph(), {}
        whole = [n for node in nodes for n in (node, *_picked(node))]
        given = dict.fromkeys(n for node in whole for n in node.all_input_nodes
                              if n not in whole and n.op != "get_attr")
        for node in given:
            values[node] = part.placeholder(node.name)
            values[node].meta = dict(node.meta)

        def inside(node: Node) -> Node:
            if node not in values:  # a graph
                values[node] = part.get_attr(node.target)
            return values[node]

        for node in whole:
            values[node] = part.node_copy(node, inside)
        results = [n for n in whole if any(u not in whole for u in n.users)]
        part.output(tuple([values[n] for n in results]))
        inner = _Graph(GraphModule(self.module, part))
        name = f"submod_{nodes[0].name}"
        operands = [self._argument(n) for n in given]
        return {
            "target": "torch.ops.higher_order.wrap_with_set_grad_enabled",
            "inputs": [{"name": "", "arg": arg, "kind": 1} for arg in (
                {"as_bool": enabled}, {"as_graph": {"name": name, "graph": inner.written()}},
                *operands)],
            "outputs": [self._noted(n, n.meta["val"]) for n in results],
            "metadata": {}, "is_hop_single_tensor_return": False, "name": name}

    def _operand(self, value: Any) -> dict:
        """An argument of an operator that takes graphs."""
        if isinstance(value, Node) and value.op == "get_attr":
            inner = _Graph(fetch_attribute(self.module, value.target))
            return {"as_graph": {"name": value.target, "graph": inner.written()}}
        if isinstance(value, (list, tuple)) and not value:
            return {"as_tensors": []}
        return self._argument(value)

    def _results(self, node: Node) -> list[dict]:
        """The values of a call; several are what the nodes that pick them are called."""
        val = node.meta.get("val")
        if not isinstance(val, (list, tuple)):
            return [] if val is None else [self._noted(node, val)]
        picked: dict[int, str] = {}
        for user in node.users:
            if user.target is operator.getitem:
                self.names[user] = picked.setdefault(user.args[1], user.name)
        found = [picked.get(i, f"{node.name}_unused_{i}") for i in range(len(val))]
        made = [self._noted(name, v) for name, v in zip(found, val)]
        if isinstance(node.target, OpOverload) and len(node.target.schema.returns) == 1:
            return [{"as_tensors": [m["as_tensor"] for m in made]}]
        return made

    def _noted(self, node: Node | str, value: Any, tracked: bool = False) -> dict:
        """A value by its name, whose facts are written down."""
        name = node if isinstance(node, str) else self.names.get(node, node.name)
        if isinstance(value, Tensor):
            self.tensors[name] = self._facts(value, tracked)
            return {"as_tensor": {"name": name}}
        if isinstance(value, SymBool):
            self.answers[name] = {"as_expr": {"expr_str": _question(value.node.raw), "hint": None}}
            return {"as_sym_bool": {"as_name": name}}
        if type(value) is bool:
            self.answers[name] = {"as_bool": value}
            return {"as_sym_bool": {"as_name": name}}
        if isinstance(value, (int, Symbolic)) and not isinstance(value, SymFloat):
            self.sizes[name] = self._size(value)
            return {"as_sym_int": {"as_name": name}}
        raise refused(f"a .pt2 file cannot hold the value of {name}: {type(value).__name__}")

    def _facts(self, value: Tensor, tracked: bool, dense: bool = False) -> dict:
        shape = tuple(value.shape)
        strides = value.contiguous().stride() if dense else value.stride()
        return {
            "dtype": _code(value.dtype), "sizes": [self._size(n) for n in shape],
            "requires_grad": tracked, "device": {"type": "cpu", "index": None},
            "strides": [self._size(n) for n in strides], "storage_offset": {"as_int": 0},
            "layout": _STRIDED}

    def _size(self, size: Any) -> dict:
        if type(size) is int:
            return {"as_int": size}
        hint = size.node.hint
        return {"as_expr": {"expr_str": _expression(size.node.expr),
                            "hint": None if hint is None else {"as_int": int(hint)}}}

    def _argument(self, value: Any) -> dict:
        if isinstance(value, Node):
            name, val = self.names.get(value, value.name), value.meta.get("val")
            if isinstance(val, Tensor):
                return {"as_tensor": {"name": name}}
            truth = isinstance(val, (bool, SymBool))
            return {"as_sym_bool" if truth else "as_sym_int": {"as_name": name}}
        if isinstance(value, (list, tuple)):
            return self._list(list(value))
        if value is None:
            return {"as_none": True}
        if isinstance(value, DType):
            return {"as_scalar_type": _code(value)}
        if isinstance(value, Device):
            return {"as_device": {"type": value.type, "index": value.index}}
        if isinstance(value, memory_format):
            return {"as_memory_format": _LAYOUTS[value.name]}
        if isinstance(value, layout) and value.name == "strided":
            return {"as_layout": _STRIDED}
        for kind, key in ((bool, "as_bool"), (int, "as_int"), (str, "as_string")):
            if isinstance(value, kind):
                return {key: value}
        if isinstance(value, float):
            return {"as_float": _float(value)}
        if isinstance(value, complex):
            return {"as_complex": {"real": value.real, "imag": value.imag}}
        raise refused(f"a .pt2 file cannot hold {value!r:.60}")

    def _list(self, values: list) -> dict:
        made = [self._argument(v) for v in values]
        kinds = {next(iter(m)) for m in made}
        if not kinds or kinds == {"as_int"}:
            return {"as_ints": values}
        if kinds == {"as_tensor"}:
            return {"as_tensors": [m["as_tensor"] for m in made]}
        if kinds <= {"as_tensor", "as_none"}:
            return {"as_optional_tensors": made}
        if kinds <= {"as_int", "as_sym_int"}:
            return {"as_sym_ints": [m.get("as_sym_int", m) for m in made]}
        if kinds <= {"as_float", "as_int"}:
            return {"as_floats": [_float(float(v)) for v in values]}
        if kinds in ({"as_bool"}, {"as_string"}):
            return {f"{kinds.pop()}s": values}
        raise refused(f"a .pt2 file cannot hold the list {values!r:.60}")


def _regions(graph: Graph) -> list[tuple[Any, list[Node]]]:
    """The calls of a graph, those in one grad mode together."""
    switches = grad_modes(graph.nodes)
    found: list[tuple[Any, list[Node]]] = [(CALLERS, [])]
    for node in graph.nodes:
        if node in switches:
            found.append((switches[node][0], []))
        elif node.op == "call_function" and node.target is not operator.getitem:
            found[-1][1].append(node)
    return [(mode, nodes) for mode, nodes in found if nodes]


def _picked(node: Node) -> list[Node]:
    return [user for user in node.users if user.target is operator.getitem]


class _Writing(_Graph):
    """A whole program."""

    def __init__(self, program: ExportedProgram):
        super().__init__(program.graph_module)
        self.program = program

    def records(self) -> dict[str, bytes]:
        """The files of the archive."""
        program, found = self.program, {}
        weights: dict[str, dict] = {}
        constants: dict[str, dict] = {}
        for spec in program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                continue
            lasting = spec.target in program.state_dict
            folder, prefix, group = (("weights", "weight", weights) if lasting else
                                     ("constants", "tensor", constants))
            value = program.tensor(spec.target)
            name = f"{prefix}_{len(group)}"
            array = np.ascontiguousarray(value.detach()._payload)
            found[f"data/{folder}/{name}"] = array.reshape(-1).view(np.uint8).tobytes()
            group[spec.target] = {
                "path_name": name, "is_param": spec.kind is InputKind.PARAMETER,
                "use_pickle": False,
                "tensor_meta": self._facts(value, value.requires_grad, dense=True)}
        for folder, group in (("weights", weights), ("constants", constants)):
            found[f"data/{folder}/model_{folder}_config.json"] = _json({"config": group})
        found[MODEL] = _json(self._model())
        if program.example_inputs is not None:
            from ..serialization import save

            samples = io.BytesIO()
            save(program.example_inputs, samples)
            found[SAMPLES] = samples.getvalue()
        return {**found, "archive_format": b"pt2", "archive_version": b"0",
                ".data/version": b"6\n", "byteorder": b"little"}

    def _model(self) -> dict:
        program = self.program
        ranges = {}
        if program.env is not None:
            for s in program.env.symbols.values():
                low, high = s.range
                if s.name not in program.env.replacements and math.isfinite(low):
                    most = None if high >= MOST else int(high)
                    ranges[s.name] = {"min_val": int(low), "max_val": most}
        return {
            "graph_module": {
                "graph": self.written(), "signature": self._signature(),
                "module_call_graph": [{"fqn": "", "signature": {
                    "inputs": [], "outputs": [], "in_spec": _tree(program.call_spec.in_spec),
                    "out_spec": _tree(program.call_spec.out_spec),
                    "forward_arg_names": list(program.arg_names)}}],
                "metadata": {}, "treespec_namedtuple_fields": {}},
            "opset_version": {"aten": 10}, "range_constraints": ranges,
            "schema_version": {"major": MAJOR, "minor": 20}, "verifiers": ["ATEN"],
            "torch_version": "2.13.0", "guards_code": []}

    def inputs(self) -> list[dict]:
        """Parameters, buffers, constants, arguments."""
        found = []
        specs = self.program.graph_signature.input_specs
        for spec, node in zip(specs, self.program.graph.find_nodes(op="placeholder")):
            if isinstance(spec.arg, ConstantArgument):
                found.append(self._argument(spec.arg.value))
            else:
                tracked = spec.kind is InputKind.PARAMETER and (
                    self.program.tensor(spec.target).requires_grad)
                found.append(self._noted(node, node.meta["val"], tracked))
        return found

    def _signature(self) -> dict:
        inputs, outputs = [], []
        signature = self.program.graph_signature
        for spec in signature.input_specs:
            arg = {"name": spec.arg.name}
            if spec.kind in _HELD:
                kind = _HELD[spec.kind]
                facts = {"arg": arg, f"{kind}_name": spec.target}
                if kind == "buffer":
                    facts["persistent"] = bool(spec.persistent)
                inputs.append({kind: facts})
            elif isinstance(spec.arg, ConstantArgument):
                inputs.append({"constant_input": {
                    "name": spec.arg.name, "value": self._argument(spec.arg.value)}})
            else:
                inputs.append({"user_input": {"arg": {"as_tensor": arg}}})
        for spec, value in zip(signature.output_specs, self.program.graph.output_node().args[0]):
            given = self._argument(value)
            if spec.kind in _WRITTEN:
                kind, name = _WRITTEN[spec.kind]
                outputs.append({kind: {"arg": given["as_tensor"], name: spec.target}})
            else:
                outputs.append({"user_output": {"arg": given}})
        return {"input_specs": inputs, "output_specs": outputs}


def _code(kind: DType) -> int:
    if kind.name not in _CODES:
        raise refused(f"a .pt2 file cannot hold tensors of {kind}")
    return _CODES[kind.name]


def _float(value: float) -> float | str:
    """Infinities are texts there."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _expression(expr: Expr) -> str:
    """A polynomial of symbols and functions in SymPy's spelling."""
    terms = []
    for monomial, factor in expr.terms:
        parts = [] if factor == 1 and monomial else [f"Integer({factor})"]
        for atom, power in monomial:
            parts += [_atom(atom)] * power
        terms.append(parts[0] if len(parts) == 1 else f"Mul({', '.join(parts)})")
    return terms[0] if len(terms) == 1 else f"Add({', '.join(terms)})"


_FUNCTIONS = {"floordiv": "FloorDiv", "mod": "PythonMod", "max": "Max", "min": "Min"}


def _atom(atom: Atom) -> str:
    """A symbol, or a function of expressions."""
    if atom.kind == "symbol":
        positive = "" if atom.text.startswith("u") else "positive=True, "
        return f"Symbol('{atom.text}', {positive}integer=True)"
    if atom.kind not in _FUNCTIONS:
        raise refused(f"a .pt2 file cannot hold the size {atom.text}")
    return f"{_FUNCTIONS[atom.kind]}({', '.join(map(_expression, atom.args))})"


_RELATIONS = {">": "StrictGreaterThan", ">=": "GreaterThan", "<": "StrictLessThan",
              "<=": "LessThan", "==": "Equality", "!=": "Unequality"}


def _question(asked: Any) -> str:
    """A comparison of sizes in SymPy's spelling."""
    if not isinstance(asked, Relation):
        raise refused(f"a .pt2 file cannot hold the question {asked}")
    sides = [_expression(e) if isinstance(e, Expr) else f"Integer({e})" for e in asked[1:]]
    return f"{_RELATIONS[asked.op]}({', '.join(sides)})"


def _tree(spec: TreeSpec) -> str:
    return json.dumps([1, _subtree(spec)])


def _subtree(spec: TreeSpec) -> dict:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    name, context = as_written(spec)
    if spec.type in _TREES:
        name = _TREES[spec.type]
        context = json.dumps(None if spec.context is None else list(spec.context))
    if name is None:
        raise refused(f"a .pt2 file cannot hold arguments or results that are {spec.type.__name__}")
    return {"type": name, "context": context,
            "children_spec": [_subtree(child) for child in spec.children()]}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
