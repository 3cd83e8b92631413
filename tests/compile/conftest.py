"""Fixtures of the compiler's tests: skipped without torch (the oracle) or a C compiler."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore = []
try:
    import torch  # noqa: F401
except ImportError:
    collect_ignore = [
        p.name
        for p in Path(__file__).parent.glob("test_*.py")
        if p.name not in ("test_cache.py", "test_toolchain.py", "test_vmath.py")
    ]


@pytest.fixture(scope="session", autouse=True)
def compiler():
    from pullback.compile import toolchain
    from pullback.compile.errors import CompilerNotFound

    try:
        return toolchain.find()
    except CompilerNotFound:
        pytest.skip("no C compiler")
