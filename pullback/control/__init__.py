"""Control flow as operators: `cond`, `map`, `scan`, `while_loop`, `associative_scan`; and what is
made of them, `fori_loop` and `switch`.

On values that can be seen they are the Python statements that they stand for.  Under a capture
each is one node of the graph, with its functions as graphs of their own.  `subgraph.py` captures
those, `cond.py`, `loops.py` and `whiles.py` say what derivatives and batches of the operators are:
the same operators with other functions.
"""

from .cond import cond
from .counted import fori_loop, switch
from .effects import operator_print as print
from .effects import with_effects
from .loops import associative_scan, map, scan
from .out_dtype import out_dtype
from .subgraph import HigherOrder, operators
from .whiles import while_loop

__all__ = ["HigherOrder", "associative_scan", "cond", "fori_loop", "map", "operators",
           "out_dtype", "print", "scan", "switch", "while_loop", "with_effects"]

cond_op, map_impl = operators["cond"], operators["map_impl"]
scan_op, while_loop_op = operators["scan"], operators["while_loop"]
