"""What the backward gets from the forward: joint graphs are cut, values saved or computed again.

`partition.py` has the partitioners, `min_cut.py` the flow problem, `recompute.py` what it costs to
save a value or to compute it again; `budget.py` finds the fastest way within a limit of memory,
which `simulate.py` measures. `report.py` says what was decided, and why.
"""
