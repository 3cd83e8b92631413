"""Programs as PyTorch's `.pt2` files, for `torch.export.load` of PyTorch 2.13; see `pt2.py`.

A graph is written as it is: one call of the operator table per node, with the facts of its results.
Branches, loops, grad modes and sizes that are no polynomials of the arguments' are refused.
"""

from __future__ import annotations

import io
import json
import math
import operator
from typing import Any

import numpy as np

from .. import errors
from ..core.device import Device
from ..core.dtype import DType
from ..core.handle import Tensor
from ..core.layout import layout, memory_format
from ..core.op import OpOverload
from ..core.pytree import TreeSpec
from ..core.size import Symbolic, hinted
from ..core.symbolic.env import MOST
from ..core.symbolic.expr import Expr
from ..fx.node import Node
from ..serialization.archive import Writer
from .graph_signature import ConstantArgument, InputKind, OutputKind
from .program import ExportedProgram
from .pt2 import _DTYPES, _FORMATS, _OPERATORS, _STRIDED, MAJOR, MODEL, SAMPLES

_CODES = {name: code for code, name in _DTYPES.items()}
_LAYOUTS = {name: code for code, name in _FORMATS.items()}
_HELD = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer",
         InputKind.CONSTANT_TENSOR: "tensor_constant"}
_WRITTEN = {OutputKind.BUFFER_MUTATION: ("buffer_mutation", "buffer_name"),
            OutputKind.PARAMETER_MUTATION: ("parameter_mutation", "parameter_name"),
            OutputKind.USER_INPUT_MUTATION: ("user_input_mutation", "user_input_name")}
_TREES = {tuple: "builtins.tuple", list: "builtins.list", dict: "builtins.dict"}


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


class _Writing:
    def __init__(self, program: ExportedProgram):
        self.program = program
        self.names: dict[Node, str] = {}  # of values, where they are not the node's
        self.tensors: dict[str, dict] = {}
        self.sizes: dict[str, dict] = {}

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
            array = np.ascontiguousarray(value.detach()._data)
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
                if s.name not in program.env.replacements:
                    most = None if high >= MOST else int(high)
                    ranges[s.name] = {"min_val": int(low), "max_val": most}
        return {
            "graph_module": {
                "graph": self._graph(), "signature": self._signature(),
                "module_call_graph": [{"fqn": "", "signature": {
                    "inputs": [], "outputs": [], "in_spec": _tree(program.call_spec.in_spec),
                    "out_spec": _tree(program.call_spec.out_spec),
                    "forward_arg_names": list(program.arg_names)}}],
                "metadata": {}, "treespec_namedtuple_fields": {}},
            "opset_version": {"aten": 10}, "range_constraints": ranges,
            "schema_version": {"major": MAJOR, "minor": 20}, "verifiers": ["ATEN"],
            "torch_version": "2.13.0", "guards_code": []}

    def _graph(self) -> dict:
        graph, nodes = self.program.graph, []
        specs = self.program.graph_signature.input_specs
        inputs = []
        for spec, node in zip(specs, graph.find_nodes(op="placeholder")):
            if isinstance(spec.arg, ConstantArgument):
                inputs.append(self._argument(spec.arg.value))
            else:
                tracked = spec.kind is InputKind.PARAMETER and (
                    self.program.tensor(spec.target).requires_grad)
                inputs.append(self._noted(node, node.meta["val"], tracked))
        for node in graph.nodes:
            if node.op not in ("placeholder", "output") and node.target is not operator.getitem:
                nodes.append(self._call(node))
        outputs = [self._argument(value) for value in graph.output_node().args[0]]
        return {
            "inputs": inputs, "outputs": outputs, "nodes": nodes, "tensor_values": self.tensors,
            "sym_int_values": self.sizes, "sym_bool_values": {}, "is_single_tensor_return": False,
            "custom_obj_values": {}, "sym_float_values": {}}

    def _call(self, node: Node) -> dict:
        target = node.target
        if isinstance(target, OpOverload) and not target.custom:
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
        trace = {"stack_trace": node.stack_trace} if node.stack_trace else {}
        return {"target": text, "inputs": inputs, "outputs": self._results(node),
                "metadata": trace, "is_hop_single_tensor_return": None, "name": node.name}

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
        if isinstance(value, (int, Symbolic)):
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
        hint = hinted((size,))[0]
        return {"as_expr": {"expr_str": _expression(size.node.expr),
                            "hint": {"as_int": int(hint)}}}

    def _argument(self, value: Any) -> dict:
        if isinstance(value, Node):
            name, val = self.names.get(value, value.name), value.meta.get("val")
            return {"as_tensor": {"name": name}} if isinstance(val, Tensor) else {
                "as_sym_int": {"as_name": name}}
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
    """A polynomial in SymPy's spelling."""
    terms = []
    for monomial, factor in expr.terms:
        parts = [] if factor == 1 and monomial else [f"Integer({factor})"]
        for atom, power in monomial:
            if atom.kind != "symbol":
                raise refused(f"a .pt2 file cannot hold the size {expr}")
            parts += [f"Symbol('{atom.text}', positive=True, integer=True)"] * power
        terms.append(parts[0] if len(parts) == 1 else f"Mul({', '.join(parts)})")
    return terms[0] if len(terms) == 1 else f"Add({', '.join(terms)})"


def _tree(spec: TreeSpec) -> str:
    return json.dumps([1, _subtree(spec)])


def _subtree(spec: TreeSpec) -> dict:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    if spec.type not in _TREES:
        raise refused(f"a .pt2 file cannot hold arguments or results that are {spec.type.__name__}")
    context = list(spec.context) if spec.type is dict else None
    return {"type": _TREES[spec.type], "context": json.dumps(context),
            "children_spec": [_subtree(child) for child in spec.children()]}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
