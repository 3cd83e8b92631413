"""A GPT in nanoGPT's layout: names, ties, first numbers, and checkpoints to PyTorch and back."""

import io

import pytest

import pullback
from bench.gpt import SMALL, Size, apart, construction_times, handed_over, make_gpt, numbers


def count_of(size: Size) -> int:
    d = size.width
    block = (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d) + 4 * d
    return (size.vocabulary + size.context) * d + size.layers * block + 2 * d


def test_parameters_and_names():
    model = make_gpt(pullback, SMALL)
    assert sum(p.numel() for p in model.parameters()) == count_of(SMALL)
    assert count_of(Size()) == 124_439_808
    assert model.transformer.wte.weight is model.lm_head.weight
    names = list(model.state_dict())
    assert names[0] == "transformer.wte.weight" and names[-1] == "lm_head.weight"
    assert len(names) == len(dict(model.named_parameters())) + 1 == 2 + 12 * SMALL.layers + 2 + 1


def test_ties_survive_files():
    model, file = numbers(pullback, SMALL), io.BytesIO()
    pullback.save(model.state_dict(), file)
    file.seek(0)
    state = pullback.load(file)
    head, embedding = state["lm_head.weight"], state["transformer.wte.weight"]
    assert head.data_ptr() == embedding.data_ptr()
    other = numbers(pullback, SMALL, seed=1)
    assert apart(model, other) > 0.01
    other.load_state_dict(state)
    assert apart(model, other) == 0.0
    assert other.lm_head.weight is other.transformer.wte.weight


@pytest.mark.torch
def test_the_same_seed_gives_the_same_numbers():
    import torch

    assert apart(numbers(pullback, SMALL), numbers(torch, SMALL)) < 1e-7


@pytest.mark.torch
@pytest.mark.parametrize("from_torch", [False, True])
def test_state_dicts_are_handed_over(from_torch, tmp_path):
    import torch

    libraries = [torch, pullback] if from_torch else [pullback, torch]
    source, target = handed_over(*libraries, SMALL, tmp_path)
    assert apart(source, target) == 0.0
    assert target.lm_head.weight is target.transformer.wte.weight
    logits = []
    for library, model in zip(libraries, (source, target), strict=True):
        tokens = library.arange(24).reshape(2, 12) * 4 % SMALL.vocabulary
        out = model(tokens)
        out.square().mean().backward()
        logits.append((out.detach().numpy(), model.lm_head.weight.grad.numpy()))
    for a, b in zip(*logits, strict=True):
        assert abs(a - b).max() < 1e-5 * abs(b).max()


@pytest.mark.torch
def test_making_one_takes_no_longer_than_in_pytorch():
    """Within 1.5 times; `python -m bench.gpt` measures the large one."""
    import torch

    size = Size(vocabulary=8192, context=256, layers=4, heads=4, width=256)
    times = construction_times([pullback, torch], size, repeat=9)
    assert min(times["pullback"][1:]) < 1.5 * min(times["torch"][1:])
