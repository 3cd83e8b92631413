"""What the operator table gives for each operator, in words: the cells of docs/coverage.md.

Most cells repeat what the entry says.  *second order* asks whether a formula can be differentiated
again: it reads which operators the formula calls, through the functions of `pullback.formulas`, and
looks for one without derivative.  Whether a composite is differentiable at all is found by calling
it on its samples.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import sys
import textwrap
import warnings

from generated import ROOT

sys.path.insert(0, str(ROOT))

import pullback
from pullback import derivatives, errors
from pullback.core.formula import GIVEN
from pullback.core.op import aliases, families
from pullback.core.overload import OpOverload, overload_of
from pullback.table import checks
from pullback.table.expression import BUILTINS, lookup
from pullback.table.packets import Packet
from pullback.testing import samples

FORWARD = {  # how `derivatives.forward_mode` begins -> cell
    "by its parts": "composed",
    "by its decomposition": "decomposed",
    "the operator itself": "linear",
    "product rule": "product rule",
    "written": "formula",
    "zero": "zero",
    "the gradient formulas": "element-wise",
    "the transposed pullback": "transposed",
}


# --- which operators a piece of code calls -----------------------------------------------------


def operator(name: str) -> str | None:
    """The family of operators that a name or a method stands for."""
    base = name if name in families or name in aliases else name.removesuffix("_")
    base = aliases.get(base, base)
    return base if base in families else None


def called(tree: ast.AST, space: dict) -> tuple[set[str], list]:
    """(operators, Python functions of the package) that a piece of code uses."""
    found, functions = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            on_table = isinstance(node.value, ast.Name) and node.value.id == "ops"
            if on_table or node in callees(tree):
                found.add(operator(node.attr))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            value = space.get(node.id)
            home = getattr(value, "__module__", None) or ""
            if isinstance(value, Packet):
                found.add(operator(value.name))
            elif callable(value) and home.startswith(("pullback.formulas", "pullback.ops")):
                functions.append(value)
    return found - {None}, functions


@functools.cache
def callees(tree: ast.AST) -> set[ast.AST]:
    return {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}


@functools.cache
def code_of(function) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None


def names_of(function) -> dict:
    """What the names in a function or class mean."""
    space = dict(getattr(sys.modules.get(function.__module__), "__dict__", {}))
    with_closure = getattr(function, "__closure__", None) and function.__code__.co_freevars
    if with_closure:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__):
            space[name] = cell.cell_contents
    return space


def operators_in(tree: ast.AST, space: dict) -> set[str]:
    """All operators that a piece of code calls, directly or through functions of the package."""
    found, functions = called(tree, space)
    waiting, seen = list(functions), set()
    while waiting:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        if code_of(function) is not None:
            more, functions = called(code_of(function), names_of(function))
            found |= more
            waiting += functions
    return found


def operators_of_formula(rule, formula) -> set[str]:
    """The operators in a formula of the table."""
    tree = formula.tree
    names = formula.uses() - {*rule.arguments, *rule.outputs, *rule.gradient_names, *GIVEN}
    if "is_grad_enabled" in names:  # what is only handed over is for the case that it is not
        names &= {n.id for n in callees(tree) if isinstance(n, ast.Name)}
    return operators_in(tree, {n: lookup(n) for n in names - BUILTINS})


# --- derivatives -------------------------------------------------------------------------------


@functools.cache
def lacking(overload: OpOverload) -> frozenset[str]:
    """The operators without derivative that stop the derivative of this one; or its own name.

    Results that are no real numbers, and inputs that are ignored, stop nothing.
    """
    op = overload.op
    if overload.is_composite:
        return without_derivative(operators_of_function(overload.compose) - {op.base_name})
    constant = op.kind in ("creation", "random") or discrete(overload)
    return frozenset() if reverse(overload) or constant else frozenset([op.base_name])


def operators_of_function(function) -> set[str]:
    tree = code_of(function)
    return set() if tree is None else operators_in(tree, names_of(function))


def discrete(overload: OpOverload) -> bool:
    """Are the results integers, truth values or Python values, or all inputs ignored?"""
    op, returns = overload.op, overload.schema.returns
    inputs = {a.name for a in overload.schema.args if a.is_tensor}
    if overload.never_differentiable or op.promote == "bool" or inputs <= set(op.nondiff):
        return True
    if not any(r.is_tensor for r in returns):
        return True
    found = results(overload)
    return bool(found) and not any(t.dtype.is_inexact for t in found)


def without_derivative(names: set[str]) -> frozenset[str]:
    """Those of the named operators that have no derivative under any overload."""
    bad = frozenset()
    for name in sorted(names):
        each = [guarded(overload_of(op)) for op in families[name]]
        if all(each):
            bad |= each[0]
    return bad


_active: set[str] = set()


def guarded(overload: OpOverload) -> frozenset[str]:
    """`lacking`, but operators that are defined by one another are taken to be fine."""
    if overload.name in _active:
        return frozenset()
    _active.add(overload.name)
    try:
        return lacking(overload)
    finally:
        _active.discard(overload.name)


@functools.cache
def results(overload: OpOverload) -> list:
    """All tensors that the sample calls give."""
    return [o for case in cases(overload) for o in tensors(call(overload, case))]


def cases(overload: OpOverload) -> list[tuple]:
    """The arguments of the sample calls, in complex numbers too where the operator takes them."""
    op = overload.op
    dtypes = (pullback.float64, pullback.complex128) if op.complex else (pullback.float64,)
    found = [case for d in dtypes if op.samples is not None for case in samples.cases(op, d)]
    return [samples.flat(op, case) for case in found]


def call(overload: OpOverload, flat: tuple):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return overload.call(*flat)


def tensors(value) -> list:
    items = value if isinstance(value, (list, tuple)) else [value]
    return [t for t in items if isinstance(t, pullback.Tensor)]


@functools.cache
def composite_varies(overload: OpOverload) -> bool:
    """Has a result of a composite a gradient for an input, in any of its samples?"""
    if overload.op.samples is None:
        return not guarded(overload)
    for flat in cases(overload):
        for i, (spec, value) in enumerate(zip(overload.schema.args, flat)):
            leaves = []
            tracked = [_tracked(spec, v, leaves) for v in value] if isinstance(value, list) else (
                _tracked(spec, value, leaves))
            with contextlib.suppress(errors.NotDifferentiable, errors.DerivativeNotWritten):
                outs = tensors(call(overload, (*flat[:i], tracked, *flat[i + 1:])))
                outs = [o for o in outs if o.requires_grad]
                seeds = [pullback.ones_like(o) for o in outs]
                if outs and pullback.autograd.grad(outs, leaves, seeds, allow_unused=True):
                    return True
    return False


def _tracked(spec, value, leaves: list):
    """A tensor with a history, where it can have one."""
    if not isinstance(value, pullback.Tensor) or not value.dtype.is_inexact:
        return value
    leaf = value.detach().clone().requires_grad_()
    leaves.append(leaf)
    return leaf.clone() if spec.is_write else leaf


# --- cells -------------------------------------------------------------------------------------


def kernel(overload: OpOverload) -> str:
    return "composed" if overload.is_composite else "kernel"


def reverse(overload: OpOverload) -> str:
    if overload.is_composite:
        return "composed" if composite_varies(overload) else ""
    rule = overload.rule
    if rule is None:
        return ""
    given = rule.all_formulas()
    refused = [n for f in given if checks.is_refusal(f.tree) for n in f.names]
    if len(refused) == sum(len(f.names) for f in given) and not overload.op.constant:
        return ""
    if not given:
        return "zero"
    return f"formula, not {', '.join(refused)}" if refused else "formula"


def stopped(overload: OpOverload) -> frozenset[str]:
    """The operators without derivative in what is differentiated a second time."""
    if overload.is_composite:
        return guarded(overload)
    rule = overload.rule
    formulas = [f for f in rule.all_formulas() if not checks.is_refusal(f.tree)]
    return without_derivative({n for f in formulas for n in operators_of_formula(rule, f)})


def second_order(overload: OpOverload) -> str:
    how = reverse(overload)
    if not how or how == "zero":
        return how
    bad = stopped(overload)
    return f"none: {', '.join(sorted(bad))}" if bad else how.partition(",")[0]


def forward_mode(overload: OpOverload) -> str:
    silent = overload.is_composite or overload.rule is not None or discrete(overload)
    if not reverse(overload) and silent:
        return ""
    how = derivatives.forward_mode(overload)[0]
    return next((cell for start, cell in FORWARD.items() if how.startswith(start)), "")


def batching(overload: OpOverload) -> str:
    op = overload.op
    if overload.is_composite:
        return "composed"
    if overload.is_random:
        return "per example"
    if not overload.schema.tensor_positions:
        return "no input"
    if op.batch is not None:
        return "rule"
    if op.kind == "pointwise":
        return "element-wise"
    return "decomposed" if overload.decomposition is not None else "loop"


def only_refuses(tree: ast.Module) -> bool:
    """Is this a function that raises and does nothing else, or asks for a size that data decide?"""
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef):
        return False
    first = function.body[0]
    return isinstance(first, ast.Raise) or not isinstance(first, (ast.For, ast.If)) and any(
        name in ast.dump(first) for name in ("size_by_data", "_unique_rows"))


def fake(overload: OpOverload) -> str:
    if overload.is_composite:
        return "composed"
    rule = overload.op.shape
    if rule is not None:
        tree = None if isinstance(rule, str) else code_of(rule)
        return "needs data" if tree is not None and only_refuses(tree) else "rule"
    known = {"pointwise": "broadcast", "view": "kernel"}
    return known.get(overload.kind, "decomposed" if overload.decomposition else "")


def decomposition(overload: OpOverload) -> str:
    if overload.is_composite:
        return "composed"
    return "yes" if overload.decomposition is not None else ""


def native(overload: OpOverload) -> str:
    op = overload.op
    if overload.is_composite:
        return "composed"
    if op.lower is not None:
        return "rule"
    if op.c is not None:
        return "C text"
    return "decomposed" if op.decomp is not None else "NumPy step"


COLUMNS = {
    "forward": kernel,
    "reverse": reverse,
    "second order": second_order,
    "forward mode": forward_mode,
    "vmap": batching,
    "fake": fake,
    "decomposition": decomposition,
    "C": native,
    "complex": lambda overload: "yes" if overload.op.complex else "",
}
