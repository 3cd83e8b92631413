"""Capture: a function becomes a joint graph of values, and a callable with eager's side effects.

`capture.py` runs the function, and the engine behind it, on tensors without data. `compiled.py`
does so per signature, has the graph cut (`cut/`) and both halves compiled; `run.py` calls them and
replays what the function did besides computing. Read them in this order; `results.py`, `hooks.py`,
`shared_inputs.py`, `subclasses.py` and `dynamic.py` are about one matter each.
"""
