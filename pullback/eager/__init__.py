"""The eager fast path: functions that are generated for an operator when it is first called.

They do what `core/stack.py` and `core/tape.py` do in general, for the arguments at hand and without
a question that has only one answer. Read `fast.py` (pointwise operators) and `plan.py` (all others)
first; `recorder.py` makes nodes, `raw.py` and `direct.py` gradients on arrays.
"""
