"""The cut saves no more than PyTorch's, on models of `bench/cut.py` (all of them: run that)."""

import pytest

from bench import cut


@pytest.mark.torch
@pytest.mark.parametrize("name", [
    "mlp", "transformer_block_sdpa", "conv_net", "dropout_mlp", "contrastive"])
def test_no_more_bytes_than_pytorch(name):
    pytest.importorskip("torch")
    ours, theirs = cut.ours(name), cut.theirs(name)
    assert ours[0] <= theirs[0]
    assert ours[1] <= theirs[1]


@pytest.mark.parametrize("name", cut.MODELS)
def test_the_models_are_captured_and_cut(name):
    whole, new = cut.ours(name, "numpy")  # without C, which is not what is cut
    assert 0 <= new <= whole
