"""Recording, unrolled: a generated function per operator that makes its node.

For operators of one tensor output whose tensor arguments are no lists, at level 0; `tape.record`
says in general what these functions do for one operator.  Read next: `fast.py`, which does the
same for whole calls.
"""

from __future__ import annotations

from . import dtype as dt
from .expression import fact_value
from .handle import Tensor, cell_of, make
from .state import fast, sequence

_FLOATING = {d.np for d in dt.ALL if d.category >= 2}
_DIRECT = {"shape": "._data.shape", "ndim": "._data.ndim", "numel()": "._data.size"}


def compile_recorder(ov, rule, tape):
    """`record(flat, out)` for one operator, or None if it is not of the simple kind."""
    returns, op = ov.schema.returns, ov.op
    if any(rule.lists) or len(returns) != 1 or returns[0].is_list or not returns[0].is_tensor:
        return None
    if rule.diff_outputs != [True] or isinstance(op.diff_outputs, str):
        return None
    space = {
        "Tensor": Tensor,
        "Node": tape.node_class(rule),
        "new": object.__new__,
        "FLOATING": _FLOATING,
        "rule": rule,
        "overload": ov,
        "sequence": sequence,
        "counters": fast,
        "place": tape.place,
        "keep": tape.keep,
        "make": make,
        "cell_of": cell_of,
        "fact_value": fact_value,
        "refuse": tape.refuse_unlisted,
    }
    exec(compile(_source(ov, rule), f"<pullback recorder of {ov.name}>", "exec"), space)
    return space["record"]


def _source(ov, rule) -> str:
    args = ov.schema.args
    edges = [f"e{i}" for i in rule.inputs]
    metas = [f"None if e{i} is None else (x{i}._data.shape, x{i}._data.dtype)" for i in rule.inputs]
    lines = [
        "def record(flat, out):",
        f"    ({''.join(f'x{i}, ' for i in range(len(args)))}) = flat",
    ]
    lines += [f"    e{i} = x{i}._edge if isinstance(x{i}, Tensor) else None" for i in rule.inputs]
    lines += ["    if out._data.dtype not in FLOATING:", "        return"]
    if set(ov.schema.tensor_positions) - set(rule.inputs):
        lines.append("    refuse(overload, rule, flat, 0)")
    lines += [
        f"    if {' and '.join(f'{e} is None' for e in edges)}:",
        "        return",
        "    n = new(Node)",
        "    n.rule = rule",
        f"    n.edges = ({''.join(f'{e}, ' for e in edges)})",
        f"    n.metas = ({''.join(f'{m}, ' for m in metas)})",
    ]
    items = [_saved(ov, rule, spec, guard) for spec, guard in zip(rule.saves, rule.guards)]
    if any(kind == "out" for _, kind, _, _ in rule.saves):
        lines += ["    kept = make(out._data)", "    kept._cell = cell_of(out)"]
    lines += [
        f"    n.saved = ({''.join(f'{item}, ' for item in items)})",
        "    n.seq = sequence()",
        '    n.stamp = counters["CLOCK"]',
        "    n.hooks = None",
        "    n.level = 0",
        "    n.where = place(5)",  # recorder, record, bind, the operator: then maybe the user
        "    out._edge = n",
    ]
    return "\n".join(lines)


def _saved(ov, rule, spec: tuple, guard: tuple) -> str:
    """Expression of one saved value."""
    _, kind, name, attribute = spec
    if kind == "fact":
        source, tensor = name
        if source == "out":
            return f"fact_value(out, {attribute!r})"
        i = ov.schema.names.index(tensor)
        always = not ov.schema.args[i].optional and tensor not in ov.op.scalars
        direct = _DIRECT.get(attribute) if always else None
        return f"x{i}{direct}" if direct else f"fact_value(x{i}, {attribute!r})"
    wanted = " or ".join(f"e{rule.inputs[k]} is not None" for k in guard)
    if kind == "out":
        value = "kept"
    else:
        i = ov.schema.names.index(name)
        lists = kind == "arg" and ov.schema.args[i].is_list
        value = (
            f"x{i}" if kind == "value" else f"[keep(v) for v in x{i}]" if lists else f"keep(x{i})"
        )
    return f"{value} if {wanted} else None" if wanted else value
