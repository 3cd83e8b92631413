"""Exported programs made to take memory: refused, or read, with little of it."""

import io
import json
import pathlib
import zipfile

import pytest

import pullback as torch
from pullback import errors
from tests.helpers.peak import peak

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "pt2"
ZEROS = bytes(80_000_000)  # more than small files may unpack to


def small():
    return torch.export.export(torch.nn.Linear(3, 2), (torch.ones(5, 3),))


def own() -> bytes:
    out = io.BytesIO()
    torch.export.save(small(), out)
    return out.getvalue()


def replaced(data: bytes, ending: str, new) -> bytes:
    """The archive with other content in one of its records, compressed."""
    out, done = io.BytesIO(), 0
    with zipfile.ZipFile(io.BytesIO(data)) as old, \
            zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith(ending):
                content, done = new(content), done + 1
            file.writestr(name, content)
    assert done
    return out.getvalue()


def refused(data: bytes) -> None:
    def work():
        with pytest.raises((errors.FileFormatError, errors.NotInThisBuild)):
            torch.export.load(io.BytesIO(data))

    for _ in range(2):  # the first imports
        used = peak(work)
    assert used < 64 * len(data) + (1 << 22), used


@pytest.mark.parametrize("ending", ["program.txt", ".safetensors"])
def test_bombs_in_own_files(ending):
    refused(replaced(own(), ending, lambda content: content + ZEROS))


@pytest.mark.parametrize("ending", ["model.json", "model_weights_config.json", "weight_0"])
def test_bombs_in_files_of_pytorch(ending):
    refused(replaced((DATA / "buffers.pt2").read_bytes(), ending,
                     lambda content: content + b" " * len(ZEROS)))


def test_deep_json():
    for ending in ("model.json", "model_weights_config.json"):
        refused(replaced((DATA / "buffers.pt2").read_bytes(), ending,
                         lambda content: b"[" * 200_000))


def test_a_graph_that_asks_for_much_memory():
    """Reading a program makes nothing that it describes."""
    class Large(torch.nn.Module):
        def forward(self, x):
            return x + torch.zeros(7).sum()

    out = io.BytesIO()
    torch.export.save(torch.export.export(Large(), (torch.ones(2),)), out)

    def large(content):
        text = content.decode()
        assert "[7]" in text
        return text.replace("[7]", f"[{1 << 40}]").encode()

    data = replaced(out.getvalue(), "program.txt", large)
    assert peak(lambda: torch.export.load(io.BytesIO(data))) < 1 << 24


def test_sizes_that_do_not_fit():
    with zipfile.ZipFile(io.BytesIO(own())) as file:
        name = next(n for n in file.namelist() if n.endswith("program.txt"))
        text = file.read(name).decode()
    for size in ("9" * 30, "9" * 5000, str(1 << 63)):
        changed = text.replace("[5, 3]", f"[{size}, 3]").encode()
        assert changed != text.encode()
        refused(replaced(own(), "program.txt", lambda content, changed=changed: changed))


def test_a_pt2_graph_that_asks_for_much_memory():
    def large(content):
        found = json.loads(content)
        for meta in found["graph_module"]["graph"]["tensor_values"].values():
            meta["sizes"] = [{"as_int": 1 << 40} for _ in meta["sizes"]]
        return json.dumps(found).encode()

    data = replaced((DATA / "buffers.pt2").read_bytes(), "model.json", large)

    def work():
        try:
            torch.export.load(io.BytesIO(data))
        except errors.PullbackError:
            pass

    assert peak(work) < 1 << 25


def test_deep_structures():
    deep = '[1, {"type": "builtins.list", "context": "null", "children_spec": [' * 20_000
    with pytest.raises((errors.PullbackError, ValueError)):
        torch.utils._pytree.treespec_loads(deep)
