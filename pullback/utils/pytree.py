"""Pytrees, the public names: nested containers as leaves plus structure. See `core/pytree.py`."""

from ..core.pytree import *  # noqa: F403
from ..core.pytree import __all__ as __all__
