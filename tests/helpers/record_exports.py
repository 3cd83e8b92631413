"""Write `tests/data/exports.json` with PyTorch: `python tests/aot/record_exports.py`."""

import json
from pathlib import Path

import torch
import torch._functorch.aot_autograd as aot
from export_programs import outcomes
from functorch.experimental.control_flow import map as over

if __name__ == "__main__":
    path = Path(__file__).parents[1] / "data/exports.json"
    path.write_text(json.dumps(outcomes(torch, aot, over), indent=1) + "\n")
