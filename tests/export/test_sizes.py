"""Programs for sizes that vary: one graph, bounds that are checked, the same after loading."""

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.capture.export import aot_export_module
from pullback.export import Dim, SymIntArgument, archive, dims, export
from pullback.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes
from pullback.export.text import program_text
from pullback.pytree import tree_leaves
from pullback.safetensors import save as weights_of
from tests.helpers.export_modules import Function, again


class Joined(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, y):
        flat = self.linear(x).reshape(-1)[: x.shape[0] * 2]
        return flat + 1, x.shape[0] * 2, torch.cat([x, y]).view(x.shape[0] + y.shape[0], 2, 2)


def joined(**dynamic):
    torch.manual_seed(0)
    args = torch.ones(6, 4), torch.ones(6, 4)
    return export(Joined(), args, dynamic_shapes=dynamic)


def test_one_program_for_many_sizes():
    program = joined(x={0: Dim("batch", min=2, max=64)}, y={0: Dim("more")})
    assert list(map(str, program.range_constraints.values())) == ["VR[2, 64]", "VR[2, int_oo]"]
    assert isinstance(program.graph_signature.output_specs[1].arg, SymIntArgument)
    assert "sizes\n  s" in program_text(program) and " = 6 from 2 to 64\n" in program_text(program)
    torch.manual_seed(0)
    model, found = Joined(), again(program)
    assert program_text(found) == program_text(program)
    for module in (program.module(), found.module(), found.run_decompositions().module()):
        for m, n in ((3, 5), (2, 9), (64, 2)):
            x, y = torch.randn(m, 4), torch.randn(n, 4)
            first, number, last = module(x, y)
            expected = model(x, y)
            torch.testing.assert_close(first, expected[0])
            assert number == 2 * m and torch.equal(last, expected[2])
    first.sum().backward()


@pytest.mark.parametrize(("shapes", "says"), [
    (((65, 4), (5, 4)), r"x.size\(0\) is 65, the program is for 2 to 64"),
    (((1, 4), (5, 4)), r"x.size\(0\) is 1, the program is for 2 to 64"),
    (((3, 5), (5, 4)), r"has shape \[3, 5\]"),
    (((3, 4, 1), (5, 4)), "has shape"),
])
def test_other_sizes_are_refused(shapes, says):
    program = joined(x={0: Dim("batch", min=2, max=64)}, y={0: Dim("more")})
    for module in (program.module(), again(program).module()):
        with pytest.raises(errors.SignatureError, match=says):
            module(*[torch.ones(*s) for s in shapes])


def test_equal_dims_are_equal_sizes():
    batch = Dim("batch")
    program = joined(x={0: batch}, y=(batch, Dim.STATIC))
    assert len(program.range_constraints) == 1
    for module in (program.module(), again(program).module()):
        assert module(torch.ones(3, 4), torch.ones(3, 4))[2].shape == (6, 2, 2)
        with pytest.raises(errors.SignatureError, match=r"the same as x\.size\(0\)"):
            module(torch.ones(3, 4), torch.ones(4, 4))


def halves(x, y):
    return x + y, x.view(2, -1) if x.shape[0] % 2 == 0 else x


def test_automatic_dims_have_conditions():
    program = export(Function(halves), (torch.ones(6), torch.ones(6)),
                     dynamic_shapes=[{0: Dim.AUTO}, {0: Dim.AUTO}])
    assert "require Mod(" in program_text(program)
    for module in (program.module(), again(program).module()):
        assert module(torch.ones(8), torch.ones(8))[1].shape == (2, 4)
        with pytest.raises(errors.SignatureError, match="does not hold"):
            module(torch.ones(7), torch.ones(7))
        with pytest.raises(errors.SignatureError, match="not for these sizes"):
            module(torch.ones(8), torch.ones(6))


def test_automatic_dims_may_be_fixed():
    program = export(Function(halves), (torch.ones(6), torch.ones(6)),
                     dynamic_shapes=[{0: Dim.AUTO}, None])
    assert "sizes" not in program_text(program)
    for module in (program.module(), again(program).module()):
        with pytest.raises(errors.SignatureError):
            module(torch.ones(8), torch.ones(8))


def test_named_dims_are_promises():
    with pytest.raises(errors.ConstraintViolationError, match=r"(?s)violated \(n\).*n = 3.*Mod"):
        n = Dim("n", max=64)
        export(Function(halves), (torch.ones(6), torch.ones(6)), dynamic_shapes=[{0: n}, {0: n}])
    with pytest.raises(errors.ConstraintViolationError, match=r"(?s)not right for n = 2.*> 3"):
        export(Function(lambda x: x * 2 if x.shape[0] > 3 else x), (torch.ones(6),),
               dynamic_shapes=[{0: Dim("n")}])
    program = export(Function(lambda x: x * 2 if x.shape[0] > 3 else x), (torch.ones(6),),
                     dynamic_shapes=[{0: Dim("n", min=4)}])
    assert program.module()(torch.ones(9)).sum() == 18


BATCH = Dim("batch", min=2, max=64)


@pytest.mark.parametrize(("function", "second", "derived", "right", "wrong", "ranges"), [
    (lambda x, y: torch.cat([x, x]) + y, 8, 2 * BATCH, 10, 11,
     ["VR[2, 64]", "VR[4, 128]"]),
    (lambda x, y: torch.cat([x, x[:1]]) + y, 5, BATCH + 1, 6, 7, ["VR[2, 64]", "VR[3, 65]"]),
    (lambda x, y: x.sum() + y, 9, 2 * BATCH + 1, 11, 12, ["VR[2, 64]", "VR[5, 129]"]),
])
def test_sizes_that_follow_from_others(function, second, derived, right, wrong, ranges):
    program = export(Function(function), (torch.ones(4, 3), torch.ones(second, 3)),
                     dynamic_shapes=({0: BATCH}, {0: derived}))
    assert [str(r) for r in program.range_constraints.values()] == ranges
    for module in (program.module(), again(program).module()):
        x = torch.ones(5, 3)
        assert torch.equal(module(x, torch.ones(right, 3)), function(x, torch.ones(right, 3)))
        with pytest.raises(errors.SignatureError, match="not for these sizes"):
            module(x, torch.ones(wrong, 3))


def test_a_multiple_without_what_it_is_a_multiple_of():
    program = export(Function(lambda x: x.view(2, -1)), (torch.ones(8),),
                     dynamic_shapes=[{0: 2 * BATCH}])
    for module in (program.module(), again(program).module()):
        assert module(torch.ones(10)).shape == (2, 5)
        for wrong in (11, 130, 2):
            with pytest.raises(errors.SignatureError, match="not for these sizes"):
                module(torch.ones(wrong))
    first = export(Function(lambda x, y: x.sum() + y), (torch.ones(8), torch.ones(4)),
                   dynamic_shapes=[{0: 2 * BATCH}, {0: BATCH}])
    assert first.module()(torch.ones(10), torch.ones(5)).shape == (5,)
    with pytest.raises(RuntimeError, match=r"to be equal to 2\*batch, where batch = 4, but got 9"):
        export(Function(lambda x, y: x.sum() + y.sum()), (torch.ones(4), torch.ones(9)),
               dynamic_shapes=[{0: BATCH}, {0: 2 * BATCH}])


@pytest.mark.parametrize(("function", "second", "other", "fix"), [
    (lambda x, y: torch.cat([x, x]) + y, 8, Dim("other"), "other = 2*batch"),
    (lambda x, y: x + y, 4, Dim("other"), "other = batch"),
    (lambda x, y: x + torch.ones(4, 3) + y.sum(), 4, None, "batch = 4"),
    (lambda x, y: x * 2 if x.shape[0] > 3 else x, 4, None, "batch = Dim('batch', min=4, max=64)"),
    (lambda x, y: x * 2 if x.shape[0] < 30 else x, 4, None, "batch = Dim('batch', max=29)"),
    (lambda x, y: x.view(2, -1), 4, None,
     "_batch = Dim('_batch', min=1, max=32); batch = 2*_batch"),
    (lambda x, y: x.view(6, -1), 4, None,
     "_batch = Dim('_batch', min=1, max=32); batch = 2*_batch"),
    (lambda x, y: torch.cat([x, x]) + y, 8, BATCH + 4, "batch = 4"),
])
def test_suggested_fixes(function, second, other, fix):  # those of PyTorch
    with pytest.raises(errors.ConstraintViolationError, match="Constraints violated") as error:
        export(Function(function), (torch.ones(4, 3), torch.ones(second, 3)),
               dynamic_shapes=({0: BATCH}, other and {0: other}))
    assert f"Suggested fixes: {fix}\n" in str(error.value)
    assert "was decided at test_sizes.py:" in str(error.value)


def test_dims_without_names():
    def shapes(function, dynamic, *sizes):
        program = export(Function(function), tuple(torch.ones(n, 3) for n in sizes),
                         dynamic_shapes=dynamic)
        return [str(r) for r in program.range_constraints.values()]

    assert shapes(lambda x: x * 2, [{0: Dim.AUTO(min=3, max=10)}], 4) == ["VR[3, 10]"]
    assert shapes(lambda x: x * 2, [{0: Dim.AUTO}], 1) == []
    assert shapes(lambda x, y: torch.cat([x, x]) + y, [{0: Dim.AUTO}, {0: Dim.AUTO}], 4, 8) == [
        "VR[2, int_oo]", "VR[4, int_oo]"]
    with pytest.raises(ValueError, match="0 and 1 are specialised"):
        shapes(lambda x: x * 2, [{0: Dim.DYNAMIC}], 1)
    with pytest.raises(errors.ConstraintViolationError, match=r"Dim.DYNAMIC, but .* 4 only"):
        shapes(lambda x: x + torch.ones(4, 3), [{0: Dim.DYNAMIC}], 4)
    with pytest.raises(errors.ConstraintViolationError, match=r"4 not in range \[5, 10\]"):
        shapes(lambda x: x * 2, [{0: Dim.AUTO(min=5, max=10)}], 4)


def test_sizes_from_zero():
    program = export(Function(lambda x, y: x * 2 + y.sum()), (torch.ones(4, 3), torch.ones(2)),
                     dynamic_shapes=[{0: Dim("n", min=0, max=9)}, None])
    for n in (0, 1, 9):
        assert program.module()(torch.ones(n, 3), torch.ones(2)).shape == (n, 3)


@pytest.mark.parametrize(("dynamic", "says"), [
    ({"z": {0: Dim("n")}}, "top-level keys must be the arg names"),
    ([{0: Dim("n")}], "is for 1 arguments, there are 2"),
    ([{2: Dim("n")}, None], "has 2 dims"),
    ([(Dim("n"),), None], "has 2 dims"),
    ([{0: "n"}, None], "is 6, `dynamic_shapes` has 'n'"),
    ([{0: 5}, None], "is 6, `dynamic_shapes` has 5"),
    ([{0: Dim("n", max=5)}, None], "is 6, which is not in range of"),
    ([{0: Dim("n"), 1: Dim("n")}, None], "another size that is"),
    (7, "a dict, a list or a tuple"),
])
def test_wrong_descriptions(dynamic, says):
    with pytest.raises((errors.UserError, errors.ConstraintViolationError), match=says):
        export(Joined(), (torch.ones(6, 4), torch.ones(6, 4)), dynamic_shapes=dynamic)


def test_dims():
    one, two = dims("one", "two", min=3, max=9)
    assert (one.__name__, two.min, two.max) == ("one", 3, 9)
    assert repr(one) == "Dim('one', min=3, max=9)" and repr(Dim.AUTO) == "Dim.AUTO"
    with pytest.raises(ValueError, match="inconsistent min=3, max=2"):
        Dim("n", min=3, max=2)
    assert str(2 * one + 1) == "2*one + 1" and str(one - 1) == "one - 1"
    twice = (one + 1) * 2
    assert (twice.__name__, twice.min, twice.max) == ("2*one + 2", 8, 20)
    for wrong in (lambda: one * two, lambda: one + two, lambda: 1 - one, lambda: one * 1.5,
                  lambda: one * -1):
        with pytest.raises(NotImplementedError, match="a positive multiple"):
            wrong()
    assert repr(Dim.AUTO(min=3)) == "Dim.AUTO(min=3, max=None)"


def test_trees_of_arguments():
    def function(d, pair):
        return d["a"].sum(0) + pair[1] * pair[0].shape[0]

    n, m = dims("n", "m")
    program = export(
        Function(function), ({"a": torch.ones(3, 2)}, (torch.ones(5), torch.ones(2))),
        dynamic_shapes=({"a": {0: n}}, ({0: m}, None)))
    module = again(program).module()
    assert module({"a": torch.ones(7, 2)}, (torch.ones(4), torch.ones(2))).tolist() == [11.0, 11.0]


def test_layers():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(12, 2))
    program = export(model, (torch.randn(4, 1, 4, 4),), dynamic_shapes=({0: Dim("n")},))
    module = again(program).module()
    for size in (9, 2):
        x = torch.randn(size, 1, 4, 4)
        expected, found = model(x), module(x)
        assert torch.equal(found, expected)
        model.zero_grad()
        module.zero_grad()
        expected.sum().backward()
        found.sum().backward()
        for p, q in zip(module.parameters(), model.parameters()):
            torch.testing.assert_close(p.grad, q.grad)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    program = export(layer, (torch.randn(3, 5, 8),), dynamic_shapes=[
        {0: Dim("batch"), 1: Dim("length", max=128)}])
    module = again(program).module()
    for shape in ((2, 2, 8), (4, 9, 8)):
        x = torch.randn(*shape)
        torch.testing.assert_close(module(x), layer(x))


@pytest.mark.parametrize(("old", "new", "says"), [
    ("from 2", "from 9", "which is not from"),
    ("from 2", "from -2", "a size is an integer"),
    ("= 6 from", "= many from", "unknown word"),
    (": f32[sN]", ": f32[sN // 0]", "divided by nothing"),
    (": f32[sN]", ": f32[s12345]", "unknown size"),
    (": f32[sN]", ": f32[__import__]", "unknown size"),
    (": f32[sN]", ": f32[2.5]", "a size is an integer"),
    (": f32[sN]", ": f32[" + "*".join(["(sN + Max(3, sN//7) + sN//5)"] * 45) + "]", "too long"),
    (": f32[sN]", ": f32[((((sN + sN//3)**15 + 1)**15 + sN//5)**15 + 1)**15]", "too long"),
    ("2*sN]", "3*sN]", "is said to be"),
    ("size.mul", "size.exec", "no function of sizes"),
    ("size.mul(%sym_size_int, 2)", "size.mul(%args_0, 2)", "does not take"),
])
def test_bad_sizes_are_refused(old, new, says):
    program = export(Function(lambda x: x.repeat(2)[: x.shape[0] * 2]), (torch.ones(6),),
                     dynamic_shapes=[{0: Dim("n")}])
    text = program_text(program)
    name = next(iter(program.env.symbols))
    old, new = old.replace("sN", name), new.replace("sN", name)
    assert old in text
    with pytest.raises(errors.FileFormatError, match=says):
        archive._program(text.replace(old, new, 1).encode(), weights_of({}))


def test_symbolic_sizes_of_the_lower_level():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4, 2))

        def forward(self, x):
            return ((x @ self.w).view(x.shape[0] * 2).tanh().sum(),)

    model = Net()
    graph, signature = aot_export_module(
        model, (torch.ones(3, 4),), trace_joint=True, output_loss_index=0, dynamic_shapes=True)
    x = torch.randn(5, 4)
    *_, gradient = graph(model.w, x)
    model(x)[0].backward()
    torch.testing.assert_close(gradient, model.w.grad)
    assert signature.user_inputs == ["arg1_1"]


@pytest.mark.parametrize(("function", "first", "second"), [
    (lambda n: torch.zeros(n.item()) + 1, torch.tensor(4), torch.tensor(6)),
    (lambda x: x[x > 0] * 2, torch.tensor([1.0, -1.0, 2.0]), torch.tensor([1.0, 5.0, 2.0])),
    (lambda x: x.nonzero(), torch.tensor([1.0, 0.0, 2.0]), torch.tensor([0.0, 0.0, 2.0])),
    (lambda x: x * x.sum().item(), torch.tensor([1.0, 0.0, 2.0]), torch.tensor([0.0, 1.0, 2.0])),
])
def test_sizes_and_numbers_from_data(function, first, second):
    program = export(Function(function), (first,))
    found = again(program)
    assert program_text(found) == program_text(program)
    for module in (program.module(), found.module()):
        for x in (first, second):
            assert torch.equal(module(x), function(x))


def fixed(x, y, z):
    return x + y[1:] + z[2:], x @ torch.ones(4, 4)


def bounded(x, y):
    return (x * 2, y + 1) if x.shape[0] >= 6 and y.shape[0] <= 16 else None


def threes(x):
    return x.reshape(-1, 3) if x.shape[0] >= 9 else x


def shifted(x, y):
    return x + y[4:]


@pytest.mark.parametrize("forward, sizes, shapes, found", [
    (fixed, (4, 5, 6), lambda n, m: ((n,), (n + 1,), (n + 2,)), [4, 5, 6]),
    (bounded, (16, 12), lambda n, m: {"args_0": (n,), "args_1": (m,)}, [(6, None), (None, 16)]),
    (threes, (15,), lambda n, m: ({0: n},), ["3*_n"]),
    (shifted, (8, 12), lambda n, m: ({0: n}, {0: m}), [None, "n + 4"]),
])
def test_fixes_that_errors_suggest(forward, sizes, shapes, found):
    class Made(nn.Module):
        def forward(self, *args):
            return forward(*args)

    wishes, args = shapes(Dim("n"), Dim("m")), tuple([torch.ones(n) for n in sizes])
    with pytest.raises(errors.UserError) as caught:
        export(Made(), args, dynamic_shapes=wishes)
    refined = refine_dynamic_shapes_from_suggested_fixes(caught.value.msg, wishes)
    export(Made(), args, dynamic_shapes=refined)
    for new, expected in zip(tree_leaves(refined), found, strict=True):
        if isinstance(expected, tuple):
            low, high = expected
            assert low in (None, new.min) and high in (None, new.max)
        elif expected is not None:
            assert new == expected or repr(new) == expected
    with pytest.raises(ValueError, match="suggests no fixes"):
        refine_dynamic_shapes_from_suggested_fixes("no", wishes)


def test_sizes_are_results():
    class Sized(nn.Module):
        def forward(self, x):
            return x.size(), x * 2, x.shape[0]

    program = export(Sized(), (torch.ones(3, 4),), dynamic_shapes=({0: Dim("n")},))
    for made in (program, program.run_decompositions(), again(program)):
        size, twice, rows = made.module()(torch.ones(5, 4))
        assert (tuple(size), tuple(twice.shape), rows) == ((5, 4), (5, 4), 5)


def test_shapes_that_need_no_decision():
    class Pooled(nn.Module):
        def forward(self, x):
            found = nn.functional.adaptive_avg_pool2d(x, (2, 3))
            return found, nn.functional.adaptive_max_pool2d(x, 2), x[0].diagonal()

    program = export(Pooled(), (torch.rand(3, 8, 6),),
                     dynamic_shapes=({1: Dim("h"), 2: Dim("w", min=3)},))
    x = torch.rand(3, 5, 7)
    for found, expected in zip(again(program).module()(x), Pooled()(x), strict=True):
        torch.testing.assert_close(found, expected)
