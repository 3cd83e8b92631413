"""Everything that can be wrong with the derivative of an entry, found before it is first used.

Each check is one function that says what is wrong, quotes the entry and names the cure.
`core/formula.py` calls them while it compiles, `pullback.derivatives.validate()` for the whole
table.  Read next: `derivative.py`, what is checked.
"""

from __future__ import annotations

import ast

from .. import errors
from ..core.op import families
from .derivative import AUTOMATIC, Derivative, derivatives_of, split
from .expression import BUILT_IN, BUILTINS, foreign, helpers, lookup, names_in, parse, root_call


def is_refusal(tree: ast.Expression) -> bool:
    """Does the formula say that nobody wrote it?"""
    return root_call(tree) == "not_implemented"


def is_inplace(schema) -> bool:
    """Does the operator write its first argument?"""
    return bool(schema.args) and schema.args[0].is_write


# the language


def check_language(overload) -> None:
    """Formulas are of their language, names and attributes included: they may come from a file."""
    condition = overload.op.diff_outputs
    texts = [t for p in derivatives_of(overload).values()
             for t in (*p.grad.values(), *p.push.values())]
    if isinstance(condition, str):
        texts.append(condition)
        strange = names_in(parse(condition, overload.schema)) - BUILTINS - {*overload.schema.names}
        if strange:
            _refuse(overload, f"the condition uses '{min(strange)}'", condition)
    for text in texts:
        what = foreign(parse(text, overload.schema))
        if what:
            _refuse(overload, f"a formula must not use {what}", text)


def _refuse(overload, what: str, text: str) -> None:
    raise errors.FormulaError(errors.text(
        what, [f"entry: {overload.schema}", f"formula: {text}"],
        "a formula has numbers, names, operators, calls, conditions and comprehensions; call "
        "operators and functions of pullback.formulas"))


# before anything is made of the entry


def check_parts(rule) -> None:
    """The names in the entry fit the schema."""
    check_composite(rule)
    both = [n for n in rule.outputs if n in rule.arguments]
    if both:
        rule.fail(f"'{both[0]}' is both an input and an output: formulas could not tell them apart",
                  "rename the return in the schema")
    for parts in rule.parts.values():
        check_inputs(rule, parts)
    check_linear(rule)


def check_composite(rule) -> None:
    if rule.op.kind == "composite" and not rule.others:
        rule.fail("a composite operator differentiates by its parts and must not have formulas",
                  "leave the entry out, or give the operator a kernel of its own")


def check_inputs(rule, parts: Derivative) -> None:
    """Gradients are of tensors, and each input is named once, in one role."""
    roles: dict[str, str] = {}
    given = [(n, "a gradient formula") for key in parts.grad for n in split(key)]
    given += [(n, "the derivative zero") for n in parts.constant]
    given += [(n, "the mark non_differentiable") for n in parts.nondiff]
    for name, role in given:
        if name not in rule.arguments:
            near = errors.close_matches(name, rule.arguments, 1)
            rule.fail(f"{role} for '{name}', which is no argument of the operator",
                      f"did you mean '{near[0]}'?" if near
                      else f"the arguments are {', '.join(rule.arguments)}")
        if not rule.arguments[name].is_tensor:
            rule.fail(f"{role} for '{name}', which is not a tensor",
                      f"remove it: '{name}' is passed to the formulas as it is")
        if name in roles:
            what = "given twice" if roles[name] == role else (
                f"both differentiable and not: it has {roles[name]} and {role}")
            rule.fail(f"'{name}' is {what}", "keep one of the two")
        roles[name] = role


def check_linear(rule) -> None:
    """`linear` and `multilinear` name all inputs that have a gradient formula."""
    for attribute in ("linear", "multilinear"):
        chosen = getattr(rule.op, attribute)
        if not chosen or rule.others:
            continue
        wanted = {n for parts in rule.parts.values() for key in parts.grad for n in split(key)}
        missing = sorted(wanted - set(chosen)) or sorted(set(chosen) - set(rule.arguments))
        if missing:
            rule.fail(f"{attribute} = {tuple(chosen)!r} and the gradient formulas disagree about "
                      f"'{missing[0]}', whose tangents forward mode would drop",
                      f"name it in both, or write `push` instead of `{attribute}`")


# outputs


def check_condition(rule) -> None:
    """`output_differentiability` is one flag per output, or one condition for a single output."""
    chosen, returns = rule.op.diff_outputs, rule.schema.returns
    if chosen is None:
        return
    if isinstance(chosen, str):
        if len(returns) != 1:
            rule.fail(f"a condition on {len(returns)} outputs: {chosen!r}",
                      "a condition is for operators with one output; list True or False for each")
        parse(chosen, rule.schema)
        return
    if any(isinstance(c, str) for c in chosen):
        rule.fail(f"output_differentiability lists {len(chosen)} conditions: {list(chosen)!r}",
                  "give one condition (diff_outputs = \"...\"), or True or False for each output")
    if len(chosen) != len(returns):
        rule.fail(f"output_differentiability has {len(chosen)} items for {len(returns)} outputs",
                  "give one item for each output")
    if is_inplace(rule.schema) and not all(chosen):
        rule.fail("an in-place operator with an output that is not differentiable: its writes "
                  "would go unnoticed", "remove the False, or mark the inputs non_differentiable")


# gradient formulas


def check_rule(rule) -> None:
    """The gradient formulas fit the differentiable outputs."""
    if not any(rule.diff_outputs):
        rule.fail("derivative ignored: the operator has no differentiable output",
                  "remove the formulas, or correct output_differentiability")
    if not rule.inputs:
        rule.fail("derivative ignored: the operator has no differentiable input",
                  "remove the forward formula, or give gradient formulas")
    for formulas in rule.formulas.values():
        check_styles(rule, formulas)
        for formula in formulas:
            check_sizes(rule, formula)
            check_optional(rule, formula)


def styles_of(rule, names: set[str]) -> set[str]:
    """The ways to spell incoming gradients that a set of names shows."""
    found = {s for s in ("grad", "grads") if s in names}
    if "grads" in found and "grad" in rule.arguments:
        found.discard("grad")  # then it is the argument
    if any(f"grad_{o}" in names and f"grad_{o}" not in rule.arguments for o in rule.outputs):
        found.add("grad_NAME")
    return found


def check_styles(rule, formulas: list) -> None:
    """One spelling of the incoming gradients per entry, and indices that exist."""
    used = set().union(*(f.uses() for f in formulas))
    styles = styles_of(rule, used)
    if len(styles) > 1:
        rule.fail(f"mixes the gradient spellings {', '.join(sorted(styles))}", "use one of them")
    indices = {i for f in formulas for i in _indices(f.tree)}
    count = sum(rule.diff_outputs)
    for index in sorted(indices - {None}):
        if not -count <= index < count:
            rule.fail(f"grads[{index}] is out of range: the operator has {count} differentiable "
                      f"output{'s' if count > 1 else ''}",
                      "grads counts differentiable outputs only, from 0")
    if indices == {0}:
        rule.fail("uses only grads[0]", "write grad: it is the gradient of the first "
                  "differentiable output")
    for output in rule.outputs:
        name = f"grad_{output}"
        if name in used and name not in rule.gradient_names and name not in rule.arguments:
            rule.fail(f"uses {name}, but '{output}' is not differentiable",
                      "correct output_differentiability, or leave the name out")


def _indices(tree: ast.AST) -> set[int | None]:
    """Constant indices of `grads`; None for any other use of it."""
    whole = sum(isinstance(n, ast.Name) and n.id == "grads" for n in ast.walk(tree))
    found: set[int | None] = set()
    for node in ast.walk(tree):
        if (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
                and node.value.id == "grads"):
            try:
                found.add(int(ast.literal_eval(node.slice)))
                whole -= 1
            except (ValueError, TypeError):
                pass
    return found | {None} if whole else found


def check_sizes(rule, formula) -> None:
    """Sizes are read in the spelling that saves only them; strides only of the own input."""
    if formula.scan.plain:
        rule.fail(f"plain sizes or strides: {formula.scan.plain[0]}",
                  "read sizes as x.shape, x.shape[i], x.numel(), strides as x.stride()",
                  formula.text)
    for tensor, attribute in sorted(formula.scan.facts):
        if attribute != "stride()":
            continue
        if formula.names != (tensor,):
            rule.fail(f"strides of '{tensor}': only those of the tensor whose gradient the formula "
                      "gives may be read", "compute without strides", formula.text)
        if is_inplace(rule.schema) and tensor == rule.schema.names[0]:
            rule.fail(f"strides of '{tensor}', which the operator overwrites",
                      "compute without strides", formula.text)


def check_optional(rule, formula) -> None:
    """The condition of `wrap_opt_if` speaks of the mask alone."""
    for name, condition in formula.scan.optional.items():
        strange = names_in(condition) - {"grad_input_mask"}
        if strange:
            rule.fail(f"wrap_opt_if({name}, {ast.unparse(condition)}) tests '{min(strange)}'",
                      "test grad_input_mask only: the condition decides what is saved",
                      formula.text)
        numbers = [n.value for n in ast.walk(condition) if isinstance(n, ast.Constant)]
        if not all(0 <= n < len(formula.names) for n in numbers):
            rule.fail(f"grad_input_mask[{max(numbers)}] is out of range: wrap_opt_if({name}, ...)",
                      f"the mask has one flag for each of {', '.join(formula.names)}", formula.text)


def unknown_name(rule, name: str, text: str) -> None:
    """Refuse a name that means nothing, with the nearest that does."""
    own = [*rule.arguments, *rule.outputs, *rule.gradient_names, "grad"]
    near = errors.close_matches(name, {*own, *families, *helpers(), *BUILT_IN, *BUILTINS}, 3)
    rule.fail(f"formula uses '{name}', which is neither an argument nor an output nor an operator "
              "nor a function of pullback.formulas",
              f"did you mean {' or '.join(near)}?" if near else
              f"names in scope: {', '.join(own)}, and operators", text)


# forward formulas


def check_push(push, parts: Derivative) -> None:
    """The forward formulas cover the differentiable outputs and use tangents."""
    rule, texts = push.rule, [t.strip() for t in parts.push.values()]
    covered = [n for key in parts.push for n in split(key)]
    if sorted(covered) != sorted(push.varying):
        rule.fail(f"forward formulas for {', '.join(covered)}, but the differentiable outputs are "
                  f"{', '.join(push.varying)}", "give each differentiable output one formula")
    if any(t in AUTOMATIC for t in texts):
        check_automatic(push, parts, texts)
        return
    for text in texts:
        check_forward_names(push, parse(text, rule.schema), text)


def check_automatic(push, parts: Derivative, texts: list[str]) -> None:
    rule, kind = push.rule, next(t for t in texts if t in AUTOMATIC)
    if len(push.varying) != 1:
        rule.fail(f"{kind} needs exactly one differentiable output; there are {len(push.varying)}",
                  "write the forward formula of each output")
    if kind == "auto_linear":
        return
    if len(rule.inputs) != 1 or len(parts.names()) != 1:
        rule.fail(f"auto_element_wise needs exactly one differentiable input; there are "
                  f"{len(rule.inputs)} ({', '.join(rule.input_names)})",
                  "write the forward formula with the tangent of each input")
    if is_inplace(rule.schema):
        rule.fail("auto_element_wise is not for in-place operators: the gradient formula may need "
                  "the value that was overwritten", "write the forward formula")


def check_forward_names(push, tree: ast.Expression, text: str) -> None:
    """Names of a forward formula: primals and tangents are told apart, and some tangent is used."""
    rule, used = push.rule, names_in(tree)
    known = ({a.name for a in rule.schema.args} | set(rule.outputs) | BUILTINS
             | {f"{n}_{s}" for n in rule.input_names for s in "pt"})
    for name in sorted(used):
        if name in rule.input_names:
            rule.fail(f"forward formula names '{name}', which could be its value or its tangent",
                      f"write {name}_p or {name}_t", text)
        if name not in known and lookup(name) is None:
            near = errors.close_matches(name, {*known, *families, *helpers()}, 3)
            rule.fail(f"forward formula uses the unknown name '{name}'",
                      f"did you mean {' or '.join(near)}?" if near else
                      "the names are ARG_p, ARG_t, arguments without derivative and outputs", text)
    if is_inplace(rule.schema) and f"{rule.schema.names[0]}_p" in used:
        rule.fail(f"forward formula uses the value of '{rule.schema.names[0]}', which the operator "
                  "overwrites", "write the formula in terms of the result", text)
    tangents = any(f"{n}_t" in used for n in rule.input_names)
    if not (tangents or any(rule.lists) or is_refusal(tree)):
        rule.fail("forward formula uses no tangent", "a pushforward is linear in the tangents "
                  f"{', '.join(f'{n}_t' for n in rule.input_names)}", text)


# entries without a rule


def check_ignored(overload) -> None:
    """An entry without gradient formulas must not say things that would have no effect."""
    op = overload.op
    names = ["push", "linear", "multilinear"]
    if op.kind == "composite":
        names += ["grad", "constant", "nondiff", "diff_outputs", "dispatch"]
    said = [a for a in names if getattr(op, a)]
    if said:
        cure = ("leave it out: a composite operator differentiates by its parts"
                if op.kind == "composite" else "give gradient formulas, or remove it")
        raise errors.FormulaError(errors.text(
            f"derivative ignored: `{said[0]}` is given, but there is no differentiable input",
            f"entry: {overload.schema}", cure))
