"""Bad input: each refusal has its class, the user's line, the state, the cure; nothing changes."""

import ast
import inspect
import pathlib
import pickle
import re

import pytest

import pullback as torch
from pullback import errors
from pullback.core.op import Pointwise
from pullback.func import grad, jvp, vmap
from tests.helpers.own_entries import entry

HERE = pathlib.Path(__file__).name


def x23():
    return torch.ones(2, 3)


def leaf():
    return torch.ones(3, requires_grad=True)


def twice():
    x = leaf()
    y = (x * x).sum()
    y.backward()
    y.backward()


def overwritten():
    x = leaf()
    y = x * 1
    z = y * y
    y.zero_()
    z.sum().backward()


def escaped(transform):
    kept = []
    transform(lambda x: kept.append(x) or (x * x).sum())
    kept[0] + 1


def split_write():
    (leaf() * 1).split(1)[0].add_(1)


def no_grad_view():
    y = leaf() * 1
    with torch.no_grad():
        v = y[:1]
    v.add_(1)


def outside_write():
    total = torch.zeros(())
    vmap(lambda x: total.add_(x))(torch.ones(3))


def branch(x):
    return x * 2 if x.sum() > 0 else x


def refused_later():
    """An operator that has a kernel and no derivative."""
    with entry("no_formula_for_errors(Tensor self) -> Tensor", Pointwise, run="xp.sin(self)"):
        torch.no_formula_for_errors(leaf()).sum().backward()


# name -> (call, error class, the type that PyTorch raises, part of the first line)
BAD = {
    "broadcast": (lambda: x23() + torch.ones(2), errors.ShapeError, RuntimeError,
        "size of tensor a"),
    "broadcast of a function": (lambda: torch.mul(x23(), torch.ones(4)), errors.ShapeError,
        RuntimeError, "non-singleton dimension 1"),
    "broadcast in place": (lambda: x23().add_(torch.ones(2)), errors.ShapeError, RuntimeError,
        "add"),
    "in place would grow": (lambda: torch.ones(3).add_(x23()), errors.ShapeError, RuntimeError,
        "doesn't match the broadcast shape"),
    "matrix product": (lambda: x23() @ x23(), errors.ShapeError, RuntimeError, "(2x3 and 2x3)"),
    "view": (lambda: x23().view(4), errors.ShapeError, RuntimeError, "invalid for input of size 6"),
    "view of strides": (lambda: x23().T.view(6), errors.ShapeError, RuntimeError, "view"),
    "reshape": (lambda: x23().reshape(-1, 4), errors.ShapeError, RuntimeError, "invalid for input"),
    "two holes": (lambda: x23().reshape(-1, -1), errors.ShapeError, RuntimeError, "one dimension"),
    "expand": (lambda: x23().expand(2, 4), errors.ShapeError, RuntimeError, "expanded size"),
    "cat": (lambda: torch.cat([x23(), torch.ones(2, 2)]), errors.ShapeError, RuntimeError, "cat"),
    "stack": (lambda: torch.stack([x23(), torch.ones(2)]), errors.ShapeError, RuntimeError,
        "stack"),
    "split": (lambda: x23().split([1, 5], 1), errors.ShapeError, RuntimeError, "split"),
    "einsum": (lambda: torch.einsum("ij,jk->ik", x23(), x23()), errors.ShapeError, RuntimeError,
        "einsum"),
    "item": (lambda: x23().item(), errors.ShapeError, RuntimeError, "6 elements"),
    "truth": (lambda: bool(x23()), errors.ShapeError, RuntimeError, "ambiguous"),
    "assignment": (lambda: x23().__setitem__(0, torch.ones(2)), errors.ShapeError, RuntimeError,
        ""),
    "dim": (lambda: x23().sum(2), errors.DimError, IndexError, "Dimension out of range"),
    "negative dim": (lambda: x23().softmax(-3), errors.DimError, IndexError,
        "Dimension out of range"),
    "dims": (lambda: x23().permute(0, 2), errors.DimError, IndexError, "Dimension out of range"),
    "unsqueeze": (lambda: x23().unsqueeze(4), errors.DimError, IndexError,
        "Dimension out of range"),
    "index": (lambda: x23()[2], errors.DimError, IndexError, "out of bounds"),
    "index tensor": (lambda: x23()[torch.tensor([5])], errors.DimError, IndexError, "out of"),
    "too many indices": (lambda: x23()[0, 0, 0], errors.DimError, IndexError, "too many indices"),
    "written index": (lambda: x23().__setitem__(7, 1), errors.DimError, IndexError,
        "out of bounds"),
    "gather": (lambda: x23().gather(0, torch.tensor([[9, 0, 0]])), errors.PullbackError,
        RuntimeError, "gather"),
    "mean of integers": (lambda: torch.arange(3).mean(), errors.DTypeError, RuntimeError, "dtype"),
    "float into int": (lambda: torch.arange(3).add_(0.5), errors.DTypeError, RuntimeError,
        "can't be cast"),
    "out dtype": (lambda: torch.add(x23(), 1, out=torch.zeros(2, 3, dtype=torch.int32)),
        errors.DTypeError, RuntimeError, "can't be cast"),
    "matrix dtypes": (lambda: x23() @ torch.ones(3, 2).double(), errors.DTypeError, RuntimeError,
        "dtype"),
    "integer leaf": (lambda: torch.arange(3).requires_grad_(), errors.DTypeError, RuntimeError,
        "floating point"),
    "unknown device": (lambda: torch.ones(2, device="abacus"), errors.DeviceError, RuntimeError,
        "abacus"),
    "argument type": (lambda: x23().sum("rows"), errors.ArgumentError, TypeError, "sum()"),
    "missing argument": (lambda: torch.where(x23() > 0, x23()), errors.ArgumentError, TypeError,
        "where()"),
    "unknown keyword": (lambda: x23().sum(axes=1), errors.ArgumentError, TypeError, "sum()"),
    "leaf": (lambda: leaf().add_(1), errors.LeafWriteError, RuntimeError, "leaf Variable"),
    "item of a leaf": (lambda: leaf().__setitem__(0, 1.0), errors.LeafWriteError, RuntimeError,
        "leaf Variable"),
    "view of a leaf": (lambda: leaf()[1:].mul_(2), errors.LeafWriteError, RuntimeError,
        "view of a leaf"),
    "one of several views": (split_write, errors.ViewWriteError, RuntimeError, "Output 0 of Split"),
    "view from no_grad": (no_grad_view, errors.ViewWriteError, RuntimeError, "no_grad"),
    "expanded": (lambda: torch.ones(1).expand(3).add_(1), errors.ViewWriteError, RuntimeError,
        "single memory location"),
    "saved value": (overwritten, errors.SavedValueModified, RuntimeError, "inplace operation"),
    "backward twice": (twice, errors.GraphFreed, RuntimeError, "second time"),
    "no graph": (lambda: x23().sum().backward(), errors.NoGraph, RuntimeError,
        "does not require grad"),
    "no scalar": (lambda: (leaf() * 2).backward(), errors.GradientShapeError, RuntimeError,
        "scalar outputs"),
    "seed": (lambda: (leaf() * 2).backward(x23()), errors.GradientShapeError, RuntimeError,
        "Mismatch in shape"),
    "unused": (lambda: torch.autograd.grad(leaf().sum(), leaf()), errors.UnusedInput, RuntimeError,
        "used in the graph"),
    "numpy of history": (lambda: leaf().numpy(), errors.NoGraph, RuntimeError, "detach().numpy()"),
    "out with history": (lambda: torch.mul(leaf(), 2, out=torch.zeros(3)), errors.NotDifferentiable,
        RuntimeError, "out="),
    "no derivative": (refused_later, errors.DerivativeNotWritten, NotImplementedError,
        "not implemented"),
    "escaped from vmap": (lambda: escaped(lambda f: vmap(f)(x23())), errors.EscapedTensor,
        RuntimeError, "vmap"),
    "escaped from capture": (lambda: escaped(lambda f: torch.make_fx(f)(x23())),
        errors.EscapedTensor, RuntimeError, "captured"),
    "write out of vmap": (outside_write, errors.BatchedWriteError, RuntimeError, "vmap"),
    "branch under vmap": (lambda: vmap(branch)(x23()), errors.DataDependentError, RuntimeError,
        "vmap"),
    "branch under make_fx": (lambda: torch.make_fx(branch, tracing_mode="fake")(x23()),
        errors.DataDependentError, RuntimeError, "captured"),
    "branch under compile": (lambda: torch.compile(branch, fullgraph=True)(x23()),
        errors.DataDependentError, RuntimeError, "captured"),
    "item under compile": (
        lambda: torch.compile(lambda x: x * x.sum().item(), fullgraph=True)(x23()),
        errors.DataDependentError, RuntimeError, "item()"),
    "item of a fake": (
        lambda: torch.make_fx(lambda x: x * x.sum().item(), tracing_mode="fake")(x23()),
        errors.DataDependentError, RuntimeError, "item()"),
    "gradient of a vector": (lambda: grad(lambda x: x * 2)(x23()), errors.TransformError,
        RuntimeError, "scalar tensor"),
    "tangent shape": (lambda: jvp(torch.sin, (x23(),), (torch.ones(2),)), errors.TransformError,
        RuntimeError, "tangent"),
    "sizes under vmap": (lambda: vmap(torch.add)(x23(), torch.ones(4)), errors.TransformError,
        RuntimeError, "same size"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, kind, base, fragment = BAD[name]
    with pytest.raises(base) as caught:
        call()
    error = caught.value
    assert isinstance(error, kind) and isinstance(error, errors.PullbackError), type(error)
    first = str(error).splitlines()[0]
    assert fragment in first
    assert re.search(rf"{re.escape(HERE)}:\d+", first), f"no line in {first!r}"
    assert torch.is_grad_enabled()
    assert (torch.ones(2) + 1).tolist() == [2, 2]


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, (_, kind, _, _) in BAD.items()
        if kind not in (errors.ArgumentError, errors.TransformError, errors.PullbackError)
    ],
)
def test_every_message_has_a_cure(name):
    call, kind, _, _ = BAD[name]
    with pytest.raises(kind) as caught:
        call()
    assert "Fix:" in str(caught.value) or "Use " in str(caught.value), str(caught.value)


def test_the_line_is_the_users():
    with pytest.raises(errors.ShapeError) as caught:
        x23() + torch.ones(2)
    line = inspect.currentframe().f_lineno - 1
    assert f"{HERE}:{line}" in str(caught.value)


def test_argument_errors_list_the_signatures():
    with pytest.raises(errors.ArgumentError) as caught:
        x23().sum("rows")
    assert "sum.dim_IntList(Tensor self" in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.add_(torch.ones(7)),
        lambda x: x.add_("a"),
        lambda x: x.__setitem__(9, 1),
        lambda x: x.__setitem__(slice(None), torch.ones(7)),
        lambda x: x.mul_(1j),
        lambda x: torch.add(torch.ones(2), torch.ones(3), out=x),
        lambda x: x.copy_(torch.ones(7)),
        lambda x: x.index_put_((torch.tensor([99]),), torch.ones(1)),
        lambda x: x.unsqueeze_(9),
        lambda x: x.scatter_(0, torch.tensor([[99, 0, 0]]), torch.ones(1, 3)),
    ],
)
def test_tensors_are_left_as_they_were(call):
    x = x23()
    memory, before = x.data_ptr(), x.tolist()
    with pytest.raises((RuntimeError, TypeError, IndexError)):
        call(x)
    assert x.tolist() == before and x.shape == (2, 3) and x.data_ptr() == memory
    assert x._version == 0 and not x.requires_grad and x.dtype is torch.float32


def test_failed_capture_leaves_inputs():
    x = x23()

    def f(x):
        x.mul_(5)
        return branch(x)

    for run in (
        lambda: torch.make_fx(f, tracing_mode="fake")(x),
        lambda: torch.compile(f, fullgraph=True)(x),
        lambda: vmap(f)(x),
    ):
        with pytest.raises(errors.DataDependentError):
            run()
        assert x.tolist() == [[1, 1, 1], [1, 1, 1]] and x._version == 0


def test_failed_transform_leaves_captured_tensors():
    total = torch.zeros(3)

    def f(x):
        total.add_(1)
        raise KeyError("stop")

    with pytest.raises(KeyError):
        vmap(f)(x23())
    assert (total + 1).shape == (3,)


@pytest.mark.parametrize(
    ("formulas", "fragment"),
    [
        ({"self": "grad * cosx"}, "cosx"),
        ({"other": "grad"}, "other"),
        ({"self": "grad *"}, "cannot read"),
        ({"self": "grad * result1"}, "result1"),
    ],
)
def test_unknown_names_in_a_formula(formulas, fragment):
    """Of an operator with a malformed derivative."""
    with entry("bad_formula_for_errors(Tensor self) -> Tensor", run="xp.sin(self)",
               shape="self.shape", grad=formulas) as bad, \
            pytest.raises(errors.FormulaError) as caught:
        bad.rule
    assert fragment in str(caught.value) and "bad_formula_for_errors" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_every_class_has_a_page():
    """Docstrings are documentation: what it is, its cause or its cure."""
    kinds = [
        v
        for v in vars(errors).values()
        if isinstance(v, type) and issubclass(v, errors.PullbackError)
    ]
    assert len(kinds) > 20
    for kind in kinds:
        assert len(kind.__doc__.split()) > 8, kind.__name__
        if kind is not errors.PullbackError:
            assert any(
                issubclass(kind, b)
                for b in (RuntimeError, TypeError, ValueError, LookupError, OSError,
                          NotImplementedError, AssertionError,
                          pickle.UnpicklingError)
            ), kind


def test_messages_do_not_mention_internal_frames():
    """The first line names the user's file, also through composites and nested transforms."""
    with pytest.raises(RuntimeError) as caught:
        vmap(grad(lambda x: (x @ torch.ones(7, 2)).sum()))(x23())
    assert HERE in str(caught.value).splitlines()[0]


def test_table_entries_raise_only_classes_with_a_base():
    """No `assert` and no bare `Exception` as a message to the user in the table."""
    for path in (pathlib.Path(torch.__file__).parent / "ops").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(node, ast.Assert), f"{path.name}:{node.lineno}"
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                assert getattr(node.exc.func, "id", "") != "Exception", f"{path.name}:{node.lineno}"


def test_a_refused_value_is_not_called_a_wrong_shape():
    with pytest.raises(errors.RefusedValue, match=r"quantile .*range \[0, 1\]") as info:
        torch.quantile(torch.ones(3), 1.5)
    assert isinstance(info.value, RuntimeError) and "reshape" not in str(info.value)
    with pytest.raises(errors.ShapeError, match="reshape"):
        torch.ones(3, 4) @ torch.ones(3, 4)


def test_a_variable_that_is_set_together_with_others_is_found():
    """Python 3.13 and later store two variables by one instruction."""
    first, second = object(), object()
    assert errors.variable_of(second, 1).startswith(", 'second' (set at test_errors.py:")
    assert errors.variable_of(first, 1).startswith(", 'first' (set at test_errors.py:")
