"""What `make compat` counts as agreement (its runs need PyTorch and the registry)."""

from __future__ import annotations

import pytest

import pullback as torch
from compat.__main__ import Outcome, listed
from compat.child import Count

WANTED = Outcome(losses=(1.0, 0.5))


def test_programs_are_listed_by_name():
    programs = listed()
    assert len(programs) > 50 and programs["gpytorch_regression"] == "gpytorch"


def test_losses_must_agree():
    assert Outcome(losses=(1.0, 0.500004)).fault(WANTED) is None
    assert "differs by 2.0e-05" in Outcome(losses=(1.0, 0.50001)).fault(WANTED)
    assert "differs" in Outcome(losses=(1.0, float("nan"))).fault(WANTED)
    assert Outcome("no module").fault(WANTED) == "no module"


def test_what_ran_eagerly_does_not_count_as_compiled():
    assert Outcome(losses=WANTED.losses, captures=2).fault(WANTED) is None
    for counts in {"captures": 5}, {"eagerly": 1}, {"on_numpy": 1}:
        assert Outcome(losses=WANTED.losses, **counts).fault(WANTED) is not None


@pytest.mark.filterwarnings("ignore:compile.* loss runs operator by operator")
def test_captures_and_eager_calls_are_counted():
    limit = [1.0]

    def loss(model):
        if limit[0] is None:
            torch.set_rng_state(torch.get_rng_state() if torch.rand(()) < 2 else None)
        return (model * 2).sum()

    for given, wanted in (1.0, (1, 0)), (None, (0, 3)):
        limit[0] = given
        count = Count(loss)
        count.compiled = torch.compile(count)
        count.watch()
        model = torch.ones(2, requires_grad=True)
        for _ in range(3):
            count.compiled(model)
        found = count.found()
        assert (found["captures"], found["eagerly"], found["on_numpy"]) == (*wanted, 0)
