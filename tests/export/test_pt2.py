"""Programs that PyTorch 2.13 has written (`pt2_programs.py`): read, run, refused."""

import io
import json
import zipfile

import numpy as np
import pytest
from pt2_programs import DATA, inputs

import pullback as torch
from pullback import errors
from pullback.utils import _pytree as pytree

NAMES = ["branches", "buffers", "conv", "narrow", "sizes", "tied", "trees"]
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
