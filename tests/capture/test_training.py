"""Modules, custom Functions and seeds through ahead-of-time compilation, compared with eager."""

import pytest

import pullback as torch
from pullback import aot, nn
from pullback.cut.partition import default_partition, min_cut_rematerialization_partition
from pullback.nn import functional as F
from tests.helpers.custom_functions import custom_function, writing

PARTITIONS = [default_partition, min_cut_rematerialization_partition]


def compiled(function, partition=min_cut_rematerialization_partition, dynamic=False):
    make = aot.aot_module if isinstance(function, nn.Module) else aot.aot_function
    return make(function, aot.nop, aot.nop, partition_fn=partition, dynamic=dynamic)


def steps(module, run, *inputs):
    """Results, gradients of inputs and parameters, and buffers, after two calls."""
    found = []
    for _ in range(2):
        given = [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs]
        out = run(*given)
        module.zero_grad()
        (out.real if out.is_complex() else out).square().sum().backward()
        found += [out, *[t.grad for t in given if t.requires_grad],
                  *[p.grad.clone() for p in module.parameters()]]
    return found + [b.clone() for b in module.buffers()]


class Residual(nn.Module):
    """The block that a ResNet is made of."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        inner = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = F.relu(self.bn2(self.conv2(inner)) + x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2, dtype=torch.complex64)

    def forward(self, x):
        return self.linear(x).abs()


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize(("make", "shape", "dtype"), [
    (Residual, (2, 4, 6, 6), torch.float64), (Complex, (4, 3), torch.complex64),
    (lambda: nn.BatchNorm1d(5), (4, 5), torch.float64),
    (lambda: nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3)), (2, 4), torch.float64)])
def test_modules_train_as_in_eager(make, shape, dtype, partition):
    torch.manual_seed(0)
    module = make().to(dtype) if dtype is torch.float64 else make()
    other = make().to(dtype) if dtype is torch.float64 else make()
    other.load_state_dict(module.state_dict())
    x = torch.randn(*shape, dtype=dtype, requires_grad=True)
    ours = steps(other, compiled(other, partition), x)
    for a, b in zip(ours, steps(module, module, x), strict=True):  # num_batches_tracked, too
        assert a.dtype is b.dtype and torch.allclose(a, b, rtol=1e-5, atol=1e-6)


def test_layer_norm_has_the_same_bits():
    torch.manual_seed(0)
    layer = nn.LayerNorm(6)
    x = torch.randn(3, 6)
    assert torch.equal(compiled(layer)(x), layer(x))


def test_bags_of_any_number_of_views():
    bags = nn.EmbeddingBag(10, 3, mode="sum")
    run = compiled(lambda words, weight: F.embedding_bag(
        words.view(-1, 2), weight, mode="sum"), dynamic=True)
    for count in (4, 6, 8):
        words = torch.arange(count) % 10
        weight = bags.weight.detach().requires_grad_()
        out = run(words, weight)
        assert torch.allclose(out, bags(words.view(-1, 2)))
        grad, = torch.autograd.grad(out.sum(), weight)
        assert grad.sum().item() == 3 * count


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_seed_decides_about_dropout(partition):
    function = lambda x: F.dropout(x, 0.5) * F.dropout(x, 0.3)
    run = compiled(function, partition)
    x = torch.ones(50, requires_grad=True)
    found = []
    for call in (run, function):
        torch.manual_seed(3)
        out = call(x)
        found.append((out, *torch.autograd.grad(out.sum(), x)))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_tangents_of_any_layout():
    function = lambda x: x.view(2, 3).t()
    for tangent in (torch.ones(3, 2), torch.ones(2, 3).t(), torch.ones(1).expand(3, 2)):
        x = torch.randn(6, requires_grad=True)
        compiled(function)(x).backward(tangent)
        assert torch.equal(x.grad, torch.ones(6))


Same = custom_function("Same", lambda x: x, lambda grad: grad * 3)


Counts = writing("Counts", lambda count: count.add_(1))


def test_a_function_that_returns_its_input():
    x = torch.ones(2, requires_grad=True)
    for run in (Same.apply, compiled(lambda x: Same.apply(x))):
        y = x * 1
        out = run(y)
        assert out._base is None or out._base is y
        assert torch.autograd.grad(out.sum(), x)[0].tolist() == [3, 3]


def test_writes_of_a_backward_happen_in_the_backward():
    run = compiled(lambda x, count: Counts.apply(x, count))
    x, count = torch.ones(2, requires_grad=True), torch.zeros(1)
    out = run(x, count)
    assert count.item() == 0
    out.sum().backward(retain_graph=True)
    assert count.item() == 1 and x.grad.tolist() == [2, 2]
    out.sum().backward()
    assert count.item() == 2
