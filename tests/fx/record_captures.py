"""Write `tests/data/captures.json` with PyTorch: `python tests/fx/record_captures.py`."""

import json
from pathlib import Path

import torch
from captured_programs import programs
from torch.fx.experimental.proxy_tensor import make_fx

if __name__ == "__main__":
    found = {
        f"{name} {mode}": make_fx(f, tracing_mode=mode)(*args).code.strip()
        for name, (f, args) in programs(torch).items()
        for mode in ("real", "fake")
    }
    path = Path(__file__).parents[1] / "data/captures.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
