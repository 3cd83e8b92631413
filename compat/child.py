"""Runs one program and prints its losses; `__main__.py` starts it once per library.

    python -m compat.child torch|pullback|pullback-compile NAME [steps]
"""

from __future__ import annotations

import json
import sys


def main(target: str, name: str, steps: int = 20) -> None:
    """Train for some steps; the losses go to standard output."""
    if target != "torch":
        import pullback

        pullback.install_as_torch()
    import torch

    from .programs import PACKAGES, PROGRAMS

    if "torchvision" in PACKAGES[name]:
        # Its operators live in a binary that fits one build of PyTorch alone; without it the
        # package still describes two of them.
        vision = torch.library.Library("torchvision", "DEF")
        vision.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        vision.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch.manual_seed(0)
    optimizer, model, loss = PROGRAMS[name]()
    if target == "pullback-compile":
        loss = torch.compile(loss)
    found = []
    for _ in range(steps):
        if optimizer is not None:
            optimizer.zero_grad()
        value = loss(model)
        if optimizer is not None:
            value.backward()
            optimizer.step()
        found.append(value.item())
    print("LOSSES " + json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
