"""Small things that programs rely on: Python types as dtypes, strides, errors of indices."""

import warnings

import pytest

import pullback as torch
from pullback.core.op import Pointwise, families, registry


def test_python_types_are_dtypes_of_double_precision():
    for kind, wanted in ((float, torch.float64), (complex, torch.complex128), (int, torch.int64),
                         (bool, torch.bool)):
        assert torch.zeros(2, dtype=kind).dtype is wanted
        assert torch.ones(2).to(kind).dtype is wanted
        assert torch.tensor([1], dtype=kind).dtype is wanted
    made = [torch.tensor(v).dtype for v in (0.5, [0.5], 1j, [1j], 1, True)]
    assert made == [torch.float32] * 2 + [torch.complex64] * 2 + [torch.int64, torch.bool]


def test_expand_keeps_strides_of_new_dims_of_size_one():
    x = torch.ones(5)
    assert x.expand(1, 1, 5).stride() == x.unsqueeze(0).unsqueeze(1).stride() == (5, 5, 1)
    assert torch.ones(3, 1).expand(1, 3, 4).stride() == (3, 1, 0)
    assert torch.ones(()).expand(1, 1).stride() == (0, 0)
    assert torch.ones(3, 4).t().expand(1, 2, 4, 3).stride() == (0, 0, 1, 4)
    assert [t.stride() for t in torch.broadcast_tensors(torch.ones(1, 3), x[:3])] == [(3, 1)] * 2


def test_resize_follows_memory_formats_and_refuses_what_cannot_be_counted():
    x = torch.ones(288).resize_((3, 2, 3, 4, 4), memory_format=torch.channels_last_3d)
    assert x.stride() == (96, 1, 32, 8, 2)
    x = torch.ones(96).resize_((3, 2, 4, 4), memory_format=torch.channels_last)
    assert x.stride() == (32, 1, 8, 2)
    for size, what in (([2, 4, 2**29, 2**29], "Storage size"), ([0, 4, 2**61], "Stride")):
        with pytest.raises(RuntimeError, match=f"{what} calculation overflowed"):
            torch.empty(()).resize_(size)


def test_errors_of_indices_name_the_dim_that_the_user_counts():
    x = torch.zeros(2, 5, 10)
    for key, text in (((0, 5), "5 is out of bounds for dimension 1 with size 5"),
                      ((0, 1, 15), "15 is out of bounds for dimension 2 with size 10"),
                      ((None, 0, ..., 15), "15 is out of bounds for dimension 3 with size 10")):
        with pytest.raises(IndexError, match=f"index {text}"):
            x[key]
    with pytest.raises(TypeError, match="does not support deleting"):
        del x[0]
    for where in ((10,), torch.tensor([1])):
        with pytest.raises(RuntimeError, match="at least a 1-dimensional tensor"):
            torch.ones(()).tensor_split(where)
    with pytest.raises(RuntimeError, match="to have dtype of long"):
        torch.tensor_split(x, torch.tensor(1.5))
    with pytest.raises(RuntimeError, match="or one-dimensional tensor"):
        torch.tensor_split(x, torch.ones(2, 2, dtype=torch.int64))


def test_masks_of_bytes_warn():
    x, mask = torch.arange(3.0), torch.tensor([1, 0, 1], dtype=torch.uint8)
    with pytest.warns(UserWarning, match=r"torch\.uint8 is now deprecated"):
        assert x[mask].tolist() == [0, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x[mask.bool()].tolist() == [0, 2]


def test_all_names_of_a_tensor_are_there():
    x = torch.ones(2, 2)
    assert [n for n in dir(x) if n != "imag" and not hasattr(x, n)] == []
    assert hasattr(torch.ones(2, dtype=torch.complex64), "imag")


def test_views_of_another_dtype_of_nothing():
    x = torch.ones(0, 5, 64)
    assert x.view(torch.uint8).shape == (0, 5, 256) and x.view(torch.float64).shape == (0, 5, 32)
    assert torch.ones(3, 0).view(torch.int8).shape == (3, 0)
    assert x.view(torch.uint8).data_ptr() == x.data_ptr()


def test_gradients_of_scattered_pieces_do_not_depend_on_where_they_lie():
    base = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    piece = torch.ones(3, dtype=torch.float64, requires_grad=True)
    out = torch.as_strided_scatter(base, piece, (3,), (2,), 0)
    seeds = torch.arange(12.0, dtype=torch.float64).view(2, 6)
    for seed in (seeds[1], seeds[1].clone(), seeds.t().contiguous().t()[1]):
        found = torch.autograd.grad(out, (base, piece), seed, retain_graph=True)
        assert [g.tolist() for g in found] == [[0, 7, 0, 9, 0, 11], [6, 8, 10]]


def test_views_of_a_larger_dtype_begin_at_its_places():
    x = torch.ones(4, 4, 3)
    with pytest.raises(RuntimeError, match=r"size\(-1\) must be divisible by 2"):
        x.view(torch.float64)
    with pytest.raises(RuntimeError, match=r"storage_offset\(\) must be divisible by 2"):
        x[:, :, 1:].view(torch.float64)
    with pytest.raises(RuntimeError, match=r"stride\(1\) must be divisible by 2"):
        torch.ones(32).as_strided((4, 4, 2), (2, 1, 1)).view(torch.float64)
    assert torch.ones(4, 4)[:, 2:].view(torch.float64).shape == (4, 1)


def test_lobpcg_reads_the_whole_matrix():
    a = torch.rand(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    a = (a @ a.T / 10).requires_grad_()
    assert torch.autograd.gradcheck(lambda m: torch.lobpcg(m, k=1)[0], (a,))


def test_methods_of_entries_that_have_gone_can_still_be_looked_up():
    class there_once(Pointwise):
        """An entry of a plugin that is unloaded."""

        schema = "there_once(Tensor self) -> Tensor"
        run = "xp.sin(self)"

    del registry["there_once"], families["there_once"]
    assert callable(torch.Tensor.there_once)
    assert "there_once" in dir(torch.Tensor)
