"""Prints the way that a call takes through the package: files in order, and what runs there.

    python tools/walk.py                  counts, one line per walk
    python tools/walk.py eager compile    these walks file by file, with the functions in each

Walks: `eager` (a warm call of an operator), `backward` (of a warm chain), `vmap` (a warm
`vmap(grad(f))`), `compile` (the first call of a compiled function, nothing loaded before).
Functions that are generated (`<pullback ...>`) count as one file each kind.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

WARM = 20  # calls: more than `core/overload.py:OFTEN`, after which a kind of call has a plan
PACKAGE = Path(__file__).resolve().parent.parent / "pullback"


def touched(call: Callable[[], object]) -> dict[str, list[str]]:
    """Files of the package that a call goes through, in order, with the functions that run."""
    found: dict[str, list[str]] = {}

    def look(frame, event, arg):
        if event != "call":
            return
        code = frame.f_code
        name = code.co_filename
        if name.startswith(str(PACKAGE)):
            name = str(Path(name).relative_to(PACKAGE))
        elif name.startswith("<pullback"):
            name = " ".join(name.split()[:2]) + " ...>"
        else:
            return
        functions = found.setdefault(name, [])
        if code.co_name not in functions:
            functions.append(code.co_name)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def eager():
    """A warm call of an operator."""
    import pullback as torch

    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    return lambda: torch.softmax(x * y, 0), WARM


def backward():
    """A warm chain of operators and its gradients."""
    import pullback as torch

    x = torch.randn(3, requires_grad=True)
    return lambda: torch.autograd.grad((x.sin() * x).sum(), x), WARM


def vmap():
    """`vmap(grad(f))`, warm."""
    import pullback as torch

    x = torch.randn(4, 3)
    f = torch.vmap(torch.func.grad(lambda a: (a.sin() * a).sum()))
    return lambda: f(x), 3


def compile():
    """The first call of a compiled function, gradients included."""
    import pullback as torch

    x = torch.randn(4, 3, requires_grad=True)
    f = torch.compile(lambda a: (a.sin() * a).sum())
    return lambda: f(x).backward(), 0


WALKS = {walk.__name__: walk for walk in (eager, backward, vmap, compile)}


def main(names: list[str]) -> None:
    if not names:
        for name, walk in WALKS.items():  # each in a process of its own: what is loaded counts
            out = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True,
                                 check=True).stdout
            print(f"{name:10} {len(out.splitlines()) - 1:4} files   {walk.__doc__}")
        return
    for name in names:
        call, warm = WALKS[name]()
        for _ in range(warm):
            call()
        print(f"{name}: {WALKS[name].__doc__}")
        for file, functions in touched(call).items():
            print(f"  {file:38} {', '.join(functions)}")


if __name__ == "__main__":
    sys.path.insert(0, str(PACKAGE.parent))
    main(sys.argv[1:])
