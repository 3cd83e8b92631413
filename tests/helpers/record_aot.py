"""Write `tests/data/aot_graphs.json` with PyTorch: `python -m tests.helpers.record_aot`."""

import json
from pathlib import Path

import torch
from functorch.compile import aot_function, make_boxed_compiler

from tests.helpers.aot_prints import prints
from tests.helpers.aot_programs import programs

if __name__ == "__main__":
    found = {
        name: prints(torch, aot_function, make_boxed_compiler, *program)
        for name, program in programs(torch).items()
    }
    path = Path(__file__).parents[1] / "data/aot_graphs.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
