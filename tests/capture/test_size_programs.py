"""Small programs over sizes, compiled with symbolic ones: values and gradients are eager's."""

import numpy as np
import pytest

import pullback as torch
from tests.helpers import size_programs

PROGRAMS = size_programs.using(torch)
SIZES = 5, 8, 1, 0, 6, 2, 300
NATIVE = [  # the C compiler takes its time
    "reshape_pairs", "size_in_power", "causal_mask", "pad_rows_to_multiple", "floor_division",
    "write_into_slice", "chunk_columns"]
# captures for all of SIZES, where one for sizes, one for 0 and one for 1 do not suffice
CAPTURES = {
    "loop_over_rows": 7, "iterate_rows": 7, "linspace_rows": 6, "branch_even": 5,
    "branch_on_size": 4, "branch_square": 4, "maximum_of_sizes": 4, "slice_with_step": 5,
    "write_into_slice": 4, "diagonal": 4, "double_loop_of_halves": 6, "adaptive_pool": 4,
    "expand_to_sizes": 4}


def leaves(out):
    return [v for o in out for v in leaves(o)] if isinstance(out, (tuple, list)) else [out]


def outcome(function, x):
    """Results, then the gradient of the sum of their squares."""
    x = x.clone().requires_grad_()
    out = leaves(function(x))
    tracked = [o for o in out if isinstance(o, torch.Tensor) and o.requires_grad]
    return out + ([torch.autograd.grad([(o * o).sum() for o in tracked], [x])[0]]
                  if tracked else [])


def agree(compiled, function, x):
    for a, b in zip(outcome(compiled, x), outcome(function, x), strict=True):
        assert type(a) is type(b)
        if not isinstance(a, torch.Tensor):
            assert a == b
            continue
        assert a.shape == b.shape and a.dtype == b.dtype
        a, b = a.detach().numpy(), b.detach().numpy()
        scale = max(1.0, float(np.abs(b).max())) if b.size else 1.0
        np.testing.assert_allclose(a / scale, b / scale, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_all_sizes(name):
    function = PROGRAMS[name]
    compiled = torch.compile(function, dynamic=True, backend="numpy")
    torch.manual_seed(0)
    for n in SIZES:
        if n >= size_programs.LEAST.get(name, 0):
            n = 40 if n == 300 and name in ("loop_over_rows", "iterate_rows") else n
            agree(compiled, function, torch.randn(n, 6))
    made = sum(len(family.programs) for family in compiled.families.values())
    assert made <= CAPTURES.get(name, 3)


@pytest.mark.parametrize("name", NATIVE)
def test_native_code(name):
    function = PROGRAMS[name]
    compiled = torch.compile(function, dynamic=True)
    torch.manual_seed(0)
    for n in (5, 8, 0, 300):
        agree(compiled, function, torch.randn(n, 6))
