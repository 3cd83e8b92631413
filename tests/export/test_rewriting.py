"""Programs made of programs: decomposed by a table of choice, updated, exported again; and what
their nodes say then."""

import copy
from dataclasses import replace

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.export import Dim, InputKind, default_decompositions, export, unflatten
from pullback.fx.passes.sources import check_subgraphs_connected, get_source_partitions
from tests.helpers.export_modules import Parts

aten = torch.ops.aten


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.conv = nn.Linear(3, 4), nn.Conv1d(1, 2, 1)

    def forward(self, x):
        y = self.conv(self.linear(x).unsqueeze(1))
        return nn.functional.dropout(y, 0.5, False) + x.sum()


def targets(program):
    return [n.target for n in program.graph.nodes if n.op == "call_function"]


def test_what_a_table_lacks_stays_whole():
    x = torch.ones(2, 3)
    program = export(Net(), (x,))
    whole = {aten.linear.default, aten.conv1d.default}
    for kept in ({aten.linear.default}, whole, whole | {aten.sum.default}):
        table = default_decompositions()
        for op in kept:
            del table[op]
        made = program.run_decompositions(table)
        assert (whole | {aten.sum.default}) & set(targets(made)) == kept
        torch.testing.assert_close(made.module()(x), program.module()(x))
    assert set(targets(program.run_decompositions({}))) >= whole
    core = program.run_decompositions()
    assert not whole & set(targets(core)) and aten.clone.default in targets(core)
    (total,) = core.graph.find_nodes(op="call_function", target=aten.sum.dim_IntList)
    assert total.args[1] == []


def test_tables_are_dictionaries():
    table = default_decompositions()
    other = table.copy()
    assert type(other) is type(table) and aten.linear.default in table
    other.pop(aten.linear.default)
    assert len(other) + 1 == len(table) and other.pop(aten.linear.default, None) is None
    assert type(table.materialize()) is dict and table.materialize() == dict(table)


def test_nodes_keep_what_is_said_of_them():
    program = export(Net(), (torch.ones(2, 3),), preserve_module_call_signature=("linear",))
    core = program.run_decompositions()
    (addmm,) = core.graph.find_nodes(op="call_function", target=aten.addmm.default)
    assert "linear" in addmm.meta["nn_module_stack"]
    assert "test_rewriting.py" in addmm.meta["stack_trace"]
    assert core.calls["linear"].outputs[0].name == addmm.name
    parts = unflatten(core)
    parts.linear = nn.Linear(3, 4)
    assert parts(torch.ones(2, 3)).shape == (2, 2, 4)


def test_placeholders_say_who_has_gradients():
    class Sum(nn.Linear):
        def forward(self, x, y):
            return super().forward(x) + y

    args = torch.ones(2, 3), torch.ones(2, 3, requires_grad=True)
    program = export(Sum(3, 3), args)
    for made in (program, program.run_decompositions()):
        marks = [n.meta["val"].requires_grad for n in made.graph.find_nodes(op="placeholder")]
        assert marks == [True, True, False, True]


def test_updated():
    program = export(Net(), (torch.ones(2, 3),))
    other = copy.deepcopy(program.graph_module)
    for node in other.graph.nodes:
        node.meta["custom"] = {"stage": 1}
    made = program._update(other, program.graph_signature)
    again = export(made.module(), (torch.ones(2, 3),))
    for old, new in zip(made.graph.nodes, again.graph.nodes, strict=True):
        for note in ("nn_module_stack", "stack_trace", "torch_fn"):
            assert old.op != "call_function" or old.meta[note] == new.meta[note]
    assert made.state_dict == program.state_dict and made is not program
    assert "custom" not in program.graph.find_nodes(op="placeholder")[0].meta
    assert targets(again) == targets(program)
    other.graph.output_node().args = ((),)
    with pytest.raises(errors.SpecViolationError, match="Number of output nodes is 0"):
        program._update(other, program.graph_signature)


def test_what_contradicts_itself_is_refused():
    program = export(Net(), (torch.ones(2, 3),))
    specs, state = program.graph_signature.input_specs, program.state_dict
    weight = specs[0]
    for changed, says in ((replace(weight, target="other"), "not in the state dict"),
                          (replace(weight, arg=specs[1].arg), "'p_linear_bias' in the signature")):
        specs[0] = changed
        with pytest.raises(errors.SpecViolationError, match=says):
            program.validate()
    specs[0] = weight
    kept, state["linear.weight"] = state["linear.weight"], torch.ones(4, 3)
    with pytest.raises(errors.SpecViolationError, match=r"not an instance of torch.nn.Parameter"):
        program.validate()
    state["linear.weight"] = kept
    (add,) = program.graph.find_nodes(op="call_function", target=aten.add.Tensor)
    add.target = aten.add_.Tensor
    with pytest.raises(errors.SpecViolationError, match="write nothing"):
        program.validate()


def test_examples_are_checked():
    class Keyed(nn.Module):
        def forward(self, a, *, x, y):
            return a + x - y

    ones = torch.ones(3)
    program = export(Keyed(), (ones,), {"y": ones, "x": ones})
    program.example_inputs = (ones,), {"x": ones, "y": ones * 2}
    for bad in ((ones,), ((ones,), {}), ((), {"x": ones, "y": ones}), ones):
        with pytest.raises(ValueError):
            program.example_inputs = bad
    assert program.example_inputs[1]["y"].tolist() == [2.0] * 3


def test_a_backend_may_export():
    def backend(graph, inputs):
        return export(graph, tuple(inputs)).run_decompositions().module()

    found = torch.compile(lambda x, y: x + y.sin(), backend=backend)(torch.ones(2), torch.zeros(2))
    assert found.tolist() == [1.0, 1.0]


def test_arguments_have_their_names_first():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.param, self.gamma = nn.Parameter(torch.ones(2)), torch.ones(2)

        def forward(self, p, c_gamma, x, x_foo, x_foo_0):
            return self.param + p["param"] + self.gamma + c_gamma + x["foo"][0] + x_foo[0] + x_foo_0

    one = torch.ones(2)
    program = export(Named(), ({"param": one}, one, {"foo": [one]}, (one,), one))
    found = [(s.arg.name, s.kind) for s in program.graph_signature.input_specs]
    user = InputKind.USER_INPUT
    assert found == [
        ("p_param_1", InputKind.PARAMETER), ("c_gamma_1", InputKind.CONSTANT_TENSOR),
        ("p_param", user), ("c_gamma", user), ("x_foo_0", user), ("x_foo_0_1", user),
        ("x_foo_0_2", user)]


def test_wishes_by_place_are_in_the_order_of_the_signature():
    class Keyed(nn.Module):
        def forward(self, a, kw1, kw2):
            return a.sum() + kw1.sum() - kw2.sum()

    ones = torch.ones(4, 4)
    program = export(Keyed(), (ones,), {"kw2": ones, "kw1": ones},
                     dynamic_shapes=(None, {0: Dim("n")}, None))
    assert program.module()(ones, kw2=ones, kw1=torch.ones(9, 4)).item() == 36
    with pytest.raises(errors.SignatureError):
        program.module()(ones, kw1=ones, kw2=torch.ones(9, 4))


def test_sizes_that_data_choose_have_bounds():
    class Chosen(nn.Module):
        def forward(self, x):
            return torch.masked_select(x, x > 0.5), x.nonzero(), x.unique()

    program = export(Chosen(), (torch.rand(3, 4, 5),),
                     dynamic_shapes=({0: Dim("a", max=100), 1: Dim("b", max=7)},))
    assert [str(r) for s, r in program.range_constraints.items() if str(s).startswith("u")] == [
        "VR[0, 3500]"] * 3


def test_parts_by_where_they_come_from():
    class Two(Parts):
        def forward(self, x):
            y = nn.functional.relu(self.two(self.one(x)))
            return self.one(y) + torch.relu(y)

    wanted = [nn.Linear, nn.functional.relu, torch.relu, "add"]
    two = Two(one=nn.Linear(3, 3), two=nn.Linear(3, 3))
    core = export(two, (torch.ones(2, 3),)).run_decompositions()
    for graph in (core.graph, core.module().graph):
        found = get_source_partitions(graph, wanted)
        assert [len(found[source]) for source in wanted] == [3, 1, 1, 1]
        first, second, _ = found[nn.Linear]
        assert [n.target for n in first.nodes] == [aten.permute.default, aten.addmm.default]
        assert first.output_nodes == first.nodes[1:]
        assert "x" in [n.name for n in first.input_nodes]
        assert check_subgraphs_connected(first, second)
        assert not check_subgraphs_connected(second, first)
    assert len(first.params) == 2  # attributes of a module
    found = get_source_partitions(graph, [nn.Linear], lambda n: "two" in n.meta["nn_module_stack"])
    assert len(found[nn.Linear]) == 1


def test_kernels_that_return_what_they_were_given():
    lib = torch.library.Library("rewriting", "DEF")
    lib.define("moved(Tensor(a!) x) -> (Tensor, Tensor)")
    lib.impl("moved", lambda x: (x.add_(5), x * 2), "CPU")
    torch.library.register_fake("rewriting::moved", lambda x: (x.clone(), x.clone()))

    class Moving(nn.Module):
        def forward(self, x):
            return torch.ops.rewriting.moved(x)

    program = export(Moving(), (torch.ones(2),))
    for made in (program, program.run_decompositions()):
        x = torch.ones(2)
        one, two = made.module()(x)
        assert (x.tolist(), one.tolist(), two.tolist()) == ([6.0, 6.0], [6.0, 6.0], [12.0, 12.0])
