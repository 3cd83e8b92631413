"""Arrays in memory that forked processes share: `Tensor.share_memory_()`."""

from __future__ import annotations

import mmap

import numpy as np

from .device import owner


def shared(array: np.ndarray) -> np.ndarray:
    """The array itself if children of this process see its memory, else a copy that they do."""
    if is_shared(array):
        return array
    new = np.ndarray(array.shape, array.dtype, mmap.mmap(-1, max(array.nbytes, 1)))
    new[...] = array
    return new


def is_shared(array) -> bool:
    """Is this memory shared with the processes that are forked from here on?"""
    return isinstance(array, np.ndarray) and isinstance(owner(array).base, mmap.mmap)
