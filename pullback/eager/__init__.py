"""Operator calls written out: functions that are generated for an operator when it is used.

A call is a list of steps, which `bind_eager` (core/stack.py) takes in general.  `steps.py` has the
statements of each for one kind of call, `unroll.py` makes functions of statements; `plan.py` (by
the types of all arguments) and `fast.py` (pointwise operators) say for which calls, `pullbacks.py`
does the same for nodes.
"""
