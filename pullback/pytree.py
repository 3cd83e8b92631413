"""Pytrees: nested containers seen as a list of leaves plus a structure.

`tree_flatten` takes a nest of lists, tuples, dicts (and registered classes) apart into its leaves
and a `TreeSpec`; `tree_unflatten` puts it together again. Transforms, capture and optimisers accept
any nest of tensors because they only ever look at the leaves. Anything that is not a known
container is a leaf, `None` and subclasses of the containers included. Dicts keep their insertion
order.

This file imports nothing from the package but sizes, since every layer uses it; the public door is
`pullback.utils.pytree`. Read `core/stack.py` next for what happens to the leaves.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from .array.size import Size, SymbolicShape

# fmt: off
__all__ = [
    "GetAttrKey", "KeyPath", "LeafSpec", "MappingKey", "PyTree", "SequenceKey", "TreeSpec",
    "arg_tree_leaves", "broadcast_prefix", "key_get", "keystr", "register_constant",
    "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
    "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only",
    "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dict",
    "treespec_leaf", "treespec_pprint", "treespec_tuple",
]
# fmt: on

PyTree = Any
IsLeaf = Callable[[Any], bool] | None


# ------------------------------------------------------------------------------
# Keys: one step of the way from the root to a leaf


class _Key:
    """One step; `str` writes it as Python would, `get` takes it."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"[{getattr(self, self.__match_args__[0])!r}]"

    def get(self, container: Any) -> Any:
        return container[getattr(self, self.__match_args__[0])]


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceKey(_Key):
    """Position in a list, tuple or deque."""

    idx: int


@dataclasses.dataclass(frozen=True, slots=True)
class MappingKey(_Key):
    """Key of a dict."""

    key: Any


@dataclasses.dataclass(frozen=True, slots=True)
class GetAttrKey(_Key):
    """Attribute of a named tuple, dataclass or registered class."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, container: Any) -> Any:
        return getattr(container, self.name)


KeyPath = tuple[Any, ...]


def keystr(path: KeyPath) -> str:
    """The path as one would type it after the variable: `['layers'][0].weight`."""
    return "".join(map(str, path))


def key_get(tree: PyTree, path: KeyPath) -> Any:
    """The subtree that `path` leads to."""
    for key in path:
        tree = key.get(tree)
    return tree


# ------------------------------------------------------------------------------
# Containers


@dataclasses.dataclass(frozen=True, slots=True)
class Container:
    """How one class of container is taken apart and put together."""

    type: Any  # what TreeSpec.type holds; `namedtuple` stands for all named tuple classes
    flatten: Callable[[Any], tuple[Iterable[Any], Any]]  # container -> children, context
    unflatten: Callable[[Iterable[Any], Any], Any]  # children, context -> container
    keys: Callable[[Any], list[Any]] | None  # container -> a key per child; None: has no paths
    name: str | None = None  # in files
    dump: Callable[[Any], Any] | None = None  # context -> what JSON has; None: it has it itself
    load: Callable[[Any], Any] | None = None  # the other way


_containers: dict[Any, Container] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    **ignored: Any,
) -> None:
    """Make `cls` a container.

    `flatten_fn(x)` gives `(children, context)`; `unflatten_fn(children, context)` builds an equal
    object. The context should compare with `==`. `flatten_with_keys_fn` gives
    `([(key, child), ...], context)` and is needed only by functions that speak of paths. Files know
    the class as `serialized_type_name`, and its context as what JSON can hold of it.
    """
    if cls in _containers:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError("Both to_dumpable_context and from_dumpable_context must be None or "
                         f"registered: {cls}")
    keys = None
    if flatten_with_keys_fn is not None:

        def keys(container: Any) -> list[Any]:
            return [key for key, _ in flatten_with_keys_fn(container)[0]]

    _containers[cls] = Container(cls, flatten_fn, unflatten_fn, keys, serialized_type_name,
                                 to_dumpable_context, from_dumpable_context)


def as_written(spec: TreeSpec) -> tuple[str | None, Any]:
    """The name of a registered class in files, and the context of a structure as JSON has it."""
    import json

    known = _containers.get(spec.type)
    if known is None or known.name is None:
        return None, None
    dump = known.dump or json.dumps
    return known.name, dump(spec.context)


def as_read(name: str, context: Any) -> tuple[type, Any] | None:
    """The class that files know by a name, and a context of it; None if nobody registered one."""
    import json

    known = next((c for c in _containers.values() if c.name == name), None)
    return None if known is None else (known.type, (known.load or json.loads)(context))


def registered_types() -> list[type]:
    """The classes that are containers here."""
    return [known.type for known in _containers.values() if isinstance(known.type, type)]


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
    **ignored: Any,
) -> None:
    """Make a dataclass a container whose children are its fields.

    A field that holds None becomes part of the structure, not a leaf. `field_names` chooses the
    fields and their order (default: all that `__init__` takes); `drop_field_names` leaves some out,
    which must then have defaults.
    """
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"register_dataclass: {cls} is not a dataclass; use register_pytree_node.")
    wanted = [f.name for f in dataclasses.fields(cls) if f.init]
    dropped = set(drop_field_names or ())
    if field_names is None:
        field_names = [name for name in wanted if name not in dropped]
    elif set(field_names) | dropped != set(wanted):
        raise ValueError(
            f"register_dataclass: {cls.__name__} is built from the fields {wanted}, but "
            f"field_names={field_names} and drop_field_names={sorted(dropped)} do not cover them."
        )

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        values, filled, empty = [], [], []
        for name in field_names:
            value = getattr(obj, name)
            if value is None:
                empty.append(name)
            else:
                filled.append(name)
                values.append(value)
        return values, [filled, empty]

    def unflatten(children: Iterable[Any], context: Any) -> Any:
        filled, empty = context
        return cls(**dict(zip(filled, children, strict=True)), **dict.fromkeys(empty))

    def keys(obj: Any) -> list[Any]:
        return [GetAttrKey(name) for name in flatten(obj)[1][0]]

    if cls in _containers:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _containers[cls] = Container(cls, flatten, unflatten, keys, serialized_type_name)


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantNode:
    """Context of a value that is part of the structure."""

    value: Any


def register_constant(cls: type) -> None:
    """Make instances of `cls` part of the structure: no leaf, compared with `==`."""
    if cls.__eq__ is object.__eq__ or cls.__hash__ is None:
        raise TypeError(
            f"register_constant: {cls} needs __eq__ and __hash__, as it becomes part of a TreeSpec."
        )
    register_pytree_node(
        cls,
        lambda obj: ([], ConstantNode(obj)),
        lambda _, context: context.value,
        flatten_with_keys_fn=lambda obj: ([], ConstantNode(obj)),
    )


def _positions(items: Any) -> list[Any]:
    return [SequenceKey(i) for i in range(len(items))]


def _dict_keys(items: Any) -> list[Any]:
    return [MappingKey(key) for key in items]


def _add(cls: type, flatten: Any, unflatten: Any, keys: Any) -> Container:
    entry = _containers[cls] = Container(cls, flatten, unflatten, keys)
    return entry


def _dict_of(cls: type) -> Callable[[Iterable[Any], Any], Any]:
    return lambda children, keys: cls(zip(keys, children, strict=True))


_add(list, lambda x: (x, None), lambda children, _: list(children), _positions)
_add(tuple, lambda x: (x, None), lambda children, _: tuple(children), _positions)
_add(deque, lambda x: (x, x.maxlen), lambda children, maxlen: deque(children, maxlen), _positions)
_add(dict, lambda x: (x.values(), list(x)), _dict_of(dict), _dict_keys)
_add(OrderedDict, lambda x: (x.values(), list(x)), _dict_of(OrderedDict), _dict_keys)
_add(
    defaultdict,
    lambda x: (x.values(), [x.default_factory, list(x)]),
    lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
    _dict_keys,
)
# All named tuple classes share one entry, with the class as context: they need no registration.
_namedtuples = _add(
    namedtuple,
    lambda x: (x, type(x)),
    lambda c, cls: cls(*c),
    lambda x: [GetAttrKey(name) for name in x._fields],
)
_mappings = (dict, OrderedDict, defaultdict)


def _container(cls: type) -> Container | None:
    """The entry of a class, None when its instances are leaves."""
    entry = _containers.get(cls)
    if entry is None and issubclass(cls, tuple) and type(getattr(cls, "_fields", None)) is tuple:
        return _namedtuples
    return entry


# ------------------------------------------------------------------------------
# Structures


class TreeSpec:
    """The shape of a pytree: container class, context, and one TreeSpec per child. Immutable."""

    __slots__ = ("_children", "_hash", "context", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self._children = children
        self._hash = None
        leaves, nodes = 0, 1
        for child in children:
            leaves += child.num_leaves
            nodes += child.num_nodes
        self.num_leaves = leaves
        self.num_nodes = nodes

    @property
    def num_children(self) -> int:
        return len(self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """Build the tree of this shape that has these leaves."""
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return _build(self, iter(leaves))

    def flatten_up_to(self, tree: PyTree) -> list[Any]:
        """Take `tree` apart as far as this structure goes; what hangs below stays whole."""
        subtrees: list[Any] = []
        _flatten_up_to(self, tree, subtrees)
        return subtrees

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self.num_leaves == other.num_leaves
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.type, _freeze(self.context), tuple(self._children)))
        return self._hash

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.type is None:
            return "*"
        children = (",\n" + " " * (indent + 2)).join(
            child._text(indent + 2) for child in self._children
        )
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    def __reduce__(self) -> Any:
        if self.type is None:
            return (treespec_leaf, ())
        return (TreeSpec, (self.type, self.context, self._children))


def _freeze(context: Any) -> Any:
    """A hashable stand-in for a context."""
    if isinstance(context, list):
        return tuple(map(_freeze, context))
    try:
        hash(context)
    except TypeError:
        return type(context)
    return context


_LEAF = TreeSpec(None, None, [])
_LEAF.num_leaves = 1


def LeafSpec() -> TreeSpec:
    """The structure of a single leaf."""
    return _LEAF


treespec_leaf = LeafSpec


def treespec_tuple(children: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple whose items have the given structures."""
    return TreeSpec(tuple, None, list(children))


def treespec_dict(
    items: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **more: TreeSpec
) -> TreeSpec:
    """The structure of a dict whose values have the given structures."""
    specs = dict(items, **more)
    return TreeSpec(dict, list(specs), list(specs.values()))


def treespec_pprint(spec: TreeSpec) -> str:
    """The structure written as the tree itself, with `*` for each leaf."""
    return repr(spec.unflatten([_Star()] * spec.num_leaves))


class _Star:
    def __repr__(self) -> str:
        return "*"


# ------------------------------------------------------------------------------
# Taking apart and putting together


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of `tree`, left to right, and its structure.

    `is_leaf(subtree)` may declare a container to be a leaf.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    entry = _container(type(tree))
    if entry is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, context = entry.flatten(tree)
    specs = []
    lookup = _containers.get
    for child in children:
        # The test of `_container`, inline: most children are leaves and should cost little.
        cls = type(child)
        if lookup(cls) is None and not issubclass(cls, tuple):
            leaves.append(child)
            specs.append(_LEAF)
        else:
            specs.append(_flatten(child, leaves, is_leaf))
    return TreeSpec(entry.type, context, specs)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree with the given leaves and structure: the inverse of `tree_flatten`."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but "
            f"got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def _build(spec: TreeSpec, leaves: Iterator[Any]) -> PyTree:
    kind = spec.type
    if kind is None:
        return next(leaves)
    count = len(spec._children)
    if count == spec.num_leaves == spec.num_nodes - 1:
        children = list(islice(leaves, count))
    else:
        children = [next(leaves) if c.type is None else _build(c, leaves) for c in spec._children]
    return children if kind is list else _containers[kind].unflatten(children, spec.context)


def _flatten_up_to(spec: TreeSpec, tree: PyTree, out: list[Any]) -> None:
    kind = spec.type
    if kind is None:
        out.append(tree)
        return
    entry = _container(type(tree))
    found = type(tree) if entry is None else entry.type
    if found is not kind and not (kind in _mappings and found in _mappings):
        raise ValueError(f"Node type mismatch; expected {kind}, but got {type(tree)}.")
    children, context = entry.flatten(tree)
    children = list(children)
    if len(children) != spec.num_children and kind not in _mappings:
        raise ValueError(
            f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}."
        )
    if kind in _mappings:
        wanted = spec.context[1] if kind is defaultdict else spec.context
        if tree.keys() != set(wanted):
            missing, extra = set(wanted) - tree.keys(), tree.keys() - set(wanted)
            message = f"; missing key(s): {missing}" if missing else ""
            message += f"; extra key(s): {extra}" if extra else ""
            raise ValueError(f"Node keys mismatch{message}.")
        children = [tree[key] for key in wanted]
    elif kind is not deque and context != spec.context:
        # The length limit of a deque is no part of what one can map over.
        raise ValueError(
            f"Node context mismatch for node type {kind}; expected {spec.context}, "
            f"but got {context}."
        )
    for child_spec, child in zip(spec._children, children, strict=True):
        _flatten_up_to(child_spec, child, out)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of `tree`, left to right."""
    leaves: list[Any] = []
    _collect(tree, leaves, is_leaf)
    return leaves


def _collect(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> None:
    entry = _container(type(tree))
    if entry is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return
    lookup = _containers.get
    for child in entry.flatten(tree)[0]:
        cls = type(child)
        if lookup(cls) is None and not issubclass(cls, tuple):
            leaves.append(child)
        else:
            _collect(child, leaves, is_leaf)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves of `tree` one by one."""
    return iter(tree_leaves(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of a call's arguments, positional ones first."""
    leaves: list[Any] = []
    for arg in args:
        _collect(arg, leaves, None)
    for arg in kwargs.values():
        _collect(arg, leaves, None)
    return leaves


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure of `tree` without its leaves."""
    return _flatten(tree, [], is_leaf)


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `tree` as a whole is a leaf."""
    return _container(type(tree)) is None or (is_leaf is not None and bool(is_leaf(tree)))


# ------------------------------------------------------------------------------
# Mapping


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Apply `func` to each leaf, and to what stands in its place in each further tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return _build(
        spec, iter(list(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests))))
    )


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Call `func` on each leaf for its effect; returns `tree` itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for items in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests), strict=True):
        func(*items)
    return tree


def _predicate(types_or_predicate: Any) -> Callable[[Any], bool]:
    # Classes and unions (`int | str`) go to isinstance; any other callable is asked itself.
    if callable(types_or_predicate) and not isinstance(types_or_predicate, type):
        return types_or_predicate
    return lambda leaf: isinstance(leaf, types_or_predicate)


def tree_map_only(
    types_or_predicate: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Apply `func` to the leaves of the given type(s) or that satisfy the predicate."""
    chosen = _predicate(types_or_predicate)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(
    types_or_predicate: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Like `tree_map_only` for effect only; returns `tree` itself."""
    chosen = _predicate(types_or_predicate)
    return tree_map_(lambda leaf: func(leaf) if chosen(leaf) else None, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether `pred` holds for every leaf of the given type(s)."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, types))


def tree_any_only(
    types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Whether `pred` holds for some leaf of the given type(s)."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, types))


# ------------------------------------------------------------------------------
# Paths


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """`(path, leaf)` for each leaf, left to right."""
    found: list[tuple[KeyPath, Any]] = []
    _walk((), tree, found, is_leaf)
    return found


def _walk(path: KeyPath, tree: PyTree, found: list[tuple[KeyPath, Any]], is_leaf: IsLeaf) -> None:
    entry = _container(type(tree))
    if entry is None or (is_leaf is not None and is_leaf(tree)):
        found.append((path, tree))
        return
    if entry.keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a "
            f"flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in zip(entry.keys(tree), entry.flatten(tree)[0], strict=True):
        _walk((*path, key), child, found, is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Like `tree_flatten`, with `(path, leaf)` pairs in place of leaves."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """Like `tree_map`; `func` gets the path of each leaf as its first argument."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*pair, *rest) for pair, *rest in zip(pairs, *others, strict=True)])


# ------------------------------------------------------------------------------
# Prefixes


def broadcast_prefix(prefix: PyTree, spec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """One entry of `prefix` per leaf of `spec`, or None if `prefix` does not fit on top of it.

    `in_dims=(0, None)` for the arguments `(params, x)` is such a prefix: 0 stands for every leaf
    of params.
    """
    if tree_is_leaf(prefix, is_leaf):
        return [prefix] * spec.num_leaves
    entry = _container(type(prefix))
    if spec.type is None or entry.type is not spec.type:
        return None
    children, context = entry.flatten(prefix)
    children = list(children)
    if len(children) != spec.num_children or context != spec.context:
        return None
    result: list[Any] = []
    for child, child_spec in zip(children, spec._children, strict=True):
        part = broadcast_prefix(child, child_spec, is_leaf)
        if part is None:
            return None
        result += part
    return result


for _kind in (Size, SymbolicShape):
    _containers[_kind] = Container(
        Size, lambda size: (list(size), None), lambda children, _: Size(children),
        lambda size: [SequenceKey(i) for i in range(len(size))], "torch.Size")
