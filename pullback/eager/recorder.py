"""Recording, unrolled: a generated function per operator that makes its node.

For operators that return tensors, not lists of them, at level 0; `tape.record` says in general
what these functions do for one operator.  Read next: `fast.py`, which does the
same for whole calls.
"""

from __future__ import annotations

import numpy as np

from ..array import dtype as dt
from ..core.expression import fact_value
from ..core.handle import Tensor, cell_of, make
from ..core.state import fast, sequence

_FLOATING = {d.np for d in dt.ALL if d.category >= 2}
_DIRECT = {"shape": "{}._data.shape", "ndim": "{}._data.ndim", "numel()": "{}._data.size",
           "dtype": "dtype_of({}._data.dtype)", "stride()": "strides({})"}  # fmt: skip


def is_simple(ov, rule) -> bool:
    """Are the outputs tensors, none of them a list, and is it known which are differentiable?"""
    plain = all(r.is_tensor and not r.is_list for r in ov.schema.returns)
    return plain and bool(ov.schema.returns) and not isinstance(ov.op.diff_outputs, str)


def names_for(ov, rule, tape) -> dict:
    """What the statements of a recorder refer to, beside what all generated code knows."""
    return {
        "Node": tape.node_class(rule, any(rule.lists), sum(rule.diff_outputs)),
        "rule": rule,
        "overload": ov,
        "place": tape.place,
        "port": tape.port,
        "keep": tape.keep,
        "refuse": tape.refuse_unlisted,
    }


def compile_recorder(ov, rule, tape):
    """`record(flat, out)` for one operator, or None if it is not of the simple kind."""
    if not is_simple(ov, rule) or not any(rule.diff_outputs):
        return None
    outs = outputs(ov)
    lines = [
        "def record(flat, out):",
        f"    ({''.join(f'x{i}, ' for i in range(len(ov.schema.args)))}) = flat",
        f"    {', '.join(outs)} = out",
        # recorder, record, bind, the operator: then maybe the user
        *(f"    {line}" for line in statements(ov, rule, 5)),
    ]
    return compiled("record", lines, names_for(ov, rule, tape), f"recorder of {ov.name}")


def outputs(ov) -> list[str]:
    """The variables of the outputs in generated code."""
    count = len(ov.schema.returns)
    return ["t"] if count == 1 else [f"t{i}" for i in range(count)]


def compiled(name: str, lines: list[str], own: dict, title: str):
    """A generated function: `own` are its constants, `fast` its globals, counters included."""
    source = [f"def factory({', '.join(own)}):", *(f"    {line}" for line in lines)]
    source.append(f"    return {name}")
    exec(compile("\n".join(source), f"<pullback {title}>", "exec"), fast)
    return fast.pop("factory")(**own)


def statements(ov, rule, depth: int, arrays: list[int] = ()) -> list[str]:
    """Statements that give the outputs their history, given the arguments `x0`, `x1`, ...

    `depth` is the number of frames up to the first that may be the user's; `arrays` are the
    arguments that are known to be tensors, with the plain arrays `a0`, `a1`, ... as their memory.
    """
    outs, lines, flags, edges, metas, widths = outputs(ov), [], [], [], [], []
    for i, is_list in zip(rule.inputs, rule.lists):
        if is_list:
            lines += [
                f"e{i} = [v._edge if isinstance(v, Tensor) else None for v in x{i}]",
                f"f{i} = e{i}.count(None) != len(e{i})",
            ]
            flags.append(f"f{i}")
            edges.append(f"*e{i}")
            metas.append(
                "*[None if e is None else (v._data.shape, v._data.dtype) "
                f"for v, e in zip(x{i}, e{i})]"
            )
            widths.append(f"len(x{i})")
        else:
            known = i in arrays
            test = "" if known else f" if isinstance(x{i}, Tensor) else None"
            lines.append(f"e{i} = x{i}._edge{test}")
            flags.append(f"e{i} is not None")
            edges.append(f"e{i}")
            data = f"a{i}" if known else f"x{i}._data"
            metas.append(f"None if e{i} is None else ({data}.shape, {data}.dtype)")
            widths.append("None")
    differentiable = [o for o, flag in zip(outs, rule.diff_outputs) if flag]
    several = len(differentiable) > 1
    test = [
        f"{f'{o} is not None and ' if len(outs) > 1 else ''}{o}._data.dtype in FLOATING"
        for o in differentiable
    ]
    lines.append(f"if {' or '.join(test)}:")
    silent = {*ov.op.nondiff, "output"}
    if any(ov.schema.args[i].name not in silent
           for i in set(ov.schema.tensor_positions) - set(rule.inputs)):
        flat = f"({''.join(f'x{i}, ' for i in range(len(ov.schema.args)))})"
        lines.append(f"    refuse(overload, rule, {flat}, 0)")
    body = [
        "n = new(Node)",
        "n.rule = rule",
        f"n.edges = ({''.join(f'{e}, ' for e in edges)})",
        f"n.metas = ({''.join(f'{m}, ' for m in metas)})",
    ]
    if any(rule.lists):
        body.append(f"n.widths = [{', '.join(widths)}]")
    saved_outs = {name for _, kind, name, _ in rule.saves if kind == "out"}
    for o, name in zip(outs, rule.outputs):
        if name in saved_outs:
            body += [f"k{o} = make({o}._data)", f"k{o}._cell = cell_of({o})"]
    items = [_saved(ov, rule, spec, guard, flags, arrays)
             for spec, guard in zip(rule.saves, rule.guards)]
    body += [
        f"n.saved = ({''.join(f'{item}, ' for item in items)})",
        "n.seq = sequence()",
        "n.stamp = CLOCK",
        "n.hooks = None",
        "n.level = 0",
        f"n.where = place({depth})",
    ]
    for number, (o, floating) in enumerate(zip(differentiable, test)):
        body += [f"if {floating}:", f"    {o}._edge = port(n, {number})"] if several else [
            f"{o}._edge = n"
        ]
    lines.append(f"    if {' or '.join(flags)}:")
    return lines + [f"        {line}" for line in body]


def _saved(ov, rule, spec: tuple, guard: tuple, flags: list[str], arrays: list[int]) -> str:
    """Expression of one saved value."""
    _, kind, name, attribute = spec
    if kind == "fact":
        source, tensor = name
        if source == "out":
            return f"fact_value({outputs(ov)[rule.outputs.index(tensor)]}, {attribute!r})"
        i = ov.schema.names.index(tensor)
        always = not ov.schema.args[i].optional and tensor not in ov.op.scalars
        direct = _DIRECT.get(attribute) if always and not ov.schema.args[i].is_list else None
        return direct.format(f"x{i}") if direct else f"fact_value(x{i}, {attribute!r})"
    wanted = " or ".join(flags[k] for k in guard)
    if kind == "out":
        value = f"k{outputs(ov)[rule.outputs.index(name)]}"
    else:
        i = ov.schema.names.index(name)
        lists = kind == "arg" and ov.schema.args[i].is_list
        as_is = kind == "value" or i in arrays  # only boxed handles may be rebound later
        value = f"x{i}" if as_is else f"[keep(v) for v in x{i}]" if lists else f"keep(x{i})"
    return f"({value} if {wanted} else None)" if wanted else value


def strides(t: Tensor) -> tuple[int, ...]:
    """The steps between elements of a tensor."""
    data = t._data
    if type(data) is not np.ndarray:
        return t.stride()
    size, steps = data.itemsize, data.strides
    if len(steps) == 2:
        return steps[0] // size, steps[1] // size
    return (*[step // size for step in steps],)


fast.update(
    strides=strides,
    dtype_of=dt.of,
    Tensor=Tensor,
    FLOATING=_FLOATING,
    new=object.__new__,
    isinstance=isinstance,
    len=len,
    zip=zip,
    sequence=sequence,
    make=make,
    cell_of=cell_of,
    fact_value=fact_value,
)
