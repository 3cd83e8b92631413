"""`FakeTensorMode`: programs on shapes alone."""

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.fx import symbolic_trace
from pullback.fx.fake_mode import FakeTensor, FakeTensorMode, is_fake, unset_fake_temporarily
from pullback.fx.passes.shape_prop import ShapeProp


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
