"""The analysis of inputs and outputs: what PyTorch 2.13 reports of the same programs.

The records are [graph outputs: plain or wrapper with the number of its first tensor, outputs,
intermediate bases, inputs, graph inputs].
"""

import json
from pathlib import Path

import pytest

import pullback as torch
from pullback.capture.metadata import run_functionalized_fw_and_collect_metadata
from pullback.testing.two_tensor import TwoTensor
from pullback.torch.install import counterpart

RECORDS = json.loads((Path(__file__).parent.parent / "data/collected_metadata.json").read_text())


def two(tracked=True):
    return TwoTensor(torch.randn(3, 3), torch.randn(3, 3)).requires_grad_(tracked)


def plain(tracked=False):
    return torch.randn(3, 3, requires_grad=tracked)


def bases(a, b):
    c, d = a * 2, b * 2
    return c.view(-1), d.view(-1), c.view(9)


PROGRAMS = {
    "out": (lambda a, b: (a * b,), lambda: (two(), plain())),
    "mut_plain": (lambda a, b: (b.mul_(2), a * b)[1:], lambda: (two(), plain())),
    "mut_sub": (lambda a, b: (a.mul_(2), a * b)[1:], lambda: (two().add(0), plain())),
    "mut_both": (lambda a, b: (a.mul_(2), b.mul_(3), a * b, b + 1)[2:],
                 lambda: (two(False), plain())),
    "alias": (lambda a, b: (a.view(-1), b.view(-1), a * b), lambda: (two(), plain())),
    "base": (lambda a, b: ((a * b).view(-1),), lambda: (two(), plain(True))),
    "bases": (bases, lambda: (two(), plain(True))),
    "same": (lambda a, b: (a, b, a * b), lambda: (two(), plain())),
    "plain": (lambda a, b: (a * b, b + 1), lambda: (plain(), plain())),
    "plain_base": (lambda a, b: ((a * b).view(-1), b.view(-1)), lambda: (plain(True), plain())),
    "mut_req": (lambda a, b: (a.mul_(2), a + b)[1:], lambda: (plain(True).add(0), plain())),
    "meta_mut": (lambda a, b: (a.t_(), a + b)[1:], lambda: (plain(), plain())),
}


def numbers(metas):
    return [["P", m.unwrapped_idx] if hasattr(m, "unwrapped_idx") else
            ["S", m.flat_tensor_start_idx, m.arg_count] for m in metas]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_recorded(name, keep):
    f, make = PROGRAMS[name]
    args = make()
    before = [a._version for a in args]
    found = run_functionalized_fw_and_collect_metadata(f, keep_input_mutations=keep)(*args)
    assert [
        numbers(found.subclass_fw_graph_out_meta),
        [[o.output_type.name, o.base_idx, o.requires_grad] for o in found.output_info],
        found.num_intermediate_bases,
        [[i.mutates_data, i.mutates_metadata, i.requires_grad, i.is_leaf, i.mutation_type.name]
         for i in found.input_info],
        numbers(found.subclass_inp_meta),
    ] == RECORDS[f"{name} {keep}"]
    assert [a._version for a in args] == before  # the arguments themselves are left alone


def test_detached_inputs_are_inputs():
    found = run_functionalized_fw_and_collect_metadata(
        lambda a, b: (b.detach(), (b * 2).detach(), b), keep_input_mutations=True)(
            plain(), plain(True))
    assert [(o.output_type.name, o.base_idx, o.requires_grad) for o in found.output_info] == [
        ("alias_of_input", 1, False), ("non_alias", None, False), ("is_input", 1, True)]


def test_nested_wrappers():
    nested = TwoTensor(TwoTensor(plain(), plain()), TwoTensor(plain(), plain()))
    found = run_functionalized_fw_and_collect_metadata(
        lambda a, b: (b + 1, a * 2), keep_input_mutations=True)(nested, plain())
    one, other = found.subclass_fw_graph_out_meta
    assert one.unwrapped_idx == 0 and (other.flat_tensor_start_idx, other.arg_count) == (1, 4)
    assert other.attrs["b"].flat_tensor_start_idx == 3
    assert other.attrs["b"].attrs["b"].unwrapped_idx == 4
    assert other.original_subclass_type is TwoTensor


def test_torchs_path():
    place = counterpart("torch._functorch._aot_autograd.collect_metadata_analysis")
    assert place.run_functionalized_fw_and_collect_metadata is (
        run_functionalized_fw_and_collect_metadata)
