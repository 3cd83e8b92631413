"""The derivative table as text, in the classic `derivatives.yaml` layout.

`dump()` prints it, `load(path)` extends it, `validate()` checks all of it.  An entry:

    - name: mul.Tensor(Tensor self, Tensor other) -> Tensor
      self: grad * other.conj()
      other: grad * self.conj()
      result: self_t * other_p + self_p * other_t

The keys are inputs (gradient formulas) and outputs (forward formulas).  Formulas are Python
expressions, as in the table itself; see CONTRIBUTING.md.  Read next: `table/derivative.py`,
`table/checks.py`.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable

from . import errors
from .core.op import Op, aliases, families, registry
from .core.overload import OpOverload, overload_of
from .core.schema import Schema
from .table import checks, yaml
from .table.derivative import DEFAULT, derivatives_of, mapping_of, sort, split
from .table.expression import parse

__all__ = ["dump", "forward_mode", "load", "validate"]

ATTRIBUTES = ("grad", "push", "constant", "nondiff", "linear", "multilinear", "diff_outputs",
              "dispatch")


# writing


def dump(stream=None, ops: Iterable | None = None) -> str:
    """The table, or some entries of it, in the classic layout; also written to `stream`."""
    chosen = [o for o in map(overload_of, registry.values()) if _says_something(o.op)]
    if ops is not None:
        chosen = [_overload(o) for o in ops]
    text = "\n".join(_entry(o) for o in chosen)
    if stream is not None:
        stream.write(text)
    return text


def _overload(thing) -> OpOverload:
    if isinstance(thing, OpOverload):
        return thing
    return overload_of(registry[thing] if isinstance(thing, str) else thing)


def _says_something(op: type[Op]) -> bool:
    """Has the entry anything to say about derivatives?"""
    return op.kind != "composite" and any(getattr(op, a) not in (None, (), {}) for a in ATTRIBUTES)


def _entry(overload: OpOverload) -> str:
    op = overload.op
    lines = [f"- name: {yaml.scalar(str(overload.schema))}"]
    if overload.is_composite:
        return "\n".join([*lines, "  # composite: differentiates by its parts", ""])
    if not _says_something(op):
        return "\n".join([*lines, "  # no derivative", ""])
    if op.diff_outputs is not None:
        flags = op.diff_outputs
        items = [_quoted(flags)] if isinstance(flags, str) else [str(bool(f)) for f in flags]
        lines.append(f"  output_differentiability: [{', '.join(items)}]")
    parts = derivatives_of(overload)
    how, derived = forward_mode(overload)
    if DEFAULT in parts and not parts[DEFAULT].push:
        parts[DEFAULT].push = derived
    order = overload.schema.names
    if not op.dispatch:
        lines += _formulas(mapping_of(parts[DEFAULT], order), 2)
    else:
        lines.append("  dispatch:")
        for key, part in parts.items():
            lines += [f"    {key}:", *_formulas(mapping_of(part, order), 6)]
    if how and not any(p.push for p in parts.values()):
        lines.append(f"  # forward mode: {how}")
    return "\n".join([*lines, ""])


def _quoted(condition: str) -> str:
    """A condition inside of brackets."""
    return "'" + " ".join(condition.split()).replace("'", "''") + "'"


def _formulas(mapping: dict[str, str], indent: int) -> list[str]:
    return [f"{' ' * indent}{key}: {yaml.scalar(text)}" for key, text in mapping.items()]


def forward_mode(overload: OpOverload) -> tuple[str, dict[str, str]]:
    """Where forward mode comes from in words, "" for nowhere; as formulas where they say it."""
    op, names = overload.op, overload.output_names
    if overload.is_composite:
        return "by its parts", {}
    rule, one = overload.rule, len(overload.schema.returns) == 1
    special = op.kind in ("creation", "random", "view")
    if rule is None and overload.decomposition is not None and not special:
        return "by its decomposition", {}
    if (overload.is_view and rule is not None) or op.linear:
        why = "a view" if overload.is_view else f"linear in {', '.join(op.linear)}"
        varying = [] if rule is None else [n for n, d in zip(names, rule.diff_outputs) if d]
        texts = {varying[0]: "auto_linear"} if len(varying) == 1 else {}
        return f"the operator itself ({why})", texts
    if rule is None:
        return "", {}
    if op.multilinear:
        return f"product rule in {', '.join(op.multilinear)}", _product_rule(overload)
    written = derivatives_of(overload).get(DEFAULT)
    if overload.pushforward is not None:
        return "written in the entry", dict(written.push) if written else {}
    single = {names[0]: "auto_element_wise"} if one and len(rule.inputs) == 1 else {}
    if not rule.all_formulas():
        return "zero", single
    if op.kind == "pointwise":
        return "the gradient formulas (element-wise)", single
    return "the transposed pullback", {}


def _product_rule(overload: OpOverload) -> dict[str, str]:
    """The product rule as a formula, where all its inputs are sure to be tensors."""
    op, schema = overload.op, overload.schema
    inputs = overload.rule.input_names
    plain = all(not (a.optional or a.is_list or a.name in op.scalars)
                for a in schema.args if a.name in inputs)
    if not plain or len(schema.returns) != 1:
        return {}
    terms = []
    for varied in op.multilinear:
        words = []
        for a in schema.args:
            role = "_t" if a.name == varied else "_p" if a.name in inputs else ""
            value = a.name + role
            words.append(f"{a.name}={value}" if a.kwarg_only else value)
        terms.append(f"{op.base_name}({', '.join(words)})")
    return {overload.output_names[0]: " + ".join(terms)}


# checking


def validate(ops: Iterable | None = None) -> int:
    """Run every check on every entry; returns how many there are, raises with all that is wrong."""
    chosen = list(registry.values()) if ops is None else [_overload(o).op for o in ops]
    wrong = []
    for op in chosen:
        try:
            _check(OpOverload(op))
        except (errors.FormulaError, errors.SchemaError) as error:
            wrong.append(str(error))
    if wrong:
        count = f"{len(wrong)} of {len(chosen)} entries of the table are wrong"
        raise errors.FormulaError("\n".join([count, *wrong]))
    return len(chosen)


def _check(overload: OpOverload) -> None:
    """All checks of one entry; they run while its formulas are compiled."""
    overload.schema  # noqa: B018  (parses it)
    checks.check_language(overload)
    rule = overload.rule
    if rule is None:
        checks.check_ignored(overload)
        return
    for compiled in (rule.backward_real, rule.backward_complex, overload.pushforward):
        del compiled


# reading


def load(path_or_text: str | os.PathLike, replace: bool = False) -> list[str]:
    """Extend the table from a file or a text in the classic layout; returns what has changed.

    Operators of the table that have no derivative get one; another derivative for one that has is
    an error unless `replace` is given.  Any error leaves the table as it was.
    """
    text, place = _source(path_or_text)
    changes: dict[type[Op], dict] = {}
    for entry in yaml.read(text, place):
        try:
            op, new = _read_entry(entry, replace)
            if op in changes:
                raise errors.SchemaError(errors.text(
                    "the operator has two entries", f"entry: {entry['name']}", "merge them"))
        except errors.PullbackError as error:
            line = getattr(entry, "line", 1)
            raise type(error)(f"{place}:{line}: {error}") from None
        changes[op] = new
    changed = {op: new for op, new in changes.items() if new}
    for op, new in changed.items():
        for attribute in ATTRIBUTES:
            setattr(op, attribute, new[attribute])
    for op in registry.values():
        if any(op.base_name == c.base_name or issubclass(op, c) for c in changed):
            overload_of(op).forget()
    return [op.full_name for op in changed]


def _source(path_or_text: str | os.PathLike) -> tuple[str, str]:
    """(text, name for messages)."""
    if isinstance(path_or_text, str):
        if "\n" in path_or_text or path_or_text.lstrip().startswith("- "):
            return path_or_text, "<text>"
    path = os.fspath(path_or_text)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), os.path.basename(path)
    except ValueError as error:  # no UTF-8, or no name of a file
        raise errors.FormulaError(errors.text(
            f"{os.path.basename(path)[:100]!r} is no text file: {error}",
            cure="pass the name of a file in UTF-8, or the text itself")) from None


def _read_entry(entry, replace: bool) -> tuple[type[Op], dict]:
    """The operator of an entry and the attributes it is to get, checked; {} for no change."""
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise errors.FormulaError(errors.text(
            "an entry without a name", f"entry: {entry}", "begin it with `- name: <schema>`"))
    op = _find(entry["name"])
    if len(entry) == 1:
        raise errors.FormulaError(errors.text(
            "an entry that says nothing", f"entry: {entry['name']}",
            "give it formulas, or remove it"))
    new = _attributes(OpOverload(op), entry)
    # a subclass without schema of its own is not registered: checking it does not touch the table
    shadow = OpOverload(type(op.__name__, (op,), new))
    _check(shadow)
    if _says_something(op) and _entry(shadow) == _entry(OpOverload(op)):
        return op, {}
    if _says_something(op) and not replace:
        raise errors.FormulaError(errors.text(
            f"'{op.full_name}' has a derivative already", f"entry: {entry['name']}",
            "pass replace=True to load(), or remove the entry"))
    return op, new


def _attributes(overload: OpOverload, entry: dict) -> dict:
    """The attributes of the table entry that a mapping in the classic layout stands for."""
    other = ("name", "output_differentiability", "dispatch")
    formulas = {key: text for key, text in entry.items() if key not in other}
    dispatch = entry.get("dispatch") or {}
    if dispatch and formulas:
        raise errors.FormulaError(errors.text(
            f"a formula for '{next(iter(formulas))}' beside dispatch", f"entry: {overload.schema}",
            f"put it under {DEFAULT}"))
    if not isinstance(dispatch, dict) or not all(isinstance(m, dict) for m in dispatch.values()):
        raise errors.FormulaError(errors.text(
            "dispatch does not map keys to formulas", f"entry: {overload.schema}",
            f"write `dispatch:`, below it `{DEFAULT}:`, and the formulas below that"))
    dispatch = {key: _translated(overload, mapping) for key, mapping in dispatch.items()}
    own = dispatch.pop(DEFAULT, None) if dispatch else _translated(overload, formulas)
    parts = sort(overload, own or {})
    push = parts.push or None
    if push is not None and list(push) == overload.output_names[:1]:
        push = next(iter(push.values()))
    return {"grad": parts.grad, "push": push, "constant": parts.constant, "nondiff": parts.nondiff,
            "linear": (), "multilinear": (), "dispatch": dispatch,
            "diff_outputs": _flags(overload, entry.get("output_differentiability"))}


def _flags(overload: OpOverload, items) -> tuple | str | None:
    """`output_differentiability` as the attribute `diff_outputs`."""
    if items is None:
        return None
    if not isinstance(items, list):
        raise errors.FormulaError(errors.text(
            f"output_differentiability is no list: {items!r}", f"entry: {overload.schema}",
            "write [True, False], or one condition in brackets"))
    words = {"true": True, "false": False}
    flags = tuple(words.get(item.lower(), item) for item in items)
    return flags[0] if len(flags) == 1 and isinstance(flags[0], str) else flags


def _find(text: str) -> type[Op]:
    """The table entry of a schema; only the spelling of integers and defaults may differ."""
    schema = Schema(text)
    op = registry.get(schema.full_name)
    if op is None:
        raise _unknown(schema)
    known = overload_of(op).schema
    same = (len(known.args) == len(schema.args) and len(known.returns) == len(schema.returns)
            and all(a.same_as(b) for a, b in zip(known.args, schema.args))
            and all(a.same_as(b) for a, b in zip(known.returns, schema.returns)))
    if not same:
        raise errors.SchemaError(errors.text(
            "the schema differs from that of the table", [f"entry: {text}", f"table: {known}"],
            "copy the schema from the table"))
    return op


def _unknown(schema: Schema) -> errors.SchemaError:
    """The error for an operator that the table does not have, with those that might be meant."""
    base = schema.name
    functional = base[:-1] if base.endswith("_") and base[:-1] in families else None
    near = [aliases.get(base, functional or base)]
    if near[0] not in families:
        near = errors.close_matches(base, families, 3)
    lines = [f"entry: {schema}", *(f"table: {op.schema}" for n in near for op in families[n])]
    if functional:
        cure = f"give the entry of '{functional}': the in-place variant follows from it"
    elif len(lines) > 1:
        cure = "use one of these schemas"
    else:
        cure = "define the operator first (a class derived from Op)"
    return errors.SchemaError(errors.text(
        f"the table has no operator '{schema.full_name}'", lines, cure))


# the classic spelling of formulas


def _translated(overload: OpOverload, mapping: dict) -> dict[str, str]:
    found = {}
    for key, text in mapping.items():
        if not isinstance(text, str) or not text.strip():
            raise errors.FormulaError(errors.text(
                f"no formula for '{key}'", f"entry: {overload.schema}",
                "write it behind the colon, or leave the line out"))
        found[", ".join(split(key))] = _python(text, overload)
    return found


def _python(text: str, overload: OpOverload) -> str:
    """A formula with the classic accessors of sizes and types in our spelling."""
    text = " ".join(text.split())
    if not any(word in text for word in ("sym_", "scalar_type", "true", "false")):
        return text
    rewriter = _Classic()
    tree = rewriter.visit(parse(text, str(overload.schema)))
    return ast.unparse(ast.fix_missing_locations(tree)) if rewriter.changed else text


class _Classic(ast.NodeTransformer):
    """`x.sym_sizes()` -> `x.shape`, `x.scalar_type()` -> `x.dtype`, and the like."""

    ATTRIBUTES = {"sym_sizes": "shape", "scalar_type": "dtype"}
    METHODS = {"sym_numel": "numel", "sym_strides": "stride"}
    WORDS = {"true": True, "false": False}

    changed = False

    def visit_Call(self, node: ast.Call):
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        value, name = node.func.value, node.func.attr
        if name in self.ATTRIBUTES and not node.args:
            self.changed = True
            return ast.Attribute(value, self.ATTRIBUTES[name], ast.Load())
        if name in self.METHODS and not node.args:
            self.changed = True
            node.func.attr = self.METHODS[name]
        if name == "sym_size" and len(node.args) == 1:
            self.changed = True
            shape = ast.Attribute(value, "shape", ast.Load())
            return ast.Subscript(shape, node.args[0], ast.Load())
        return node

    def visit_Name(self, node: ast.Name):
        if node.id not in self.WORDS:
            return node
        self.changed = True
        return ast.Constant(self.WORDS[node.id])
