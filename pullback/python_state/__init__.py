"""What a function reads and changes in Python besides its arguments, for those who capture it.

`reachable.py` finds what a function can reach by the names in its code, `variables.py` what it
reads there (guards), `side_effects.py` what it changes; `module_tensors.py` is about tensors that
modules hold.
"""
