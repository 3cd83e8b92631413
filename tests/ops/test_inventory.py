"""Every operator of PyTorch's derivative table has its place in ours.

`tests/data/derivatives.tsv` has a row for each entry of that table (PyTorch 2.13): its schema, and
in which state each input is.  `derived_derivatives.tsv` has those that follow from another entry
(in-place forms, copies of views, functional forms, foreach).  Each is an entry here, with the same
schema and the same differentiable inputs, or the difference is in `EXPLAINED` with its reason; or
it is in the list of operators that are not provided.
"""

import contextlib
import csv
import fnmatch
import functools
from pathlib import Path

import pytest

import pullback as torch
from pullback import derivatives
from pullback.core.schema import Schema
from pullback.table import checks
from pullback.table.derivative import DEFAULT
from pullback.table.derived_overloads import InplaceOverload
from pullback.testing import samples

DATA = Path(__file__).parents[1] / "data"
TESTS_ONLY = "test-only"  # entries that test PyTorch itself; see test_dispatch.py

# The states of a tensor input.  formula: it has one.  zero: its derivative is zero.  ignored: it is
# not differentiated even if it requires grad.  refused: backward raises.  unlisted: the call
# raises if it requires grad.
EXPLAINED = {  # (PyTorch's state, ours) -> {pattern of "operator input": reason}
    ("ignored", "formula"): {
        "special_* x": "the derivative is written here",
        "special_* self": "the derivative is written here",
    },
    ("ignored", "refused"): {
        "special_* n": "an order has no derivative: asking for one is an error instead of silence",
    },
    ("refused", "formula"): {
        "a*h_ self": "in-place forms share the formula of the functional form",
        "*_norm_backward *": "the statistics are inputs like others",
        "_embedding_bag_dense_backward *": "the derivative is written here",
        "igamma* self": "the derivative is written here",
        "special_zeta* self": "the derivative is written here",
        "_standard_gamma_grad self": "the derivative is written here",
    },
    ("refused", "ignored"): {
        "batch_norm_backward reserve": "bytes: nobody can ask",
        "native_dropout_backward mask": "truth values: nobody can ask",
    },
    ("unlisted", "ignored"): {
        "* targets": "integers: nobody can ask",
        "* *lengths": "integers: nobody can ask",
        "* indices": "integers: nobody can ask",
        "* off*s": "integers: nobody can ask",
        "* pivots": "integers: nobody can ask",
        "linalg_pinv.atol_rtol_tensor ?tol": "a threshold: the result does not vary with it",
        "all* self": "the result is a truth value, so PyTorch does not look either",
        "any* self": "the result is a truth value, so PyTorch does not look either",
        "count_nonzero* self": "the result is a count, so PyTorch does not look either",
        "??.* self": "the result is a truth value, so PyTorch does not look either",
        "??.* other": "the result is a truth value, so PyTorch does not look either",
        "multinomial self": "the result is an index, so PyTorch does not look either",
        "nonzero self": "the result is an index, so PyTorch does not look either",
    },
    ("unlisted", "formula"): {
        "_standard_gamma_grad output": "the derivative is written here",
    },
    ("zero", "ignored"): {
        "??_.* self": "the write itself leaves a history with derivative zero",
        "??_.* other": "the write itself leaves a history with derivative zero",
        "native_layer_norm_backward bias": "an undefined gradient in both",
    },
}
OUTPUTS = {  # operator -> why other outputs of it are differentiable than in PyTorch
    "_native_batch_norm_legit.no_stats": "the statistics are outputs like others",
    "_thnn_fused_gru_cell": "the work space is an output like others",
    "_thnn_fused_lstm_cell": "the work space is an output like others",
    "_weight_norm_interface": "the norms are outputs like others",
    "native_layer_norm": "the statistics are outputs like others",
}


@functools.cache
def rows(name: str) -> list[dict]:
    with open(DATA / name, encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def provided(name: str) -> list[dict]:
    return [r for r in rows(name) if r["family"] != TESTS_ONLY]


def overload(name: str):
    base, _, variant = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), variant or "default")


def present(name: str):
    """(row, our entry) of each; the first test complains about those that are missing."""
    for row in provided(name):
        with contextlib.suppress(AttributeError):
            found = overload(row["op"])
            yield row, found.functional if isinstance(found, InplaceOverload) else found


def listed(text: str) -> list[str]:
    """`{a,b} c` -> a, b, c; `-` is nothing."""
    return [] if text == "-" else text.replace("{", "").replace("}", "").replace(",", " ").split()


def difference(known: Schema, text: str) -> str:
    """What differs between our schema and PyTorch's, but for the spelling of integers."""
    wanted = Schema(text)
    pairs = [*zip(known.args, wanted.args), *zip(known.returns, wanted.returns)]
    counts = (len(known.args), len(known.returns)) == (len(wanted.args), len(wanted.returns))
    same = counts and known.full_name == wanted.full_name and all(a.same_as(b) for a, b in pairs)
    return "" if same else f"{known}\n  in PyTorch: {wanted}"


@pytest.mark.parametrize("name", ["derivatives.tsv", "derived_derivatives.tsv"])
def test_every_operator_has_an_entry_with_its_schema(name):
    wrong = []
    for row in provided(name):
        try:
            found = overload(row["op"])
        except AttributeError:
            wrong.append(f"missing: {row['schema']}")
            continue
        wrong += filter(None, [difference(found.schema, row["schema"])])
    assert not wrong, "\n".join(wrong)


# differentiable inputs


def classic_states(row: dict) -> dict[str, str]:
    """Tensor input -> its state in PyTorch's table."""
    states = {a.name: "unlisted" for a in Schema(row["schema"]).args if a.is_tensor}
    for column, state in (
        ("backward_inputs", "formula"),
        ("nondiff_inputs", "ignored"),
        ("not_implemented_inputs", "refused"),
        ("zero_gradient_inputs", "zero"),
    ):
        states |= dict.fromkeys(listed(row[column]), state)
    return states


def our_states(entry) -> dict[str, str]:
    """The same of an entry of ours that is no composite."""
    rule = entry.rule
    refuses = rule is None and not entry.never_differentiable
    silent = "refused" if refuses else "unlisted"
    states = {a.name: silent for a in entry.schema.args if a.is_tensor}
    states |= dict.fromkeys(entry.op.nondiff, "ignored")
    for formula in [] if rule is None else rule.formulas.get(DEFAULT, []):
        state = "refused" if checks.is_refusal(formula.tree) else "formula"
        states |= dict.fromkeys(formula.names, state)
    if rule is not None:
        states |= dict.fromkeys(rule.parts[DEFAULT].constant, "zero")
    return states


def explained(name: str, argument: str, states: tuple[str, str]) -> bool:
    patterns = EXPLAINED.get(states, {})
    return any(fnmatch.fnmatchcase(f"{name} {argument}", p) for p in patterns)


def test_the_same_inputs_are_differentiable():
    wrong = []
    for row, entry in present("derivatives.tsv"):
        if entry.is_composite:
            continue  # see below
        ours = our_states(entry)
        for argument, state in classic_states(row).items():
            pair = (state, ours[argument])
            if pair[0] != pair[1] and not explained(row["op"], argument, pair):
                wrong.append(f"{row['op']} {argument}: {pair[0]} in PyTorch, here {pair[1]}")
    assert not wrong, "\n".join(wrong)


def differentiated(entry) -> set[str]:
    """Inputs of a composite that get a gradient in some sample."""
    found = set()
    for case in samples.cases(entry.op):
        flat = [list(v) if isinstance(v, list) else v for v in samples.flat(entry.op, case)]
        leaves = []
        for i, value in enumerate(flat):
            for j, t in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(t, torch.Tensor) and t.dtype.is_inexact:
                    leaf = t.detach().clone().requires_grad_()
                    leaves.append((entry.schema.names[i], leaf))
                    used = leaf.clone() if entry.schema.args[i].is_write else leaf
                    if j is None:
                        flat[i] = used
                    else:
                        value[j] = used
        out = entry.call(*flat)
        outs = [o for o in (out if isinstance(out, (list, tuple)) else [out])
                if isinstance(o, torch.Tensor) and o.requires_grad]
        if outs:
            total = sum(o.abs().sum() for o in outs)
            grads = torch.autograd.grad(total, [t for _, t in leaves], allow_unused=True)
            found |= {n for (n, _), g in zip(leaves, grads) if g is not None}
    return found


def test_composites_are_differentiable_where_pytorch_has_formulas():
    wrong = []
    for row, entry in present("derivatives.tsv"):
        wanted = {n for n, state in classic_states(row).items() if state == "formula"}
        if not entry.is_composite or entry.op.samples is None or not wanted:
            continue
        missing = wanted - differentiated(entry)
        if missing:
            wrong.append(f"{row['op']}: no gradient for {', '.join(sorted(missing))}")
    assert not wrong, "\n".join(wrong)


def test_derived_operators_are_differentiable_in_the_same_inputs():
    wrong = []
    for row, entry in present("derived_derivatives.tsv"):
        wanted = set(listed(row["differentiable_args"]))
        if not wanted <= set(entry.schema.names):  # foreach: named as for a single tensor
            names = overload(row["derived_from"]).schema.names
            wanted = {entry.schema.names[names.index(n)] for n in wanted}
        if entry.is_composite:
            missing = wanted - differentiated(entry) if entry.op.samples else set()
        else:
            states = our_states(entry)
            missing = {n for n in wanted if states[n] not in ("formula", "zero", "refused")}
        missing -= {n for n in missing if explained(row["op"], n, ("zero", "ignored"))}
        if missing:
            wrong.append(f"{row['op']}: {', '.join(sorted(missing))}")
    assert not wrong, "\n".join(wrong)


def classic_outputs(row: dict) -> list[bool] | None:
    """Which outputs are differentiable in PyTorch, None if no input is."""
    kind, _, flags = row["output_differentiability"].partition(":")
    returns = Schema(row["schema"]).returns
    if kind == "explicit" and set(flags.split(",")) <= {"True", "False"}:
        return [f == "True" for f in flags.split(",")]
    if kind == "implicit":
        return [r.is_tensor and (i == 0 or flags == "all") for i, r in enumerate(returns)]
    return None


def test_the_same_outputs_are_differentiable():
    wrong = []
    for row, entry in present("derivatives.tsv"):
        wanted = classic_outputs(row)
        if entry.is_composite or entry.rule is None or wanted is None:
            continue
        ours = list(entry.rule.diff_outputs)
        if ours != wanted and row["op"] not in OUTPUTS:
            wrong.append(f"{row['op']}: {wanted} in PyTorch, here {ours}")
    assert not wrong, "\n".join(wrong)


def test_forward_mode_is_everywhere_where_reverse_mode_is():
    """PyTorch has no forward formula for 134 of its entries that have a reverse one."""
    more = 0
    for row, entry in present("derivatives.tsv"):
        if "formula" not in classic_states(row).values():
            continue
        assert derivatives.forward_mode(entry)[0], row["op"]
        more += row["forward_kind"] == "none"
    assert more > 60


def test_no_explanation_is_stale():
    used = set()
    for row, entry in present("derivatives.tsv"):
        ours = {} if entry.is_composite else our_states(entry)
        for argument, state in classic_states(row).items():
            for pattern in EXPLAINED.get((state, ours.get(argument)), {}):
                if fnmatch.fnmatchcase(f"{row['op']} {argument}", pattern):
                    used.add((state, ours[argument], pattern))
    known = {(*pair, pattern) for pair, patterns in EXPLAINED.items() for pattern in patterns}
    stale = sorted(known - used)
    assert not stale


def test_what_nobody_knows_is_no_operator():
    for name in ("no_such_operator", "mul.no_such_overload"):
        with pytest.raises(AttributeError):
            overload(name)


def test_formulas_for_other_backends_are_those_of_nested_tensors():
    """PyTorch gives some dense operators a second formula; here they have that of dense tensors."""
    for row in provided("derivatives.tsv"):
        keys = {part.partition("(")[0].strip() for part in row["dispatch_keys"].split("|")} - {"-"}
        assert keys <= {DEFAULT, "AutogradNestedTensor"}, row["op"]
