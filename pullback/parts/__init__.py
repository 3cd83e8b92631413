"""Tensors that are made of other tensors: sparse, nested, masked and quantised ones.

Such a tensor has no array of its own.  It holds *parts*, ordinary tensors (indices, values,
offsets, scales), and facts about the whole.  What an operator does to it is a composition of
operators on the parts (`rules.py`), above the tape and above all transforms: so the parts have the
history, and derivatives of every kind, `vmap` and `compile` follow from those of dense tensors.
Transforms take such arguments apart and put the results together again (`trees.py`).

Nothing is loaded before a program makes the first such tensor.  Read next: `tensor.py`.
"""

from .tensor import Parts, PartsTensor
from .trees import closed, opened

__all__ = ["Parts", "PartsTensor", "closed", "opened"]
