"""Save, load, checkpoints."""

import io
from pathlib import Path
from typing import Any

import pullback as torch
from pullback import nn, optim


def save(path: str | Path, model: nn.Module, optimizer: optim.Optimizer, epoch: int) -> None:
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path
    )


def restore(path: str | Path, model: nn.Module, optimizer: optim.Optimizer) -> int:
    checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    missing, unexpected = model.load_state_dict(checkpoint["model"], strict=False)
    optimizer.load_state_dict(checkpoint["optimizer"])
    assert not missing and not unexpected
    return int(checkpoint["epoch"])


model = nn.Linear(2, 1)
buffer = io.BytesIO()
torch.save(model.state_dict(), buffer)
buffer.seek(0)
print(torch.load(buffer)["weight"].shape)
