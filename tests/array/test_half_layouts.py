"""Half precision is computed in float32: results lie in memory as those of float32 do."""

import pytest

import pullback as pb


@pytest.mark.parametrize("dtype", [pb.float16, pb.bfloat16, pb.float32])
def test_what_is_repeated_has_no_say_in_how_results_lie(dtype):
    repeated = pb.ones(3, 4, dtype=dtype).unsqueeze(2).expand(3, 4, 2)
    columns = pb.ones(2, 3, 4, dtype=dtype).permute(1, 2, 0)
    for _ in range(15):  # after a dozen calls a plan takes over
        assert (repeated * columns).stride() == (4, 1, 12)
        assert (columns + repeated).stride() == (4, 1, 12)
        assert pb.atan2(repeated, columns).stride() == (4, 1, 12)
        assert (repeated * repeated).stride() == (8, 2, 1)
        assert repeated.sum(2).tolist() == [[2.0] * 4] * 3


@pytest.mark.parametrize("dtype", [pb.float16, pb.bfloat16])
def test_results_for_what_is_repeated_are_memory_of_their_own(dtype):
    repeated = pb.ones(4, dtype=dtype).expand(3, 4)
    for function in (pb.abs, pb.ceil, pb.relu, pb.nan_to_num, pb.clone, lambda x: x.clamp(min=0)):
        made = function(repeated)
        made[0] = 2.0
        assert made.tolist() == [[2.0] * 4, [1.0] * 4, [1.0] * 4]
        assert repeated.tolist() == [[1.0] * 4] * 3
