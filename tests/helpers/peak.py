"""How much memory a piece of work takes at the most."""

import tracemalloc


def peak(work) -> int:
    """The most memory that Python and NumPy hold for some work at one time, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
