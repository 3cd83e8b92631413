"""Blocks in which Python's collector does not run, so that what goes, goes by reference counts."""

import contextlib
import gc


@contextlib.contextmanager
def uncollected():
    """Objects in circles stay alive in the block."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
