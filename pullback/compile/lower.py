"""Graph to values: every node becomes views, pointwise values, reductions or calls.

What an operator becomes is said by a rule, which its entry names (`lower`: a function there, or the
name of one in the files `rules_*.py`). An operator without a rule, or of an element type that C
does not take, becomes a NumPy step. Read `schedule.py` next.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from math import prod

from ..array.layout import strides_order
from ..graph.traits import cost_of, trait
from ..table.effects import effect_of
from .builder import Builder, Unsupported, code_of, permute
from .errors import GraphNotSupported
from .interpret import attribute
from .ir import CTYPES, Ref, Value, contiguous, same_strides
from .number import Number


@dataclass
class Lowered:
    """A graph as values."""

    builder: Builder
    inputs: list[Value]  # one per placeholder, then one per get_attr constant
    input_refs: list[Ref]  # how each input's memory is laid out (shape and strides as given)
    constants: list[str]  # names of the attributes behind the constants
    outputs: list  # Ref, None or a Python number, in order
    externs: dict[str, object] = field(default_factory=dict)  # node name -> node of a NumPy step
    count: int = 0  # nodes of the graph
    kept: list[Value] = field(default_factory=list)  # of steps that run whether used or not: draws
    graph: object = None  # the graph module itself
    why: dict[str, str] = field(default_factory=dict)  # NumPy step -> why it is one, of loops


def op_name(target: object) -> str:
    """`mul.Tensor` for an overload of the table, the bare name for a Python function."""
    if target is operator.getitem:
        return "getitem"
    if getattr(target, "custom", False):
        return str(target.name)  # mine::f, like no name of the table
    text = str(target)
    return text[5:] if text.startswith("aten.") else text


def rule_of(target: object) -> Callable | None:
    """The lowering rule of what a node calls, as the `lower` of its entry says; None without one.

    A rule is a function of the builder, the node's example value and the call's arguments with
    graph nodes replaced by refs. Variants that write have none: graphs that get here do not write.
    """
    rule = getattr(getattr(target, "op", None), "lower", None)
    if rule is None or hasattr(target, "functional"):
        return None
    return named_rule(rule) if isinstance(rule, str) else rule


class _Files(dict):
    """The files of rules by the names that entries use: `shape` is `rules_shape.py`."""

    def __missing__(self, name: str) -> object:
        try:
            self[name] = import_module(f".rules_{name}", __package__)
        except ModuleNotFoundError:
            raise KeyError(name) from None
        return self[name]


@functools.cache
def named_rule(text: str) -> Callable:
    """The rule that a text names: `index.gather`, or one that is made: `shape.reduction('sum')`."""
    return eval(text, {"__builtins__": {}}, _Files())


def dtype_code(value: object) -> str:
    """Letter for the dtype of a node's example value."""
    dtype = getattr(value.dtype, "np", value.dtype)
    return code_of(dtype)


def whole(n: object) -> int:
    """An integer; one that depends on sizes stays what it is."""
    return n if isinstance(n, Number) else int(n)


def shape_of(value: object) -> tuple[int, ...]:
    """Shape as plain integers; symbolic sizes are refused."""
    shape = tuple(value.shape)
    if not all(type(n) is int or isinstance(n, Number) for n in shape):
        try:
            shape = tuple(map(whole, shape))
        except TypeError as error:
            raise GraphNotSupported(f"a symbolic size in {shape}") from error
    return shape


def is_array(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def is_graph(gm: object, node: object) -> bool:
    """Does a node stand for a graph inside of the graph?"""
    return hasattr(attribute(gm, node.target), "graph")


def lower(gm: object, checks: list | None = None, layouts: list[tuple] | None = None) -> Lowered:
    """All nodes of a graph module.

    Of a graph inside of another, `checks` are those of that one, to go on with, and `layouts` the
    strides of the inputs.
    """
    b = Builder()
    b.checks = b.checks if checks is None else checks
    out = Lowered(b, [], [], [], [], graph=gm)
    env: dict = {}
    constants = []
    given = iter(layouts or ())
    for node in gm.graph.nodes:
        out.count += 1
        if node.op == "placeholder":
            env[node] = _input(b, out, node, node.meta.get("val"), next(given, None))
        elif node.op == "get_attr" and "val" not in node.meta and is_graph(gm, node):
            env[node] = node  # a branch or the body of a loop
        elif node.op == "get_attr":
            constants.append(node)
            env[node] = None
        elif node.op == "call_function":
            continue
    _constants(b, out, env, constants, gm)
    returned = _returned(gm.graph.output_node())
    ordered = _drawn_along(gm.graph) | {node for node, seen in returned.items() if seen}
    for node in gm.graph.nodes:
        if node.op == "call_function":
            _begin(b, node)
            env[node] = _call(b, out, env, node)
            if node in returned:
                env[node] = _laid_out(b, env[node], node.meta.get("val"), returned[node])
            if node in ordered:
                env[node] = _ordered(env[node], node.meta.get("val"))
        elif node.op == "output":
            out.outputs = _outputs(b, env, node.args[0], {})
        elif node.op not in ("placeholder", "get_attr"):
            raise GraphNotSupported(f"a {node.op} node ({node.name}) in a graph for the C backend")
    return out


def _begin(b: Builder, node: object) -> None:
    """Tell the builder which node comes, and the operator that the user called there, of which it
    may be a part: errors are that one's."""
    origin = node.meta.get("origin") or node.target
    b.name, b.origin = node.name, op_name(origin).partition(".")[0]
    b.bad_index = getattr(getattr(origin, "op", None), "bad_index", IndexError)


def _input(
    b: Builder, out: Lowered, node: object, example: object, strides: tuple | None
) -> Ref | object:
    if example is None or not is_array(example):
        raise GraphNotSupported(f"the input {node.name} is no array")
    shape = shape_of(example)
    if strides is None:
        strides = contiguous(shape)
        if hasattr(example, "stride"):
            given = tuple(map(whole, example.stride()))
            strides = given if dense(shape, given) else strides
    order = sorted(range(len(shape)), key=lambda i: (-strides[i], i))
    stored = tuple(shape[i] for i in order)
    value = b.add(Value("input", node.name, stored, dtype_code(example)))
    ref = Ref(value, shape, 0, strides)
    out.inputs.append(value)
    out.input_refs.append(ref)
    return ref


def dense(shape: tuple, strides: tuple) -> bool:
    """Whether the elements fill their memory: a permutation of a contiguous array."""
    run = 1
    for s, n in sorted((s, n) for s, n in zip(strides, shape) if n != 1):
        if s != run:
            return False
        run *= n
    return True


def _returned(output: object) -> dict:
    """The nodes whose memory is returned, and whether the user sees it: values that are saved for
    the backward, the last ones, may lie as they happen to, if eager execution has them in rows."""
    found: dict = {}
    nodes, saved = output.all_input_nodes, output.meta.get("saved", 0)
    seen = [n for n in output.args[0][:-saved] if hasattr(n, "op")] if saved else nodes
    for node in nodes:
        base = _base(node)
        found[base] = found.get(base, False) or node in seen
    return found


def _drawn_along(graph: object) -> set:
    """The nodes in the order of whose memory numbers are drawn."""
    return {_base(n) for node in graph.nodes
            if node.op == "call_function" and cost_of(node.target) == "random"
            for n in node.all_input_nodes}


def _laid_out(
    b: Builder, made: object, example: object, seen: bool = True, own: bool = False
) -> object:
    """A result in the memory layout that eager execution gives it, which the user can see; with
    `own` it is a copy in any case."""
    if isinstance(made, (list, tuple)) and not isinstance(made, Ref):
        return [_laid_out(b, m, e, seen) for m, e in zip(made, example)]
    if not isinstance(made, Ref) or made.dtype not in CTYPES and not own:
        return made
    wanted = tuple(map(whole, example.stride())) if hasattr(example, "stride") else ()
    if len(wanted) != len(made.shape) or not dense(made.shape, wanted):
        wanted = contiguous(made.shape)
    same = same_strides(made.shape, made.strides, wanted)
    if not own and (same or not seen and wanted == contiguous(made.shape)):
        return made
    order = sorted(range(len(wanted)), key=lambda i: (-wanted[i], i))
    look = permute(made, order)
    copy = Value("pointwise", b.fresh_name(), look.shape, look.dtype, "copy", (look,))
    return permute(b.add(copy).ref(), [order.index(i) for i in range(len(order))])


def _ordered(made: object, example: object) -> object:
    """The fresh result of a NumPy step of a type that C has not, in the order of eager's."""
    if isinstance(made, (list, tuple)) and not isinstance(made, Ref):
        return [_ordered(m, e) for m, e in zip(made, example)]
    if not isinstance(made, Ref) or made.dtype in CTYPES or not hasattr(example, "stride"):
        return made
    call, wanted = made.value.call, tuple(map(whole, example.stride()))
    if call is None or len(wanted) != len(made.shape) or not dense(made.shape, wanted) or (
            same_strides(made.shape, made.strides, wanted)):
        return made
    order = sorted(range(len(wanted)), key=lambda i: (-wanted[i], i))
    made.value.shape = tuple(made.shape[i] for i in order)
    call.attrs.setdefault("orders", {})[call.outs.index(made.value)] = tuple(order)
    return permute(made.value.ref(), [order.index(i) for i in range(len(order))])


def _constants(b: Builder, out: Lowered, env: dict, nodes: list, gm: object) -> None:
    """Attributes of the module become hidden inputs after the placeholders."""
    for node in nodes:
        example = node.meta.get("val", attribute(gm, node.target))
        shape = shape_of(example)
        stored = b.add(Value("input", node.name, shape, dtype_code(example)))
        out.inputs.append(stored)
        out.input_refs.append(stored.ref())
        out.constants.append(node.target)
        env[node] = stored.ref()


def _call(b: Builder, out: Lowered, env: dict, node: object) -> object:
    name = op_name(node.target)
    if name == "getitem":
        return env[node.args[0]][node.args[1]]
    args = [_resolve(env, a) for a in node.args]
    kwargs = {k: _resolve(env, v) for k, v in node.kwargs.items()}
    if trait(node.target, "ufunc") == "add" and not kwargs and (
            made := _added_to(node, args)) is not None:
        return made
    rule = rule_of(node.target)
    example = node.meta.get("val")
    if effect_of(node.target) is not None or example is None:  # its call matters, used or not
        return _extern(b, out, node, args, kwargs, example)
    if getattr(node.target, "namespace", None) == "higher_order":
        from .loops import lowered

        made = lowered(b, out, node, args)
        return _extern(b, out, node, args, kwargs, example) if made is None else made
    if rule is not None and not _dims_exist(node, args, kwargs, example):
        rule = None  # its kernel says so; a rule would count on from the front
    if trait(node.target, "absolute"):
        args[0] = _as_seen(b, args[0], node.args[0])  # it counts places in memory
    if rule is not None and is_array(example) and _native(args, kwargs, example):
        mark = b.mark()
        try:
            made = rule(b, example, *args, **kwargs)
            return _checked(made, example, node)
        except Unsupported:
            b.rewind(mark)
    elif rule is not None and _looks(node, args, example):
        mark = b.mark()
        try:
            made = rule(b, example, *args, **kwargs)
        except Unsupported:
            made = None
        if all(isinstance(m, Ref) and m.value is args[0].value for m in _flat(made)):
            return made if isinstance(example, (tuple, list)) else _checked(made, example, node)
        b.rewind(mark)  # it is a copy
    if rule is not None and isinstance(example, (tuple, list)) and _native(args, kwargs, *example):
        mark = b.mark()
        try:
            return rule(b, example, *args, **kwargs)
        except Unsupported:
            b.rewind(mark)
    template = getattr(getattr(node.target, "op", None), "c", None)
    if isinstance(template, str) and is_array(example) and _native(args, kwargs, example):
        from .rules_pointwise import from_template

        made = from_template(b, node.target, template, example, args, kwargs)
        if made is not None:
            return made
    return _extern(b, out, node, args, kwargs, example)


def _added_to(node: object, args: list) -> Ref | None:
    """The sum of two matrix products as one that adds to the other, if nobody else reads it.

    Gradients of a weight that is used many times are such sums: else all terms would be there at
    once. None where it is not that.
    """
    if not all(isinstance(a, Ref) and a.value.call and a.value.call.kind == "gemm" for a in args):
        return None
    first, last = sorted(args, key=lambda ref: ref.value.uid)
    call, source = last.value.call, node.args[args.index(last)]
    alike = (first.shape, first.dtype) == (last.shape, last.dtype) and (
        first.value.shape == last.value.shape and first.offset == last.offset == 0
        and first.strides == last.strides and prod(last.shape) == last.value.numel
    )
    while len(source.users) == 1 and _may_alias(source.target):
        source = source.args[0]
    if not alike or first.value is last.value or len(source.users) > 1 or len(call.args) > 2:
        return None
    shape, strides = last.value.shape, contiguous(last.value.shape)
    call.args.append(first.value.ref())
    call.attrs.update(sb=strides[0] if len(shape) == 3 else 0, sm=strides[-2], sn=strides[-1])
    return last


_DIMS = frozenset(("dim", "dims", "dim0", "dim1", "dim2", "axis"))


def _dims_exist(node: object, args: list, kwargs: dict, example: object) -> bool:
    """Whether the dims among the arguments are dims of the arrays of a call."""
    schema = getattr(node.target, "schema", None)
    if schema is None:
        return True
    given = {**dict(zip(schema.names, args)), **kwargs}
    dims = [d for name in _DIMS & given.keys() for d in _flat(given[name]) if type(d) is int]
    if not dims:
        return True
    made = example if isinstance(example, (tuple, list)) else [example]
    arrays = [a for a in (*_flat(args), *made) if isinstance(a, Ref) or is_array(a)]
    rank = max((len(a.shape) for a in arrays), default=0) or 1
    return all(-rank <= d < rank for d in dims)


def _checked(made: Ref, example: object, node: object) -> Ref:
    shape = shape_of(example)
    if made.shape != shape or made.dtype != dtype_code(example):
        raise GraphNotSupported(
            f"{node.name} ({node.target}): lowered to {made.dtype}{made.shape}, the graph says "
            f"{dtype_code(example)}{shape}"
        )
    return made


def _native(args: list, kwargs: dict, *examples: object) -> bool:
    """Whether every array and number in a call has a type that C code handles."""
    given = list(_flat([args, list(kwargs.values())]))
    if any(type(a) is complex for a in given):
        return False
    return all(a.dtype in CTYPES for a in given if isinstance(a, Ref)) and all(
        dtype_code(e) in CTYPES for e in examples if e is not None and is_array(e)
    )


def _looks(node: object, args: list, example: object) -> bool:
    """Whether a call gives parts of an array of a type that C has not, in the same type."""
    made = example if isinstance(example, (tuple, list)) else [example]
    return bool(args) and isinstance(args[0], Ref) and cost_of(node.target) == "view" and all(
        is_array(e) and dtype_code(e) == args[0].dtype for e in made)


def _resolve(env: dict, a: object) -> object:
    if isinstance(a, (list, tuple)):
        return [_resolve(env, x) for x in a]
    try:
        return env[a] if hasattr(a, "op") and hasattr(a, "meta") else a
    except KeyError:
        raise GraphNotSupported(f"{a} is used before it is computed") from None


def _flat(a: object) -> list:
    if isinstance(a, (list, tuple)) and not isinstance(a, Ref):
        return [x for item in a for x in _flat(item)]
    return [a]


def _extern(
    b: Builder, out: Lowered, node: object, args: list, kwargs: dict, example: object
) -> object:
    """A step through the operator's NumPy kernel."""
    # these see strides: draws follow each other as elements lie in memory
    draws = cost_of(node.target) == "random"
    if draws or getattr(node.target, "custom", False) or cost_of(node.target) == "view":
        args = _as_seen(b, args, node.args, draws)
        kwargs = {k: _as_seen(b, v, node.kwargs[k], draws) for k, v in kwargs.items()}
    refs = [a for a in _flat([args, list(kwargs.values())]) if isinstance(a, Ref)]
    many = isinstance(example, (tuple, list))
    examples = list(example) if many else [example]
    if example is None:  # a step that returns nothing: an empty array stands for it
        outs = [((0,), "f")]
        out.kept += [r.value for r in b.call("python", refs, outs, node=node.name,
                                             target=str(node.target))]
        out.externs[node.name] = node
        return None
    if not all(e is None or is_array(e) for e in examples):
        raise GraphNotSupported(f"{node.name} ({node.target}) does not return an array")
    outs = [None if e is None else (shape_of(e), dtype_code(e)) for e in examples]
    made = b.call("python", refs, outs, node=node.name, target=str(node.target))
    out.externs[node.name] = node
    if node.is_impure():
        out.kept += [r.value for r in made if r is not None][:1]
    return made if many else made[0]


def _as_seen(b: Builder, value: object, source: object, draws: bool = False) -> object:
    """Operands in the memory layout that the graph says: a copy may have been left out.  Draws ask
    for the order of elements alone, which parts with gaps have, too."""
    if isinstance(value, (list, tuple)) and not isinstance(value, Ref):
        return [_as_seen(b, v, s, draws) for v, s in zip(value, source)]
    if not isinstance(value, Ref):
        return value
    example = source.meta.get("val")
    strides = tuple(map(whole, example.stride())) if hasattr(example, "stride") else None
    if strides is not None and dense(value.shape, strides):
        return _laid_out(b, value, example)
    if not draws or strides is None or value.dtype not in CTYPES or (
            strides_order(value.shape, strides) == strides_order(value.shape, value.strides)):
        return value
    order = strides_order(value.shape, strides) or range(len(strides))
    look = permute(value, list(order))
    copy = b.add(Value("pointwise", b.fresh_name(), look.shape, look.dtype, "copy", (look,)))
    return permute(copy.ref(), sorted(range(len(order)), key=order.__getitem__))


def _may_alias(target: object) -> bool:
    """Whether what is called may give memory of its first argument in eager mode."""
    return target is operator.getitem or not hasattr(target, "functional") and getattr(
        getattr(target, "op", None), "may_alias", False)


def _base(node: object) -> object:
    """The node whose memory a node may share in eager mode."""
    while node.op == "call_function" and _may_alias(node.target):
        node = node.args[0]
    return node


def _own(b: Builder, ref: Ref, whole_ref: object, node: object, base: object) -> Ref:
    """A copy of a result; of a part with gaps, that part of a copy of all."""
    example = node.meta.get("val")
    gaps = hasattr(example, "stride") and not dense(
        ref.shape, tuple(map(whole, example.stride())))
    if gaps and isinstance(whole_ref, Ref) and whole_ref.value is ref.value and (
            prod(whole_ref.shape) == ref.value.numel and ref.dtype in CTYPES):
        made = _laid_out(b, whole_ref, base.meta.get("val"), own=True)
        if made.strides == whole_ref.strides and made.offset == whole_ref.offset:
            return Ref(made.value, ref.shape, ref.offset, ref.strides)
    return _laid_out(b, ref, example, own=True)


def _outputs(b: Builder, env: dict, value: object, owners: dict) -> list:
    """Refs to return. Two results share memory only where eager execution shares it too."""
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in _outputs(b, env, v, owners)]
    if not (hasattr(value, "op") and hasattr(value, "meta")):
        return [value]
    found, base, out = env[value], _base(value), []
    for ref in (
        found if isinstance(found, (list, tuple)) and not isinstance(found, Ref) else [found]
    ):
        if isinstance(ref, Ref):
            owner = owners.setdefault(ref.value, base)
            if owner is not base or (ref.value.kind == "input" and base.op == "call_function"):
                b.name = value.name
                ref = _own(b, ref, env[base], value, base)
        out.append(ref)
    return out
