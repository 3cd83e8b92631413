"""`pullback.fft`: the operators of the table whose names begin with `fft_`."""

from __future__ import annotations

import sys

from .facade import Shelf
from .table.prefixed import module_of

__getattr__, __dir__ = module_of("fft", globals())
sys.modules[__name__].__class__ = Shelf
