"""Modules work on nested tensors as on each part."""

import pytest

import pullback as torch
from pullback import nn
from tests.helpers.nested.checks import check, listed, loss

LAYOUTS = [torch.jagged, torch.strided]
LENGTHS = (2, 5, 2, 3)


def parts_of(*shape, dtype=torch.float64):
    torch.manual_seed(3)
    return [torch.randn(*[n if s == -1 else s for s in shape], dtype=dtype) for n in LENGTHS]


def alone(module):
    """A module of one part: it sees a batch of one."""
    return lambda p: module(p[None])[0]


MODULES = {
    "Linear": (lambda: nn.Linear(4, 5), (-1, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(4), (-1, 4)),
    "RMSNorm": (lambda: nn.RMSNorm(4), (-1, 4)),
    "GELU": (nn.GELU, (-1, 4)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (-1, 4)),
    "Softmax": (lambda: nn.Softmax(-1), (-1, 4)),
    "Dropout": (lambda: nn.Dropout(0.5).eval(), (-1, 4)),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(
        4, 2, 8, dropout=0.0, batch_first=True), (-1, 4)),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(
        4, 2, 8, dropout=0.0, batch_first=True), 2), (-1, 4)),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3, padding=1), (3, -1)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (4, -1)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(4, affine=True), (4, -1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, layout):
    make, shape = MODULES[name]
    if layout is torch.strided and name in ("Conv1d", "GroupNorm", "InstanceNorm1d"):
        return
    torch.manual_seed(0)
    module = make().double()
    parts = [p.requires_grad_() for p in parts_of(*shape)]
    leaves = [*parts, *module.parameters()]
    x = torch.nested.as_nested_tensor(parts, layout=layout)
    want = [alone(module)(p) for p in parts]
    for run in (module, torch.compile(module)):
        if name == "InstanceNorm1d" and run is not module:
            continue
        out = run(x)
        check(out, want)
        ours = torch.autograd.grad(loss(listed(out)), leaves, retain_graph=True)
        for a, b in zip(ours, torch.autograd.grad(loss(want), leaves, retain_graph=True)):
            assert torch.allclose(a, b)


def test_batch_norm_sees_all_elements():
    parts = parts_of(4, -1)
    x = torch.nested.as_nested_tensor([p.t() for p in parts], layout=torch.jagged).transpose(1, 2)
    ours, theirs = nn.BatchNorm1d(4).double(), nn.BatchNorm1d(4).double()
    out = ours(x)
    want = theirs(torch.cat(parts, 1).t())
    assert torch.allclose(torch.cat(out.unbind(), 1).t(), want)
    assert torch.allclose(ours.running_var, theirs.running_var)


def test_embedding():
    table = nn.Embedding(6, 3)
    parts = [torch.tensor([1, 2]), torch.tensor([5]), torch.tensor([0, 0, 3])]
    for layout in LAYOUTS:
        out = table(torch.nested.nested_tensor(parts, layout=layout))
        check(out, [table(p) for p in parts])
        out.values().sum().backward()
    assert table.weight.grad[0].tolist() == [4, 4, 4]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("causal", [False, True])
def test_multihead_attention(layout, causal):
    attention = nn.MultiheadAttention(4, 2, batch_first=True).double()
    parts = [p.requires_grad_() for p in parts_of(-1, 4)]
    x = torch.nested.as_nested_tensor(parts, layout=layout)
    mask = nn.Transformer.generate_square_subsequent_mask(
        5, dtype=torch.float64) if causal and layout is torch.jagged else None
    out, weights = attention(x, x, x, is_causal=causal, attn_mask=mask)
    each = [attention(p[None], p[None], p[None], is_causal=causal,
                      attn_mask=nn.Transformer.generate_square_subsequent_mask(
                          len(p), dtype=torch.float64) if causal else None) for p in parts]
    check(out, [o[0] for o, _ in each])
    for i, (_, w) in enumerate(each):
        n = LENGTHS[i]
        assert torch.allclose(weights[i, :n, :n], w[0]) and not weights[i, n:].any()
    loss(listed(out)).backward()
    assert all(p.grad is not None for p in parts)
    with pytest.raises(RuntimeError, match="not taken because"):
        nn.MultiheadAttention(4, 2).double()(x, x, x)


def test_attention_to_other_lengths():
    decoder = nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, batch_first=True).double()
    parts, memory = parts_of(-1, 4), [torch.randn(n, 4, dtype=torch.float64) for n in (3, 1, 4, 2)]
    out = decoder(torch.nested.as_nested_tensor(parts, layout=torch.jagged),
                  torch.nested.as_nested_tensor(memory, layout=torch.jagged))
    check(out, [decoder(p[None], m[None])[0] for p, m in zip(parts, memory)])


def test_training_step_serves_new_lengths():
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    head = nn.Linear(8, 3)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-2)

    @torch.compile
    def step(x, y):
        return nn.functional.cross_entropy(head(model(x).mean(1)), y)

    losses = []
    y = torch.tensor([0, 1, 2])
    for k in range(12):
        lengths = [(3, 5, 2), (4, 4, 6), (2, 7, 3), (6, 3, 5)][k % 4]
        torch.manual_seed(k % 4)
        x = torch.nested.nested_tensor([torch.randn(n, 8) for n in lengths], layout=torch.jagged)
        optimizer.zero_grad()
        loss = step(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-4:]) < 0.8 * sum(losses[:4])
    assert len(step.recompiles) <= 1
