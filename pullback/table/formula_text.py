"""The formulas of an entry as the text of one Python function, for all its gradients or tangents.

Read next: `../core/formula.py`, which compiles it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from . import checks
from .derivative import Derivative, split
from .expression import Formula, fact_name, lookup, parse

if TYPE_CHECKING:
    from ..core.formula import Push, Rule


def pullback(rule: Rule, key: str, conjugate: bool) -> str:
    """Python text of the pullback for one dispatch key."""
    formulas, parts = rule.formulas[key], rule.parts[key]
    used = set().union(*(f.scan.names for f in formulas))
    lines = ["def backward(saved, grads, needs):"]
    if rule.saves:
        lines.append(f"    ({', '.join(s[0] for s in rule.saves)},) = saved")
    if not rule.own_grad:
        lines.append("    grad = grads[0]")
    lines += [f"    {n} = grads[{i}]" for n, i in rule.gradient_names.items() if n in used]
    if "needs_input_grad" in used:
        rule.space["_index"] = {n: i for i, n in enumerate(rule.input_names)}
        lines.append("    needs_input_grad = lambda name: needs[_index[name]]")
    if "retain_variables" in used:
        lines.append("    retain_variables = True")  # nothing is consumed here, so all is kept
    # by name, as in PyTorch: captured graphs show the order
    for formula in sorted(formulas, key=lambda f: ", ".join(f.names)):
        single = len(formula.names) == 1
        lines += (_one if single else _several)(rule, formula, conjugate)
    for name in parts.constant:
        lines += _zeros(rule, name)
    for i in set(range(len(rule.inputs))) - set(rule.positions(tuple(parts.names()))):
        lines += [f"    g{i} = None", f"    if needs[{i}]:",  # listed for another backend only
                  f"        not_implemented({rule.input_names[i]!r}, 'not for {key}')"]
        rule.space["not_implemented"] = lookup("not_implemented")
    results = "".join(f"g{i}, " for i in range(len(rule.inputs)))
    return "\n".join([*lines, f"    return ({results.rstrip()})"])


def _any_defined(rule: Rule) -> str:
    """Test that some output gradient is defined."""
    one = len(rule.schema.returns) == 1 and rule.schema.returns[0].is_list
    first = "grads[0]" if rule.own_grad else "grad"
    return f"{first} is not None" if sum(rule.diff_outputs) == 1 and not one else (
        "any(g is not None for g in grads)")


def _one(rule: Rule, formula: Formula, conjugate: bool) -> list[str]:
    """A formula of one input runs if its gradient is wanted and some output has one."""
    i, = rule.positions(formula.names)
    refusal = checks.is_refusal(formula.tree)
    test = f"needs[{i}]" if refusal else f"needs[{i}] and {_any_defined(rule)}"
    lines = [f"    g{i} = None", f"    if {test}:"]
    if "grad_input_mask" in formula.scan.names:
        lines.append(f"        grad_input_mask = (needs[{i}],)")
    return [*lines, f"        {formula.statement(f'g{i}', conjugate)}"]


def _several(rule: Rule, formula: Formula, conjugate: bool) -> list[str]:
    """A formula of several inputs runs if one is wanted; undefined gradients are its task."""
    positions = rule.positions(formula.names)
    targets = ", ".join(f"g{i}" for i in positions)
    mask = ", ".join(f"needs[{i}]" for i in positions)
    return [f"    {targets} = {', '.join(['None'] * len(positions))}",
            f"    if {' or '.join(f'needs[{i}]' for i in positions)}:",
            f"        grad_input_mask = ({mask},)",
            f"        {formula.statement(targets, conjugate)}"]


def _zeros(rule: Rule, name: str) -> list[str]:
    """The gradient of an input whose derivative is zero."""
    rule.space["_zeros"] = lookup("new_zeros")
    i, = rule.positions((name,))
    shape = fact_name(name, "shape")
    zeros = f"[_zeros(g, s) for s in {shape}]" if rule.lists[i] else f"_zeros(g, {shape})"
    return [f"    g{i} = None", f"    if needs[{i}] and any(g is not None for g in grads):",
            "        g = next(g for g in grads if g is not None)", f"        g{i} = {zeros}"]


def pushforward(push: Push, parts: Derivative) -> str:
    """Python text of the pushforward."""
    lines = ["def push(args, tangents, outs):"]
    lines += [f"    {n} = outs[{i}]" for i, n in enumerate(push.outputs)]
    for i, arg in enumerate(push.rule.schema.args):
        if arg.name in push.rule.input_names:
            lines += [f"    {arg.name}_p = args[{i}]", f"    {arg.name}_t = tangents[{i}]"]
        else:
            lines.append(f"    {arg.name} = args[{i}]")
    for key, text in parts.push.items():
        targets = ", ".join(f"t_{n}" for n in split(key))
        lines.append(f"    {targets} = {ast.unparse(parse(text, push.rule.schema))}")
    results = "".join(f"t_{n}, " if n in push.varying else "None, " for n in push.outputs)
    return "\n".join([*lines, f"    return ({results.rstrip()})"])
