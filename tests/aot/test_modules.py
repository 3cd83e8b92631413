"""Every layer class ahead of time: results, gradients, buffers and random numbers are eager's."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback import aot, errors

sys.path.insert(0, str(Path(__file__).parents[1] / "nn"))
from test_layers import CASES, run


def compiled(module):
    return aot.aot_module(module, aot.make_boxed_compiler(aot.nop), aot.nop)


# They look at values: a number of batches, which words are frequent.
LOOKING = ("AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0)",
           "AdaptiveLogSoftmaxWithLoss(8, 20, (5,), head_bias=True)",
           "BatchNorm1d(3, momentum=None, bias=False)")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.partition(" | ")[0])
def test_as_eager(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated arguments, implicit dims
        for train in (True, False):
            if case.startswith(LOOKING) and (train or "Adaptive" in case):
                with pytest.raises(errors.DataDependentError):
                    run(case, pb, train, wrap=compiled)
                continue
            _, _, expected = run(case, pb, train)
            _, _, found = run(case, pb, train, wrap=compiled)
            assert [name for name, _ in found] == [name for name, _ in expected]
            for (name, a), (_, b) in zip(expected, found):
                np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6, err_msg=f"{train} {name}")
