"""Calls of nn.functional, of layers and of the helpers for sequences, edge cases and errors.

`tests/data/nn_calls.json` lists the calls and what PyTorch 2.13 answers.  To record it anew, after
adding a call with any answer, run this file as a script where PyTorch is installed.
"""

import importlib
import inspect
import json
from pathlib import Path

import numpy as np
import pytest

import pullback

DATA = Path(__file__).parents[1] / "data" / "nn_calls.json"
CALLS = json.loads(DATA.read_text())


def names(torch):
    """What the names in a call mean."""
    bias = importlib.import_module(f"{torch.nn.__name__}.attention.bias")

    def real(*shape):
        return torch.tensor(np.random.default_rng(5).standard_normal(shape).astype(np.float32))

    def whole(*shape, high):
        return torch.tensor(np.random.default_rng(6).integers(0, high, shape))

    def slopes(module, *inputs):
        """First and second derivatives of a recurrent module."""
        out = module(*inputs)
        out = out[0] if isinstance(out, tuple) else out
        out = out.data if type(out).__name__ == "PackedSequence" else out
        wanted = list(module.parameters())
        first = torch.autograd.grad((out**2).sum(), wanted, create_graph=True)
        return first, torch.autograd.grad(sum((g**2).sum() for g in first), wanted)

    def attend(query, key, mask):
        size = query.shape[-2], key.shape[-2]
        return torch.nn.functional.scaled_dot_product_attention(query, key, key,
                                                                getattr(bias, mask)(*size))

    return {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, "t": torch.tensor,
            "rnn": torch.nn.utils.rnn, "r": real, "i": whole, "slopes": slopes, "attend": attend}


def function(call):
    """The call as a function of the library; a module among its results as its printed form."""
    def run(torch):
        value = eval(call, names(torch))
        return repr(value) if isinstance(value, torch.nn.Module) else value
    return run


@pytest.mark.parametrize("call", [call for call in CALLS if call != "signatures"])
def test_recorded(call, compare):
    compare(function(call), pullback, CALLS[call], call)


def signatures(library, chosen=None):
    """Parameters of the public functions, where Python knows them."""
    found = {}
    for name in chosen or dir(library):
        value = getattr(library, name)
        if name.startswith("_") or not inspect.isfunction(value):
            continue
        found[name] = [f"{p.kind.name} {p.name}" + (
            "" if p.default is p.empty else f"={p.default!r}")
            for p in inspect.signature(value).parameters.values()]
    return found


def test_signatures():
    expected = CALLS["signatures"]
    assert signatures(pullback.nn.functional, expected) == expected


if __name__ == "__main__":
    import torch
    from conftest import answer

    functional = torch.nn.functional
    taken = {name: found for name, found in signatures(functional).items()
             if not found[0].startswith("VAR_POSITIONAL")
             and getattr(functional, name).__module__ == functional.__name__
             and not name.startswith("assert_")}
    answers = {call: answer(function(call), torch) for call in CALLS if call != "signatures"}
    lines = [f"{json.dumps(call)}: {json.dumps(a)}" for call, a in answers.items()]
    DATA.write_text("{" + ",\n".join([f'"signatures": {json.dumps(taken)}', *lines]) + "}\n")


def test_variances_of_the_gaussian_loss_may_broadcast_in_one_dim():
    loss = pullback.nn.functional.gaussian_nll_loss
    x, y = pullback.arange(12.0).reshape(4, 3), pullback.ones(4, 3)
    whole = pullback.linspace(0.5, 2.0, 12).reshape(4, 3)
    for var in (whole[:, :1], whole[:1], whole[:, 0]):
        full = (var.unsqueeze(-1) if var.ndim == 1 else var).expand(4, 3)
        assert pullback.allclose(loss(x, y, var), loss(x, y, full))
    for var in (whole[:2], whole[0], whole[:1, :1], pullback.ones(4, 1, 3)):
        with pytest.raises(ValueError, match="incorrect size"):
            loss(x, y, var)


def test_losses_of_the_package_itself_are_not_reduced_unless_asked():
    """`torch.kl_div(x, y)` has one value per element in PyTorch; the operator takes the mean."""
    x, y = pullback.tensor([[1.0, 2.0]]), pullback.tensor([[1.0, 0.0]])
    one, labels = pullback.tensor([1]), pullback.tensor([[1], [1]])
    given = {"binary_cross_entropy_with_logits": (x, y), "kl_div": (x, y),
             "hinge_embedding_loss": (x, y * 2 - 1), "margin_ranking_loss": (x, y, y),
             "triplet_margin_loss": (x, y, y), "cosine_embedding_loss": (x, y, one),
             "ctc_loss": (pullback.zeros(3, 2, 4), labels, [3, 2], [1, 1])}
    shapes = {"triplet_margin_loss": (1,), "cosine_embedding_loss": (1,), "ctc_loss": (2,)}
    for name, args in given.items():
        function = getattr(pullback, name)
        assert (function.__name__, function.__module__) == (name, pullback.__name__)
        each = function(*args)
        assert each.shape == shapes.get(name, (1, 2)), name
        assert pullback.allclose(function(*args, reduction=2), each.sum()), name
        assert pullback.allclose(pullback.compile(function)(*args), each), name
        mean = function(*args, reduction=1)
        assert pullback.equal(getattr(pullback.ops.aten, name)(*args), mean), name
        if name != "ctc_loss":  # whose mean is one of quotients by lengths
            assert pullback.allclose(mean, each.mean()), name
    assert pullback.kl_div(x, y).tolist() == [[-1.0, 0.0]]
    assert pullback.hinge_embedding_loss(x, y * 2 - 1).tolist() == [[1.0, 0.0]]


def test_cosine_similarity_takes_the_wider_dtype_of_0d_tensors_too():
    wide = pullback.tensor(2.0, dtype=pullback.float64)
    for dtype in (pullback.float16, pullback.float32, pullback.float64):
        x = pullback.tensor([[1.0, 1.0]], dtype=dtype)
        out = pullback.nn.functional.cosine_similarity(x, wide)
        assert out.dtype is pullback.float64 and out.tolist() == pytest.approx([1.0])
