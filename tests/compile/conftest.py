"""Fixtures of the compiler's tests: skipped only where there is no C compiler."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def compiler():
    from pullback.compile import toolchain
    from pullback.compile.errors import CompilerNotFound

    try:
        return toolchain.find()
    except CompilerNotFound:
        pytest.skip("no C compiler")
