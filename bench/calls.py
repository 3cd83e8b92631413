"""What a compiled call costs beyond its native code: `python -m bench.calls`.

The native call is the library's own function on arrays; the compiled call finds out that the
program still fits, enters it, makes tensors of its results and, in training, a node of the tape.
Least of many short windows, the two in turn.  Fails if a row is above the limit.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable

import pullback as torch
from pullback import nn

LIMIT = 10.0  # microseconds
WINDOW, WINDOWS = 20, 600


def sum_of(*args):
    """A function of many tensors with next to no work."""
    total = args[0]
    for a in args[1:]:
        total = total + a
    return total


def leaves(count: int) -> list:
    """Small tensors that require grad."""
    return [torch.randn(4, requires_grad=True) for _ in range(count)]


def layers(count: int) -> nn.Module:
    """A module with twice as many parameters."""
    return nn.Sequential(*[nn.Linear(8, 8) for _ in range(count)])


CASES: dict[str, Callable[[], tuple]] = {
    "8 tensors": lambda: (sum_of, leaves(8)),
    "20 tensors": lambda: (sum_of, leaves(20)),
    "6 linear layers, 12 parameters": lambda: (layers(6), [torch.randn(4, 8)]),
    "10 linear layers, 20 parameters": lambda: (layers(10), [torch.randn(4, 8)]),
    "48 linear layers, 96 parameters": lambda: (layers(48), [torch.randn(4, 8)]),
}


def least(*functions: Callable[[], object]) -> list[float]:
    """Microseconds of each function, measured in turn."""
    found = [float("inf")] * len(functions)
    for _ in range(WINDOWS):
        for k, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(WINDOW):
                function()
            found[k] = min(found[k], (time.perf_counter() - start) / WINDOW * 1e6)
    return found


def measure(function, args: list, training: bool) -> tuple[float, float]:
    """Microseconds of the native call and of the compiled one."""
    compiled = torch.compile(function)
    with contextlib.nullcontext() if training else torch.no_grad():
        for _ in range(4):
            compiled(*args)
        programs = getattr(compiled, "_compiled", compiled).programs
        (program,) = programs.values()
        native = program.part("forward")
        arrays = [t._payload for t in program.joint.inputs.of(args)]
        native_us, call_us = least(lambda: native(*arrays), lambda: compiled(*args))
    return native_us, call_us


def main() -> int:
    """Print a table."""
    torch.set_num_threads(1)
    heads = f"{'native':>8}{'call':>8}{'more':>8}"
    print(f"{'':34}{heads}   training{heads}")
    worst = 0.0
    for name, case in CASES.items():
        rows = [measure(*case(), training) for training in (False, True)]
        more = [call - native for native, call in rows]
        texts = [f"{n:8.2f}{c:8.2f}{m:8.2f}" for (n, c), m in zip(rows, more)]
        print(f"{name:34}{texts[0]}{'':11}{texts[1]}")
        if "48" not in name:
            worst = max(worst, *more)
    print(f"at most {worst:.1f} µs more, the limit is {LIMIT:.0f} (for up to 20 parameters)")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
