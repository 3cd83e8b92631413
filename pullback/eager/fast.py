"""The eager fast path: a specialised function per pointwise operator, generated on its first call.

The function handles plain CPU float tensors of one dtype (or a Python number as second operand)
with no transform active; everything else goes to `bind`.  Arguments are unrolled, values saved as
the derivative formulas say, and the node is made in place.  Read `core/tape.py` for what the same
steps do in general.
"""

from __future__ import annotations

import re
import sys

import numpy as np

from ..core import surface
from ..core.expression import fact_value, parse
from ..core.handle import INFERENCE, Tensor
from ..core.op import OpOverload
from ..core.parts import DEFAULT
from ..core.state import fast as space
from ..core.state import sequence, state
from ..core.tape import Node, as_saved, first_runs, freed, modified, named, place, users
from .direct import Direct, NotDirect, array_call

_LOCALS = frozenset(
    "abcdefknrst"
)  # variables of the generated code, which arguments must not be called
_SIMPLE = re.compile(r"^xp\.(\w+)\((\w+)(?:, (\w+))?\)$")

space.update(
    new=object.__new__,
    Tensor=Tensor,
    Node=Node,
    INFERENCE=INFERENCE,
    ndarray=np.ndarray,
    F32=np.dtype(np.float32),
    F64=np.dtype(np.float64),
    sequence=sequence,
    getframe=sys._getframe,
    users=users,
    place=place,
    state=state,
    asarray=np.asarray,
    refresh=surface.refresh,
    cell_of=surface.cell_of,
    make=surface.make,
    float=float,
    int=int,
    str=str,
    bool=bool,
    freed=freed,
    as_saved=as_saved,
    modified=modified,
    isinstance=isinstance,
    np=np,
    bool_=np.dtype(np.bool_),
)


def eligible(ov: OpOverload) -> list[str] | None:
    """Names of the tensor operands if the operator fits the fast path: pointwise, operands
    first, one output.
    """
    op, schema = ov.op, ov.schema
    if (
        op.kind != "pointwise"
        or op.promote not in ("default", "float", "bool")
        or len(schema.returns) != 1
    ):
        return None
    if (
        ov.dtype_rule is not None
        or isinstance(op.diff_outputs, str)
        or not _LOCALS.isdisjoint(schema.names)
    ):
        return None
    tensors = [a.name for a in schema.args if a.is_tensor]
    if (
        op.promotes is not None
        and any(
            n not in tensors and schema.args[schema.names.index(n)].base != "Scalar"
            for n in op.promotes
        )
        or any(n not in (op.promotes or tensors) for n in tensors)
    ):
        return None
    if (
        len(tensors) not in (1, 2)
        or schema.names[: len(tensors)] != tensors
        or any(a.is_list or a.optional for a in schema.args if a.is_tensor)
    ):
        return None
    return tensors


def array_function(ov: OpOverload, tensors: list[str]) -> str | None:
    """The array function that the operator is when its other arguments have their defaults, if
    it is one.
    """
    op = ov.op
    if op.promote == "bool":
        return None
    if op.ufunc is not None:
        return op.ufunc
    match = _SIMPLE.match(op.run) if isinstance(op.run, str) else None
    if match is None or len(ov.schema.args) != len(tensors):
        return None
    if [m for m in match.groups()[1:] if m] != tensors:
        return None
    return match[1] if isinstance(getattr(np, match[1], None), np.ufunc) else None


_purposes: dict[str, dict] = {}  # overload -> what functions were generated for


def compile_fast(ov: OpOverload, slow, purpose: str = "function"):
    """The specialised function of an operator, or None where it does not fit.

    `slow` takes the calls that do not fit; functions for different purposes fall back to different
    ones.
    """
    tensors = eligible(ov)
    if tensors is None or (ov.rule is None and ov.op.promote != "bool"):
        return None
    function = array_function(ov, tensors)
    _purposes.setdefault(ov.name, {})[purpose] = True
    key = re.sub(r"\W", "_", f"{ov.name}_{purpose}")
    space[f"slow_{key}"], space[f"kernel_{key}"] = (
        slow,
        getattr(np, function) if function else ov.kernel,
    )
    if ov.rule is not None:
        space[f"rule_{key}"], space[f"pull_{key}"] = ov.rule, ov.rule.backward_real
    try:
        source = _function(ov, key, tensors, bool(function))
    except LookupError:  # a fact that the general path must save
        return None
    exec(compile(source, f"<pullback fast path of {ov.name}>", "exec"), space)
    if ov.rule is not None:
        node = space[f"Node_{key}"]
        named(node, ov.rule.name)
        if not _direct(ov):
            node.apply = first_runs(ov.rule, node.apply)
    space[f"watched_{key}"] = _Watched(ov, key, tensors, bool(function))
    return space[f"fast_{key}"]


class _Watched:
    """Stands for the function of an operator inside of checkpoints until that is first called."""

    def __init__(self, ov: OpOverload, key: str, tensors: list[str], single: bool):
        self.of = ov, key, tensors, single

    def __call__(self, *args, **kwargs):
        ov, key, *_ = self.of
        source = _function(*self.of, watched=True)
        exec(compile(source, f"<pullback fast path of {ov.name} in checkpoints>", "exec"), space)
        return space[f"slow_{key}"](*args, **kwargs)  # this once: the next call is the function's


def renew(ov: OpOverload) -> None:
    """Generate the specialised functions anew, after the derivative formulas have changed."""
    from ..table.packets import packets_of

    for packet in packets_of(ov.op.base_name):
        packet.forget()
    for purpose in _purposes.get(ov.name, ()):
        key = re.sub(r"\W", "_", f"{ov.name}_{purpose}")
        old = space.pop(f"fast_{key}", None)
        node = space.pop(f"Node_{key}", None)
        if node is not None:
            node.apply = Node.apply  # existing nodes go on with the rule that they were made with
        if old is None:
            continue
        slow = space[f"slow_{key}"]
        for name, value in list(vars(Tensor).items()):
            if value is old:
                setattr(Tensor, name, compile_fast(ov, slow, purpose) or slow)
            elif getattr(value, "__code__", None) is old.__code__:
                become(value, compile_fast(ov, slow, purpose) or slow)


_METHOD = """
def method_{key}(self, *args, **kwargs):
    if not kwargs:
        plan = plans_{key}.get((type(self), *map(type, args)))
        if plan is not None:
            return plan(self, *args)
    return packet_{key}(self, *args, **kwargs)
"""


def method_of(packet):
    """The general way of a method, as a function of the generated namespace."""
    key = packet.purpose
    if f"method_{key}" not in space:
        space[f"packet_{key}"], space[f"plans_{key}"] = packet, packet._plans
        exec(compile(_METHOD.format(key=key), f"<pullback method {packet.name}>", "exec"), space)
    return space[f"method_{key}"]


def become(function, other) -> None:
    """Let a function of the generated namespace do what another one does, and stay the object that
    users have.
    """
    function.__code__ = other.__code__
    function.__defaults__, function.__kwdefaults__ = other.__defaults__, other.__kwdefaults__


_HANDLE = """
    t = new(Tensor)
    t._data = r
    t._link = t._cell = t._meta = None"""

_UNRECORDED = """
    t._edge = None
    if GRADOFF and state.inference:
        t._cell = INFERENCE
    return t
"""

_NODE = """
    n = new(Node_{key})
    n.edges = {edges}
    n.metas = {metas}
    n.saved = {saved}
    n.seq = sequence()
    n.stamp = CLOCK
    n.hooks = None
    n.level = 0
    f = getframe({depth})
    c = f.f_code
    n.where = (c, f.f_lasti) if c.co_filename in users else place({outer})
    t._edge = n{told}
    return t
"""
_TOLD = """
    if state.saving is not None:
        state.saving.noted(n)"""  # a checkpoint: it takes away what the node has saved


def _node_class(ov: OpOverload, key: str) -> str:
    """A node class whose `apply` has the unpacking unrolled; its tensors are real.

    Where the formulas are arithmetic and nobody records, they run on the arrays themselves.
    """
    names = [f"s{i}" for i in range(len(ov.rule.saves))]
    body, again = [], []
    for i, (local, kind, _, _) in enumerate(ov.rule.saves):
        if kind in ("arg", "out"):
            body.append(f"""
        if isinstance(s{i}, Tensor):
            c = s{i}._cell
            if c is not None and c.stamps and c.stamps[-1] > self.stamp:
                raise modified(self, {local!r}, s{i})
            a{i} = s{i}._data
        else:
            a{i} = s{i}""")
        if kind == "arg":
            again.append(f"""
        if isinstance(s{i}, Tensor) and s{i}._edge is None:
            s{i} = as_saved(self, s{i})""")
        if kind == "out":  # what the formula gets has this node as its history
            again.append(f"""
        s{i} = make(a{i}, self)
        s{i}._cell = c""")
    unpack = f"({', '.join(names)},) = saved" if names else "pass"
    return f"""
class Node_{key}(Node):
    __slots__ = ()
    generated = True
    rule = rule_{key}
    def apply(self, grads, needs):
        saved = self.saved
        if saved is None:
            raise freed(self)
        {unpack}{"".join(body)}{_direct(ov)}{"".join(again)}
        return pull_{key}({f"({', '.join(names)},)" if names else "()"}, grads, needs)
"""


def _direct(ov: OpOverload) -> str:
    """Statements that return the gradients by arithmetic on arrays, where that is possible."""
    rule = ov.rule
    if set(rule.parts) != {DEFAULT} or rule.parts[DEFAULT].constant or ov.op.promote == "bool":
        return ""
    translator, found = Direct(rule.saves), {}
    try:
        for formula in rule.formulas[DEFAULT]:
            (name,) = formula.names
            tree = parse(formula.code(False), rule.schema).body
            found[rule.input_names.index(name)] = translator.handle(tree)
    except (NotDirect, ValueError):
        return ""
    space.update({name: getattr(np, name) for name in translator.functions})
    results = "".join(f"{found[i]} if needs[{i}] else None, " for i in sorted(found))
    return f"""
        g = grads[0]
        if GRADOFF and not ACTIVE and g is not None and not state.record[0]:
            a = g._data
            if a.__class__ is ndarray:
                return ({results})"""


_FACTS = {"shape": ".shape", "ndim": ".ndim", "dim()": ".ndim", "numel()": ".size"}


def _saved(ov: OpOverload, arrays: dict[str, str], edges: dict[str, str],
           number: str | None) -> tuple[str, str]:
    """(statements before, tuple expression) that save what the formulas need."""
    rule, before, items = ov.rule, "", []
    for (local, kind, name, attribute), guard in zip(rule.saves, rule.guards):
        if kind == "fact":
            source, tensor = name
            array = arrays.get(tensor) if source == "arg" else "r"
            if attribute not in _FACTS or array is None:
                raise LookupError(local)
            items.append(repr(fact_value(0, attribute)) if tensor == number
                         else array + _FACTS[attribute])
        elif kind == "out":
            before += "\n    s = make(r)\n    s._cell = cell_of(t)"
            items.append("s")
        elif kind == "value":
            items.append(name)
        else:
            wanted = " or ".join(f"{edges[rule.input_names[i]]} is not None" for i in guard)
            items.append(f"({name} if {wanted} else None)" if wanted and len(edges) > 1 else name)
    return before, f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _record(ov: OpOverload, key: str, tensors: list[str], watched: bool,
            number: str | None = None) -> str:
    """Statements that give the result `t` its history, or none where nobody asks.

    `number` is the tensor argument in whose place a Python number stands.
    """
    arrays = dict(zip(tensors, "ab"))
    edges = dict(zip(tensors, "ek"))
    fetch = "".join(
        f"\n    {edges[x]} = None" if x == number else f"""
    if {x}._link is not None:
        refresh({x})
    {edges[x]} = {x}._edge"""
        for x in tensors
    )
    if ov.rule is None:
        return _UNRECORDED
    listed = [edges[x] for x in tensors if x in ov.rule.input_names]
    none = " and ".join(f"{e} is None" for e in listed)
    before, saved = _saved(ov, arrays, edges, number)
    metas = ["None" if x == number else f"({arrays[x]}.shape, d)"
             for x in tensors if x in ov.rule.input_names]
    return f"""{fetch}
    if {none} or GRADOFF and not state.record[0]:
        t._edge = None
        if GRADOFF and state.inference:
            t._cell = INFERENCE
        return t{before}""" + _NODE.format(
        key=key, edges=f"({', '.join(listed)},)", metas=f"({', '.join(metas)},)", saved=saved,
        depth=2 if watched else 1, outer=3 if watched else 2, told=_TOLD if watched else "",
    )


def _function(
    ov: OpOverload, key: str, tensors: list[str], single: bool, watched: bool = False
) -> str:
    """Source of the node class and of the fast function; or of the one for inside a checkpoint."""
    schema = ov.schema
    rest = [a for a in schema.args if a.name not in tensors]
    parameters = ", ".join(
        a.name + (f"={_default(a, key)}" if a.has_default else "") for a in schema.args
    )
    arguments = ", ".join(f"{a.name}={a.name}" if a.kwarg_only else a.name for a in schema.args)
    slow = f"return slow_{key}({arguments})"
    result = "" if ov.op.promote == "bool" else " or r.dtype is not d"

    numbers = [a.name for a in rest if a.name in (ov.op.promotes or ())]

    def call(operands: str) -> str:
        if not single:
            extra = "".join(
                f", asarray({a.name}, d)" if a.name in numbers else f", {a.name}" for a in rest
            )
            return (
                f"r = kernel_{key}(np, {operands}{extra})\n"
                f"    if r.__class__ is not ndarray{result}:\n"
                f"        r = asarray(r, {'bool_' if ov.op.promote == 'bool' else 'd'})"
            )
        return "r = " + array_call(f"kernel_{key}", operands)

    tests = (
        [_differs(a) for a in rest]
        if single
        else [f"{n}.__class__ is not float and {n}.__class__ is not int" for n in numbers]
        + [f"{schema.names[i]}.__class__ is complex" for i in ov.numbers]
    )
    plain = " or ".join(tests)
    x = tensors[0]
    special = " or " + plain if plain else ""
    start = f"""
def fast_{key}({parameters}):
    if ACTIVE{special}:
        if ACTIVE and ACTIVE == WATCHED:
            return watched_{key}({arguments})
        {slow}"""
    if watched:
        start = f"""
def watched_{key}({parameters}):
    if ACTIVE != WATCHED{special}:
        {slow}"""
    head = f"""{start}
    try:
        a = {x}._data
    except AttributeError:
        {slow}
    if a.__class__ is not ndarray:
        {slow}
    d = a.dtype
    if d is not F32 and d is not F64:
        {slow}"""
    record = _record(ov, key, tensors, watched)
    node = _node_class(ov, key) if ov.rule is not None and not watched else ""
    if len(tensors) == 1:
        return f"{node}{head}\n    {call('a')}{_HANDLE}{record}"
    y = tensors[1]
    number = ""
    if y in ov.op.scalars:
        one = _record(ov, key, tensors, watched, number=y)
        number = f"""
    c = {y}.__class__
    if c is float or c is int:
        {_indent(call(f"a, {y}"))}{_indent(_HANDLE + one)}"""
    return f"""{node}{head}{number}
    try:
        b = {y}._data
        if b.__class__ is not ndarray or b.dtype is not d:
            {slow}
        {_indent(call("a, b"))}
    except (AttributeError, ValueError):
        {slow}{_HANDLE}{record}"""


def _differs(argument) -> str:
    """Test that an argument does not have its default."""
    value, name = argument.default, argument.name
    if not argument.has_default or not (value is None or isinstance(value, (bool, int, str))):
        raise LookupError(name)
    return (
        f"{name} is not None"
        if value is None
        else (f"{name}.__class__ is not {type(value).__name__} or {name} != {value!r}")
    )


def _default(argument, key: str) -> str:
    """A default value as source text."""
    value = argument.default
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    name = f"default_{key}_{argument.name}"
    space[name] = value
    return name


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")


def family(packet, slow):
    """A fast function for all overloads of a name, chosen by the second operand; None where
    there is none.
    """
    made = {}
    for ov in packet.entries():
        tensors = eligible(ov)
        if tensors is None:
            continue
        kind = "number" if ov.schema.names[len(tensors) :] and ov.op.promotes else "tensor"
        if kind not in made:
            function = compile_fast(ov, slow, packet.purpose)
            if function is not None:
                made[kind] = (
                    function,
                    len(ov.schema.args)
                    if ov.schema.kw_only_from == len(ov.schema.args)
                    else ov.schema.kw_only_from,
                )
                if tensors[1:] and tensors[1] in ov.op.scalars:  # this overload takes numbers, too
                    made.setdefault("number", made[kind])
    if not made:
        return None
    if len(packet.entries()) == 1:
        function, most = made.get("tensor") or made["number"]
        return function if most == 1 else _limited(function, most, slow)
    return _chosen(made.get("tensor", (slow, 2))[0], made.get("number", (slow, 2))[0], slow)


def _limited(function, most: int, slow):
    def call(*args):
        return function(*args) if 0 < len(args) <= most else slow(*args)

    return call


def _chosen(with_tensor, with_number, slow):
    def call(*args):
        if len(args) != 2:
            return slow(*args)
        kind = args[1].__class__
        if kind is float or kind is int:
            return with_number(*args)
        return with_tensor(*args) if kind is Tensor else slow(*args)

    return call
