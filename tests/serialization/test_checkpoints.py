"""`save` and `load`: values, sharing and names, against files that PyTorch 2.13 wrote.

`content(torch)` is what the recorded files hold; `python tests/serialization/test_checkpoints.py`
writes them anew where PyTorch is installed.
"""

import collections
import io
import os
import pathlib
import pickle
import types
import zipfile

import numpy as np
import pytest

import pullback
from pullback import errors, serialization

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
CLASSIC = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
           "float64", "complex64", "complex128")  # fmt: skip
LATER = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")


def content(torch):
    """One of everything, with PyTorch's or this package's tensors."""
    a = torch.arange(6.0).reshape(2, 3)
    named = torch.nn.Parameter(torch.ones(2))
    named.note = "kept"
    marked = torch.ones(2)
    marked.mark = 1
    ordered = collections.OrderedDict(x=torch.zeros(2), y=2)
    ordered._metadata = {"version": 1}
    all_of_it = {
        "a": a,
        "row": a[1],
        "transposed": a.t(),
        "column": a[:, 1],
        "parameter": torch.nn.Parameter(a),
        "frozen": torch.nn.Parameter(torch.ones(1), requires_grad=False),
        "named": named,
        "marked": marked,
        "leaf": torch.ones(2, requires_grad=True),
        "buffer": torch.nn.Buffer(torch.ones(1)),
        "expanded": torch.ones(1).expand(5),
        "number": torch.tensor(3),
        "empty": torch.empty(0, 3),
        "real": torch.tensor([1 + 2j, 3 + 4j]).real,
        "meta": torch.empty(2, 3, device="meta"),
        "size": torch.Size([1, 2]),
        "dtype": torch.float32,
        "device": torch.device("cpu"),
        "ordered": ordered,
        "counter": collections.Counter("abca"),
        "plain": [1, -2, 2.5, None, True, "text", b"bytes", (1, (2,)), {1, 2}, 2**70, 3j,
                  bytearray(b"ab"), 300, 70000, -(2**40)],
        "nested": {"deep": [{"er": (a[0],)}], 3: "int key", (1, 2): "tuple key"},
    }  # fmt: skip
    all_of_it.update(of_dtypes(torch, CLASSIC))
    return all_of_it


def of_dtypes(torch, names):
    """A tensor of each dtype."""
    bits = torch.from_numpy(np.array([0, 1, 1, 0], np.uint8))
    return {name: bits.to(getattr(torch, name)) for name in names}


def values(t):
    """A tensor's elements, also of dtypes that only store."""
    t = t.detach()
    return (t.float() if "float8" in str(t.dtype) else t).tolist()


def same(x, y, path=""):
    """Equal in value, layout, flags and attributes, across the two packages."""
    if hasattr(x, "requires_grad") and hasattr(x, "stride"):
        assert tuple(x.shape) == tuple(y.shape), path
        assert str(x.dtype) == str(y.dtype), path
        assert x.requires_grad == y.requires_grad, path
        assert str(x.device) == str(y.device), path
        if x.numel():
            assert x.stride() == y.stride(), path
        if path != ".buffer":  # a class here, a mark on a tensor there
            assert type(x).__name__ == type(y).__name__, path
            assert x.__dict__ == y.__dict__, path
        if str(x.device) != "meta":
            assert x.storage_offset() == y.storage_offset(), path
            assert values(x) == values(y), path
    elif isinstance(x, dict):
        assert type(x) is type(y), path
        assert list(x) == list(y), path
        assert getattr(x, "__dict__", None) == getattr(y, "__dict__", None), path
        for key in x:
            same(x[key], y[key], f"{path}.{key}")
    elif isinstance(x, (list, tuple)) and type(x).__name__ != "Size":
        assert len(x) == len(y), path
        for i, (one, other) in enumerate(zip(x, y)):
            same(one, other, f"{path}.{i}")
    elif "torch" in type(x).__module__ or "pullback" in type(x).__module__:
        assert str(x) == str(y), path
    else:
        assert type(x) is type(y), path
        assert x == y, path


def there_and_back(obj, **options):
    file = io.BytesIO()
    serialization.save(obj, file)
    file.seek(0)
    return serialization.load(file, **options)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", ["torch_zip.pt", "torch_old.pt"])
def test_a_file_of_pytorch_is_read(name, weights_only):
    got = pullback.load(DATA / name, weights_only=weights_only)
    same(content(pullback), got)
    for key in ("row", "transposed", "column", "parameter"):
        assert np.shares_memory(got[key].detach().numpy(), got["a"].numpy()), key
    assert isinstance(got["buffer"], pullback.nn.Buffer)
    got["a"][1, 1] = 77.0
    assert got["row"][1] == 77.0
    assert got["nested"]["deep"][0]["er"][0].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_round_trip(zipped, protocol, tmp_path):
    path = tmp_path / "one.pt"
    before = content(pullback)
    pullback.save(before, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    got = pullback.load(path)
    same(before, got)
    assert np.shares_memory(got["row"].numpy(), got["a"].numpy())


@pytest.mark.parametrize("ask", [
    lambda table, kind: kind in table and table[kind],
    lambda table, kind: table.get(kind),
    lambda table, kind: table.get(kind, None),  # Python 3.13 and later
])
def test_picklers_may_ask_for_reducers_in_any_way(ask, tmp_path):
    class Table:
        def __init__(self, table):
            self.get = lambda kind, default=None: ask(table, kind) or default

    class Pickler(pickle._Pickler):
        def dump(self, value):
            self.dispatch_table = Table(self.dispatch_table)
            super().dump(value)

    module = types.SimpleNamespace(__name__="asking", Pickler=Pickler, _Pickler=Pickler)
    value = {"t": pullback.arange(3.0), "size": pullback.Size([2, 3]), "range": range(3)}
    pullback.save(value, tmp_path / "f", pickle_module=module)
    back = pullback.load(tmp_path / "f", weights_only=False)
    assert back["t"].tolist() == [0, 1, 2]
    assert back["size"] == (2, 3) and back["range"] == range(3)


def test_dtypes_without_a_storage_class():
    if not all(hasattr(pullback, name) for name in LATER):  # one that is not here is named
        with pytest.raises(errors.NotInThisBuild, match=r"torch\.(uint|float8)"):
            pullback.load(DATA / "torch_later.pt")
        return
    before = of_dtypes(pullback, LATER)
    same(before, pullback.load(DATA / "torch_later.pt"))
    same(before, there_and_back(before))


def test_files_say_pytorchs_names():
    file = io.BytesIO()
    pullback.save({"l": pullback.nn.Linear(2, 2), **content(pullback)}, file)
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        body = archive.read("archive/data.pkl")
        assert archive.read("archive/byteorder") == b"little"
        assert archive.read("archive/version") == b"3\n"
    assert b"pullback" not in body
    for name in (b"ctorch.nn\nLinear\n", b"ctorch._utils\n_rebuild_tensor_v2\n",
                 b"ctorch\nFloatStorage\n", b"ctorch._utils\n_rebuild_parameter\n",
                 b"ctorch\nfloat32\n", b"ctorch\nSize\n"):  # fmt: skip
        assert name in body


def test_records_are_aligned_and_the_same_content_gives_the_same_file(tmp_path):
    for name in ("a", "b"):
        os.makedirs(tmp_path / name)
        pullback.save(content(pullback), tmp_path / name / "x.pt")
    first, second = ((tmp_path / name / "x.pt").read_bytes() for name in "ab")
    assert first == second
    with zipfile.ZipFile(tmp_path / "a" / "x.pt") as archive:
        for entry in archive.infolist():
            head = first[entry.header_offset :][:30]
            names, extra = (int.from_bytes(head[i : i + 2], "little") for i in (26, 28))
            assert (entry.header_offset + 30 + names + extra) % 64 == 0


def test_mapped(tmp_path):
    path = tmp_path / "m.pt"
    pullback.save({"a": pullback.arange(1000), "b": pullback.empty(0)}, path)
    got = pullback.load(path, mmap=True)
    assert got["a"].sum() == 499500
    got["a"][0] = 5  # a private copy of the page
    assert pullback.load(path)["a"][0] == 0
    again = there_and_back(got)  # of the storage, not of the file
    assert again["a"].tolist() == got["a"].tolist()
    with pytest.raises(ValueError, match="file path"):
        pullback.load(io.BytesIO(path.read_bytes()), mmap=True)
    with pytest.raises(RuntimeError, match="zip format"):
        pullback.load(DATA / "torch_old.pt", mmap=True)


def test_map_location():
    seen = []

    def keep(storage, location):
        seen.append((storage.nbytes(), location))
        return storage

    two = {"a": pullback.ones(3), "b": pullback.ones(4)}
    for where in ("cpu", pullback.device("cpu"), {"cuda:0": "cpu"}, keep, lambda s, at: None):
        assert there_and_back(two, map_location=where)["b"].tolist() == [1.0] * 4
    assert seen == [(12, "cpu"), (16, "cpu")]
    away = there_and_back(two, map_location="meta")["a"]
    assert away.device.type == "meta" and tuple(away.shape) == (3,)
    with pytest.raises(TypeError, match="map_location"):
        there_and_back(two, map_location=3)
    with pytest.raises(TypeError, match="returned"):
        there_and_back(two, map_location=lambda s, at: 3)
    with pytest.raises(RuntimeError, match="no device type 'nowhere'"):
        there_and_back(two, map_location="nowhere")


def on_another_device():
    """A file whose storage belongs to a device that is not here."""
    file, out = io.BytesIO(), io.BytesIO()
    pullback.save(pullback.ones(3), file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"X\3\0\0\0cpu", b"X\3\0\0\0mps"))
    out.seek(0)
    return out


def test_a_device_that_is_not_here():
    with pytest.raises(errors.DeviceError, match=r"'mps'.*\n.*\n.*map_location"):
        pullback.load(on_another_device())
    assert pullback.load(on_another_device(), map_location="cpu").sum() == 3
    assert pullback.load(on_another_device(), map_location={"mps": "cpu"}).sum() == 3


def test_generator():
    generator = pullback.Generator().manual_seed(7)
    pullback.rand(3, generator=generator)
    got = there_and_back({"g": generator, "s": pullback.get_rng_state()})["g"]
    assert type(got) is pullback.Generator
    first, second = (pullback.rand(3, generator=g).tolist() for g in (got, generator))
    assert first == second


class Net(pullback.nn.Module):
    """A module of the user's."""

    def __init__(self):
        super().__init__()
        self.layer = pullback.nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x)


class Tagged(pullback.Tensor):
    """A tensor class of the user's."""


def test_whole_modules_need_trust():
    net = Net()
    with pytest.raises(pickle.UnpicklingError, match="Net, which weights_only=True does not"):
        there_and_back(net)
    for options in ({"weights_only": False}, {"pickle_module": pickle}):
        got = there_and_back(net, **options)
        assert got(pullback.ones(2)).tolist() == net(pullback.ones(2)).tolist()
        assert isinstance(got.layer, pullback.nn.Linear)
    with serialization.safe_globals([Net, pullback.nn.Linear]):
        got = there_and_back(net)
        assert got(pullback.ones(2)).tolist() == net(pullback.ones(2)).tolist()
    assert serialization.get_safe_globals() == []


def test_a_module_of_pytorchs_is_found_under_its_path():
    got = pullback.load(DATA / "torch_module.pt", weights_only=False)
    assert [type(m).__name__ for m in got] == ["Linear", "ReLU", "LayerNorm"]
    assert isinstance(got[0], pullback.nn.Linear)
    assert got(pullback.ones(1, 3)).shape == (1, 4)
    names = serialization.get_unsafe_globals_in_checkpoint(DATA / "torch_module.pt")
    assert "torch.nn.modules.linear.Linear" in names
    with serialization.safe_globals([pullback.nn.Sequential, pullback.nn.Linear, pullback.nn.ReLU,
                                     pullback.nn.LayerNorm]):  # fmt: skip
        assert serialization.get_unsafe_globals_in_checkpoint(DATA / "torch_module.pt") == []
        pullback.load(DATA / "torch_module.pt")


def test_tensor_classes():
    tagged = pullback.ones(2).as_subclass(Tagged) if hasattr(pullback.Tensor, "as_subclass") else (
        Tagged([1.0, 1.0]))
    tagged.tag = 5
    got = there_and_back(tagged, weights_only=False)
    assert type(got) is Tagged and got.tag == 5 and got.tolist() == [1.0, 1.0]
    with pytest.raises(pickle.UnpicklingError, match="Tagged"):
        there_and_back(tagged)


def test_numpy_values_need_permission():
    value = {"scalar": np.float64(2.5), "array": np.arange(3)}
    with pytest.raises(pickle.UnpicklingError, match="numpy"):
        there_and_back(value)
    parts = [np._core.multiarray.scalar, np._core.multiarray._reconstruct, np.ndarray, np.dtype,
             type(np.dtype("f8")), type(np.dtype("i8"))]  # fmt: skip
    with serialization.safe_globals(parts):
        got = there_and_back(value)
    assert got["scalar"] == 2.5 and got["array"].tolist() == [0, 1, 2]


def test_safe_globals():
    class Config(dict):
        pass

    serialization.add_safe_globals([Config, (Net, "old.place.Net")])
    try:
        assert serialization.get_safe_globals() == [Config, (Net, "old.place.Net")]
    finally:
        serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []
    with pytest.raises(TypeError, match="classes and functions"):
        serialization.add_safe_globals(["os.system"])


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
@pytest.mark.parametrize("zipped", [True, False])
def test_storages(zipped, tmp_path):
    x, y = pullback.arange(4.0), pullback.ones(3, dtype=pullback.int16)
    path = tmp_path / "s.pt"
    values = {"x": x, "typed": x.storage(), "bytes": y.untyped_storage()}
    pullback.save(values, path, _use_new_zipfile_serialization=zipped)
    for weights_only in (True, False):
        got = pullback.load(path, weights_only=weights_only)
        assert isinstance(got["typed"], pullback.FloatStorage)
        assert got["typed"].tolist() == [0.0, 1.0, 2.0, 3.0]
        assert got["bytes"].tolist() == [1, 0] * 3
        assert got["x"].untyped_storage() is got["typed"].untyped()
        got["typed"][0] = 7.0
        assert got["x"][0] == 7
    with pytest.raises(RuntimeError, match="different types"):
        pullback.save([x, x.untyped_storage()], io.BytesIO())


def test_state_dicts():
    def made():
        pullback.manual_seed(0)
        net = pullback.nn.Sequential(pullback.nn.Linear(3, 4), pullback.nn.BatchNorm1d(4))
        return net, pullback.optim.Adam(net.parameters(), lr=0.1)

    def step(net, optimizer):
        optimizer.zero_grad()
        net(pullback.arange(15.0).reshape(5, 3)).pow(2).sum().backward()
        optimizer.step()
        return [p.tolist() for p in net.parameters()]

    net, optimizer = made()
    step(net, optimizer)
    saved = there_and_back({"net": net.state_dict(), "optimizer": optimizer.state_dict()})
    expected = step(net, optimizer)
    net, optimizer = made()
    net.load_state_dict(saved["net"])
    optimizer.load_state_dict(saved["optimizer"])
    assert step(net, optimizer) == expected


def test_what_cannot_be_saved_destroys_nothing(tmp_path):
    path = tmp_path / "x.pt"
    pullback.save({"a": pullback.ones(2)}, path)
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        pullback.save({"a": pullback.ones(2), "f": lambda: 0}, path)
    assert pullback.load(path)["a"].tolist() == [1.0, 1.0]
    a = pullback.ones(4)
    with pytest.raises(RuntimeError, match="different types"):
        pullback.save([a, a.view(pullback.int32)], io.BytesIO())
    with pytest.raises(AttributeError, match="write"):
        pullback.save(a, 3)


def test_arguments():
    with pytest.raises(RuntimeError, match="pickle_module"):
        pullback.load(io.BytesIO(), pickle_module=pickle, weights_only=True)
    with pytest.raises(AttributeError, match="no read"):
        pullback.load(3)
    with pytest.raises(FileNotFoundError):
        pullback.load("/nowhere/at/all.pt")
    with pytest.raises(EOFError, match="empty"):
        pullback.load(io.BytesIO())


def test_streams_that_cannot_seek():
    class Pipe(io.RawIOBase):
        def __init__(self):
            self.data = b""

        def writable(self):
            return True

        def write(self, data):
            self.data += bytes(data)
            return len(data)

    pipe = Pipe()
    pullback.save(pullback.ones(3), pipe)
    assert pullback.load(io.BytesIO(pipe.data)).sum() == 3


def test_other_byte_order():
    file, out = io.BytesIO(), io.BytesIO()
    before = {"f": pullback.tensor([1.5, -2.0]), "c": pullback.tensor([1 + 2j]),
              "b": pullback.tensor([True])}  # fmt: skip
    pullback.save(before, file)
    units = {"data/0": "<u4", "data/1": "<u4", "data/2": "u1"}
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data, short = old.read(name), name.partition("/")[2]
            if short in units:
                data = np.frombuffer(data, units[short]).byteswap().tobytes()
            new.writestr(name, b"big" if short == "byteorder" else data)
    out.seek(0)
    same(before, pullback.load(out))


def test_strided_memory_of_numpy():
    odd = np.arange(12.0).reshape(3, 4)
    for array in (odd[:, ::-1], odd[::2], np.asfortranarray(odd), odd.astype(">f8")):
        t = pullback.core.handle.make(array)
        assert there_and_back(t).tolist() == array.tolist()


@pytest.mark.torch
@pytest.mark.parametrize("zipped", [True, False])
def test_pytorch_reads_it(zipped):
    import torch

    file = io.BytesIO()
    before = content(pullback)
    pullback.save(before, file, _use_new_zipfile_serialization=zipped)
    for weights_only in (True, False):
        file.seek(0)
        got = torch.load(file, weights_only=weights_only)
        same(before, got)
        assert got["row"].untyped_storage().data_ptr() == got["a"].untyped_storage().data_ptr()
    file = io.BytesIO()
    torch.save(content(torch), file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    same(before, pullback.load(file))


def record():
    """Write the recorded files anew."""
    import torch

    torch.save(content(torch), DATA / "torch_zip.pt")
    torch.save(of_dtypes(torch, LATER), DATA / "torch_later.pt")
    torch.save(content(torch), DATA / "torch_old.pt", _use_new_zipfile_serialization=False)
    nn = torch.nn
    torch.save(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4)), DATA / "torch_module.pt")


if __name__ == "__main__":
    record()
