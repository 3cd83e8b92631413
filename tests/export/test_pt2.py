"""Programs that PyTorch 2.13 has written (`pt2_programs.py`): read, run, refused."""

import io
import json
import random
import zipfile

import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.utils import _pytree as pytree
from tests.helpers.pt2_programs import DATA, inputs, modules

NAMES = ["branches", "buffers", "conv", "halves", "loops", "narrow", "sizes", "tied", "trees"]
EXPECTED = np.load(DATA / "expected.npz")


def check(program, name):
    args, kwargs = inputs(torch, name)
    results = pytree.tree_leaves(program.module()(*args, **kwargs))
    assert len(results) == sum(key.startswith(f"{name}.") for key in EXPECTED.files)
    for i, value in enumerate(results):
        array = value.detach().to(torch.float64).numpy() if torch.is_tensor(value) else value
        np.testing.assert_allclose(array, EXPECTED[f"{name}.{i}"], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_programs_of_pytorch(name):
    program = torch.export.load(DATA / f"{name}.pt2")
    file = io.BytesIO()
    torch.export.save(program, file)  # in our own format
    check(program, name)
    file.seek(0)
    check(torch.export.load(file), name)


def test_what_is_in_it():
    program = torch.export.load(str(DATA / "buffers.pt2"))
    signature = program.graph_signature
    assert list(signature.parameters) == ["linear.weight", "linear.bias"]
    assert list(signature.buffers) == ["count", "other"]
    assert list(program.state_dict) == ["linear.weight", "linear.bias", "count"]
    assert list(signature.buffers_to_mutate.values()) == ["count"]
    module = program.module()
    before = module.count.clone()
    out = module(torch.ones(7, 3), 3.0)  # another size
    assert out["rows"] == 7 and out["out"].shape == (7, 2)
    assert torch.equal(module.count, before + 1)
    out["out"].sum().backward()
    assert module.linear.weight.grad.shape == (2, 3)
    with pytest.raises(errors.PullbackError):
        module(torch.ones(101, 3), 3.0)


def test_tied_weights_are_one():
    program = torch.export.load(DATA / "tied.pt2")
    assert list(program.graph_signature.parameters) == ["embedding.weight"]


def test_examples_come_along():
    program = torch.export.load(DATA / "trees.pt2")
    args, _ = inputs(torch, "trees")
    (trees, pair), kwargs = program.example_inputs
    assert torch.equal(trees["a"], args[0]["a"]) and torch.equal(pair[1], args[1][1])
    assert kwargs == {}


def written(name):
    """A program of ours as a file of PyTorch's format, and what it gives."""
    torch.manual_seed(0)
    module, dims, _ = modules(torch)[name]
    args, kwargs = inputs(torch, name)
    program = torch.export.export(module, args, kwargs, dynamic_shapes=dims)
    file = io.BytesIO()
    torch.export.save(program, file, format="pt2", extra_files={"note": "hello"})
    file.seek(0)
    results = pytree.tree_leaves(program.module()(*args, **kwargs))
    return file, [v.detach().to(torch.float64).numpy() if torch.is_tensor(v) else v
                  for v in results]


@pytest.mark.parametrize("name", NAMES)
def test_written_and_read_again(name):
    file, expected = written(name)
    extra = {"note": ""}
    program = torch.export.load(file, extra_files=extra)
    assert extra["note"] == "hello"
    args, kwargs = inputs(torch, name)
    results = pytree.tree_leaves(program.module()(*args, **kwargs))
    assert len(results) == len(expected)
    for value, wanted in zip(results, expected):
        array = value.detach().to(torch.float64).numpy() if torch.is_tensor(value) else value
        np.testing.assert_allclose(array, wanted, atol=1e-6)
    assert program.example_inputs is not None


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_pytorch_reads_what_is_written(name):
    import torch as theirs
    from torch.utils import _pytree

    file, expected = written(name)
    program = theirs.export.load(file)
    args, kwargs = inputs(theirs, name)
    results = _pytree.tree_leaves(program.module()(*args, **kwargs))
    assert len(results) == len(expected)
    for value, wanted in zip(results, expected):
        array = value.detach().double().numpy() if theirs.is_tensor(value) else value
        np.testing.assert_allclose(array, wanted, atol=1e-5)


def test_conditions_on_sizes_are_found_again(tmp_path):
    class Even(torch.nn.Module):
        def forward(self, x):
            return x.view(-1, 2).sum(1)

    dims = {"x": {0: torch.export.Dim.AUTO}}
    program = torch.export.export(Even(), (torch.ones(8),), dynamic_shapes=dims)
    torch.export.save(program, tmp_path / "even.pt2", format="pt2")
    module = torch.export.load(tmp_path / "even.pt2").module()
    assert module(torch.ones(6)).tolist() == [2.0] * 3
    with pytest.raises(errors.SignatureError):
        module(torch.ones(5))


def test_what_cannot_be_written(tmp_path):
    class Halved(torch.nn.Module):
        def forward(self, x):
            return x * (x.shape[0] / 2)

    dims = {"x": {0: torch.export.Dim("n", min=4)}}
    program = torch.export.export(Halved(), (torch.ones(8),), dynamic_shapes=dims)
    with pytest.raises(errors.ExportError, match="cannot hold"):
        torch.export.save(program, tmp_path / "halved.pt2", format="pt2")
    assert not (tmp_path / "halved.pt2").exists()
    with pytest.raises(errors.BadValue, match="format"):
        torch.export.save(program, tmp_path / "x", format="zip")


def changed(name, change):
    """A file with another graph, or other records."""
    out = io.BytesIO()
    with zipfile.ZipFile(DATA / f"{name}.pt2") as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry.endswith(".json"):
                found = json.loads(data)
                change(entry.rpartition("/")[2], found)
                data = json.dumps(found).encode()
            new.writestr(entry, data)
    out.seek(0)
    return out


def version(file, found):
    if file == "model.json":
        found["schema_version"]["major"] = 99


def unknown(file, found):
    if file == "model.json":
        found["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.mine.thing.default"


def code(file, found):
    if file == "model.json":
        found["graph_module"]["graph"]["nodes"][0]["target"] = "os.system"


def pickled(file, found):
    if file == "model_weights_config.json":
        found["config"]["linear.weight"]["use_pickle"] = True


def beyond(file, found):
    if file == "model_weights_config.json":
        found["config"]["linear.weight"]["tensor_meta"]["storage_offset"] = {"as_int": 1}


def missing(file, found):
    if file == "model_weights_config.json":
        del found["config"]["count"]


def broken(file, found):
    if file == "model.json":
        del found["graph_module"]["graph"]["nodes"][1]["inputs"]


@pytest.mark.parametrize("change", [version, unknown, code, pickled, beyond, missing, broken])
def test_refused(change):
    with pytest.raises(errors.FileFormatError):
        torch.export.load(changed("buffers", change))


# damaged files: read, or refused in our words, and nothing of them is run


ODD = [None, True, -1, 0, 2**31, -(2**63), 2**70, 1e308, float("nan"), "", "x", "os.system", [], {},
       [[]], {"as_int": -5}, "torch.ops.aten.add.Tensor", "\ud800", ["os", "system"]]


def mutate(tree, r):
    """Change one value somewhere in a tree of JSON."""
    place = tree
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = r.choice(keys)
        if isinstance(place[key], (dict, list)) and place[key] and r.random() < 0.9:
            place = place[key]
            continue
        kind = r.randrange(5)
        if kind == 0:
            del place[key]
        elif kind == 1 and isinstance(place, list):
            place.insert(key, place[r.choice(keys)])
        elif kind == 2 and isinstance(place[key], int):
            place[key] += r.choice([-1, 1, 1000])
        else:
            place[key] = r.choice(ODD)
        return


@pytest.mark.parametrize("name", ["buffers", "tied", "conv"])
def test_mutated_files_are_read_or_refused(name, monkeypatch):
    monkeypatch.setattr("os.system", lambda command: pytest.fail("code of a file was run"))
    r, refused = random.Random(len(name)), 0
    for _ in range(40):
        wanted = r.choice(["model.json", "model_weights_config.json"])

        def change(file, found, wanted=wanted):
            if file == wanted:
                for _ in range(r.choice([1, 1, 2])):
                    mutate(found, r)

        try:
            torch.export.load(changed(name, change))
        except (errors.FileFormatError, errors.NotInThisBuild) as error:
            refused += 1
            assert str(error)
    assert refused > 5


@pytest.mark.parametrize("cut", [0, 3, 100, -1, -22, -300])
def test_truncated_files_are_refused(cut):
    data = (DATA / "buffers.pt2").read_bytes()
    with pytest.raises((errors.FileFormatError, EOFError)):
        torch.export.load(io.BytesIO(data[:cut]))


def test_declared_sizes_are_not_believed():
    """A tensor that claims more elements than its record has, however large, takes no memory."""
    import tracemalloc

    def large(file, found):
        if file == "model_weights_config.json":
            meta = found["config"]["linear.weight"]["tensor_meta"]
            meta["sizes"] = [{"as_int": 2**40}] * len(meta["sizes"])

    tracemalloc.start()
    with pytest.raises(errors.FileFormatError):
        torch.export.load(changed("buffers", large))
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()
