"""The handle: facts, sharing of memory, conversion to Python and NumPy, copying, printing."""

import copy
import io
import pickle

import numpy as np
import pytest

import pullback as torch


def grid(*shape):
    """0, 1, 2, ... as float32."""
    return torch.arange(int(np.prod(shape)), dtype=torch.float32).reshape(shape).clone()


# facts


def test_shape_and_sizes():
    x = torch.zeros(2, 3, 4)
    assert x.shape == (2, 3, 4) and x.size() == (2, 3, 4) and x.size(-1) == 4
    assert x.ndim == x.dim() == 3
    assert x.numel() == x.nelement() == 24 and x.shape.numel() == 24
    assert repr(x.shape) == "torch.Size([2, 3, 4])"
    assert isinstance(x.shape[1:], torch.Size) and x.shape[1:] == (3, 4)
    assert x.element_size() == x.itemsize == 4 and x.nbytes == 96
    assert x.dtype is torch.float32 and str(x.device) == "cpu" and x.layout == torch.strided
    assert not x.is_cuda and not x.is_sparse and x.is_floating_point() and not x.is_complex()
    with pytest.raises(IndexError):
        x.size(3)


def test_strides_and_offset():
    x = grid(4, 6)
    assert x.stride() == (6, 1) and x.stride(0) == 6 and x.storage_offset() == 0
    y = x[1:, 2:5]
    assert y.stride() == (6, 1) and y.storage_offset() == 8
    assert y.T.stride() == (1, 6) and y.T.storage_offset() == 8
    assert x[::2, ::3].stride() == (12, 3)
    assert x[2].storage_offset() == 12 and x[2, 3].storage_offset() == 15
    assert x.expand(2, 4, 6).stride() == (0, 6, 1)
    assert x.unsqueeze(1).stride()[::2] == (6, 1)
    assert x.diagonal().stride() == (7,)
    assert x.as_strided((2, 2), (1, 2), 3).storage_offset() == 3
    assert x.as_strided((2, 2), (1, 2), 3).tolist() == [[3, 5], [4, 6]]
    assert x.stride(-1) == 1


def test_is_contiguous():
    x = grid(4, 6)
    assert x.is_contiguous() and x[1:].is_contiguous() and x[0].is_contiguous()
    assert not x.T.is_contiguous() and not x[:, 1:].is_contiguous()
    assert x.T.contiguous().is_contiguous() and x.contiguous() is x
    assert torch.zeros(0, 3).T.is_contiguous()
    assert torch.zeros(1, 3).T.is_contiguous()


def test_views_share_memory():
    x = grid(3, 4)
    for view in (x[1], x[:, 1:3], x.T, x.view(12), x.reshape(2, 6), x.diagonal(), x.unsqueeze(0),
                 x.unflatten(0, (3, 1)), x.permute(1, 0), x.expand(2, 3, 4), x.detach(),
                 x.narrow(0, 1, 2), x.as_strided((2,), (5,)), x.split(2)[1], x.unbind(1)[2]):
        assert np.shares_memory(view.detach().numpy(), x.numpy())
    for copied in (x.clone(), x + 0, x.T.reshape(12), x.T.contiguous(), x[[0, 1]], x[x > 3],
                   x.to(torch.float64), x.repeat(1, 1), x.flip(0)):
        assert not np.shares_memory(copied.numpy(), x.numpy())
    assert x.view(12).data_ptr() == x.data_ptr()
    assert x[1].data_ptr() == x.data_ptr() + 16


def test_base_of_views():
    x = grid(3, 4)
    y = x[1:]
    z = y.T
    assert x._base is None and y._base is x and z._base is x
    assert (x + 1)._base is None
    assert x.detach()._base is None


def test_view_refuses_what_needs_a_copy():
    x = grid(3, 4)
    with pytest.raises(RuntimeError, match="view"):
        x.T.view(12)
    with pytest.raises(RuntimeError, match="invalid for input of size 12"):
        x.view(5, 2)
    assert x.T.view(2, 2, 3).shape == (2, 2, 3)  # splitting a dim needs no copy
    assert x.view(-1).shape == (12,) and x.view(-1, 6).shape == (2, 6)
    assert x.view(torch.int32).dtype is torch.int32 and x.view_as(torch.ones(2, 6)).shape == (2, 6)


# NumPy


def test_from_numpy_shares():
    a = np.arange(6.0).reshape(2, 3)
    x = torch.from_numpy(a)
    assert x.dtype is torch.float64
    a[0, 0] = 7
    assert x[0, 0].item() == 7
    x[1, 2] = -1
    assert a[1, 2] == -1
    assert x.numpy() is a or np.shares_memory(x.numpy(), a)
    with pytest.raises(TypeError):
        torch.from_numpy([1, 2])
    with pytest.raises(TypeError):
        torch.from_numpy(np.array(["a"]))


def test_from_numpy_with_strides():
    a = np.arange(12).reshape(3, 4)
    x = torch.from_numpy(a[:, ::2])
    assert x.stride() == (4, 2) and x.tolist() == [[0, 2], [4, 6], [8, 10]]


def test_tensor_copies_and_as_tensor_shares():
    a = np.zeros(3, np.float32)
    copied, shared = torch.tensor(a), torch.as_tensor(a)
    a[0] = 1
    assert copied[0].item() == 0 and shared[0].item() == 1
    assert torch.as_tensor(shared) is shared
    assert torch.as_tensor(a, dtype=torch.float64).dtype is torch.float64
    assert torch.asarray(a, copy=True).data_ptr() != torch.asarray(a).data_ptr()


def test_numpy_refuses_history():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        x.numpy()
    assert x.detach().numpy().tolist() == [1, 1]
    assert x.numpy(force=True).tolist() == [1, 1]
    with pytest.raises(RuntimeError):
        np.asarray(x)


def test_array_protocol():
    x = grid(2, 2)
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.exp(np.asarray(x)).dtype == np.float32
    with pytest.raises(TypeError):  # arrays and tensors do not mix by themselves
        np.ones((2, 2), np.float32) * x


def test_dlpack():
    x = grid(2, 3)
    a = np.from_dlpack(x)
    assert a.tolist() == x.tolist() and np.shares_memory(a, x.numpy())
    back = torch.from_dlpack(np.ones(3))
    assert back.tolist() == [1, 1, 1]
    with pytest.raises(BufferError, match="detach"):
        x.requires_grad_().__dlpack__()


# Python values


def test_item_and_conversions():
    assert torch.tensor(2.5).item() == 2.5 and type(torch.tensor(3).item()) is int
    assert type(torch.tensor(True).item()) is bool and torch.tensor(1j).item() == 1j
    assert torch.tensor([[4.0]]).item() == 4.0
    assert torch.tensor(1.5, dtype=torch.bfloat16).item() == 1.5
    assert int(torch.tensor(3.7)) == 3 and float(torch.tensor(2)) == 2.0
    assert complex(torch.tensor(2.0)) == 2 + 0j
    with pytest.raises(RuntimeError, match="2 elements cannot be converted to Scalar"):
        torch.ones(2).item()
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        float(torch.ones(2))


def test_tolist():
    assert grid(2, 2).tolist() == [[0, 1], [2, 3]] and torch.tensor(5).tolist() == 5
    assert torch.zeros(0, 3).tolist() == [] and torch.zeros(2, 0).tolist() == [[], []]
    assert torch.tensor([1.5, 2], dtype=torch.bfloat16).tolist() == [1.5, 2]
    assert type(torch.tensor([True]).tolist()[0]) is bool


def test_truth():
    assert bool(torch.tensor(2)) and not bool(torch.tensor([[0.0]]))
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="no values"):
        bool(torch.ones(0))


def test_index_protocol():
    assert [10, 20, 30][torch.tensor(1)] == 20
    assert list(range(torch.tensor(3))) == [0, 1, 2]
    with pytest.raises(TypeError):
        [1, 2][torch.tensor(1.0)]


def test_len_iter_contains():
    x = grid(3, 2)
    assert len(x) == 3 and [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert 3.0 in x and 7 not in x
    with pytest.raises(TypeError, match="0-d"):
        len(torch.tensor(1))
    with pytest.raises(TypeError, match="0-d"):
        iter(torch.tensor(1))
    a, b = torch.tensor([1, 2])
    assert (a.item(), b.item()) == (1, 2)


def test_format():
    assert f"{torch.tensor(3.14159):.2f}" == "3.14" and f"{torch.tensor(7):d}" == "7"
    assert f"{torch.tensor([1, 2])}" == "tensor([1, 2])"
    with pytest.raises(TypeError):
        f"{torch.ones(2):.2f}"


def test_format_of_what_is_differentiated():
    x = torch.tensor(1.5, requires_grad=True)
    assert f"{x:.2f}" == "1.50" and f"{x * 2:.1e}" == "3.0e+00" and f"{x}" == "1.5"
    seen = []
    torch.func.grad(lambda v: (seen.append(f"{v:.2f}"), v * v)[1])(torch.tensor(2.0))
    assert seen == ["2.00"]
    p = torch.nn.Parameter(torch.tensor(2.5))
    assert f"{p}" == str(p)
    with pytest.raises(TypeError):
        f"{p:.2f}"
    with pytest.raises(RuntimeError, match="needs the value"):
        torch.compile(lambda v: (f"{v * 2:.2f}", v)[1], fullgraph=True)(x)


def test_equality_with_strangers():
    x = torch.tensor([1, 2])
    for other in ((1, 2), [1, 2], object(), None, "a", {}):
        assert (x == other) is False and (x != other) is True
    with pytest.raises(TypeError, match="single element"):
        [1, 2, 3][x]


def test_hash_and_equality():
    x = torch.ones(2)
    assert x in {x} and hash(x) == hash(x)
    assert (x == None) is False and (x != None) is True  # noqa: E711
    assert (x == 1).tolist() == [True, True]


def test_repr():
    assert repr(torch.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(torch.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(torch.tensor(3.0)) == "tensor(3.)"
    assert repr(torch.ones(1, requires_grad=True)) == "tensor([1.], requires_grad=True)"
    x = torch.ones(1, requires_grad=True)
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)"
    assert repr(torch.ones(1, dtype=torch.float64)) == "tensor([1.], dtype=torch.float64)"
    assert repr(torch.zeros(0)) == "tensor([])"


# copying


def test_deepcopy():
    x = torch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    y = copy.deepcopy(x)
    assert y is not x and y.requires_grad and y.is_leaf and y.grad.tolist() == [3, 3]
    with torch.no_grad():
        y[0] = 5
    assert x[0].item() == 1
    y.grad[0] = 9
    assert x.grad[0].item() == 3
    both = copy.deepcopy([x, x])
    assert both[0] is both[1]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_deepcopy_of_aliases():
    x = grid(4)
    pair = copy.deepcopy([x, x[1:]])
    assert pair[1].tolist() == [1, 2, 3]
    assert pair[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    x = torch.tensor([1.5, 2.5], requires_grad=True)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.tolist() == [1.5, 2.5] and y.requires_grad and y.is_leaf
    half = torch.tensor([1.5], dtype=torch.bfloat16)
    assert pickle.loads(pickle.dumps(half, protocol)).dtype is torch.bfloat16
    stream = io.BytesIO()
    pickle.dump({"w": x, "n": 1}, stream, protocol)
    stream.seek(0)
    assert pickle.load(stream)["w"].tolist() == [1.5, 2.5]


# requires_grad


def test_requires_grad_rules():
    x = torch.ones(2)
    assert not x.requires_grad and x.is_leaf and x.grad is None and x.grad_fn is None
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf
    y = x * 2
    assert y.requires_grad and not y.is_leaf and y.grad_fn.name() == "MulBackward0"
    y.requires_grad_()  # changes nothing
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad = False
    x.requires_grad = False
    assert not (x * 2).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        torch.ones(2, dtype=torch.int64).requires_grad_()
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1, 2], requires_grad=True)
    assert torch.ones(1, dtype=torch.complex64).requires_grad_().requires_grad


def test_grad_assignment():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.zeros(2)
    assert x.grad.tolist() == [0, 0]
    x.grad = None
    assert x.grad is None
    with pytest.raises(RuntimeError, match="size"):
        x.grad = torch.zeros(3)
    with pytest.raises(RuntimeError, match="type"):
        x.grad = torch.zeros(2, dtype=torch.float64)
    with pytest.raises(TypeError):
        x.grad = 1.0
    x.grad = torch.ones(2)
    del x.grad
    assert x.grad is None


def test_detach():
    x = torch.ones(2, requires_grad=True)
    y = x.detach()
    assert not y.requires_grad and y.is_leaf and np.shares_memory(y.numpy(), x.detach().numpy())
    y[0] = 3
    assert x[0].item() == 3 and x._version == y._version == 1
    z = x * 2
    assert z.detach_() is z and not z.requires_grad and z.grad_fn is None
    view = (x * 2)[0:1]
    with pytest.raises(RuntimeError, match="views"):
        view.detach_()


def test_data_is_an_untracked_alias():
    x = torch.ones(2, requires_grad=True)
    y = x * x
    x.data[0] = 5  # not seen by the version counter: the gradient silently uses the new value
    assert x._version == 0 and x[0].item() == 5
    y.sum().backward()
    assert x.grad.tolist() == [10, 2]
    x.data = torch.zeros(3)
    assert x.shape == (3,) and x.requires_grad


# conversions


def test_to():
    x = torch.ones(2)
    assert x.to(torch.float32) is x and x.to("cpu") is x and x.cpu() is x
    assert x.to(torch.float64).dtype is torch.float64 and x.to(torch.zeros(1).double()).dtype is (
        torch.float64)
    assert x.to(torch.float32, copy=True) is not x
    assert x.double().dtype is torch.float64 and x.half().dtype is torch.float16
    assert x.long().dtype is torch.int64 and x.bool().dtype is torch.bool
    assert x.type(torch.int32).dtype is torch.int32 and x.type() == "torch.FloatTensor"
    assert torch.tensor([2.9, -2.9]).int().tolist() == [2, -2]
    g = torch.ones(2, requires_grad=True)
    g.double().sum().backward()
    assert g.grad.dtype is torch.float32


def test_old_constructor():
    assert torch.Tensor([1, 2]).dtype is torch.float32 and torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor().shape == (0,)


def test_reflected_operators_with_numbers():
    x = torch.tensor([1.0, 2.0])
    assert (3 - x).tolist() == [2, 1] and (2 / x).tolist() == [2, 1] and (2**x).tolist() == [2, 4]
    assert (2 * x).tolist() == [2, 4] and (7 // x).tolist() == [7, 3] and (5 % x).tolist() == [0, 1]
    assert (np.float32(2) * x).tolist() == [2, 4] and isinstance(np.float32(2) * x, torch.Tensor)
    assert (-x).tolist() == [-1, -2] and (+x).tolist() == [1, 2] and abs(-x).tolist() == [1, 2]
    assert (~torch.tensor([True, False])).tolist() == [False, True]
    assert (x > 1).tolist() == [False, True]
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        "a" * x


def test_size_arithmetic():
    size = torch.zeros(2, 3).shape
    assert size + (4,) == (2, 3, 4) and isinstance(size + (4,), torch.Size)
    assert pickle.loads(pickle.dumps(size)) == size


def test_names_that_numpy_uses():
    x = grid(2, 3)
    assert x.sum(axis=1).tolist() == x.sum(1).tolist()
    assert x.mean(axis=0, keepdims=True).shape == (1, 3)
    assert torch.sum(input=x, dim=0).tolist() == torch.sum(x, axis=0).tolist() == [3, 5, 7]
    with pytest.raises(TypeError):
        x.sum(0, axis=1)


def test_numbers_that_a_dtype_of_integers_cannot_hold():
    for value in (300, 256.0, 255.5, -256, float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.tensor([value], dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.ByteTensor([300])
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor([[1], [2**40]], dtype=torch.int32)
    assert torch.tensor([-1, -255, 255], dtype=torch.uint8).tolist() == [255, 1, 255]
    assert torch.tensor(np.array([300]), dtype=torch.uint8).item() == 44  # arrays are cast
    assert torch.tensor([1.9, -1.9], dtype=torch.int32).tolist() == [1, -1]


def test_requires_grad_and_out_are_no_arguments_of_every_operator():
    x = torch.ones(3)
    for call in (lambda: x.resize_(5, requires_grad=True), lambda: torch.sin(x, requires_grad=True),
                 lambda: x.view(3, requires_grad=False), lambda: x.normal_(requires_grad=True)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'requires_grad'"):
            call()
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        x.add_(1, out=x)
    assert x.tolist() == [1, 1, 1] and x.shape == (3,) and not x.requires_grad
    assert torch.ones_like(x, requires_grad=True).requires_grad
    assert x.new_zeros(2, requires_grad=True).requires_grad


def test_indices_beside_numbers_do_not_warn():
    import warnings

    x, i = torch.arange(24.0).reshape(2, 3, 4), torch.tensor([0, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x[0, i].tolist() == x[0].tolist()[::2]
        assert x[:, i].tolist() == [r[::2] for r in x.tolist()]
        assert x[1, :, i].shape == (3, 2) and x[i[:1], None].shape == (1, 1, 3, 4)
