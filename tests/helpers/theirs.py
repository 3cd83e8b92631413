"""An installed PyTorch, for tests that compare with it."""

try:
    import torch
except ImportError:  # its tests are collected, but deselected by `make test`; `make parity` has it
    torch = None

__all__ = ["torch"]
