"""The name under which PyTorch programs know the pytree functions. See `core/pytree.py`."""

from ..core.pytree import *  # noqa: F403
from ..core.pytree import broadcast_prefix as _broadcast_to_and_flatten  # noqa: F401
from ..core.pytree import tree_is_leaf as _is_leaf  # noqa: F401
