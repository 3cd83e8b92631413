"""`FakeTensorMode`: programs on shapes alone."""

import copy
import weakref

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.fx import symbolic_trace
from pullback.fx.fake_mode import (
    FakeTensor,
    FakeTensorConverter,
    FakeTensorMode,
    detect_fake_mode,
    is_fake,
    unset_fake_temporarily,
)
from pullback.fx.passes.shape_prop import ShapeProp
from pullback.nn.fake_copy import FakeCopyMode


def test_what_is_made_inside_has_no_data():
    with FakeTensorMode():
        model = nn.Sequential(nn.Linear(1 << 20, 1 << 20), nn.ReLU())  # 4 TB
        out = model(torch.randn(3, 1 << 20))
        assert isinstance(out, FakeTensor) and out.shape == (3, 1 << 20)
        out.sum().backward()
        assert model[0].weight.grad.shape == (1 << 20, 1 << 20)
        assert is_fake(torch.tensor([1.0, 2.0]))
        with unset_fake_temporarily():
            assert not is_fake(torch.ones(2))
    assert not is_fake(torch.ones(2)) and not isinstance(torch.ones(2), FakeTensor)


def test_fakes_of_tensors():
    mode = FakeTensorMode()
    t = torch.ones(3, 4).T.requires_grad_()
    fake = mode.from_tensor(t)
    assert fake is mode.from_tensor(t) and is_fake(fake) and not is_fake(t)
    assert fake.shape == (4, 3) and fake.stride() == (1, 4) and fake.requires_grad
    assert type(mode.from_tensor(nn.Parameter(torch.ones(2)))) is nn.Parameter
    with pytest.raises(TypeError, match="from_tensor"):
        FakeTensor(torch.ones(2))


def test_what_needs_values_is_refused():
    mode = FakeTensorMode()
    fake = mode.from_tensor(torch.ones(3))
    with mode:
        for ask in (lambda: bool(fake.sum() > 0), lambda: fake.sum().item(), fake.nonzero):
            with pytest.raises(errors.DataDependentError, match=r"test_fake_mode\.py:\d+"):
                ask()
        with pytest.raises(RuntimeError, match="Please convert all Tensors to FakeTensors"):
            fake + torch.tensor([1.0, 2.0, 3.0]) + _real
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert is_fake(fake + _real)


_real = torch.ones(3)


def test_shape_prop():
    module = symbolic_trace(lambda x: torch.relu(x @ x.T).sum(0))
    x = torch.ones(3, 4)
    for mode in (None, FakeTensorMode()):
        ShapeProp(module, mode).propagate(x)
        shapes = {n.name: tuple(n.meta["tensor_meta"].shape) for n in module.graph.nodes
                  if n.op != "output"}
        assert shapes["relu"] == (3, 3) and shapes["sum_1"] == (3,)


def test_a_fake_knows_its_mode_outside_of_it():
    with FakeTensorMode() as mode:
        x = torch.empty(2, 2)
    out = (x + x)[0]
    assert out.fake_mode is mode and detect_fake_mode([1, {"x": out}]) is mode
    assert repr(out) == "FakeTensor(..., size=(2,))"
    assert not hasattr(torch.ones(2), "fake_mode") and not hasattr(torch.ones(2), "constant")
    other = FakeTensorMode().from_tensor(torch.ones(2))
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        out + other
    again = other.fake_mode.from_tensor(out)
    assert again is not out and again.fake_mode is other.fake_mode and again.shape == out.shape


def test_tensors_with_data_are_refused():
    x = torch.ones(4, 4)
    with FakeTensorMode():
        for f in (lambda: x + 1, lambda: x[0], x.sum, lambda: x.view(-1)):
            with pytest.raises(RuntimeError, match="Please convert all Tensors"):
                f()
        assert is_fake(torch.Tensor([1.0, 2.0])) and is_fake(torch.Tensor(2, 3))
        assert repr(torch.empty(2, device="meta")).startswith("FakeTensor(..., device='meta'")
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        out = x + 1
        assert is_fake(out) and out.fake_mode is mode and out.shape == (4, 4)
        assert (torch.zeros(2, 8) + x.reshape(2, 8)).shape == (2, 8)


def test_one_known_number_stays_known():
    with FakeTensorMode():
        x = torch.tensor(4.0)
        y = x.add_(1)
        assert x.item() == y.item() == 5 and bool(x > 4)
        grid = torch.tensor([[5.0]])
        row = grid[0]
        row[0] = 7.0
        assert grid.item() == row.item() == 7 and grid.constant.item() == 7
        assert torch.zeros(torch.tensor(3)).shape == (3,)


def test_a_number_that_data_went_into_is_not_known():
    with FakeTensorMode():
        x = torch.tensor([1.0])
        seen = x[:]
        wide = torch.tensor([2]).expand(4)
        wide[0] = 1
        assert wide.constant is None
        small = torch.tensor([2])
        small.expand(4)[0] = 1
        assert small.constant is None
        x.add_(torch.rand(1))
        assert x.constant is None and seen.constant is None
        with pytest.raises(RuntimeError):
            seen.item()
        with pytest.raises(RuntimeError):
            torch.tensor([1.0, 2.0]).sum().item()


def test_a_fake_lasts_as_long_as_its_tensor():
    x, mode, converter = torch.rand(2), FakeTensorMode(), FakeTensorConverter()
    fake = converter.from_real_tensor(mode, x)
    assert converter.from_real_tensor(mode, x) is fake and len(converter.tensor_memo) == 1
    assert not mode.fake_tensor_converter.tensor_memo and fake.fake_mode is mode
    del x, fake
    assert not converter.tensor_memo
    y = torch.rand(2)
    kept = mode.from_tensor(y)
    gone = weakref.ref(mode)
    del mode, kept
    assert gone() is None


def test_a_copy_of_a_module_without_its_memory():
    model, mode = nn.BatchNorm1d(3), FakeTensorMode()
    with FakeCopyMode(mode):
        copied = copy.deepcopy(model)
    for name, t in (*copied.named_parameters(), *copied.named_buffers()):
        own = getattr(model, name)
        assert is_fake(t) and not is_fake(own) and t.shape == own.shape
        assert isinstance(t, nn.Parameter) == isinstance(own, nn.Parameter)
        assert t.requires_grad == own.requires_grad


def test_copies_of_fakes_and_names_that_only_they_have():
    with FakeTensorMode() as mode:
        x = torch.randn(2, 3, requires_grad=True)
    again = copy.copy(x)
    assert again.fake_mode is mode and again.shape == (2, 3) and again.requires_grad

    class Scaled(torch.Tensor):
        pass

    other = torch.ones(2).as_subclass(Scaled)
    other.constant = other.fake_mode = 3  # taken by fakes alone
    assert (other.constant, other.fake_mode) == (3, 3) and not hasattr(other, "fake_device")


def test_lists_of_numbers_and_masks_are_indices_inside():
    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.ones(4, 3))
        assert x[[0, 2]].shape == (2, 3) and x[:, [0, 0, 1]].shape == (4, 3)
        assert torch.combinations(x[0]).shape == (3, 2)


MIXED = {
    "mask of another dtype": lambda: torch.ops.aten._masked_scale(
        torch.ones(3, dtype=torch.bfloat16), torch.ones(3, dtype=torch.float64), 2.0),
    "places of whole numbers": lambda: torch.arange(12).reshape(3, 4).median(1)[1],
    "slopes of another dtype": lambda: torch.ops.aten.rrelu_with_noise_functional(
        torch.ones(3, dtype=torch.float64), torch.ones(3), 0.1, 0.3)[1],
}


@pytest.mark.parametrize("name", MIXED)
def test_fakes_have_the_dtype_and_the_strides_of_what_they_stand_for(name):
    real = MIXED[name]()
    with FakeTensorMode():
        fake = MIXED[name]()
    assert (fake.dtype, fake.shape, fake.stride()) == (real.dtype, real.shape, real.stride())


@pytest.mark.parametrize("call", [
    lambda x: torch.ops.aten.grid_sampler_2d(x, x, 0, 0, False),
    lambda x: torch.ops.aten.grid_sampler_2d_backward(x, x, x, 0, 0, False, [True, True]),
    lambda x: torch.ops.aten._weight_norm_interface(x, x[:, :1, :1, :1])])
def test_whole_numbers_are_refused_where_there_is_no_kernel(call):
    with pytest.raises(RuntimeError, match="not implemented for"):
        call(torch.ones(1, 2, 2, 2, dtype=torch.int64))
