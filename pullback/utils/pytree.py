"""Pytrees, the public names: nested containers as leaves plus structure. See `pytree.py`."""

from ..pytree import *  # noqa: F403
from ..pytree import __all__ as __all__
