"""Formula text -> functions: what to save, the pullback, the pushforward, and every check on the way.

A formula is a Python expression over the names that `docs/internals.md` lists.  Its syntax tree tells what
must be saved: a bare name saves the tensor, `x.shape`, `x.dtype`, `x.ndim`, `x.numel()`, `x.device` save only
that fact.  Two versions of each pullback are compiled, with and without conjugations.
Read next: `tape.py`, which records nodes with these rules.
"""

from __future__ import annotations

import ast
import functools
import importlib
import math
import pkgutil

from .. import errors
from .op import Op, families, rule_function  # noqa: F401  (rule_function is re-exported)

FACTS = {"shape", "dtype", "ndim", "device", "is_complex_dtype"}
CALLED_FACTS = {"numel", "stride", "dim", "is_complex", "is_floating_point"}
REFUSED = {"sizes", "strides", "sym_sizes"}
BUILTINS = {"len", "range", "tuple", "list", "max", "min", "sum", "abs", "int", "float", "bool", "None",
            "True", "False", "math", "isinstance", "zip", "enumerate", "any", "all", "reversed", "sorted",
            "complex", "round", "slice", "Ellipsis"}


@functools.cache
def helpers() -> dict:
    """All public functions of `pullback.formulas`."""
    found = {}
    package = importlib.import_module("pullback.formulas")
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"pullback.formulas.{info.name}")
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if callable(value) and own and not name.startswith("_"):
                found[name] = value
    return found


def lookup(name: str):
    """A function that formulas may call: a helper or an operator."""
    if name in helpers():
        return helpers()[name]
    from .table import ops
    if name in families or name in ops:
        return getattr(ops, name)
    return None


class _Scan(ast.NodeTransformer):
    """Replaces facts of tensors by local names and collects the names a formula uses."""

    def __init__(self, tensors: set[str], conjugate: bool):
        self.tensors, self.conjugate = tensors, conjugate
        self.names: set[str] = set()
        self.facts: set[tuple[str, str]] = set()
        self.refused: list[str] = []

    def visit_Call(self, node: ast.Call):
        func = node.func
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Name) and func.value.id in self.tensors:
                if func.attr in CALLED_FACTS and not node.args and not node.keywords:
                    self.facts.add((func.value.id, func.attr + "()"))
                    return ast.Name(f"{func.value.id}__{func.attr}", ast.Load())
                if func.attr in REFUSED or (func.attr == "size" and node.args):
                    self.refused.append(f"{func.value.id}.{func.attr}()")
            if func.attr == "conj" and not node.args:
                inner = self.visit(func.value)
                return ast.Call(ast.Name("_conj", ast.Load()), [inner], []) if self.conjugate else inner
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id in self.tensors and node.attr in FACTS:
            self.facts.add((node.value.id, node.attr))
            return ast.Name(f"{node.value.id}__{node.attr}", ast.Load())
        if node.attr == "mH" and not self.conjugate:
            return ast.Attribute(self.visit(node.value), "mT", ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name):
        self.names.add(node.id)
        return node


def conj_value(value):
    """The conjugate of a tensor or a Python number."""
    return value.conj() if hasattr(value, "_edge") else value.conjugate()


def _local_names(tree: ast.AST) -> set[str]:
    """Names bound inside an expression (comprehensions, lambdas)."""
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return bound


def fact_value(tensor, attribute: str):
    """The fact of a tensor that a formula asked for; None of an absent tensor."""
    if tensor is None:
        return None
    if isinstance(tensor, (list, tuple)):
        return [fact_value(t, attribute) for t in tensor]
    if not hasattr(tensor, "_edge"):  # a Python number in a tensor's place
        return {"shape": (), "ndim": 0, "dim()": 0, "numel()": 1}.get(attribute)
    if attribute.endswith("()"):
        return getattr(tensor, attribute[:-2])()
    return getattr(tensor, attribute)


class Rule:
    """The compiled derivative of one operator."""

    @staticmethod
    def exists(op: type[Op]) -> bool:
        return bool(op.grad or op.constant)

    def __init__(self, overload):
        self.overload, op = overload, overload.op
        self.op = op
        schema = overload.schema
        self.tensors = {a.name for a in schema.args if a.is_tensor}
        self.outputs = list(overload.output_names)
        self.formulas = self._collect(schema)
        self.inputs = [i for i, a in enumerate(schema.args)
                       if any(a.name in names for names, _ in self.formulas) or a.name in op.constant]
        self.input_names = [schema.args[i].name for i in self.inputs]
        self.lists = [schema.args[i].is_list for i in self.inputs]
        self.diff_outputs = self._differentiable_outputs()
        self._check(schema)
        self.saves: list[tuple] = []  # (local name, "arg"|"out"|"fact"|"value", name, attribute)
        self.backward_real = self._compile(False)
        self.backward_complex = self._compile(True)
        self.guards = self._guards()
        self.name = node_name(op)

    def _fail(self, message: str):
        raise errors.FormulaError(f"{message}\n  entry: {self.overload.schema}")

    def _collect(self, schema) -> list[tuple[tuple[str, ...], str]]:
        """(input names, text) of each formula, checked against the schema."""
        found, seen = [], set()
        arguments = {a.name: a for a in schema.args}
        for key, text in self.op.grad.items():
            names = tuple(n.strip() for n in key.split(","))
            for name in names:
                if name in self.outputs and name in arguments:
                    self._fail(f"'{name}' is both an input and an output")
                if name not in arguments:
                    self._fail(f"gradient formula for '{name}', which is no argument of the operator")
                if not arguments[name].is_tensor:
                    self._fail(f"gradient formula for '{name}', which is not a tensor")
                if name in self.op.nondiff or name in self.op.constant or name in seen:
                    self._fail(f"'{name}' is both differentiable and not, or given twice")
                seen.add(name)
            found.append((names, text))
        order = {a.name: i for i, a in enumerate(schema.args)}
        return sorted(found, key=lambda item: order[item[0][0]])

    def _differentiable_outputs(self) -> list[bool]:
        returns = self.overload.schema.returns
        chosen = self.op.diff_outputs
        if chosen is not None and not isinstance(chosen, str):
            if len(chosen) != len(returns):
                self._fail(f"diff_outputs has {len(chosen)} items for {len(returns)} outputs")
            return list(chosen)
        used = {n.id for _, text in self.formulas for n in ast.walk(self._parse(text))
                if isinstance(n, ast.Name)}
        if len(returns) > 1 and self._style_of(used) == {"grad"}:
            return [True] + [False] * (len(returns) - 1)
        return [r.is_tensor for r in returns]

    def _style_of(self, names: set[str]) -> set[str]:
        found = set()
        if "grad" in names:
            found.add("grad")
        if "grads" in names:
            found.add("grads")
        if any(f"grad_{o}" in names for o in self.outputs):
            found.add("named")
        return found

    def _check(self, schema) -> None:
        if self.op.kind == "composite":
            self._fail("a composite operator differentiates by its parts and must not have formulas")
        if not any(self.diff_outputs):
            self._fail("derivative ignored: the operator has no differentiable output")
        styles, indices = set(), set()
        for _, text in self.formulas:
            tree = self._parse(text)
            styles |= self._style_of({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)})
            for node in ast.walk(tree):
                if (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
                        and node.value.id == "grads" and isinstance(node.slice, ast.Constant)):
                    indices.add(node.slice.value)
            if indices and max(indices) >= sum(self.diff_outputs):
                self._fail(f"grads[{max(indices)}] is out of range: the operator has "
                           f"{sum(self.diff_outputs)} differentiable outputs")
        if len(styles) > 1:
            self._fail(f"mixes the gradient spellings {sorted(styles)}; use one of them")
        if indices == {0} and sum(self.diff_outputs) == 1:
            self._fail("uses only grads[0]; write grad")

    def _parse(self, text: str) -> ast.Expression:
        try:
            return ast.parse(f"({text.strip()}\n)", mode="eval")
        except SyntaxError as error:
            raise errors.FormulaError(
                f"cannot read the formula {text!r}: {error.msg}\n  entry: {self.op.schema}") from None

    def _compile(self, conjugate: bool):
        """Source of the pullback: `backward(saved, grads, needs) -> gradients of self.inputs`."""
        schema, body, space = self.overload.schema, [], {
            "math": math, "_conj": conj_value, "__name__": "pullback.generated"}
        saves: dict[str, tuple] = {}
        arguments = {a.name: a for a in schema.args}
        self._uses: dict[str, list[int]] = {}
        diff = [n for n, d in zip(self.outputs, self.diff_outputs) if d]
        results = ["None"] * len(self.inputs)
        uses_grad_name = False
        for k, (names, text) in enumerate(self.formulas):
            scan = _Scan(self.tensors | set(self.outputs), conjugate)
            tree = scan.visit(self._parse(text))
            ast.fix_missing_locations(tree)
            if scan.refused:
                self._fail(f"{scan.refused[0]} in {text!r}: read sizes as x.shape")
            for tensor, attribute in sorted(scan.facts):
                if attribute == "stride()" and (len(names) > 1 or tensor != names[0]):
                    self._fail(f"strides of '{tensor}' in {text!r}: only those of the tensor whose gradient "
                               "the formula gives may be read")
                local = f"{tensor}__{attribute.rstrip('()')}"
                source = "arg" if tensor in arguments else "out"
                saves[local] = (local, "fact", (source, tensor), attribute)
            local_names = _local_names(tree)
            for name in sorted(scan.names - local_names):
                if name in ("grad", "grads", "grad_input_mask", "needs_input_grad", "retain_variables"):
                    uses_grad_name |= name == "grad"
                elif name.startswith("grad_") and name[5:] in diff:
                    pass
                elif name in arguments:
                    kind = "arg" if arguments[name].is_tensor else "value"
                    saves[name] = (name, kind, name, None)
                    self._uses.setdefault(name, []).append(k)
                elif name in self.outputs:
                    saves[name] = (name, "out", name, None)
                    self._uses.setdefault(name, []).append(k)
                elif name not in BUILTINS:
                    known = lookup(name)
                    if known is None and not any(s[0] == name for s in saves.values()):
                        self._fail(f"formula {text!r} uses '{name}', which is neither an argument nor an output "
                                   "nor an operator nor a function of pullback.formulas")
                    if known is not None:
                        space[name] = known
            mask = ", ".join(f"needs[{self.input_names.index(n)}]" for n in names)
            code = ast.unparse(tree)
            positions = [self.input_names.index(n) for n in names]
            if len(names) == 1:
                i = positions[0]
                guard = f"needs[{i}]" + (" and grad is not None" if len(diff) == 1 else
                                         " and any(g is not None for g in grads)")
                body += [f"    g{i} = None", f"    if {guard}:"]
                if "grad_input_mask" in scan.names:
                    body.append(f"        grad_input_mask = ({mask},)")
                body.append(f"        g{i} = {code}")
                results[i] = f"g{i}"
            else:
                targets = ", ".join(f"g{i}" for i in positions)
                body += [f"    {targets} = {', '.join(['None'] * len(names))}",
                         f"    if {' or '.join(f'needs[{i}]' for i in positions)}:",
                         f"        grad_input_mask = ({mask},)", f"        {targets} = {code}"]
                for i in positions:
                    results[i] = f"g{i}"
        for name in self.op.constant:
            i = self.input_names.index(name)
            space["zeros_for"] = lookup("new_zeros")
            saves[f"{name}__shape"] = (f"{name}__shape", "fact", ("arg", name), "shape")
            body += [f"    g{i} = None", f"    if needs[{i}] and any(g is not None for g in grads):",
                     f"        g{i} = zeros_for(next(g for g in grads if g is not None), {name}__shape)"]
            results[i] = f"g{i}"
        self.saves = list(saves.values())
        head = ["def backward(saved, grads, needs):"]
        if self.saves:
            head.append(f"    ({', '.join(s[0] for s in self.saves)},) = saved")
        head.append("    grad = grads[0]")
        head += [f"    grad_{n} = grads[{i}]" for i, n in enumerate(diff)]
        names = {n: i for i, n in enumerate(self.input_names)}
        space["_index"] = names
        head.append("    needs_input_grad = lambda name: needs[_index[name]]") if any(
            "needs_input_grad" in t for _, t in self.formulas) else None
        source = "\n".join([*head, *body, f"    return ({', '.join(results)},)"])
        exec(compile(source, f"<pullback derivative of {self.op.full_name}>", "exec"), space)
        self.source = source
        return space["backward"]

    def _guards(self) -> list[tuple]:
        """Per saved tensor: positions of inputs of which one must require grad, () for always."""
        guards = []
        for _, kind, name, _ in self.saves:
            used = self._uses.get(name, []) if isinstance(name, str) else []
            formulas = [self.formulas[k][0] for k in used]
            if kind in ("arg", "out") and formulas and all(len(f) == 1 for f in formulas):
                guards.append(tuple(self.input_names.index(f[0]) for f in formulas))
            else:
                guards.append(())
        return guards

    def condition(self, flat: tuple) -> bool:
        """The run-time condition on the outputs being differentiable, where there is one."""
        if not isinstance(self.op.diff_outputs, str):
            return True
        return bool(_condition(self.overload)(*flat))


@functools.cache
def _condition(overload):
    return rule_function(overload.op.diff_outputs, overload.schema)


def node_name(op: type[Op]) -> str:
    """`MulBackward0`: the camel-cased base name and a counter over the family's entries."""
    base = op.base_name
    camel = "".join(part[:1].upper() + part[1:] for part in base.split("_") if part)
    if base.endswith("_forward"):
        camel = camel[:-len("Forward")]
    family = [e for e in families[base] if Rule.exists(e)]
    number = family.index(op) if op in family else 0
    return f"{camel}Backward{number}"


class Push:
    """The compiled explicit pushforward of one operator."""

    def __init__(self, overload):
        op, schema = overload.op, overload.schema
        rule = overload.rule
        texts = op.push if isinstance(op.push, dict) else {overload.output_names[0]: op.push}
        diff = [n for n, d in zip(overload.output_names, rule.diff_outputs) if d]
        names = [n.strip() for key in texts for n in key.split(",")]
        if sorted(names) != sorted(diff):
            rule._fail(f"forward formulas for {names}, but the differentiable outputs are {diff}")
        space, parts = {"math": math, "__name__": "pullback.generated"}, []
        inputs = set(rule.input_names)
        known = ({a.name for a in schema.args} | set(overload.output_names)
                 | {f"{n}_{s}" for n in inputs for s in "pt"})
        for key, text in texts.items():
            tree = rule._parse(text)
            used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - _local_names(tree)
            for name in sorted(used):
                if name in inputs and name not in overload.output_names:
                    rule._fail(f"forward formula {text!r} names '{name}'; write {name}_p or {name}_t")
                if name not in known and name not in BUILTINS:
                    found = lookup(name)
                    if found is None:
                        rule._fail(f"forward formula {text!r} uses the unknown name '{name}'")
                    space[name] = found
            if not any(f"{n}_t" in used for n in inputs):
                rule._fail(f"forward formula {text!r} uses no tangent")
            parts.append((tuple(n.strip() for n in key.split(",")), ast.unparse(tree)))
        head = [f"    {n} = outs[{i}]" for i, n in enumerate(overload.output_names)]
        for i, a in enumerate(schema.args):
            if a.name in inputs:
                head += [f"    {a.name}_p = args[{i}]", f"    {a.name}_t = tangents[{i}]"]
            elif a.name not in overload.output_names:
                head.append(f"    {a.name} = args[{i}]")
        body = [f"    {', '.join('t_' + n for n in group)} = {text}" for group, text in parts]
        outs = [f"t_{n}" if n in diff else "None" for n in overload.output_names]
        source = "\n".join(["def push(args, tangents, outs):", *head, *body, f"    return ({', '.join(outs)},)"])
        exec(compile(source, f"<pullback pushforward of {op.full_name}>", "exec"), space)
        self.run, self.source = space["push"], source


@functools.cache
def push_of(overload) -> Push | None:
    """The compiled pushforward, or None where the entry gives none."""
    return Push(overload) if overload.op.push is not None else None
