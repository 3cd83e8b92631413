"""Views and moves of elements that the table's samples do not reach: unknown starts, refusals."""

import operator

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck


def grid(*shape):
    return torch.arange(int(np.prod(shape)), dtype=torch.float64).reshape(shape)


# narrow with the start in a tensor


def test_known_start_is_a_slice():
    x = grid(5, 4).clone().requires_grad_()
    assert x.narrow(0, torch.tensor(-3), 2).grad_fn.name() == "SliceBackward0"
    assert x.narrow(0, torch.tensor(-3), 2).tolist() == x[2:4].tolist()


def test_unknown_start_is_compiled():
    compiled = torch.compile(lambda x, start: x.narrow(0, start, 2) * 2)
    x = grid(5, 4)
    for start in (0, 3, -5, -2):
        expected = (x.narrow(0, start, 2) * 2).tolist()
        assert compiled(x, torch.tensor(start)).tolist() == expected


def test_unknown_start_is_differentiated():
    compiled = torch.compile(lambda x, start: (x.narrow(1, start, 2) ** 2).sum())
    x = grid(2, 4).clone().requires_grad_()
    compiled(x, torch.tensor(1)).backward()
    assert x.grad.tolist() == [[0, 2, 4, 0], [0, 10, 12, 0]]


def _written(x, start):
    y = x.clone()
    y.narrow(0, start, 2).add_(100)
    return y


def test_writes_through_an_unknown_start():
    x = grid(5)
    expected = _written(x, torch.tensor(2)).tolist()
    assert expected == [0, 1, 102, 103, 4]
    assert torch.compile(_written)(x, torch.tensor(2)).tolist() == expected
    starts = torch.tensor([2, 0])
    mapped = torch.vmap(_written, in_dims=(None, 0))(x, starts)
    assert mapped.tolist() == [expected, [100, 101, 2, 3, 4]]


def test_start_that_differs_by_example():
    x = grid(2, 3, 4)
    starts = torch.tensor([1, -3])
    got = torch.vmap(lambda x, start: x.narrow(1, start, 2))(x, starts)
    assert got.tolist() == [x[0, :, 1:3].tolist(), x[1, :, 1:3].tolist()]
    with pytest.raises(RuntimeError, match="exceeds"):
        x.narrow(0, torch.tensor(1), 2)
    with pytest.raises(RuntimeError, match="integral"):
        x.narrow(0, torch.tensor(1.0), 1)


def test_split_at_constants():
    """The numbers of a tensor that is no input of the compiled function are known."""
    places = torch.tensor([1, 3])
    x = grid(5)
    for function in (
        lambda x: x.tensor_split(places),
        lambda x: x.tensor_split(torch.tensor([1, 3])),
    ):
        assert [p.tolist() for p in torch.compile(function)(x)] == [[0], [1, 2], [3, 4]]
    with pytest.raises(RuntimeError, match="tolist"):
        torch.compile(lambda x, places: x.tensor_split(places), fullgraph=True)(x, places)


# scalars and tensors of no dims


def test_a_tensor_is_not_taken_for_a_number_where_its_value_is_hidden():
    x = grid(3) + 1
    for mode in ("floor", "trunc", None):
        divide = lambda x, y, mode=mode: torch.div(x, y, rounding_mode=mode)
        got = torch.vmap(divide)(x * 7, x)
        assert got.tolist() == [7, 7, 7]
    compiled = torch.compile(torch.floor_divide)
    assert compiled(torch.tensor(7.0), torch.tensor(2.0)).item() == 3


@pytest.mark.parametrize("name", ["__radd__", "__rmul__", "__rand__", "__ror__", "__rxor__"])
def test_reflected_operators_want_a_tensor(name):
    with pytest.raises(TypeError):
        getattr(torch.Tensor, name)(2, torch.tensor([1]))


def test_shifts():
    x = torch.tensor([1, 2])
    assert (8 >> x).tolist() == [4, 2] and (1 << x).tolist() == [2, 4]
    y = operator.ilshift(x, 3)
    assert y is x and x.tolist() == [8, 16]
    assert operator.irshift(x, torch.tensor([1, 2])).tolist() == [4, 4] and y is x


# the rest


def test_as_strided_scatter_gradient():
    """PyTorch's gradient of `self` has the complement here; finite differences decide."""
    x, y = grid(3, 3).clone().requires_grad_(), grid(2, 2).clone().requires_grad_()
    function = lambda x, y: torch.as_strided_scatter(x, y, (2, 2), (1, 2), 1)
    assert gradcheck(function, (x, y)) and gradgradcheck(function, (x, y))


def test_chunk_cat():
    x, y = torch.tensor([[1, 2], [3, 4], [5, 6]]), torch.tensor([7, 8])
    assert torch._chunk_cat([x, y], 0, 2).tolist() == [[1, 2, 3, 4, 7], [5, 6, 0, 0, 8]]
    for arguments in (([], 0, 1), ([x], 0, 0), ([x, y], -1, 2), ([x, y], 1, 2), ([x[:0]], 0, 1)):
        with pytest.raises(RuntimeError, match="_chunk_cat expects"):
            torch._chunk_cat(*arguments)


def test_nonzero_under_vmap():
    x = torch.tensor([[1, 0, 2], [0, 3, 4]])
    assert torch.vmap(torch.argwhere)(x).tolist() == [[[0], [2]], [[1], [2]]]
    assert torch.vmap(torch.nonzero)(torch.ones(2, 0)).shape == (2, 0, 1)
    with pytest.raises(RuntimeError, match="another count for each example"):
        torch.vmap(torch.nonzero)(torch.tensor([[1, 1], [1, 0]]))


def test_arange_of_fractions_in_whole_numbers():
    """int64 cuts the numbers before it counts, the others after."""
    assert torch.arange(0, 6, 1.5, dtype=torch.int64).tolist() == [0, 1, 2, 3, 4, 5]
    assert torch.arange(0, 6, 1.5, dtype=torch.int32).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="nonzero"):
        torch.arange(0, 1, 0.3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="nonzero"):
        torch.arange(0, 1, 0)


def test_cat_of_nothing():
    with pytest.raises(ValueError, match="non-empty"):
        torch.cat([])


def test_the_package_contains_itself():
    assert torch.torch is torch
    x = torch.tensor([1 + 2j])
    assert torch.resolve_conj(x) is x and torch.resolve_neg(x) is x


def test_channels_last_of_each_example_of_a_batch():
    x = torch.arange(72.0).reshape(2, 2, 3, 2, 3)
    y = torch.vmap(lambda a: a.to(torch.float64, memory_format=torch.channels_last))(x)
    assert y.stride() == (36, 18, 1, 9, 3) and y.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="rank 4"):
        torch.vmap(lambda a: a.to(torch.float64, memory_format=torch.channels_last))(x[0])
