"""`pullback.special`: the operators of the table whose names begin with `special_`."""

from __future__ import annotations

import sys

from .facade import Shelf
from .table.prefixed import module_of

__getattr__, __dir__ = module_of("special", globals())
sys.modules[__name__].__class__ = Shelf
