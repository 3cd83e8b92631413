"""How inputs lie in memory decides how results do: compiled functions know it in every call."""

import pytest

import pullback as torch
from pullback.nn import functional as F

SHAPE = 2, 4, 8, 16
ORDERS = (0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2), (3, 2, 1, 0)


def lying(order, gap=0):
    """A tensor of the one shape with its dims in some order in memory, with a gap in the last."""
    sizes = [SHAPE[d] for d in order]
    x = torch.randn(*sizes[:-1], sizes[-1] + gap)[..., : sizes[-1]]
    return x.permute([order.index(d) for d in range(4)])


FUNCTIONS = {
    "pointwise": lambda x: x * 2,
    "clone": lambda x: x.clone(),
    "rows": lambda x: (x + 1).contiguous(),
    "turned": lambda x: (x + 1).permute(0, 2, 1, 3).contiguous(),
    "product": lambda x: (x @ x.mT).permute(0, 2, 1, 3).contiguous().permute(0, 2, 1, 3),
    "sum": lambda x: x.sum(-1).mT.contiguous(),
    "expanded": lambda x: x.sum(0).expand(3, 4, 8, 16).contiguous(),
    "asked": lambda x: x + 1 if x.is_contiguous() else x.mT - 1,
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "causal": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
}


@pytest.mark.cc
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_function_for_inputs_that_lie_differently(name, backend, grad):
    function = FUNCTIONS[name]
    run = torch.compile(function, backend=backend)
    for x in [*map(lying, ORDERS[:2]), lying(ORDERS[2], gap=1)] * 2:
        x = x.detach().requires_grad_(grad)
        expected, result = function(x), run(x)
        assert result.stride() == expected.stride()
        torch.testing.assert_close(result, expected)
        if grad:
            seed = torch.randn(expected.shape)
            torch.testing.assert_close(*(
                torch.autograd.grad(out, x, seed)[0] for out in (result, expected)))


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_look_that_is_impossible(backend):
    run = torch.compile(lambda x: x.view(-1) + 1, backend=backend)
    x = lying(ORDERS[0])
    torch.testing.assert_close(run(x), x.view(-1) + 1)
    with pytest.raises(RuntimeError, match="view"):
        run(lying(ORDERS[1]))
    torch.testing.assert_close(run(x), x.view(-1) + 1)


@pytest.mark.cc
def test_it_is_compiled_once_for_each():
    run = torch.compile(FUNCTIONS["pointwise"])
    for x in [lying(order) for order in ORDERS] * 2:
        run(x)
    assert len(run.programs) == len(ORDERS)
    assert all("stride" in why for why in run.recompiles)


def test_attention_is_one_operator():
    """Its results lie as the queries do, so heads can be put side by side without a copy."""
    x = lying(ORDERS[1]).detach().requires_grad_()
    out = F.scaled_dot_product_attention(x, x, x)
    assert out.grad_fn.name() == "ScaledDotProductFlashAttentionForCpuBackward0"
    assert out.transpose(1, 2).view(2, 8, 64).shape == (2, 8, 64)
    by_parts = (x @ x.mT / 4).softmax(-1) @ x
    torch.testing.assert_close(out, by_parts)
    seed = torch.randn(SHAPE)
    torch.testing.assert_close(*(torch.autograd.grad(o, x, seed)[0] for o in (out, by_parts)))
    half = F.scaled_dot_product_attention(*[x.detach().to(torch.bfloat16)] * 3)
    torch.testing.assert_close(half.float(), by_parts.detach(), atol=0.05, rtol=0.05)
    mask = torch.zeros(8, 8, dtype=torch.bool)
    mask[1:] = True
    masked = F.scaled_dot_product_attention(x, x, x, mask)
    assert not masked[:, :, 0].any()
    torch.testing.assert_close(masked[:, :, 1:], by_parts[:, :, 1:])
    shared = F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True)
    repeated = x[:, :2].repeat_interleave(2, 1)
    torch.testing.assert_close(shared, F.scaled_dot_product_attention(x, repeated, repeated))


@pytest.mark.parametrize("function", [
    lambda z: torch.view_as_real(z).sum(), lambda z: torch.view_as_real(z.mT).mean(0).sum()])
def test_copies_before_what_looks_at_memory_are_made(function):
    found = []
    for run in (function, torch.compile(function)):
        z = torch.complex(*torch.arange(18.0).reshape(2, 3, 3)).requires_grad_()
        run(z).backward()
        found.append(z.grad)
    assert torch.equal(*found)


def test_own_operators_see_strides_as_in_eager_mode():
    @torch.library.custom_op("test_layouts::strides", mutates_args=())
    def strides(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor(x.stride())

    strides.register_fake(lambda x: torch.empty(x.dim(), dtype=torch.int64))
    for function in (lambda x: x.t().contiguous(), lambda x: (x + 1).t().contiguous(),
                     lambda x: (x + 1).t(), lambda x: x.t() + 1, lambda x: (x + 1)[:, ::2]):
        x = torch.zeros(4, 6)
        assert torch.compile(lambda x: strides(function(x)))(x).tolist() == [
            *function(x).stride()]
