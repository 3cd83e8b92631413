"""What kernels run on: dtypes, devices, sizes and layouts, arrays without data, random streams.

Nothing here records or dispatches; `evaluate.py` runs one kernel of one operator on arrays, or asks
its shape rule. Read `dtype.py` first, then `dims.py`, `fake.py`, `evaluate.py`.
"""
