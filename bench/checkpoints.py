"""The least memory of the models of `bench/cut.py` beside checkpointing by hand.

`python -m bench.checkpoints [names]` prints peaks of forward and backward in bytes beyond the
arguments, measured as in `bench/layers.py`: eager execution; the best checkpointing by hand, and
which that is; `compile()`; and `compile(memory=0.0)`, measured and simulated. By hand are all of
these: `checkpoint` around every k blocks for each k, the same but for the last group (whose values
are needed at once), and one around the model. It fails where the least that a compiled function
takes is more than eager execution or the best by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import cut, lines
from .layers import peak

WARM = 13  # calls: from the twelfth on operators are called by plan


def by_hand(function: Callable, args: list) -> Iterator[tuple[str, Callable]]:
    """Every checkpointing of a model by hand: what it is, and the function."""
    from pullback.utils.checkpoint import checkpoint

    yield "the model", lambda *args: checkpoint(function, *args, use_reentrant=False)
    apply, count = cut.through, 0

    def counted(blocks, *state):
        nonlocal count
        count = len(blocks)
        return apply(blocks, *state)

    with_blocks(counted, function)(*args)

    def grouped(k: int, end: int) -> Callable:
        def through(blocks, *state):
            for n in range(0, len(blocks), k):
                group = blocks[n : n + k]
                if n < end:
                    state = checkpoint(apply, group, *state, use_reentrant=False)
                else:
                    state = apply(group, *state)
            return state
        return with_blocks(through, function)

    for k in range(1, count + 1):
        last = (count - 1) // k * k
        yield f"every {k} of {count}", grouped(k, count)
        if last:
            yield f"every {k} of {count} but the last", grouped(k, last)


def with_blocks(through: Callable, function: Callable) -> Callable:
    """A model whose blocks are run by another function."""
    def run(*args):
        own, cut.through = cut.through, through
        try:
            return function(*args)
        finally:
            cut.through = own
    return run


def row(torch, name: str) -> tuple[int, int, str, int, int, object]:
    """Peaks: eager, by hand (and which), compiled, least; and the report of that."""
    torch.manual_seed(0)
    function, args = cut.MODELS[name](torch, torch.nn.functional)
    eager = peak(torch, function, args, WARM)
    hand, best = min((peak(torch, run, args, WARM), how) for how, run in by_hand(function, args))
    plain = peak(torch, torch.compile(function), args)
    least = torch.compile(function, memory=0.0)
    return eager, hand, best, plain, peak(torch, least, args), least.report()


HEADER = (f"{'peak in bytes':26}{'eager':>12}{'by hand':>12}{'compile()':>12}{'least':>12}"
          f"{'simulated':>12}  {'checkpoints by hand':24}  way")


def line(name: str) -> tuple[str, bool]:
    """The text for a model; does the compiled one take more than it must?"""
    import pullback as torch

    eager, hand, best, plain, least, report = row(torch, name)
    return (f"{name:26}{eager:12,}{hand:12,}{plain:12,}{least:12,}{report.phases.peak:12,}  "
            f"{best:24}  {report.way}"), least > min(eager, hand)


if __name__ == "__main__":
    lines.main(__doc__, cut.MODELS, HEADER, line, "more than eager or checkpointed by hand")
