"""The name under which PyTorch programs know the pytree functions. See `core/pytree.py`."""

from ..core.pytree import *  # noqa: F403
from ..core.pytree import MappingKey, SequenceKey
from ..core.pytree import broadcast_prefix as _broadcast_to_and_flatten  # noqa: F401
from ..core.pytree import tree_is_leaf as _is_leaf  # noqa: F401


def _dict_flatten(d):
    return list(d.values()), list(d)


def _dict_unflatten(values, context):
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d):
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _list_flatten(items):
    return items, None


def _list_unflatten(values, context):
    return list(values)


def _list_flatten_with_keys(items):
    return [(SequenceKey(i), value) for i, value in enumerate(items)], None
