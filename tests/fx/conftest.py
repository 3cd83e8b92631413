"""Puts this folder, and that of the random programs, on the path of the tests."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "aot")]
