"""vmap: layouts, views, results and refusals that are easily lost."""

import pytest

import pullback as torch
from pullback import func
from pullback.func import inside, vmap
from pullback.interp import vmap as batching
from pullback.testing import assert_close


def test_empty_operands_of_cat_keep_history():
    x = torch.ones(3, 2)
    empty = torch.zeros(3, 0, requires_grad=True)
    for parts in ((empty, x), (x, empty)):
        assert vmap(lambda a, b: torch.cat([a, b]))(*parts).requires_grad
    mixed = vmap(lambda a, b: torch.cat([a, b], 1))(torch.zeros(3, 0), torch.ones(3, 2, 2))
    assert mixed.shape == (3, 2, 2)


@pytest.mark.parametrize("size, stride", [
    ((2, 3), (3, 1)), ((2, 3, 5), (0, 5, 1)), ((2, 3, 4), (2, 4, 6)), ((0, 2), (2, 1)), ((), ())])
def test_new_empty_strided_has_memory_per_example(size, stride):
    extent = torch.empty_strided(size, stride).untyped_storage().nbytes() // 4
    found = vmap(lambda x: x.new_empty_strided(size, stride))(torch.ones(7))
    assert found.shape == (7, *size) and found.stride() == (extent, *stride)
    found = vmap(vmap(lambda x: x.new_empty_strided(size, stride)))(torch.ones(7, 11))
    assert found.stride() == (11 * extent, extent, *stride)


@pytest.mark.parametrize("make", [
    lambda x: x.new_zeros(2), lambda x: x.new_ones(2), lambda x: x.new_full((2,), 3.0)])
def test_new_tensors_are_writable_afterwards(make):
    out = vmap(make)(torch.ones(3))
    out[0] += 1
    assert (out[0] - out[1]).tolist() == [1, 1]


def test_views_of_unmapped_inputs_are_views_of_them():
    a, b = torch.ones(1, 5), torch.ones(7, 2, 3, 5)
    for op in (torch.Tensor.expand_as, lambda a, b: a.view(5), lambda a, b: a):
        out = vmap(op, in_dims=(None, 0))(a, b)
        assert out._base is a
    assert vmap(lambda a, b: a, in_dims=(None, 0), out_dims=None)(a, b) is a


def test_transposed_numbers_are_the_input():
    x = torch.ones(3)
    assert vmap(lambda t: torch.transpose(t, 0, -1))(x) is x


def test_impossible_views():
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        vmap(torch.Tensor.view, in_dims=(1, None))(torch.ones(2, 7, 5), [10])
    with pytest.raises(RuntimeError, match="one or more dimensions"):
        vmap(torch.view_as_complex)(torch.ones(2))


def test_as_strided_stays_within_an_example():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for size, stride, offset in (((4, 4), (4, 1), 0), ((2,), (12,), None), ((3,), (1,), 10)):
        with pytest.raises(RuntimeError, match="not supported inside of vmap"):
            vmap(lambda t: t.as_strided(size, stride, offset))(x)
    with pytest.raises(RuntimeError, match="not supported inside of vmap"):
        vmap(lambda t: t.as_strided((2, 2), (4, 1), 0))(x[:, 1:])
    with pytest.raises(RuntimeError, match="same length"):
        vmap(lambda t: t.as_strided((1, 1), (1,)))(x)
    assert torch.equal(vmap(lambda t: t.as_strided((2, 2), (4, 1)))(x[:, 1:]), x[:, 1:, :2])
    assert torch.equal(vmap(lambda t: t.as_strided((2,), (12,)), in_dims=1)(x), x[:, :, 0].T)


@pytest.mark.parametrize("call", [
    lambda x: torch.topk(x, 1), torch.sort, torch.aminmax, lambda x: torch.max(x, 0)])
def test_results_keep_their_names(call):
    x = torch.arange(12.0).reshape(3, 2, 2)
    assert type(vmap(call)(x)) is type(call(x))


def test_splits_are_tuples_however_often():
    x = torch.ones(4, 4)
    for split in (torch.tensor_split, torch.hsplit, torch.vsplit):
        assert {type(split(x, 2)) for _ in range(20)} == {tuple}


def test_data_is_refused():
    with pytest.raises(RuntimeError, match="accessing `data` under vmap"):
        vmap(lambda x: x.data)(torch.ones(3))

    def write(x):
        x.data = torch.ones(3)

    with pytest.raises(RuntimeError, match=r"mutating directly with .* under vmap"):
        vmap(write)(torch.ones(3))


def test_write_into_an_unmapped_tensor():
    with pytest.raises(RuntimeError, match="inplace write is not possible"):
        vmap(torch.Tensor.copy_, in_dims=(None, 0))(torch.ones(3), torch.ones(2, 3))


def test_truth_of_all_examples():
    def f(x, wanted):
        found = torch.ops.aten._is_all_true(x)
        assert not inside.is_batchedtensor(found) and found.item() is wanted
        assert torch.ops.aten._is_any_true(x).item() is True
        return found

    vmap(f, in_dims=(0, None))(torch.ones(3) > 0, True)
    vmap(f, in_dims=(0, None))(torch.arange(3) > 1, False)


def test_errors_of_rules_say_where():
    with pytest.raises(IndexError, match=r"squeeze \(test_vmap_details.py"):
        vmap(lambda x: x.squeeze(7))(torch.ones(2, 3))


def test_loop_over_examples():
    from pullback.core.overload import overload

    ov = overload("cumsum")
    level = batching.Vmap(3)
    x = torch.arange(6.0).reshape(3, 2)
    inside._set_vmap_fallback_warning_enabled(False)
    try:
        assert torch.equal(level._loop(ov, (True, False, False), (x, 0, None)), x.cumsum(1))
        inside._set_vmap_fallback_enabled(False)
        assert not inside._is_vmap_fallback_enabled()
        with pytest.raises(RuntimeError, match="Batching rule not implemented"):
            level._loop(ov, (True, False, False), (x, 0, None))
    finally:
        inside._set_vmap_fallback_enabled(True)
        inside._set_vmap_fallback_warning_enabled(True)
    with pytest.raises(RuntimeError, match="dims of size 0"):
        batching.Vmap(0)._loop(ov, (True, False, False), (x, 0, None))


@pytest.mark.parametrize("draw", [
    lambda t: t.bernoulli_(0.5), lambda t: t.uniform_(), lambda t: t.random_(100)])
def test_drawing_in_place_follows_memory(draw):
    torch.manual_seed(3)
    found = vmap(draw, in_dims=1, randomness="different")(torch.zeros(5, 4))
    torch.manual_seed(3)
    assert torch.equal(found, draw(torch.zeros(5, 4).t()))


PROMOTING = {
    "pow": lambda a, b: b**a,
    "add": lambda a, b: a + b,
    "mse_loss": lambda a, b: torch.ops.aten.mse_loss(a, b, 0),
    "stack": lambda a, b: torch.stack([a, b]),
    "smooth_l1_loss_backward": lambda a, b: torch.ops.aten.smooth_l1_loss_backward(
        a, b.expand(3), b.expand(3) * 2, 2, 2.0),
    "mse_loss_backward": lambda a, b: torch.ops.aten.mse_loss_backward(
        a, b.expand(3), b.expand(3) * 2, 1),
}


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("name", PROMOTING)
def test_numbers_of_other_dtypes_promote_as_in_one_example(name, dims):
    wide = torch.tensor([1.5, 2.0], dtype=torch.float64)
    for kinds in ((torch.float64, torch.float32), (torch.float16, torch.float32),
                  (torch.int64, torch.float16)):
        args = [wide.to(k) for k in kinds]
        args = [a if d == 0 else a[0] for a, d in zip(args, dims)]
        looped = [PROMOTING[name](*(a if d is None else a[i] for a, d in zip(args, dims)))
                  for i in range(2)]
        mapped = vmap(PROMOTING[name], dims)(*args)
        assert mapped.dtype == looped[0].dtype
        assert torch.allclose(mapped, torch.stack(looped), rtol=1e-3)


def test_examples_of_a_result_are_row_major_so_that_reshape_is_a_view():
    def f(a, c):
        x = torch.ops.aten.index(a, [None, c])
        seen.append(x.stride())
        y = x.reshape(-1)
        x.fill_(3.0)
        return y

    a, c = torch.ones(2, 6, 7), torch.tensor([[[1, 4, 2], [1, 2, 2]], [[0, 1, 1], [3, 2, 0]]])
    for dims in ((0, 0), (0, None), (None, 0)):
        seen = []
        args = [t if d == 0 else t[0] for t, d in zip((a, c), dims)]
        assert (vmap(f, dims)(*args) == 3).all()
        assert seen == [(6, 3, 1)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_layer_norm_of_half_precision_with_wide_parameters_per_example(dtype):
    x = torch.linspace(-2, 3, 12).reshape(3, 4).to(dtype)
    weight, bias = torch.rand(2, 4), torch.rand(2, 4)
    one = lambda w, b: torch.native_layer_norm(x, [4], w, b, 1e-3)
    mapped = vmap(one)(weight, bias)
    for k in range(2):
        for found, wanted in zip(mapped, one(weight[k], bias[k])):
            assert found.dtype is wanted.dtype is dtype
            assert torch.equal(found[k], wanted)


@pytest.mark.parametrize("driver", [None, "gels", "gelsd"])
def test_least_squares_of_each_example(driver):
    """Residuals are those of each example, and empty for the drivers that give none."""
    a = torch.arange(24.0).reshape(2, 4, 3).square().sin().double()
    b = torch.arange(16.0).reshape(2, 4, 2).cos().double()

    def solve(a, b):
        return tuple(torch.linalg.lstsq(a, b, driver=driver))

    def summed(a, b):
        solution, residuals, *_ = solve(a, b)
        return solution.sum() + residuals.square().sum()

    alone = [solve(*pair) for pair in zip(a, b)]
    for found, parts in zip(func.vmap(solve)(a, b), zip(*alone)):
        assert_close(found, torch.stack(parts))
    alone = [func.grad(summed, (0, 1))(*pair) for pair in zip(a, b)]
    for found, parts in zip(func.vmap(func.grad(summed, (0, 1)))(a, b), zip(*alone)):
        assert_close(found, torch.stack(parts))


def test_a_linear_map_depends_on_its_point():
    def slope(x):
        return func.linearize(torch.sin, x)[1](torch.ones_like(x)).sum()

    x = torch.tensor([0.0, 1.0, 2.0])
    assert_close(func.grad(slope)(x), -x.sin())
    assert_close(func.jvp(slope, (x,), (torch.ones(3),))[1], -x.sin().sum())
    assert_close(func.vmap(func.grad(slope))(x), -x.sin())
