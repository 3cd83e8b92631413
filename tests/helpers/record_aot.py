"""Write `tests/data/literals.json` with PyTorch: `python tests/aot/record_literals.py`."""

import json
from pathlib import Path

import torch
from functorch.compile import aot_function, make_boxed_compiler
from literal_programs import programs
from literals import prints

if __name__ == "__main__":
    found = {
        name: prints(torch, aot_function, make_boxed_compiler, *program)
        for name, program in programs(torch).items()
    }
    path = Path(__file__).parents[1] / "data/literals.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
