"""Writes the stubs, so that editors and type checkers know operators and methods.

Operators are made when they are first used, from the operator table; no tool can find them by
reading the package. The stub is made from the same table: each schema becomes a typed signature.
The remaining names of the package and of `Tensor` are described by looking at them.  `Tensor` is
described beside the file that defines it, so that it is one type wherever it is imported from.

    python tools/gen_stubs.py            # or: make stubs
    python tools/gen_stubs.py --check    # part of make lint
"""

from __future__ import annotations

import importlib
import inspect
import keyword
import re
import sys
from types import ModuleType

from generated import ROOT, main

sys.path.insert(0, str(ROOT))

import pullback
from pullback.core.op import aliases, families
from pullback.core.overload import overload_of

HEADER = '''\
"""%s Made from the operator table by tools/gen_stubs.py."""

# mypy: disable-error-code="override,misc,overload-overlap,overload-cannot-match"
from collections.abc import Callable as Callable, Iterator as Iterator, Sequence as Sequence
from typing import Any as Any, NamedTuple as _NamedTuple, overload as _overload

import numpy as _np
from pullback.array.device import Device as _device
from pullback.array.dtype import DType as _dtype
from pullback.array.size import Size as Size

# Names of builtin types that the package or Tensor use for something else.
%s
_Number = _int | _float | _bool | _complex
'''
BUILTINS = "\n".join(
    f"_{name} = {name}" for name in ("bool", "complex", "float", "int", "str", "type"))

# Schema type -> annotation. What is not listed is Any.
# packages of this one that are not for users
INTERNAL = {f"pullback.{name}" for name in (
    "core", "array", "memory", "eager", "interp", "symbolic", "table", "pytree", "settings")}
TYPES = {
    "Tensor": "Tensor", "Scalar": "_Number", "int": "_int", "float": "_float", "bool": "_bool",
    "str": "_str", "ScalarType": "_dtype", "Device": "_device | _str",
}
# Names that annotations of ordinary functions may use, and how they are spelled in the stub.
SPELLING = {
    "Tensor": "Tensor", "int": "_int", "float": "_float", "bool": "_bool", "str": "_str",
    "complex": "_complex", "None": "None", "tuple": "tuple", "list": "list", "dict": "dict",
    "Any": "Any", "Callable": "Callable", "Sequence": "Sequence", "Iterator": "Iterator",
    "Size": "Size", "DType": "_dtype", "Device": "_device", "dtype": "_dtype", "device": "_device",
    "type": "_type", "object": "object", "np.ndarray": "_np.ndarray",
}
RETURNS = {
    "__array__": "_np.ndarray", "__bool__": "_bool", "__complex__": "_complex",
    "__float__": "_float", "__getitem__": "Tensor", "__index__": "_int", "__int__": "_int",
    "__iter__": "Iterator[Tensor]", "__len__": "_int", "__repr__": "_str", "__setitem__": "None",
    "type": "Any", "size": "Any", "item": "Any", "tolist": "Any", "numpy": "_np.ndarray",
}
PROPERTIES = {
    "H": "Tensor", "T": "Tensor", "data": "Tensor", "device": "_device", "dtype": "_dtype",
    "grad": "Tensor | None", "imag": "Tensor", "is_leaf": "_bool", "itemsize": "_int",
    "mH": "Tensor", "mT": "Tensor", "nbytes": "_int", "ndim": "_int", "real": "Tensor",
    "requires_grad": "_bool", "shape": "Size",
}
INNER = {"_base", "_version", "_grad", "_backward_hooks"}  # that programs use all the same
FIRST = ["__hash__: Any", "def __init__(self, *args: Any, **kwargs: Any) -> None: ...",
         *(line for name in ("__torch_function__", "__torch_dispatch__") for line in (
             "@classmethod", f"def {name}(cls, func: Any, types: Any, args: Any = ..., "
                             "kwargs: Any = ...) -> Any: ...")),
         *(line for name in ("_make_subclass", "_make_wrapper_subclass") for line in (
             "@staticmethod", f"def {name}(cls: Any, *args: Any, **kwargs: Any) -> Any: ..."))]
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
          "lshift", "rshift"]
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]


# --- operators ---------------------------------------------------------------------------------


def annotation(arg, number_too: bool = False) -> str:
    """The type of a schema argument."""
    text = TYPES.get(arg.base, "Any")
    if number_too:
        text += " | _Number"
    if arg.is_list:
        item = f"{text} | None" if arg.optional_items else text
        text = f"Sequence[{item}]"
        if arg.base == "int":
            text = "_int | Sequence[_int]" if arg.size else text
    return f"{text} | None" if arg.optional and text != "Any" else text


named: dict[str, list[str]] = {}  # classes of results with names, which the stub needs


def result(schema, op=None) -> str:
    kinds = [
        f"list[{TYPES.get(r.base, 'Any')}]" if r.is_list else annotation(r) for r in schema.returns
    ]
    if not kinds:
        return "None"
    if len(kinds) == 1:
        return kinds[0]
    if op is not None and overload_of(op).result_class is not None:
        fields = overload_of(op).result_class._fields
        name = "_".join(("", *fields))
        named[name] = [f"class {name}(_NamedTuple):",
                       *(f"    {f}: {kind}" for f, kind in zip(fields, kinds))]  # fmt: skip
        return name
    return f"tuple[{', '.join(kinds)}]"


def default(arg) -> str:
    value = arg.default
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value) if not isinstance(value, float) or value == value else "..."
    return "..."


def parameters(op, method: bool, variadic: bool) -> str | None:
    """The parameter list, None where Python has no such signature."""
    schema = overload_of(op).schema
    parts, keyword_only, had_default = [], False, False
    for i, arg in enumerate(schema.args):
        if keyword.iskeyword(arg.name):
            return None
        name = arg.name
        if i == 0 and name == "self":
            if method:
                parts.append("self")
                continue
            name = "input"
        if arg.kwarg_only and not keyword_only:
            parts.append("*")
            keyword_only = True
        if variadic and arg.is_list and not arg.kwarg_only:
            parts.append(f"*{name}: _int")
            keyword_only = True
            continue
        text = f"{name}: {annotation(arg, name in op.scalars)}"
        if arg.has_default:
            text += f" = {default(arg)}"
            had_default = True
        elif had_default and not keyword_only:
            text += " = ..."
        parts.append(text)
    if not method:
        if not keyword_only:
            parts.append("*")
        parts.append("out: Any = None")
        if op.kind in ("creation", "random"):
            parts.append("requires_grad: _bool = False")
    return ", ".join(parts)


def definitions(name: str, ops: list, *, method: bool = False, inplace: bool = False) -> list[str]:
    """The stub lines of one name with all its overloads."""
    signatures: dict[str, str] = {}
    for op in ops:
        schema = overload_of(op).schema
        returned = "Tensor" if inplace else result(schema, op)
        for variadic in (False, True) if schema.varargs else (False,):
            text = parameters(op, method, variadic)
            if text is not None:
                signatures.setdefault(text, returned)
    head = "@_overload\n" if len(signatures) > 1 else ""
    doc = (ops[0].__doc__ or "").strip().split("\n")[0]
    lines = []
    for i, (text, returned) in enumerate(signatures.items()):
        body = f' """{doc}"""' if doc and i == 0 else " ..."
        lines += f"{head}def {name}({text}) -> {returned}:{body}".split("\n")
    return lines


def public(op) -> bool:
    return not op.base_name.startswith("_")


def names_of(base: str) -> list[str]:
    others = sorted(other for other, target in aliases.items() if target == base)
    return [name for name in (base, *others) if not name.startswith("_")]


def operator_functions(taken: set[str]) -> list[str]:
    lines = []
    for base in sorted(families):
        ops = [op for op in families[base] if public(op) and op.function]
        for name in names_of(base) if ops else ():
            if name not in taken and name.isidentifier() and not keyword.iskeyword(name):
                lines += definitions(name, ops)
                taken.add(name)
    return lines


def operator_methods(taken: set[str]) -> list[str]:
    lines = []
    for base in sorted(families):
        ops = [op for op in families[base] if public(op) and op.method]
        ops = [op for op in ops if overload_of(op).schema.args[:1] and
               overload_of(op).schema.args[0].name == "self"]
        for name in names_of(base) if ops else ():
            if name not in taken and hasattr(pullback.Tensor, name):
                lines += definitions(name, ops, method=True)
                taken.add(name)
            writing = [op for op in ops if op.inplace]
            if writing and f"{name}_" not in taken and hasattr(pullback.Tensor, f"{name}_"):
                lines += definitions(f"{name}_", writing, method=True, inplace=True)
                taken.add(f"{name}_")
    return lines


# --- everything else ---------------------------------------------------------------------------


def spelled(text) -> str:
    """An annotation of ours in the stub's spelling, Any if it uses other names."""
    if text is inspect.Parameter.empty:
        return "Any"
    if not isinstance(text, str):
        text = getattr(text, "__name__", str(text)) if text is not None else "None"
    names = set(re.findall(r"[A-Za-z_][\w.]*", text))
    if not names <= set(SPELLING) or "'" in text or '"' in text:
        return "Any"
    return re.sub(r"[A-Za-z_][\w.]*", lambda m: SPELLING[m[0]], text)


def signature(function, method: bool = False) -> str:
    """`(parameters) -> result` of a Python function."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return f"({'self, ' if method else ''}*args: Any, **kwargs: Any) -> Any"
    parts, star = [], False
    for i, p in enumerate(found.parameters.values()):
        if method and i == 0:
            parts.append("self")
            continue
        if p.kind is p.VAR_POSITIONAL:
            star = True
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        text = f"{prefix}{p.name}: {spelled(p.annotation)}"
        if p.default is not p.empty:
            plain = isinstance(p.default, (bool, int, float, str, type(None)))
            text += f" = {p.default!r}" if plain else " = ..."
            if p.default is None and "None" not in text.split("=")[0] and "Any" not in text:
                text = text.replace(" = ", " | None = ")
        parts.append(text)
    return f"({', '.join(parts)}) -> {spelled(found.return_annotation)}"


def describe(name: str, value) -> list[str]:
    """The stub of one name of the package that is no operator."""
    for end, kind in (("Tensor", "Tensor"), ("Storage", "TypedStorage")):
        if name.endswith(end) and getattr(value, "__module__", "") == "torch":
            return [f"{name} = {kind}"]  # FloatTensor and the like make Tensors
    if isinstance(value, ModuleType) and getattr(value, "__file__", None) is None:
        return [f"{name}: Any"]  # a table of facts, not a file
    if isinstance(value, ModuleType):
        relative = value.__name__.removeprefix("pullback.")
        if relative == name:
            return [f"from pullback import {name} as {name}"]
        parent, _, last = relative.rpartition(".")
        return [f"from pullback{'.' + parent if parent else ''} import {last} as {name}"]
    if isinstance(value, pullback.dtype):
        return [f"{name}: _dtype"]
    if isinstance(value, type):
        home, public_name = value.__module__, value.__qualname__
        return [f"from {home} import {public_name} as {name}"] if "." not in public_name else []
    if callable(value):
        return [f"def {name}{signature(value)}: ..."]
    kind = {"float": "_float", "str": "_str", "int": "_int"}.get(type(value).__name__, "Any")
    return [f"{name}: {kind}"]


def tensor_class() -> list[str]:
    cls = pullback.Tensor
    taken = set(RETURNS)
    lines = operator_methods(taken)
    for name in sorted(dir(cls)):
        if name.startswith("_") and name not in RETURNS and name not in INNER or (
                name in taken and name not in RETURNS):
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, property):
            kind = PROPERTIES.get(name, "Any")
            lines += ["@property", f"def {name}(self) -> {kind}: ..."]
            if value.fset is not None:
                lines += [f"@{name}.setter", f"def {name}(self, value: Any) -> None: ..."]
            taken.add(name)
        elif inspect.isfunction(value):
            text = signature(value, method=True)
            if name in RETURNS:
                text = re.sub(r"-> .*$", f"-> {RETURNS[name]}", text)
            elif (name.endswith("_") or "memory_format" in text) and text.endswith("-> Any"):
                text = text.removesuffix("Any") + "Tensor"
            lines.append(f"def {name}{text}: ...")
            taken.add(name)
    for name in BINARY:
        for form in (f"__{name}__", f"__r{name}__", f"__i{name}__"):
            if hasattr(cls, form):
                lines.append(f"def {form}(self, other: Any) -> Tensor: ...")
    for name in COMPARE:
        lines.append(f"def __{name}__(self, other: Any) -> Tensor: ...")
    for name in ("neg", "pos", "abs", "invert"):
        if hasattr(cls, f"__{name}__"):
            lines.append(f"def __{name}__(self) -> Tensor: ...")
    slots = [f"{name}: Any" for name in cls.__slots__ if not name.startswith("__")]
    return ["class Tensor:", *("    " + line for line in [*FIRST, *slots, *lines])]


def handle_stub() -> str:
    """The stub of the file that defines Tensor: its other names are internal."""
    module = importlib.import_module("pullback.core.handle")
    lines = []
    for name, value in vars(module).items():
        if value is pullback.Tensor or getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, type):
            lines += [f"class {name}:", "    def __init__(self, *args: Any) -> None: ...",
                      "    def __getattr__(self, name: _str) -> Any: ..."]
        elif inspect.isfunction(value):
            lines.append(f"def {name}{signature(value)}: ...")
        else:
            lines.append(f"{name}: Any")
    head, tensor = HEADER % ("Types of the handle.", BUILTINS), tensor_class()
    results = [line for name in sorted(named) for line in named[name]]
    return "\n".join([head, *results, *tensor, "", *lines]) + "\n"


def stub() -> str:
    taken = {"Tensor", "device", "dtype", "Size"}
    lines = []
    for name in sorted(set(dir(pullback))):
        from_table = (name in families or name in aliases) and name not in pullback._FROM
        if name in taken or name.startswith("_") or from_table and name not in pullback._LAZY:
            continue
        try:
            value = getattr(pullback, name)
        except (AttributeError, ImportError):
            continue  # announced, not there yet
        if getattr(value, "__name__", None) in INTERNAL:
            continue  # importable by its own name
        if name == "compile":
            # the package of that name can be called, and users mean that
            value = importlib.import_module("pullback.compile.api").compile
        lines += describe(name, value)
        taken.add(name)
    modules = [line for line in lines if line.startswith("from")]
    rest = [line for line in lines if not line.startswith("from")]
    head = HEADER % ("Types of the package's names.", BUILTINS)
    head += "device = _device\ndtype = _dtype\n"
    functions = operator_functions(taken)
    modules.append("from pullback.core.handle import Tensor as Tensor")
    modules += [f"from pullback.core.handle import {name} as {name}" for name in sorted(named)]
    text = [head, *modules, "", "__version__: _str", *rest, *functions]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    files = {"pullback/__init__.pyi": stub(), "pullback/core/handle.pyi": handle_stub()}
    sys.exit(main(__doc__.split("\n")[0], files, "stubs"))
