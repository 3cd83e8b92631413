"""Fixtures of all tests."""

import gc
import os
import sys

import numpy as np
import pytest

# kernels change places when the library has been built: no test depends on when that is; those of
# `eager/test_native.py` have the kernels in C
os.environ.setdefault("PULLBACK_EAGER_KERNELS", "0")

_begins: dict = {}  # id of a generator -> the generator and its state before the first test


@pytest.fixture(autouse=True)
def same_numbers_in_any_order(request):
    """Generators of a test's module begin anew, so that no test depends on those before it."""
    for value in list(vars(request.module).values()):
        if isinstance(value, np.random.Generator):
            _, state = _begins.setdefault(id(value), (value, value.bit_generator.state))
            value.bit_generator.state = state


@pytest.fixture(autouse=True, scope="session")
def said_before():
    """What is said once in a process has been said: which test comes first makes no difference."""
    from pullback import errors

    errors.said.update(("cycles", "legacy"))


@pytest.fixture
def without_torch(monkeypatch):
    """The real PyTorch, which other tests of the process may have imported, out of sight."""
    for name in [n for n in sys.modules if n.partition(".")[0] in ("torch", "functorch")]:
        monkeypatch.delitem(sys.modules, name)


def pytest_collection():
    """Nothing that is collected becomes garbage: Python need not look for any."""
    gc.disable()


def pytest_collection_finish():
    """Tests that look for garbage look among their own, not through all modules and tests."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items):
    """Where PyTorch itself runs, what it warns of is not ours to mend."""
    for item in items:
        if item.get_closest_marker("torch") is not None:
            item.add_marker(pytest.mark.filterwarnings("ignore"))
