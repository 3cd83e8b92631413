"""Every layer class: signature, initial numbers, results, gradients, printed form, against PyTorch.

`tests/helpers/layer_programs.py` has the cases. `tests/data/layers.json` holds for each what
PyTorch 2.13 gives: checksums of the initial parameters, and two numbers (a weighted sum and the
norm) of each output, gradient and buffer, in training and in evaluation.  Where PyTorch is
installed, `python -m tests.nn.test_layers` records it anew; `make parity` compares element by
element.
"""

import inspect
import json
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

import pullback
from tests.helpers.layer_programs import CASES, pattern, run

DATA = Path(__file__).parents[1] / "data" / "layers.json"
MODES = {"train": (True, True), "eval": (False, True), "frozen": (False, False)}  # train, grad
NAMES = sorted({case.partition("(")[0] for case in CASES})


def summary(array):
    array = np.asarray(array, np.float64).reshape(-1)
    scale = np.sqrt(max(array.size, 1))
    return [float(f"{array @ pattern(array.size) / scale:.8g}"),
            float(f"{np.linalg.norm(array):.8g}")]


def facts(case, torch):
    """All that is recorded of a case."""
    found = {}
    for mode, (train, grad) in MODES.items():
        module, start, results = run(case, torch, train, grad)
        found[mode] = {name: summary(value) for name, value in results}
    return {"repr": repr(module), "keys": [name for name, _ in start],
            "start": [zlib.crc32(value.tobytes()) for _, value in start], **found}


def signature(function):
    """Parameters as text; functions among the defaults by name."""
    return [f"{p.kind.name} {p.name}" + (
        "" if p.default is p.empty
        else f"={getattr(p.default, '__name__', None) or repr(p.default)}")
        for p in inspect.signature(function).parameters.values()]


def signatures(torch):
    return {name: [signature(getattr(torch.nn, name).__init__),
                   signature(getattr(torch.nn, name).forward)] for name in NAMES}


@pytest.fixture(scope="module")
def recorded():
    return json.loads(DATA.read_text())


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated arguments, implicit dims
        yield


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.partition(" | ")[0])
def test_recorded(case, recorded):
    expected, got = recorded["cases"][case], facts(case, pullback)
    for what in ("repr", "keys", "start"):
        assert got[what] == expected[what]
    for mode in MODES:
        assert list(got[mode]) == list(expected[mode])
        for name, (projected, norm) in expected[mode].items():
            np.testing.assert_allclose(got[mode][name], (projected, norm), rtol=0,
                                       atol=2e-6 * norm + 1e-7, err_msg=f"{mode}: {name}")


def test_channel_zero_never_leaves_the_window():
    """PyTorch's sums of squares keep it, as far as one looks; values recorded."""
    layer = pullback.nn.CrossMapLRN2d(3, alpha=1.0, beta=1.0, k=0.0)
    x = pullback.tensor([3.0, 1, 1, 1, 1]).reshape(1, 5, 1, 1)
    expected = [0.9, 0.27272728, 0.25, 0.25, 0.27272728]
    np.testing.assert_allclose(layer(x).reshape(-1).numpy(), expected, rtol=1e-6)


def test_checkpoints_from_before_batches_were_counted():
    norm = pullback.nn.Sequential(pullback.nn.BatchNorm1d(2))
    old = {key: value + 1 for key, value in norm.state_dict().items() if "tracked" not in key}
    assert norm.load_state_dict(old) == ([], [])
    assert norm[0].running_mean.tolist() == [1, 1] and norm[0].num_batches_tracked == 0
    current = norm.state_dict()
    assert current._metadata["0"] == {"version": 2}
    del current["0.num_batches_tracked"]
    with pytest.raises(RuntimeError, match=r"Missing key.*num_batches_tracked"):
        norm.load_state_dict(current)
    with pytest.raises(RuntimeError, match=r"Unexpected running stats.*InstanceNorm1d"):
        pullback.nn.Sequential(pullback.nn.InstanceNorm1d(2, affine=True)).load_state_dict(old)


def test_every_layer_has_a_case(recorded):
    containers = {"Container", "Module", "ModuleList", "ModuleDict", "ParameterList", "Parameter",
                  "ParameterDict", "Buffer", "RNNBase", "RNNCellBase", "LinearCrossEntropyOptions"}
    layers = {name for name in recorded["layers"] if not name.startswith(("Lazy", "Uninit"))}
    assert layers - containers - set(NAMES) == {"DataParallel"}
    assert set(NAMES) <= set(dir(pullback.nn))


def test_signatures(recorded):
    assert signatures(pullback) == recorded["signatures"]


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.partition(" | ")[0])
def test_in_full(case):
    import torch

    for train, grad in MODES.values():
        _, start, results = run(case, pullback, train, grad)
        _, expected, values = run(case, torch, train, grad)
        for (name, a), (_, b) in zip(start, expected, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)
        for (name, a), (_, b) in zip(results, values, strict=True):
            scale = max(1.0, float(np.abs(b).max(initial=0)))
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-6 * scale, err_msg=name)


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    layers = sorted(name for name in dir(torch.nn) if inspect.isclass(getattr(torch.nn, name)))
    data = {"layers": layers, "signatures": signatures(torch),
            "cases": {case: facts(case, torch) for case in CASES}}
    lines = [f"{json.dumps(case)}: {json.dumps(data['cases'][case])}" for case in CASES]
    head = f'"layers": {json.dumps(layers)},\n"signatures": {json.dumps(data["signatures"])}'
    DATA.write_text("{" + head + ',\n"cases": {\n' + ",\n".join(lines) + "}}\n")
