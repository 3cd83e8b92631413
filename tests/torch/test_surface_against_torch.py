"""The names around tensors against an installed PyTorch: autocast, comparison, interop, facts."""

import numpy as np
import pytest

import pullback as pb
from pullback.core.op import registry
from pullback.tensor.legacy_types import NAMES
from tests.helpers.theirs import torch

pytestmark = pytest.mark.torch

A = np.array([1.0, 2.0, 3.0])
# operators of PyTorch's list that are not in the table
ELSEWHERE = {"_native_multi_head_attention"}


def outcome(library, run):
    """What a call gives, or the type of what it raises."""
    try:
        out = run(library)
    except Exception as error:
        builtin = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return builtin.__name__
    if isinstance(out, library.Tensor):
        return "tensor", str(out.dtype), out.tolist()
    return type(out).__name__, np.asarray(out).tolist()


def test_autocast_knows_the_same_operators():
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]
    known = {n[6:].partition(".")[0] for n in names}
    theirs = {n[6:].partition(".")[0] for n in names if has(n, "AutocastCPU")}
    ours = {entry.base_name for entry in registry.values() if entry.autocast}
    assert theirs - ELSEWHERE == ours & known


FUNCTIONS = {
    "sin": lambda t: np.sin(t.tensor(A)),
    "isnan": lambda t: np.isnan(t.tensor(A)),
    "divmod": lambda t: np.divmod(t.tensor(A), 2)[0],
    "array * tensor": lambda t: A * t.tensor(A),
    "tensor * array": lambda t: t.tensor(A) * A,
    "array / tensor": lambda t: A / t.tensor(A),
    "tensor == array": lambda t: t.tensor(A) == A,
    "number * tensor": lambda t: np.float32(2) * t.tensor(A),
    "tensor + list": lambda t: t.tensor(A) + [1, 2, 3],
    "concatenate": lambda t: np.concatenate([t.tensor(A), A]),
    "argmax": lambda t: np.argmax(t.tensor(A)),
    "linspace": lambda t: np.linspace(t.tensor(0.0), t.tensor(1.0), 3),
    "reduce": lambda t: np.add.reduce(t.tensor(A)),
    "index": lambda t: A[t.tensor([0, 2])],
    "of history": lambda t: np.sqrt(t.tensor(A, requires_grad=True)),
    "e4m3": lambda t: t.tensor([1.3, 500.0, -3.0]).to(t.float8_e4m3fn).float(),
    "e5m2": lambda t: t.tensor([1.3, 5e5, -3.0]).to(t.float8_e5m2).float(),
    "uint16": lambda t: t.tensor([1, 2, 3], dtype=t.uint16),
    "uint16 of -1": lambda t: t.tensor([-1.0]).to(t.uint16),
    "uint16 and bool": lambda t: t.promote_types(t.uint16, t.bool),
    "FloatTensor of LongTensor": lambda t: t.FloatTensor(t.ones(2).long()),
    "FloatTensor of number": lambda t: t.FloatTensor(3.5),
    "Tensor of Size": lambda t: list(t.Tensor(t.Size([2, 3])).shape),
    "no such type": lambda t: t.ones(2).type("torch.NoTensor"),
    "channels last": lambda t: list(t.ones(2, 3, 4, 5).to(memory_format=t.channels_last).stride()),
    "channels last of a matrix": lambda t: t.ones(2, 3).contiguous(memory_format=t.channels_last),
    "meta": lambda t: repr(t.zeros(2, device="meta")),
    "meta to cpu": lambda t: t.zeros(2, device="meta").to("cpu"),
    "rank": lambda t: t.distributed.get_rank(),
    "debug mode": lambda t: t.set_deterministic_debug_mode(3),
    "sym_max": lambda t: t.sym_max(2, 3.0),
    "fork_rng": lambda t: t.random.fork_rng(device_type="nope").__enter__(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_answers(name):
    assert outcome(pb, FUNCTIONS[name]) == outcome(torch, FUNCTIONS[name])


@pytest.mark.parametrize("name", NAMES)
def test_old_types(name):
    theirs, ours = getattr(torch, name), getattr(pb, name)
    assert repr(ours) == repr(theirs) and ours([1, 0]).type() == theirs([1, 0]).type()
    assert ours([1, 0]).tolist() == theirs([1, 0]).tolist()


PAIRS = {
    "integers": lambda t: (t.tensor([1, 2, 3]), t.tensor([1, 2, 4])),
    "zero": lambda t: (t.tensor([[1.0, 2], [3, 4]]), t.tensor([[1.0, 2], [0, 4]])),
    "nan": lambda t: (t.tensor([1.0, np.nan]), t.tensor([1.0, np.nan])),
    "scalar": lambda t: (t.tensor(1.0), t.tensor(2.0)),
    "number": lambda t: (1, 1.0),
    "nested": lambda t: ({1: [t.ones(1)]}, {1: [t.zeros(1)]}),
    "keys": lambda t: ({"a": 1}, {"b": 1}),
    "shape": lambda t: (t.ones(1), t.ones(2)),
    "strings": lambda t: ("a", "a"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_same_messages(name):
    texts = []
    for library in (torch, pb):
        with pytest.raises((AssertionError, TypeError)) as caught:
            library.testing.assert_close(*PAIRS[name](library))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["float32", "int64", "bool", "complex64", "bfloat16",
                                  "float8_e5m2"])
def test_memory_is_shared_both_ways(name):
    ours, theirs = pb.ones(2, 3).to(getattr(pb, name)), torch.ones(2, 3).to(getattr(torch, name))
    there, here = torch.from_dlpack(ours), pb.from_dlpack(theirs)
    assert there.data_ptr() == ours.data_ptr() and here.data_ptr() == theirs.data_ptr()
    assert str(there.dtype) == str(here.dtype) == f"torch.{name}"
    assert pb.from_dlpack(torch.utils.dlpack.to_dlpack(theirs)).data_ptr() == theirs.data_ptr()
    assert torch.from_dlpack(pb.to_dlpack(ours)).data_ptr() == ours.data_ptr()
