"""The command line, `python -m pullback`: look at the operator table, run the demonstration.

    python -m pullback table                 all operators
    python -m pullback table tanh            one, with everything derived from its entry
    python -m pullback table tanh --yaml     its derivative in the classic layout
    python -m pullback show FILE             the text of an exported program
    python -m pullback run FILE [ARGS]       run a program that says `import torch`
    python -m pullback run -m MODULE [ARGS]  the same for a module
    python -m pullback demo                  train a small transformer
    python -m pullback version
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import linecache
import os
import sys
from pathlib import Path

from . import __version__, derivatives
from .core.op import Op, aliases, families, registry
from .core.overload import OpOverload, overload_of
from .table.derivative import DEFAULT, split

Section = tuple[str, list[str]]  # a label and its lines


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["run"] and arguments[1:2] not in ([], ["-h"], ["--help"]):
        return run_program(arguments[1:])  # all that follows is the program's
    parser = argparse.ArgumentParser(
        prog="pullback", description="Automatic differentiation of Python array programs.")
    commands = parser.add_subparsers(dest="command", title="commands")
    table = commands.add_parser("table", help="print the operator table, or one entry of it")
    table.add_argument("op", nargs="?", help="an operator (tanh) or an overload (mul.Tensor)")
    table.add_argument("--yaml", action="store_true", help="in the classic derivatives.yaml layout")
    show = commands.add_parser("show", help="print an exported program")
    show.add_argument("file", help="a file or a folder that pullback.export.save has written")
    commands.add_parser("version", help="print the version")
    commands.add_parser("run", usage="pullback run (FILE | -m MODULE) [ARGS]",
                        help="run a program that says `import torch`, unchanged")
    commands.add_parser("demo", help="train a small transformer; takes its options too",
                        add_help=False)
    chosen, rest = parser.parse_known_args(arguments)
    if rest and chosen.command != "demo":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    code = 0
    try:
        if chosen.command == "table":
            code = show_table(chosen.op, chosen.yaml)
        elif chosen.command == "show":
            code = show_program(chosen.file)
        elif chosen.command == "version":
            print(f"pullback {__version__}")
        elif chosen.command == "demo":
            code = run_demo(rest)
        elif chosen.command == "run":
            parser.error("run wants a file, or -m and a module")
        else:
            parser.print_help()
        sys.stdout.flush()  # all of it: what is left until the end fails outside of this block
        return code
    except BrokenPipeError:  # `... | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


# show, run, demo


def show_program(path: str) -> int:
    """Print the text of an exported program, once it has been checked."""
    from . import errors
    from .export import load
    from .export.text import program_text

    try:
        print(program_text(load(path)), end="")
    except (errors.FileFormatError, OSError) as error:
        print(f"pullback show: {error}", file=sys.stderr)
        return 1
    return 0


def run_program(arguments: list[str]) -> int:
    """Run a file, or `-m` a module, in which `import torch` means this package."""
    import runpy

    from . import install_as_torch
    by_name = arguments[0] == "-m"
    program = arguments[1] if by_name and len(arguments) > 1 else arguments[0]
    if program == "-m" or not by_name and not Path(program).exists():
        print(f"pullback run: there is no file {program!r}" if program != "-m" else
              "pullback run: -m wants the name of a module", file=sys.stderr)
        return 2
    before = sys.argv, sys.path[:]
    sys.argv = [program, *arguments[1 + by_name:]]
    # the place that Python itself would look in first
    sys.path.insert(0, os.getcwd() if by_name else str(Path(program).resolve().parent))
    try:
        with install_as_torch():
            if by_name:
                runpy.run_module(program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(program, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before
    return 0


def run_demo(arguments: list[str]) -> int:
    """Run the example of the checkout that this package is part of."""
    path = Path(__file__).resolve().parent.parent / "examples" / "chargpt.py"
    if not path.exists():
        print(f"There is no {path.parent.name}/{path.name} beside the package: the demonstration "
              "comes with a checkout of the repository, not with the installed package.",
              file=sys.stderr)
        return 1
    import runpy
    before = sys.argv
    sys.argv = [str(path), *arguments]
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv = before
    return 0


# table


def show_table(name: str | None, as_yaml: bool) -> int:
    """Print the whole table, or the entries of one operator."""
    if name is None:
        if as_yaml:
            derivatives.dump(sys.stdout)
        else:
            _print_list([overload_of(op) for op in registry.values()])
        return 0
    found, remark = find(name)
    if not found:
        print(remark, file=sys.stderr)
        return 2
    if remark:
        print(f"# {remark}" if as_yaml else remark)
    if as_yaml:
        derivatives.dump(sys.stdout, found)
        return 0
    for overload in found:
        _print_entry(overload)
    return 0


def find(name: str) -> tuple[list[OpOverload], str]:
    """The overloads that a name stands for and a remark; none and a message if it is unknown."""
    name = name.removeprefix("aten.").removeprefix("aten::").removesuffix(".default")
    if name in registry:
        return [overload_of(registry[name])], ""
    base, dot, overload = name.partition(".")
    remark = ""
    if base not in families and base in aliases:
        base, remark = aliases[base], f"{base} is another name of {aliases[base]}"
    elif base not in families and base.endswith("_") and base[:-1] in families:
        base, remark = base[:-1], f"{base} is derived from {base[:-1]}"
    entries = [overload_of(op) for op in families.get(base, [])
               if not dot or op.full_name == f"{base}.{overload}"]
    if entries:
        return entries, remark
    if base in families:
        near = [op.full_name for op in families[base]]
        return [], f"operator '{base}' has no overload '{overload}'; it has {', '.join(near)}"
    near = difflib.get_close_matches(base, [*families, *aliases], 5, 0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "`python -m pullback table` lists all"
    return [], f"the table has no operator '{name}'; {hint}"


def describe(overload: OpOverload) -> list[Section]:
    """An entry and everything that is derived from it."""
    op = overload.op
    sections = [
        ("kind", [op.kind + (", not pure" if not op.pure else "")]),
        ("kernel", _rule_text(op, "compose" if overload.is_composite else "run")),
        ("promotion", [op.promote]),
        *_derivative(overload),
        ("in-place", [f"{op.base_name}_"] if op.inplace else ["none"]),
        ("out=", [f"{op.base_name}(..., out=)"] if not overload.is_view else ["none (a view)"]),
        ("vmap", _batching(overload)),
        ("shape rule", _shape(overload)),
        ("decomposition", _rule_text(op, "compose" if overload.is_composite else "decomp")),
        ("C", _native(op)),
        ("cost", [op.cost]),
        ("also as", list(op.aliases)),
        ("samples", [_samples(op)]),
        ("defined in", [_place(op)]),
    ]
    return [(label, lines) for label, lines in sections if lines]


def _derivative(overload: OpOverload) -> list[Section]:
    op = overload.op
    how, texts = derivatives.forward_mode(overload)
    forward = [how or "none", *(f"  {name}: {text}" for name, text in texts.items())]
    if overload.is_composite:
        return [("gradient", ["by its parts"]), ("forward mode", forward)]
    rule, lines = overload.rule, []
    if rule is not None:
        for key, formulas in rule.formulas.items():
            lines += [f"for {key}:"] if key != DEFAULT else []
            for f in formulas:
                lines += [f"{', '.join(f.names)}: {f.text}", f"  saves {_saved(rule, f)}"]
            lines += [f"{name}: zero" for name in rule.parts[key].constant]
    lines += [f"{', '.join(op.nondiff)}: not differentiable"] if op.nondiff else []
    outputs = []
    if isinstance(op.diff_outputs, str):
        outputs = [f"differentiable if {op.diff_outputs}"]
    elif rule is not None and not all(rule.diff_outputs):
        varying = [n for n, d in zip(rule.outputs, rule.diff_outputs) if d]
        outputs = [f"differentiable: {', '.join(varying)}"]
    return [("gradient", lines or ["none"]), ("outputs", outputs), ("forward mode", forward),
            ("node", [rule.name] if rule is not None else [])]


def _saved(rule, formula) -> str:
    """What a formula keeps in memory until backward."""
    facts = [f"{t}.{a}" for t, a in sorted(formula.scan.facts)]
    names = {*formula.uses(), *formula.scan.optional} & {*rule.arguments, *rule.outputs}
    sizes = [n for n in sorted(names) if n in rule.arguments and not rule.arguments[n].is_tensor]
    tensors = [n for n in sorted(names) if n not in sizes]
    return ", ".join([*tensors, *facts, *sizes]) or "nothing"


def _rule_text(op: type[Op], attribute: str) -> list[str]:
    """An expression as it is written, a function by its place."""
    rule = inspect.getattr_static(op, attribute)
    if rule is None:
        return ["none"]
    if isinstance(rule, str):
        return [rule]
    code = getattr(getattr(rule, "__func__", rule), "__code__", None)
    if code is None:
        return [repr(rule)]
    return [f"function {code.co_name}, {_short(code.co_filename)}:{code.co_firstlineno}"]


def _batching(overload: OpOverload) -> list[str]:
    op = overload.op
    if overload.is_composite:
        return ["by its parts"]
    if overload.is_random:
        return ["draws per example, or once, as `randomness` says"]
    if op.batch is not None:
        return _rule_text(op, "batch")
    if op.kind == "pointwise":
        return ["element-wise: the hidden dimension is one more"]
    return ["by its decomposition" if overload.decomposition else "one call per example"]


def _shape(overload: OpOverload) -> list[str]:
    if overload.op.shape is not None:
        return _rule_text(overload.op, "shape")
    known = {"composite": "by its parts", "pointwise": "broadcast", "view": "the kernel itself"}
    return [known.get(overload.kind, "by its decomposition" if overload.decomposition else "none")]


def _native(op: type[Op]) -> list[str]:
    if op.c is not None:
        return [op.c]
    if op.kind == "composite":
        return ["by its parts"]
    if op.lower is not None:
        return ["a rule of pullback.compile"]
    return ["by its decomposition" if op.decomp is not None else "none: the kernel runs as a step"]


def _samples(op: type[Op]) -> str:
    if op.samples is None:
        return "none"
    from .testing.samples import cases
    return f"{len(cases(op))}, real{' and complex' if op.complex else ''}"


def _short(path: str) -> str:
    root = Path(__file__).resolve().parent.parent
    try:
        return str(Path(path).resolve().relative_to(root))
    except ValueError:
        return path


def _place(op: type[Op]) -> str:
    try:
        path, head = inspect.getsourcefile(op), f"class {op.__name__}("
        number = next((n for n, line in enumerate(linecache.getlines(path), 1)
                       if line.startswith(head)), None)
        return f"{_short(path)}:{number or inspect.getsourcelines(op)[1]}"
    except (OSError, TypeError):
        return op.__module__


# printing


def _console():
    """A rich console in a terminal, None elsewhere or without rich."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(highlight=False)


def _print_entry(overload: OpOverload) -> None:
    doc, sections = inspect.getdoc(overload.op) or "", describe(overload)
    console = _console()
    if console is None:
        print(f"{overload.schema}\n  {doc.splitlines()[0] if doc else ''}")
        for label, lines in sections:
            for i, line in enumerate(lines):
                print(f"  {label if i == 0 else '':<14}{line}")
        print()
        return
    from rich.markup import escape
    from rich.panel import Panel
    from rich.table import Table
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column()
    for label, lines in sections:
        grid.add_row(label, escape("\n".join(lines)))
    console.print(Panel(grid, title=f"[bold]{escape(str(overload.schema))}[/]", title_align="left",
                        subtitle=escape(doc.splitlines()[0]) if doc else None))


COLUMNS = ("operator", "kind", "gradient", "forward mode")


def _row(overload: OpOverload) -> tuple[str, str, str, str]:
    op = overload.op
    gradient = ("parts" if overload.is_composite else ", ".join(
        n for key in op.grad for n in split(key)) or ("zero" if op.constant else "-"))
    return op.full_name, op.kind, gradient, derivatives.forward_mode(overload)[0] or "-"


def _print_list(overloads: list[OpOverload]) -> None:
    rows = [_row(o) for o in overloads]
    console = _console()
    if console is None:
        widths = [max(len(r[i]) for r in [COLUMNS, *rows]) for i in range(len(COLUMNS))]
        for row in [COLUMNS, *rows]:
            print("  ".join(text.ljust(w) for text, w in zip(row, widths)).rstrip())
        return
    from rich.table import Table
    title = f"{len(overloads)} operators, {len(rows) - len(overloads)} not provided"
    table = Table(title=title, header_style="bold cyan", box=None)
    for column in COLUMNS:
        table.add_column(column, no_wrap=column == "operator")
    for row in rows:
        table.add_row(*row)
    console.print(table)
