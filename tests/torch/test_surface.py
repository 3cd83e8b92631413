"""The rest of the `torch` namespace: constants, old constructors, devices, switches, facts, shims.

What is compared with literals was read off PyTorch 2.13 for the CPU.
"""

import copy
import pickle
import warnings

import numpy as np
import pytest

import pullback as torch
from pullback.tensor.legacy_types import NAMES
from pullback.threads.state import fast


@pytest.fixture(autouse=True)
def nothing_left_on():
    before = fast["ACTIVE"]
    yield
    torch.set_default_device(None)
    assert fast["ACTIVE"] == before


# layouts and memory formats


def test_layouts_and_memory_formats_are_named_constants():
    assert repr(torch.strided) == "torch.strided" and isinstance(torch.strided, torch.layout)
    assert str(torch.channels_last) == "torch.channels_last"
    assert isinstance(torch.preserve_format, torch.memory_format)
    assert pickle.loads(pickle.dumps(torch.sparse_coo)) is torch.sparse_coo
    assert copy.deepcopy(torch.channels_last_3d) is torch.channels_last_3d
    assert torch.ones(2).layout is torch.strided
    assert torch.zeros(2, layout=torch.strided).shape == (2,)
    with pytest.raises(TypeError, match="cannot create"):
        torch.layout("mine")
    assert torch.zeros(2, layout=torch.sparse_coo).layout is torch.sparse_coo
    assert torch.zeros(2, layout=torch._mkldnn).layout is torch.strided  # as of `to_mkldnn`
    with pytest.raises(NotImplementedError, match="no function makes tensors with it"):
        torch.zeros(2, layout=torch.jagged)


def test_channels_last_moves_elements_and_keeps_the_shape():
    x = torch.arange(120.0).reshape(2, 3, 4, 5)
    for y in (x.to(memory_format=torch.channels_last), x.clone(memory_format=torch.channels_last),
              x.contiguous(memory_format=torch.channels_last)):
        assert y.stride() == (60, 1, 15, 3) and torch.equal(x, y)
        assert y.is_contiguous(memory_format=torch.channels_last) and not y.is_contiguous()
        assert y.clone().stride() == (60, 1, 15, 3) and y.contiguous().stride() == (60, 20, 5, 1)
        assert y.contiguous(memory_format=torch.channels_last) is y
    assert not x.is_contiguous(memory_format=torch.channels_last)
    assert torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    with pytest.raises(RuntimeError, match="rank 4"):
        torch.ones(2, 3).contiguous(memory_format=torch.channels_last)
    x.requires_grad_()
    (x.to(memory_format=torch.channels_last) * 2).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2.0))


# dtypes


@pytest.mark.parametrize("name, top", [
    ("uint16", 65535), ("uint32", 4294967295), ("uint64", 18446744073709551615),
    ("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0), ("float8_e4m3fnuz", 240.0),
    ("float8_e5m2fnuz", 57344.0)])
def test_formats_to_store_numbers_in(name, top):
    d = getattr(torch, name)
    x = torch.tensor([1, 2, 3], dtype=d)
    assert x.dtype is d and x.tolist() == [1, 2, 3] and repr(d) == f"torch.{name}"
    assert torch.equal(x.to(torch.float64), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    info = torch.finfo(d) if d.is_floating_point else torch.iinfo(d)
    assert info.max == top and d.is_signed == d.is_floating_point
    assert repr(x) == (f"tensor([1., 2., 3.], dtype=torch.{name})" if d.is_floating_point
                       else f"tensor([1, 2, 3], dtype=torch.{name})")
    with pytest.raises(RuntimeError, match="Promotion for"):
        torch.promote_types(d, torch.int32)
    assert torch.promote_types(d, d) is d


def test_eight_bits_saturate_as_pytorch_does():
    x = torch.tensor([1.3, 500.0, float("inf"), -3.0, float("nan")])
    assert x.to(torch.float8_e4m3fn).float()[:4].tolist() == [1.25, 448.0, 448.0, -3.0]
    assert x.to(torch.float8_e5m2).float()[:4].tolist() == [1.25, 512.0, float("inf"), -3.0]
    assert x.to(torch.float8_e4m3fn).float()[4].isnan()
    assert torch.tensor([1.5, -3.0]).to(torch.float8_e8m0fnu).float().tolist() == [2.0, 4.0]


# old constructors


@pytest.mark.parametrize("name", NAMES)
def test_old_tensor_types(name):
    kind, dtype = getattr(torch, name), NAMES[name]
    x = kind([1, 0, 1])
    assert x.dtype is dtype and x.tolist() == [1, 0, 1] and kind(2, 3).shape == (2, 3)
    assert isinstance(x, kind) and x.type() == f"torch.{name}" and kind().shape == (0,)
    assert not any(isinstance(x, getattr(torch, n)) for n in NAMES if n != name)
    assert torch.ones(2).type(kind).dtype is torch.ones(2).type(f"torch.{name}").dtype is dtype
    assert kind.dtype is dtype and repr(kind) == f"<class 'torch.{name}'>"


def test_old_constructors_of_data():
    x = torch.ones(2)
    assert torch.FloatTensor(x).data_ptr() == x.data_ptr()
    assert torch.Tensor(torch.ones(2).long()).dtype is torch.int64
    assert torch.Tensor(torch.Size([2, 3])).shape == (2, 3) and torch.Tensor((2, 3)).shape == (2,)
    assert torch.FloatTensor(np.ones(2)).dtype is torch.float32
    assert isinstance(torch.nn.Parameter(x), torch.FloatTensor)
    for bad in (lambda: torch.FloatTensor(x.long()), lambda: torch.FloatTensor(3.5),
                lambda: torch.Tensor(2.5), lambda: torch.cuda.FloatTensor(2),
                lambda: torch.FloatTensor(2, dtype=torch.float64)):
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(ValueError, match="invalid type"):
        x.type("torch.NoTensor")
    torch.set_default_tensor_type("torch.DoubleTensor")
    try:
        assert torch.Tensor([1]).dtype is torch.zeros(1).dtype is torch.float64
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)


# devices


def test_new_tensors_go_where_they_are_told():
    for _ in range(4):  # often enough for every quick way to be taken
        torch.zeros(2), torch.randn(2), torch.arange(2.0)
    with torch.device("meta"):
        for made in (torch.zeros(2), torch.tensor([1.0, 2.0]), torch.randn(2), torch.arange(2.0),
                     torch.nn.Linear(3, 2).bias):
            assert made.device.type == "meta" and made.shape == (2,)
        assert torch.zeros(2, device="cpu").device.type == "cpu"
        with torch.device("cpu"):
            assert torch.zeros(2).tolist() == [0.0, 0.0]
        assert torch.get_default_device() == torch.device("meta")
    assert repr(torch.zeros(2, device="meta")) == "tensor(..., device='meta', size=(2,))"
    torch.set_default_device("meta")
    with torch.device("cpu"):
        assert torch.zeros(1).item() == 0
    assert torch.zeros(1).is_meta
    torch.set_default_device(None)
    assert torch.zeros(1).is_cpu and torch.get_default_device() == torch.device("cpu")
    assert torch.ones(2, 3).to("meta").shape == (2, 3)


def test_devices_that_are_not_there():
    assert torch.device("mps").type == "mps"
    for bad in (lambda: torch.zeros(2, device="mps"), lambda: torch.set_default_device("mps"),
                lambda: torch.device("nope"), lambda: torch.zeros(1, device="meta").to("cpu")):
        with pytest.raises(RuntimeError):
            bad()
    assert torch.get_default_device() == torch.device("cpu")


# facts and switches


def test_what_programs_ask_of_the_machine():
    for kind in (torch.mps, torch.xpu, torch.mtia, torch.accelerator):
        assert kind.is_available() is False and kind.device_count() == 0
        with pytest.raises(RuntimeError, match="is_available"):
            kind.synchronize()
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1
    assert torch.get_device_module("cpu") is torch.cpu
    assert torch.distributed.is_available() is torch.distributed.is_initialized() is False
    with pytest.raises(ValueError, match="process group"):
        torch.distributed.get_rank()
    assert not hasattr(torch.distributed, "Reducer")
    assert torch.backends.mps.is_built() is torch.backends.cudnn.is_available() is False


def test_cuda_is_cupys():
    try:
        import cupy  # noqa: F401
    except ImportError:
        assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
        torch.cuda.empty_cache()
        torch.cuda.manual_seed_all(3)
        assert torch.cuda.memory_allocated() == 0
        with pytest.raises(RuntimeError, match="no such device"):
            torch.cuda.current_device()
        with pytest.raises(RuntimeError):
            torch.cuda.Stream()
        with torch.cuda.device(-1):
            pass
        with (pytest.warns(UserWarning),
              pytest.warns(FutureWarning, match=r"GradScaler\(args...\)` is deprecated")):
            assert not torch.cuda.amp.GradScaler().is_enabled()


def test_switches_are_kept():
    torch.backends.cudnn.benchmark = True
    assert torch.backends.cudnn.benchmark is True
    torch.backends.cudnn.benchmark = False
    with torch.backends.cudnn.flags(enabled=False, deterministic=True):
        assert not torch.backends.cudnn.enabled and torch.backends.cudnn.deterministic
    assert torch.backends.cudnn.enabled and not torch.backends.cudnn.deterministic
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.enable_flash_sdp(False)
    assert not torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.math_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(True)
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_deterministic_debug_mode("error")
    assert torch.get_deterministic_debug_mode() == 2
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning):
        torch.set_float32_matmul_precision("low")
    torch.set_float32_matmul_precision("highest")
    assert torch.set_flush_denormal(True) is False and torch.get_num_interop_threads() == 1
    for bad in (lambda: torch.set_num_interop_threads(0),
                lambda: torch.set_deterministic_debug_mode(3)):
        with pytest.raises(RuntimeError):
            bad()


def test_symbols_are_numbers():
    assert torch.sym_int(2.7) == 2 and torch.sym_max(2, 3.0) == 3.0 and torch.sym_not(0) is True
    assert torch.sym_sum([1, 2]) == 3 and torch.sym_ite(False, 1, 2) == 2
    assert type(torch.sym_max(2, 3.0)) is type(torch.sym_min(2, 3.0)) is float
    assert not isinstance(3, torch.SymInt)
    with pytest.raises(RuntimeError, match="range"):
        torch.sym_constrain_range(3, max=2)


# eigenvalues


def test_a_few_eigenvalues():
    torch.manual_seed(0)
    a = torch.randn(9, 9, dtype=torch.float64)
    a = (a @ a.T).requires_grad_()
    b = torch.diag(torch.arange(1.0, 10.0, dtype=torch.float64))
    for largest in (True, False):
        for metric in (None, b):
            values, vectors = torch.lobpcg(a, 2, metric, largest=largest)
            space = torch.eye(9, dtype=torch.float64) if metric is None else metric
            assert torch.allclose(a @ vectors, space @ vectors * values, atol=1e-9)
            assert torch.allclose(vectors.T @ space @ vectors, torch.eye(2, dtype=torch.float64))
            assert (values[0] > values[1]) == largest
    (g,) = torch.autograd.grad(torch.lobpcg(a, 1)[0].sum(), a)
    assert torch.allclose(g, torch.lobpcg(a, 1)[1] @ torch.lobpcg(a, 1)[1].T)
    for options in ({"k": 4}, {"k": 0}):
        with pytest.raises(ValueError):
            torch.lobpcg(a, **options)


# cond


def test_cond_everywhere():
    def f(p, x):
        return torch.cond(p, lambda a: (a * 2, a + 1), lambda a: (a * 3, a - 1), (x,))

    x = torch.tensor(5.0, requires_grad=True)
    assert [t.item() for t in f(torch.tensor(True), x)] == [10.0, 6.0]
    f(torch.tensor([False]), x)[0].backward()
    assert x.grad == 3.0
    compiled = torch.compile(f)
    assert [t.item() for t in compiled(torch.tensor(False), x)] == [15.0, 4.0]
    assert [t.item() for t in compiled(torch.tensor(True), x)] == [10.0, 6.0]
    out = torch.vmap(f)(torch.tensor([True, False]), torch.tensor([1.0, 1.0]))
    assert [t.tolist() for t in out] == [[2.0, 3.0], [2.0, 0.0]]
    with pytest.raises(RuntimeError, match="different things"):
        torch.vmap(lambda p: torch.cond(p, lambda: torch.ones(2), lambda: torch.ones(3)))(
            torch.tensor([True]))
    for pred in ("1", torch.tensor([True, False])):
        with pytest.raises(RuntimeError, match="pred"):
            f(pred, x)


# compile and its surroundings


def test_a_compiled_module_is_a_module():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.5))
    compiled = torch.compile(model, mode="reduce-overhead", dynamic=False, fullgraph=True)
    x = torch.ones(4, 2)
    assert isinstance(compiled, torch.nn.Module) and compiled[0] is model[0]
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert (compiled(x) == 0).any()
    compiled.eval()  # noticed: another program
    assert not model.training and torch.allclose(compiled(x), model(x), atol=1e-6)
    compiled(x).sum().backward()
    assert torch.equal(model[0].bias.grad, torch.full((3,), 4.0))
    assert torch.nn.Sequential(compiled)(x).shape == (4, 3)
    with pytest.raises(RuntimeError, match="mode"):
        torch.compile(model, mode="fastest")
    with pytest.raises(RuntimeError, match="both"):
        torch.compile(model, mode="default", options={"triton.cudagraphs": True})
    with pytest.raises(TypeError, match="unknown options"):
        torch.compile(model, options={"no_such": 1})


def test_stances():
    class Ran:
        eagerly = 0

    def f(x):
        if not torch.compiler.is_compiling():
            Ran.eagerly += 1
        return x + 1

    compiled = torch.compile(f)
    compiled(torch.ones(2))
    assert Ran.eagerly == 0
    with torch.compiler.set_stance("force_eager"):
        compiled(torch.ones(2))
    assert Ran.eagerly == 1
    with torch.compiler.set_stance("eager_on_recompile"):
        assert compiled(torch.ones(2)).tolist() == [2.0, 2.0] and Ran.eagerly == 1
        assert compiled(torch.ones(3)).tolist() == [2.0, 2.0, 2.0] and Ran.eagerly == 2
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="again"):
        compiled(torch.ones(4))
    with pytest.raises(RuntimeError, match="stance"):
        torch.compiler.set_stance("sitting")
    torch._dynamo.reset()
    with torch._dynamo.config.patch(suppress_errors=True):
        assert torch._dynamo.config.suppress_errors
    assert not torch._dynamo.config.suppress_errors
    with torch._inductor.config.patch(max_autotune=True):
        assert torch._inductor.config.max_autotune
    assert torch._inductor.list_mode_options("default") == {}
    assert "cpp" in torch._inductor.list_options()
    assert torch.compiler.disable(f) is f and torch._dynamo.disable()(f) is f


def test_traces_are_checked_and_follow_shapes_and_gradients():
    model = torch.nn.Linear(2, 3)
    traced = torch.jit.trace(model, torch.ones(4, 2))
    x = torch.randn(7, 2)
    assert torch.allclose(traced(x), model(x), atol=1e-6) and "addmm" in traced.code
    traced(x).sum().backward()
    assert torch.equal(model.bias.grad, torch.full((3,), 7.0))
    seen = []
    assert torch.jit.trace(lambda x: (seen.append(torch.jit.is_tracing()), x * 2)[1], x)(x).shape
    assert seen[0] is True and not torch.jit.is_tracing()
    count = iter(range(1, 9))
    with pytest.raises(torch.jit.TracingCheckError, match="differs"):
        torch.jit.trace(lambda x: x * next(count), x)


def test_scripts_run_python():
    model = torch.nn.Linear(2, 3)
    scripted = torch.jit.script(model)
    assert isinstance(scripted, torch.jit.ScriptModule) and scripted.original_name == "Linear"
    assert torch.equal(scripted(torch.ones(1, 2)), model(torch.ones(1, 2)))
    assert scripted.weight is model.weight and scripted.in_features == 2
    scripted.eval()
    assert not model.training and torch.jit.freeze(scripted) is scripted

    @torch.jit.script
    def double(x: int):
        return 2 * x

    assert double(4) == 8 and "return 2 * x" in double.code and not torch.jit.is_scripting()
    assert torch.jit.wait(torch.jit.fork(double, 3)) == 6 and torch.jit.annotate(int, 1) == 1

    class Layer(torch.nn.Module):
        @torch.jit.ignore
        def one(self):
            return 1

        @torch.jit.unused
        @torch.jit.export
        def two(self):
            return 2

    assert Layer().one() == 1 and Layer().two() == 2
    for call in (lambda: scripted.save("x"), lambda: torch.jit.load("x")):
        with pytest.raises(NotImplementedError, match="archives"):
            call()


# overrides, hub, types


def test_the_protocol_for_functions_of_users():
    class Box:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function.__name__, types, args

    class Smaller(Box):
        pass

    @torch.overrides.wrap_torch_function(lambda *args: args)
    def add(*args):
        return "plain"

    box, smaller = Box(), Smaller()
    assert add(1, torch.ones(1)) == "plain"
    assert add(1, box) == ("add", (Box,), (1, box))
    assert add(box, smaller)[1] == (Smaller, Box)
    assert torch.overrides.is_tensor_like(box) and not torch.overrides.is_tensor_like(1)
    plain = torch.ones(1), torch.nn.Parameter(torch.ones(1))
    assert not torch.overrides.has_torch_function(plain)


def test_import_stays_cheap():
    import subprocess
    import sys

    code = ("import sys, pullback; bad = [n for n in ('machine', 'jit', 'amp', 'switches', "
            "'compiler', 'torch.install') if f'pullback.{n}' in sys.modules]; assert not bad, bad")
    with warnings.catch_warnings():
        subprocess.run([sys.executable, "-c", code], check=True,
                       env={"PYTHONPATH": f"{torch.__path__[0]}/.."})


def test_functions_below_those_of_layers_take_out():
    x, place = torch.linspace(-4, 4, 5), torch.empty(0)
    for name, *rest in (("hardsigmoid",), ("leaky_relu", 0.1), ("elu",), ("silu",), ("mish",),
                        ("hardswish",), ("hardtanh", -1.0, 1.0)):
        want = getattr(torch.nn.functional, name)(x, *rest)
        function = getattr(torch._C._nn, name)
        assert torch.equal(function(x, *rest), want)
        assert function(x, *rest, out=place) is place and torch.equal(place, want)
