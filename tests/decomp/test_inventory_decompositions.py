"""Every decomposition that PyTorch 2.13 registers has its place here.

`tests/data/decompositions.tsv` has a row for each (operator overload, table).  Its operator is
composite, has a `decomp`, is core, or stays whole with its reason, `kept`; an overload
that writes follows from the pure one.  What does not apply is in `ELSEWHERE`, with the reason.
"""

import csv
import fnmatch
from pathlib import Path

import pytest

import pullback as torch
from pullback import decomp
from pullback.core.op import families, registry
from pullback.core.overload import OpOverload, overload_of
from pullback.decomp.core import APART, CORE, KEPT, REASONS
from pullback.table.derived_overloads import InplaceOverload, OutOverload

ROWS = list(
    csv.DictReader((Path(__file__).parents[1] / "data/decompositions.tsv").read_text().splitlines(),
                   delimiter="\t")
)
FAMILIES = {  # of operators that do not apply to dense tensors on this machine
    "vendor": "it calls the library of one vendor",
    "quantization": "it unpacks the weights of a quantized layer of one vendor's library",
    "test-only": "it tests PyTorch itself",
}
ELSEWHERE = {
    "_add_batch_dim.*": "a level of vmap is an interpreter here, not a wrapped tensor",
    "_remove_batch_dim.*": "a level of vmap is an interpreter here, not a wrapped tensor",
    "_backward.*": "the engine is called by Tensor.backward",
    "_debug_has_internal_overlap.*": "a question to PyTorch's allocator",
    "_has_compatible_shallow_copy_type.*": "a question to PyTorch's dispatcher",
    "get_gradients.*": "a table of PyTorch's distributed engine",
    "sparse.qlinear_unpack.*": "it unpacks weights of one vendor's library",
    "_sobol_engine_draw.*": "quasi-random sequences are not part of this package",
    "special_xlogy.*": "another name of xlogy; its overloads have the names of xlogy's",
    "__i*shift__.Scalar": "the overload is bitwise_*_shift_.Tensor_Scalar",
    "out_dtype": "a higher order operator: products with out_dtype are overloads (addmm.dtype)",
    "resize_as.*": "the pure form of resize_as_: its result would have elements of no value",
}


def _explained(row) -> str | None:
    if row["family"] in FAMILIES and row["op"].partition(".")[0] not in families:
        return FAMILIES[row["family"]]
    return next((why for p, why in ELSEWHERE.items() if fnmatch.fnmatch(row["op"], p)), None)


def _place(o) -> bool:
    """Is an operator taken apart, or meant to stay?"""
    if isinstance(o, (InplaceOverload, OutOverload)):
        pure = o.functional
        return all(map(_place, [pure] if isinstance(pure, OpOverload) else pure))
    return o.decomposition is not None or decomp.is_core(o.name)


@pytest.mark.parametrize("table", sorted({row["table"] for row in ROWS}))
def test_every_row_has_its_place(table):
    missing, open_ = [], []
    for row in ROWS:
        if row["table"] != table or _explained(row):
            continue
        name, _, overload = row["op"].rpartition(".")
        try:
            o = getattr(getattr(torch.ops.aten, name), overload)
        except AttributeError:
            missing.append(row["op"])
            continue
        if not _place(o):
            open_.append(row["op"])
    assert not missing
    assert not open_


def test_explanations_are_needed():
    named = [p for p in ELSEWHERE if not any(fnmatch.fnmatch(r["op"], p) for r in ROWS)]
    assert not named
    for row in ROWS:
        why = next((w for p, w in ELSEWHERE.items() if fnmatch.fnmatch(row["op"], p)), None)
        if why is None:
            continue
        name, _, overload = row["op"].rpartition(".")
        packet = getattr(torch.ops.aten, name, None)
        assert not name or not hasattr(packet, overload), row["op"]


def test_every_entry_is_taken_apart_or_meant_to_stay():
    entries = {
        name: overload_of(registry[name])
        for name in registry
        if registry[name].__module__.startswith("pullback.ops.")  # not those of other tests
    }
    nowhere = [
        n for n, o in entries.items() if o.decomposition is None and n not in CORE and n not in KEPT
    ]
    assert not nowhere, "give them a decomp, or a reason: kept"
    assert not [n for n in KEPT if n not in entries]
    both = {n for n in KEPT if entries[n].decomposition is not None}
    assert both == {"adaptive_max_pool2d", "adaptive_max_pool3d"}  # where windows differ in size
    assert not KEPT.keys() & CORE
    assert APART <= CORE
    assert set(KEPT.values()) == set(REASONS)


def test_rows_of_the_core_table_are_in_ours():
    """What PyTorch's `core_aten_decompositions()` takes apart is taken apart by ours."""
    ours = {o.name for o in decomp.core_aten_decompositions()}
    draws = {n for n, why in KEPT.items() if why == "draw"}
    left = set()
    for row in ROWS:
        if row["core_call"] != "yes" or _explained(row):
            continue
        name, _, overload = row["op"].rpartition(".")
        o = getattr(getattr(torch.ops.aten, name), overload)
        if isinstance(o, OpOverload) and o.op.base_name == name and o.name not in ours:
            left.add(o.name)
    # these are core, draw random numbers, or are one library call that PyTorch wraps
    wrapped = {"linalg_eigvals", "linalg_ldl_factor"}
    assert not {n for n in left if n not in CORE | draws | wrapped}
