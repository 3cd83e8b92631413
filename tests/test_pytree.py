"""Pytrees: taking containers apart and putting them together, structures, paths, registration."""

import copy
import dataclasses
import pickle
import timeit
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import pullback as torch
from pullback import pytree
from pullback.pytree import (
    GetAttrKey,
    MappingKey,
    SequenceKey,
    broadcast_prefix,
    key_get,
    keystr,
    register_constant,
    register_dataclass,
    register_pytree_node,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_map_only,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
    treespec_pprint,
)

Point = namedtuple("Point", "x y")

TREES = [
    3,
    None,
    [],
    (),
    {},
    [1, 2, 3],
    (1, [2, (3,)], None),
    {"b": 1, "a": [2, {"c": 3}]},
    OrderedDict(z=1, y=(2, 3)),
    defaultdict(list, k=5, j=[6, 7]),
    deque([1, (2, 3)], maxlen=4),
    Point(1, [2, 3]),
    [Point({"q": 1}, None), deque(), "text"],
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_unflatten_is_the_inverse_of_flatten(tree):
    leaves, spec = tree_flatten(tree)
    again = tree_unflatten(leaves, spec)
    assert again == tree and type(again) is type(tree)
    assert spec.num_leaves == len(leaves) == len(tree_leaves(tree))
    assert tree_leaves(tree) == leaves
    assert tree_unflatten(iter(leaves), spec) == tree
    if isinstance(tree, deque):
        assert again.maxlen == tree.maxlen
    if isinstance(tree, defaultdict):
        assert again.default_factory is tree.default_factory


def test_leaves_come_in_insertion_order_and_none_is_one():
    assert tree_leaves({"b": 1, "a": (None, 2)}) == [1, None, 2]


def test_subclasses_of_containers_are_leaves():
    class MyList(list):
        pass

    tree = MyList([1, 2])
    assert tree_leaves(tree)[0] is tree


def test_structures_compare_hash_and_copy():
    a, b = tree_structure({"a": [1, 2]}), tree_structure({"a": [3, 4]})
    assert a == b and hash(a) == hash(b) and {a: 1}[b] == 1
    assert a != tree_structure({"a": (1, 2)})
    assert a != tree_structure({"b": [1, 2]})
    assert a != tree_structure({"a": [1, [2]]})
    assert a != 3
    assert tree_structure({"a": 1, "b": 2}) != tree_structure({"b": 1, "a": 2})
    assert tree_structure(Point(1, 2)) != tree_structure((1, 2))
    for spec in (a, tree_structure(1), tree_structure([Point(1, 2)])):
        assert pickle.loads(pickle.dumps(spec)) == spec == copy.deepcopy(spec)
        assert pickle.loads(pickle.dumps(spec)).num_leaves == spec.num_leaves


def test_structure_prints_like_pytorch():
    tree = {
        "b": [1, (2, 3)],
        "a": Point(4, None),
        "o": OrderedDict(z=1, y=2),
        "d": defaultdict(list, k=5),
        "q": deque([1, 2], maxlen=3),
    }
    spec = tree_structure(tree)
    assert repr(spec) == (
        "TreeSpec(dict, ['b', 'a', 'o', 'd', 'q'], [TreeSpec(list, None, [*,\n"
        "    TreeSpec(tuple, None, [*,\n"
        "      *])]),\n"
        f"  TreeSpec(namedtuple, {Point}, [*,\n"
        "    *]),\n"
        "  TreeSpec(OrderedDict, ['z', 'y'], [*,\n"
        "    *]),\n"
        "  TreeSpec(defaultdict, [<class 'list'>, ['k']], [*]),\n"
        "  TreeSpec(deque, 3, [*,\n"
        "    *])])"
    )
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (10, 17, 5)
    assert spec.type is dict and spec.child(0).type is list and not spec.is_leaf()
    assert repr(tree_structure(1)) == "*" and tree_structure(1).is_leaf()
    assert repr(tree_structure([])) == "TreeSpec(list, None, [])"
    assert treespec_pprint(tree_structure({"a": [1, 2], "b": 3})) == "{'a': [*, *], 'b': *}"


def test_map_over_several_trees_matches_by_key_and_keeps_what_hangs_below():
    assert tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4}) == {
        "a": (1, 4),
        "b": (2, 3),
    }
    assert tree_map(lambda a, b: (a, b), [1, 2], [(3, 4), {}]) == [(1, (3, 4)), (2, {})]
    assert tree_map(lambda a, b: a + b, OrderedDict(a=1), {"a": 2}) == OrderedDict(a=3)
    assert tree_map(len, [(1, 2), (3,)], is_leaf=lambda t: isinstance(t, tuple)) == [2, 1]


@pytest.mark.parametrize(
    "tree, other, message",
    [
        ([1, 2], [1], "Node arity mismatch; expected 2, but got 1."),
        ([1, 2], (1, 2), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>."),
        ([1, 2], 3, "Node type mismatch; expected <class 'list'>, but got <class 'int'>."),
        ({"a": 1}, {"b": 1}, "Node keys mismatch; missing key(s): {'a'}; extra key(s): {'b'}."),
        (Point(1, 2), namedtuple("P", "x y")(1, 2), "Node context mismatch for node type"),
    ],
)
def test_trees_that_do_not_match_are_refused(tree, other, message):
    with pytest.raises(ValueError) as error:
        tree_map(lambda a, b: a, tree, other)
    assert message in str(error.value)


def test_wrong_number_of_leaves_and_wrong_structure_are_refused():
    with pytest.raises(ValueError, match="has length 2 but the spec refers to a pytree that holds"):
        tree_unflatten([1, 2], tree_structure([1]))
    with pytest.raises(TypeError, match="instance of TreeSpec"):
        tree_unflatten([1], [1])


def test_map_only_all_any():
    assert tree_map_only(int, lambda x: x + 1, [1, "a", 2.0]) == [2, "a", 2.0]
    assert tree_map_only((int, str), lambda x: x * 2, [1, "a", 2.0]) == [2, "aa", 2.0]
    assert tree_map_only(int | str, lambda x: x * 2, [1, "a", 2.0]) == [2, "aa", 2.0]
    assert tree_map_only(lambda x: x == 1, lambda x: 7, [1, 2]) == [7, 2]
    seen = []
    tree = {"a": [1, 2]}
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, 2]
    assert pytree.tree_map_only_(str, seen.append, [3, "x"]) == [3, "x"] and seen[-1] == "x"
    assert pytree.tree_all(bool, [1, [2]]) and not pytree.tree_all(bool, [1, [0]])
    assert pytree.tree_any(bool, [0, [2]]) and not pytree.tree_any(bool, [])
    assert pytree.tree_all_only(int, bool, [1, ""]) and pytree.tree_any_only(str, bool, [0, "a"])
    assert list(pytree.tree_iter([1, (2,)])) == [1, 2]
    assert pytree.arg_tree_leaves([1], 2, k=(3,)) == [1, 2, 3]


def test_paths():
    tree = {"b": [1, (2,)], "a": Point(4, {5: 6})}
    pairs, spec = tree_flatten_with_path(tree)
    assert spec == tree_structure(tree)
    texts = [keystr(path) for path, _ in pairs]
    assert texts == ["['b'][0]", "['b'][1][0]", "['a'].x", "['a'].y[5]"]
    assert pairs[1][0] == (MappingKey("b"), SequenceKey(1), SequenceKey(0))
    assert pairs[2][0] == (MappingKey("a"), GetAttrKey("x"))
    assert repr(pairs[2][0]) == "(MappingKey(key='a'), GetAttrKey(name='x'))"
    assert all(key_get(tree, path) is leaf for path, leaf in pairs)
    assert SequenceKey(0) != MappingKey(0)
    assert tree_map_with_path(lambda p, x, y: (keystr(p), x, y), {"a": [1]}, {"a": [2]}) == {
        "a": [("['a'][0]", 1, 2)]
    }
    assert tree_flatten_with_path(3) == ([((), 3)], tree_structure(3))


def test_prefixes():
    spec = tree_structure([1, (2, 3)])
    assert broadcast_prefix(0, spec) == [0, 0, 0]
    assert broadcast_prefix([0, None], spec) == [0, None, None]
    assert broadcast_prefix([0, (1, 2)], spec) == [0, 1, 2]
    assert broadcast_prefix([0, 1, 2], spec) is None
    assert broadcast_prefix((0, 1), spec) is None
    assert broadcast_prefix([[0], 1], spec) is None


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(pytree, "_containers", dict(pytree._containers))


def test_registered_class(registry):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    register_pytree_node(Pair, lambda p: ([p.a, p.b], "tag"), lambda c, tag: Pair(*c))
    leaves, spec = tree_flatten([Pair(1, [2]), 3])
    assert leaves == [1, 2, 3]
    assert repr(spec.child(0)) == "TreeSpec(Pair, tag, [*,\n  TreeSpec(list, None, [*])])"
    assert tree_unflatten(leaves, spec)[0].b == [2]
    with pytest.raises(ValueError, match="already registered"):
        register_pytree_node(Pair, None, None)
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn"):
        tree_flatten_with_path(Pair(1, 2))

    class Keyed(Pair):
        pass

    register_pytree_node(
        Keyed,
        lambda p: ([p.a, p.b], None),
        lambda c, _: Keyed(*c),
        flatten_with_keys_fn=lambda p: ([(GetAttrKey("a"), p.a), (GetAttrKey("b"), p.b)], None),
    )
    assert [keystr(p) for p, _ in tree_flatten_with_path([Keyed(1, 2)])[0]] == ["[0].a", "[0].b"]


def test_registered_dataclass(registry):
    @dataclasses.dataclass
    class State:
        x: int
        y: object = None
        z: object = 3

    register_dataclass(State)
    leaves, spec = tree_flatten(State(1, None, [2]))
    assert leaves == [1, 2] and spec.context == [["x", "z"], ["y"]]
    assert tree_unflatten(leaves, spec) == State(1, None, [2])
    assert [keystr(p) for p, _ in tree_flatten_with_path(State(1, 5))[0]] == [".x", ".y", ".z"]
    with pytest.raises(ValueError, match="not a dataclass"):
        register_dataclass(int)

    @dataclasses.dataclass
    class Chosen:
        x: int
        y: int = 7

    with pytest.raises(ValueError, match="do not cover"):
        register_dataclass(Chosen, field_names=["x"])
    register_dataclass(Chosen, drop_field_names=["y"])
    assert tree_map(lambda v: v + 1, Chosen(1, 2)) == Chosen(2, 7)


def test_registered_constant(registry):
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    register_constant(Mode)
    leaves, spec = tree_flatten([Mode("a"), 2])
    assert leaves == [2] and tree_unflatten([3], spec) == [Mode("a"), 3]
    assert spec == tree_structure([Mode("a"), 0]) != tree_structure([Mode("b"), 0])
    with pytest.raises(TypeError, match="__eq__"):
        register_constant(type("Opaque", (), {}))


def test_flattening_is_quick():
    leaves = list(range(20))
    seconds = min(timeit.repeat(lambda: tree_flatten(leaves), number=500, repeat=7)) / 500
    assert seconds < 30e-6          # about 3 us on an idle machine; the limit only catches blunders


def test_sizes_are_containers():
    spec = pytree.tree_structure(torch.Size([2, 3]))
    assert spec.num_leaves == 2 and spec.type is torch.Size
    text = torch.utils._pytree.treespec_dumps(spec)
    assert torch.utils._pytree.treespec_loads(text) == spec and '"torch.Size"' in text
    x = torch.ones(2, 3)
    for dynamic in (False, True):
        size, twice = torch.compile(lambda x: (x.size(), x * 2), dynamic=dynamic)(x)
        assert type(size) is torch.Size and size == (2, 3) and twice.sum() == 12


def test_structures_as_text_name_known_types_only(tmp_path, monkeypatch):
    """No module is imported and nothing is found in one: the text may be anybody's."""
    import collections
    import sys

    from pullback.utils import _pytree

    loads, dumps = _pytree.treespec_loads, _pytree.treespec_dumps
    for factory in (list, int, dict, collections.OrderedDict, torch.Size):
        spec = pytree.tree_structure(collections.defaultdict(factory, a=1))
        assert loads(dumps(spec)) == spec
        assert type(pytree.tree_unflatten([1], loads(dumps(spec)))["b"]) is factory
    good = dumps(pytree.tree_structure(collections.defaultdict(list, a=1)))
    (tmp_path / "harm_by_import.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for module, name in (("harm_by_import", "x"), ("os", "abort"), ("builtins", "eval"),
                         ("collections", "namedtuple"), ("builtins", "open")):
        bad = good.replace('"builtins"', f'"{module}"').replace('"list"', f'"{name}"', 1)
        with pytest.raises(NotImplementedError, match="neither plain data"):
            loads(bad)
    assert "harm_by_import" not in sys.modules
    with pytest.raises(NotImplementedError, match="register_pytree_node"):
        dumps(pytree.tree_structure(collections.defaultdict(lambda: 0, a=1)))


@pytest.mark.parametrize("text", [
    "", "[]", "[1]", "[1, 2]", "[1, null]", "[1, {}]", '[1, {"type": 3}]', "[2, {}]", "{}",
    '[1, {"type": "builtins.list", "context": "null", "children_spec": 3}]',
    '[1, {"type": "collections.defaultdict", "context": "null", "children_spec": []}]',
    '[1, {"type": "builtins.list", "context": 7, "children_spec": []}]',
    '[1, {"type": "builtins.list", "context": "{", "children_spec": []}]',
    '[1, {"type": [], "context": "{", "children_spec": []}]',
    "[" * 100_000,
    '[1, ' + '{"type": "builtins.list", "context": "null", "children_spec": [' * 400 + "]}" * 400,
])
def test_broken_structures_as_text(text):
    with pytest.raises((ValueError, NotImplementedError)):
        torch.utils._pytree.treespec_loads(text)
