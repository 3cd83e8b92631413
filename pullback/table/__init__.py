"""The operator table as a whole: which file has which entry, calls by name, formulas, lists.

Entries themselves are in `ops/`, what an entry is in `core/op.py`. Read `catalog.py` (which file is
loaded when) and `packets.py` (`ops.mul(x, y)`) first.
"""
