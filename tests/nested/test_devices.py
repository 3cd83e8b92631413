"""Nested tensors on a second device: results and gradients are those of the CPU, and are there.

The arrays of the stand-in (`second_device.py`) refuse NumPy's functions and arrays of the CPU, so a
new tensor that is made without a device, or a kernel that calls NumPy, is found.
"""

import functools

import pytest

import pullback as torch
from tests.helpers import second_device as second
from tests.helpers.nested.cases import CASES, FLAGS, JAGGED_ONLY, name

NAME = second.install()


@pytest.mark.parametrize("layout", ["packed", "holes", "strided"])
@pytest.mark.parametrize("case", CASES + FLAGS, ids=name)
def test_cases(case, layout):
    if layout == "strided" and case.name in JAGGED_ONLY:
        return
    parts, extra = case.operands()
    build = torch.nested.as_nested_tensor if layout == "strided" else functools.partial(
        case.build, holes=layout == "holes")
    leaves = [t.requires_grad_() for t in (build(parts).detach(), *extra)]
    second.same_there(case.nested, *leaves, place=NAME)


A, B = torch.arange(6.0).reshape(2, 3).sin(), torch.arange(12.0).reshape(4, 3).cos()


def jagged():
    return torch.nested.nested_tensor([A, B, A[:1]], layout=torch.jagged)


PROGRAMS = {
    "numbers": lambda x: x[[2, 0]],
    "part": lambda x: x[1],
    "flip of parts": lambda x: x.flip(0),
    "slice of parts": lambda x: x[::2],
    "slice of each": lambda x: x[:, 1:],
    "narrow": lambda x: x.narrow(1, 0, 1),
    "float64": lambda x: x.double(),
    "wider": lambda x: x.to_padded_tensor(1.5, (3, 6, 4)),
    "sort": lambda x: x.sort(1),
    "packed": lambda x: x.contiguous(),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_functions(program):
    second.same_there(PROGRAMS[program], jagged().requires_grad_(), place=NAME)


def test_made_there():
    parts = [A.to(NAME), B.to(NAME)]
    for x in (torch.nested.nested_tensor(parts, layout=torch.jagged),
              torch.nested.nested_tensor([A, B], layout=torch.jagged, device=NAME),
              torch.nested.as_nested_tensor(torch.stack([A, A]).to(NAME), layout=torch.jagged),
              torch.nested.narrow(torch.stack([B, B]).to(NAME), 1, 1, 2, layout=torch.jagged)):
        assert x.device.type == x.offsets().device.type == NAME
        assert x.sum(1).device.type == NAME


def test_sizes_are_equal_across_devices():
    x, y = jagged(), jagged()
    there = x.to(NAME)
    assert there.offsets().device.type == NAME and there.cpu().offsets().device.type == "cpu"
    assert there.size(1) == x.size(1) == there.cpu().size(1) and there.shape == x.shape
    assert there.size(1) == y.to(NAME).size(1) == y.size(1)
    other = torch.nested.nested_tensor([B, A, A[:1]], layout=torch.jagged)
    assert there.size(1) != other.to(NAME).size(1) and there.size(1) != other.size(1)
    assert torch.equal((there + y.to(NAME)).cpu().values(), x.values() * 2)


def test_gaps_are_moved():
    x = torch.nested.nested_tensor_from_jagged(
        torch.arange(6.0), torch.tensor([0, 3, 6]), torch.tensor([1, 2])).to(NAME)
    assert x.lengths().device.type == NAME and x.sum(1).tolist() == [0, 7]


def test_meta_tensors_have_lengths():
    x = jagged().to("meta")
    assert x.device.type == "meta" and x.size(1) == x.sin().size(1)
