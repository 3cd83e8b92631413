"""Partitioners on small joint graphs, and on random ones whose values must not change."""

import enum

import numpy as np
import pytest

from pullback.cut.partition import (
    PartitionError,
    default_partition,
    min_cut_rematerialization_partition,
)
from pullback.fx import GraphModule
from tests.helpers.fake_joint import Joint, cos_chain, run_both, saved_names
from tests.helpers.fake_ops import Example

PARTITIONERS = [default_partition, min_cut_rematerialization_partition]


# The graphs, to the letter ------------------------------------------------------------------------


COS = "    cos = torch.ops.aten.cos.default(primals_1)\n"
BACKWARD = (  # of a cosine of a cosine, from the first one
    "    sin = torch.ops.aten.sin.default(cos);  cos = None\n"
    "    neg = torch.ops.aten.neg.default(sin);  sin = None\n"
    "    mul = torch.ops.aten.mul.Tensor(tangents_1, neg);  tangents_1 = neg = None\n"
    "    sin_1 = torch.ops.aten.sin.default(primals_1);  primals_1 = None\n"
    "    neg_1 = torch.ops.aten.neg.default(sin_1);  sin_1 = None\n"
    "    mul_1 = torch.ops.aten.mul.Tensor(mul, neg_1);  mul = neg_1 = None\n"
    "    return (mul_1,)\n    "
)


@pytest.mark.parametrize(("partitioner", "forward", "backward"), [
    pytest.param(
        default_partition,
        f"primals_1):\n{COS}    cos_1 = torch.ops.aten.cos.default(cos)\n"
        "    return (cos_1, primals_1, cos)\n    ",
        f"primals_1, cos, tangents_1):\n{BACKWARD}", id="default_saves_what_the_backward_reads"),
    pytest.param(
        min_cut_rematerialization_partition,
        f"primals_1):\n{COS}    cos_1 = torch.ops.aten.cos.default(cos);  cos = None\n"
        "    return (cos_1, primals_1)\n    ",
        f"primals_1, tangents_1):\n{COS}{BACKWARD}", id="min_cut_computes_a_chain_again"),
])
def test_graphs(partitioner, forward, backward):
    found = partitioner(cos_chain(2), 1)
    assert found.forward.code == "\n\n\ndef forward(self, " + forward
    assert found.backward.code == "\n\n\ndef forward(self, " + backward


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_both_ways_of_calling(partitioner):
    module = cos_chain()
    first = partitioner(module, 1)
    second = partitioner(module, [None, None], num_fwd_outputs=1, static_lifetime_input_indices=[])
    assert first.forward.code == second.forward.code
    assert first.backward.code == second[1].code
    with pytest.raises(TypeError, match="num_fwd_outputs"):
        partitioner(module, [None])


def test_the_joint_graph_is_left_alone():
    module = cos_chain()
    before = module.code
    for partitioner in PARTITIONERS:
        partitioner(module, 1)
    assert module.graph.python_code("self").src == before
    module.graph.lint()


# What is saved ------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [2, 3, 4])
def test_a_sum_is_saved_rather_than_its_terms(inputs):
    joint = Joint(primals=inputs)
    total = joint.primals[0]
    for term in joint.primals[1:]:
        total = joint("add.Tensor", total, term)
    inner = joint("cos", total)
    result = joint("cos", inner)
    grad = joint.times_derivative(joint.tangents[0], inner)
    grad = joint.times_derivative(grad, total)
    module = joint.finish([result], [grad] * inputs)
    partition = min_cut_rematerialization_partition(module, 1)
    assert saved_names(partition, 1) == [total.name]
    assert partition.backward.code.endswith(f"return ({', '.join(['mul_1'] * inputs)})\n    ")


def test_inputs_are_preferred_to_intermediates_of_their_size():
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    y = joint("exp", x)
    module = joint.finish([joint("sin", y)], [joint("mul.Tensor", t, joint("cos", y))])
    assert saved_names(min_cut_rematerialization_partition(module, 1), 1) == ["primals_1"]


def test_forward_results_are_preferred_to_intermediates():
    joint = Joint(primals=2)
    x, w = joint.primals
    y = joint("tanh", joint("exp", joint("add.Tensor", x, w)))
    module = joint.finish([y], [joint("mul.Tensor", joint.tangents[0], y)])
    partition = min_cut_rematerialization_partition(module, 1)
    assert saved_names(partition, 1) == ["tanh"]
    assert partition.report.rows[-1].reason == "forward result: already in memory"
    assert partition.forward.code.endswith("return (tanh, tanh)\n    ")


def matmul_layer():
    joint = Joint(primals=2)
    x, w = joint.primals
    product = joint("mm", x, w)
    hidden = joint("tanh", product)
    result = joint("mm", hidden, w)
    grad = joint("mm", joint.tangents[0], joint("t", w, strides=(1, 4)))
    grad = joint("mul.Tensor", grad, joint("sub.Tensor", 1, joint("mul.Tensor", hidden, hidden)))
    grads = [
        joint("mm", grad, joint("t", w, strides=(1, 4))),
        joint("mm", joint("t", hidden, strides=(1, 4)), joint.tangents[0]),
    ]
    return joint.finish([result], grads)


def test_heavy_operators_are_not_computed_again():
    partition = min_cut_rematerialization_partition(matmul_layer(), 1)
    backward = [node.name for node in partition.backward.graph.nodes]
    assert "mm" not in backward
    assert "mm_1" not in backward
    # The backward multiplies by `tanh`, so it would have to be written to memory a second time.
    assert saved_names(partition, 1) == ["primals_2", "tanh"]


def test_a_heavy_result_is_saved_with_its_reason():
    joint = Joint(primals=2)
    product = joint("mm", *joint.primals)
    grad = joint("mul.Tensor", joint.tangents[0], joint("cos", product))
    module = joint.finish([joint("sin", product)], [grad, None])
    partition = min_cut_rematerialization_partition(module, 1)
    assert saved_names(partition, 1) == ["mm"]
    row = partition.report.saved[0]
    assert (row.reason, row.bytes) == ("heavy operator: not recomputed", 64)


def test_random_draws_are_saved_and_stay_in_the_forward():
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    mask = joint("bernoulli", x)
    unused = joint("rand", [2, 2], shape=(2, 2))
    module = joint.finish([joint("mul.Tensor", x, mask)], [joint("mul.Tensor", t, mask)])
    for partitioner in PARTITIONERS:
        partition = partitioner(module, 1)
        assert saved_names(partition, 1) == ["bernoulli"]
        assert unused.name in [node.name for node in partition.forward.graph.nodes]
    assert partition.report.saved[0].reason.startswith("random")


def test_a_draw_of_the_backward_stays_there():
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    noise = joint("rand", [4, 4])
    noise.meta["partitioner_tag"] = "is_backward"
    module = joint.finish([joint("sin", x)], [joint("mul.Tensor", t, noise)])
    for partitioner in PARTITIONERS:
        partition = partitioner(module, 1)
        assert saved_names(partition, 1) == []
        assert "rand" in [node.name for node in partition.backward.graph.nodes]


def test_small_reductions_are_saved_or_what_their_loop_makes_of_them():
    def build(shape, both):
        joint = Joint()
        x, t = joint.primals[0], joint.tangents[0]
        total = joint("sum.dim_IntList", x, [0], True, shape=shape)
        scale = joint("cos", total, shape=shape)
        grad = joint("mul.Tensor", joint("mul.Tensor", t, scale), x)
        if both:
            grad = joint("mul.Tensor", grad, total)
        return joint.finish([joint("mul.Tensor", x, scale)], [grad])

    partition = min_cut_rematerialization_partition(build((1, 4), False), 1)
    assert saved_names(partition, 1) == ["primals_1", "cos"]
    partition = min_cut_rematerialization_partition(build((1, 4), True), 1)
    assert saved_names(partition, 1) == ["primals_1", "sum_1"]
    reasons = {row.name: row.reason for row in partition.report.rows}
    assert reasons["sum_1"] == "reduction of 64 bytes: the result is small"
    assert reasons["cos"].startswith("pointwise")


def test_views_cost_nothing():
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    view = joint("t", x, strides=(1, 4))
    again = joint("t", view)
    module = joint.finish([joint("sin", again)], [joint("mul.Tensor", t, joint("cos", again))])
    partition = min_cut_rematerialization_partition(module, 1)
    assert saved_names(partition, 1) == ["primals_1"]
    actions = {row.name: (row.action, row.reason) for row in partition.report.rows}
    assert actions["t"] == ("recomputed", "view: costs nothing")


def test_an_expanded_value_is_as_large_as_its_memory():
    joint = Joint(primals=2)
    x, y = joint.primals
    total = joint("add.Tensor", x, y)
    wide = joint("expand", total, [100, 4, 4], shape=(100, 4, 4), strides=(0, 4, 1))
    grad = joint("mul.Tensor", joint.tangents[0], wide, shape=(100, 4, 4))
    module = joint.finish([joint("sin", wide, shape=(100, 4, 4))], [grad, None])
    partition = min_cut_rematerialization_partition(module, 1)
    assert saved_names(partition, 1) == ["add"]
    assert partition.report.saved_bytes == 64


def test_a_slice_is_saved_rather_than_the_whole():
    joint = Joint(primals=2, shape=(100, 100))
    product = joint("mm", *joint.primals)
    row = joint("slice", product, 0, 0, 1, shape=(1, 100))
    grad = joint("mul.Tensor", joint.tangents[0], joint("cos", row, shape=(1, 100)))
    module = joint.finish([joint("sin", row, shape=(1, 100))], [grad, None])
    assert saved_names(min_cut_rematerialization_partition(module, 1), 1) == ["slice_1"]


def joint_of_two_results():
    """A joint graph so far: an input, a tangent, an operator with two results."""
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    return joint, x, t, joint("var_mean", x, value=(Example(()), Example(())))


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_parts_are_saved_instead_of_tuples(partitioner):
    joint, x, t, pair = joint_of_two_results()
    first = joint.getitem(pair, 0)
    result = joint("mul.Tensor", x, first)
    second = joint.getitem(pair, 1)  # only the backward wants it
    grad = joint("mul.Tensor", joint("mul.Tensor", t, first), second)
    module = joint.finish([result], [grad])
    partition = partitioner(module, 1)
    assert saved_names(partition, 1) == ["getitem", "getitem_1"]
    code = partition.forward.code
    assert "getitem = var_mean[0]\n    getitem_1 = var_mean[1];  var_mean = None" in code or (
        partitioner is default_partition
    )
    joint_values, parts = run_both(module, partition, [np.eye(4), np.ones((4, 4))], 1, 1)
    assert all(map(np.allclose, joint_values, parts))


def test_getitems_of_views_are_computed_again():
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    halves = [Example((2, 4)), Example((2, 4))]
    split = joint("split.Tensor", x, 2, value=halves)
    a, b = joint.getitem(split, 0), joint.getitem(split, 1)
    result = joint("mul.Tensor", a, b, shape=(2, 4))
    late = joint("mul.Tensor", t, b, shape=(2, 4))
    module = joint.finish([result], [late, joint("mul.Tensor", t, a, shape=(2, 4))])
    partition = min_cut_rematerialization_partition(module, 1)
    assert saved_names(partition, 1) == ["primals_1"]
    assert "getitem_1 = split[1]\n    getitem = split[0];  split = None" in partition.backward.code


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_a_gradient_without_tangents(partitioner):
    """A gradient may be a value of the forward, an input, a tangent, a constant or nothing."""
    joint, x, t, pair = joint_of_two_results()
    part = joint.getitem(pair, 0)
    module = joint.finish([joint.getitem(pair, 1)], [part, x, t, None, 1.5])
    partition = partitioner(module, 1)
    assert set(saved_names(partition, 1)) == {"primals_1", "getitem"}
    joint_values, parts = run_both(module, partition, [np.eye(4), np.ones((4, 4))], 1, 1)
    for one, other in zip(joint_values, parts, strict=True):
        assert one is other is None or np.allclose(one, other)


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_sizes_are_saved_rather_than_tensors(partitioner):
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    product = joint("mm", x, x)
    size = joint("sym_size.int", product, 0, value=4)
    grad = joint("mul.Tensor", joint("mul.Tensor", t, size), joint("cos", x))
    module = joint.finish([joint("sin", product)], [grad])
    partition = partitioner(module, 1)
    assert saved_names(partition, 1) == ["primals_1", "sym_size_int"]
    joint_values, parts = run_both(module, partition, [np.eye(4), np.ones((4, 4))], 1, 1)
    assert all(map(np.allclose, joint_values, parts))


def test_numbers_come_after_tensors():
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    size = joint("sym_size.int", joint("mm", x, joint("exp", x)), 0, value=4)
    wide = joint("mm", x, x)
    scaled = joint("mul.Tensor", wide, size)
    grad = joint("mul.Tensor", joint("mul.Tensor", t, size), joint("cos", wide))
    module = joint.finish([joint("sin", scaled)], [grad])
    for partitioner in PARTITIONERS:
        assert saved_names(partitioner(module, 1), 1) == ["mm_1", "sym_size_int"]


def test_attributes_belong_to_both_graphs():
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    joint.attributes["_tensor_constant0"] = np.full((4, 4), 2.0)
    with joint.graph.inserting_before(x):
        weight = joint.graph.get_attr("_tensor_constant0")
    weight.meta["val"] = Example((4, 4))
    scaled = joint("exp", weight)
    module = joint.finish(
        [joint("mul.Tensor", x, scaled)], [joint("mul.Tensor", t, joint("sin", weight))]
    )
    for partitioner in PARTITIONERS:
        partition = partitioner(module, 1)
        assert saved_names(partition, 1) == []
        assert partition.backward._tensor_constant0 is module._tensor_constant0
        joint_values, parts = run_both(module, partition, [np.eye(4), np.ones((4, 4))], 1, 1)
        assert all(map(np.allclose, joint_values, parts))


def test_default_believes_the_tracer_about_the_forward():
    """A node traced in the forward is saved as such, even if only the backward needs it."""
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    result = joint("tanh", x)
    detached = joint("detach", result)
    module = joint.finish([result], [joint("mul.Tensor", t, detached)])
    assert saved_names(default_partition(module, 1), 1) == ["tanh"]
    detached.meta["partitioner_tag"] = "is_forward"
    assert saved_names(default_partition(module, 1), 1) == ["detach"]


def test_created_values_are_made_again():
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    ones = joint("exp", joint("zeros", [4, 4]))
    module = joint.finish([joint("add.Tensor", x, ones)], [joint("mul.Tensor", t, ones)])
    assert saved_names(min_cut_rematerialization_partition(module, 1), 1) == []
    assert saved_names(default_partition(module, 1), 1) == ["exp"]


@pytest.mark.parametrize(("length", "saved"), [(8, "primals_1"), (40, "mul_39")])
def test_long_chains_are_saved_at_their_end(length, saved):
    """Computing again costs a little for each operator, so it does not go on for ever."""
    joint = Joint()
    value = joint.primals[0]
    for k in range(length):
        value = joint("mul.Tensor", value, k)
    grad = joint("mul.Tensor", joint.tangents[0], joint("cos", value))
    partition = min_cut_rematerialization_partition(joint.finish([joint("sin", value)], [grad]), 1)
    assert saved_names(partition, 1) == [saved]
    assert len(partition.report.recomputed) == (length if saved == "primals_1" else 0)


def test_a_chain_that_is_needed_everywhere_is_computed_again():
    """One sweep gives all its values back, so saving one in between would not pay."""
    partition = min_cut_rematerialization_partition(cos_chain(200), 1)
    assert saved_names(partition, 1) == ["primals_1"]


def test_only_the_backward_needs_it():
    """A heavy value that the forward has no use for is computed once, in the backward."""
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    product = joint("mm", x, x)
    module = joint.finish([joint("sin", x)], [joint("mul.Tensor", t, product)])
    partition = min_cut_rematerialization_partition(module, 1)
    assert saved_names(partition, 1) == ["primals_1"]
    assert "mm" in [node.name for node in partition.backward.graph.nodes]
    assert [row.name for row in partition.report.rows] == ["primals_1"]


def test_values_are_computed_again_where_they_are_used():
    joint = Joint(primals=2)
    x, y = joint.primals
    t = joint.tangents[0]
    a, b = joint("exp", x), joint("exp", y)
    result = joint("mul.Tensor", a, b)
    first = joint("mul.Tensor", t, a)
    second = joint("mul.Tensor", first, b)
    partition = min_cut_rematerialization_partition(joint.finish([result], [second, None]), 1)
    names = [node.name for node in partition.backward.graph.nodes if node.op == "call_function"]
    assert names == ["exp", "mul_1", "exp_1", "mul_2"]


class Policy(enum.Enum):
    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


@pytest.mark.parametrize("wish", [Policy.MUST_SAVE, Policy.PREFER_SAVE])
def test_checkpoint_policies_to_save(wish):
    module = cos_chain(3)
    module.graph.find_nodes(op="call_function")[1].meta["recompute"] = wish
    partition = min_cut_rematerialization_partition(module, 1)
    assert saved_names(partition, 1) == ["primals_1", "cos_1"]
    assert partition.report.saved[1].reason == f"checkpoint policy {wish.name}"


@pytest.mark.parametrize("wish", [Policy.MUST_RECOMPUTE, Policy.PREFER_RECOMPUTE])
def test_checkpoint_policies_to_recompute(wish):
    module = matmul_layer()
    for node in module.graph.find_nodes(op="call_function")[:2]:
        node.meta["recompute"] = wish
    partition = min_cut_rematerialization_partition(module, 1)
    assert saved_names(partition, 1) == ["primals_1", "primals_2"]
    assert partition.report.recomputed[0].reason == f"checkpoint policy {wish.name}"


# Effects and refusals -----------------------------------------------------------------------------


def mutated_input(clone):
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    source = joint("clone", x) if clone else x
    result = joint("sin", source)
    grad = joint("mul.Tensor", t, source)
    joint("copy_", x, result)
    return joint.finish([result], [grad])


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_an_overwritten_input_is_never_saved(partitioner):
    module = mutated_input(clone=True)
    partition = partitioner(module, 1)
    assert saved_names(partition, 1)[0] != "primals_1"
    assert "copy_" in partition.forward.code
    assert "copy_" not in partition.backward.code
    joint_values, parts = run_both(module, partition, [np.eye(4), np.ones((4, 4))], 1, 1)
    assert all(map(np.allclose, joint_values, parts))


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_an_overwritten_input_that_would_be_needed_is_an_error(partitioner):
    with pytest.raises(PartitionError, match=r"copy_ overwrites it(.|\n)*clone"):
        partitioner(mutated_input(clone=False), 1)


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_an_input_that_is_overwritten_first_of_all_can_be_saved(partitioner):
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    joint("add_.Tensor", x, 1.0)
    module = joint.finish([joint("sin", x)], [joint("mul.Tensor", t, x)])
    partition = partitioner(module, 1)
    assert saved_names(partition, 1) == ["primals_1"]
    joint_values, parts = run_both(module, partition, [np.eye(4), np.ones((4, 4))], 1, 1)
    assert all(map(np.allclose, joint_values, parts))


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_a_view_of_an_overwritten_input_is_not_saved_either(partitioner):
    joint = Joint()
    x, t = joint.primals[0], joint.tangents[0]
    result = joint("sin", x)
    grad = joint("mul.Tensor", t, joint("t", x, strides=(1, 4)))
    joint("copy_", joint("view", x, [4, 4]), result)
    with pytest.raises(PartitionError, match="copy_ overwrites it"):
        partitioner(joint.finish([result], [grad]), 1)


def test_the_error_lists_the_reasons_along_the_path():
    joint = Joint(primals=2)
    product = joint("mm", *joint.primals)
    product.meta["val"] = (Example((4, 4)),)
    whole = joint("cat", product)
    module = joint.finish([whole], [joint("mul.Tensor", joint.tangents[0], product), None])
    with pytest.raises(PartitionError) as caught:
        min_cut_rematerialization_partition(module, 1)
    text = str(caught.value)
    assert "mm cannot be recomputed: heavy operator" in text
    assert "mm cannot be saved: it is several values" in text
    assert "the backward reads mm in mul" in text


def test_effects_of_the_backward_stay_in_the_backward():
    joint = Joint(primals=2)
    x, buffer = joint.primals
    t = joint.tangents[0]
    grad = joint("mul.Tensor", t, joint("cos", x))
    joint("copy_", buffer, grad)
    module = joint.finish([joint("sin", x)], [grad, None])
    for partitioner in PARTITIONERS:
        partition = partitioner(module, 1)
        assert saved_names(partition, 1) == ["primals_1", "primals_2"]
        assert "copy_" in partition.backward.code
        assert "copy_" not in partition.forward.code


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_forward_results_must_not_depend_on_tangents(partitioner):
    joint = Joint()
    bad = joint("mul.Tensor", *joint.primals, *joint.tangents)
    with pytest.raises(PartitionError, match="depend on the tangents, through"):
        partitioner(joint.finish([bad], [None]), 1)


def test_the_output_must_be_flat():
    joint = Joint()
    joint.graph.output(joint.primals[0])
    with pytest.raises(PartitionError, match="flat tuple"):
        default_partition(GraphModule({}, joint.graph), 1)


def test_descriptions_of_results_are_kept():
    module = cos_chain()
    module.graph.output_node().meta["desc"] = ["PlainAOTOutput(idx=0)", "GradAOTOutput()"]
    forward, backward = min_cut_rematerialization_partition(module, 1)
    assert forward.graph.output_node().meta["desc"] == ["PlainAOTOutput(idx=0)", None]
    assert backward.graph.output_node().meta["desc"] == ["GradAOTOutput()"]


def test_the_report_prints_as_a_table():
    lines = str(min_cut_rematerialization_partition(cos_chain(), 1).report).splitlines()
    assert lines[0].split() == ["value", "action", "bytes", "flops", "why"]
    assert lines[1].split(maxsplit=4) == [
        "primals_1", "saved", "64", "0", "input: already in memory"
    ]
    assert lines[2].startswith("cos        recomputed")
