"""Write `tests/data/exports.json` with PyTorch: `python -m tests.helpers.record_exports`."""

import json
from pathlib import Path

import torch
import torch._functorch.aot_autograd as aot
from functorch.experimental.control_flow import map as over

from tests.helpers.export_programs import outcomes

if __name__ == "__main__":
    path = Path(__file__).parents[1] / "data/exports.json"
    path.write_text(json.dumps(outcomes(torch, aot, over), indent=1) + "\n")
