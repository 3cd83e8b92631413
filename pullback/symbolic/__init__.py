"""Symbolic sizes: expressions, what is known of them, and the numbers that stand for them.

Read `expr.py`, `env.py`, `checker.py`, `number.py`, `queries.py`, `guards.py` and `views.py` in
this order.
"""

from .checker import Checker
from .env import Guard, Relation, ShapeEnv, Source
from .number import SymBool, SymFloat, SymInt

__all__ = ["Checker", "Guard", "Relation", "ShapeEnv", "Source", "SymBool", "SymFloat", "SymInt"]
