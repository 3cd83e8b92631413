"""`check(op, args)`: the checks of the table over an operation of the user's.

    report = check(my_op, (x, 2.0))      # raises CheckFailed with the whole report
    print(report)

The operation is a registered operator, an `autograd.Function` or any function of tensors.  It is
put into an entry like the table's, with the given arguments as its one sample, so that the checks
of `kit.py` apply; a property that the operation does not offer (no `vmap` rule, no fake) is
reported as refused, which is no failure.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from .. import errors, func
from ..array import dtype as dt
from ..array.fake import fake_like
from ..autograd.function import Function
from ..core.handle import Tensor, make
from ..core.op import Op
from ..core.overload import overload_of
from ..core.stack import bind
from . import kit
from .kit import CheckFailed
from .samples import Case, cases, host, place

OpCheckError = CheckFailed  # as PyTorch calls what `library.opcheck` raises

_REFUSALS = (
    NotImplementedError,
    errors.NotDifferentiable,
    errors.DataDependentError,
    errors.TransformError,
)


@dataclass
class Row:
    """One property: "success", "refused", "skipped" or "failed", and why."""

    name: str
    status: str
    what: str
    detail: str = ""


@dataclass
class Report:
    """What `check` found; prints as a table."""

    title: str
    rows: list[Row] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Did nothing fail?"""
        return not any(row.status == "failed" for row in self.rows)

    def __str__(self) -> str:
        marks = {"success": "ok", "refused": "refused", "skipped": "-", "failed": "FAILED"}
        lines = [self.title]
        for row in self.rows:
            lines.append(f"  {row.name:<13}{marks[row.status]:<9}{row.what}")
            lines += [f"      {line}" for line in row.detail.splitlines()]
        return "\n".join(lines)


def check(op, args=None, kwargs=None, *, checks=None, dtypes=None, raise_on_failure: bool = True):
    """Check an operation on sample arguments and return a `Report`; failures raise `CheckFailed`.

    Floating arguments are checked in double precision.  With an entry of the table in place of an
    operation the entry's own samples are used, and `args` may name the checks.
    """
    if isinstance(op, type) and issubclass(op, Op):
        kit.check(op, checks or args, dtypes)
        return None
    entry = _entry(op, tuple(args or ()), dict(kwargs or {}))
    report = Report(f"{entry.full_name}{_described(args or (), kwargs or {})}")
    for name in checks or CHECKS:
        test, what = CHECKS[name]
        report.rows.append(_row(name, test, what, entry))
    if raise_on_failure and not report.ok:
        raise CheckFailed(str(report))
    return report


def _row(name: str, test, what: str, entry) -> Row:
    (case,) = cases(entry, dt.float64)
    if entry.writes and name in ("gradient", "forward", "second_order", "vmap"):
        return Row(name, "skipped", "the operator writes its arguments")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = test(entry, case, dt.float64)
    except CheckFailed as failure:
        return Row(name, "failed", what, str(failure))
    except _REFUSALS as refusal:
        return Row(name, "refused", str(refusal).splitlines()[0])
    except Exception as error:
        return Row(name, "failed", what, f"{type(error).__name__}: {error}")
    return Row(name, "skipped", found) if isinstance(found, str) else Row(name, "success", what)


def _described(args, kwargs) -> str:
    def show(value) -> str:
        if isinstance(value, Tensor):
            return f"{value.dtype.name}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(show(v) for v in value)}]"
        return repr(value)

    parts = [show(a) for a in args] + [f"{k}={show(v)}" for k, v in kwargs.items()]
    return f"({', '.join(parts)})"


# an operation as an entry


def _is_tensors(value) -> bool:
    full = isinstance(value, (list, tuple)) and len(value) > 0
    return full and all(isinstance(v, Tensor) for v in value)


def _double(value):
    if isinstance(value, (list, tuple)):
        return [_double(v) for v in value]
    array = host(value)
    if value.dtype.category >= 2:
        array = array.astype(np.complex128 if value.dtype.is_complex else np.float64)
    return place(array)


def _entry(op, args: tuple, kwargs: dict) -> type[Op]:
    """An entry whose definition is a call of the operation; only tensors are its arguments."""
    definition = getattr(op, "definition", op)
    call = op.apply if isinstance(op, type) and issubclass(op, Function) else op
    values = [*args, *kwargs.values()]
    keys = list(kwargs)
    chosen = [i for i, v in enumerate(values) if isinstance(v, Tensor) or _is_tensors(v)]

    def compose(*tensors):
        full = list(values)
        for i, t in zip(chosen, tensors):
            full[i] = type(values[i])(t) if isinstance(values[i], (list, tuple)) else t
        return call(*full[: len(args)], **dict(zip(keys, full[len(args) :])))

    types = ["Tensor" if isinstance(values[i], Tensor) else "Tensor[]" for i in chosen]
    name = getattr(definition, "_qualname", None) or getattr(op, "__name__", type(op).__name__)
    entry = type(
        "given",
        (Op,),
        {
            "kind": "composite",
            "compose": staticmethod(compose),
            "samples": staticmethod(
                lambda maker: [Case(tuple([_double(values[i]) for i in chosen]))]
            ),
        },
    )
    names = getattr(getattr(op, "schema", None), "names", None) or []
    names = [names[i] if i < min(len(args), len(names)) else f"a{n}" for n, i in enumerate(chosen)]
    inner = ", ".join(f"{t} {n}" for t, n in zip(types, names))
    entry.schema, entry.full_name, entry.base_name = f"given({inner}) -> Tensor", name, name
    entry.given, entry.aliasing = True, isinstance(op, type)
    written = getattr(definition, "_written", ())
    entry.writes = tuple(_names(definition, written, args, keys, chosen)) if written else ()
    return entry


def _names(definition, written, args, keys, chosen) -> list[int]:
    """Which of the entry's tensors the operator declares to write."""
    names = definition.schema.names
    given = [*names[: len(args)], *keys]
    return [k for k, i in enumerate(chosen) if names.index(given[i]) in written]


# the checks


def _tensors(flat) -> list[Tensor]:
    return [t for v in flat for t in (v if isinstance(v, list) else [v]) if isinstance(t, Tensor)]


def _outputs(entry, flat) -> list:
    out = bind(overload_of(entry), tuple(flat))
    return list(out) if isinstance(out, (list, tuple)) else [out]


def check_pure(entry, case, dtype) -> None:
    """Writes what it says and nothing else; equal inputs give equal outputs."""
    if entry.writes:
        return _check_writes(entry, case)
    if entry.aliasing:  # a Function may return its inputs or views of them
        flat = list(case.args)
        before = [host(t).copy() for t in _tensors(flat)]
        versions = [t._version for t in _tensors(flat)]
        outs = _outputs(entry, flat)
        for t, b, v in zip(_tensors(flat), before, versions):
            silent = not np.array_equal(host(t), b, equal_nan=True) and t._version == v
            if silent:
                raise CheckFailed("an input was changed without mark_dirty")
        if any(t._version != v for t, v in zip(_tensors(flat), versions)):
            return None
    else:
        kit.check_pure(entry, case, dtype)
        outs = _outputs(entry, case.args)
    again = _outputs(entry, [_copy(v) for v in case.args])
    kit._close(again, outs, "a second call", 0, 0)
    return None


def _copy(value):
    return [_copy(v) for v in value] if isinstance(value, list) else place(host(value))


def _check_writes(entry, case) -> None:
    flat = [_copy(v) for v in case.args]
    before = [[host(t).copy() for t in _tensors([v])] for v in flat]
    _outputs(entry, flat)
    for k, (v, old) in enumerate(zip(flat, before)):
        for t, b in zip(_tensors([v]), old):
            changed = not np.array_equal(host(t), b, equal_nan=t.dtype.category >= 2)
            if changed and k not in entry.writes:
                raise CheckFailed(f"argument {k} was changed but is not in mutates_args")
            if changed and t._version == 0:
                raise CheckFailed(f"argument {k} was changed but its version did not move")


def _differentiable(test):
    def run(entry, case, dtype):
        problem = kit.Problem(entry, case, dtype)
        if not problem.slots or not problem(*problem.inputs):
            return "no floating inputs and outputs"
        return test(entry, case, dtype)

    return run


def check_vmap(entry, case, dtype):
    """As the table's check, with a warning or a refusal passed on."""
    if not _tensors(case.args):
        return "no tensors"
    stacked = [kit._stack(v) for v in case.args if isinstance(v, Tensor)]

    def call(*tensors):  # first of all: does it take batched tensors at all?
        given = iter(tensors)
        flat = [next(given) if isinstance(v, Tensor) else v for v in case.args]
        return tuple(o for o in _outputs(entry, flat) if isinstance(o, Tensor))

    if stacked:
        func.vmap(call)(*stacked)
    return kit.check_vmap(entry, case, dtype)


def check_fake(entry, case, dtype):
    """The fake says what the kernel does."""
    if not _tensors(case.args):
        return "no tensors"
    fakes = [
        [make(fake_like(t._payload)) for t in v] if isinstance(v, list) else make(
            fake_like(v._payload))
        for v in case.args
    ]
    found = _outputs(entry, fakes)  # first of all: does it take fakes at all?
    if not entry.writes:
        return kit.check_fake(entry, case, dtype)
    real = _outputs(entry, [_copy(v) for v in case.args])
    for r, f in zip(real, found, strict=True):
        if isinstance(r, Tensor) and (tuple(r.shape) != tuple(f.shape) or r.dtype is not f.dtype):
            raise CheckFailed(f"fake: {f.dtype}{list(f.shape)}, kernel: {r.dtype}{list(r.shape)}")
    return None


def check_compile(entry, case, dtype):
    """Compiled equals eager; what is written included."""
    if not entry.writes:
        return kit.check_compile(entry, case, dtype)
    import pullback

    ov = overload_of(entry)
    eager, compiled = [[_copy(v) for v in case.args] for _ in range(2)]
    outs = bind(ov, tuple(eager))
    again = pullback.compile(lambda *flat: bind(ov, flat), fullgraph=True)(*compiled)
    kit._close(_tensors(compiled), _tensors(eager), "written by compiled code", 1e-6, 1e-8)
    kit._close(again, outs, "compiled", 1e-6, 1e-8)
    return None


CHECKS = {
    "pure": (check_pure, "writes only what it says; equal inputs give equal outputs"),
    "gradient": (_differentiable(kit.check_pullback), "reverse mode against finite differences"),
    "forward": (_differentiable(kit.check_pushforward), "forward mode against reverse mode"),
    "second_order": (
        _differentiable(kit.check_second_order),
        "second derivatives against finite differences",
    ),
    "vmap": (check_vmap, "batched against one by one"),
    "fake": (check_fake, "shapes and dtypes of the fake against real ones"),
    "compile": (check_compile, "compiled against eager"),
}
