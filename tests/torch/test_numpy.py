"""NumPy functions on tensors and memory shared with other libraries, as PyTorch 2.13 does it."""

import ctypes
import operator

import numpy as np
import pytest

import pullback as torch

A = np.array([1.0, 2.0, 3.0])


def x():
    return torch.tensor([1.0, 2.0, 3.0])


TENSORS = {  # call -> the tensor that PyTorch gives
    "sin": (lambda: np.sin(x()), torch.float32, np.sin(A.astype(np.float32))),
    "add": (lambda: np.add(x(), A), torch.float64, 2 * A),
    "maximum": (lambda: np.maximum(x(), 2), torch.float32, [2, 2, 3]),
    "isnan": (lambda: np.isnan(x()), torch.uint8, [0, 0, 0]),
    "matmul": (lambda: np.matmul(torch.eye(2), torch.eye(2)), torch.float32, np.eye(2)),
    "inverse": (lambda: np.linalg.inv(2 * torch.eye(2)), torch.float32, np.eye(2) / 2),
    "reshape": (lambda: np.reshape(x(), (3, 1)), torch.float32, A[:, None]),
    "cumsum": (lambda: np.cumsum(x()), torch.float32, [1, 3, 6]),
    "reduce": (lambda: np.add.reduce(x()), torch.float32, 6),
    "exp of int": (lambda: np.exp(torch.tensor([1, 2])), torch.float64, np.exp([1, 2])),
    "tensor * array": (lambda: x() * A, torch.float64, A * A),
    "tensor @ array": (lambda: x() @ A, torch.float64, 14),
    "array / tensor": (lambda: A / x(), torch.float64, [1, 1, 1]),
    "array == tensor": (lambda: operator.eq(A, x()), torch.bool, [True] * 3),
    "tensor == array": (lambda: x() == A, torch.bool, [True] * 3),
    "number * tensor": (lambda: np.float64(2) * x(), torch.float32, 2 * A),
    "mean": (lambda: np.mean(x()), torch.float32, 2),
    "sum": (lambda: np.sum(x().reshape(1, 3), axis=1, keepdims=True), torch.float32, [[6]]),
    "clip": (lambda: np.clip(x(), 1.5, 2.5), torch.float32, [1.5, 2, 2.5]),
}


@pytest.mark.parametrize("name", TENSORS)
def test_functions_that_give_tensors(name):
    run, dtype, expected = TENSORS[name]
    out = run()
    assert isinstance(out, torch.Tensor) and out.dtype is dtype
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("run, expected", [
    (lambda: np.concatenate([x(), x()]), [1, 2, 3, 1, 2, 3]),
    (lambda: np.stack([x(), x()]), [[1, 2, 3], [1, 2, 3]]),
    (lambda: np.where(x() > 2, 1, 0), [0, 0, 1]),
    (lambda: np.sort(x()), [1, 2, 3]),
    (lambda: np.array([x(), x()]), [[1, 2, 3], [1, 2, 3]]),
    (lambda: A[torch.tensor([0, 2])], [1, 3]),
    (lambda: np.unique(x()), [1, 2, 3]),
])
def test_functions_that_give_arrays(run, expected):
    out = run()
    assert isinstance(out, np.ndarray)
    np.testing.assert_array_equal(out, expected)


def test_arrays_of_tensors():
    t = x()
    assert np.shares_memory(np.asarray(t), t.numpy()) and np.array(t).base is None
    assert np.asarray(t, dtype=np.int32).dtype == np.int32
    assert np.allclose(t, A) and np.array_equal(t, A) and np.shape(t) == (3,)
    with pytest.raises(ValueError):
        np.asarray(t, dtype=np.int32, copy=False)
    with pytest.raises(RuntimeError, match="detach"):
        np.sin(t.requires_grad_())
    with pytest.raises(TypeError):
        A * x()


# DLPack


class Other:
    """An array of another library."""

    def __init__(self, t):
        self.t = t

    def __dlpack__(self, **options):
        return self.t.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.t.__dlpack_device__()


def test_dlpack_there_and_back():
    t = torch.arange(6.0).reshape(2, 3).T
    a = np.from_dlpack(t)
    assert np.shares_memory(a, t.numpy()) and a.strides == t.numpy().strides
    again = torch.from_dlpack(a)
    again[0, 0] = 7.0
    assert t[0, 0] == 7.0 and t.__dlpack_device__() == (1, 0)
    assert torch.from_dlpack(a, copy=True).data_ptr() != t.data_ptr()
    for d in (torch.bool, torch.uint8, torch.int64, torch.float16, torch.complex128,
              torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        source = torch.ones(2, dtype=d)
        shared = torch.from_dlpack(Other(source))
        assert shared.dtype is d and shared.data_ptr() == source.data_ptr()
    with pytest.raises(BufferError, match="gradient"):
        x().requires_grad_().__dlpack__()


def test_dlpack_capsules_of_both_kinds():
    def name(capsule) -> str:
        get = ctypes.pythonapi.PyCapsule_GetName
        get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
        return get(capsule).decode()

    t = x()
    assert name(torch.to_dlpack(t)) == "dltensor"
    assert name(t.__dlpack__(max_version=(1, 0))) == "dltensor_versioned"
    for capsule in (torch.utils.dlpack.to_dlpack(t), t.__dlpack__(max_version=(1, 0))):
        shared = torch.from_dlpack(capsule)
        assert shared.data_ptr() == t.data_ptr() and shared.add_(1) is shared
    assert t.tolist() == [3.0, 4.0, 5.0]
    assert torch.from_dlpack(t.__dlpack__(copy=True, max_version=(1, 0))).data_ptr() != t.data_ptr()


def test_memory_that_must_not_be_written():
    a = A.copy()
    a.flags.writeable = False
    for _ in range(4):  # often enough for every quick way to be taken
        torch.ones(3, dtype=torch.float64).add_(1)
    t = torch.from_dlpack(a)  # the versioned protocol says so
    with pytest.raises(RuntimeError, match=r"read-only.*\n.*clone"):
        t.add_(1)
    assert t.tolist() == [1.0, 2.0, 3.0] and (t + 1).tolist() == [2.0, 3.0, 4.0]
    with pytest.raises(RuntimeError, match="from_dlpack"):
        torch.from_dlpack(3)
