"""Fixtures of the compiler's tests: skipped only where there is no C compiler."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def compiler():
    from pullback.compile import toolchain
    from pullback.compile.errors import CompilerNotFound

    try:
        return toolchain.find()
    except CompilerNotFound:
        pytest.skip("no C compiler")
