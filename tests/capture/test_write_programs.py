"""Random programs that write through views: every way to run one against eager.

A slice of what `python -m tests.helpers.write_ways 0 5000` looks at.
"""

import pytest

from tests.helpers.write_programs import VIEWS, WRITES, make
from tests.helpers.write_ways import TRANSFORMS, check

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("way", TRANSFORMS)
@pytest.mark.parametrize("part", range(2))
def test_transforms_and_graphs(way, part):
    for seed in range(part, 64, 2):
        check(make(seed), way)


@pytest.mark.parametrize("way, seeds", [
    ("nop", range(18, 40)), ("mincut", range(40, 56)), ("numpy", range(56, 64))])
def test_compiled(way, seeds):
    for seed in seeds:
        check(make(seed), way)


def test_programs_meet_all_families():
    """The programs above are not all alike."""
    text = "".join(str(make(seed)) for seed in range(64))
    for family, writes in WRITES.items():
        assert any(f".{w.split('(')[0]}(" in text for w in writes), family
    views = {v.split("}.")[1].split("(")[0].split("[")[0] for some in VIEWS.values() for v in some
             if "}." in v}
    assert sum(f".{v}(" in text for v in views) > 20
