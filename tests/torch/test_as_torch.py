"""`install_as_torch`: unchanged files run, the modules are the same objects, all is taken back."""

import base64
import importlib
import importlib.metadata
import importlib.util
import pickle
import subprocess
import sys
import textwrap
import types
import zlib

import pytest

import pullback
from pullback import errors
from pullback.torch.install import MOVED, PLACES, Facade
from pullback.version import TorchVersion


@pytest.fixture(autouse=True)
def uninstalled(without_torch):
    yield
    pullback.uninstall_as_torch()


PROGRAM = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.modules.linear import Linear
from torch.autograd import Function
from torch.utils._pytree import tree_map

torch.manual_seed(0)
model = nn.Sequential(Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 3)
losses = []
for _ in range(5):
    opt.zero_grad()
    loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    opt.step()
    losses.append(loss.item())
"""


def test_an_unchanged_program_runs():
    names = {}
    with pullback.install_as_torch():
        exec(PROGRAM, names)
    assert names["losses"][-1] < names["losses"][0]
    assert names["torch"] is pullback and names["Linear"] is pullback.nn.Linear


def test_the_name_given_by_hand(monkeypatch):
    """Files below would be loaded once more, with another operator table."""
    monkeypatch.setitem(sys.modules, "torch", pullback)
    names = {}
    exec(PROGRAM, names)
    assert names["Linear"] is pullback.nn.Linear
    assert sys.modules["torch.nn.functional"] is pullback.nn.functional


def test_modules_are_the_same_objects_and_keep_their_specs():
    before = pullback.nn.__spec__
    with pullback.install_as_torch():
        import torch
        import torch.nn
        import torch.nn.functional
        import torch.random

        assert torch is pullback and sys.modules["torch.nn"] is pullback.nn
        assert sys.modules["torch.nn.functional"] is pullback.nn.functional
        assert sys.modules["torch.random"] is pullback.random  # a file of another name
        assert pullback.nn.__spec__ is before and pullback.nn.__name__ == "pullback.nn"
        assert importlib.util.find_spec("torch").name == "pullback"
        assert importlib.util.find_spec("torch.optim") is not None


def test_names_that_live_elsewhere():
    with pullback.install_as_torch():
        from functorch import vmap
        from functorch.compile import aot_function
        from torch._functorch.aot_autograd import aot_function as again
        from torch._functorch.partitioners import min_cut_rematerialization_partition as cut
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.nn.modules.conv import Conv2d

        assert vmap.__wrapped__ is pullback.vmap and make_fx is pullback.make_fx
        assert aot_function is again is pullback.aot.aot_function
        assert Conv2d is pullback.nn.Conv2d
        assert cut.__module__ == "pullback.cut.partition"
        with pytest.raises(ImportError):
            exec("from torch.nn.modules.conv import no_such_layer")


@pytest.mark.parametrize("name", PLACES)
def test_every_place_exists(name):
    with pullback.install_as_torch():
        module = importlib.import_module(name)
        if PLACES[name].startswith("="):  # a module itself
            assert not isinstance(module, Facade)
        else:
            assert isinstance(module, Facade)
            assert len(list(module._modules())) >= len(module._places)


@pytest.mark.parametrize(
    "name", ["torch._six", "torch.no_such", "torch.nn.no_such", "torch.tensor", "torch.nn.a.b"]
)
def test_what_is_not_there_is_missing_as_usual(name):
    with pullback.install_as_torch():
        with pytest.raises(ModuleNotFoundError) as caught:
            importlib.import_module(name)
        assert name.startswith(caught.value.name)
        assert callable(pullback.tensor)


def test_the_version_that_programs_see():
    own = pullback.__version__
    with pullback.install_as_torch():
        import torch

        assert importlib.metadata.version("torch") == torch.__version__ == "2.13.0"
        assert torch.__version__ >= "2.9" and torch.__version__ > (1, 13)
        assert torch.version.cuda is None and torch.version.hip is None
    assert pullback.__version__ == own


@pytest.mark.parametrize(
    "low, high",
    [("1.9", "1.13"), ("2.0.0rc1", "2.0"), ("2.0", "2.0.1"), ("2.0.dev1", "2.0a1"), ("2", (2, 1)),
     ("2.0", "2.0.post1")],
)
def test_versions_compare_by_number(low, high):
    assert TorchVersion(low) < high and TorchVersion(low) <= high and TorchVersion(low) != high
    assert not TorchVersion(low) > high and not TorchVersion(low) >= high
    assert TorchVersion("2.0") == "2.0.0" and TorchVersion(low) == low


def test_who_copies_the_namespace_gets_every_name():
    copied = types.ModuleType("copied")
    copied.__dict__.update(vars(pullback))
    x = pullback.tensor([-1.0, 4.0])
    copied.relu_(x)
    copied._foreach_sqrt_([x])
    assert x.tolist() == [0.0, 2.0] and copied.add(x, 2, x).tolist() == [0.0, 6.0]
    assert copied.torch is pullback and "relu_" in copied.__all__ and copied._VF.exp(x)[0] == 1
    assert {*dir(pullback), *copied.__all__} <= set(vars(copied))


def test_all_is_taken_back():
    importlib.import_module("pullback.nn.modules")  # a module of ours: it stays where it is
    finders, attributes = list(sys.meta_path), set(vars(pullback.nn))
    pullback.install_as_torch()
    pullback.install_as_torch()  # again: nothing more happens
    import torch.nn.modules.conv  # noqa: F401
    pullback.uninstall_as_torch()
    assert sys.meta_path == finders and not {"torch", "torch.nn"} & set(sys.modules)
    assert set(vars(pullback.nn)) == attributes
    pullback.uninstall_as_torch()


def test_refused_beside_the_real_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    with pytest.raises(errors.InstallError, match="PyTorch itself is already imported"):
        pullback.install_as_torch()
    assert pullback.__version__ != "2.13.0"


def test_the_command_runs_files_and_modules(tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nONE = torch.ones(1)\n")
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import sys
        import torch, helper
        print(__name__, sys.argv[1:], torch.nn.Linear.__module__.split(".")[0], helper.ONE.item())
    """))
    for how in (["program.py"], ["-m", "program"]):
        done = subprocess.run([sys.executable, "-m", "pullback", "run", *how, "--lr", "1"],
                              capture_output=True, text=True, cwd=tmp_path,
                              env={"PYTHONPATH": str(pullback.__path__[0]) + "/.."}, check=False)
        assert done.stdout == "__main__ ['--lr', '1'] pullback 1.0\n", done.stderr


def test_the_command_names_a_missing_file(capsys):
    from pullback.cli import main

    assert main(["run", "no_such_file.py"]) == 2
    assert "no_such_file.py" in capsys.readouterr().err


def test_names_that_packages_look_at_on_import():
    with pullback.install_as_torch():
        import torch

        assert torch.__name__ == "torch"
        assert torch.functional.einsum is torch.einsum
        assert torch.functional.broadcast_tensors is torch.broadcast_tensors
        with pytest.raises(OSError, match="made for PyTorch"):
            torch.ops.load_library("/nowhere/_C.so")
        import torch.distributions.transforms
    assert pullback.__name__ == "pullback"


def test_packages_show_all_their_names_to_who_looks_into_them():
    code = """
        import pullback.optim as optim, pullback.nn as nn, sys
        assert "pullback.optim.rprop" not in sys.modules
        kinds = {n for n, v in optim.__dict__.items()
                 if isinstance(v, type) and issubclass(v, optim.Optimizer)}
        assert {"Adam", "Rprop", "LBFGS"} <= kinds
        assert set(nn.__all__) <= set(vars(nn))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_the_names_of_the_binary_that_packages_touch():
    from pullback import _C

    keys = _C.DispatchKeySet(_C.DispatchKey.AutocastCPU) | _C.DispatchKeySet(
        _C.DispatchKey.AutogradCPU
    )
    assert keys.has(_C.DispatchKey.AutogradCPU) and not keys.has(_C.DispatchKey.CPU)
    x = pullback.ones(2, 2, requires_grad=True)
    with pullback.autocast("cpu", dtype=pullback.bfloat16):
        assert (x @ x).dtype is pullback.bfloat16
        with _C._ExcludeDispatchKeyGuard(keys):
            y = x @ x
            assert y.dtype is pullback.float32 and not y.requires_grad
        assert (x @ x).dtype is pullback.bfloat16 and (x @ x).requires_grad
    assert _C._get_tracing_state() is None and not _C._are_functorch_transforms_active()
    seen = []
    pullback.func.vmap(lambda x: seen.append(_C._are_functorch_transforms_active()) or x)(x)
    assert seen == [True]
    assert _C.Generator is pullback.Generator


def test_names_below_distributed_can_be_imported_and_refuse_to_work():
    with pullback.install_as_torch():
        from torch.distributed import nn
        from torch.distributed._tensor.experimental import implicit_replication  # noqa: F401
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.tensor import DTensor

        assert not isinstance(pullback.ones(1), DTensor)
        for refuse in DTensor, nn.all_reduce, lambda: FullyShardedDataParallel(None):
            with pytest.raises((RuntimeError, ValueError), match="not been initialized"):
                refuse()
        with pytest.raises(ImportError):
            from torch.distributed import nothing_of_this_name  # noqa: F401


def test_small_modules_that_packages_import():
    with pullback.install_as_torch():
        import torch
        from torch._dynamo.utils import is_compile_supported
        from torch._tensor_str import PRINT_OPTS, _tensor_str
        from torch.ao.quantization import DeQuantStub, QuantStub
        from torch.jit.annotations import BroadcastingList2, List
        from torch.onnx import symbolic_opset11  # noqa: F401
        from torch.onnx.symbolic_helper import parse_args
        from torch.utils.data.dataloader import _BaseDataLoaderIter
        from torch.utils.model_zoo import load_url  # noqa: F401

        assert is_compile_supported("cpu")
        assert List[int] and BroadcastingList2[int] is None
        assert parse_args("v", "i")(len) is len
        torch.onnx.register_custom_op_symbolic("mine::twice", len, 11)
        with pytest.raises(NotImplementedError, match="ONNX"):
            torch.onnx.export(None)
        with pytest.raises(ValueError, match="domain"):
            torch.onnx.register_custom_op_symbolic("twice", len, 11)
        x = torch.tensor([1.0, 2.0])
        assert QuantStub()(x) is DeQuantStub()(x) is x
        with pytest.raises(AttributeError, match="no attribute"):
            torch.ao.quantization.nothing_of_this_name
        assert _tensor_str(x, 0) == "[1., 2.]" and PRINT_OPTS.precision == 4
        with torch.printing.printoptions(precision=2):
            assert PRINT_OPTS.precision == 2
        assert isinstance(iter(torch.utils.data.DataLoader([1, 2])), _BaseDataLoaderIter)
        assert "NumPy" in torch.__config__.show()
        assert x.to(None).tolist() == x.to(None, torch.float64).tolist() == [1, 2]


def test_private_functions_of_pytrees():
    from pullback.utils import _pytree as tree

    class Record(dict):
        pass

    tree.register_pytree_node(
        Record, tree._dict_flatten, lambda v, c: Record(tree._dict_unflatten(v, c)),
        flatten_with_keys_fn=tree._dict_flatten_with_keys,
    )  # fmt: skip
    record = Record(a=1, b=[2, 3])
    leaves, spec = tree.tree_flatten(record)
    assert leaves == [1, 2, 3] and tree.tree_unflatten(leaves, spec) == record
    paths = [tree.keystr(path) for path, _ in tree.tree_flatten_with_path(record)[0]]
    assert paths == ["['a']", "['b'][0]", "['b'][1]"]


OWN_PATHS = [name.removeprefix("torch.") for name in PLACES if name.startswith("torch.")]


def test_paths_of_pytorch_are_attributes_and_can_be_imported_below_the_package():
    """`import pullback as torch; torch._functorch.aot_autograd`, without installing."""
    for path in OWN_PATHS:
        found = pullback
        for part in path.split("."):
            found = getattr(found, part)
    import pullback._functorch.config as config
    from pullback._functorch.aot_autograd import aot_function
    from pullback.fx.experimental.proxy_tensor import make_fx

    assert aot_function is pullback._functorch.aot_autograd.aot_function
    assert make_fx is pullback.fx.make_fx.make_fx and config is pullback._functorch.config


def test_what_pytorch_does_not_have_is_missing_as_ever():
    with pytest.raises(AttributeError, match=r"'pullback\.fx' has no attribute 'nothing'"):
        pullback.fx.nothing
    with pytest.raises(ModuleNotFoundError, match=r"pullback\._functorch\.nothing"):
        importlib.import_module("pullback._functorch.nothing")


def test_installing_after_a_program_has_named_the_modules_itself():
    """`sys.modules["torch.nn"] = pullback.nn` is no other library."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import sys, types, pullback, pullback.nn
        sys.modules["torch"], sys.modules["torch.nn"] = pullback, pullback.nn
        sys.modules["torch.nn.functional"] = pullback.nn.functional
        with pullback.install_as_torch():
            import torch.nn.functional as F
            import torch.optim
            print(F is pullback.nn.functional, torch.optim is pullback.optim)
        sys.modules["torch"] = types.ModuleType("torch")
        try:
            pullback.install_as_torch()
        except pullback.errors.InstallError as error:
            print("PyTorch itself" in str(error))
    """)], capture_output=True, text=True)
    assert done.stdout == "True True\nTrue\n", done.stderr


# a tensor, dtype, size, device, layout and the structure of a tree, pickled before files moved
OLDER = (
    'c-n1|&r8EF6vx~BtgwTqco#48Qka6^NoAg_^swzZO4?>?v1?132o;50suptF^Y7J{bO@8>(4>8z@Avh6v+jJKw+y'
    '}JFqDV6ND`j}&vwBxMwS$0pHW}LNeCOPpZwK>j8QuxX_z3>o6)q$7$T7=4?ISdnktDrO~ooNZBO$nk?@!>MoN$a#'
    'DXj>I1>R^WLJ~eFbx}I1CCL_*!1BOCNOkN$EqM2$Zp8XoGM96jG+E%s%>e$f$O@DKe+V6F*x}3*fNauEzWlb_*x+'
    '=k9VhN>}20By_Br9aet9ygkN2P;vK_jRp6Kv)bHpqf#^(Hz9vT3nvh4kjz#>6hMlR}a0*mw>R);xeTf5=-a~W1zU'
    '?3v;C}3Z6H;b^qp7!~Dz4~8_O{>D|6+`Bh>7o$<|Sto`&cvFra29i!cv#Y<Fr7_FxEFP2Wb)@bBOMx^+d^H%U(=?'
    'sEn!o3sbG(0R'
)


def test_files_that_have_moved_are_found_under_their_older_paths():
    for old, new in MOVED.items():
        assert importlib.import_module(f"pullback.{old}") is importlib.import_module(
            f"pullback.{new}")
    x, *rest = pickle.loads(zlib.decompress(base64.b85decode(OLDER)))
    assert x.tolist() == [1, 2] and rest == [
        pullback.bfloat16, pullback.Size([2]), pullback.device("cpu"), pullback.strided,
        pullback.utils._pytree.tree_structure({"a": 1})]
