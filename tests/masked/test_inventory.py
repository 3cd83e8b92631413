"""Every row of the inventory about masked tensors is run in all kinds that it asks for."""

import csv
from pathlib import Path

import pytest

import pullback as torch
from pullback import func
from pullback.masked import masked_tensor
from tests.helpers.masked_inventory import LAYOUTS, PROGRAMS, K, W, X, data, dense, made

ROWS = Path(__file__).parents[1] / "data" / "sparse_nested.tsv"


def test_every_row_has_programs():
    with open(ROWS, encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
                if r["group"] == "masked tensor"]
    assert {r["entry"] for r in rows} == {f"MaskedTensor {name}" for name in PROGRAMS}
    for row in rows:
        assert all(row[kind] == "yes" for kind in (
            "forward", "backward", "second", "jvp", "vmap", "compile")), row["entry"]
        assert row["layouts"].split() == ["strided", "coo", "csr"]


def listed():
    for entry, given in PROGRAMS.items():
        for k, program in enumerate(given if isinstance(given, list) else [given]):
            yield pytest.param(program, id=entry + f" {k}" * (k > 0))


def values(program, layout):
    """The function of the numbers that are there, and of the dense operand."""
    def function(v, w):
        whole = torch.where(K, X, float("nan")).masked_scatter(K, v)
        return dense(program.function(made(whole, layout), w))

    return function


def compiled(program, layout):
    whole = layout == "strided" or not program.looks
    return torch.compile(program.function, fullgraph=whole)


@pytest.mark.parametrize("program", list(listed()))
def test_programs(program):
    if program.check is not None:
        return program.check()
    wanted = program.numbers(X, K, W)
    for layout in LAYOUTS:
        out = dense(program.function(made(data(), layout), W))
        assert torch.allclose(out.double(), wanted.double())
    batches(program)
    if program.flags:
        leaf = masked_tensor(data(), K, requires_grad=True)
        for run in (program.function, compiled(program, "strided")):
            out = dense(run(leaf, W))
            assert torch.equal(out, wanted) and not out.requires_grad
        return None
    first = None
    for layout in LAYOUTS:
        for run in (program.function, compiled(program, layout)):
            leaf = made(data().requires_grad_(), layout)
            w = W.clone().requires_grad_()
            out = dense(run(leaf, w))
            found = torch.autograd.grad((out * out.detach().cos()).sum(), (leaf, w))
            found = [dense(found[0]), found[1]]
            assert found[0].isfinite().all() and not found[0][~K].any()
            first = first or found
            assert all(torch.allclose(a, b) for a, b in zip(found, first))
    inputs = X[K].clone().requires_grad_(), W.clone().requires_grad_()
    assert torch.autograd.gradcheck(values(program, "strided"), inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(values(program, "strided"), inputs)
    loss = lambda a: (dense(program.function(a, W)) ** 2).sum()
    ours = func.grad(loss)(masked_tensor(data(), K)).to_tensor(0)
    (theirs,) = torch.autograd.grad((values(program, "strided")(inputs[0], W) ** 2).sum(),
                                    inputs[0])
    assert torch.allclose(ours[K], theirs) and not ours[~K].any()


def batches(program):
    """`vmap` over the dense operand, and over a batch of masked tensors."""
    many = torch.stack([W, W.flip(0), 1 - W])
    found = func.vmap(lambda w: dense(program.function(made(data()), w)))(many)
    for out, w in zip(found, many):
        assert torch.allclose(out.double(), dense(program.function(made(data()), w)).double())
    batch = masked_tensor(torch.stack([data(), data(1 - X)]), torch.stack([K, K]))
    found = func.vmap(lambda a: dense(program.function(a, W)))(batch)
    for out, x in zip(found, (X, 1 - X)):
        assert torch.allclose(out.double(), program.numbers(x, K, W).double())
