"""Bad input of compiled functions: the exception of eager execution, nothing half-written, and the
next call works.  `test_wrong_arguments.py` asks every entry of the table.
"""

import numpy as np
import pytest

import pullback as pb
import pullback.nn.functional as F
from pullback import errors
from tests.helpers.compiled_checks import run_both

X = np.arange(12.0, dtype=np.float32).reshape(3, 4) / 7


def setitem(x, i):
    y = x.clone()
    y[i] = 0.0
    return y


ONES = pb.ones(2, 4)
# function, good index, bad indices (beyond the end, negative where that is refused or too far)
INDEXING = {
    "gather": (lambda x, i: x.gather(1, i), [[0], [3], [1]], [[[0], [4], [1]], [[0], [-1], [1]]]),
    "gather_rows": (lambda x, i: x.gather(0, i), [[0, 1, 2, 2]], [[[0, 1, 2, 3]], [[0, -1, 0, 0]]]),
    "take_along_dim": (lambda x, i: pb.take_along_dim(x, i, 1), [[0], [3], [1]], [[[0], [4], [1]]]),
    "take": (lambda x, i: pb.take(x, i), [0, 11, -1], [[0, 12, 1], [0, -13, 1]]),
    "index": (lambda x, i: x[i], [0, -3], [[0, 3], [0, -4]]),
    "index_columns": (lambda x, i: x[:, i] * 2, [0, -4], [[0, 4], [0, -5]]),
    "index_pairs": (lambda x, i: x[i, i + 1], [0, 2], [[0, 3], [0, -5]]),
    "index_select": (lambda x, i: x.index_select(0, i), [0, 2], [[0, 3], [0, -1]]),
    "embedding": (lambda x, i: F.embedding(i, x), [0, 2], [[0, 3], [0, -1]]),
    "scatter": (
        lambda x, i: x.scatter(1, i, ONES.t()[:3, :1]),
        [[0], [3], [1]],
        [[[0], [4], [1]], [[-1], [0], [1]]],
    ),
    "scatter_value": (
        lambda x, i: x.scatter(1, i, 2.0),
        [[0], [3], [1]],
        [[[0], [4], [1]], [[-1], [0], [1]]],
    ),
    "scatter_many": (
        lambda x, i: x.scatter(1, i, 2.0),
        [[0, 1], [3, 2], [1, 0]],
        [[[0, 1], [4, 2], [1, 0]]],
    ),
    "scatter_add": (
        lambda x, i: x.scatter_add(1, i, x[:, :1]),
        [[0], [3], [1]],
        [[[0], [4], [1]], [[-1], [0], [1]]],
    ),
    "scatter_add_many": (
        lambda x, i: x.scatter_add(1, i, x),
        [[0, 1], [3, 2], [1, 0]],
        [[[0, 1], [4, 2], [1, 0]]],
    ),
    "scatter_reduce": (
        lambda x, i: x.scatter_reduce(1, i, x, "amax"),
        [[0], [3], [1]],
        [[[0], [4], [1]]],
    ),
    "index_put": (lambda x, i: x.index_put((i,), ONES), [0, -3], [[0, 3], [0, -4]]),
    "index_put_add": (
        lambda x, i: x.index_put((i,), ONES, accumulate=True),
        [0, -3],
        [[0, 3], [0, -4]],
    ),
    "setitem": (setitem, [0, -3], [[0, 3], [0, -4]]),
    "index_add": (lambda x, i: x.index_add(0, i, ONES), [0, 2], [[0, 3], [0, -1]]),
    "index_add_columns": (
        lambda x, i: x.index_add(1, i, x[:, :2], alpha=2),
        [0, 3],
        [[0, 4], [0, -1]],
    ),
    "index_copy": (lambda x, i: x.index_copy(0, i, ONES), [0, 2], [[0, 3]]),
    "index_fill": (lambda x, i: x.index_fill(0, i, 1.0), [0, 2], [[0, 3]]),
    "nll_loss": (lambda x, i: F.nll_loss(x, i), [0, 3, -100], [[0, 1, 4], [0, -1, 1]]),
    "nll_loss_each": (lambda x, i: F.nll_loss(x, i, reduction="none"), [0, 3, 2], [[0, 1, 4]]),
    "nll_loss_weight": (lambda x, i: F.nll_loss(x, i, weight=pb.ones(4)), [0, 3, 2], [[0, 1, 4]]),
    "cross_entropy": (
        lambda x, i: F.cross_entropy(x, i, ignore_index=2),
        [0, 3, 2],
        [[0, 1, 4], [0, 1, -2]],
    ),
    "one_hot": (lambda x, i: F.one_hot(i, 4) * x, [0, 1, 3], [[0, 1, 4], [0, 1, -1]]),
}


@pytest.mark.parametrize("way", ["inference", "fused", "split"])
@pytest.mark.parametrize("name", list(INDEXING))
def test_index_out_of_range(name, way):
    function, good, bad = INDEXING[name]
    f = (lambda x, i: (function(x, i) ** 2).sum()) if way == "fused" else function
    compiled = pb.compile(f)
    x = pb.from_numpy(X.copy())
    if way != "inference":
        x.requires_grad_()
    for wrong in bad:
        wrong = pb.tensor(wrong)
        with pytest.raises((IndexError, RuntimeError)) as eager:
            f(x, wrong)
        with pytest.raises(errors.PullbackError) as raised:
            compiled(x, wrong)
        assert raised.type is eager.type, (
            f"{raised.type}: {raised.value}\neager: {eager.type}: {eager.value}"
        )
        assert "test_bad_input.py:" in str(raised.value).splitlines()[0]
        np.testing.assert_array_equal(x.detach().numpy(), X)
        assert x.grad is None
    good = pb.tensor(good)
    expected, got = f(x, good), compiled(x, good)
    np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-6)
    if way != "inference":
        (a,) = pb.autograd.grad(got.sum(), x)
        (b,) = pb.autograd.grad(expected.sum(), x)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_written_inputs_stay_as_they_were(backend):
    """The writes of a compiled function happen after it has run: a failed call writes nothing."""

    def f(x, y, i):
        x.add_(1)
        y.index_add_(0, i, x)
        return x.sum()

    compiled = pb.compile(f, backend=backend)
    x, y = pb.zeros(2, 4), pb.zeros(3, 4)
    with pytest.raises(errors.ShapeError):
        compiled(x, y, pb.tensor([0, 3]))
    assert not x.any() and not y.any() and x._version == y._version == 0
    compiled(x, y, pb.tensor([0, 2]))
    assert x.tolist() == [[1] * 4] * 2 and y.tolist() == [[1] * 4, [0] * 4, [1] * 4]


def test_the_first_error_of_the_program_is_raised():
    """Kernels run in another order than operators: eager's first one reports."""

    def f(x, i, j):
        return x.gather(1, i).sum() + x.index_select(0, j).sum() * x.exp().sum()

    x = pb.from_numpy(X.copy())
    both = pb.tensor([[9], [0], [0]]), pb.tensor([9])
    compiled = pb.compile(f)
    with pytest.raises(errors.ShapeError, match="gather"):
        compiled(x, *both)
    with pytest.raises(errors.DimError, match="index_select"):
        compiled(x, pb.zeros_like(both[0]), both[1])


def test_many_threads_report_one_error():
    x, i = pb.zeros(20000, 8), pb.full((20000, 1), 8)
    with pytest.raises(errors.ShapeError, match=r"got 8"):
        pb.compile(lambda x, i: x.exp().gather(1, i))(x, i)


SHAPES = {
    "add": lambda x, y: x + y,
    "matmul": lambda x, y: x @ y,
    "cat": lambda x, y: pb.cat([x, y], 0),
    "view": lambda x, y: x.view(5, 5) + y,
    "dim": lambda x, y: x.sum(5) + y,
    "mean of integers": lambda x, y: x.long().mean() + y,
    "matmul dtype": lambda x, y: x.t() @ y.long(),
    "softmax of integers": lambda x, y: x.long().softmax(-1) + y,
    "batch norm of integers": lambda x, y: F.batch_norm(x.long(), None, None, training=True) + y,
}


@pytest.mark.parametrize("name", list(SHAPES))
def test_wrong_shapes_and_dtypes(name):
    """Errors of the captured function are those of eager execution, and the process goes on."""
    f = SHAPES[name]
    x, y = pb.ones(3, 4), pb.ones(3, 5)
    refusals = (errors.PullbackError, NotImplementedError)
    with pytest.raises(refusals) as eager:
        f(x, y)
    compiled = pb.compile(f)
    for _ in range(2):
        with pytest.raises(refusals) as raised:
            compiled(x, y)
        assert raised.type is eager.type
        if isinstance(raised.value, errors.PullbackError):
            assert "test_bad_input.py:" in str(raised.value).splitlines()[0]
    assert not compiled.programs
    assert (x * 2).tolist() == [[2] * 4] * 3


def test_another_shape_or_dtype_is_another_program():
    compiled = pb.compile(lambda x: x * 2)
    for x in (
        pb.ones(3),
        pb.ones(4),
        pb.ones(3).double(),
        pb.ones(3, dtype=pb.int64),
        pb.ones(3, 1),
    ):
        out = compiled(x)
        assert out.dtype is x.dtype and out.tolist() == (x * 2).tolist()
    assert len(compiled.programs) == 5


def test_a_compiled_graph_refuses_other_arrays():
    graph = run_both(lambda x, n: (x * 2, n + 1), X, np.arange(3))[0]
    n = np.arange(3)
    with pytest.raises(errors.ArgumentError, match="must be float32, got float64"):
        graph(X.astype("f8"), n)
    with pytest.raises(errors.BadValue, match="must have shape"):
        graph(X.T, n)
    with pytest.raises(errors.ArgumentError, match="must be int64, got int32"):
        graph(X, n.astype("i4"))
    with pytest.raises(errors.ArgumentError, match="NumPy array, got NoneType"):
        graph(X, None)
    np.testing.assert_array_equal(graph(X, n)[0], X * 2)


@pytest.mark.parametrize("f", [
    lambda x: F.layer_norm(x, (5,)), lambda x: F.rms_norm(x, (5,)),
    lambda x: F.layer_norm(x, (4,), pb.ones(3)), lambda x: x.slice_scatter(x[:2], 0, 0, 3, -1),
    lambda x: x.slice_scatter(x[:1], 0, 0, 3, 2), lambda x: x.slice_scatter(x, 0, 0, 3, 0),
])  # fmt: skip
def test_shapes_and_steps_that_do_not_fit(f):
    x = pb.tensor(X)
    with pytest.raises(RuntimeError) as eager:
        f(x)
    with pytest.raises(RuntimeError) as compiled:
        pb.compile(f)(x)
    assert type(compiled.value) is type(eager.value)


@pytest.mark.filterwarnings("ignore:compile.*runs operator by operator")
def test_nothing_is_written_into_an_empty_tensor():
    """Its memory belongs to others."""
    for f in (lambda x: x.as_strided((2, 2), (4, 1), 1),
              lambda x: pb.as_strided_scatter(x, pb.ones(2, 2), (2, 2), (4, 1), 1),
              lambda x: x.t().index_put((pb.tensor([1]),), pb.ones(()), accumulate=True),
              lambda x: x.scatter(1, pb.tensor([[0], [0], [1]]), 1.0)):
        for run in (f, pb.compile(f)):
            with pytest.raises((errors.ShapeError, errors.DimError)):
                run(pb.zeros(3, 0))


def test_lists_of_many_tensors():
    xs = [pb.ones(2) for _ in range(200)]
    out = pb.compile(lambda *t: pb._foreach_add(list(t), 1.0), backend="numpy")(*xs)
    assert all(t.tolist() == [2, 2] for t in out)


def test_dtypes_that_only_the_kernel_takes():
    """A decomposition that refuses or promotes in another way gives way to the operator itself."""
    x = pb.tensor([0.5, -2.0, 3.0])
    for f in (lambda a, b: pb.ops.aten.threshold_backward(a, b, 0.0), F.mse_loss,
              pb.copysign, lambda a, b: pb.ops.aten.hardtanh_backward(a, b, -1.0, 1.0)):
        for other in (pb.tensor([1, 0, 2]), pb.tensor([True, False, True])):
            for args in ((other, x), (x, other)):
                expected, got = f(*args), pb.compile(f)(*args)
                assert got.dtype is expected.dtype and got.tolist() == expected.tolist()
