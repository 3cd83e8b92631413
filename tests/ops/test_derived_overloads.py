"""Derived overloads (in-place, `out`), operators that give Python values, resizing."""

import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.core.op import registry

aten = torch.ops.aten


# in-place overloads


@pytest.mark.parametrize(
    "name, schema",
    [
        ("add_.Tensor", "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1)"),
        ("pow_.Scalar", "pow_.Scalar(Tensor(a!) self, Scalar exponent)"),
        ("pow_.Tensor", "pow_.Tensor(Tensor(a!) self, Tensor exponent)"),
        ("ldexp_.default", "ldexp_(Tensor(a!) self, Tensor other)"),
        ("transpose_.default", "transpose_(Tensor(a!) self, int dim0, int dim1)"),
        ("squeeze_.dim", "squeeze_.dim(Tensor(a!) self, int dim)"),
        ("polygamma_.default", "polygamma_(Tensor(a!) self, int n)"),
    ],
)
def test_schemas_of_inplace_overloads(name, schema):
    base, _, overload = name.partition(".")
    found = getattr(getattr(aten, base), overload)
    assert str(found.schema) == f"{schema} -> Tensor(a!)"
    assert repr(found) == f"aten.{name}"


def test_inplace_overloads_that_have_names_of_their_own():
    assert aten.pow_.overloads() == ["Tensor", "Scalar"]
    with pytest.raises(AttributeError, match="Tensor, Scalar"):
        aten.pow_.Tensor_Scalar
    x = torch.tensor([1.0, 2.0])
    assert aten.pow_.Scalar(x, 2) is x and x.tolist() == [1, 4]
    x = torch.ones(2, requires_grad=True)
    y = x.clone()
    assert aten.polygamma_(y, 1) is y and y.tolist() == pytest.approx([np.pi**2 / 6] * 2)
    y.sum().backward()
    assert torch.allclose(x.grad, torch.polygamma(2, torch.ones(2)))


def test_a_comparison_in_place_keeps_the_tensor_tracked():
    """Its derivative is zero, which is not the same as none."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y.eq_(1)
    assert y.requires_grad and y.tolist() == [1, 0]
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


# out overloads


def test_out_overloads():
    x, out = torch.ones(2, 3), torch.zeros(2, 3)
    assert aten.atan2.out(x, x, out=out) is out and torch.equal(out, torch.atan2(x, x))
    assert repr(aten.atan2.out) == "aten.atan2.out"
    assert torch.equal(aten.add.out(x, x, alpha=2, out=out), 3 * x)
    assert torch.equal(aten.add.Scalar_out(x, 1, out=out), 2 * x)
    assert aten.sum.IntList_out(x, [1], out=torch.zeros(2)).tolist() == [3, 3]
    sums = aten.norm.dtype_out(x, 1, [1], False, dtype=torch.float32, out=torch.zeros(2))
    assert sums.tolist() == [3, 3]
    assert "out_dtype" in str(aten.addmm.dtype_out._schema)
    assert not hasattr(aten.exp, "all_out")  # which only `all` and `any` have
    assert aten.all.all_out(x, out=torch.tensor(False)).item() is True
    assert aten.mean.out(x, [0], out=torch.zeros(3)).tolist() == [1, 1, 1]
    assert torch.equal(aten.tanh_backward.grad_input(x, x, grad_input=out), 0 * x)


def test_out_overloads_with_several_results():
    x = torch.tensor([3.0, 1.0, 2.0])
    values, indices = torch.zeros(3), torch.zeros(3, dtype=torch.int64)
    found = aten.sort.values(x, 0, False, values=values, indices=indices)
    assert found[0] is values and values.tolist() == [1, 2, 3] and indices.tolist() == [1, 2, 0]
    aten.sort.values_stable(x, stable=True, dim=0, descending=True, values=values, indices=indices)
    assert values.tolist() == [3, 2, 1]
    low, place = torch.tensor(0.0), torch.tensor(0)
    aten.min.dim_min(x, 0, False, min=low, min_indices=place)
    assert (low.item(), place.item()) == (1, 1)
    aten.max.dim_max(x, 0, out=(low, place))
    assert (low.item(), place.item()) == (3, 0)


def test_out_overloads_that_do_not_exist_or_fit():
    with pytest.raises(AttributeError, match="no overload 'Foo_out'"):
        aten.add.Foo_out
    with pytest.raises(AttributeError):
        aten.add_.out
    with pytest.raises(errors.ArgumentError):
        aten.add.out(torch.ones(2), torch.ones(2))  # out is missing


# Python values


def test_facts_as_operators():
    x = torch.arange(24.0).reshape(4, 6)[1:, ::2]
    assert aten.sym_size.int(x, -1) == 3 and aten.sym_size(x) == [3, 3]
    assert aten.sym_stride.int(x, 0) == 6 and aten.sym_stride(x) == [6, 2]
    assert aten.sym_numel(x) == 9 and aten.sym_storage_offset(x) == 6
    with pytest.raises(IndexError):
        aten.sym_size.int(x, 2)
    assert aten._local_scalar_dense(torch.tensor(3)) == 3
    with pytest.raises(errors.DataDependentError):
        torch.make_fx(aten._local_scalar_dense, tracing_mode="fake")(torch.ones(()))


def test_truth_of_all_elements():
    assert aten._is_any_true(torch.tensor([False, True])).item() is True
    assert aten._is_all_true(torch.tensor([False, True])).item() is False
    with pytest.raises(RuntimeError, match="truth values"):
        aten._is_all_true(torch.ones(2))


# aliases and fresh tensors


def test_lifting_hands_the_tensor_on():
    x = torch.ones(2, requires_grad=True)
    assert aten.lift(x) is x and aten.lift_fresh(x) is x
    copy = aten.lift_fresh_copy(x)
    assert copy is not x and copy.requires_grad


def test_reshape_alias_is_a_view_with_the_strides_of_one():
    x = torch.arange(6.0)
    aten._reshape_alias(x, [2, 3], [3, 1]).fill_(1)
    assert x.tolist() == [1] * 6
    with pytest.raises(RuntimeError, match="strides"):
        aten._reshape_alias(x, [3, 2], [1, 3])
    assert aten._reshape_alias_copy(x, [2, 3], [3, 1])._base is None


def test_slice_inverse_fills_the_slice():
    base = torch.arange(8.0).reshape(2, 4)
    part = base[:, 1:4:2]
    assert torch.equal(aten.slice_inverse(part, base, 1, 1, 4, 2), base)


def test_zeros_that_share_one_element_cannot_be_written():
    zeros = aten._efficientzerotensor([2, 3], dtype=torch.float64)
    assert zeros.shape == (2, 3) and zeros.dtype is torch.float64 and not zeros.any()
    with pytest.raises(RuntimeError, match="single memory location"):
        zeros.add_(1)


def test_zeros_behind_batch_dims():
    found = aten._new_zeros_with_same_feature_meta(
        torch.ones(5, 3, dtype=torch.float64), torch.ones(2, 4), self_num_batch_dims=1
    )
    assert found.shape == (5, 2, 4) and found.dtype is torch.float32


def test_resize():
    x = torch.arange(6.0)
    assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_(6).tolist() == [0, 1, 2, 3, 4, 5]  # the memory is still there
    assert x.resize_(8).tolist()[:6] == [0, 1, 2, 3, 4, 5] and x._version == 3
    base = torch.arange(4.0)
    view = base[1:]
    assert view.resize_(2).tolist() == [1, 2] and view._base is base
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(2, requires_grad=True).resize_(3)
    for n in (2, 5):
        x = torch.ones(2, 3)
        assert torch.vmap(lambda t, n=n: t.resize_(n))(x).shape == x.shape == (2, n)


# kernels of other libraries


def test_fused_attention_is_attention():
    query, key, value = (torch.randn(2, 4, 6, 8, dtype=torch.float64) for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    for name, rest in {
        "_scaled_dot_product_flash_attention_for_cpu": (0.0, True),
        "_scaled_dot_product_flash_attention": (0.0, True),
        "_scaled_dot_product_efficient_attention": (None, True, 0.0, True),
        "_scaled_dot_product_cudnn_attention": (None, True, 0.0, True),
        "_scaled_dot_product_fused_attention_overrideable": (None, 0.0, True),
        "_cudnn_attention_forward": (None, None, None, 6, 6, True, 0.0, True),
    }.items():
        found = getattr(aten, name)(query, key, value, *rest)
        assert torch.allclose(found[0], wanted), name
        assert not found[1].requires_grad


def test_packed_sequences_are_those_of_a_batch():
    query, key, value = (torch.randn(2, 6, 4, 8, dtype=torch.float64) for _ in range(3))
    ends = torch.tensor([0, 6, 12])
    dense = aten._flash_attention_forward(query, key, value, None, None, 6, 6, 0.0, True, False)
    packed = [t.reshape(12, 4, 8) for t in (query, key, value)]
    found = aten._flash_attention_forward(*packed, ends, ends, 6, 6, 0.0, True, False)
    assert torch.allclose(found.output.reshape(2, 6, 4, 8), dense.output)
    assert found.softmax_logsumexp.shape == (4, 12)
    batch = [t.unsqueeze(0) for t in packed]
    other = aten._efficient_attention_forward(*batch, None, ends, ends, 6, 6, 0.0, 1, True)
    assert torch.allclose(other.output[0], found.output)
    assert other.logsumexp.shape == (2, 4, 32)


def test_arguments_of_other_libraries_are_refused():
    x = torch.ones(1, 3, 2, 4)
    with pytest.raises(errors.NotInThisBuild, match="block_table"):
        aten._flash_attention_forward(x, x, x, None, None, 3, 3, 0.0, False, False, block_table=x)


def test_forms_of_convolution():
    x, w = torch.randn(2, 4, 5, 5), torch.randn(4, 1, 3, 3)
    wanted = torch.conv2d(x, w, None, 2, 1, groups=4)
    assert torch.equal(aten._conv_depthwise2d(x, w, [3, 3], None, [2, 2], [1, 1], [1, 1]), wanted)
    assert sum(op.__module__ == "pullback.ops.conv_forms" for op in registry.values()) == 13
    with pytest.raises(errors.ShapeError, match="kernels of size"):
        aten.slow_conv_dilated2d(x, torch.randn(3, 4, 3, 3), [2, 2])
