"""Programs taken apart into the modules that were exported."""

import copy
import io

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.export.parse import parse
from pullback.export.text import program_text


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full((3,), 2.0))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)
        return x * self.w + self.count


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Inner()
        self.b = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))

    def forward(self, x):
        y = self.a(x)
        z = self.a(y + 1)
        return {"z": self.b(z).relu(), "y": y}


def test_modules_are_there_again():
    net, x = Outer(), torch.ones(4, 3)
    program = torch.export.export(net, (x,))
    apart = torch.export.unflatten(program)
    assert isinstance(apart, torch.export.UnflattenedModule)
    assert isinstance(apart.b, torch.export.InterpreterModule)
    names = [n for n, _ in apart.named_modules()]
    assert names == ["", "a", "b", "b.0", "b.1", "b.2", "b.2.0", "a@1"]
    assert dict(apart.named_parameters()).keys() == dict(net.named_parameters()).keys()
    assert "getattr(self, \"0\")(add_4)" in apart.b.code
    for count in (2, 4):  # the buffer is the module's own, and is written
        ours, theirs = apart(x), net(x)
        assert torch.allclose(ours["z"], theirs["z"]) and torch.allclose(ours["y"], theirs["y"])
        assert apart.a.count.item() == net.a.count.item() == count
    ours["z"].sum().backward()
    assert apart.a.w.grad is not None and getattr(apart.b, "0").weight.grad is not None


def test_a_module_can_be_replaced():
    net, x = Outer(), torch.ones(4, 3)
    apart = torch.export.unflatten(torch.export.export(net, (x,)))
    apart.b = nn.Identity()
    assert apart(x)["z"].shape == (4, 3)


def test_programs_from_files_have_one_module(tmp_path):
    net, x = Outer(), torch.ones(4, 3)
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net")
    apart = torch.export.unflatten(torch.export.load(tmp_path / "net"))
    assert torch.allclose(apart(x)["z"], net(x)["z"])


class Switching(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        y = self.inner(x)
        with torch.no_grad():
            z = y * 2
        with torch.enable_grad():
            return y + z + y * 3


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.still, self.moving = Switching(), Switching()

    def forward(self, x):
        with torch.no_grad():
            y = self.still(x)
        return self.moving(x) + y


def test_switched_gradients():
    module, x = Twice(), torch.randn(2, 4)
    program = torch.export.export(module, (x,))
    for made in (program, program.run_decompositions()):
        parts = torch.export.unflatten(made)
        assert [name for name, _ in parts.named_children()] == ["still", "moving"]
        for mode in (True, False):
            with torch.set_grad_enabled(mode):
                found, expected = parts(x), module(x)
                assert torch.is_grad_enabled() is mode
            assert torch.equal(found, expected) and found.requires_grad == expected.requires_grad
        pairs = [torch.autograd.grad(m(x).sum(), list(m.parameters()), allow_unused=True)
                 for m in (parts, module)]
        for found, expected in zip(*pairs, strict=True):
            torch.testing.assert_close(found, expected)


def test_an_argument_given_twice_is_refused():
    class Two(nn.Module):
        def forward(self, x, *, k=2):
            return x * k

    module = torch.export.export(Two(), (torch.ones(2),), {"k": 3}).module()
    assert module(torch.ones(2), 3).sum() == 6
    with pytest.raises(ValueError):
        module(torch.ones(2), torch.ones(2), k=3)


def test_examples_are_kept_where_files_can_hold_them(tmp_path):
    class Doubled(nn.Module):
        def forward(self, x):
            return x * 2

    for x, kept in ((torch.ones(2), True), (torch.ones(2, dtype=torch.complex128), False)):
        torch.export.save(torch.export.export(Doubled(), (x,)), tmp_path / "program")
        program = torch.export.load(tmp_path / "program")
        assert (program.example_inputs is not None) is kept
        assert torch.equal(program.module()(x), x * 2)
        if kept:
            assert torch.equal(program.example_inputs[0][0], x)


def test_the_function_is_not_hidden_by_its_file():
    import importlib

    file = importlib.import_module("pullback.export.unflatten")
    assert torch.export.unflatten is file.unflatten


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.full((1,), 4.0))

    def forward(self, x, flag, *, scale=None):
        y = x + self.buf if flag else x * self.buf
        return {"y": y, "rest": [y * (scale["k"] if scale else 1), x]}


class Calling(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Chosen()

    def forward(self, x):
        one = self.part(x + 3, True)
        two = self.part(one["y"], False, scale={"k": x})
        return one["rest"][0] + two["y"] + two["rest"][0] + two["rest"][1]


def test_modules_are_called_as_they_were():
    module, x = Calling(), torch.ones(1)
    program = torch.export.export(module, (x,), preserve_module_call_signature=("part",))
    assert [entry.fqn for entry in program.module_call_graph] == ["", "part", "part@1"]
    parts = torch.export.unflatten(program)
    assert torch.equal(parts(x), module(x))
    for name in ("part", "part@1"):
        parts.set_submodule(name, Chosen())
    assert torch.equal(parts(x), module(x))
    with pytest.raises(errors.UserError, match="no module 'other'"):
        torch.export.export(module, (x,), preserve_module_call_signature=("other",))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias, self.m = nn.Parameter(torch.randn(4)), nn.Linear(4, 4)
        self.m.bias = self.bias
        self.shift = self.m.shift = torch.ones(4)

    def forward(self, x):
        return self.m(x) + self.shift


def test_shared_tensors_have_all_their_names():
    module, x, file = Tied(), torch.randn(2, 4), io.BytesIO()
    program = torch.export.export(module, (x,))
    assert program.graph_signature.parameters == ("bias", "m.weight")
    assert set(program.state_dict) == set(module.state_dict())
    assert set(program.constants) == {"shift", "m.shift"}
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert set(loaded.state_dict) == set(program.state_dict)
    for made in (program.module(), torch.export.unflatten(program), loaded.module()):
        assert made.m.bias is made.bias and set(made.state_dict()) == set(module.state_dict())
        torch.testing.assert_close(made(x), module(x))
    text = program_text(program).replace('also "m.bias"', 'also "m.weight"')
    with pytest.raises(errors.FileFormatError, match="an input twice"):
        parse(text)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(self.linear(x)) * 2


def test_modules_that_write_can_be_replaced():
    module, x = Normed(), torch.randn(4, 3)
    program = torch.export.export(module, (x,), preserve_module_call_signature=("norm",))
    for made in (program, program.run_decompositions()):
        parts, eager = torch.export.unflatten(made), copy.deepcopy(module)
        torch.testing.assert_close(parts(x), eager(x))
        for name, buffer in eager.named_buffers():
            torch.testing.assert_close(parts.get_buffer(name), buffer)
        other = nn.BatchNorm1d(3)
        parts.set_submodule("norm", other)
        torch.testing.assert_close(parts(x), eager(x))
        assert other.num_batches_tracked.item() == 1
        torch.testing.assert_close(
            other.running_mean, (parts.linear(x).mean(0) * 0.1).detach())
