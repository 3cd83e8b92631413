"""Pullback: differentiates Python array programs and compiles them ahead of time.

`import pullback as torch` runs ordinary PyTorch programs.  Names are resolved lazily, so importing
is cheap. Read `docs/internals.md` for the architecture, `core/` for the heart of it.
"""

from __future__ import annotations

import math as _math
import sys as _sys
import warnings as _warnings

__version__ = "0.1.0"

# array libraries warn about overflow and division by zero; PyTorch's semantics are silent
# infinities and NaNs
_warnings.filterwarnings("ignore", category=RuntimeWarning, module="pullback")

from . import tensor as _tensor
from .array import dtype as _dt
from .array import layout as _layout
from .array.device import Device as device
from .array.dtype import DType as dtype
from .array.dtype import finfo, iinfo
from .array.layout import layout, memory_format
from .array.size import Size
from .core import op as _op
from .core.handle import Tensor
from .table import catalog as _catalog

del tensor  # noqa: F821  the submodule's name; `pullback.tensor` is the function of `creation.py`
_tensor.attach()
from .interp import wrapper_subclass as _wrapper_subclass  # subclasses take part from here on

_op._watchers.append(_tensor.attach_entry)
from .table.packets import ops as _operators

for _d in (*_dt.ALL, *_dt.STORED, *_dt.UNHELD):
    globals()[_d.name] = _d
globals().update(_dt.ALIASES)
globals().update(_layout.CONSTANTS)  # strided, contiguous_format, channels_last, ...
pi, e, inf, nan, newaxis = _math.pi, _math.e, _math.inf, _math.nan, None
has_lapack = has_openmp = has_spectral = True  # what SciPy and the C backend bring along
has_mkl = False

_STORAGES = (
    "is_storage", "UntypedStorage", "TypedStorage", "DoubleStorage", "FloatStorage", "HalfStorage",
    "LongStorage", "IntStorage", "ShortStorage", "CharStorage", "ByteStorage", "BoolStorage",
    "BFloat16Storage", "ComplexDoubleStorage", "ComplexFloatStorage",
)  # fmt: skip
_LAZY = {
    "autograd": "autograd",
    "func": "func",
    "nn": "nn",
    "optim": "optim",
    "functional": "functional",
    "futures": "torch.futures",
    "_C": "torch._C",
    "__config__": "torch.build",
    "onnx": "torch.onnx",
    "ao": "ao",
    "fx": "graph",
    "export": "export",
    "compile": "compile",
    "linalg": "linalg",
    "special": "special",
    "fft": "fft",
    "signal": "signal",
    "masked": "masked",
    "sparse": "sparse",
    "nested": "nested",
    "testing": "testing",
    "utils": "utils",
    "ops": "ops",
    "errors": "errors",
    "library": "library",
    "derivatives": "derivatives",
    "aot": "aot",
    "debug": "debug",
    "cache": "compile.cache",
    "random": "random_api",
    "version": "version",
    "amp": "amp",
    "serialization": "serialization",
    "safetensors": "safetensors",
    "hub": "hub",
    "distributions": "distributions",
    "compiler": "compiler",
    "jit": "torch.jit",
    "multiprocessing": "multiprocessing",
    "overrides": "overrides",
    "profiler": "profiler",
    "types": "types",
    "_dynamo": "torch._dynamo",
    "_inductor": "torch._inductor",
    "_logging": "capture.explain",
    "__future__": "__future__",
    "windows": "signal.windows",
    "quantization": "ao.quantization",
    "torch_version": "version",
    "return_types": "return_types",
    "quasirandom": "quasirandom",
}
_FROM = {
    "no_grad": "autograd.grad_mode",
    "enable_grad": "autograd.grad_mode",
    "set_grad_enabled": "autograd.grad_mode",
    "inference_mode": "autograd.grad_mode",
    "is_grad_enabled": "autograd.grad_mode",
    "is_inference_mode_enabled": "autograd.grad_mode",
    "vmap": "func.vmap",
    "manual_seed": "random_api",
    "seed": "random_api",
    "initial_seed": "random_api",
    "get_rng_state": "random_api",
    "set_rng_state": "random_api",
    "Generator": "random_api",
    "default_generator": "random_api",
    "set_printoptions": "printing",
    "save": "serialization",
    "load": "serialization",
    "tensor": "creation",
    "as_tensor": "creation",
    "asarray": "creation",
    "from_numpy": "creation",
    "from_dlpack": "creation",
    "is_tensor": "creation",
    "numel": "creation",
    "is_floating_point": "creation",
    "is_complex": "creation",
    "set_default_dtype": "creation",
    "get_default_dtype": "creation",
    "promote_types": "creation",
    "result_type": "creation",
    "can_cast": "creation",
    "set_num_threads": "creation",
    "get_num_threads": "creation",
    "broadcast_shapes": "creation",
    "broadcast_tensors": "creation",
    "_assert": "creation",
    "typename": "creation",
    "is_nonzero": "creation",
    "frombuffer": "creation",
    "to_dlpack": "creation",
    "get_device": "creation",
    "detach_": "creation",
    "make_fx": "graph.make_fx",
    "einsum": "functional",
    "tensordot": "functional",
    "chain_matmul": "functional",
    "cdist": "functional",
    "meshgrid": "functional",
    "block_diag": "functional",
    "cartesian_prod": "functional",
    "atleast_1d": "functional",
    "atleast_2d": "functional",
    "atleast_3d": "functional",
    "unique_consecutive": "functional",
    "binary_cross_entropy_with_logits": "functional",
    "cosine_embedding_loss": "functional",
    "ctc_loss": "functional",
    "hinge_embedding_loss": "functional",
    "kl_div": "functional",
    "margin_ranking_loss": "functional",
    "triplet_margin_loss": "functional",
    "svd_lowrank": "linalg",
    "lobpcg": "linalg",
    "pca_lowrank": "linalg",
    **dict.fromkeys(_STORAGES, "storage"),
}
_NAMES = {  # the same by module
    "torch.install": "install_as_torch uninstall_as_torch",
    "amp": "GradScaler autocast",
    "amp.autocast_mode": """
        is_autocast_enabled set_autocast_enabled get_autocast_dtype set_autocast_dtype
        is_autocast_cache_enabled set_autocast_cache_enabled clear_autocast_cache
        autocast_increment_nesting autocast_decrement_nesting is_autocast_cpu_enabled
        is_autocast_ipu_enabled is_autocast_xla_enabled set_autocast_cpu_enabled
        set_autocast_ipu_enabled set_autocast_xla_enabled get_autocast_cpu_dtype
        get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype
        set_autocast_cpu_dtype set_autocast_gpu_dtype set_autocast_ipu_dtype
        set_autocast_xla_dtype
    """,
    "autograd.anomaly_mode": "set_anomaly_enabled is_anomaly_enabled is_anomaly_check_nan_enabled",
    "control": "cond while_loop",
    "library": "Tag",
    "threads.asking": "DisableTorchFunction DisableTorchFunctionSubclass",
    "sparse.construct": """
        sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
        sparse_compressed_tensor
    """,
    "quantized.construct": """
        _empty_affine_quantized _empty_per_channel_affine_quantized
        _make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor dequantize
        empty_quantized quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic
    """,
    "quantized.functions": """
        _choose_qparams_per_tensor quantized_batch_norm quantized_gru quantized_lstm
        quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
    """,
    "quantized.fbgemm": """
        choose_qparams_optimized fbgemm_linear_fp16_weight
        fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
        fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
        fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix quantized_gru_cell
        quantized_lstm_cell quantized_rnn_relu_cell quantized_rnn_tanh_cell
    """,
    "quantized.packed": "ScriptObject",
    "quantized.questions": """
        int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
        q_zero_point
    """,
    "sparse.factories": "resize_as_sparse_",
    "sparse.functions": "dsmm hsmm hspmm saddmm smm spmm sspaddmm",
    "tensor.absent_methods": "eig lstsq matrix_rank solve symeig",
    "tensor.legacy_types": """
        FloatTensor DoubleTensor HalfTensor BFloat16Tensor ByteTensor CharTensor ShortTensor
        IntTensor LongTensor BoolTensor
    """,
    "torch.futures": "Future",
    "torch.jit": "ScriptFunction ScriptModule fork wait",
    "torch.machine": """
        Event Stream accelerator backends cpu cuda distributed get_device_module mps mtia xpu
    """,
    "switches": """
        AcceleratorError OutOfMemoryError
        are_deterministic_algorithms_enabled get_default_device get_deterministic_debug_mode
        get_float32_matmul_precision get_num_interop_threads
        is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_default_device
        set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
        set_flush_denormal set_num_interop_threads set_warn_always
        use_deterministic_algorithms
    """,
    "symbolic.number": """
        SymBool SymFloat SymInt sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not
        sym_sqrt sym_sum _sym_acos _sym_asin _sym_atan _sym_cos _sym_cosh _sym_log2 _sym_sin
        _sym_sinh _sym_sqrt _sym_tan _sym_tanh
    """,
    "torch.functional_tensor": """
        _disable_functionalization _enable_functionalization _freeze_functional_tensor
        _from_functional_tensor _is_functional_tensor _sync _to_functional_tensor
    """,
    "symbolic.queries": """
        _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_type
        _check_value _check_with _constrain_as_size sym_constrain_range sym_constrain_range_for_size
    """,
}
_FROM |= {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str):
    import importlib

    if name in _LAZY:
        value = importlib.import_module(f".{_LAZY[name]}", __package__)
    elif name in _FROM:
        value = getattr(importlib.import_module(f".{_FROM[name]}", __package__), name)
    elif name in _files() and name != "torch":  # before the table: it looks everywhere
        value = importlib.import_module(f".{name}", __package__)
    elif name in _operators:
        value = getattr(_operators, name)
    elif name == "__all__":
        value = _exported()
    elif name == "torch":  # PyTorch contains itself, and programs say `torch.torch`
        value = importlib.import_module(__package__)
    else:
        absent = importlib.import_module(".absent", __package__)
        value = absent.modules(name) if name in absent.MODULES else absent.find("", name)
        if value is None:
            value = importlib.import_module(".facade", __package__).elsewhere("pullback", name)
    globals()[name] = value
    return value


def _files() -> frozenset[str]:
    """The files and packages of this package, by their names."""
    global _found
    if _found is None:
        import pkgutil

        _found = frozenset([m.name for m in pkgutil.iter_modules(__path__)])
    return _found


_found: frozenset[str] | None = None


def _exported() -> list[str]:
    """What `from pullback import *` brings, as PyTorch has it: all public names but modules."""
    modules = {name for name, value in globals().items() if type(value) is type(_sys)}
    return [name for name in sorted({*dir(_sys.modules["pullback"]), *_writing()})
            if name[0] != "_" and (name == "compile" or name not in modules | {*_LAZY})]


class _Package(type(_sys)):
    """This module: who copies `vars(pullback)` gets all of its names, loaded then."""

    @property
    def __dict__(self) -> dict:
        for name in {*_later(), *_not_listed()} - globals().keys():
            __getattr__(name)
        return globals()

    def __setattr__(self, name: str, value: object) -> None:
        if name != "torch":  # the folder of that name is not what programs mean by `torch.torch`
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*globals(), *_later(), *_op.families.known()})


def _later() -> set[str]:
    """Names that are loaded on demand."""
    return {*_LAZY, *_FROM, *(name for name, _, _, _ in _catalog.PUBLIC)}


def _writing() -> set[str]:
    """In-place operators as functions: `relu_`, `_foreach_add_`."""
    found = {f"{name}_" for name, _, _, kinds in _catalog.PUBLIC if "i" in kinds}
    return found | {f"{name}_" for name, _, _, _ in _catalog.PUBLIC
                    if name.startswith("_foreach_") and hasattr(_operators, f"{name}_")}


def _not_listed() -> set[str]:
    """Names that `dir` does not show, and PyTorch's package holds."""
    import importlib

    places = importlib.import_module("pullback.torch.install").PLACES
    modules = {path[6:] for path in places if path.startswith("torch._") and path.count(".") == 1}
    return {"torch", "__all__", *_writing(), *modules}


_sys.modules[__name__].__class__ = _Package


class _Below:
    """Asked by Python's import system when no file is found: PyTorch's paths below this package."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None):
        if not fullname.startswith("pullback."):
            return None
        import importlib

        return importlib.import_module("pullback.torch.install").spec_below(fullname)


class _Renamed:
    """For programs that say `sys.modules["torch"] = pullback`: files below must not load twice.

    Nor must those of folders that PyTorch has under another name.
    """

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None):
        if fullname[:11] == "pullback.fx" and fullname[11:12] in (".", ""):
            return _Below.find_spec(fullname)
        if fullname[:6] != "torch." or _sys.modules.get("torch") is not _sys.modules["pullback"]:
            return None
        import importlib

        return importlib.import_module("pullback.torch.install").renamed(fullname, path)


from .memory import sending as _sending  # tells `multiprocessing` how tensors are sent

_sys.meta_path.append(_Below)
_sys.meta_path.insert(0, _Renamed)
