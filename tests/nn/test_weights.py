"""Weights of recurrent layers by place, conversions of parameters, arguments that make them."""

import pytest

import pullback as pb
from pullback import nn


def test_flat_weights_of_recurrent_layers():
    rnn = nn.LSTM(3, 4, num_layers=2, bidirectional=True, proj_size=2)
    assert rnn._flat_weights_names[:6] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0",
                                           "bias_hh_l0", "weight_hr_l0", "weight_ih_l0_reverse"]
    assert len(rnn._flat_weights) == 20 and rnn._flat_weights[0] is rnn.weight_ih_l0
    assert [len(part) for part in rnn.all_weights] == [5] * 4 and rnn.flatten_parameters() is None
    gru = nn.GRU(3, 4)
    x = pb.ones(2, 1, 3)
    before = gru(x)[0]
    gru._flat_weights = [w * 0 for w in gru._flat_weights]  # as programs do that drop weights
    assert pb.equal(gru(x)[0], pb.zeros(2, 1, 4)) and not pb.equal(before, pb.zeros(2, 1, 4))
    gru.bias_ih_l0 = nn.Parameter(pb.ones(12))
    assert gru._flat_weights[2] is gru.bias_ih_l0
    gru.double()
    assert gru._flat_weights[0] is gru.weight_ih_l0


def test_conversions_make_new_parameters_or_exchange_them():
    switches = pb.__future__
    for name, same in (("overwrite", False), ("swap", True)):
        choose = getattr(switches, f"set_{name}_module_params_on_conversion")
        layer = nn.Linear(2, 2)
        weight = layer.weight
        weight.grad = pb.ones(2, 2)
        choose(True)
        try:
            layer.double()
        finally:
            choose(False)
        assert (layer.weight is weight) is same and layer.weight.dtype is pb.float64
        assert layer.weight.grad.dtype is pb.float64 and isinstance(layer.weight, nn.Parameter)


def test_factory_kwargs():
    assert nn.factory_kwargs(None) == {}
    given = {"device": "cpu", "factory_kwargs": {"dtype": pb.float64}}
    assert nn.factory_kwargs(given) == {"device": "cpu", "dtype": pb.float64}
    with pytest.raises(TypeError, match="unexpected"):
        nn.factory_kwargs({"bias": True})
    with pytest.raises(TypeError, match="twice"):
        nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 2}})


def test_sequences_are_packed_in_pytorchs_order():
    lengths = [3, 4, 4, 8, 8, 6, 3, 5] * 4
    packed = nn.utils.rnn.pack_padded_sequence(pb.zeros(32, 8, 1), lengths, batch_first=True,
                                               enforce_sorted=False)
    assert packed.sorted_indices.tolist() == [  # recorded from PyTorch 2.13
        19, 3, 4, 28, 20, 27, 11, 12, 29, 5, 21, 13, 31, 15, 23, 7, 25, 26, 1, 18, 17, 10, 9, 2,
        16, 22, 14, 24, 8, 6, 30, 0]
    assert packed.batch_sizes.tolist() == [32, 32, 32, 24, 16, 12, 8, 8]
    short = nn.utils.rnn.pack_padded_sequence(pb.zeros(5, 4, 1), [2, 4, 4, 1, 4], True, False)
    assert short.sorted_indices.tolist() == [1, 2, 4, 0, 3]
