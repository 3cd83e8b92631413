"""Answers of the library as JSON, to be recorded from PyTorch and compared with ours."""

import warnings

import numpy as np
import pytest


def plain(value):
    """A result as JSON: a tensor as its dtype and shape and two numbers."""
    if isinstance(value, dict):
        return [[key, plain(part)] for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if not hasattr(value, "detach"):
        return value
    array = np.asarray(value.detach().numpy(), np.float64).reshape(-1)
    weights = np.cos(np.arange(array.size) * 0.7) / max(array.size, 1) ** 0.5
    numbers = [float(f"{n:.8g}") for n in (array @ weights, np.linalg.norm(array))]
    return {"kind": f"{value.dtype} {list(value.shape)}", "numbers": numbers}


def answer(function, torch):
    """What a function of the library gives: its result as JSON, or the types of its exception."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(function(torch))
        except Exception as error:
            return {"error": [t.__name__ for t in type(error).__mro__]}


def agree(got, expected, path):
    """Ours is the recorded answer; an exception may be of a more special type."""
    if isinstance(expected, list):
        assert isinstance(got, list) and len(got) == len(expected), (path, got)
        for i, (a, b) in enumerate(zip(got, expected, strict=True)):
            agree(a, b, f"{path}[{i}]")
    elif isinstance(expected, dict):
        assert isinstance(got, dict) and got.keys() == expected.keys(), (path, got, expected)
        if "error" in expected:
            assert expected["error"][0] in got["error"], path
            return
        assert got["kind"] == expected["kind"], path
        tolerance = 1e-5 * abs(expected["numbers"][1]) + 1e-6
        np.testing.assert_allclose(got["numbers"], expected["numbers"], rtol=0, atol=tolerance,
                                   err_msg=path)
    else:
        assert got == expected, path


@pytest.fixture(scope="session")
def compare():
    """compare(function, library, recorded answer, name)"""
    return lambda function, torch, expected, name: agree(answer(function, torch), expected, name)
