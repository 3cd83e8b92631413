"""The eager fast path: a specialised function per pointwise operator, generated on its first call.

The function handles plain CPU float tensors of one dtype (or a Python number as second operand) with no
transform active; everything else goes to `bind`.  Arguments are unrolled, values saved as the derivative
formulas say, and the node is made in place.  Read `core/tape.py` for what the same steps do in general.
"""

from __future__ import annotations

import re
import sys

import numpy as np

from . import surface
from .handle import Tensor
from .op import OpOverload
from .state import fast as space
from .state import sequence, state
from .tape import Node, freed, modified

_SIMPLE = re.compile(r"^xp\.(\w+)\((\w+)(?:, (\w+))?\)$")

# NumPy 2.3 can be asked for arrays where it would return scalars; before, 0-d results are wrapped
_ELLIPSIS_OUT = tuple(int(p) for p in np.__version__.split(".")[:2]) >= (2, 3)

space.update(
    new=object.__new__, Tensor=Tensor, Node=Node, ndarray=np.ndarray, F32=np.dtype(np.float32),
    F64=np.dtype(np.float64), sequence=sequence, getframe=sys._getframe, state=state, asarray=np.asarray,
    freed=freed, modified=modified, isinstance=isinstance, refresh=surface.refresh, cell_of=surface.cell_of, make=surface.make, float=float, int=int)


def array_function(ov: OpOverload) -> tuple[str, int] | None:
    """(name of the array function, number of tensor operands) that an operator is, if it is one."""
    op, schema = ov.op, ov.schema
    if op.kind != "pointwise" or op.promote not in ("default", "float"):
        return None
    tensors = [a.name for a in schema.args if a.is_tensor]
    if len(tensors) not in (1, 2) or schema.names[:len(tensors)] != tensors:
        return None
    if op.ufunc is not None:
        return op.ufunc, len(tensors)
    match = _SIMPLE.match(op.run) if isinstance(op.run, str) else None
    if match is None or len(schema.args) != len(tensors):
        return None
    if [m for m in match.groups()[1:] if m] != tensors or not hasattr(np, match[1]):
        return None
    return (match[1], len(tensors)) if isinstance(getattr(np, match[1]), np.ufunc) else None


def compile_fast(ov: OpOverload, slow):
    """The specialised function, or None where the operator is not a single array function."""
    found = array_function(ov)
    if found is None or ov.rule is None and ov.op.promote != "bool":
        return None
    name, operands = found
    key = re.sub(r"\W", "_", ov.name)
    space[f"slow_{key}"], space[f"ufunc_{key}"] = slow, getattr(np, name)
    space[f"rule_{key}"], space[f"pull_{key}"] = ov.rule, ov.rule.backward_real
    try:
        source = _node_class(ov, key) + (_unary(ov, key) if operands == 1 else _binary(ov, key))
    except LookupError:  # a fact of the second operand must be saved: the general path does it
        return None
    exec(compile(source, f"<pullback fast path of {ov.name}>", "exec"), space)
    return space[f"fast_{key}"]


def _call(key: str, operands: str) -> str:
    call = f"ufunc_{key}({operands}, out=...)" if _ELLIPSIS_OUT else f"asarray(ufunc_{key}({operands}))"
    return f"r = {call}"


_HANDLE = """
    t = new(Tensor)
    t._data = r
    t._link = t._cell = t._meta = None"""

_NODE = """
    n = new(Node_{key})
    n.edges = {edges}
    n.metas = {metas}
    n.saved = {saved}
    n.seq = sequence()
    n.stamp = CLOCK
    n.hooks = None
    n.level = 0
    f = getframe(1)
    n.where = f.f_code, f.f_lasti
    t._edge = n
    return t
"""


def _node_class(ov: OpOverload, key: str) -> str:
    """A node class whose `apply` has the unpacking unrolled; its tensors are real."""
    names = [f"s{i}" for i in range(len(ov.rule.saves))]
    body = []
    for name, (local, kind, _, _) in zip(names, ov.rule.saves):
        if kind in ("arg", "out"):
            body.append(f"""
        if isinstance({name}, Tensor):
            c = {name}._cell
            if c is not None and c.stamps and c.stamps[-1] > self.stamp:
                raise modified(self, {local!r}, {name})""")
        if kind == "out":
            body.append(f"""
            {name} = make({name}._data, self)
            {name}._cell = c""")
    unpack = f"({', '.join(names)},) = saved" if names else "pass"
    return f"""
class Node_{key}(Node):
    __slots__ = ()
    rule = rule_{key}
    def apply(self, grads, needs):
        saved = self.saved
        if saved is None:
            raise freed(self)
        {unpack}{"".join(body)}
        return pull_{key}({f"({', '.join(names)},)" if names else "()"}, grads, needs)
"""


def _saved(ov: OpOverload, edges: dict[str, str]) -> tuple[str, str]:
    """(statements before, tuple expression) that save what the formulas need."""
    rule, before, items = ov.rule, "", []
    for (local, kind, name, attribute), guard in zip(rule.saves, rule.guards):
        if kind == "fact":
            source, tensor = name
            value = {"self": "a", "other": "b"}.get(tensor, "r") if source == "arg" else "r"
            fact = {"shape": ".shape", "ndim": ".ndim", "numel()": ".size"}.get(attribute)
            items.append(f"{value}{fact}" if fact and value in "ar" else f"t0_{local}")
            if not fact or value == "b":
                raise LookupError(local)
            continue
        if kind == "out":
            before += "\n    s = make(r)\n    s._cell = cell_of(t)"
            items.append("s")
            continue
        value = name if kind == "arg" else repr(ov.schema.args[ov.schema.names.index(name)].default)
        wanted = " or ".join(f"{edges[rule.input_names[i]]} is not None" for i in guard
                             if rule.input_names[i] in edges)
        items.append(f"({value} if {wanted} else None)" if wanted and kind == "arg" else value)
    return before, f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _unary(ov: OpOverload, key: str) -> str:
    arg = ov.schema.names[0]
    before, saved = _saved(ov, {arg: "e"})
    saved = saved.replace(f"({arg} if e is not None else None)", arg)
    node = _NODE.format(key=key, edges="(e,)", metas="((a.shape, d),)", saved=saved)
    return f"""
def fast_{key}({arg}):
    if ACTIVE:
        return slow_{key}({arg})
    a = {arg}._data
    if a.__class__ is not ndarray:
        return slow_{key}({arg})
    d = a.dtype
    if d is not F32 and d is not F64:
        return slow_{key}({arg})
    {_call(key, "a")}{_HANDLE}
    if {arg}._link is not None:
        refresh({arg})
    e = {arg}._edge
    if e is None or GRADOFF and not state.record[0]:
        t._edge = None
        return t{before}{node}"""


def _binary(ov: OpOverload, key: str) -> str:
    x, y = ov.schema.names[:2]
    before, saved = _saved(ov, {x: "e", y: "k"})
    node = _NODE.format(key=key, edges="(e, k)", metas="((a.shape, d), (b.shape, d))", saved=saved)
    before1, saved1 = _saved(ov, {x: "e", y: "k"})
    node1 = _NODE.format(key=key, edges="(e, None)", metas="((a.shape, d), None)", saved=saved1)
    return f"""
def fast_{key}({x}, {y}):
    if ACTIVE:
        return slow_{key}({x}, {y})
    a = {x}._data
    if a.__class__ is not ndarray:
        return slow_{key}({x}, {y})
    d = a.dtype
    if d is not F32 and d is not F64:
        return slow_{key}({x}, {y})
    c = {y}.__class__
    if c is float or c is int:
        {_call(key, f"a, {y}")}{_indent(_HANDLE)}
        if {x}._link is not None:
            refresh({x})
        e, k = {x}._edge, None
        if e is None or GRADOFF and not state.record[0]:
            t._edge = None
            return t{_indent(before1 + node1)}
    try:
        b = {y}._data
        if b.__class__ is not ndarray or b.dtype is not d:
            return slow_{key}({x}, {y})
        {_call(key, "a, b")}
    except (AttributeError, ValueError):
        return slow_{key}({x}, {y}){_HANDLE}
    if {x}._link is not None:
        refresh({x})
    if {y}._link is not None:
        refresh({y})
    e = {x}._edge
    k = {y}._edge
    if e is None and k is None or GRADOFF and not state.record[0]:
        t._edge = None
        return t{before}{node}"""


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")
