"""Smaller pieces of `utils`, `hub` and `func` that programs import."""

import collections
import gc
import textwrap
import time

import pytest

import pullback as pb
from pullback import errors, nn
from pullback.utils import _pytree as pytree
from pullback.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary

LEAF = '{"type": null, "context": null, "children_spec": []}'


@pytest.mark.parametrize("tree", [
    [1, (2, 3)], {"a": 1, "b": [2]}, collections.OrderedDict(x=1), None, 5, (),
    collections.deque([1, 2], maxlen=3), collections.defaultdict(list, {"k": 1})])
def test_structures_as_text(tree):
    spec = pytree.tree_flatten(tree)[1]
    text = pytree.treespec_dumps(spec)
    assert pytree.treespec_loads(text) == spec
    if type(tree) is tuple:  # recorded from PyTorch 2.13
        assert text == '[1, {"type": "builtins.tuple", "context": "null", "children_spec": []}]'
    if tree == 5:
        assert text == f"[1, {LEAF}]"
    if type(tree) is dict:
        assert text.startswith(r'[1, {"type": "builtins.dict", "context": "[\"a\", \"b\"]", ')


def test_questions_about_tuples():
    point = collections.namedtuple("point", "x y")
    assert pytree.is_namedtuple(point(1, 2)) and pytree.is_namedtuple(point)
    assert pytree.is_namedtuple_instance(point(1, 2)) and not pytree.is_namedtuple((1, 2))
    assert pytree.is_structseq(time.localtime()) and not pytree.is_structseq(point(1, 2))
    more = pytree.map_only(int)(lambda n: n + 1)
    assert more(3) == 4 and more("a") == "a"


def test_weak_dictionaries_of_tensors():
    one, same = pb.ones(2), pb.ones(2)
    held = WeakTensorKeyDictionary({one: "one"})
    held[same] = "same"
    assert held[one] == "one" and held[same] == "same" and len(held) == 2 and one in held
    watched = TensorWeakRef(one)
    del one
    gc.collect()
    assert len(held) == 1 and watched() is None and list(held) == [same]
    del held[same]
    assert same not in held and 3 not in held
    assert isinstance(held.copy(), WeakIdKeyDictionary)


def test_models_of_a_folder(tmp_path):
    (tmp_path / "parts.py").write_text("SCALE = 3")
    (tmp_path / "hubconf.py").write_text(textwrap.dedent("""
        from parts import SCALE
        def layer(width, bias=True):
            return SCALE, width, bias
    """))
    assert pb.hub.load(str(tmp_path), "layer", 4, source="local", bias=False) == (3, 4, False)
    with pytest.raises(RuntimeError, match="Cannot find callable other"):
        pb.hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(FileNotFoundError, match=r"hubconf\.py"):
        pb.hub.load(str(tmp_path / "none"), "layer", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        pb.hub.load("owner/name", "layer", source="elsewhere")
    for ask in (lambda: pb.hub.load("owner/name", "layer"), lambda: pb.hub.list("owner/name")):
        with pytest.raises(errors.NotInThisBuild, match="downloads nothing"):
            ask()


def test_batch_normalisations_without_statistics():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.InstanceNorm1d(3, track_running_stats=True))
    assert pb.func.replace_all_batch_norm_modules_(model) is model
    assert model[0].running_mean is None and not model[0].track_running_stats
    assert model[1].running_mean is not None
    x = pb.randn(4, 5, 3)
    assert pb.func.vmap(model[0], randomness="error")(x).shape == (4, 5, 3)


def test_old_names_of_arguments():
    x = pb.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="grad_tensors"):
        pb.autograd.backward(x * 2, grad_variables=pb.ones(2))
    assert x.grad.tolist() == [2, 2]
    with pb.cpu.stream(pb.cpu.current_stream()):
        assert pb.cpu.Event().query()
