"""Safetensors files: against bytes made by hand, and files that are damaged or made to do harm."""

import collections
import json
import os
import random
import struct

import numpy as np
import pytest

import pullback
from pullback import errors, safetensors


def built(header, data=b"", length=None) -> bytes:
    """A file of a header (JSON text or what becomes it) and data."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(head) if length is None else length) + head + data


def one(dtype="F32", shape=(2,), place=(0, 8)) -> dict:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(place)}


TWO = built(
    {"b": one("I16", [2], [8, 12]), "a": one(), "__metadata__": {"format": "pt"}},
    np.array([1.5, -2.0], "<f4").tobytes() + np.array([3, -4], "<i2").tobytes(),
)


def test_reading(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(TWO)
    for got in (safetensors.load(TWO), safetensors.load_file(path)):
        assert list(got) == ["a", "b"]
        assert got["a"].tolist() == [1.5, -2.0] and got["a"].dtype is pullback.float32
        assert got["b"].tolist() == [3, -4] and got["b"].dtype is pullback.int16
        got["a"][0] = 7  # memory of its own
    assert path.read_bytes() == TWO
    assert safetensors.load_file(path, device="meta")["a"].device.type == "meta"


def test_writing():
    short = pullback.tensor([3, -4], dtype=pullback.int16)
    tensors = {"b": short, "a": pullback.tensor([1.5, -2.0])}
    data = safetensors.save(tensors, {"format": "pt"})
    length = struct.unpack("<Q", data[:8])[0]
    assert length % 8 == 0
    assert json.loads(data[8 : 8 + length]) == {
        "__metadata__": {"format": "pt"}, "a": one(), "b": one("I16", [2], [8, 12])}  # fmt: skip
    assert data[8 + length :] == TWO[-12:]


@pytest.mark.parametrize("code", safetensors.DTYPES)
def test_dtypes(code):
    name = safetensors.DTYPES[code]
    try:
        dtype = pullback.array.dtype.by_name(name)
    except KeyError:
        with pytest.raises(errors.FileFormatError, match="not here"):
            safetensors.load(built({"a": one(code, [0], [0, 0])}))
        return
    numbers = [1, 1, 0, 1] if code == "BOOL" else [1, 2, 4, 1]
    raw = np.array(numbers, np.uint8).astype(dtype.np).tobytes()
    got = safetensors.load(built({"a": one(code, [4], [0, len(raw)])}, raw))["a"]
    assert got.dtype is dtype and got.float().tolist() == numbers
    again = safetensors.save({"a": got})
    assert again.endswith(raw) and f'"{code}"'.encode() in again


def test_shapes():
    tensors = {"number": pullback.tensor(2.5), "empty": pullback.zeros(0, 3),
               "ü": pullback.ones(1, 2)}  # fmt: skip
    got = safetensors.load(safetensors.save(tensors))
    assert {k: tuple(v.shape) for k, v in got.items()} == {
        "number": (), "empty": (0, 3), "ü": (1, 2)}  # fmt: skip
    assert got["number"].item() == 2.5
    assert safetensors.load(safetensors.save({})) == {}
    whole = pullback.arange(6.0)
    halves = {"first": whole[:3], "second": whole[3:]}  # parts of one memory that do not overlap
    assert safetensors.load(safetensors.save(halves))["second"].tolist() == [3.0, 4.0, 5.0]


def test_open(tmp_path):
    path = tmp_path / "x.safetensors"
    big = pullback.arange(12.0).reshape(3, 4)
    safetensors.save_file({"z": big, "a": pullback.ones(1, dtype=pullback.int64)}, path, {"k": "v"})
    with safetensors.safe_open(path, framework="pt", device="cpu") as file:
        assert file.keys() == ["a", "z"] and file.offset_keys() == ["a", "z"]
        assert file.metadata() == {"k": "v"}
        z = file.get_tensor("z")
        part = file.get_slice("z")
        assert part.get_shape() == [3, 4] and part.get_dtype() == "F32"
        assert part[1:, ::2].tolist() == [[4.0, 6.0], [8.0, 10.0]]
        with pytest.raises(errors.FileFormatError, match="does not contain tensor q"):
            file.get_tensor("q")
    with pytest.raises(errors.FileFormatError, match="closed"):
        file.get_tensor("z")
    z[0, 0] = 5  # a private copy
    assert safetensors.load_file(path)["z"][0, 0] == 0
    safetensors.save_file({"z": z}, path)  # over the file that z is mapped from
    assert z.tolist() == safetensors.load_file(path)["z"].tolist()
    with safetensors.safe_open(path, "np") as file:
        assert isinstance(file.get_tensor("z"), np.ndarray)
    with pytest.raises(ValueError, match="framework"):
        safetensors.safe_open(path, "tf")


def test_save_over_a_mapped_checkpoint(tmp_path):
    path = tmp_path / "x.pt"
    pullback.save(pullback.arange(100_000), path)
    os.chmod(path, 0o640)
    mapped = pullback.load(path, mmap=True)
    pullback.save(mapped[:10].clone(), path)
    assert mapped.sum() == 4_999_950_000 and pullback.load(path).shape == (10,)
    assert os.stat(path).st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["x.pt"]


class Tied(pullback.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = pullback.nn.Linear(2, 2), pullback.nn.Linear(2, 2)
        self.b.weight = self.a.weight


def test_models(tmp_path):
    path = tmp_path / "m.safetensors"
    net, other = Tied(), Tied()
    with pytest.raises(RuntimeError, match=r"share memory.*a\.weight"):
        safetensors.save_file(net.state_dict(), path)
    safetensors.save_model(net, path)
    assert sorted(safetensors.load_file(path)) == ["a.bias", "a.weight", "b.bias"]
    assert safetensors.load_model(other, path) == (set(), [])
    assert other.b.weight.tolist() == net.a.weight.tolist() and other.b.weight is other.a.weight
    with pytest.raises(RuntimeError, match="Missing"):
        safetensors.load_model(pullback.nn.ModuleDict({"a": Tied(), "c": Tied()}), path)


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda: safetensors.save({"a": pullback.ones(2, 3).t()}), ValueError),
        (lambda: safetensors.save({"a": 3}), ValueError),
        (lambda: safetensors.save([1]), ValueError),
        (lambda: safetensors.save({3: pullback.ones(1)}), ValueError),
        (lambda: safetensors.save({"a": pullback.ones(1, dtype=pullback.complex128)}), ValueError),
        (lambda: safetensors.save({"a": pullback.ones(1)}, {"a": 1}), TypeError),
    ],
)
def test_what_cannot_be_saved(call, kind, tmp_path):
    with pytest.raises(kind):
        call()


DATA = bytes(16)
HOSTILE = {
    "nothing": b"",
    "seven bytes": b"1234567",
    "no header": struct.pack("<Q", 0),
    "a header longer than the file": built({}, length=1 << 20),
    "a header of absurd length": built({}, length=(1 << 64) - 1),
    "a header of 200 MB that is not there": built({}, bytes(100), length=200_000_000),
    "no JSON": built(b"{nonsense}"),
    "a list": built(b"[]"),
    "a blank before": built(b"  {}"),
    "not text": built(b"{\xff\xff}"),
    "deep JSON": built(b'{"a":' + b"[" * 100_000),
    "a name twice": built(b'{"a":%s,"a":%s}' % ((json.dumps(one()).encode(),) * 2), bytes(8)),
    "a key twice": built(b'{"a":{"dtype":"F32","dtype":"F32","shape":[0],"data_offsets":[0,0]}}'),
    "no facts": built({"a": 3}),
    "no dtype": built({"a": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "more facts": built({"a": {**one(), "strides": [1]}}, bytes(8)),
    "unknown dtype": built({"a": one("F33")}, bytes(8)),
    "dtype of no kind": built({"a": one(["F32"])}, bytes(8)),
    "negative size": built({"a": one("F32", [-2])}, bytes(8)),
    "fractional size": built({"a": one("F32", [2.0])}, bytes(8)),
    "size of no kind": built({"a": one("F32", [True, 2])}, bytes(8)),
    "shape of no kind": built({"a": {**one(), "shape": 2}}, bytes(8)),
    "sizes that overflow": built({"a": one("F32", [1 << 33, 1 << 33, 0], [0, 0])}),
    "sizes that overflow to 0": built({"a": one("U8", [1 << 32, 1 << 32], [0, 0])}),
    "too many dims": built({"a": one("U8", [1] * 1000, [0, 1])}, bytes(1)),
    "backwards": built({"a": one("F32", [2], [8, 0])}, bytes(8)),
    "one place": built({"a": one("F32", [2], [8])}, bytes(8)),
    "too short": built({"a": one("F32", [2], [0, 4])}, bytes(4)),
    "too long": built({"a": one("F32", [2], [0, 12])}, bytes(12)),
    "negative place": built({"a": one("F32", [2], [-8, 0])}, bytes(8)),
    "beyond the end": built({"a": one()}, bytes(4)),
    "rest at the end": built({"a": one()}, bytes(12)),
    "a gap": built({"a": one(), "b": one("F32", [1], [12, 16])}, DATA),
    "a gap at the start": built({"a": one("F32", [2], [8, 16])}, DATA),
    "overlapping": built({"a": one(), "b": one("F32", [2], [4, 12])}, bytes(12)),
    "the same place": built({"a": one(), "b": one()}, bytes(8)),
    "metadata of numbers": built({"__metadata__": {"a": 3}}),
    "metadata of no kind": built({"__metadata__": []}),
    "no number": built(b'{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,0]}}'),
    "a number of many digits": built(b'{"a":{"dtype":"F32","shape":[%s],"data_offsets":[0,0]}}'
                                     % (b"9" * 10_000)),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile(what, tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(HOSTILE[what])
    for call in (lambda: safetensors.load(HOSTILE[what]), lambda: safetensors.load_file(path),
                 lambda: safetensors.safe_open(path)):  # fmt: skip
        with pytest.raises(safetensors.SafetensorError, match=r"test_safetensors\.py"):
            call()


def test_mutants():
    draw, results = random.Random(3), collections.Counter()
    for _ in range(400):
        data = bytearray(TWO)
        for _ in range(draw.choice([1, 1, 2, 8])):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if draw.random() < 0.2:
            data = data[: draw.randrange(len(data))]
        try:
            safetensors.load(bytes(data))
            results["loaded"] += 1
        except errors.FileFormatError:
            results["refused"] += 1
    assert results["refused"] > 300
