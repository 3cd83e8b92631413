"""The steps of an operator call: refresh, check, promote, kernel, wrap, record, link.

`bind_eager` (core/stack.py) takes them in general.  Here each step is a function that gives the
statements which do it for one kind of call, without the tests whose outcome the kinds of the
arguments tell.  Where such a test would have another outcome the statements go `back`: they leave
the call to the general way.  `plan.py` and `fast.py` say for which calls, `unroll.py` makes
functions of the statements.

Variables: `x0`, `x1`, ... the arguments, `a0`, ... the arrays of those that are tensors, `e0`, ...
their edges; `d` the dtype that is computed in, `r` what the kernel gives, `t` the result.
"""

from __future__ import annotations

import re

import numpy as np

from ..core import tape
from ..table.expression import fact_value
from .unroll import indented, unrolled

_PROMOTING = ("default", "float", "real", "bool")
_FACTS = {"shape": "{}.shape", "ndim": "{}.ndim", "dim()": "{}.ndim", "numel()": "{}.size",
          "dtype": "dtype_of({}.dtype)"}  # fmt: skip


class NoPlan(Exception):
    """This kind of call is left to the general way."""


class Call:
    """One kind of call: what is known of its arguments, and what the steps find out.

    `tensors` and `lists` are the positions of tensors and of lists of them, `numbers` those of
    Python numbers in the place of tensors; all others are values, or nothing is known.
    """

    def __init__(self, ov, back: str, names: list[str] | None = None):
        self.ov, self.back = ov, back
        self.x = names or [f"x{i}" for i in range(len(ov.schema.args))]
        self.tensors: list[int] = []
        self.lists: list[int] = []
        self.numbers: dict[int, object] = {}  # position -> a value of the kind
        self.own: dict = {"ov": ov}  # constants of the function
        self.dtype: str | None = None  # of the results, where it is known
        self.floating = False  # is it float32 or float64, and that of all tensors?
        self.refreshed = True  # are views up to date?
        self.depth = 2  # frames up to the first that may be the user's
        self.watched = False  # is it for checkpoints, which are told of every node?
        self.values = list(self.x)  # what the kernel gets

    @property
    def flat(self) -> str:
        """The tuple of all arguments."""
        return f"({''.join(f'{x}, ' for x in self.x)})"

    @property
    def raw(self) -> list[str]:
        """The arguments, arrays for tensors."""
        held = {*self.tensors, *self.lists}
        return [f"a{i}" if i in held else x for i, x in enumerate(self.x)]

    @property
    def outputs(self) -> list[str]:
        """The variables of the results."""
        count = len(self.ov.schema.returns)
        return ["t"] if count == 1 else [f"t{i}" for i in range(count)]

    @property
    def single(self) -> bool:
        """Is the result one tensor?"""
        returns = self.ov.schema.returns
        return len(returns) == 1 and returns[0].is_tensor and not returns[0].is_list

    @property
    def several(self) -> bool:
        """Are there several results, tensors all of them and none in a list?"""
        returns = self.ov.schema.returns
        return len(returns) > 1 and all(r.is_tensor and not r.is_list for r in returns)

    def leave(self, test: str) -> list[str]:
        """Go back if the test holds."""
        return [f"if {test}:", f"    {self.back}"]

    def guarded(self, statement: str) -> list[str]:
        """A statement whose errors are put into our words."""
        return [
            "try:",
            f"    {statement}",
            "except Exception as error:",
            f"    shown = failure($ov, {self.flat}, error)",
            "    if shown is error:",
            "        raise",
            "    raise shown from error",
        ]


# refresh


def refresh(call: Call, i: int) -> list[str]:
    """Bring a tensor up to date and take its array."""
    x = call.x[i]
    return [
        f"if {x}._link is not None and {x}._link.seen != {x}._cell.version:",
        f"    refresh({x})",
        f"a{i} = {x}._payload",
        *call.leave(f"a{i}.__class__ is not ndarray"),
    ]


def refresh_list(call: Call, i: int, given: str) -> list[str]:
    """The same for a list of tensors; `tracked` says whether one has a history."""
    x = call.x[i]
    absent = ["if v is None:", f"    {x}.append(None)", f"    a{i}.append(None)", "    continue"]
    return [
        f"{x}, a{i}, tracked{i} = [], [], False",
        f"for v in {given}:",
        *indented([
            *(absent if call.ov.schema.args[i].optional_items else ()),
            "try:",
            "    if v._link is not None:",
            "        refresh(v)",
            "    a = v._payload",
            "except AttributeError:",
            f"    {call.back}",
            *call.leave("a.__class__ is not ndarray"),
            "if v._edge is not None:",
            f"    tracked{i} = True",
            f"{x}.append(v)",
            f"a{i}.append(a)",
        ]),
        *call.leave(f"not {x}"),
    ]


# check and promote


def same_dtype(call: Call, devices: list[int]) -> list[str]:
    """What creates tensors does so on the CPU; tensors that must be have one dtype."""
    lines = []
    if not call.tensors and not call.lists:
        lines += call.leave(" or ".join(
            ["state.fakes.creates", *(f"{call.x[i]}.type != 'cpu'" for i in devices)]))
    first, *rest = [i for i, _ in call.ov.same_dtype if i in call.tensors] or [None]
    for i in rest:
        lines += call.leave(f"a{i}.dtype is not a{first}.dtype")
    return lines


def promote(call: Call, kinds: list) -> list[str]:
    """Go back with dtypes that would have to be converted; numbers become arrays of the dtype.

    `kinds` are the values of the call that the function is written for.
    """
    ov, rule, tensors = call.ov, call.ov.op.promote, call.tensors
    if rule == "keep" or rule == "same" and ov.is_view:
        return call.leave(f"a{tensors[0]}.dtype in COMPLEX") if ov.real_only and tensors else []
    if rule == "same":
        return _one_dtype(call)
    promoting = [i for i in tensors if i in ov.promoted]
    if call.lists and rule in _PROMOTING and (not tensors or {*call.lists} & {*ov.promoted}):
        return _list_dtype(call)
    if not tensors or ov.dtype_rule is not None or not promoting:
        raise NoPlan
    first = promoting[0]
    given = [kinds[i] for i in ov.promoted if i not in tensors]
    if rule in ("default", "bool") and not any(v is not None for v in given):
        test = "d not in REAL"  # one dtype is what it is
    else:  # whole numbers stay what they are beside whole numbers
        whole = rule in ("default", "bool") and all(type(v) is int for v in given)
        test = f"d is not F32 and d is not F64{' and d is not I64' if whole else ''}"
    lines = [f"d = a{first}.dtype", *call.leave(test)]
    for i in promoting[1:]:
        lines += call.leave(f"a{i}.dtype is not d")
    for i in ov.promoted:
        if i not in tensors and kinds[i] is not None:
            if type(kinds[i]) not in (int, float):
                raise NoPlan
            call.values[i] = f"asarray({call.x[i]}, d)"
    call.dtype = "BOOL" if rule == "bool" else "d"
    return lines + check(call)


def _one_dtype(call: Call) -> list[str]:
    """The dtype of the first tensor, which the operator computes in unless it is a half."""
    ov, schema = call.ov, call.ov.schema
    if call.tensors:
        if ov.dtype_rule is None and len(schema.returns) == 1:
            call.dtype = "d"
        return [f"d = a{call.tensors[0]}.dtype",
                *call.leave(f"d in {'ODD' if ov.real_only else 'HALF'}")]
    if not call.lists:
        return []
    if schema.args[call.lists[0]].optional_items:
        raise NoPlan
    return call.leave(f"a{call.lists[0]}[0].dtype in HALF")


def _list_dtype(call: Call) -> list[str]:
    """`cat` and the like: all of one floating dtype."""
    ov = call.ov
    if ov.dtype_rule is not None or ov.op.promote == "bool" or len(call.lists) != 1:
        raise NoPlan
    (i,) = call.lists
    if call.tensors or ov.schema.args[i].optional_items:
        raise NoPlan
    call.dtype = "d"
    return [
        f"d = a{i}[0].dtype",
        *call.leave("d is not F32 and d is not F64"),
        f"for a in a{i}:",
        *indented(call.leave("a.dtype is not d")),
        *check(call),
    ]


def check(call: Call) -> list[str]:
    """What the entry itself refuses."""
    if call.ov.check is None:
        return []
    call.own["check"] = call.ov.check
    return call.guarded(f"$check({', '.join(call.raw)})")


# kernel


def kernel(call: Call) -> list[str]:
    """Compute `r`: arrays of the right dtype, in rows where the operator promises it."""
    call.own["kernel"] = call.ov.kernel
    return [*call.guarded(f"r = $kernel(np, {', '.join(call.values)})"), *finish(call)]


def finish(call: Call) -> list[str]:
    """Make arrays of the right dtype of what the kernel gave."""
    one = len(call.ov.schema.returns) == 1 and not call.ov.schema.returns[0].is_list
    lines = []
    if call.dtype is None:
        if not call.several:  # those are looked at when they are wrapped
            lines = ["if r.__class__ is not ndarray:", "    r = arrays_only(np, r)"]
    elif one:
        lines = [f"if r.__class__ is not ndarray or r.dtype is not {call.dtype}:",
                 f"    r = finish(np, r, {call.dtype})"]
    else:
        lines = [f"r = finish(np, r, {call.dtype})"]
    if call.ov.in_rows:
        if one:
            lines += ["if r.ndim > 1 and not r.flags.c_contiguous:", "    r = r.copy()"]
        elif not call.several:  # those are looked at when they are wrapped
            lines += ["r = in_rows(r)"]
    return lines


_SIMPLE = re.compile(r"^xp\.(\w+)\((\w+)(?:, (\w+))?\)$")


def array_function(ov, tensors: list[str]) -> str | None:
    """The array function, if any, that an operator is while other arguments have their defaults."""
    op = ov.op
    if op.promote == "bool" or op.ufunc is not None:
        return None if op.promote == "bool" else op.ufunc
    match = _SIMPLE.match(op.run) if isinstance(op.run, str) else None
    if match is None or [m for m in match.groups()[1:] if m] != ov.schema.names or (
            ov.schema.names != tensors):
        return None
    return match[1] if isinstance(getattr(np, match[1], None), np.ufunc) else None


# wrap


def wrap(call: Call) -> list[str]:
    """Make handles of the results."""
    if call.single:
        return ["t = new(Tensor)", "t._payload = r",
                "t._link = t._cell = t._record = t._edge = None"]
    if not call.several:
        return ["t = wrap_all($ov, r)"]
    outs = call.outputs
    arrays = [f"r{i}" for i in range(len(outs))]
    call.own["results"] = call.ov.result_class
    rows = call.ov.in_rows
    lines = [f"{', '.join(arrays)} = r"]
    for t, r in zip(outs, arrays):
        lines += [f"if {r}.__class__ is ndarray:"]
        if rows:
            lines += [f"    if {r}.ndim > 1 and not {r}.flags.c_contiguous:",
                      f"        {r} = {r}.copy()"]
        lines += [f"    {t} = new(Tensor)", f"    {t}._payload = {r}",
                  f"    {t}._link = {t}._cell = {t}._record = {t}._edge = None",
                  "else:",
                  f"    {t} = wrap({'in_rows' if rows else ''}(arrays_only(np, {r})))"]
    return [*lines, f"t = {'$results' if call.ov.result_class else ''}({', '.join(outs)})"]


# record


def record(call: Call) -> list[str]:
    """Give the results their history, if an argument has one and nobody has switched it off."""
    ov = call.ov
    mark = "t._cell = INFERENCE" if call.single else "mark_inference(t)"
    tracked = [f"e{i} is not None" for i in call.tensors] + [f"tracked{i}" for i in call.lists]
    never = ov.never_differentiable or call.dtype == "BOOL"
    if not tracked or ov.rule is None and never:
        return ["if GRADOFF and state.inference:", f"    {mark}"]
    lines = []
    for i in call.tensors:
        x = call.x[i]
        if not call.refreshed:
            lines += [f"if {x}._link is not None:", f"    refresh({x})"]
        lines.append(f"e{i} = {x}._edge")
    lines.append(f"if ({' or '.join(tracked)}) and (not GRADOFF or state.record[0]):")
    if has_node(ov, ov.rule):
        apart = [] if call.single or call.several else [f"{', '.join(call.outputs)} = t"]
        lines += indented([*apart, *history(call)])
    else:
        lines.append(f"    record($ov, {call.flat}, t, 0)")
    return [*lines, "elif GRADOFF and state.inference:", f"    {mark}"]


def has_node(ov, rule) -> bool:
    """Can the node be made in place: known outputs, none of them a list?"""
    returns = ov.schema.returns
    plain = bool(returns) and all(r.is_tensor and not r.is_list for r in returns)
    return rule is not None and plain and not isinstance(ov.op.diff_outputs, str) and any(
        rule.diff_outputs)


def history(call: Call) -> list[str]:
    """Make the node of a call and lead the results to it; `tape.record` says so in general."""
    ov, rule, outs = call.ov, call.ov.rule, call.outputs
    call.own["Node"] = tape.node_class(rule, any(rule.lists), sum(rule.diff_outputs))
    lines, edges, metas, widths, flags = _inputs(call)
    differentiable = [o for o, flag in zip(outs, rule.diff_outputs) if flag]
    floating = [f"{f'{o} is not None and ' if len(outs) > 1 else ''}{o}._payload.dtype in FLOATING"
                for o in differentiable]
    silent = {*ov.op.nondiff, "output"}
    unlisted = {*ov.schema.tensor_positions} - {*rule.inputs}
    if any(ov.schema.args[i].name not in silent for i in unlisted):
        call.own["rule"] = rule
        lines.append(f"refuse($ov, $rule, {call.flat}, 0)")
    if len(outs) > 1:
        lines += [f"d{o} = {test}" for o, test in zip(differentiable, floating)]
        floating = [f"d{o}" for o in differentiable]
    tests = [] if call.floating else [" or ".join(floating)]
    known = {*call.tensors, *call.lists}  # one of them has a history
    if not known or not known <= {*rule.inputs}:
        tests.append(" or ".join(f for f in flags if f))
    body = _node(call, edges, metas, widths, flags)
    for number, (o, test) in enumerate(zip(differentiable, floating)):
        body += [f"{o}._edge = n"] if len(differentiable) == 1 else [
            f"if {test}:", f"    {o}._edge = p = new(Port)", f"    p.node, p.number = n, {number}"]
    if call.watched:  # it takes away what the node has saved
        body += ["if state.observers.checkpoint is not None:",
                 "    state.observers.checkpoint.noted(n)"]
    for test in reversed(tests):
        body = [f"if {test}:", *indented(body)]
    return lines + body


def _inputs(call: Call) -> tuple[list, list, list, list, list]:
    """Statements, then per differentiable input its edges, metadata, width and test for history."""
    lines, edges, metas, widths, flags = [], [], [], [], []
    for i, is_list in zip(call.ov.rule.inputs, call.ov.rule.lists):
        x = call.x[i]
        widths.append(f"len({x})" if is_list else "None")
        if is_list:
            lines += [f"e{i} = [v._edge if isinstance(v, Tensor) else None for v in {x}]",
                      f"f{i} = e{i}.count(None) != len(e{i})"]
            edges.append(f"*e{i}")
            metas.append("*[None if e is None else (v._payload.shape, v._payload.dtype) "
                         f"for v, e in zip({x}, e{i})]")
            flags.append(f"f{i}")
            continue
        if i in call.numbers:
            edges.append("None")
            metas.append("None")
            flags.append("")
            continue
        if i not in call.tensors:
            lines.append(f"e{i} = {x}._edge if isinstance({x}, Tensor) else None")
        data = f"a{i}" if i in call.tensors else f"{x}._payload"
        edges.append(f"e{i}")
        metas.append(f"({data}.shape, d)" if call.floating else
                     f"None if e{i} is None else ({data}.shape, {data}.dtype)")
        flags.append(f"e{i} is not None")
    return lines, edges, metas, widths, flags


def _node(call: Call, edges: list, metas: list, widths: list, flags: list) -> list[str]:
    """Make the node `n`."""
    rule = call.ov.rule
    body = ["n = new($Node)",
            f"n.edges = ({', '.join(edges)},)", f"n.metas = ({', '.join(metas)},)"]
    if any(rule.lists):
        body.append(f"n.widths = [{', '.join(widths)}]")
    saved = {name for _, kind, name, _ in rule.saves if kind == "out"}
    for o, name in zip(call.outputs, rule.outputs):
        if name in saved:
            body += [f"k{o} = new(Tensor)", f"k{o}._payload = {o}._payload",
                     f"k{o}._edge = k{o}._link = k{o}._record = None",
                     f"c = {o}._cell", *_with_cell(o), f"k{o}._cell = c"]
    items = [_saved(call, spec, guard, flags) for spec, guard in zip(rule.saves, rule.guards)]
    body += [f"n.saved = ({''.join(f'{item}, ' for item in items)})", "n.seq = sequence()",
             "n.stamp = CLOCK", "n.hooks = None", "n.level = 0"]
    if call.depth > 2:
        return [*body, f"n.where = place({call.depth + 1})"]
    return [*body, f"f = getframe({call.depth})", "c = f.f_code",
            "if c is CALLER:",  # the user's code that called last: no look at its file
            "    n.where = c, f.f_lasti",
            "elif c.co_filename in users:",
            "    CALLER, n.where = c, (c, f.f_lasti)",
            "else:",
            f"    n.where = place({call.depth + 1})"]


def _with_cell(x: str) -> list[str]:
    """Give a handle a version cell if `c`, the one that it has, is none."""
    return ["if c is None:", f"    {x}._cell = c = new(Cell)",
            "    c.version, c.stamps, c.where = 0, (), None"]


def _saved(call: Call, spec: tuple, guard: tuple, flags: list[str]) -> str:
    """Expression of one saved value."""
    ov, rule = call.ov, call.ov.rule
    _, kind, name, attribute = spec
    if kind == "fact":
        return _fact(call, *name, attribute)
    if kind == "out":
        value = f"k{call.outputs[rule.outputs.index(name)]}"
    else:
        i = ov.schema.names.index(name)
        x = call.x[i]
        lists = kind == "arg" and ov.schema.args[i].is_list
        as_is = kind == "value" or i in call.tensors or i in call.numbers
        # only boxed handles may be rebound later
        value = x if as_is else f"[keep(v) for v in {x}]" if lists else f"keep({x})"
    wanted = [flags[k] for k in guard if flags[k]]
    if not guard or {*wanted} == {*filter(None, flags)}:
        return value  # somebody wants it, or there would be no node
    return f"({value} if {' or '.join(wanted)} else None)" if wanted else "None"


def _fact(call: Call, source: str, tensor: str, attribute: str) -> str:
    """Expression of a fact about an argument or a result."""
    ov = call.ov
    if source == "out":
        t = call.outputs[ov.rule.outputs.index(tensor)]
        if len(call.outputs) == 1 and attribute in _FACTS:
            return _FACTS[attribute].format(f"{t}._payload")
        return f"fact_value({t}, {attribute!r})"
    i = ov.schema.names.index(tensor)
    spec, x = ov.schema.args[i], call.x[i]
    if i in call.numbers:
        return repr(fact_value(call.numbers[i], attribute))
    if i in call.tensors or not (spec.optional or spec.is_list or tensor in ov.op.scalars):
        if attribute == "stride()":
            return f"strides({x})"
        if attribute in _FACTS:
            return _FACTS[attribute].format(f"a{i}" if i in call.tensors else f"{x}._payload")
    return f"fact_value({x}, {attribute!r})"


# link


def link(call: Call) -> list[str]:
    """Tie a view to its base, as `link_views` does in general."""
    ov = call.ov
    if not ov.is_view:
        return []
    general = f"link_views($ov, {call.flat}, t, 0)"
    if not call.single or ov.op.absolute or ov.op.diff_outputs == (False,):
        return [general]
    x = call.x[0]
    step = f"($ov, ({''.join(f'{v}, ' for v in call.x[1:])}), None)"
    return [
        f"c, l = {x}._cell, {x}._link",
        "if REPLAYS or c is INFERENCE or GRADOFF and state.inference or (",
        "    l is not None and l.__class__ is not Link):",
        f"    {general}",
        "    return t",
        *_with_cell(x),
        "k = new(Link)",
        "if l is None:",
        f"    k.base, k.of, k.multi, k.hidden = {x}, a0, False, None",
        f"    k.steps = one_more(None, {step})",
        "else:",
        "    k.base, k.of, k.multi, k.hidden = l.base, l.of, l.multi, l.hidden",
        f"    k.steps = one_more(l.steps, {step})",
        "if GRADOFF and not state.record[0]:",
        '    k.hidden = "no_grad"',
        f"    if {x}._edge is not None:",
        "        t._edge = Blind()",
        "k.seen = c.version",
        "t._cell, t._link = c, k",
    ]


# the steps of a call that writes its first argument: in the place of wrap, record and link


def may_write(call: Call) -> list[str]:
    """Go back with every write that is recorded or might be refused; `fill` may do it by itself."""
    if 0 not in call.tensors:
        raise NoPlan
    tracked = [f"{call.x[i]}._edge is not None" for i in call.tensors]
    tracked += [f"tracked{i}" for i in call.lists]
    tracked.append("k is not None and (k.__class__ is not Link or k.base._edge is not None)")
    lines = [
        "k = x0._link",
        *call.leave(f"({' or '.join(tracked)}) and (not GRADOFF or state.record[0])"),
        *call.leave("0 in a0.strides or x0._cell is INFERENCE"),
    ]
    if call.ov.op.fill is not None:
        call.own["fill"] = call.ov.op.fill
        lines += [*call.guarded(f"done = filled(x0, $fill, ({', '.join(call.raw)},))"),
                  "if done:", "    return x0"]
    return lines


def write(call: Call) -> list[str]:
    """Put `r` into the first argument."""
    return [
        *call.leave("r.shape != a0.shape or r.dtype is not a0.dtype"),
        "bump(x0)",  # first: an interrupt between the two must not hide the write
        "try:",
        "    copyto(a0, r)",
        "except ValueError:",  # memory that must not be written
        f"    {call.back}",
        "return x0",
    ]


# the record step alone


def recorder(ov, rule):
    """`record(flat, out)` for one operator, where its node can be made in place, else None."""
    if not has_node(ov, rule):
        return None
    call = Call(ov, "")
    call.depth = 4  # the recorder, record, bind, the operator: then maybe the user
    lines = [f"{call.flat} = flat", f"{', '.join(call.outputs)} = out", *history(call)]
    return unrolled(f"recorder of {ov.name}", "record(flat, out)", lines, call.own)
