"""What training uses beside operators, with tensors that are made of parts: functions of the user,
hooks, checkpoints, optimizers."""

import pytest

import pullback as torch
from pullback import nested, nn
from pullback.autograd import Function
from pullback.masked import masked_tensor
from pullback.utils.checkpoint import checkpoint

PARTS = [torch.arange(6.0).reshape(2, 3), torch.ones(1, 3)]


def jagged():
    return nested.nested_tensor(PARTS, layout=torch.jagged, requires_grad=True)


def strided():
    return nested.nested_tensor(PARTS, requires_grad=True)


def sparse():
    return torch.eye(3).mul(2.0).to_sparse().requires_grad_()


def masked():
    data = torch.arange(-2.0, 4.0).reshape(2, 3)
    return masked_tensor(data, data > 0, requires_grad=True)


KINDS = [jagged, strided, sparse, masked]


def total(t):
    """The sum of all elements."""
    return t.sum() if t.layout is torch.sparse_coo or hasattr(t, "get_mask") else t.values().sum()


def elements(t):
    return t.values_with_history.detach()


class Square(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor, ctx.kind = factor, type(x)
        assert ctx.needs_input_grad == (True, False)
        return x * x * factor

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert type(g) is type(x) is ctx.kind
        return 2 * ctx.factor * x * g, None


class Split(Function):
    @staticmethod
    def forward(x, factor):
        return x * factor, x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        assert isinstance(output, tuple)
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * ctx.factor + 2 * x * h, None


@pytest.mark.parametrize("make", KINDS)
def test_functions_of_the_user(make):
    x, plain = make(), make()
    out = Square.apply(x, 3.0)
    assert type(out) is type(x) and out.requires_grad and "Square" in out.grad_fn.name()
    total(out).backward()
    total(plain * plain * 3.0).backward()
    assert torch.equal(elements(x.grad), elements(plain.grad))
    x, plain = make(), make()
    first, second = Split.apply(x, 3.0)
    total(first + second).backward()
    total(plain * 3.0 + plain * plain).backward()
    assert torch.equal(elements(x.grad), elements(plain.grad))
    with torch.no_grad():
        assert not Square.apply(make(), 3.0).requires_grad


def test_second_derivatives_of_functions_of_the_user():
    values = torch.arange(1.0, 4.0, dtype=torch.float64).reshape(3, 1).requires_grad_()

    def run(v):
        x = nested.nested_tensor_from_jagged(v, torch.tensor([0, 1, 3]))
        return Square.apply(x, 2.0).values()

    assert torch.autograd.gradcheck(run, values) and torch.autograd.gradgradcheck(run, values)


@pytest.mark.parametrize("make", [jagged, strided])
def test_hooks_of_modules(make):
    layer, seen = nn.Linear(3, 2), []
    layer.register_full_backward_hook(
        lambda m, given, out: seen.append([given[0].is_nested, out[0].is_nested]))
    layer.register_full_backward_pre_hook(lambda m, out: (out[0] * 2,))
    x, plain = make(), make()
    total(layer(x)).backward()
    total(nn.functional.linear(plain, layer.weight, layer.bias) * 2).backward()
    assert seen == [[True, True]] and torch.equal(elements(x.grad), elements(plain.grad))


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("make", KINDS)
def test_checkpoints(make, reentrant):
    x, plain, runs = make(), make(), []

    def block(t, factor):
        runs.append(type(t))
        return t.sin() * t * factor

    out = checkpoint(block, x, 2.0, use_reentrant=reentrant)
    assert type(out) is type(x)
    total(out).backward()
    total(plain.sin() * plain * 2.0).backward()
    assert torch.equal(elements(x.grad), elements(plain.grad))
    assert runs == [type(x)] * 2
    pair = checkpoint(lambda t: {"a": (t * 2, t.detach()), "b": 3}, x, use_reentrant=False)
    assert pair["b"] == 3 and type(pair["a"][0]) is type(x)


def test_gradients_with_other_entries_are_refused():
    p = nn.Parameter(sparse().detach())
    p.grad = torch.ones(3, 3).to_sparse()
    with pytest.raises(torch.errors.LayoutError, match="other entries than the parameter"):
        torch.optim.SGD([p], lr=0.1).step()


OPTIMIZERS = {"SGD": {"momentum": 0.9}, "Adam": {}, "AdamW": {}, "RMSprop": {}, "Adagrad": {},
              "Rprop": {}, "NAdam": {}}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("make", [jagged, strided, sparse])
def test_parameters(make, name):
    p = nn.Parameter(make().detach())
    plain = nn.Parameter(elements(p).clone())
    ours, theirs = (getattr(torch.optim, name)([t], lr=0.1, **OPTIMIZERS[name])
                    for t in (p, plain))
    for _ in range(3):
        ours.zero_grad()
        theirs.zero_grad()
        assert p.grad is None
        total(p * p).backward()
        (plain * plain).sum().backward()
        nn.utils.clip_grad_norm_([p], 1.0)
        nn.utils.clip_grad_norm_([plain], 1.0)
        ours.step()
        theirs.step()
    torch.testing.assert_close(elements(p), plain.detach())
    ours.load_state_dict(ours.state_dict())
    ours.zero_grad(set_to_none=False)
    assert not elements(p.grad).any()
