"""Files made to do harm, and files that are damaged: an error of ours, nothing run, no memory."""

import collections
import io
import os
import pathlib
import pickle
import random
import struct
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

import pullback
from pullback import errors

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
FILES = [(DATA / name).read_bytes() for name in ("torch_zip.pt", "torch_old.pt")]
WATCHED = ("exec", "compile", "import", "os.system", "subprocess.Popen", "os.exec",
           "os.posix_spawn", "open", "socket.connect", "shutil.rmtree", "os.remove")  # fmt: skip
_watching, _seen = False, []


@sys.addaudithook
def _watch(event, args):
    if _watching and event in WATCHED and not _own(event, args):
        _seen.append((event, args))


def _own(event, args) -> bool:
    """Does this package load a file of its own, or write a function for one of its operators?"""
    what = args[1] if event == "compile" else getattr(args[0], "co_filename", args[0])
    return "pullback" in str(what).replace(os.sep, ".").split("tests.")[0]


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported():
    """What good files import is imported before bad ones are watched."""
    for data in (*FILES, archive(), archive(compressed=True)):
        pullback.load(io.BytesIO(data))
    for bad in (b"", b"PK", archive()[:-30]):
        with pytest.raises(Exception):
            pullback.load(io.BytesIO(bad))


def refusal(data, *, kinds=(errors.UnsafePickle, errors.FileFormatError, errors.BadValue,
                            errors.DeviceError, errors.NotInThisBuild, EOFError)):
    """The error that loading gives, None if it loads; nothing may be run on the way."""
    global _watching
    file = io.BytesIO(data)
    _seen.clear()
    tracemalloc.start()
    try:
        _watching = True
        pullback.load(file)
        error = None
    except kinds as caught:
        error = caught
    finally:
        _watching = False
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert _seen == []
    assert peak < 64 * len(data) + (1 << 21)  # an empty list of Python's has 56 bytes
    return error


def archive(body=None, records=(), compressed=False, drop=(), root="archive"):
    """A checkpoint of one tensor of 4 floats, with other parts."""
    content = {
        "data.pkl": tensor() if body is None else body,
        "byteorder": b"little",
        "data/0": np.arange(4, dtype=np.float32).tobytes(),
        "version": b"3\n",
        **dict(records),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compressed else 0) as file:
        for name, data in content.items():
            if name not in drop:
                file.writestr(f"{root}/{name}", data)
    return out.getvalue()


# pickles by hand: P is data, the rest are instructions


def p(value) -> bytes:
    """The instructions that push plain data."""
    return pickle.dumps(value, 2)[2:-1]


def called(name: bytes, *args: bytes) -> bytes:
    return b"c" + name.replace(b" ", b"\n") + b"\n(" + b"".join(args) + b"tR"


def storage(count=4, key="0", kind=b"torch FloatStorage", location="cpu") -> bytes:
    kind = b"c" + kind.replace(b" ", b"\n") + b"\n"
    return b"(" + p("storage") + kind + p(key) + p(location) + p(count) + b"tQ"


def tensor(offset=0, size=(4,), stride=(1,), *more, memory=None, whole=True) -> bytes:
    args = [p(offset), p(size), p(stride), p(False), called(b"collections OrderedDict")]
    body = called(b"torch._utils _rebuild_tensor_v2", memory or storage(), *args, *more)
    return b"\x80\2" + body + b"." if whole else body


def test_the_kit_makes_files_that_load():
    assert pullback.load(io.BytesIO(archive())).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert pullback.load(io.BytesIO(archive(compressed=True))).sum() == 6
    assert refusal(archive()) is None


class Evil:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


CODE = [
    b"cos\nsystem\n(" + p("echo harm") + b"tR.",
    b"cposix\nsystem\n(" + p("echo harm") + b"tR.",
    b"cbuiltins\neval\n(" + p("1 + 1") + b"tR.",
    b"cbuiltins\nexec\n(" + p("x = 1") + b"tR.",
    b"c__builtin__\neval\n(" + p("1 + 1") + b"tR.",
    b"cbuiltins\ngetattr\n(cos\n" + b"path\n" + p("join") + b"tR.",
    b"cbuiltins\n__import__\n(" + p("os") + b"tR.",
    b"csubprocess\nPopen\n(" + p(["true"]) + b"tR.",
    b"ctorch.serialization\nload\n(" + p("x.pt") + b"tR.",
    b"ctorch.hub\nload\n(" + p("x") + b"tR.",
    b"ctorch\nnn.Module.__init__.__globals__\n.",
    b"ccollections\nOrderedDict.__init__.__globals__\n.",
    b"ctorch._utils\n_rebuild_tensor_v2.__globals__\n.",
    b"\x8c\x02os\x8c\x06system\x93.",
    b"(" + p("echo harm") + b"ios\nsystem\n.",  # INST
    b"(cos\nsystem\n" + p("echo harm") + b"o.",  # OBJ
    b"\x82\x01.",  # the extension registry
    b"ccollections\nOrderedDict\n)R}" + p("__class__") + p(3) + b"sbcos\nsystem\n.",
    b"ctorch\nTensor\n)R.",  # a class that may be named, not called
    b"ctorch\nTensor\n)\x81.",
    b"ctorch\nfloat32\n)R.",
    p("text") + b")R.",
    b"ctorch._utils\n_rebuild_tensor_v2\n}" + p("__code__") + p(1) + b"sb.",
    b"ccollections\nOrderedDict\n}" + p("x") + p(1) + b"sb.",
    b"N}" + p("x") + p(1) + b"sb.",
    called(b"torch._tensor _rebuild_from_type_v2", b"ccollections\nOrderedDict\n",
           b"ctorch\nTensor\n", p(()), p({})) + b".",
    tensor(whole=False) + b"}" + p("__class__") + p(3) + b"sb.",
]  # fmt: skip


@pytest.mark.parametrize("body", CODE)
def test_code_is_refused(body):
    assert isinstance(refusal(archive(b"\x80\2" + body)), pickle.UnpicklingError | RuntimeError)
    error = refusal(b"\x80\2" + body)  # as a plain pickle
    assert isinstance(error, (errors.UnsafePickle, errors.FileFormatError))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("function, args", [(eval, ["1"]), (print, ["harm"]), (open, ["/x", "w"])])
def test_reduce_is_refused(function, args, protocol):
    data = pickle.dumps({"weights": Evil(function, *args)}, protocol)
    error = refusal(archive(data))
    assert isinstance(error, errors.UnsafePickle)
    if protocol in (2, 3, 4, 5):
        assert function.__name__ in str(error)
        assert "nothing of it was run" in str(error)


HUGE = 1 << 62
SIZES = {
    "negative offset": tensor(-1),
    "offset beyond the end": tensor(1),
    "offset overflows": tensor(HUGE),
    "offset is huge": tensor(1 << 200),
    "offset is no integer": tensor(1.0),
    "size beyond the end": tensor(0, (5,)),
    "stride beyond the end": tensor(0, (2,), (4,)),
    "negative size": tensor(0, (-1,), (1,)),
    "negative stride": tensor(3, (4,), (-1,)),
    "sizes overflow": tensor(0, (HUGE, 4), (0, 1)),
    "sizes overflow to nothing": tensor(0, (0, HUGE, HUGE), (0, 0, 0)),
    "strides overflow": tensor(0, (2, 2), (HUGE, HUGE)),
    "too few strides": tensor(0, (4,), ()),
    "too many dims": tensor(0, (1,) * 100, (1,) * 100),
    "size is no tuple": tensor(0, 4),
    "size of floats": tensor(0, (4.0,)),
    "size of bools": tensor(0, (True,)),
    "no storage": tensor(memory=p(3)),
    "storage too long for its record": tensor(memory=storage(1 << 40)),
    "storage overflows": tensor(memory=storage(1 << 63)),
    "storage of negative length": tensor(memory=storage(-4)),
    "storage too short for its record": tensor(0, (1,), (1,), memory=storage(1)),
    "no record": tensor(memory=storage(key="7")),
    "record elsewhere": tensor(memory=storage(key="../version")),
    "key is no text": tensor(memory=storage(key=3)),
    "location is no text": tensor(memory=storage(location=3)),
    "no such device": tensor(memory=storage(location="nowhere:0")),
    "a device's number": tensor(memory=storage(location="cpu:x")),
    "not a storage class": tensor(memory=storage(kind=b"torch Size")),
    "a reference to something else": b"\x80\2" + p(("module", 1)) + b"Q.",
    "an empty reference": b"\x80\2)Q.",
    "metadata is no dictionary": tensor(0, (4,), (1,), p(3)),
    "two dtypes for a storage": b"\x80\2" + tensor(whole=False)
    + tensor(memory=storage(2, kind=b"torch DoubleStorage"), whole=False) + b"\x86.",
    "shape of a meta tensor": b"\x80\2" + called(
        b"torch._utils _rebuild_meta_tensor_no_storage", b"ctorch\nfloat32\n", p((HUGE, HUGE)),
        p((1, 1)), p(False)) + b".",
    "parameter of nothing": b"\x80\2" + called(b"torch._utils _rebuild_parameter", p(3), p(True),
                                               p(None)) + b".",
    "size of a size": b"\x80\2" + called(b"torch Size", p((-1,))) + b".",
    "a sparse tensor": b"\x80\2" + called(b"torch._utils _rebuild_sparse_tensor", p(1)) + b".",
}  # fmt: skip


@pytest.mark.parametrize("what", SIZES)
def test_impossible_tensors(what):
    error = refusal(archive(SIZES[what]))
    assert error is not None
    assert "test_hostile.py:" in str(error)


def test_negatives_take_no_memory():
    wide = archive(tensor(0, (1 << 40,), (0,), p({"neg": True})))
    assert refusal(wide) is None
    loaded = pullback.load(io.BytesIO(wide))
    assert loaded.is_neg() and loaded.shape == (1 << 40,)
    once = tensor(0, (4,), (1,), p({"neg": True}))
    assert pullback.load(io.BytesIO(archive(once))).tolist() == [0.0, -1.0, -2.0, -3.0]


def test_an_expanded_tensor_takes_no_memory():
    wide = archive(tensor(0, (1 << 40,), (0,)))
    assert refusal(wide) is None
    assert pullback.load(io.BytesIO(wide)).shape == (1 << 40,)


def laughs(depth: int) -> bytes:
    """A tuple of tuples that is small in memory and has 2 ** depth elements."""
    return b"N\x85" + b"".join(b"q%ch%c\x86" % (i, i) for i in range(depth))


STACKS = {
    "a key that takes forever to hash": b"}" + laughs(60) + b"Ns.",
    "an element that takes forever to hash": b"\x8f(" + laughs(60) + b"\x90.",
    "a set that takes forever to hash": called(b"builtins set", b"](" + laughs(60) + b"e") + b".",
    "a deep key": b"}N" + b"\x85" * 100_000 + b"Ns.",
    "a dictionary as key": b"}}Ns.",
    "a list as element": b"\x8f(]\x90.",
    "a huge integer": b"\x8b" + struct.pack("<I", 1 << 20) + bytes(1 << 20) + b".",
    "an integer that is not there": b"\x8b" + struct.pack("<I", 1 << 31) + b".",
    "a text that is not there": b"X" + struct.pack("<I", 0xFFFFFFFF) + b".",
    "a long text that is not there": b"\x8d" + struct.pack("<Q", HUGE) + b".",
    "bytes that are not there": b"\x96" + struct.pack("<Q", HUGE) + b".",
    "a name that does not end": b"ctorch\n" + b"x" * 5000,
    "a memo far away": b"r\xff\xff\xff\xff.",
    "a memo that is not there": b"h\5.",
    "an empty stack": b".",
    "an empty stack of tuples": b"N\x87.",
    "no mark": b"Nu.",
    "an append to nothing": b"NNa.",
    "items for a list": b"]NNs.",
    "half an item": b"}(Nu.",
    "not text": b"X\2\0\0\0\xff\xff.",
    "text instructions": b"I1\n.",
    "many bytes": called(b"builtins bytearray", p(1 << 40)) + b".",
    "an odd codec": called(b"_codecs encode", p("x"), p("zlib")) + b".",
    "arguments that are none": b"ccollections\nOrderedDict\nNR.",
    "no end": b"N",
    "nothing": b"",
    "many copies of one text": p("x" * 100_000) + b"q\5" + b"".join(
        b"c_codecs\nencode\n(h\5" + p("latin1") + b"tR" for _ in range(500)) + b".",
}  # fmt: skip


@pytest.mark.parametrize("what", STACKS)
def test_pickles_that_ask_for_too_much(what):
    error = refusal(archive(b"\x80\2" + STACKS[what]))
    assert isinstance(error, pickle.UnpicklingError), what


@pytest.mark.parametrize("name", ["uint16", "float8_e5m2"])
def test_a_dtype_that_is_not_here_is_named(name):
    body = called(b"torch._utils _rebuild_tensor_v3",
                  storage(16, kind=b"torch.storage UntypedStorage"), p(0), p((8,)), p((1,)),
                  p(False), p(None), f"ctorch\n{name}\n".encode())  # fmt: skip
    error = refusal(archive(b"\x80\2" + body + b"."))
    assert hasattr(pullback, name) or f"torch.{name}" in str(error)


def test_deep_containers_are_only_data():
    deep = archive(b"\x80\2" + b"]" * 100_000 + b"a" * 99_999 + b".")
    assert refusal(deep) is None
    assert refusal(archive(b"\x80\2" + laughs(60) + b".")) is None


def directory(data: bytes, name: bytes) -> int:
    """Where the entry of a record begins in the directory of an archive."""
    return data.index(b"archive/" + name, data.index(b"PK\1\2")) - 46


def patched(data: bytes, name: bytes, field: int, form: str, value: int) -> bytes:
    """The archive with another number in the directory entry of a record."""
    out, at = bytearray(data), directory(data, name) + field
    struct.pack_into(form, out, at, value)
    return bytes(out)


def twice() -> bytes:
    out = io.BytesIO(archive())
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(out, "a") as file:
        file.writestr("archive/data/0", b"other")
    return out.getvalue()


def with_name(name: str) -> bytes:
    out = io.BytesIO(archive())
    with zipfile.ZipFile(out, "a") as file:
        file.writestr(name, b"x")
    return out.getvalue()


def bomb() -> bytes:
    """A hundred megabytes of zeros in a hundred kilobytes."""
    body = tensor(0, (4,), (1,), memory=storage(25_000_000))
    return archive(body, {"data/0": bytes(100_000_000)}, compressed=True)


def overlapping() -> bytes:
    """Two records, one memory."""
    data = archive(None, {"data/1": b"z" * 16})
    at = struct.unpack_from("<I", data, directory(data, b"data/0") + 42)[0]
    return patched(data, b"data/1", 42, "<I", at)


ARCHIVES = {
    "truncated": lambda: archive()[:-30],
    "cut in half": lambda: archive()[:150],
    "only a beginning": lambda: b"PK\3\4",
    "no records": lambda: b"PK\3\4" + archive()[:0] + b"PK\5\6" + bytes(18),
    "no pickle": lambda: archive(drop=["data.pkl"]),
    "no data": lambda: archive(drop=["data/0"]),
    "two records of a name": twice,
    "an absolute path": lambda: with_name("/etc/passwd"),
    "a path upwards": lambda: with_name("archive/../../x"),
    "another folder": lambda: with_name("other/x"),
    "wrong byte order": lambda: archive(None, {"byteorder": b"middle"}),
    "a long byte order": lambda: archive(None, {"byteorder": b"l" * 100_000}),
    "a short record": lambda: archive(None, {"data/0": b"abc"}),
    "a long record": lambda: archive(None, {"data/0": bytes(100)}),
    "a bomb": bomb,
    "overlapping records": overlapping,
    "size of a record": lambda: patched(archive(), b"data/0", 24, "<I", 1 << 30),
    "both sizes of a record": lambda: patched(
        patched(archive(), b"data/0", 24, "<I", 1 << 30), b"data/0", 20, "<I", 1 << 30),
    "place of a record": lambda: patched(archive(), b"data/0", 42, "<I", 1 << 30),
    "another place": lambda: patched(archive(), b"data/0", 42, "<I", 3),
    "encrypted": lambda: patched(archive(), b"data/0", 8, "<H", 1),
    "odd compression": lambda: patched(archive(), b"data/0", 10, "<H", 14),
    "broken compression": lambda: patched(archive(), b"data/0", 10, "<H", 8),
    "more than it says": lambda: patched(archive(compressed=True), b"data/0", 24, "<I", 8),
    "a script": lambda: archive(None, {"constants.pkl": b"", "code/x.py": b""}),
}  # fmt: skip


@pytest.mark.parametrize("what", ARCHIVES)
def test_archives(what):
    error = refusal(ARCHIVES[what]())
    assert error is not None
    assert isinstance(error, (RuntimeError, ValueError)), type(error)


def old(*values, tail=b"") -> bytes:
    return b"".join(v if isinstance(v, bytes) else pickle.dumps(v, 2) for v in values) + tail


MAGIC, SYSTEM = 0x1950A86A20F9469CFC6C, {"little_endian": True, "protocol_version": 1001}
KEYS, DATA4 = ["0"], struct.pack("<q4f", 4, 0, 1, 2, 3)
OLD = {
    "no checkpoint": old({"a": 1}),
    "another version": old(MAGIC, 1002),
    "no system": old(MAGIC, 1001, 3),
    "only a beginning": old(MAGIC, 1001, SYSTEM),
    "no keys": old(MAGIC, 1001, SYSTEM, tensor()),
    "other keys": old(MAGIC, 1001, SYSTEM, tensor(), ["1"]),
    "keys that are none": old(MAGIC, 1001, SYSTEM, tensor(), [["0"]]),
    "no data": old(MAGIC, 1001, SYSTEM, tensor(), KEYS),
    "half the data": old(MAGIC, 1001, SYSTEM, tensor(), KEYS, tail=DATA4[:12]),
    "another count": old(MAGIC, 1001, SYSTEM, tensor(), KEYS, tail=struct.pack("<q", 1 << 40)),
    "larger than the file": old(MAGIC, 1001, SYSTEM, tensor(memory=storage(1 << 40)), KEYS),
    "magic of a tensor": tensor() + old(1001, SYSTEM),
    "text": b"hello, this is no checkpoint",
    "a web page": b"<!DOCTYPE html><html></html>",
    "zeros": bytes(100),
}


@pytest.mark.parametrize("what", OLD)
def test_files_before_the_zip_format(what):
    assert isinstance(refusal(OLD[what]), (errors.UnsafePickle, errors.FileFormatError))


def test_the_old_kit_makes_files_that_load():
    whole = old(MAGIC, 1001, SYSTEM, tensor(), KEYS, tail=DATA4)
    assert pullback.load(io.BytesIO(whole)).tolist() == [0.0, 1.0, 2.0, 3.0]


def mutants(data: bytes, count: int, seed: int):
    """Copies with bytes changed, removed or cut off."""
    draw = random.Random(seed)
    start = max(data.find(b"data.pkl"), 0)
    for i in range(count):
        out = bytearray(data)
        if i % 6 == 0:
            out = out[: draw.randrange(len(out))]
        elif i % 6 == 1:
            at = draw.randrange(len(out))
            del out[at : at + draw.randrange(1, 50)]
        else:  # anywhere, in the pickle, in the directory
            low, high = ((0, len(out)), (start, start + 2000), (start, start + 2000),
                         (len(out) - 2500, len(out)))[i % 4]  # fmt: skip
            for _ in range(draw.choice([1, 1, 2, 4, 16])):
                out[draw.randrange(max(low, 0), min(high, len(out)))] = draw.randrange(256)
        yield bytes(out)


@pytest.mark.parametrize("data", FILES, ids=["zip", "old"])
def test_mutants(data):
    results = collections.Counter(
        type(refusal(mutant)).__name__ for mutant in mutants(data, 150, seed=len(data)))
    assert results["UnsafePickle"] + results["FileFormatError"] > 75
