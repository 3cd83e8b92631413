"""What `out=` takes, and memory that belongs to somebody else."""

import numpy as np
import pytest

import pullback as torch


def test_exact_dtype():
    """Operators that PyTorch writes without a cast want the very dtype of the result."""
    x, index = torch.rand(2, 2), torch.zeros(2, 2, dtype=torch.int64)
    calls = [
        lambda out: torch.gather(x, 1, index, out=out),
        lambda out: torch.take(x, index, out=out),
        lambda out: torch.masked_select(x, x > 2, out=out),
        lambda out: torch.kthvalue(x, 1, out=(out, torch.empty(2, dtype=torch.int64))),
        lambda out: torch.aminmax(x, dim=0, out=(torch.empty(2), out)),
        lambda out: torch.multinomial(x, 1, out=out),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="float64"):
            call(torch.empty(2, 2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="complex64"):
        torch.complex(x.double(), x.double(), out=torch.empty(2, 2, dtype=torch.complex64))
    out = torch.empty(2, 2, dtype=torch.float64)
    assert torch.add(x, x, out=out) is out  # arithmetic is cast


def test_shared_memory():
    """Operators that read while they write refuse an input as `out`; arithmetic does not."""
    x = torch.rand(3)
    for call in (
        lambda: torch.gather(x, 0, torch.tensor([2, 1, 0]), out=x),
        lambda: torch.take(x, torch.tensor([2, 1, 0]), out=x),
        lambda: torch.masked_select(x, x >= 0, out=x),
        lambda: torch.kthvalue(x, 1, out=(x, torch.empty((), dtype=torch.int64))),
        lambda: torch.cat([x, x], out=x),
        lambda: torch.cat([x, x], out=x[:2]),
    ):
        with pytest.raises(RuntimeError, match="single memory location"):
            call()
    assert torch.add(x, 1, out=x) is x


def test_elements_that_are_one():
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.add(torch.ones(3), 1, out=torch.zeros(1).expand(3))


def test_creation_takes_the_dtype_of_out():
    out = torch.empty(0, dtype=torch.float64)
    assert torch.arange(3, out=out).tolist() == [0, 1, 2] and out.dtype is torch.float64
    for make in (torch.zeros, torch.ones, torch.randn):
        out = torch.empty(3, dtype=torch.float64)
        assert make(3, out=out).dtype is torch.float64
    with pytest.raises(ValueError, match="nonzero"):
        torch.arange(0, 64, 0.5, out=torch.empty(0, dtype=torch.int64))


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized:UserWarning")
def test_borrowed_memory_is_not_resized():
    """The caller looks at the array: a result in other memory would never reach it."""
    array = np.zeros(2)
    out = torch.from_numpy(array)
    torch.add(torch.ones(2, dtype=torch.float64), 1, out=out)
    assert array.tolist() == [2, 2]
    for borrowed in (out, out[:1], torch.from_dlpack(array)):
        with pytest.raises(RuntimeError, match="not resizable"):
            torch.add(torch.ones(3, dtype=torch.float64), 1, out=borrowed)


def test_layouts():
    assert torch.zeros(2, layout=torch.strided).layout == torch.strided
    assert torch.zeros(2, layout=torch._mkldnn).layout is torch.strided  # as `to_mkldnn` gives
    with pytest.raises(NotImplementedError, match="layout"):
        torch.zeros(2, layout=torch.jagged)


def test_resize_as():
    x = torch.arange(6).reshape(2, 3)
    assert torch.resize_as_(x, torch.zeros(4)) is x and x.tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError):
        torch.ones(2, requires_grad=True).resize_as_(torch.ones(3))
