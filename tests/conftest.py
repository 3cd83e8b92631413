"""Fixtures of all tests."""

import sys

import pytest


@pytest.fixture
def without_torch(monkeypatch):
    """The real PyTorch, which other tests of the process may have imported, out of sight."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("torch", "functorch")]:
        monkeypatch.delitem(sys.modules, name)
