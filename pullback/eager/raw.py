"""Pullbacks on arrays: the formulas of an operator without handles, where nobody looks.

A formula calls operators and helper functions.  While a sweep records nothing and no transform is
active, it may as well call their kernels: `grad.bmm(other)` becomes `bmm(np, grad, other)`.  The
text of the pullback is the same, methods are spelled as functions, and every name in it means an
array function: a kernel of the table, a twin from `TWINS`, or a helper that is known to work on
arrays as it is.  Formulas with other names keep their handles.  Read next: `direct.py`, the same
for plain arithmetic inside of the nodes of the fast path.
"""

from __future__ import annotations

import ast

import numpy as np

from ..array.dims import infer_size, wrap_dims
from ..array.evaluate import _arrays_only
from ..core import tape
from ..core.expression import BUILTINS, SPACE, lookup
from ..core.op import families, overload_of
from ..core.parts import DEFAULT
from .unroll import unrolled

AS_THEY_ARE = {"scale_by", "inverse_permutation", "layer_norm_grads", "batch_norm_grads",
               "lstm_cell_grads"}  # fmt: skip


class _NotRaw(Exception):
    """The formula needs handles."""


def _reshape(array, *shape):
    return array.reshape(infer_size(shape if len(shape) != 1 else shape[0], array.size))


def _left(grad, mat2, shape, stride):
    if _column_major(shape, stride):
        return np.matmul(mat2, grad.T).T
    return np.matmul(grad, mat2.T)


def _right(grad, mat1, shape, stride):
    if _column_major(shape, stride):
        return np.matmul(grad.T, mat1).T
    return np.matmul(mat1.T, grad)


def _column_major(shape, stride) -> bool:
    return stride[0] == 1 and stride[1] == shape[0] and shape[0] > 1 and shape[1] > 1


def _spread(grad, shape, dim, keepdim):
    if not keepdim and len(shape) > grad.ndim:
        grad = np.expand_dims(grad, wrap_dims(dim, len(shape)))
    return np.broadcast_to(grad, shape)


TWINS = {
    "reshape": _reshape,
    "mm_left_grad": _left,
    "mm_right_grad": _right,
    "spread": _spread,
    "is_grad_enabled": lambda: False,
}


def _function(name: str):
    """The array function that a name in a formula means."""
    if name in TWINS:
        return TWINS[name]
    if name in AS_THEY_ARE:
        return lookup(name)
    found = [overload_of(op) for op in families.get(name, ())]
    if len(found) != 1 or found[0].is_composite or found[0].is_random or found[0].custom:
        raise _NotRaw(name)
    return _kernel(found[0])


def _kernel(ov):
    """An operator's kernel with its defaults filled in."""
    rule, schema, kernel = ov.op.promote, ov.schema, ov.kernel
    if any(a.is_list and a.is_tensor for a in schema.args):
        raise _NotRaw(ov.name)
    defaults = tuple([a.default if a.has_default else None for a in schema.args])
    if rule in ("keep", "same"):
        return lambda *args: kernel(np, *args, *defaults[len(args):])
    if rule != "default" or ov.kind != "pointwise" or ov.dtype_rule is not None:
        raise _NotRaw(ov.name)
    numbers = [i for i in ov.promoted if not schema.args[i].is_tensor]

    def run(first, *rest):
        values = [first, *rest, *defaults[1 + len(rest):]]
        for i in numbers:
            values[i] = np.asarray(values[i], first.dtype)
        return kernel(np, *values)

    return run


class _Functions(ast.NodeTransformer):
    """`x.f(y)` as `f(x, y)`; collects the names of what is called as a method."""

    def __init__(self):
        self.methods: set[str] = set()

    def visit_Call(self, node: ast.Call):
        if node.keywords:
            raise _NotRaw(ast.unparse(node))
        function, args = node.func, node.args
        if isinstance(function, ast.Attribute):
            self.methods.add(function.attr)
            function, args = ast.Name(f"_m_{function.attr}", ast.Load()), [function.value, *args]
        return ast.Call(function, [self.visit(a) for a in args], [])

    def visit_Attribute(self, node: ast.Attribute):
        raise _NotRaw(node.attr)  # a fact that was not saved


def _pullback(rule):
    """`backward(saved, grads, needs)` of a rule, on arrays."""
    if set(rule.parts) != {DEFAULT} or rule.parts[DEFAULT].constant:
        raise _NotRaw(rule.name)
    rule.backward_real  # noqa: B018  (fills `space`)
    translator = _Functions()
    tree = translator.visit(ast.parse(rule.source(DEFAULT, False)))
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    space = dict(SPACE)
    space |= {name: _function(name) for name in used & rule.space.keys() - BUILTINS}
    space |= {f"_m_{name}": _function(name) for name in translator.methods}
    title = f"<pullback derivative of {rule.op.full_name} on arrays>"
    exec(compile(ast.fix_missing_locations(tree), title, "exec"), space)
    return space["backward"]


def apply_of(rule, several: bool):
    """`Node.apply` for the nodes of a rule that tries arrays first; None where that is no way."""
    try:
        pull = _pullback(rule)
    except (_NotRaw, LookupError, SyntaxError):
        return None
    names = [f"s{i}" for i in range(len(rule.saves))]
    lines = [
        "saved = self.saved",
        "if saved is None:",
        "    raise freed(self)",
        "g = grads[0]",
        "if not GRADOFF or ACTIVE or g is None or state.record[0]:",
        "    return general(self, grads, needs)",
        "a = g._data",
        "d = a.dtype",
        "if a.__class__ is not ndarray or d is not F32 and d is not F64:",
        "    return general(self, grads, needs)",
        "for m in self.metas:",
        "    if m is not None and m[1] is not d:",
        "        return general(self, grads, needs)",
    ]
    if names:
        lines.append(f"({', '.join(names)},) = saved")
    for i, (local, kind, name, _) in enumerate(rule.saves):
        if kind in ("arg", "out"):
            if kind == "arg" and (name in rule.op.scalars or rule.arguments[name].is_list):
                return None
            lines += [
                f"if s{i} is not None:",
                f"    c = s{i}._cell",
                "    if c is not None and c.stamps and c.stamps[-1] > self.stamp:",
                f"        raise modified(self, {local!r}, s{i})",
                f"    s{i} = s{i}._data",
                f"    if s{i}.__class__ is not ndarray:",
                "        return general(self, grads, needs)",
            ]
    given = "[None if g is None else g._data for g in grads]" if several else "(a,)"
    lines += [
        "try:",
        f"    found = pull(({''.join(f'{n}, ' for n in names)}), {given}, needs)",
        "except Exception:",  # whatever it is: the general way says it
        "    return general(self, grads, needs)",
        "return [g if r is a else None if r is None else",
        "        make(r if r.__class__ is ndarray else arrays_only(np, r)) for r in found]",
    ]
    own = {"pull": pull, "general": tape.Node.apply, "freed": tape.freed,
           "modified": tape.modified, "arrays_only": _arrays_only}  # fmt: skip
    title = f"backward of {rule.op.full_name}"
    return unrolled(title, "apply(self, grads, needs)", lines, own)
