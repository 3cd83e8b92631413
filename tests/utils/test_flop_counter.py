"""Counting operations; the numbers are those of PyTorch 2.13."""

import pytest

import pullback as torch
from pullback.utils.flop_counter import FlopCounterMode, register_flop_formula, sdpa_flop_count

F, nn = torch.nn.functional, torch.nn


def counted(function, **options):
    mode = FlopCounterMode(display=False, **options)
    with mode:
        function()
    return mode.get_total_flops(), {
        name: {str(family): n for family, n in counts.items()}
        for name, counts in mode.get_flop_counts().items()}


def test_products_and_convolutions():
    x, w = torch.randn(4, 8, requires_grad=True), torch.randn(8, 5, requires_grad=True)
    assert counted(lambda: x @ w) == (320, {"Global": {"aten.mm": 320}})
    assert counted(lambda: (x @ w).sum().backward())[0] == 960
    assert counted(lambda: torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5)))[0] == 240
    assert counted(lambda: x.sin() + 1) == (0, {})
    i = torch.randn(2, 4, 8, 8, requires_grad=True)

    def conv(*shape, function=F.conv2d, **options):
        k = torch.randn(shape, requires_grad=True)
        return counted(lambda: function(i, k, **options).sum().backward())[1]["Global"]

    assert conv(6, 4, 3, 3, padding=1, stride=2) == {
        "aten.convolution": 13824, "aten.convolution_backward": 27648}
    assert conv(4, 6, 3, 3, function=F.conv_transpose2d) == {
        "aten.convolution": 55296, "aten.convolution_backward": 110592}
    assert conv(8, 2, 3, 3, groups=2) == {
        "aten.convolution": 20736, "aten.convolution_backward": 62208}


def test_attention():
    q = torch.randn(1, 2, 4, 8)
    assert counted(lambda: F.scaled_dot_product_attention(q, q, q))[0] == 1024
    assert sdpa_flop_count((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8)) == 1024
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    assert counted(lambda: fused(q, q, q))[0] == 1024


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.b = nn.Sequential(nn.Linear(16, 4), nn.ReLU())

    def forward(self, x):
        return self.b(self.a(x))


def test_modules(capsys):
    net, x = Net(), torch.randn(4, 8, requires_grad=True)
    with FlopCounterMode() as mode:
        net(x).sum().backward()
    counts = {name: sum(c.values()) for name, c in mode.get_flop_counts().items()}
    assert counts == {"Global": 4608, "Net": 4608, "Net.a": 3072, "Net.b": 1536, "Net.b.0": 1536}
    printed = capsys.readouterr().out
    assert "Net.a" in printed and "66.67%" in printed and "Net.b.0" not in printed
    assert "Net.b.0" in mode.get_table() and "4.608K" in mode.get_table()


def test_formulas_of_users():
    got = counted(lambda: torch.ones(3).sin(), custom_mapping={
        torch.ops.aten.sin: lambda x_shape, out_shape=None: 7 * x_shape[0]})
    assert got == (21, {"Global": {"aten.sin": 21}})
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_flop_formula(torch.ops.aten.mm)(lambda *a, **k: 0)
    with pytest.raises(ValueError, match="family of overloads"):
        register_flop_formula(torch.sin.default)(lambda *a, **k: 0)
