"""What is compared of a program that writes through views: the ways to run it beside eager.

`check(program, way)` raises AssertionError where a way gives other values, gradients, layouts,
versions or aliases than eager.  Ways that are none of `TRANSFORMS` are those of `oracle.py`.
`python -m tests.helpers.write_ways FIRST LAST [WAY ...]` looks for failures and shrinks them.
"""

import sys
import warnings

import numpy as np

import pullback as pb
from pullback import errors, func
from pullback.decomp import decomposition_table
from pullback.fx.make_fx import make_fx
from tests.helpers import oracle
from tests.helpers.write_programs import Program, Start, make, shrunk


def _close(found, wanted, where: str) -> None:
    assert found.dtype == wanted.dtype and tuple(found.shape) == tuple(wanted.shape), (
        f"{where}: {found.dtype}{list(found.shape)}, eager {wanted.dtype}{list(wanted.shape)}")
    tolerance = 1e-4 if wanted.dtype in (pb.float32, pb.complex64) else 1e-9
    np.testing.assert_allclose(found.numpy(force=True), wanted.numpy(force=True), rtol=tolerance,
                               atol=tolerance, err_msg=where)


def _gradients(outs: list, leaves: list) -> list:
    """Of a sum in which every element of every output counts another time."""
    total = 0
    for o in outs:
        if o.requires_grad:
            weights = pb.arange(1, o.numel() + 1).reshape(o.shape)
            total = total + (o.abs() if o.is_complex() else o).double().mul(weights).sum()
    if not isinstance(total, pb.Tensor) or not leaves:
        return []
    found = pb.autograd.grad(total, leaves, allow_unused=True)
    return [pb.zeros_like(t) if g is None else g for g, t in zip(found, leaves)]


def _observed(program: Program, transform, example: int = 0, tracked: bool = True) -> tuple:
    """(outputs, arguments afterwards, gradients) of a program, transformed."""
    pb.manual_seed(7)
    leaves, args = program.start(example=example)
    args = args if tracked else [t.detach() for t in args]
    outs = transform(program.function())(*args)
    found = [o.detach().clone() for o in outs], [t.detach().clone() for t in args]
    try:
        return *found, _gradients(list(outs), leaves)
    except (errors.SavedValueModified, errors.ViewWriteError, errors.NotDifferentiable):
        return *found, []


def _check_transform(program: Program, transform, gradients: bool = True) -> None:
    wanted, found = (_observed(program, t, tracked=gradients) for t in (lambda f: f, transform))
    for name, some, others in zip(("output", "argument", "gradient"), found, wanted):
        if name == "gradient" and not (gradients and others and some):
            continue  # eager has overwritten what it needs
        for i, (a, b) in enumerate(zip(some, others, strict=True)):
            _close(a, b, f"{name} {i}")


def _check_graph(program: Program, mode: str, table=None) -> None:
    def transform(f):
        examples = [t.detach() for t in program.start()[1]]  # they are written while it is traced
        pb.manual_seed(7)
        graph = make_fx(f, table, mode)(*examples)
        pb.manual_seed(7)
        return graph

    _check_transform(program, transform, False)


def _mapped(program: Program) -> None:
    """vmap against a loop over two examples; writes to arguments are seen outside."""
    examples = [program.start(example=k)[1] for k in range(2)]
    wanted = [_observed(program, lambda f: f, k)[:2] for k in range(2)]
    a, s = (pb.stack([e[i].detach() for e in examples]) for i in range(2))
    if examples[0][0].ndim == 2 and not examples[0][0].is_contiguous():
        a = a.mT.contiguous().mT
    outs = func.vmap(lambda a, s: tuple(program.function()(a, s)))(a, s)
    for k in range(2):
        for i, (o, w) in enumerate(zip(outs, wanted[k][0], strict=True)):
            _close(o[k], w, f"output {i} of example {k}")
        _close(a[k], wanted[k][1][0], f"argument of example {k}")


REFUSED = (  # what functional forms refuse, as PyTorch's do
    "internal overlap", "cannot resize variables that require grad", "setStorage: sizes",
    "outside of the example", "memory that its tensor does not show")
TRANSFORMS = {
    "functionalized": lambda p: _check_transform(p, func.functionalize),
    "without views": lambda p: _check_transform(
        p, lambda f: func.functionalize(f, remove="mutations_and_views")),
    "traced": lambda p: _check_graph(p, "real"),
    "fake": lambda p: _check_graph(p, "fake"),
    "symbolic": lambda p: _check_graph(p, "symbolic"),
    "decomposed": lambda p: _check_graph(p, "fake", decomposition_table.copy()),
    "mapped": _mapped,
}


def check(program: Program, way: str) -> None:
    """Raise if a way to run a program differs from eager."""
    if way in TRANSFORMS:
        if program.is_random and way in ("mapped", "without views"):
            return  # other numbers: one stream for all examples, and copies lie in another order
        if way == "without views" and program.has("as_strided", "_reshape_alias"):
            return  # copies do not lie in memory as views do
        if way == "mapped" and program.has(".data", "t_()", "queeze_(", "transpose_("):
            return  # refused, and shapes of arguments, which are changed for all at once
        try:
            TRANSFORMS[way](program)
        except (errors.ViewWriteError, errors.NotDifferentiable, errors.ShapeError) as error:
            if not any(text in str(error) for text in REFUSED):
                raise
    else:
        overlap = program.has(".unfold(") and way in ("nop", "mincut")  # may be refused
        if program.reaches_beyond:
            return  # its gradient depends on whether it was made before or after a write
        function = program.function()
        try:
            oracle.check(function, Start(program), ways=(way,), bases=False, single=1e-4,
                         double=1e-4 if program.is_narrow else 1e-9, units=False)
        except AssertionError as error:
            refused = overlap and "ViewWriteError" in str(error) or (  # by graphs that are shown
                program.has("as_strided") and "TransformError" in str(error))
            refused = refused or (  # eager's backward refuses it, which a capture finds out at once
                program.has("addr_") and "DTypeError" in str(error))
            refused = refused or (  # eager refuses to write what was a view of a result
                program.has("detach_()") and "LeafWriteError" in str(error))
            if not refused:
                raise


def failure(program: Program, way: str) -> str | None:
    """What goes wrong, if anything."""
    try:
        check(program, way)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def main(first: str, last: str, *ways: str) -> None:
    """Look for programs that fail."""
    warnings.simplefilter("ignore")
    found = 0
    for seed in range(int(first), int(last)):
        for way in ways or (*TRANSFORMS, "nop", "mincut", "numpy", "native"):
            wrong = failure(make(seed), way)
            if wrong is not None:
                found += 1
                kind = wrong.split(":")[0]
                short = shrunk(make(seed), lambda p, way=way, kind=kind: (
                    failure(p, way) or "").startswith(kind))
                print(f"seed {seed}, {way}:\n{short}\n{failure(short, way)}\n", flush=True)
    print(f"{found} failures")


if __name__ == "__main__":
    main(*sys.argv[1:])
