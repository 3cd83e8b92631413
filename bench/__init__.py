"""Our own benchmarks: `python -m bench`. Read `__main__.py`, then `cases.py`."""
