"""The name under which PyTorch programs know the pytree functions. See `pytree.py`.

What is defined here is about PyTorch's text form of structures, and questions about tuples.
"""

import collections
import json

from ..pytree import *  # noqa: F403
from ..pytree import (
    LeafSpec,
    MappingKey,
    SequenceKey,
    TreeSpec,
    _predicate,
    as_read,
    as_written,
    registered_types,
)
from ..pytree import broadcast_prefix as _broadcast_to_and_flatten  # noqa: F401
from ..pytree import tree_is_leaf as _is_leaf  # noqa: F401


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


# questions


def is_namedtuple_class(cls) -> bool:
    """Is this a class that `namedtuple` or `NamedTuple` made?"""
    return (isinstance(cls, type) and issubclass(cls, tuple)
            and all(isinstance(name, str) for name in getattr(cls, "_fields", (None,)))
            and callable(getattr(cls, "_make", None)))


def is_namedtuple_instance(obj) -> bool:
    """Is this an instance of such a class?"""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj) -> bool:
    """Either of both."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls) -> bool:
    """Is this a class of structure sequences, like that of `time.localtime()`?"""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (isinstance(cls, type) and cls.__bases__ == (tuple,)
            and all(isinstance(getattr(cls, name, None), int) for name in counts))


def is_structseq_instance(obj) -> bool:
    """Is this an instance of such a class?"""
    return is_structseq_class(type(obj))


def is_structseq(obj) -> bool:
    """Either of both."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def map_only(type_or_types_or_pred, /):
    """A decorator: the function leaves values of other types alone."""
    chosen = _predicate(type_or_types_or_pred)
    return lambda func: lambda value: func(value) if chosen(value) else value


# structures as text

_TYPES = {f"{cls.__module__}.{cls.__qualname__}": cls for cls in (
    list, tuple, dict, collections.OrderedDict, collections.defaultdict, collections.deque)}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as text, for `treespec_loads`."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(treespec): Expected `treespec` to be instance of TreeSpec "
                        f"but got item of type {type(treespec)}.")
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps([1, _written(treespec)])


def _written(spec: TreeSpec) -> dict:
    name = next((name for name, cls in _TYPES.items() if cls is spec.type), None)
    own, context = as_written(spec) if name is None else (None, None)
    if own is not None:
        return {"type": own, "context": context,
                "children_spec": [_written(child) for child in spec.children()]}
    if name is None and spec.type is not None:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found.")
    if spec.type is collections.defaultdict:
        factory, keys = spec.context
        _factory(factory.__module__, factory.__qualname__)  # else nobody could read it
        context = {"default_factory_module": factory.__module__,
                   "default_factory_name": factory.__qualname__, "dict_context": list(keys)}
    else:
        context = None if name is None else json.dumps(spec.context)
    return {"type": name, "context": context,
            "children_spec": [_written(child) for child in spec.children()]}


def _factory(module: str, name: str) -> type:
    """The type that a text names as what a `defaultdict` makes.

    No module is imported for a text, which may be anybody's: plain data and what was registered.
    """
    plain = (list, tuple, dict, set, frozenset, int, float, complex, bool, str, bytes,
             collections.OrderedDict, collections.Counter, collections.deque)
    for cls in (*plain, *registered_types()):
        if (cls.__module__, cls.__qualname__) == (module, name):
            return cls
    raise NotImplementedError(
        f"A defaultdict of {module}.{name} in pytree: that is neither plain data nor a type that "
        "was registered.\n  Fix: register_pytree_node() its class.")


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    try:
        protocol, written = json.loads(serialized)
        if protocol != 1:
            raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
        return _read(written)
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"treespec_loads: this is no structure: {error!r}") from error


def _read(written: dict) -> TreeSpec:
    name, context = written["type"], written["context"]
    children = [_read(child) for child in written["children_spec"]]
    if name is None:
        return LeafSpec()
    known = as_read(name, context) if name not in _TYPES else None
    if known is not None:
        return TreeSpec(*known, children)
    if name not in _TYPES:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    cls = _TYPES[name]
    if cls is collections.defaultdict:
        made = _factory(context["default_factory_module"], context["default_factory_name"])
        context = [made, list(context["dict_context"])]
    else:
        context = json.loads(context)
    return TreeSpec(cls, context, children)
