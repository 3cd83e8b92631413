"""Rules: the formulas of an entry as functions that save values, pull back and push forward.

A formula is a Python expression over the names that CONTRIBUTING.md lists.  Its syntax tree
tells what must be saved: a bare name saves the tensor, `x.shape`, `x.dtype`, `x.ndim`, `x.numel()`,
`x.device` save only that fact.  Each pullback has two versions, with and without conjugations.
`table/formula_text.py` writes the text of these functions, `table/checks.py` holds everything that
can be wrong with an entry.  Read next: `project.py`; `tape.py`, which records nodes with rules.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping

from .. import errors
from ..table import checks, formula_text
from ..table.derivative import DEFAULT, DEVICES, Derivative, derivatives_of, split
from ..table.expression import (
    BUILTINS,
    SPACE,
    Formula,
    Scan,
    conj_value,
    fact_name,
    fact_value,
    lookup,
    names_in,
    parse,
)
from .handle import cell_of, is_buffer, keep, make
from .op import Op, families, rule_function

__all__ = ["Push", "Rule", "fact_value", "lookup", "node_name", "push_of"]

GIVEN = {"grad", "grads", "grad_input_mask", "needs_input_grad", "retain_variables"}


class Rule:
    """The compiled derivative of one operator."""

    @staticmethod
    def exists(op: type[Op]) -> bool:
        return bool(op.grad or op.constant or op.dispatch)

    def __init__(self, overload, others: dict[str, str] | None = None, functions: Mapping = {}):
        """With `others`, for some inputs other formulas than the entry's; they may call `functions`
        beside what formulas may call."""
        self.overload, self.op, self.schema = overload, overload.op, overload.schema
        self.others, self._functions = others, functions
        self.arguments = {a.name: a for a in self.schema.args}
        self.outputs = list(overload.output_names)
        self.parts = derivatives_of(overload, others)
        checks.check_parts(self)
        self.formulas = {key: self._formulas(parts) for key, parts in self.parts.items()}
        listed = set().union(*(parts.names() for parts in self.parts.values()))
        self.inputs = [i for i, a in enumerate(self.schema.args) if a.name in listed]
        self.input_names = [self.schema.args[i].name for i in self.inputs]
        self.lists = [self.schema.args[i].is_list for i in self.inputs]
        checks.check_condition(self)
        self.diff_outputs = self._differentiable_outputs()
        checks.check_rule(self)
        self.space = {**SPACE, "_conj": conj_value}
        self.saves, self.guards = self._saves()
        self.saves_tensors = any(kind in ("arg", "out") for _, kind, _, _ in self.saves)
        self.name = node_name(self.op)
        chosen = self.op.diff_outputs
        self._test = rule_function(chosen, self.schema) if isinstance(chosen, str) else None

    def save(self, wanted: list[bool], flat: tuple, outs: list) -> tuple:
        """The values that the pullback needs of a call; `wanted` are gradients of `inputs`."""
        return tuple([self._saved(spec, flat, outs) if not guard or any(wanted[i] for i in guard)
                      else None for spec, guard in zip(self.saves, self.guards)])

    def _saved(self, spec: tuple, flat: tuple, outs: list):
        """One of these values."""
        _, kind, name, attribute = spec
        if kind == "fact":
            source, tensor = name
            return fact_value(flat[self.schema.names.index(tensor)] if source == "arg"
                              else outs[self.outputs.index(tensor)], attribute)
        if kind != "out":
            value = flat[self.schema.names.index(name)]
            if kind == "value":
                return value
            return [keep(v) for v in value] if type(value) in (list, tuple) else keep(value)
        out = outs if len(self.outputs) == 1 and len(outs) > 1 else outs[self.outputs.index(name)]
        if isinstance(out, list):
            return out
        snapshot = make(out._payload, out._edge)  # no history yet if recording; forward mode has
        if is_buffer(out._payload):
            snapshot._cell = cell_of(out)
        return snapshot

    def all_formulas(self) -> list[Formula]:
        """The gradient formulas for all dispatch keys."""
        return [f for formulas in self.formulas.values() for f in formulas]

    def condition(self, flat: tuple) -> bool:
        """The run-time condition on the outputs being differentiable, where there is one."""
        return self._test is None or bool(self._test(*flat))

    def fail(self, message: str, cure: str = "", formula: str = ""):
        """Refuse the entry."""
        raise errors.FormulaError(errors.text(
            message, [f"entry: {self.schema}", formula and f"formula: {formula}"], cure))

    def _formulas(self, parts: Derivative) -> list[Formula]:
        tensors = {a.name for a in self.schema.args if a.is_tensor} | set(self.outputs)
        found = []
        for key, text in parts.grad.items():
            scan = Scan(tensors, True)
            scan.visit(parse(text, self.schema))
            found.append(Formula(split(key), text, parse(text, self.schema), scan))
        return sorted(found, key=lambda f: self.schema.names.index(f.names[0]))

    def _differentiable_outputs(self) -> list[bool]:
        returns, chosen = self.schema.returns, self.op.diff_outputs
        if chosen is not None and not isinstance(chosen, str):
            return list(chosen)
        used = set().union(*(f.uses() for f in self.all_formulas()))
        if len(returns) > 1 and checks.styles_of(self, used) == {"grad"}:
            return [True] + [False] * (len(returns) - 1)
        return [r.is_tensor for r in returns]

    # what is saved

    def _saves(self) -> tuple[list[tuple], list[tuple]]:
        """(local name, "arg"|"out"|"fact"|"value", name, attribute) of each saved value; guards.

        A guard is a tuple of input positions of which one must require grad, () for always.
        """
        saves: dict[str, tuple] = {}
        uses: dict[str, list[tuple]] = {}
        for formula in self.all_formulas():
            for tensor, attribute in sorted(formula.scan.facts):
                saves |= self._fact(tensor, attribute)
            whole = self.positions(formula.names) if len(formula.names) == 1 else ()
            for name in sorted(formula.uses()):
                if self._resolve(name, formula):
                    saves[name] = self._whole(name)
                    uses.setdefault(name, []).append(whole)
            for name, condition in formula.scan.optional.items():
                saves[name] = self._whole(name)
                uses.setdefault(name, []).append(self._mask_positions(formula, condition))
        for name in {n: None for parts in self.parts.values() for n in parts.constant}:
            saves |= self._fact(name, "shape")
        guards = []
        for local, kind, _, _ in saves.values():
            used = uses.get(local, []) if kind in ("arg", "out") else []
            guards.append(tuple(i for group in used for i in group) if all(used) else ())
        return list(saves.values()), guards

    def _fact(self, tensor: str, attribute: str) -> dict[str, tuple]:
        local, source = fact_name(tensor, attribute), "arg" if tensor in self.arguments else "out"
        return {local: (local, "fact", (source, tensor), attribute)}

    def _whole(self, name: str) -> tuple:
        kind = "out" if name not in self.arguments else (
            "arg" if self.arguments[name].is_tensor else "value")
        return name, kind, name, None

    def _resolve(self, name: str, formula: Formula) -> bool:
        """Is this a value to save?  Functions go to the name space; unknown names are refused."""
        if name in self.gradient_names or name in GIVEN and not (name == "grad" and self.own_grad):
            return False
        if name in self.arguments or name in self.outputs:
            return True
        if name not in BUILTINS:
            function = self._functions.get(name) or lookup(name)
            if function is None:
                checks.unknown_name(self, name, formula.text)
            self.space[name] = function
        return False

    def positions(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Places of inputs among those that have a derivative."""
        return tuple(self.input_names.index(n) for n in names)

    def _mask_positions(self, formula: Formula, condition: ast.AST) -> tuple[int, ...]:
        """Inputs that `grad_input_mask[0] or grad_input_mask[2]` asks for, () if unclear."""
        choice = isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.Or)
        terms = condition.values if choice else [condition]
        slices = [t.slice for t in terms if isinstance(t, ast.Subscript)]
        if len(slices) != len(terms) or not all(isinstance(i, ast.Constant) for i in slices):
            return ()
        return tuple(self.positions(formula.names)[i.value] for i in slices)

    # the pullback

    @functools.cached_property
    def own_grad(self) -> bool:
        """Is `grad` an argument here?  If there is one, and incoming gradients are `grads`."""
        return "grad" in self.arguments and any(
            "grads" in f.scan.names for f in self.all_formulas())

    @functools.cached_property
    def gradient_names(self) -> dict[str, int]:
        """`grad_NAME` -> number of the differentiable output NAME."""
        names = [n for n, d in zip(self.outputs, self.diff_outputs) if d]
        return {f"grad_{n}": i for i, n in enumerate(names) if f"grad_{n}" not in self.arguments}

    @functools.cached_property
    def backward_real(self):
        """`backward(saved, grads, needs)` -> gradients of `self.inputs`, without conjugations."""
        return self._compile(False)

    @functools.cached_property
    def backward_complex(self):
        """The same with conjugations."""
        return self._compile(True)

    def _compile(self, conjugate: bool):
        made = {}
        for key in self.parts:
            source = self.source(key, conjugate)
            space = dict(self.space)
            exec(compile(source, f"<pullback derivative of {self.op.full_name}>", "exec"), space)
            made[key] = space["backward"]
        if set(made) == {DEFAULT}:
            return made[DEFAULT]
        return lambda saved, grads, needs: _by_device(made, grads, self)(saved, grads, needs)

    def source(self, key: str = DEFAULT, conjugate: bool = False) -> str:
        """Python text of the pullback for one dispatch key."""
        return formula_text.pullback(self, key, conjugate)

    def formula_at(self, line: int) -> Formula | None:
        """The formula that stands on a line of the pullback's text."""
        return self._by_line.get(line)

    @functools.cached_property
    def _by_line(self) -> dict[int, Formula]:
        key = DEFAULT if DEFAULT in self.parts else next(iter(self.parts))
        found = {}
        for number, text in enumerate(self.source(key).splitlines(), 1):
            for formula in self.formulas[key]:
                target = ", ".join(f"g{i}" for i in self.positions(formula.names))
                if re.search(rf"(^|; ) *{target} = ", text):
                    found.setdefault(number, formula)
        return found


def _by_device(made: dict, values, rule: Rule):
    """The function for the backend that the first tensor lives on."""
    tensors = [v for item in values for v in (item if isinstance(item, (list, tuple)) else (item,))
               if hasattr(v, "_edge")]
    key = DEVICES.get(tensors[0].device.type) if tensors else DEFAULT
    found = made.get(key) or made.get(DEFAULT)
    if found is None:
        raise errors.DerivativeNotWritten(errors.text(
            f"the derivative for '{rule.op.full_name}' is not implemented for {key} "
            f"({errors.user_line(2)})", f"entry: {rule.schema}",
            f"give the entry formulas for {key} or {DEFAULT}; it has {', '.join(made)}"))
    return found


def node_name(op: type[Op]) -> str:
    """`MulBackward0`: the base name in title case and a number within the family.

    That is the place among the entries of the family, which PyTorch orders otherwise at times; such
    entries say their `number`.
    """
    name = op.base_name.title().replace("_", "") + "Backward"
    number = op.number
    if number is None:
        family = [e for e in families.get(op.base_name, ()) if Rule.exists(e)]
        number = family.index(op) if op in family else 0
    return f"{name.replace('ForwardBackward', 'Backward')}{number}"


class Push:
    """The compiled forward formulas of one operator.

    `run(args, tangents, outs)` gives the tangents of the outputs.
    """

    def __init__(self, overload):
        self.overload, self.rule = overload, overload.rule
        self.outputs, rule = overload.output_names, self.rule
        self.varying = [n for n, d in zip(self.outputs, rule.diff_outputs) if d]
        made = {key: self._make(parts) for key, parts in rule.parts.items() if parts.push}
        only = made.get(DEFAULT) if len(rule.parts) == 1 else None
        self.run = only or (lambda args, tangents, outs: _by_device(made, args, rule)(
            args, tangents, outs))

    def _make(self, parts: Derivative):
        checks.check_push(self, parts)
        text = next(iter(parts.push.values())).strip()
        if text == "auto_linear":
            return self._linear
        if text == "auto_element_wise":
            return self._element_wise
        space = dict(SPACE)
        known = {*self.rule.arguments, *self.outputs, *BUILTINS}
        for formula in parts.push.values():
            for name in names_in(parse(formula, self.rule.schema)) - known:
                space[name] = lookup(name)
        source = self.source(parts)
        exec(compile(source, f"<pullback pushforward of {self.rule.op.full_name}>", "exec"), space)
        return space["push"]

    def source(self, parts: Derivative) -> str:
        """Python text of the pushforward."""
        return formula_text.pushforward(self, parts)

    def _linear(self, args, tangents, outs) -> list:
        """The operator itself, applied to the tangents."""
        inputs = self.rule.inputs
        mixed = [tangents[i] if i in inputs and a is not None else a for i, a in enumerate(args)]
        out = self.overload.call(*mixed)
        if len(self.outputs) == 1:  # a tensor, or a list of them
            return list(out) if isinstance(out, (list, tuple)) else [out]
        return [o if n in self.varying else None for n, o in zip(self.outputs, out)]

    def _element_wise(self, args, tangents, outs) -> list:
        """The gradient formula applied to the tangent: right because the Jacobian is diagonal."""
        rule, tangent = self.rule, tangents[self.rule.inputs[0]]
        saved = rule.save([True], args, outs)
        if tangent.dtype.is_complex or outs[0].dtype.is_complex:
            pushed, = rule.backward_complex(saved, (conj_value(tangent),), [True])
            pushed = conj_value(pushed)
        else:
            pushed, = rule.backward_real(saved, (tangent,), [True])
        return [pushed.expand(outs[0].shape)]


def push_of(overload) -> Push | None:
    """The compiled pushforward, or None where the entry gives none."""
    return overload.pushforward
