"""The handwritten digits of `data/digits.npz`, for the other examples. Not a program."""

from pathlib import Path

import numpy as np

import pullback as torch

FILE = Path(__file__).parent / "data" / "digits.npz"


def load_digits():
    """Images `(N, 1, 8, 8)` between 0 and 1 and labels: 1437 to learn from, 360 to test with."""
    with np.load(FILE) as file:
        images = torch.from_numpy(file["images"]).to(torch.float32).unsqueeze(1) / 16
        labels = torch.from_numpy(file["labels"]).to(torch.int64)
    return images[:1437], labels[:1437], images[1437:], labels[1437:]
