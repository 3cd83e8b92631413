"""Write `tests/data/wrappers.json` with PyTorch: `python -m tests.helpers.record_wrappers`."""

import json
from pathlib import Path

import torch
from functorch.compile import aot_function, make_boxed_compiler
from torch.testing._internal.two_tensor import TwoTensor

from tests.helpers.aot_prints import prints
from tests.helpers.wrapper_programs import programs

# PyTorch expects plain gradients for wrappers that were written, and refuses those that come
REFUSED = ("written_and_alias",)

if __name__ == "__main__":
    found = {
        name: prints(torch, aot_function, make_boxed_compiler, *program)
        for name, program in programs(torch, TwoTensor).items() if name not in REFUSED
    }
    path = Path(__file__).parents[1] / "data/wrappers.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
