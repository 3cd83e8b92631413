"""Products are rounded where eager code rounds them, but where nothing can tell the difference."""

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.compile.lower import lower
from pullback.compile.rounding import fusible
from pullback.compile.schedule import schedule
from pullback.compile.unit import make_unit
from tests.helpers.compiled_checks import run_both, trace, with_grad

g = np.random.default_rng(7)


def rows(*shape):
    return g.standard_normal(shape).astype("float32")


def made(fn, *arrays, grad=0):
    """(Values that may be fused, the C text)."""
    plan = schedule(lower(trace(with_grad(fn, grad) if grad else fn, *arrays)))
    return fusible(plan.order), make_unit(plan.lowered, plan, "t", 64).source


def norm_gelu(x, w, b, c):
    return (F.gelu(F.layer_norm(x, (x.shape[-1],), w, b), approximate="tanh") * c).sum()


def test_behind_a_mean_products_and_sums_are_fused():
    free, text = made(norm_gelu, rows(8, 40), rows(40), rows(40), rows(8, 40), grad=3)
    assert len(free) > 20 and "PB_ROUNDED" not in text[text.index(" = tanh_"):]
    assert "PB_ROUNDED" in text  # the squares, of whose mean there is a root


KEPT = {
    "arithmetic": lambda x, y: x * y + y,
    "sign": lambda x, y: torch.relu(x.exp() * y - y),
    "place": lambda x, y: (x.exp() * y + y).amax(-1),
    "whole number": lambda x, y: (x.exp() * y - y).floor(),
    "root": lambda x, y: (y.exp() * y - x * x).sqrt(),
    "divisor": lambda x, y: 1 / (y.exp() * y - x * x),
    "condition": lambda x, y: torch.where(x.exp() * y + y > 0, x, y),
    "whole": lambda x, y: x[(x.exp() * y + y).long().clamp(0, 3), 0],
    "product of matrices": lambda x, y: (x.exp() * y + y) @ x.T,
}


@pytest.mark.parametrize("name", KEPT)
def test_what_a_last_bit_can_change_is_rounded(name):
    _, text = made(KEPT[name], rows(4, 40), rows(4, 40))
    assert "PB_ROUNDED(" in text


def test_a_quotient_by_a_number_may_follow_fused_sums():
    free, text = made(lambda x, y: (x.exp() * y + y) / 3, rows(4, 40), rows(4, 40))
    assert free and "PB_ROUNDED(" not in text


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_the_deviation_of_equal_numbers_is_zero(dtype):
    """E[x²] - E[x]² with one rounding only is less than zero for some of them."""
    x = np.repeat(np.linspace(0.1, 7.3, 200).astype(dtype)[:, None], 2, 1)
    _, (got,), (want,) = run_both(lambda x: (
        ((x * x).mean(-1) - x.mean(-1) * x.mean(-1)).sqrt(),), x)
    np.testing.assert_array_equal(got, want)


def test_arithmetic_is_eager_bit_by_bit():
    x, y = rows(4, 400), rows(4, 400)
    _, (got,), (want,) = run_both(lambda x, y: (x * y + y * y - x * 3,), x, y)
    np.testing.assert_array_equal(got, want)
