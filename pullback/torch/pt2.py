"""PyTorch's `.pt2` files: a graph as JSON, tensors as raw bytes, in a zip archive.

Nothing in such a file is run.  Its graph becomes a module that makes the same calls
(`Replayed`), and that is exported as any other: what its operators write is functionalized, sizes
that vary are found again, and what is returned is a program of ours.  The export sees zeros in the
place of sample inputs; these are read as checkpoints are, plain tensors alone.  Operators that
nobody has registered, and values that are Python objects, are refused.  `pt2_writer.py` writes
them.
"""

from __future__ import annotations

import inspect
import io
import json
import operator
import pickle
import re
from collections import OrderedDict
from typing import Any

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.device import Device
from ..array.layout import layout, memory_format
from ..autograd.grad_mode import set_grad_enabled
from ..control import operators
from ..core.handle import Tensor, make
from ..export.archive import MODEL
from ..export.dynamic_shapes import Dim, found_out
from ..export.program import ExportedProgram, install
from ..library.definition import definitions
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..pytree import TreeSpec, as_read, tree_flatten, tree_map, tree_unflatten
from ..serialization.archive import Archive
from ..table.packets import ops

SAMPLES = "data/sample_inputs/model.pt"
MAJOR = 8  # of the schema that PyTorch 2.13 writes
_DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32",
    8: "float64", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
    29: "float8_e4m3fn", 30: "float8_e5m2", 34: "uint32", 35: "uint64",
}  # fmt: skip
_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d",
            4: "preserve_format"}
_STRIDED = 7
_PLAIN = ("as_int", "as_ints", "as_string", "as_strings", "as_bool", "as_bools", "as_int_lists",
          "as_float_lists")
_SYMBOL = re.compile(r"Symbol\('(\w+)'[\w=, ]*\)")
_SKIPPED = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range",
            "sym_constrain_range_for_size")
_METHODS = ("detach_", "requires_grad_")  # that the table has no operators for
_OPERATORS = ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "neg", "eq", "ne", "lt",
              "le", "gt", "ge", "and_", "or_", "not_", "getitem")


def refused(what: str, cure: str = "export the program again with PyTorch 2.13, or by "
            "pullback.export") -> Exception:
    """The error for a file that cannot be read."""
    return errors.FileFormatError(errors.text(f"{what} ({errors.user_line(3)})", cure=cure))


def read(archive: Archive) -> ExportedProgram:
    """The program in an archive that PyTorch has written."""
    try:
        model = json.loads(archive.read(MODEL))
        major = model["schema_version"]["major"]
        if major != MAJOR:
            raise refused(f"the file has version {major} of PyTorch's format, not {MAJOR}")
        return _Reader(archive, model).program()
    except (errors.PullbackError, KeyError, TypeError, IndexError, AttributeError,
            ValueError, RecursionError) as error:
        if isinstance(error, errors.FileFormatError):
            raise
        what = str(error).partition("\n")[0]
        raise refused(f"the file's graph cannot be read: {type(error).__name__}: {what}") from error


class _Reader:
    def __init__(self, archive: Archive, model: dict):
        self.archive, self.model = archive, model
        self.graph = model["graph_module"]["graph"]
        self.kept: dict[str, np.ndarray] = {}  # records by name: tensors may share memory
        self.tied: dict[tuple, Parameter] = {}  # by their place in it

    def program(self) -> ExportedProgram:
        from ..export.trace import export

        entry = self.model["graph_module"]["module_call_graph"][0]["signature"]
        in_spec, out_spec = _tree(entry["in_spec"]), _tree(entry["out_spec"])
        module = Replayed(self.graph, out_spec, entry.get("forward_arg_names"), in_spec)
        leaves: list = []
        for spec, given in zip(self.model["graph_module"]["signature"]["input_specs"],
                               self.graph["inputs"], strict=True):
            ((kind, facts),) = spec.items()
            if kind == "user_input":
                leaves.append(self._example(given))
                module.names.append(_named(facts["arg"]))
            elif kind == "constant_input":
                leaves.append(_constant(facts["value"]))
                module.names.append(None)
            else:
                self._hold(module, kind, facts)
        self._outputs(module)
        args, kwargs = tree_unflatten(leaves, in_spec)
        dims = self._dims()
        wanted = [self._varying(given, dims) for given in self.graph["inputs"][-len(leaves):]
                  ] if leaves else []
        shapes = tree_unflatten(wanted, in_spec) if any(map(_varies, wanted)) else None
        named = None if shapes is None else self._by_name(module, shapes)
        try:
            program = export(module, args, kwargs, dynamic_shapes=named)
        except errors.ConstraintViolationError:  # what holds of sizes is said by the calls alone
            program = export(module, args, kwargs, dynamic_shapes=tree_map(found_out, named))
        program.example_inputs = self._samples()
        return program

    def _samples(self) -> tuple[tuple, dict] | None:
        """The arguments of the export, where they are plain tensors and values."""
        if SAMPLES not in self.archive:
            return None
        from ..serialization import load

        try:
            found = load(io.BytesIO(self.archive.read(SAMPLES)), weights_only=True)
        except (errors.PullbackError, RuntimeError, ValueError, pickle.UnpicklingError):
            return None  # objects of other kinds
        return found if isinstance(found, tuple) and len(found) == 2 else None

    def _by_name(self, module: Replayed, shapes: tuple) -> dict:
        names = list(inspect.signature(module.forward).parameters)
        return {**dict(zip(names, shapes[0])), **shapes[1]}

    def _hold(self, module: Replayed, kind: str, facts: dict) -> None:
        """A parameter, a buffer or a constant."""
        name = facts.get(f"{kind}_name")
        if kind not in ("parameter", "buffer", "tensor_constant"):
            raise refused(f"the program has an input that is a {kind.replace('_', ' ')}")
        value = self._tensor(name, kind == "parameter" or facts.get("persistent", False))
        if kind == "tensor_constant":
            object.__setattr__(module, _identifier(name), value)
            module.held[facts["arg"]["name"]] = (_identifier(name),)
            return
        install(module, name, value, facts.get("persistent"))
        module.held[facts["arg"]["name"]] = tuple(name.split("."))

    def _tensor(self, name: str, weight: bool) -> Tensor:
        for folder, file in (("weights", "model_weights_config.json"),
                             ("constants", "model_constants_config.json"))[:: 1 if weight else -1]:
            record = f"data/{folder}/{file}"
            known = json.loads(self.archive.read(record))["config"] if (
                record in self.archive) else {}
            if name in known:
                return self._stored(f"data/{folder}", name, known[name])
        raise refused(f"the file has no tensor for {name!r}")

    def _stored(self, folder: str, name: str, entry: dict) -> Tensor:
        if entry["use_pickle"]:
            raise refused(f"{name!r} is stored as a Python object, which could be any code")
        meta = entry["tensor_meta"]
        if meta["layout"] != _STRIDED or meta["device"]["type"] != "cpu":
            raise refused(f"{name!r} is no dense tensor of the CPU")
        record = f"{folder}/{entry['path_name']}"
        if record not in self.kept:
            self.kept[record] = self.archive.array(record)
        kind = _dtype(meta["dtype"]).np
        shape, strides = _numbers(meta["sizes"]), _numbers(meta["strides"])
        offset, buffer = _number(meta["storage_offset"]), self.kept[record]
        end = offset + sum(s * (n - 1) for s, n in zip(strides, shape)) + 1
        if min((*shape, *strides, offset), default=0) < 0 or (
                0 not in shape and end * kind.itemsize > buffer.nbytes):
            raise refused(f"{name!r} does not lie in its {buffer.nbytes} bytes")
        array = np.ndarray(shape, kind, buffer.data if buffer.nbytes else b"\0" * kind.itemsize,
                           offset * kind.itemsize if buffer.nbytes else 0,
                           tuple([s * kind.itemsize for s in strides]))
        if not entry["is_param"]:
            return make(array)
        place = record, kind, shape, strides, offset
        if place not in self.tied:
            self.tied[place] = Parameter(make(array), requires_grad=meta["requires_grad"])
        return self.tied[place]

    def _example(self, given: dict) -> Any:
        """Zeros in the place of a sample input; a number for a number."""
        ((kind, value),) = given.items()
        if kind == "as_tensor":
            meta = self.graph["tensor_values"][value["name"]]
            shape = _numbers(meta["sizes"])
            order = np.argsort([-s for s in _numbers(meta["strides"])], kind="stable")
            lying = np.zeros([shape[d] for d in order], _dtype(meta["dtype"]).np)
            made = make(lying.transpose(np.argsort(order)) if shape else lying)
            return made.requires_grad_() if meta["requires_grad"] else made
        if kind == "as_sym_int":
            raise refused("the program has an argument that is an integer of any value",
                          "export it with the integer's value, or as a tensor")
        return _constant(given)

    def _dims(self) -> dict[str, Any]:
        """The sizes that vary, with their ranges."""
        return {
            name: Dim(name, min=r["min_val"] or None, max=r["max_val"])
            for name, r in self.model.get("range_constraints", {}).items()
            if name.isidentifier()}  # not those that follow from others

    def _varying(self, given: dict, dims: dict[str, Any]) -> Any:
        """Which sizes of an argument vary, None if none does."""
        if "as_tensor" not in given:
            return None
        found = {}
        for d, size in enumerate(self.graph["tensor_values"][given["as_tensor"]["name"]]["sizes"]):
            text = size["as_expr"]["expr_str"] if "as_expr" in size else None
            if text is not None:
                known = _SYMBOL.fullmatch(text)
                found[d] = dims.get(known[1], Dim.AUTO) if known else Dim.AUTO
        return found or None

    def _outputs(self, module: Replayed) -> None:
        specs = self.model["graph_module"]["signature"]["output_specs"]
        for spec, out in zip(specs, self.graph["outputs"], strict=True):
            ((kind, facts),) = spec.items()
            if kind == "user_output":
                module.results.append(out)
            elif kind in ("buffer_mutation", "user_input_mutation", "parameter_mutation"):
                names = [v for k, v in facts.items() if k != "arg"]
                module.writes.append((names[0], kind, _named(out)))
            else:
                raise refused(f"the program has an output that is a {kind.replace('_', ' ')}")


class Replayed(Module):
    """Makes the calls that a graph of PyTorch's format lists."""

    def __init__(self, graph: dict, out_spec: TreeSpec, names: list[str] | None,
                 in_spec: TreeSpec):
        super().__init__()
        self.calls = [_Call(node) for node in graph["nodes"]]
        self.out_spec = out_spec
        self.names: list[str | None] = []  # of the flat arguments in the graph
        self.held: dict[str, tuple[str, ...]] = {}  # other inputs -> path in the module
        self.results: list[dict] = []
        self.writes: list[tuple] = []  # (what gets it, kind, value) of functional graphs
        count = len(in_spec.children()[0].children())
        keyed = list(in_spec.children()[1].context or ())
        names = names or [f"args_{i}" for i in range(count)] + keyed
        kinds = inspect.Parameter
        object.__setattr__(self, "shown", inspect.Signature(
            [kinds(n, kinds.POSITIONAL_OR_KEYWORD) for n in names[:count]]
            + [kinds(n, kinds.KEYWORD_ONLY) for n in names[count:]]))

    @property
    def forward(self) -> Any:
        """The function, with the parameters that the exported module had."""

        def forward(*args: Any, **kwargs: Any) -> Any:
            return self.run(tree_flatten((args, kwargs))[0])

        forward.__signature__ = self.shown  # type: ignore[attr-defined]
        return forward

    def run(self, leaves: list) -> Any:
        """All calls in order."""
        values = {name: v for name, v in zip(self.names, leaves) if name is not None}
        for name, path in self.held.items():
            value: Any = self
            for part in path:
                value = getattr(value, part)
            values[name] = value
        for call in self.calls:
            call.run(values)
        for target, kind, name in self.writes:
            written = values[target] if kind.startswith("user") else _at(self, target)
            written.copy_(values[name])
        return tree_unflatten([_value(r, values) for r in self.results], self.out_spec)


def _at(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


class _Function:
    """A graph among the arguments of a call: a branch, or a part with gradients off."""

    def __init__(self, graph: dict):
        self.calls = [_Call(node) for node in graph["nodes"]]
        self.inputs = [_named(given) for given in graph["inputs"]]
        self.outputs, self.single = graph["outputs"], graph["is_single_tensor_return"]

    def __call__(self, *given: Any) -> Any:
        values = dict(zip(self.inputs, given, strict=True))
        for call in self.calls:
            call.run(values)
        out = [_value(o, values) for o in self.outputs]
        return out[0] if self.single else tuple(out)


def _in_grad_mode(enabled: bool, function: _Function, *operands: Any) -> Any:
    with set_grad_enabled(enabled):
        return function(*operands)


class _Call:
    """One node: what is called, its arguments, the names of its results."""

    def __init__(self, node: dict):
        self.target = _target(node["target"])
        self.args = [i["arg"] for i in node["inputs"] if i.get("kind", 1) == 1]
        self.kwargs = {i["name"]: i["arg"] for i in node["inputs"] if i.get("kind", 1) == 2}
        self.outputs = node["outputs"]
        one = node.get("is_hop_single_tensor_return") is not False
        self.single = one and len(self.outputs) == 1
        for arg in (*self.args, *self.kwargs.values()):
            _value(arg, None)  # refused before anything runs

    def run(self, values: dict[str, Any]) -> None:
        args = [_value(a, values) for a in self.args]
        out = self.target(*args, **{k: _value(a, values) for k, a in self.kwargs.items()})
        if self.single:
            _assign(self.outputs[0], out, values)
        else:
            for facts, value in zip(self.outputs, out if self.outputs else ()):
                _assign(facts, value, values)


def _assign(facts: dict, value: Any, values: dict[str, Any]) -> None:
    ((kind, name),) = facts.items()
    if kind in ("as_tensors", "as_optional_tensors"):
        for each, item in zip(name, value):
            values[_named(each if kind == "as_optional_tensors" else {"as_tensor": each})] = item
    elif kind != "as_none":
        values[_named(facts)] = value


def _named(argument: dict) -> str | None:
    """The name of the value that an argument means."""
    ((kind, value),) = argument.items()
    if kind in ("as_tensor", "as_optional_tensor"):
        return value["name"] if "name" in value else _named(value)
    return value.get("as_name") if isinstance(value, dict) else None


def _value(argument: dict, values: dict[str, Any] | None) -> Any:
    """An argument; without values only whether it can be read."""
    ((kind, value),) = argument.items()
    look = (lambda name: None) if values is None else values.__getitem__
    if kind in ("as_float", "as_floats"):  # infinities are texts
        return [float(v) for v in value] if isinstance(value, list) else float(value)
    if kind in _PLAIN:
        return value
    if kind == "as_graph":
        return _Function(value["graph"])
    if kind == "as_none":
        return None
    if kind in ("as_tensor", "as_optional_tensor"):
        return None if "as_none" in value else look(_named(argument))
    if kind in ("as_tensors", "as_nested_tensors"):
        return [[look(v["name"]) for v in item] if isinstance(item, list) else look(item["name"])
                for item in value]
    if kind == "as_optional_tensors":
        return [_value(item, values) for item in value]
    if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        return look(value["as_name"]) if "as_name" in value else next(iter(value.values()))
    if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
        return [_value({kind[:-1]: item}, values) for item in value]
    if kind == "as_scalar_type":
        return _dtype(value)
    if kind == "as_memory_format":
        return memory_format.known[_FORMATS[value]]
    if kind == "as_layout" and value == _STRIDED:
        return layout.known["strided"]
    if kind == "as_device":
        return Device(value["type"], value["index"])
    if kind == "as_complex":
        return complex(value["real"], value["imag"])
    raise refused(f"a call in the program has an argument of a kind that is not known here: {kind}")


def _constant(argument: dict) -> Any:
    """An argument that is a plain value."""
    return _value(argument, {})


def _target(text: str) -> Any:
    """What a node calls, by its name in PyTorch."""
    parts = text.split(".")
    if parts[:3] == ["torch", "ops", "aten"] and len(parts) == 5:
        packet = getattr(ops, parts[3], None)
        found = getattr(packet, parts[4], None) if packet is not None else None
        if found is not None:
            return found
        if parts[3] in _SKIPPED:  # they check what our own rules check
            return lambda *args, **kwargs: None
        if parts[3] in _METHODS:
            return getattr(Tensor, parts[3])
    elif parts[:3] == ["torch", "ops", "higher_order"] and parts[3] in _HIGHER:
        return _HIGHER[parts[3]]
    elif parts[0] == "_operator" and parts[-1] in _OPERATORS:
        return getattr(operator, parts[-1])
    elif parts[:2] == ["torch", "ops"] and len(parts) == 5:
        name = parts[3] if parts[4] == "default" else f"{parts[3]}.{parts[4]}"
        if f"{parts[2]}::{name}" in definitions:
            return definitions[f"{parts[2]}::{name}"]._opoverload
    raise refused(f"the program calls {text}, which is not there",
                  "register it, or decompose it before: program.run_decompositions() in PyTorch")


_HIGHER = {**{name: operators[name] for name in ("cond", "map_impl", "scan", "while_loop")},
           "wrap_with_set_grad_enabled": _in_grad_mode}


def _tree(text: str) -> TreeSpec:
    """The structure of arguments or results."""
    version, spec = json.loads(text)
    if version != 1:
        raise refused(f"the structure of arguments has version {version}, not 1")
    return _subtree(spec)


def _subtree(spec: dict) -> TreeSpec:
    kind = spec["type"]
    children = [_subtree(child) for child in spec["children_spec"]]
    if kind is None:
        return tree_flatten(0)[1]
    known = {"builtins.tuple": tuple, "builtins.list": list, "builtins.dict": dict,
             "collections.OrderedDict": OrderedDict}
    own = None if kind in known else as_read(kind, spec["context"])
    if own is not None:
        return TreeSpec(*own, children)
    if kind not in known:
        raise refused(f"the arguments or results have a {kind}, a class that is not known here",
                      "register it (serialized_type_name), or use tuples, lists and dictionaries")
    context = None if spec["context"] is None else json.loads(spec["context"])
    return TreeSpec(known[kind], context, children)


def _dtype(code: int) -> Any:
    if code not in _DTYPES:
        raise refused(f"the file has a tensor of a dtype that is not known here (number {code})")
    return next(d for d in dt.ALL if d.name == _DTYPES[code])


def _number(size: dict) -> int:
    """A size, that at hand if it varies."""
    return size["as_int"] if "as_int" in size else size["as_expr"]["hint"]["as_int"]


def _numbers(sizes: list[dict]) -> tuple[int, ...]:
    return tuple([_number(size) for size in sizes])


def _varies(wish: Any) -> bool:
    return bool(wish)


def _identifier(text: str) -> str:
    return re.sub(r"\W", "_", text)
