"""The loops around the expressions of `emit.py`: rows, walks over a row, vector bodies and tails,
chunk partials, and the function that puts partial results together.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from .blocks import partial
from .emit import _FOLDS, combine, neutral
from .expressions import SCALAR, Operand
from .ir import CTYPES
from .number import compared, declared, divides, rounded_up, varies

if TYPE_CHECKING:
    from .emit import Emitter
    from .kernel import Root
    from .nest import Key


def indent(lines: list[str], depth: int) -> str:
    return "".join(f"{'  ' * depth}{line}\n" for line in lines)


def write_kernel(e: Emitter) -> str:
    """The whole text of a kernel: its function and, if it reduces, the finishing one."""
    walks, rows = e.walks, []
    for n in range(len(walks)):
        e.walk = n
        roots = walks.roots[n]
        rows += _mid_walk(e, roots[0]) if e.kernel.mid else _walk(e, roots)
        for root in walks.late[n]:
            _row_root(e, root)
        rows += e.row
        e.row = []
    return _function(e, rows + e.row_end) + _finish(e)


# ---- the function -----------------------------------------------------------------------------


def _comment(e: Emitter) -> str:
    names, lines, line = e.nodes, [], " *   "
    for name in names:
        if len(line) + len(name) > 96:
            lines.append(line.rstrip())
            line = " *   "
        line += name + " "
    lines.append(line.rstrip())
    outer = " x ".join(map(repr, e.nest.outer)) or "1"
    inner = " x ".join(map(repr, e.nest.middle + e.nest.inner))
    return f"/* {e.name}: {outer} rows of {inner}\n" + "\n".join(lines) + " */\n"


def _outer_indices(e: Emitter) -> list[str]:
    """Loop counters o0.. from the row number r."""
    sizes, lines = e.nest.outer, []
    rest = "r"
    for j in range(len(sizes) - 1, -1, -1):
        if j == 0:
            lines.append(f"int64_t o0 = {rest};")
        else:
            lines.append(f"int64_t o{j} = {rest} % {sizes[j]};")
            lines.append(f"int64_t q{j} = {rest} / {sizes[j]};")
            rest = f"q{j}"
    return lines


def _function(e: Emitter, rows: list[str]) -> str:
    nest = e.nest
    text = indent(e.pointer_lines, 1) + indent(e.once, 1)
    for key, name in e.scratch.items():
        kind = "int32_t" if key[0].dtype in "bu" else CTYPES[key[0].dtype]
        text += f"  {kind} {name}[{e.walks.padded}] __attribute__((aligned(64)));\n"
    if not varies(nest.units) and nest.units == 1:
        text += "  for (int64_t c = begin; c < end; c++) {\n" + indent(e.chunk_start, 2)
        text += indent(_unit_lines(e, "0"), 2) + indent(rows, 2)
    else:
        text += "  for (int64_t c = begin; c < end; c++) {\n" + indent(e.chunk_start, 2)
        stop = f"c * {nest.per_chunk} + {nest.per_chunk}"
        if not divides(nest.per_chunk, nest.units):
            text += f"    int64_t stop = {stop} < {nest.units} ? {stop} : {nest.units};\n"
            stop = "stop"
        text += f"    for (int64_t u = c * {nest.per_chunk}; u < {stop}; u++) {{\n"
        text += indent(_unit_lines(e, "u"), 3) + indent(rows, 3) + "    }\n"
    fence = "  pb_fence();\n" if e.stream else ""
    text += indent(e.chunk_end, 2) + "  }\n" + fence + "}\n"
    head = f"static void {e.name}(void **p, int64_t begin, int64_t end) {{\n"
    return _comment(e) + head + _numbers(e, text) + text


def _numbers(e: Emitter, text: str) -> str:
    """Declarations of the numbers in a text that depend on sizes."""
    return indent(declared(text, lambda: e.place(e.numbers)), 1)


def _unit_lines(e: Emitter, u: str) -> list[str]:
    """Row number and range of columns of one unit of work."""
    nest = e.nest
    lines = []
    if nest.split:
        n, b = nest.inner[-1], nest.block
        lines.append(f"int64_t r = {u} / {nest.blocks}, lo = {u} % {nest.blocks} * {b};")
        lines.append(
            f"int64_t hi = lo + {b};" if divides(b, n) else
            f"int64_t hi = lo + {b} < {n} ? lo + {b} : {n};"
        )
    else:
        lines.append(f"int64_t r = {u};")
    return lines + _outer_indices(e) + e.row_begin


# ---- walks ------------------------------------------------------------------------------------


def _walk(e: Emitter, roots: list[Root]) -> list[str]:
    """One pass over the columns of a row."""
    if not roots:
        return []
    nest = e.nest
    after: list[str] = []
    names = {root: _accumulator(e, root, after) for root in roots if root.how in ("row", "full")}
    L = e.L
    widths, lo, stop, rest = _columns(e)
    bodies, light = [], False
    for width in widths:
        e.flops_weight = 0
        bodies.append((width, _body(e, roots, names, width)))
        light = light or width == L and e.flops_weight <= 10
    lines = e.row
    e.row = []
    depth = 0
    first = nest.outer_count
    for j in range(first, len(nest.sizes) - 1):
        lines.append("  " * depth + f"for (int64_t j{j} = 0; j{j} < {nest.sizes[j]}; j{j}++) {{")
        depth += 1
    pad = "  " * depth
    for width, body in bodies:
        if width == L:
            if names and light and not nest.longest and (
                    compared(nest.inner[-1], ">=", 4 * L) is not False):
                lines += [pad + x for x in _four_at_once(e, roots, names, body, lo, stop)]
                continue
            lines.append(pad + f"for (int64_t i = {lo}; i < {stop}; i += {L}) {{")
        else:
            lines += [pad + x for x in rest]
        lines += [pad + "  " + x for x in body]
        lines.append(pad + "}")
    for d in range(depth - 1, -1, -1):
        lines.append("  " * d + "}")
    return lines + after


def _columns(e: Emitter) -> tuple[list, str, str, list[str]]:
    """How a row is walked: the widths of vectors (whole ones, then what is left), the first column
    and the one after the last that whole ones cover, and how the rest begins."""
    nest, L = e.nest, e.L
    n = nest.inner[-1]
    lo, hi = ("lo", "hi") if nest.split else ("0", str(n))
    if divides(L, n):
        return [L], lo, hi, []
    if varies(n):
        left = f"const int pb_w = (int)({hi} & {L - 1});"
        return [L, "pb_w"], lo, f"({hi} & -{L})", [
            f"if ({hi} & {L - 1}) {{", f"  const int64_t i = {hi} & -{L};", f"  {left}"]
    main = n - n % L
    stop = f"(hi < {main} ? hi : {main})" if nest.split else str(main)
    guard = f"if (hi == {n}) {{" if nest.split else "{"
    return ([L] if main else []) + [n % L], lo, stop, [guard, f"  const int64_t i = {main};"]


def _four_at_once(
    e: Emitter, roots: list[Root], names: dict, body: list[str], lo: str, stop: str
) -> list[str]:
    """A loop with four sets of accumulators, so that one sum does not wait for the other."""
    L, lines, ends = e.L, [], []
    for root, name in names.items():
        v, t = root.value, root.value.dtype
        start = e.writer.splat(Operand(neutral(v.op, t), t, False))
        others = [f"{name}{k}" for k in (1, 2, 3)]
        lines.append(
            f"{e.writer.type_of(t, True)} " + ", ".join(f"{o} = {start}" for o in others) + ";"
        )
        left = combine(v.op, t, name, others[0], L)
        right = combine(v.op, t, others[1], others[2], L)
        grouped = (f"({left})", f"({right})") if not left.startswith(v.op) else (left, right)
        ends.append(f"{name} = {combine(v.op, t, *grouped, L)};")
    at = e.fresh("at")
    lines += [f"int64_t {at} = {lo};", f"for (; {at} + {4 * L} <= {stop}; {at} += {4 * L}) {{"]
    pattern = re.compile(r"\b(" + "|".join(names.values()) + r")\b")
    for k in range(4):
        lines.append(f"  {{ const int64_t i = {at} + {k * L};")
        lines += ["    " + (pattern.sub(rf"\g<1>{k}", x) if k else x) for x in body]
        lines.append("  }")
    lines.append("}")
    if not divides(4 * L, e.nest.inner[-1]):  # otherwise every block is a whole number of fours
        lines.append(f"for (int64_t i = {at}; i < {stop}; i += {L}) {{")
        lines += ["  " + x for x in body] + ["}"]
    return lines + ends


def _body(e: Emitter, roots: list[Root], names: dict, width: int | str) -> list[str]:
    """Statements for one vector of columns; `width` may be a name."""
    e.width, e.body, e.cache[2] = width, [], {}
    for root in roots:
        a = e.value((root.source.value, root.access))
        if root.how == "store":
            _store(e, root, a, width)
        else:
            _accumulate(e, root, a, names.get(root, ""), width)
    for key in e.walks.stores[e.walk]:
        _keep(e, key, width)
    return e.body


def _keep(e: Emitter, key: Key, width: int | str) -> None:
    """Store a value of this walk in scratch memory, for later walks."""
    e.trace.append(("keep", key, width, e.walk))
    a = e.cache[2][key]
    at = f"{e.scratch[key]} + {e._scratch_at()}"
    e.body.append(f"store_{_memory(a.code)}{e.L}({at}, {e.writer.splat(a)});")


def _store(e: Emitter, root: Root, a: Operand, width: int) -> None:
    v, t, L = root.value, root.value.dtype, e.L
    if a.literal:
        a = Operand(a.text, t, False, True)
    a = e.writer.convert(a, t)
    base = e._row_pointer(v, root.target, False)
    terms, stride = e._inner_terms(root.target)
    x = e.writer.splat(a)
    if stride == 1:
        at = " + ".join([base, *terms, "i"])
        if width == L:
            flag = e.stream.get(v, False)
            choice = f"if ({flag}) stream_{t}{L}({at}, {x}); else " if varies(flag) else ""
            kind = "stream" if flag is True else "store"
            e.body.append(f"{choice}{kind}_{t}{L}({at}, {x});")
        else:
            e.body.append(f"storen_{t}{L}({at}, {x}, {width});")
    else:
        at = " + ".join([base, *terms, f"i * {stride}"])
        e.body.append(f"spread_{t}{L}({at}, {stride}, {x}, {width});")


def _kept(e: Emitter, root: Root, a: Operand, width: int) -> str:
    """The operand with lanes past the end set to what does not count."""
    x = e.writer.splat(a)
    if width == e.L:
        return x
    t = "i" if a.code in "bu" else a.code
    rest = e.writer.splat(Operand(neutral(root.value.op, a.code), a.code, False))
    return f"sel_{t}{e.L}(lanes{e.L}() < {width}, {x}, {rest})"


def _accumulate(e: Emitter, root: Root, a: Operand, name: str, width: int) -> None:
    op, t = root.value.op, root.value.dtype
    a = e.writer.convert(a, t) if not a.literal else Operand(a.text, t, False)
    if root.how == "col":
        at = f"{_column_partial(e, root)} + {e._scratch_at()}"
        now = f"load_{_memory(t)}{e.L}({at})"
        e.body.append(
            f"store_{_memory(t)}{e.L}({at}, {combine(op, t, now, e.writer.splat(a), e.L)});"
        )
        return
    e.body.append(f"{name} = {combine(op, t, name, _kept(e, root, a, width), e.L)};")


def _memory(t: str) -> str:
    """Letter under which a register of a type is kept as it is."""
    return "i" if t in "bu" else t


def _accumulator(e: Emitter, root: Root, after: list[str]) -> str:
    """Declare what a row or full reduction adds up in, and what becomes of it."""
    v, t = root.value, root.value.dtype
    name = e.fresh(f"{v.name}_acc")
    start = e.writer.splat(Operand(neutral(v.op, t), t, False))
    declare = f"{e.writer.type_of(t, True)} {name} = {start};"
    fold = f"{_FOLDS[v.op]}_{t}{e.L}({name})"
    if t == "b":
        fold = f"({fold} != 0)"
    if root.how == "row":
        e.row.append(declare)
        out = e.folded[v] = e.fresh(v.name)
        e.trace.append(("fold", v, 0, e.walk))
        after.append(f"{SCALAR[t]} {out} = {fold};")
        if v in e.slot:
            after.append(f"{e.value_pointer(v, False)}[r] = {out};")
        return name
    e.chunk_start.append(declare)
    e.chunk_end.append(f"{_partial(e, root)}[c] = {fold};")
    return name


def _partial(e: Emitter, root: Root) -> str:
    """One number per chunk, put together afterwards in the order of chunks."""
    t = root.value.dtype
    slot = e.temporary(partial(e.nest, root))
    part = e.pointer(slot, t, f"{root.value.name}_part", False)
    out, op, n = e.slot[root.value], root.value.op, e.nest.chunks
    wide = "double" if t == "f" and op in ("sum", "prod") else SCALAR[t]
    e.finish += [
        "{",
        f"  const {CTYPES[t]} *part = p[{e.place(slot)}];",
        f"  {wide} all = part[0];",
        f"  for (int64_t c = 1; c < {n}; c++) all = {combine(op, t, 'all', 'part[c]', 0)};",
        f"  *({CTYPES[t]} *)p[{e.place(out)}] = ({CTYPES[t]})all;",
        "}",
    ]
    return part


def _column_partial(e: Emitter, root: Root) -> str:
    """A row of partial results per chunk."""
    key = ("col", root.value)
    if key in e.row_pointers:
        return e.row_pointers[key]
    t, width, n = root.value.dtype, e.walks.padded, e.nest.chunks
    kind = "int32_t" if t in "bu" else CTYPES[t]
    slot = e.temporary(partial(e.nest, root))
    name = e.row_pointers[key] = e.fresh(f"{root.value.name}_part")
    e.chunk_start += [
        f"{kind} *restrict {name} = ({kind} *)p[{e.place(slot)}] + c * {width};",
        f"for (int64_t i = 0; i < {width}; i += {e.L}) store_{_memory(t)}{e.L}({name} + i, "
        f"{e.writer.splat(Operand(neutral(root.value.op, t), t, False))});",
    ]
    inner = e.nest.inner
    last, line = inner[-1], rounded_up(inner[-1], e.L)
    m, L, op = _memory(t), e.L, root.value.op
    some = compared(last, ">=", L) is not False
    left = f"{last} & {L - 1}" if varies(last) else last % L
    vec = e.writer.type_of(t, True)
    more = f"load_{m}{L}(part + c * {width} + j * {line} + i)"
    e.finish += [
        "{",
        f"  const {kind} *part = p[{e.place(slot)}];",
        f"  {CTYPES[t]} *out = p[{e.place(e.slot[root.value])}];",
        f"  for (int64_t j = 0; j < {prod(inner[:-1])}; j++)",
        f"    for (int64_t i = 0; i < {inner[-1]}; i += {L}) {{",
        f"      {vec} all = load_{m}{L}(part + j * {line} + i);",
        f"      for (int64_t c = 1; c < {n}; c++)",
        f"        all = {combine(op, t, 'all', more, L)};",
        f"      {CTYPES[t]} *o = out + j * {inner[-1]} + i;",
        f"      if (i + {L} <= {last}) store_{t}{L}(o, all);" if some else "",
        "" if divides(L, last) else
        f"      {'else ' if some else ''}storen_{t}{L}(o, all, {left});",
        "    }",
        "}",
    ]
    return name


# ---- once per row -----------------------------------------------------------------------------


def _row_root(e: Emitter, root: Root) -> None:
    """A store or a full reduction whose elements are rows."""
    e.width = e.L
    v, t = root.value, root.value.dtype
    key = (root.source.value, root.access)
    a = e.value(key)
    a = Operand(a.text, t, False) if a.literal else e.writer.convert(a, t)
    if root.how == "store":
        terms = e._terms(root.target, 1)
        text = f"{a.text} != 0" if t == "b" else a.text
        e.row.append(f"{e.value_pointer(v, False)}[{' + '.join(terms) or '0'}] = {text};")
        return
    name = e.fresh(f"{v.name}_acc")
    e.chunk_start.append(f"{SCALAR[t]} {name} = {neutral(v.op, t)};")
    e.row.append(f"{name} = {combine(v.op, t, name, a.text, 0)};")
    e.chunk_end.append(f"{_partial(e, root)}[c] = {name};")


# ---- reductions of middle dimensions ----------------------------------------------------------


def _mid_walk(e: Emitter, root: Root) -> list[str]:
    """Columns stay in vectors while the middle loops run."""
    nest, v, L = e.nest, root.value, e.L
    first, lines = nest.outer_count, []
    acc = e.fresh(f"{v.name}_acc")
    widths, lo, stop, rest = _columns(e)
    texts = [(width, _mid_body(e, root, acc, width)) for width in widths]
    lines += e.row
    e.row = []
    inner_loops = list(range(first + nest.mid_count, len(nest.sizes) - 1))
    pad = ""
    for j in inner_loops:
        lines.append(pad + f"for (int64_t j{j} = 0; j{j} < {nest.sizes[j]}; j{j}++) {{")
        pad += "  "
    for width, body in texts:
        if width == L:
            lines.append(pad + f"for (int64_t i = {lo}; i < {stop}; i += {L}) {{")
        else:
            lines += [pad + x for x in rest]
        lines += [pad + "  " + x for x in body] + [pad + "}"]
    for d in range(len(inner_loops) - 1, -1, -1):
        lines.append("  " * d + "}")
    return lines


def _mid_body(e: Emitter, root: Root, acc: str, width: int | str) -> list[str]:
    nest, v, t, L = e.nest, root.value, root.value.dtype, e.L
    e.width, e.body, e.cache[2] = width, [], {}
    a = e.value((root.source.value, root.access))
    a = Operand(a.text, t, False) if a.literal else e.writer.convert(a, t)
    inside = e.body + [f"{acc} = {combine(v.op, t, acc, e.writer.splat(a), L)};"]
    lines = [
        f"{e.writer.type_of(t, True)} {acc} = "
        f"{e.writer.splat(Operand(neutral(v.op, t), t, False))};"
    ]
    first, pad = nest.outer_count, ""
    for j in range(first, first + nest.mid_count):
        lines.append(pad + f"for (int64_t j{j} = 0; j{j} < {nest.sizes[j]}; j{j}++) {{")
        pad += "  "
    lines += [pad + x for x in inside]
    for d in range(nest.mid_count - 1, -1, -1):
        lines.append("  " * d + "}")
    out = e.value_pointer(v, False)
    at = [f"r * {prod(nest.inner)}"]
    step = nest.inner[-1]
    for j in range(len(nest.sizes) - 2, first + nest.mid_count - 1, -1):
        at.append(f"j{j} * {step}")
        step *= nest.sizes[j]
    place = " + ".join([out, *at, "i"])
    lines.append(
        f"store_{t}{L}({place}, {acc});"
        if width == L
        else f"storen_{t}{L}({place}, {acc}, {width});"
    )
    return lines


def _finish(e: Emitter) -> str:
    if not e.finish:
        return ""
    text = indent([x for x in e.finish if x], 1)
    return f"static void {e.name}_finish(void **p) {{\n{_numbers(e, text)}{text}}}\n"
