"""Write `tests/data/captures.json` with PyTorch: `python -m tests.helpers.record_captures`."""

import json
from pathlib import Path

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.helpers import functionalized_programs, symbolic_programs
from tests.helpers.captured_programs import programs

if __name__ == "__main__":
    found = {
        f"{name} {mode}": make_fx(f, tracing_mode=mode)(*args).code.strip()
        for name, (f, args) in programs(torch).items()
        for mode in ("real", "fake")
    }
    written = {
        f"{name} {remove}": make_fx(
            torch.func.functionalize(
                functionalized_programs.programs(torch)[name][0], remove=remove)
        )(*args).code.strip()
        for name, (_, args) in functionalized_programs.programs(torch).items()
        for remove in ("mutations", "mutations_and_views")
    }
    traced = {
        name: torch.fx.symbolic_trace(f, concrete).code.strip()
        for name, (f, concrete) in symbolic_programs.programs(torch).items()
    }
    folder = Path(__file__).parents[1] / "data"
    (folder / "captures.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "symbolic_traces.json").write_text(json.dumps(traced, indent=1) + "\n")
    (folder / "functionalized.json").write_text(json.dumps(written, indent=1) + "\n")
