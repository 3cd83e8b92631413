"""Runs one program and prints what happened; `__main__.py` starts it once per library.

    python -m compat.child torch|pullback|pullback-compile NAME [steps]
"""

from __future__ import annotations

import json
import statistics
import sys
import time


def main(target: str, name: str, steps: int = 20) -> None:
    """Train for some steps; one line with a JSON object goes to standard output."""
    if target != "torch":
        import pullback

        pullback.install_as_torch()
    import torch

    vision = without_binary(torch)  # noqa: F841  # it lasts as long as somebody holds it
    from .programs import PROGRAMS

    torch.manual_seed(0)
    optimizer, model, loss = PROGRAMS[name]()
    count = None
    if target == "pullback-compile":
        count = Count(loss)
        loss = count.compiled = torch.compile(count)
        count.watch()
    losses, times = [], []
    for _ in range(steps):
        begun = time.perf_counter()
        if optimizer is not None:
            optimizer.zero_grad()
        value = loss(model)
        if optimizer is not None:
            value.backward()
            optimizer.step()
        losses.append(value.item())
        times.append(time.perf_counter() - begun)
    found = {"losses": losses, "seconds": statistics.median(times[steps // 2 :])}
    if count is not None:
        found |= count.found()
    print("RESULT " + json.dumps(found))


class Count:
    """A function that is compiled, and how it fares.

    Its Python code runs once per capture, and whenever it runs eagerly: that is counted.
    """

    __name__ = "loss"

    def __init__(self, function):
        self.function, self.eagerly, self.captures = function, 0, 0

    def __call__(self, model):
        from pullback.compiler import is_compiling

        if not is_compiling():
            self.eagerly += 1
        return self.function(model)

    def watch(self) -> None:
        """Count the captures as well."""
        build = self.compiled.build

        def counted(*args, **kwargs):
            program = build(*args, **kwargs)
            self.captures += 1
            return program

        self.compiled.build = counted

    def found(self) -> dict:
        """Captures, calls that ran eagerly, and parts that are not native code."""
        from pullback.compile.interpret import Interpreter

        parts = self.compiled.parts().values()
        return {
            "captures": self.captures,
            "eagerly": self.eagerly,
            "on_numpy": sum(isinstance(part, Interpreter) for part in parts),
        }


def without_binary(torch):
    """Describe the operators that torchvision expects in its binary.

    That fits one build of PyTorch alone; without it the package still describes two of them.
    """
    vision = torch.library.Library("torchvision", "DEF")
    for name in "nms", "qnms":
        vision.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return vision


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
