"""Random modules with writes, blocks, draws, branches: the loaded program is the module."""

import copy
import random

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.export import Dim, export
from tests.helpers.export_modules import again

F = nn.functional


def written(a, c):
    a = a.clone()
    a[0] = c[1] * 3
    a[1:3].mul_(2)
    return a


def unrecorded(a, c):
    with torch.no_grad():
        return a * 2


STEPS = [
    lambda m, a, c: F.linear(a, m.w, m.v),
    lambda m, a, c: m.bn(a),
    lambda m, a, c: a + m.b.mul_(0.5),
    lambda m, a, c: unrecorded(a, c),
    lambda m, a, c: a.detach() * c,
    lambda m, a, c: written(a, c),
    lambda m, a, c: torch.where(a > 0, a, c),
    lambda m, a, c: a.softmax(-1) @ m.w,
    lambda m, a, c: torch.cat([a, c])[::2],
    lambda m, a, c: a.sort(0).values + c,
    lambda m, a, c: F.layer_norm(a, (4,), m.v),
    lambda m, a, c: a * m.k,
    lambda m, a, c: F.dropout(a, 0.5),
    lambda m, a, c: torch.cond(a.sum() > 0, lambda t: t.sin(), lambda t: t * 2, [a]),
    lambda m, a, c: a.expand(2, *a.shape).sum(0),
    lambda m, a, c: m.assigned(a),
    lambda m, a, c: F.gelu(a) * c.max(),
    lambda m, a, c: a / (1 + c.abs().sum().item()),
    lambda m, a, c: torch.einsum("ij,jk->ik", a, m.w).double().float(),
    lambda m, a, c: a.unsqueeze(1).squeeze(1).exp().clamp(max=3),
]


class Random(nn.Module):
    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        r = random.Random(seed)
        self.w, self.v = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4))
        self.register_buffer("b", torch.randn(4))
        self.bn, self.k = nn.BatchNorm1d(4), torch.randn(4)
        self.steps = [(r.randrange(len(STEPS)), r.random(), r.random())
                      for _ in range(r.randrange(3, 12))]
        self.writes = r.random() < 0.3

    def assigned(self, a):
        self.b = self.b + a.mean(0).detach()
        return a

    def forward(self, x, y):
        pool = [x, y, x + self.v]
        for step, i, j in self.steps:
            a, c = [pool[int(n * len(pool))] for n in (i, j)]
            pool.append(STEPS[step](self, a, c))
        if self.writes:
            x.add_(1)
        return {"out": pool[-1], "others": [pool[-2], len(pool)]}


def gradients(model, out):
    model.zero_grad()
    try:
        out["out"].sum().backward()
    except errors.SavedValueModified as error:
        return type(error)
    return [None if p.grad is None else p.grad.clone() for _, p in sorted(model.named_parameters())]


@pytest.mark.parametrize("seed", range(40))
def test_loaded_programs_are_the_module(seed):
    model = Random(seed)
    x, y = torch.randn(6, 4), torch.randn(6, 4)
    varying = [{0: Dim.AUTO}, {0: Dim.AUTO}] if seed % 3 == 0 else None
    program = export(copy.deepcopy(model), (x.clone(), y), dynamic_shapes=varying)
    module = again(program).module()
    for _ in range(2):
        results = []
        for m in (model, module):
            given = x.clone()
            torch.manual_seed(seed)
            out = m(given, y)
            grads = gradients(m, out) if out["out"].requires_grad else "none"
            results.append((out["out"].detach(), out["others"], given, m.b.clone(), grads))
        if isinstance(results[0][4], list):
            torch.testing.assert_close(results[1], results[0], rtol=1e-3, atol=1e-4,
                                       equal_nan=True)
        else:
            torch.testing.assert_close(results[1][:4], results[0][:4], equal_nan=True)
            assert results[1][4] == results[0][4]
