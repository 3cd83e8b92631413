"""The smallest graph that still fails."""

import pytest

import pullback as torch
from pullback import nn
from pullback.fx import symbolic_trace
from pullback.fx.make_fx import make_fx
from pullback.fx.minifier import dump_state, get_outputs, get_placeholders, minifier

aten = torch.ops.aten


def has(target):
    return lambda gm, inps: target in [n.target for n in gm.graph.nodes]


def quiet(gm, inps):
    gm(*inps)  # every graph on the way is one that runs


def nans(gm, inps):
    if any(torch.isnan(i).any() for i in inps):
        return False
    return bool(torch.isnan(gm(*inps)[0]).any())


def product(x, y):
    y = y / 3
    x = (x + 3) * y
    return x + y


def zero_by_zero(x):
    x = (x * 3 + 5).cos()
    zero = x - x
    return (zero / zero + 3) * 2,


def parts(a, b):
    found = torch.std_mean(a)
    return found[0] + b * found[1],


@pytest.mark.parametrize("function, fails, nodes, count", [
    (product, has(aten.mul.Tensor), 4, 2),
    (zero_by_zero, nans, 3, 1),
    (parts, has(aten.add.Tensor), 4, 2),
    (lambda a, b, c: (a.sin(), b, c.cos(), a.sin() * c.cos()),
     lambda gm, inps: bool(set(get_placeholders(gm.graph)) & set(get_outputs(gm.graph))), 2, 1),
])
def test_only_what_fails_is_left(function, fails, nodes, count):
    inps = [torch.linspace(0.1, 1, 3) + i for i in range(function.__code__.co_argcount)]
    gm = make_fx(function)(*inps)
    before = gm.code
    small, left = minifier(gm, inps, fails, quiet)
    assert len(small.graph.nodes) == nodes and len(left) == count and fails(small, left)
    assert gm.code == before


def test_modules_files_and_refusals(tmp_path, capsys):
    class Failing(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x):
            y = self.relu(x)
            zero = y - y
            return zero / zero + 3

    gm, x = symbolic_trace(Failing()), torch.ones(3)
    small, left = minifier(gm, [x], nans, save_dir=str(tmp_path), offload_to_disk=True,
                           max_granularity=2)
    assert len(small.graph.nodes) == 3 and len(left) == 1 and list(tmp_path.glob("*.pkl"))
    assert "fails with 3 nodes" in capsys.readouterr().out
    dump_state(small, left)
    assert "inps = [torch.zeros([3], dtype=torch.float32" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="does not fail"):
        minifier(gm, [x], lambda gm, inps: False)
    with pytest.raises(RuntimeError, match="power of two"):
        minifier(gm, [x], nans, max_granularity=3)
    with pytest.raises(RuntimeError, match="save_dir"):
        minifier(gm, [x], nans, offload_to_disk=True)


def test_public_names(without_torch):
    import importlib

    with torch.install_as_torch():
        public = importlib.import_module("functorch.compile")
        assert public.minifier is minifier
        table = public.default_decompositions
        with public.pythonkey_decompose(table) as found:
            assert found.keys() == table.keys()
        utils = importlib.import_module("torch._functorch.compile_utils")
        assert utils.get_outputs is get_outputs
