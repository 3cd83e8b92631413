"""Types of the package's names. Made from the operator table by tools/gen_stubs.py."""

# mypy: disable-error-code="override,misc,overload-overlap,overload-cannot-match"
from collections.abc import Callable as Callable, Iterator as Iterator, Sequence as Sequence
from typing import Any as Any, NamedTuple as _NamedTuple, overload as _overload

import numpy as _np
from pullback.array.device import Device as _device
from pullback.array.dtype import DType as _dtype
from pullback.array.size import Size as Size

# Names of builtin types that the package or Tensor use for something else.
_bool = bool
_complex = complex
_float = float
_int = int
_str = str
_type = type
_Number = _int | _float | _bool | _complex
device = _device
dtype = _dtype

from pullback.errors import DeviceError as AcceleratorError
from pullback.threads.asking import DisableTorchFunction as DisableTorchFunction
from pullback.threads.asking import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from pullback.torch.machine import Event as Event
from pullback.torch.futures import Future as Future
from pullback.array.generator import Generator as Generator
from pullback.amp.grad_scaler import GradScaler as GradScaler
from builtins import MemoryError as OutOfMemoryError
from pullback.torch.jit import ScriptFunction as ScriptFunction
from pullback.torch.jit import ScriptModule as ScriptModule
from pullback.quantized.packed import ScriptObject as ScriptObject
from pullback.torch.machine import Stream as Stream
from pullback.symbolic.number import SymBool as SymBool
from pullback.symbolic.number import SymFloat as SymFloat
from pullback.symbolic.number import SymInt as SymInt
from pullback.table.tags import Tag as Tag
from pullback.storage import TypedStorage as TypedStorage
from pullback.storage import UntypedStorage as UntypedStorage
from pullback import amp as amp
from pullback import ao as ao
from pullback import aot as aot
from pullback.amp.autocast_mode import autocast as autocast
from pullback import autograd as autograd
from pullback.compile import cache as cache
from pullback import compiler as compiler
from pullback import debug as debug
from pullback import derivatives as derivatives
from pullback import distributions as distributions
from pullback.autograd.grad_mode import enable_grad as enable_grad
from pullback import errors as errors
from pullback import export as export
from pullback import fft as fft
from pullback.array.dtype import finfo as finfo
from pullback import func as func
from pullback import functional as functional
from pullback.torch import futures as futures
from pullback import graph as fx
from pullback import hub as hub
from pullback.array.dtype import iinfo as iinfo
from pullback.autograd.grad_mode import inference_mode as inference_mode
from pullback.torch import jit as jit
from pullback.array.layout import layout as layout
from pullback import library as library
from pullback import linalg as linalg
from pullback import masked as masked
from pullback.array.layout import memory_format as memory_format
from pullback import multiprocessing as multiprocessing
from pullback import nested as nested
from pullback import nn as nn
from pullback.autograd.grad_mode import no_grad as no_grad
from pullback.torch import onnx as onnx
from pullback import ops as ops
from pullback import optim as optim
from pullback import overrides as overrides
from pullback import profiler as profiler
from pullback.ao import quantization as quantization
from pullback import quasirandom as quasirandom
from pullback import random_api as random
from pullback import return_types as return_types
from pullback import safetensors as safetensors
from pullback import serialization as serialization
from pullback.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from pullback import signal as signal
from pullback import sparse as sparse
from pullback import special as special
from pullback import testing as testing
from pullback import threads as threads
from pullback import version as torch_version
from pullback import types as types
from pullback import utils as utils
from pullback import version as version
from pullback.signal import windows as windows
from pullback.core.handle import Tensor as Tensor
from pullback.core.handle import _LU_pivots_infos as _LU_pivots_infos
from pullback.core.handle import _P_L_U as _P_L_U
from pullback.core.handle import _Q_R as _Q_R
from pullback.core.handle import _U_S_V as _U_S_V
from pullback.core.handle import _a_tau as _a_tau
from pullback.core.handle import _hist_bin_edges as _hist_bin_edges
from pullback.core.handle import _mantissa_exponent as _mantissa_exponent
from pullback.core.handle import _min_max as _min_max
from pullback.core.handle import _output_mask as _output_mask
from pullback.core.handle import _sign_logabsdet as _sign_logabsdet
from pullback.core.handle import _solution_cloned_coefficient as _solution_cloned_coefficient
from pullback.core.handle import _values_indices as _values_indices

__version__: _str
BFloat16Storage = TypedStorage
BFloat16Tensor = Tensor
BoolStorage = TypedStorage
BoolTensor = Tensor
ByteStorage = TypedStorage
ByteTensor = Tensor
CharStorage = TypedStorage
CharTensor = Tensor
ComplexDoubleStorage = TypedStorage
ComplexFloatStorage = TypedStorage
DoubleStorage = TypedStorage
DoubleTensor = Tensor
FloatStorage = TypedStorage
FloatTensor = Tensor
HalfStorage = TypedStorage
HalfTensor = Tensor
IntStorage = TypedStorage
IntTensor = Tensor
LongStorage = TypedStorage
LongTensor = Tensor
ShortStorage = TypedStorage
ShortTensor = Tensor
accelerator: Any
annotations: Any
def are_deterministic_algorithms_enabled() -> _bool: ...
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor: ...
def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None, requires_grad: _bool = False) -> Tensor: ...
def atleast_1d(*tensors: Tensor) -> Any: ...
def atleast_2d(*tensors: Tensor) -> Any: ...
def atleast_3d(*tensors: Tensor) -> Any: ...
def autocast_decrement_nesting() -> _int: ...
def autocast_increment_nesting() -> _int: ...
backends: Any
bfloat16: _dtype
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: _int = 0) -> Tensor: ...
bits16: _dtype
bits1x8: _dtype
bits2x4: _dtype
bits4x2: _dtype
bits8: _dtype
def block_diag(*tensors: Tensor) -> Tensor: ...
bool: _dtype
def broadcast_shapes(*shapes: Any) -> Size: ...
def broadcast_tensors(*tensors: Any) -> Any: ...
def can_cast(from_: Any, to: Any) -> _bool: ...
def cartesian_prod(*tensors: Tensor) -> Tensor: ...
def cdist(x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: _str = 'use_mm_for_euclid_dist_if_necessary') -> Tensor: ...
cdouble: _dtype
cfloat: _dtype
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor: ...
channels_last: Any
channels_last_3d: Any
def choose_qparams_optimized(input: Tensor, numel: _int, n_bins: _int, ratio: _float, bit_width: _int) -> tuple[Tensor, Tensor]: ...
def clear_autocast_cache() -> None: ...
def compile(model: Any = None, *, fullgraph: _bool = False, dynamic: Any = None, backend: Any = 'native', mode: Any = None, options: Any = None, disable: _bool = False, memory: _int | _float | _str | None = None, check: _bool | None = None) -> Any: ...
complex128: _dtype
complex32: _dtype
complex64: _dtype
def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: Any = ...) -> Any: ...
contiguous_format: Any
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, reduction: _int = 0) -> Tensor: ...
cpu: Any
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Sequence[_int] | Tensor, target_lengths: Sequence[_int] | Tensor, blank: _int = 0, reduction: _int = 0, zero_infinity: _bool = False) -> Tensor: ...
cuda: Any
default_generator: Any
def dequantize(input: Any) -> Any: ...
def detach_(input: Tensor) -> Tensor: ...
distributed: Any
double: _dtype
def dsmm(input: Any, mat2: Any) -> Any: ...
e: _float
def eig(*args: Any, **kwargs: Any) -> Any: ...
def einsum(*args: Any) -> Tensor: ...
def empty_quantized(size: Any, qtensor: Any, *, dtype: Any = None, **ignored: Any) -> Any: ...
def fbgemm_linear_fp16_weight(input: Tensor, packed_weight: Tensor, bias: Tensor) -> Tensor: ...
def fbgemm_linear_fp16_weight_fp32_activation(input: Tensor, packed_weight: Tensor, bias: Tensor | None) -> Tensor: ...
def fbgemm_linear_int8_weight(input: Tensor, weight: Tensor, packed: Tensor, col_offsets: Tensor, weight_scale: _float, weight_zero_point: _int, bias: Tensor) -> Tensor: ...
def fbgemm_linear_int8_weight_fp32_activation(input: Tensor, weight: Tensor, packed: Tensor, col_offsets: Tensor, weight_scale: _float, weight_zero_point: _int, bias: Tensor) -> Tensor: ...
def fbgemm_linear_quantize_weight(input: Tensor) -> tuple[Tensor, Tensor, _float, _int]: ...
def fbgemm_pack_gemm_matrix_fp16(input: Tensor) -> Tensor: ...
def fbgemm_pack_quantized_matrix(input: Tensor, K: _int | None = None, N: _int | None = None) -> Tensor: ...
float: _dtype
float16: _dtype
float32: _dtype
float4_e2m1fn_x2: _dtype
float64: _dtype
float8_e4m3fn: _dtype
float8_e4m3fnuz: _dtype
float8_e5m2: _dtype
float8_e5m2fnuz: _dtype
float8_e8m0fnu: _dtype
def fork(func: Any, *args: Any, **kwargs: Any) -> Any: ...
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: _bool | None = None) -> Tensor: ...
def from_numpy(array: _np.ndarray) -> Tensor: ...
def frombuffer(buffer: Any, *, dtype: Any, count: _int = -1, offset: _int = 0, requires_grad: _bool = False) -> Tensor: ...
def get_autocast_cpu_dtype() -> Any: ...
def get_autocast_dtype(device_type: _str) -> Any: ...
def get_autocast_gpu_dtype() -> Any: ...
def get_autocast_ipu_dtype() -> Any: ...
def get_autocast_xla_dtype() -> Any: ...
def get_default_device() -> Any: ...
def get_default_dtype() -> Any: ...
def get_deterministic_debug_mode() -> _int: ...
def get_device(input: Tensor) -> _int: ...
def get_device_module(device: Any = None) -> Any: ...
def get_float32_matmul_precision() -> _str: ...
def get_num_interop_threads() -> _int: ...
def get_num_threads() -> _int: ...
def get_rng_state() -> Tensor: ...
half: _dtype
has_lapack: Any
has_mkl: Any
has_openmp: Any
has_spectral: Any
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: _float = 1.0, reduction: _int = 0) -> Tensor: ...
def hsmm(mat1: Any, mat2: Tensor) -> Any: ...
def hspmm(mat1: Any, mat2: Tensor) -> Any: ...
inf: _float
def initial_seed() -> _int: ...
def install_as_torch() -> Any: ...
int: _dtype
int1: _dtype
int16: _dtype
int2: _dtype
int3: _dtype
int32: _dtype
int4: _dtype
int5: _dtype
int6: _dtype
int64: _dtype
int7: _dtype
int8: _dtype
def int_repr(input: Tensor) -> Any: ...
def is_anomaly_check_nan_enabled() -> _bool: ...
def is_anomaly_enabled() -> _bool: ...
def is_autocast_cache_enabled() -> _bool: ...
def is_autocast_cpu_enabled() -> _bool: ...
def is_autocast_enabled(device_type: _str = 'cuda') -> _bool: ...
def is_autocast_ipu_enabled() -> _bool: ...
def is_autocast_xla_enabled() -> _bool: ...
def is_complex(input: Tensor) -> _bool: ...
def is_deterministic_algorithms_warn_only_enabled() -> _bool: ...
def is_floating_point(input: Tensor) -> _bool: ...
def is_grad_enabled() -> _bool: ...
def is_inference_mode_enabled() -> _bool: ...
def is_nonzero(input: Tensor) -> _bool: ...
def is_storage(obj: Any) -> _bool: ...
def is_tensor(obj: Any) -> _bool: ...
def is_warn_always_enabled() -> _bool: ...
jagged: Any
def kl_div(input: Tensor, target: Tensor, reduction: _int = 0, *, log_target: _bool = False) -> Tensor: ...
legacy_contiguous_format: Any
def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: _bool | None = None, mmap: _bool | None = None, **pickle_load_args: Any) -> Any: ...
def lobpcg(A: Tensor, k: _int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: _int | None = None, iK: Tensor | None = None, niter: _int | None = None, tol: _float | None = None, largest: _bool | None = None, method: _str | None = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None) -> Any: ...
long: _dtype
def lstsq(*args: Any, **kwargs: Any) -> Any: ...
def make_fx(f: Callable, decomposition_table: dict | None = None, tracing_mode: _str = 'real', _allow_non_fake_inputs: _bool = False, *, pre_dispatch: _bool = False, record_module_stack: _bool = False, _allow_fake_constant: _bool = False, _error_on_data_dependent_ops: _bool = True, record_stack_traces: _bool = False, proxy_module_inputs: _bool = False) -> Any: ...
def manual_seed(seed: _int) -> Any: ...
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, reduction: _int = 0) -> Tensor: ...
def matrix_rank(*args: Any, **kwargs: Any) -> Any: ...
def meshgrid(*tensors: Tensor, indexing: _str | None = None) -> Any: ...
mps: Any
mtia: Any
nan: _float
newaxis: Any
def numel(input: Tensor) -> _int: ...
def pca_lowrank(A: Tensor, q: _int | None = None, center: _bool = True, niter: _int = 2) -> Any: ...
per_channel_affine: Any
per_channel_affine_float_qparams: Any
per_channel_symmetric: Any
per_tensor_affine: Any
per_tensor_symmetric: Any
pi: _float
preserve_format: Any
def promote_types(type1: Any, type2: Any) -> Any: ...
def q_per_channel_axis(input: Tensor) -> Any: ...
def q_per_channel_scales(input: Tensor) -> Any: ...
def q_per_channel_zero_points(input: Tensor) -> Any: ...
def q_scale(input: Tensor) -> Any: ...
def q_zero_point(input: Tensor) -> Any: ...
qint32: _dtype
qint8: _dtype
def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: _int, dtype: Any, *, straight_through: _bool = False) -> Any: ...
def quantize_per_tensor(input: Any, scale: Any = None, zero_point: Any = None, dtype: Any = None, *, straight_through: _bool = False, scales: Any = None, zero_points: Any = None, tensors: Any = None) -> Any: ...
def quantize_per_tensor_dynamic(input: Tensor, dtype: Any, reduce_range: _bool, *, straight_through: _bool = False) -> Any: ...
def quantized_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: _float, output_scale: _float, output_zero_point: _int) -> Tensor: ...
def quantized_gru(input: Tensor, *args: Any, dtype: Any = None, use_dynamic: _bool = False) -> tuple: ...
def quantized_gru_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor: ...
def quantized_lstm(input: Tensor, *args: Any, dtype: Any = None, use_dynamic: _bool = False) -> tuple: ...
def quantized_lstm_cell(input: Tensor, hx: Any, *weights: Any) -> tuple[Tensor, Tensor]: ...
def quantized_max_pool1d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = 0, dilation: Any = 1, ceil_mode: _bool = False) -> Tensor: ...
def quantized_max_pool2d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = 0, dilation: Any = 1, ceil_mode: _bool = False) -> Tensor: ...
def quantized_max_pool3d(input: Tensor, kernel_size: Any, stride: Any = ..., padding: Any = 0, dilation: Any = 1, ceil_mode: _bool = False) -> Tensor: ...
def quantized_rnn_relu_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor: ...
def quantized_rnn_tanh_cell(input: Tensor, hx: Tensor, *weights: Any) -> Tensor: ...
quint2x4: _dtype
quint4x2: _dtype
quint8: _dtype
def resize_as_sparse_(t: Tensor, other: Any) -> Tensor: ...
def result_type(tensor1: Any, tensor2: Any) -> Any: ...
def saddmm(input: Any, mat1: Any, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any: ...
def save(obj: object, f: Any, pickle_module: Any = ..., pickle_protocol: _int = 2, _use_new_zipfile_serialization: _bool = True, _disable_byteorder_record: _bool = False) -> None: ...
def seed() -> _int: ...
def set_anomaly_enabled(enabled: _bool, check_nan: _bool = True) -> None: ...
def set_autocast_cache_enabled(enabled: _bool) -> None: ...
def set_autocast_cpu_dtype(dtype: Any) -> None: ...
def set_autocast_cpu_enabled(enabled: _bool | None = None) -> None: ...
def set_autocast_dtype(device_type: _str, dtype: Any) -> None: ...
def set_autocast_enabled(device_type: Any, enabled: _bool | None = None) -> None: ...
def set_autocast_gpu_dtype(dtype: Any) -> None: ...
def set_autocast_ipu_dtype(dtype: Any) -> None: ...
def set_autocast_ipu_enabled(enabled: _bool | None = None) -> None: ...
def set_autocast_xla_dtype(dtype: Any) -> None: ...
def set_autocast_xla_enabled(enabled: _bool | None = None) -> None: ...
def set_default_device(device: Any) -> None: ...
def set_default_dtype(d: Any) -> None: ...
def set_default_tensor_type(t: Any) -> None: ...
def set_deterministic_debug_mode(debug_mode: _int | _str) -> None: ...
def set_float32_matmul_precision(precision: _str) -> None: ...
def set_flush_denormal(mode: _bool) -> _bool: ...
def set_num_interop_threads(count: _int) -> None: ...
def set_num_threads(count: _int) -> None: ...
def set_printoptions(precision: _int | None = None, threshold: _float | None = None, edgeitems: _int | None = None, linewidth: _int | None = None, profile: _str | None = None, sci_mode: _bool | None = None) -> None: ...
def set_rng_state(new_state: Tensor) -> None: ...
def set_warn_always(flag: _bool) -> None: ...
short: _dtype
def smm(input: Any, mat: Tensor) -> Any: ...
def solve(*args: Any, **kwargs: Any) -> Any: ...
sparse_bsc: Any
def sparse_bsc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor: ...
sparse_bsr: Any
def sparse_bsr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor: ...
def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor: ...
sparse_coo: Any
def sparse_coo_tensor(indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None, is_coalesced: _bool | None = None) -> Tensor: ...
sparse_csc: Any
def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor: ...
sparse_csr: Any
def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: _bool = False, requires_grad: _bool = False, check_invariants: _bool | None = None) -> Tensor: ...
def spmm(input: Any, mat2: Any) -> Any: ...
def sspaddmm(input: Any, mat1: Any, mat2: Any, *old: Any, beta: Any = 1, alpha: Any = 1) -> Any: ...
strided: Any
def svd_lowrank(A: Tensor, q: _int | None = 6, niter: _int | None = 2, M: Tensor | None = None) -> Any: ...
def sym_constrain_range(size: Any, *, min: _int | None = None, max: _int | None = None) -> None: ...
def sym_constrain_range_for_size(size: Any, *, min: _int | None = None, max: _int | None = None) -> None: ...
def sym_float(a: Any) -> Any: ...
def sym_fresh_size(size: Any) -> Any: ...
def sym_int(a: Any) -> Any: ...
def sym_ite(b: Any, t: Any, f: Any) -> Any: ...
def sym_max(a: Any, b: Any) -> Any: ...
def sym_min(a: Any, b: Any) -> Any: ...
def sym_not(a: Any) -> Any: ...
def sym_sqrt(a: Any) -> Any: ...
def sym_sum(args: Any) -> Any: ...
def symeig(*args: Any, **kwargs: Any) -> Any: ...
def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False) -> Tensor: ...
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor: ...
def to_dlpack(tensor: Tensor) -> Any: ...
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2.0, eps: _float = 1e-06, swap: _bool = False, reduction: _int = 0) -> Tensor: ...
def typename(obj: Any) -> _str: ...
uint1: _dtype
uint16: _dtype
uint2: _dtype
uint3: _dtype
uint32: _dtype
uint4: _dtype
uint5: _dtype
uint6: _dtype
uint64: _dtype
uint7: _dtype
uint8: _dtype
def uninstall_as_torch() -> None: ...
def unique_consecutive(input: Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any: ...
def use_deterministic_algorithms(mode: _bool, *, warn_only: _bool = False) -> None: ...
def vmap(func: Any, in_dims: Any = 0, out_dims: Any = 0, randomness: _str = 'error', *, chunk_size: _int | None = None) -> Any: ...
def wait(future: Any) -> Any: ...
def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: Any) -> Any: ...
xpu: Any
def abs(input: Tensor, *, out: Any = None) -> Tensor: """Absolute value of each element; modulus of a complex one."""
def absolute(input: Tensor, *, out: Any = None) -> Tensor: """Absolute value of each element; modulus of a complex one."""
def acos(input: Tensor, *, out: Any = None) -> Tensor: """Angle whose cosine is the element."""
def arccos(input: Tensor, *, out: Any = None) -> Tensor: """Angle whose cosine is the element."""
def acosh(input: Tensor, *, out: Any = None) -> Tensor: """Number whose hyperbolic cosine is the element."""
def arccosh(input: Tensor, *, out: Any = None) -> Tensor: """Number whose hyperbolic cosine is the element."""
@_overload
def adaptive_avg_pool1d(input: Tensor, output_size: _int | Sequence[_int], *, out: Any = None) -> Tensor: """Means over as many windows of the last dim as the result has elements."""
@_overload
def adaptive_avg_pool1d(input: Tensor, *output_size: _int, out: Any = None) -> Tensor: ...
@_overload
def adaptive_max_pool1d(input: Tensor, output_size: _int | Sequence[_int], *, out: Any = None) -> tuple[Tensor, Tensor]: """Maxima over as many windows of the last dim as the result has elements, and their places."""
@_overload
def adaptive_max_pool1d(input: Tensor, *output_size: _int, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def add(input: Tensor, other: Tensor | _Number, *, alpha: _Number = 1, out: Any = None) -> Tensor: """Sum of two tensors, the second times `alpha`."""
@_overload
def add(input: Tensor, other: _Number, alpha: _Number = 1, *, out: Any = None) -> Tensor: ...
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Any = None) -> Tensor: """A matrix plus the sum of the products of two stacks of matrices, each scaled."""
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1, out: Any = None) -> Tensor: """self + value * tensor1 / tensor2."""
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1, out: Any = None) -> Tensor: """self + value * tensor1 * tensor2."""
@_overload
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Any = None) -> Tensor: """A matrix plus the product of two others, each scaled."""
@_overload
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: _dtype, *, beta: _Number = 1, alpha: _Number = 1, out: Any = None) -> Tensor: ...
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Any = None) -> Tensor: """A vector plus a matrix times a vector, each scaled."""
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Any = None) -> Tensor: """A matrix plus the outer product of two vectors, each scaled."""
def adjoint(input: Tensor, *, out: Any = None) -> Tensor: """Conjugate transpose of the last two dims."""
def affine_grid_generator(theta: Tensor, size: Sequence[_int], align_corners: _bool, *, out: Any = None) -> Tensor: """The points of a regular grid on [-1, 1], moved by the affine map of each image."""
def alias(input: Tensor, *, out: Any = None) -> Tensor: """The same tensor under another name."""
def alias_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of what `alias` shows."""
@_overload
def all(input: Tensor, *, out: Any = None) -> Tensor: """Whether all elements are nonzero."""
@_overload
def all(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> Tensor: ...
@_overload
def all(input: Tensor, dim: Sequence[_int] | None = None, keepdim: _bool = False, *, out: Any = None) -> Tensor: ...
def allclose(input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False, *, out: Any = None) -> _bool: """Whether all elements of two tensors are close (a Python bool)."""
def alpha_dropout(input: Tensor, p: _float, train: _bool, *, out: Any = None) -> Tensor: """Dropout that keeps the mean and variance of self-normalising networks."""
def amax(input: Tensor, dim: _int | Sequence[_int] = ..., keepdim: _bool = False, *, out: Any = None) -> Tensor: """Largest elements over some dims; ties share the gradient."""
def amin(input: Tensor, dim: _int | Sequence[_int] = ..., keepdim: _bool = False, *, out: Any = None) -> Tensor: """Smallest elements over some dims; ties share the gradient."""
def aminmax(input: Tensor, *, dim: _int | None = None, keepdim: _bool = False, out: Any = None) -> _min_max: """Smallest and largest elements, of all or along one dim."""
def angle(input: Tensor, *, out: Any = None) -> Tensor: """Phase of each element: for a real one 0, or pi where it is negative."""
@_overload
def any(input: Tensor, *, out: Any = None) -> Tensor: """Whether any element is nonzero."""
@_overload
def any(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> Tensor: ...
@_overload
def any(input: Tensor, dim: Sequence[_int] | None = None, keepdim: _bool = False, *, out: Any = None) -> Tensor: ...
@_overload
def arange(end: _Number, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """The numbers from 0 up to but not including `end`."""
@_overload
def arange(start: _Number, end: _Number, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def arange(start: _Number, end: _Number, step: _Number = 1, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
def argmax(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Any = None) -> Tensor: """Where the largest element is, along a dim or in the flattened tensor."""
def argmin(input: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Any = None) -> Tensor: """Where the smallest element is, along a dim or in the flattened tensor."""
@_overload
def argsort(input: Tensor, dim: _int = -1, descending: _bool = False, *, out: Any = None) -> Tensor: """Where the elements in order along a dim were."""
@_overload
def argsort(input: Tensor, *, stable: _bool, dim: _int = -1, descending: _bool = False, out: Any = None) -> Tensor: ...
def argwhere(input: Tensor, *, out: Any = None) -> Tensor: """Another name of `nonzero`."""
def as_strided(input: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None, *, out: Any = None) -> Tensor: """The tensor's memory read with the given sizes, strides and offset."""
def as_strided_copy(input: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None, *, out: Any = None) -> Tensor: """A copy of what `as_strided` shows."""
def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None, *, out: Any = None) -> Tensor: """A copy of `self` with `src` written where `as_strided` reads."""
def asin(input: Tensor, *, out: Any = None) -> Tensor: """Angle whose sine is the element."""
def arcsin(input: Tensor, *, out: Any = None) -> Tensor: """Angle whose sine is the element."""
def asinh(input: Tensor, *, out: Any = None) -> Tensor: """Number whose hyperbolic sine is the element."""
def arcsinh(input: Tensor, *, out: Any = None) -> Tensor: """Number whose hyperbolic sine is the element."""
def atan(input: Tensor, *, out: Any = None) -> Tensor: """Angle whose tangent is the element."""
def arctan(input: Tensor, *, out: Any = None) -> Tensor: """Angle whose tangent is the element."""
def atan2(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Angle of the point with ordinate `self` and abscissa `other`."""
def arctan2(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Angle of the point with ordinate `self` and abscissa `other`."""
def atanh(input: Tensor, *, out: Any = None) -> Tensor: """Number whose hyperbolic tangent is the element."""
def arctanh(input: Tensor, *, out: Any = None) -> Tensor: """Number whose hyperbolic tangent is the element."""
def avg_pool1d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., ceil_mode: _bool = False, count_include_pad: _bool = True, *, out: Any = None) -> Tensor: """Means over sliding windows of the last dim."""
@_overload
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: Any = None) -> Tensor: """A stack of matrices plus the products of two other stacks, each scaled."""
@_overload
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, out_dtype: _dtype, *, beta: _Number = 1, alpha: _Number = 1, out: Any = None) -> Tensor: ...
@_overload
def bartlett_window(window_length: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: """A triangle with zeros at its ends."""
@_overload
def bartlett_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, momentum: _float, eps: _float, cudnn_enabled: _bool, *, out: Any = None) -> Tensor: """Zero mean and unit variance of each channel (dim 1), then scale and shift."""
def batch_norm_backward_elemt(grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, sum_dy: Tensor, sum_dy_xmu: Tensor, count: Tensor, *, out: Any = None) -> Tensor: """Gradient of the input from the sums of batch_norm_backward_reduce over all batches."""
def batch_norm_backward_reduce(grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, input_g: _bool, weight_g: _bool, bias_g: _bool, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]: """Sums over a batch that its gradients need: of g and g (x - mean), and for the parameters."""
def batch_norm_elemt(input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: _float, *, out: Any = None) -> Tensor: """Batch normalisation with given mean and 1 / deviation."""
def batch_norm_gather_stats(input: Tensor, mean: Tensor, invstd: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: _float, eps: _float, count: _int, *, out: Any = None) -> tuple[Tensor, Tensor]: """batch_norm_gather_stats_with_counts of batches of one size."""
def batch_norm_gather_stats_with_counts(input: Tensor, mean: Tensor, invstd: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: _float, eps: _float, counts: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]: """Mean and 1 / deviation of all batches, from those of each and their sizes."""
def batch_norm_stats(input: Tensor, eps: _float, *, out: Any = None) -> tuple[Tensor, Tensor]: """Mean and 1 / deviation of each channel."""
def batch_norm_update_stats(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: _float, *, out: Any = None) -> tuple[Tensor, Tensor]: """Mean and biased variance of each channel, and an update of the running statistics."""
@_overload
def bernoulli(input: Tensor, *, generator: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Ones with the probabilities that a tensor gives, else zeros."""
@_overload
def bernoulli(input: Tensor, p: Tensor, *, generator: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def bernoulli(input: Tensor, p: _float = 0.5, *, generator: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Any = None) -> Tensor: """x1^T W x2 + b for each row of the weight and each pair of vectors."""
def bincount(input: Tensor, weights: Tensor | None = None, minlength: _int = 0, *, out: Any = None) -> Tensor: """How often each small integer occurs, optionally weighted."""
def binomial(count: Tensor, prob: Tensor, generator: Any = None, *, out: Any = None, requires_grad: _bool = False) -> Tensor: """Successes of trials whose numbers and probabilities tensors give."""
@_overload
def bitwise_and(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Bits set in both integers."""
@_overload
def bitwise_and(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def bitwise_and(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def bitwise_left_shift(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Each integer with its bits moved up; bits that leave are lost."""
@_overload
def bitwise_left_shift(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def bitwise_left_shift(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
def bitwise_not(input: Tensor, *, out: Any = None) -> Tensor: """Each integer with all bits inverted; negation of a bool."""
@_overload
def bitwise_or(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Bits set in one of two integers."""
@_overload
def bitwise_or(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def bitwise_or(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def bitwise_right_shift(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Each integer with its bits moved down; the sign is kept."""
@_overload
def bitwise_right_shift(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def bitwise_right_shift(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def bitwise_xor(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Bits in which two integers differ."""
@_overload
def bitwise_xor(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def bitwise_xor(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def blackman_window(window_length: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: """0.42 - 0.5 cos(2 pi u) + 0.08 cos(4 pi u), u from 0 to 1."""
@_overload
def blackman_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
def bmm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor: """Matrix products of two stacks of matrices."""
@_overload
def broadcast_to(input: Tensor, size: Sequence[_int], *, out: Any = None) -> Tensor: """Another name of `expand`."""
@_overload
def broadcast_to(input: Tensor, *size: _int, out: Any = None) -> Tensor: ...
@_overload
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Any = None) -> Tensor: """The interval between sorted boundaries that each element lies in."""
@_overload
def bucketize(input: _Number, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Any = None) -> Tensor: ...
def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Any = None) -> Tensor: """Tensors joined along a dim."""
def ccol_indices_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of where each column begins."""
def ceil(input: Tensor, *, out: Any = None) -> Tensor: """Smallest integer not below each element."""
def celu(input: Tensor, alpha: _Number = 1.0, *, out: Any = None) -> Tensor: """x where positive, else alpha (exp(x / alpha) - 1)."""
def channel_shuffle(input: Tensor, groups: _int, *, out: Any = None) -> Tensor: """Channels in groups are interleaved: the first of each group, then the second of each, ..."""
def cholesky(input: Tensor, upper: _bool = False, *, out: Any = None) -> Tensor: """Triangular factor of a positive-definite matrix (older name)."""
def cholesky_inverse(input: Tensor, upper: _bool = False, *, out: Any = None) -> Tensor: """Inverse of a matrix that is given by its Cholesky factor."""
def cholesky_solve(input: Tensor, input2: Tensor, upper: _bool = False, *, out: Any = None) -> Tensor: """Solution of a system whose matrix is given by its Cholesky factor."""
def chunk(input: Tensor, chunks: _int, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """At most `chunks` pieces of equal size; the last may be smaller."""
@_overload
def clamp(input: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, out: Any = None) -> Tensor: """Each element moved into the range between two tensors; the upper bound wins."""
@_overload
def clamp(input: Tensor, min: _Number | None = None, max: _Number | None = None, *, out: Any = None) -> Tensor: ...
@_overload
def clip(input: Tensor, min: Tensor | None = None, max: Tensor | None = None, *, out: Any = None) -> Tensor: """Each element moved into the range between two tensors; the upper bound wins."""
@_overload
def clip(input: Tensor, min: _Number | None = None, max: _Number | None = None, *, out: Any = None) -> Tensor: ...
@_overload
def clamp_max(input: Tensor, max: Tensor, *, out: Any = None) -> Tensor: """Each element, or the other tensor's where that is smaller."""
@_overload
def clamp_max(input: Tensor, max: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def clamp_min(input: Tensor, min: Tensor, *, out: Any = None) -> Tensor: """Each element, or the other tensor's where that is larger."""
@_overload
def clamp_min(input: Tensor, min: _Number, *, out: Any = None) -> Tensor: ...
def clone(input: Tensor, *, memory_format: Any = None, out: Any = None) -> Tensor: """A copy in memory of its own."""
def col_indices_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of the columns of entries."""
def column_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: """Tensors joined along the second dim, vectors as columns."""
def combinations(input: Tensor, r: _int = 2, with_replacement: _bool = False, *, out: Any = None) -> Tensor: """All combinations of r elements of a vector, as rows."""
def complex(real: Tensor, imag: Tensor, *, out: Any = None) -> Tensor: """Complex numbers from their real and imaginary parts."""
def concat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Any = None) -> Tensor: """Another name of `cat`."""
def concatenate(tensors: Sequence[Tensor], dim: _int = 0, *, out: Any = None) -> Tensor: """Another name of `cat`."""
def conj(input: Tensor, *, out: Any = None) -> Tensor: """Complex conjugate of each element, a view; a real tensor itself."""
def conj_physical(input: Tensor, *, out: Any = None) -> Tensor: """Complex conjugate of each element, never a view."""
def constant_pad_nd(input: Tensor, pad: Sequence[_int], value: _Number = 0, *, out: Any = None) -> Tensor: """A constant border around the last dims; negative widths cut off."""
@_overload
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., groups: _int = 1, *, out: Any = None) -> Tensor: """Convolution of a signal; the batch dim may be missing."""
@_overload
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = ..., padding: _str = 'valid', dilation: _int | Sequence[_int] = ..., groups: _int = 1, *, out: Any = None) -> Tensor: ...
@_overload
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., groups: _int = 1, *, out: Any = None) -> Tensor: """Convolution of an image; the batch dim may be missing."""
@_overload
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = ..., padding: _str = 'valid', dilation: _int | Sequence[_int] = ..., groups: _int = 1, *, out: Any = None) -> Tensor: ...
@_overload
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., groups: _int = 1, *, out: Any = None) -> Tensor: """Convolution of a volume; the batch dim may be missing."""
@_overload
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = ..., padding: _str = 'valid', dilation: _int | Sequence[_int] = ..., groups: _int = 1, *, out: Any = None) -> Tensor: ...
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: _int = 0, *, out: Any = None) -> Tensor: """Convolution over the first dim of (time, batch, channel)."""
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., output_padding: _int | Sequence[_int] = ..., groups: _int = 1, dilation: _int | Sequence[_int] = ..., *, out: Any = None) -> Tensor: """Transpose of a convolution of a signal; the batch dim may be missing."""
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., output_padding: _int | Sequence[_int] = ..., groups: _int = 1, dilation: _int | Sequence[_int] = ..., *, out: Any = None) -> Tensor: """Transpose of a convolution of an image; the batch dim may be missing."""
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., output_padding: _int | Sequence[_int] = ..., groups: _int = 1, dilation: _int | Sequence[_int] = ..., *, out: Any = None) -> Tensor: """Transpose of a convolution of a volume; the batch dim may be missing."""
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[_int], padding: Sequence[_int], dilation: Sequence[_int], transposed: _bool, output_padding: Sequence[_int], groups: _int, *, out: Any = None) -> Tensor: """Convolution (or, if `transposed`, its transpose) in any number of spatial dims."""
@_overload
def copysign(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Size of the first element with the sign of the second."""
@_overload
def copysign(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
def corrcoef(input: Tensor, *, out: Any = None) -> Tensor: """Correlations of variables (rows) over observations (columns)."""
def cos(input: Tensor, *, out: Any = None) -> Tensor: """Cosine of each element."""
def cosh(input: Tensor, *, out: Any = None) -> Tensor: """Hyperbolic cosine of each element."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08, *, out: Any = None) -> Tensor: """Cosine of the angle between vectors along `dim`."""
@_overload
def count_nonzero(input: Tensor, dim: Sequence[_int], *, out: Any = None) -> Tensor: """How many elements over some dims are not zero."""
@_overload
def count_nonzero(input: Tensor, *dim: _int, out: Any = None) -> Tensor: ...
@_overload
def count_nonzero(input: Tensor, dim: _int | None = None, *, out: Any = None) -> Tensor: ...
def cov(input: Tensor, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None, out: Any = None) -> Tensor: """Covariances of variables (rows) over observations (columns), which may be weighted."""
def cross(input: Tensor, other: Tensor, dim: _int | None = None, *, out: Any = None) -> Tensor: """Cross product along `dim`, by default the first dim of size 3."""
def crow_indices_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of where each row begins."""
def cudnn_affine_grid_generator(theta: Tensor, N: _int, C: _int, H: _int, W: _int, *, out: Any = None) -> Tensor: """The points of a regular grid moved by affine maps, as cuDNN offers them."""
def cudnn_batch_norm(input: Tensor, weight: Tensor, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, exponential_average_factor: _float, epsilon: _float, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]: """`native_batch_norm` with an empty buffer behind its results, as cuDNN offers it."""
def cudnn_convolution(input: Tensor, weight: Tensor, padding: Sequence[_int], stride: Sequence[_int], dilation: Sequence[_int], groups: _int, benchmark: _bool, deterministic: _bool, allow_tf32: _bool, *, out: Any = None) -> Tensor: """`convolution` without bias, as cuDNN offers it."""
def cudnn_convolution_add_relu(input: Tensor, weight: Tensor, z: Tensor, alpha: _Number | None, bias: Tensor | None, stride: Sequence[_int], padding: Sequence[_int], dilation: Sequence[_int], groups: _int, *, out: Any = None) -> Tensor: """The relu of a convolution to which a multiple of `z` is added, as cuDNN offers it."""
def cudnn_convolution_relu(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[_int], padding: Sequence[_int], dilation: Sequence[_int], groups: _int, *, out: Any = None) -> Tensor: """The relu of a convolution, as cuDNN offers it."""
def cudnn_convolution_transpose(input: Tensor, weight: Tensor, padding: Sequence[_int], output_padding: Sequence[_int], stride: Sequence[_int], dilation: Sequence[_int], groups: _int, benchmark: _bool, deterministic: _bool, allow_tf32: _bool, *, out: Any = None) -> Tensor: """Transposed `convolution` without bias, as cuDNN offers it."""
def cudnn_grid_sampler(input: Tensor, grid: Tensor, *, out: Any = None) -> Tensor: """Values of an image between its elements, at the points of a grid, as cuDNN offers them."""
def cudnn_is_acceptable(input: Tensor, *, out: Any = None) -> _bool: """Could cuDNN take a tensor?  There is none here."""
def cummax(input: Tensor, dim: _int, *, out: Any = None) -> _values_indices: """Running maxima along a dim, and where they are."""
def cummin(input: Tensor, dim: _int, *, out: Any = None) -> _values_indices: """Running minima along a dim, and where they are."""
def cumprod(input: Tensor, dim: _int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: """Running products along a dim."""
def cumsum(input: Tensor, dim: _int, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: """Running sums along a dim."""
@_overload
def cumulative_trapezoid(y: Tensor, x: Tensor, *, dim: _int = -1, out: Any = None) -> Tensor: """Running integral along a dim by the trapezoidal rule, at given sample points."""
@_overload
def cumulative_trapezoid(y: Tensor, *, dx: _Number = 1, dim: _int = -1, out: Any = None) -> Tensor: ...
def deg2rad(input: Tensor, *, out: Any = None) -> Tensor: """Degrees as radians."""
def det(input: Tensor, *, out: Any = None) -> Tensor: """Determinant of a square matrix (older name)."""
def detach(input: Tensor, *, out: Any = None) -> Tensor: """The same memory without history."""
def detach_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy without history."""
def diag(input: Tensor, diagonal: _int = 0, *, out: Any = None) -> Tensor: """A matrix from its diagonal, or the diagonal of a matrix."""
def diag_embed(input: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *, out: Any = None) -> Tensor: """Matrices with the last dim on a diagonal, zero elsewhere."""
def diagflat(input: Tensor, offset: _int = 0, *, out: Any = None) -> Tensor: """A matrix with all elements on its diagonal."""
def diagonal(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Any = None) -> Tensor: """A diagonal of the matrices in two dims, as the last dim."""
def diagonal_copy(input: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Any = None) -> Tensor: """A copy of what `diagonal` shows."""
def diagonal_scatter(input: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Any = None) -> Tensor: """A copy of `self` with `src` written on a diagonal."""
def diff(input: Tensor, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Any = None) -> Tensor: """n-th differences of neighbours along a dim; bools differ or not."""
def digamma(input: Tensor, *, out: Any = None) -> Tensor: """Derivative of `lgamma`."""
def special_digamma(input: Tensor, *, out: Any = None) -> Tensor: """Derivative of `lgamma`."""
def special_psi(input: Tensor, *, out: Any = None) -> Tensor: """Derivative of `lgamma`."""
def dist(input: Tensor, other: Tensor, p: _Number = 2, *, out: Any = None) -> Tensor: """The p-norm of the difference of two tensors."""
@_overload
def div(input: Tensor, other: Tensor | _Number, *, out: Any = None) -> Tensor: """Quotient of two tensors."""
@_overload
def div(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def div(input: Tensor, other: Tensor | _Number, *, rounding_mode: _str | None, out: Any = None) -> Tensor: ...
@_overload
def div(input: Tensor, other: _Number, *, rounding_mode: _str | None, out: Any = None) -> Tensor: ...
@_overload
def divide(input: Tensor, other: Tensor | _Number, *, out: Any = None) -> Tensor: """Quotient of two tensors."""
@_overload
def divide(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def divide(input: Tensor, other: Tensor | _Number, *, rounding_mode: _str | None, out: Any = None) -> Tensor: ...
@_overload
def divide(input: Tensor, other: _Number, *, rounding_mode: _str | None, out: Any = None) -> Tensor: ...
@_overload
def true_divide(input: Tensor, other: Tensor | _Number, *, out: Any = None) -> Tensor: """Quotient of two tensors."""
@_overload
def true_divide(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def true_divide(input: Tensor, other: Tensor | _Number, *, rounding_mode: _str | None, out: Any = None) -> Tensor: ...
@_overload
def true_divide(input: Tensor, other: _Number, *, rounding_mode: _str | None, out: Any = None) -> Tensor: ...
def dot(input: Tensor, tensor: Tensor, *, out: Any = None) -> Tensor: """Sum of the products of two vectors (no conjugation)."""
def dropout(input: Tensor, p: _float, train: _bool, *, out: Any = None) -> Tensor: """Elements set to zero with probability p, the others scaled up, while training."""
@_overload
def dsplit(input: Tensor, sections: _int, *, out: Any = None) -> list[Tensor]: """Equal pieces along the third dim."""
@_overload
def dsplit(input: Tensor, indices: Sequence[_int], *, out: Any = None) -> list[Tensor]: ...
@_overload
def dsplit(input: Tensor, *indices: _int, out: Any = None) -> list[Tensor]: ...
def dstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: """Tensors joined along the third dim."""
def embedding(weight: Tensor, indices: Tensor, padding_idx: _int = -1, scale_grad_by_freq: _bool = False, sparse: _bool = False, *, out: Any = None) -> Tensor: """Rows of a table."""
@_overload
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: _bool = False, mode: _int = 0, sparse: _bool = False, per_sample_weights: Tensor | None = None, include_last_offset: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]: """Rows of a table combined in bags, without materialising the rows."""
@_overload
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: _bool, mode: _int, sparse: _bool, per_sample_weights: Tensor | None, include_last_offset: _bool, padding_idx: _int | None, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
@_overload
def empty(size: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """A tensor whose elements are whatever was in memory."""
@_overload
def empty(*size: _int, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
def empty_like(input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """An uninitialised tensor like another."""
def empty_permuted(size: Sequence[_int], physical_layout: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """An uninitialised tensor whose dims lie in memory in the given order."""
def empty_strided(size: Sequence[_int], stride: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """An uninitialised tensor with given strides."""
@_overload
def eq(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether two elements are equal."""
@_overload
def eq(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
def equal(input: Tensor, other: Tensor, *, out: Any = None) -> _bool: """Whether two tensors have the same shape and elements (a Python bool)."""
def erf(input: Tensor, *, out: Any = None) -> Tensor: """Error function of each element."""
def special_erf(input: Tensor, *, out: Any = None) -> Tensor: """Error function of each element."""
def erfc(input: Tensor, *, out: Any = None) -> Tensor: """1 - erf of each element, exact where erf is near one."""
def special_erfc(input: Tensor, *, out: Any = None) -> Tensor: """1 - erf of each element, exact where erf is near one."""
def erfinv(input: Tensor, *, out: Any = None) -> Tensor: """Number whose error function is the element."""
def special_erfinv(input: Tensor, *, out: Any = None) -> Tensor: """Number whose error function is the element."""
def exp(input: Tensor, *, out: Any = None) -> Tensor: """e to the power of each element."""
def exp2(input: Tensor, *, out: Any = None) -> Tensor: """Two to the power of each element."""
def special_exp2(input: Tensor, *, out: Any = None) -> Tensor: """Two to the power of each element."""
@_overload
def expand_copy(input: Tensor, size: Sequence[_int], *, implicit: _bool = False, out: Any = None) -> Tensor: """A copy of what `expand` shows."""
@_overload
def expand_copy(input: Tensor, *size: _int, implicit: _bool = False, out: Any = None) -> Tensor: ...
def expm1(input: Tensor, *, out: Any = None) -> Tensor: """exp(x) - 1 of each element, exact near zero."""
def special_expm1(input: Tensor, *, out: Any = None) -> Tensor: """exp(x) - 1 of each element, exact near zero."""
@_overload
def eye(n: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """The identity matrix."""
@_overload
def eye(n: _int, m: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: _int, quant_min: _int, quant_max: _int, *, out: Any = None) -> Tensor: """Values rounded to the grid of their channel."""
def fake_quantize_per_channel_affine_cachemask(input: Tensor, scale: Tensor, zero_point: Tensor, axis: _int, quant_min: _int, quant_max: _int, *, out: Any = None) -> _output_mask: """Values rounded to the grid of their channel, and the mask of those that were not cut off."""
def fake_quantize_per_channel_affine_cachemask_backward(grad: Tensor, mask: Tensor, *, out: Any = None) -> Tensor: """The gradient where the values were in range."""
@_overload
def fake_quantize_per_tensor_affine(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: _int, quant_max: _int, *, out: Any = None) -> Tensor: """The same with scale and zero point in tensors."""
@_overload
def fake_quantize_per_tensor_affine(input: Tensor, scale: _float, zero_point: _int, quant_min: _int, quant_max: _int, *, out: Any = None) -> Tensor: ...
def fake_quantize_per_tensor_affine_cachemask(input: Tensor, scale: _float, zero_point: _int, quant_min: _int, quant_max: _int, *, out: Any = None) -> _output_mask: """Values rounded to a grid, and the mask of those that were not cut off."""
def fake_quantize_per_tensor_affine_cachemask_backward(grad: Tensor, mask: Tensor, *, out: Any = None) -> Tensor: """The gradient where the values were in range."""
def feature_alpha_dropout(input: Tensor, p: _float, train: _bool, *, out: Any = None) -> Tensor: """`alpha_dropout` of whole channels."""
def feature_dropout(input: Tensor, p: _float, train: _bool, *, out: Any = None) -> Tensor: """`dropout` of whole channels."""
@_overload
def fill(input: Tensor, value: Tensor, *, out: Any = None) -> Tensor: """The shape of `self` filled with a 0-d tensor."""
@_overload
def fill(input: Tensor, value: _Number, *, out: Any = None) -> Tensor: ...
def flatten(input: Tensor, start_dim: _int = 0, end_dim: _int = -1, *, out: Any = None) -> Tensor: """Merge the dims from start_dim to end_dim into one."""
@_overload
def flip(input: Tensor, dims: Sequence[_int], *, out: Any = None) -> Tensor: """The order of the elements reversed along dims."""
@_overload
def flip(input: Tensor, *dims: _int, out: Any = None) -> Tensor: ...
def fliplr(input: Tensor, *, out: Any = None) -> Tensor: """Columns in reverse order."""
def flipud(input: Tensor, *, out: Any = None) -> Tensor: """Rows in reverse order."""
@_overload
def float_power(input: Tensor, exponent: Tensor, *, out: Any = None) -> Tensor: """A power, computed in double precision."""
@_overload
def float_power(input: Tensor, exponent: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def float_power(input: _Number, exponent: Tensor, *, out: Any = None) -> Tensor: ...
def floor(input: Tensor, *, out: Any = None) -> Tensor: """Largest integer not above each element."""
@_overload
def floor_divide(input: Tensor, other: Tensor | _Number, *, out: Any = None) -> Tensor: """Quotient rounded down."""
@_overload
def floor_divide(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
def fmax(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The larger of two elements; a number wins over NaN."""
def fmin(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The smaller of two elements; a number wins over NaN."""
@_overload
def fmod(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Remainder of the division that rounds towards zero; it has the sign of the dividend."""
@_overload
def fmod(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
def frac(input: Tensor, *, out: Any = None) -> Tensor: """Each element without its integer part."""
def frexp(input: Tensor, *, out: Any = None) -> _mantissa_exponent: """Each element as m 2^e with 0.5 <= |m| < 1."""
def frobenius_norm(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Any = None) -> Tensor: """2-norm of the elements over some dims."""
def full(size: Sequence[_int], fill_value: _Number, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """A tensor of one number."""
def full_like(input: Tensor, fill_value: _Number, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """One number everywhere, like another tensor."""
def fused_moving_avg_obs_fake_quant(input: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor, zero_point: Tensor, averaging_const: _float, quant_min: _int, quant_max: _int, ch_axis: _int, per_row_fake_quant: _bool = False, symmetric_quant: _bool = False, *, out: Any = None) -> Tensor: """Rounded values of a grid that follows the extremes of what it has seen."""
def gather(input: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = False, out: Any = None) -> Tensor: """One element along a dim for each entry of an index."""
def gcd(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Greatest common divisor of two integers."""
@_overload
def ge(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether the first element is not smaller."""
@_overload
def ge(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def greater_equal(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether the first element is not smaller."""
@_overload
def greater_equal(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
def geqrf(input: Tensor, *, out: Any = None) -> _a_tau: """R of A = Q R with the Householder vectors of Q below its diagonal, and their factors."""
def ger(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor: """The same as `outer`."""
@_overload
def gradient(input: Tensor, *, spacing: _Number | None = None, dim: _int | None = None, edge_order: _int = 1, out: Any = None) -> list[Tensor]: """Slopes of sampled values along dims, from central differences."""
@_overload
def gradient(input: Tensor, *, spacing: _Number, dim: Sequence[_int], edge_order: _int = 1, out: Any = None) -> list[Tensor]: ...
@_overload
def gradient(input: Tensor, *, dim: Sequence[_int], edge_order: _int = 1, out: Any = None) -> list[Tensor]: ...
@_overload
def gradient(input: Tensor, *, spacing: Sequence[_Number], dim: _int | None = None, edge_order: _int = 1, out: Any = None) -> list[Tensor]: ...
@_overload
def gradient(input: Tensor, *, spacing: Sequence[_Number], dim: Sequence[_int], edge_order: _int = 1, out: Any = None) -> list[Tensor]: ...
@_overload
def gradient(input: Tensor, *, spacing: Sequence[Tensor], dim: _int | None = None, edge_order: _int = 1, out: Any = None) -> list[Tensor]: ...
@_overload
def gradient(input: Tensor, *, spacing: Sequence[Tensor], dim: Sequence[_int], edge_order: _int = 1, out: Any = None) -> list[Tensor]: ...
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool, *, out: Any = None) -> Tensor: """Values of an image or a volume between its elements, at the points of a grid."""
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool, *, out: Any = None) -> Tensor: """Values of an image between its elements, at the points of a grid."""
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool, *, out: Any = None) -> Tensor: """Values of a volume between its elements, at the points of a grid."""
def group_norm(input: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, cudnn_enabled: _bool = True, *, out: Any = None) -> Tensor: """Zero mean and unit variance of each group of channels, then scale and shift."""
@_overload
def gru(input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool, *, out: Any = None) -> tuple[Tensor, Tensor]: """Layers of gated recurrent units over padded sequences: output and hidden states."""
@_overload
def gru(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Any = None) -> Tensor: """One step of a gated recurrent unit."""
@_overload
def gt(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether the first element is larger."""
@_overload
def gt(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def greater(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether the first element is larger."""
@_overload
def greater(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def hamming_window(window_length: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: """alpha - beta cos(2 pi u), u from 0 to 1."""
@_overload
def hamming_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
@_overload
def hamming_window(window_length: _int, periodic: _bool, alpha: _float, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
@_overload
def hamming_window(window_length: _int, periodic: _bool, alpha: _float, beta: _float, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
@_overload
def hann_window(window_length: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: """0.5 - 0.5 cos(2 pi u), u from 0 to 1."""
@_overload
def hann_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
def hardshrink(input: Tensor, lambd: _Number = 0.5, *, out: Any = None) -> Tensor: """Each element, or 0 where its absolute value is at most `lambd`."""
@_overload
def hash_tensor(input: Tensor, dim: _int | Sequence[_int] = ..., *, keepdim: _bool = False, mode: _int = 0, out: Any = None) -> Tensor: """Exclusive or of the bits of all elements, as 64-bit integers or floats."""
@_overload
def hash_tensor(input: Tensor, *dim: _int, keepdim: _bool = False, mode: _int = 0, out: Any = None) -> Tensor: ...
def heaviside(input: Tensor, values: Tensor, *, out: Any = None) -> Tensor: """0 below zero, 1 above, and `values` at zero."""
def histc(input: Tensor, bins: _int = 100, min: _Number = 0, max: _Number = 0, *, out: Any = None) -> Tensor: """How many elements fall into each of `bins` equal intervals from `min` to `max`."""
@_overload
def histogram(input: Tensor, bins: _int = 100, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, out: Any = None) -> _hist_bin_edges: """Counts, or sums of weights, of elements in even intervals, and the edges of these."""
@_overload
def histogram(input: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: _bool = False, out: Any = None) -> _hist_bin_edges: ...
@_overload
def histogramdd(input: Tensor, bins: Sequence[_int], range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, *, out: Any = None) -> _hist_bin_edges: """Counts of points in the cells of an even grid, and the edges of the grid."""
@_overload
def histogramdd(input: Tensor, bins: _int, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, *, out: Any = None) -> _hist_bin_edges: ...
@_overload
def histogramdd(input: Tensor, bins: Sequence[Tensor], range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, *, out: Any = None) -> _hist_bin_edges: ...
@_overload
def hsplit(input: Tensor, sections: _int, *, out: Any = None) -> list[Tensor]: """Equal pieces along the second dim (the first of a vector)."""
@_overload
def hsplit(input: Tensor, indices: Sequence[_int], *, out: Any = None) -> list[Tensor]: ...
@_overload
def hsplit(input: Tensor, *indices: _int, out: Any = None) -> list[Tensor]: ...
def hstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: """Tensors joined along the second dim (the first of vectors)."""
def hypot(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """sqrt(x^2 + y^2) without needless overflow."""
def i0(input: Tensor, *, out: Any = None) -> Tensor: """Modified Bessel function of the first kind, order 0."""
def special_i0(input: Tensor, *, out: Any = None) -> Tensor: """Modified Bessel function of the first kind, order 0."""
def igamma(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Lower regularized incomplete gamma function P(a, x)."""
def special_gammainc(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Lower regularized incomplete gamma function P(a, x)."""
def igammac(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Upper regularized incomplete gamma function Q(a, x) = 1 - P(a, x)."""
def special_gammaincc(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Upper regularized incomplete gamma function Q(a, x) = 1 - P(a, x)."""
def imag(input: Tensor, *, out: Any = None) -> Tensor: """Imaginary part of each element, a view."""
def index_add(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: _Number = 1, out: Any = None) -> Tensor: """A copy of `self` with slices of `source` added at the listed indices of one dim."""
def index_copy(input: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Any = None) -> Tensor: """A copy of `self` with slices of `source` at the listed indices of one dim."""
@_overload
def index_fill(input: Tensor, dim: _int, index: Tensor, value: Tensor, *, out: Any = None) -> Tensor: """A copy of `self` with one 0-d tensor at the listed indices of one dim."""
@_overload
def index_fill(input: Tensor, dim: _int, index: Tensor, value: _Number, *, out: Any = None) -> Tensor: ...
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False, *, out: Any = None) -> Tensor: """A copy of `self` with values written, or added, at the given index tensors."""
def index_reduce(input: Tensor, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True, out: Any = None) -> Tensor: """A copy of `self` reduced with slices of source at the listed indices of one dim."""
def index_select(input: Tensor, dim: _int, index: Tensor, *, out: Any = None) -> Tensor: """The indices of one dim that a vector lists."""
def indices_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of the coordinates of a coalesced tensor."""
def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Products summed over the last dim of both arguments."""
def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: _bool, momentum: _float, eps: _float, cudnn_enabled: _bool, *, out: Any = None) -> Tensor: """Batch normalisation of each example by itself."""
def inverse(input: Tensor, *, out: Any = None) -> Tensor: """Inverse of a square matrix (older name)."""
def is_conj(input: Tensor, *, out: Any = None) -> _bool: """Whether the conjugation of the elements is put off."""
def is_distributed(input: Tensor, *, out: Any = None) -> _bool: """Whether the tensor lives on several machines."""
def is_inference(input: Tensor, *, out: Any = None) -> _bool: """Whether the tensor was made in inference mode."""
def is_neg(input: Tensor, *, out: Any = None) -> _bool: """Whether the negation of the elements is put off."""
def is_same_size(input: Tensor, other: Tensor, *, out: Any = None) -> _bool: """Whether two tensors have the same shape."""
def is_signed(input: Tensor, *, out: Any = None) -> _bool: """Whether the dtype has negative numbers."""
def isclose(input: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False, *, out: Any = None) -> Tensor: """Whether |a - b| <= atol + rtol |b|, or a equals b."""
def isfinite(input: Tensor, *, out: Any = None) -> Tensor: """Whether each element is neither infinite nor NaN."""
@_overload
def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: _bool = False, invert: _bool = False, out: Any = None) -> Tensor: """Whether each element occurs among others."""
@_overload
def isin(elements: Tensor, test_element: _Number, *, assume_unique: _bool = False, invert: _bool = False, out: Any = None) -> Tensor: ...
@_overload
def isin(element: _Number, test_elements: Tensor, *, assume_unique: _bool = False, invert: _bool = False, out: Any = None) -> Tensor: ...
def isinf(input: Tensor, *, out: Any = None) -> Tensor: """Whether each element is infinite."""
def isnan(input: Tensor, *, out: Any = None) -> Tensor: """Whether each element is NaN."""
def isneginf(input: Tensor, *, out: Any = None) -> Tensor: """Whether a number is negative infinity."""
def isposinf(input: Tensor, *, out: Any = None) -> Tensor: """Whether a number is positive infinity."""
def isreal(input: Tensor, *, out: Any = None) -> Tensor: """Whether the imaginary part of a number is zero."""
def istft(input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False, *, out: Any = None) -> Tensor: """Inverse short-time Fourier transform, by overlapping and adding the frames."""
@_overload
def kaiser_window(window_length: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: """I_0(beta sqrt(1 - r^2)) / I_0(beta), r from -1 to 1."""
@_overload
def kaiser_window(window_length: _int, periodic: _bool, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
@_overload
def kaiser_window(window_length: _int, periodic: _bool, beta: _float, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
def kron(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Kronecker product: every element of `self` times all of `other`."""
def kthvalue(input: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Any = None) -> _values_indices: """The k-th smallest element along a dim, and where it was."""
def layer_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, cudnn_enable: _bool = True, *, out: Any = None) -> Tensor: """Rows with zero mean and unit variance, scaled by `weight` and shifted by `bias`."""
def lcm(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Least common multiple of two integers."""
def ldexp(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """x 2^y, without overflow of 2^y."""
@_overload
def le(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether the first element is not larger."""
@_overload
def le(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def less_equal(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether the first element is not larger."""
@_overload
def less_equal(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def lerp(input: Tensor, end: Tensor, weight: Tensor, *, out: Any = None) -> Tensor: """Straight-line interpolation from `self` to `end` at `weight`."""
@_overload
def lerp(input: Tensor, end: Tensor, weight: _Number, *, out: Any = None) -> Tensor: ...
def lgamma(input: Tensor, *, out: Any = None) -> Tensor: """Logarithm of the absolute value of the gamma function."""
def special_gammaln(input: Tensor, *, out: Any = None) -> Tensor: """Logarithm of the absolute value of the gamma function."""
def lift(input: Tensor, *, out: Any = None) -> Tensor: """The tensor itself: a tensor from outside, handed to the transforms that run."""
def lift_fresh(input: Tensor, *, out: Any = None) -> Tensor: """The tensor itself, which nobody else holds yet."""
def lift_fresh_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of a tensor from outside."""
def linalg_cross(input: Tensor, other: Tensor, *, dim: _int = -1, out: Any = None) -> Tensor: """Cross product of vectors of three elements along one dim."""
def linalg_matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The same as `matmul`."""
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Any = None) -> Tensor: """Sum of products along one dim, the first operand conjugated."""
@_overload
def linspace(start: Tensor, end: Tensor, steps: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: """`linspace` between 0-d tensors."""
@_overload
def linspace(start: Tensor, end: _Number, steps: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
@_overload
def linspace(start: _Number, end: Tensor, steps: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
@_overload
def linspace(start: _Number, end: _Number, steps: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
def log(input: Tensor, *, out: Any = None) -> Tensor: """Natural logarithm of each element."""
def log10(input: Tensor, *, out: Any = None) -> Tensor: """Logarithm to base 10 of each element."""
def log1p(input: Tensor, *, out: Any = None) -> Tensor: """log(1 + x) of each element, exact near zero."""
def special_log1p(input: Tensor, *, out: Any = None) -> Tensor: """log(1 + x) of each element, exact near zero."""
def log2(input: Tensor, *, out: Any = None) -> Tensor: """Logarithm to base 2 of each element."""
def log_softmax(input: Tensor, dim: _int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor: """Logarithm of the softmax along `dim`, optionally in another dtype."""
def logaddexp(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """log(exp(x) + exp(y)) without overflow."""
def logaddexp2(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """log2(2^x + 2^y) without overflow."""
def logcumsumexp(input: Tensor, dim: _int, *, out: Any = None) -> Tensor: """Running log of the sum of exp along a dim, without overflow."""
def logdet(input: Tensor, *, out: Any = None) -> Tensor: """Logarithm of the determinant; NaN where a real determinant is negative."""
def logical_and(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether both elements are nonzero."""
def logical_not(input: Tensor, *, out: Any = None) -> Tensor: """Whether each element is zero."""
def logical_or(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether one of the elements is nonzero."""
def logical_xor(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether exactly one of the elements is nonzero."""
def logit(input: Tensor, eps: _float | None = None, *, out: Any = None) -> Tensor: """log(x / (1 - x)) of each element, first clamped to [eps, 1 - eps] if eps is given."""
def special_logit(input: Tensor, eps: _float | None = None, *, out: Any = None) -> Tensor: """log(x / (1 - x)) of each element, first clamped to [eps, 1 - eps] if eps is given."""
@_overload
def logspace(start: Tensor, end: Tensor, steps: _int, base: _float = 10.0, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: """`logspace` between 0-d tensors."""
@_overload
def logspace(start: Tensor, end: _Number, steps: _int, base: _float = 10.0, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
@_overload
def logspace(start: _Number, end: Tensor, steps: _int, base: _float = 10.0, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None) -> Tensor: ...
@_overload
def logspace(start: _Number, end: _Number, steps: _int, base: _float = 10.0, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
def logsumexp(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Any = None) -> Tensor: """log of the sum of exp over some dims, without overflow."""
def special_logsumexp(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Any = None) -> Tensor: """log of the sum of exp over some dims, without overflow."""
@_overload
def lstm(input: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: """Layers of long short-term memory over padded sequences: output, hidden states, cells."""
@_overload
def lstm(data: Tensor, batch_sizes: Tensor, hx: Sequence[Tensor], params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: ...
def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Any = None) -> tuple[Tensor, Tensor]: """One step of a long short-term memory: new hidden state and new cell."""
@_overload
def lt(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether the first element is smaller."""
@_overload
def lt(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def less(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether the first element is smaller."""
@_overload
def less(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
def lu(A: Tensor, pivot: _bool = True, get_infos: _bool = False, *, out: Any = None) -> _LU_pivots_infos: """Packed factors of A = P L U, pivots, and info if that is asked for (older name)."""
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = None) -> Tensor: """Solution of A X = B with A = P L U in packed form (older name)."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: Any = None) -> _P_L_U: """P, L and U of packed factors and pivots; what is not asked for is empty."""
@_overload
def masked_fill(input: Tensor, mask: Tensor, value: Tensor, *, out: Any = None) -> Tensor: """`self` with a 0-d tensor where a mask is true."""
@_overload
def masked_fill(input: Tensor, mask: Tensor, value: _Number, *, out: Any = None) -> Tensor: ...
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Any = None) -> Tensor: """`self` with consecutive elements of a source where a mask is true."""
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor: """The elements where a mask is true, in a vector."""
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Product of two tensors seen as stacks of matrices or vectors."""
def matrix_exp(input: Tensor, *, out: Any = None) -> Tensor: """Matrix exponential (older name)."""
def matrix_power(input: Tensor, n: _int, *, out: Any = None) -> Tensor: """Integer powers of a square matrix (older name)."""
@_overload
def max(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The larger of two elements."""
@_overload
def max(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> _values_indices: ...
@_overload
def max(input: Tensor, *, out: Any = None) -> Tensor: ...
def max_pool1d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> Tensor: """Maxima over sliding windows of the last dim."""
def max_pool1d_with_indices(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: """Maxima over sliding windows of the last dim, and their places."""
def max_pool2d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> Tensor: """Maxima over sliding windows of the last two dims."""
def max_pool3d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> Tensor: """Maxima over sliding windows of the last three dims."""
def maximum(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The larger of two elements; NaN wins."""
@_overload
def mean(input: Tensor, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: """Mean of all elements."""
@_overload
def mean(input: Tensor, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: ...
@_overload
def median(input: Tensor, *, out: Any = None) -> Tensor: """Lower median of all elements; NaN if there is one."""
@_overload
def median(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> _values_indices: ...
@_overload
def min(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The smaller of two elements."""
@_overload
def min(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> _values_indices: ...
@_overload
def min(input: Tensor, *, out: Any = None) -> Tensor: ...
def minimum(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The smaller of two elements; NaN wins."""
def miopen_batch_norm(input: Tensor, weight: Tensor, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, exponential_average_factor: _float, epsilon: _float, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: """`native_batch_norm` as MIOpen offers it."""
def miopen_convolution(input: Tensor, weight: Tensor, bias: Tensor | None, padding: Sequence[_int], stride: Sequence[_int], dilation: Sequence[_int], groups: _int, benchmark: _bool, deterministic: _bool, *, out: Any = None) -> Tensor: """`convolution` as MIOpen offers it."""
def miopen_convolution_add_relu(input: Tensor, weight: Tensor, z: Tensor, alpha: _Number | None, bias: Tensor | None, stride: Sequence[_int], padding: Sequence[_int], dilation: Sequence[_int], groups: _int, *, out: Any = None) -> Tensor: """The relu of a convolution to which a multiple of `z` is added, as MIOpen offers it."""
def miopen_convolution_relu(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[_int], padding: Sequence[_int], dilation: Sequence[_int], groups: _int, *, out: Any = None) -> Tensor: """The relu of a convolution, as MIOpen offers it."""
def miopen_convolution_transpose(input: Tensor, weight: Tensor, bias: Tensor | None, padding: Sequence[_int], output_padding: Sequence[_int], stride: Sequence[_int], dilation: Sequence[_int], groups: _int, benchmark: _bool, deterministic: _bool, *, out: Any = None) -> Tensor: """Transposed `convolution` as MIOpen offers it."""
@_overload
def miopen_ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Sequence[_int], target_lengths: Sequence[_int], blank: _int, deterministic: _bool, zero_infinity: _bool, *, out: Any = None) -> tuple[Tensor, Tensor]: """`_ctc_loss` with its gradient as second result, as MIOpen offers it."""
@_overload
def miopen_ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: _int, deterministic: _bool, zero_infinity: _bool, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
def miopen_depthwise_convolution(input: Tensor, weight: Tensor, bias: Tensor | None, padding: Sequence[_int], stride: Sequence[_int], dilation: Sequence[_int], groups: _int, benchmark: _bool, deterministic: _bool, *, out: Any = None) -> Tensor: """`convolution` with as many groups as channels, as MIOpen offers it."""
def miopen_rnn(input: Tensor, weight: Sequence[Tensor], weight_stride0: _int, hx: Tensor, cx: Tensor | None, mode: _int, hidden_size: _int, num_layers: _int, batch_first: _bool, dropout: _float, train: _bool, bidirectional: _bool, batch_sizes: Sequence[_int], dropout_state: Tensor | None, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: """A stack of recurrent layers, as MIOpen offers it; also its reserve and its packed weights."""
@_overload
def mkldnn_adaptive_avg_pool2d(input: Tensor, output_size: _int | Sequence[_int], *, out: Any = None) -> Tensor: """`adaptive_avg_pool2d` as oneDNN offers it."""
@_overload
def mkldnn_adaptive_avg_pool2d(input: Tensor, *output_size: _int, out: Any = None) -> Tensor: ...
def mkldnn_convolution(input: Tensor, weight: Tensor, bias: Tensor | None, padding: Sequence[_int], stride: Sequence[_int], dilation: Sequence[_int], groups: _int, *, out: Any = None) -> Tensor: """`convolution` as oneDNN offers it: the bias of half precision may be in float32."""
def mkldnn_linear_backward_weights(grad_output: Tensor, input: Tensor, weight: Tensor, bias_defined: _bool, *, out: Any = None) -> tuple[Tensor, Tensor]: """The gradients of `mkldnn_linear` for weight and bias."""
def mkldnn_max_pool2d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> Tensor: """`max_pool2d` as oneDNN offers it."""
def mkldnn_max_pool3d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> Tensor: """`max_pool3d` as oneDNN offers it."""
def mkldnn_rnn_layer(input: Tensor, weight0: Tensor, weight1: Tensor, weight2: Tensor, weight3: Tensor, hx_: Tensor, cx_: Tensor, reverse: _bool, batch_sizes: Sequence[_int], mode: _int, hidden_size: _int, num_layers: _int, has_biases: _bool, bidirectional: _bool, batch_first: _bool, train: _bool, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]: """A recurrent layer in one direction, as oneDNN offers it; also its work space, here empty."""
def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor: """Matrix times matrix."""
def mode(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Any = None) -> _values_indices: """Most frequent elements along a dim (the smallest of them), and where each occurs last."""
@_overload
def moveaxis(input: Tensor, source: _int, destination: _int, *, out: Any = None) -> Tensor: """Another name of `movedim`."""
@_overload
def moveaxis(input: Tensor, source: Sequence[_int], destination: Sequence[_int], *, out: Any = None) -> Tensor: ...
@_overload
def movedim(input: Tensor, source: _int, destination: _int, *, out: Any = None) -> Tensor: """One dim moved to another place."""
@_overload
def movedim(input: Tensor, source: Sequence[_int], destination: Sequence[_int], *, out: Any = None) -> Tensor: ...
def msort(input: Tensor, *, out: Any = None) -> Tensor: """Elements in order along the first dim."""
@_overload
def mul(input: Tensor, other: Tensor | _Number, *, out: Any = None) -> Tensor: """Product of two tensors."""
@_overload
def mul(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def multiply(input: Tensor, other: Tensor | _Number, *, out: Any = None) -> Tensor: """Product of two tensors."""
@_overload
def multiply(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
def multinomial(input: Tensor, num_samples: _int, replacement: _bool = False, *, generator: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Indices drawn in proportion to the weights in the last dim."""
def mv(input: Tensor, vec: Tensor, *, out: Any = None) -> Tensor: """Matrix times vector."""
def mvlgamma(input: Tensor, p: _int, *, out: Any = None) -> Tensor: """Logarithm of the multivariate gamma function of dimension p."""
def special_multigammaln(input: Tensor, p: _int, *, out: Any = None) -> Tensor: """Logarithm of the multivariate gamma function of dimension p."""
def nan_to_num(input: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *, out: Any = None) -> Tensor: """Each element with NaN and infinities replaced by numbers."""
def nanmean(input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: """Means over some dims of the elements that are not NaN."""
@_overload
def nanmedian(input: Tensor, *, out: Any = None) -> Tensor: """Lower median of all elements that are not NaN."""
@_overload
def nanmedian(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> _values_indices: ...
@_overload
def nanquantile(input: Tensor, q: Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out: Any = None) -> Tensor: """Quantiles along a dim, or of all elements, of what is not NaN."""
@_overload
def nanquantile(input: Tensor, q: _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out: Any = None) -> Tensor: ...
def nansum(input: Tensor, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: """Sums over some dims in which NaN counts as 0."""
@_overload
def narrow(input: Tensor, dim: _int, start: _int, length: _int, *, out: Any = None) -> Tensor: """`length` indices of one dim from `start` on."""
@_overload
def narrow(input: Tensor, dim: _int, start: Tensor, length: _int, *, out: Any = None) -> Tensor: ...
def narrow_copy(input: Tensor, dim: _int, start: _int, length: _int, *, out: Any = None) -> Tensor: """A copy of `narrow`."""
def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: _bool, momentum: _float, eps: _float, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: """Batch normalisation, the statistics that it used, and an update of the running ones."""
def native_channel_shuffle(input: Tensor, groups: _int, *, out: Any = None) -> Tensor: """The same as `channel_shuffle`."""
def native_dropout(input: Tensor, p: _float, train: _bool | None, *, out: Any = None, requires_grad: _bool = False) -> tuple[Tensor, Tensor]: """`dropout` that also returns the mask of the elements that were kept."""
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: _int, C: _int, HxW: _int, group: _int, eps: _float, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: """Groups of channels with zero mean and unit variance, then scale and shift; also the"""
def native_layer_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None, bias: Tensor | None, eps: _float, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: """Rows with zero mean and unit variance, scaled and shifted; also mean and 1/deviation."""
@_overload
def native_norm(input: Tensor, p: _Number = 2, *, out: Any = None) -> Tensor: """p-norm of all elements."""
@_overload
def native_norm(input: Tensor, p: _Number | None, dim: _int | Sequence[_int], keepdim: _bool, dtype: _dtype | None, *, out: Any = None) -> Tensor: ...
@_overload
def ne(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether two elements differ."""
@_overload
def ne(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def not_equal(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Whether two elements differ."""
@_overload
def not_equal(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
def neg(input: Tensor, *, out: Any = None) -> Tensor: """Each element with its sign changed."""
def negative(input: Tensor, *, out: Any = None) -> Tensor: """Each element with its sign changed."""
def nextafter(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The number next to each element in the direction of the other."""
@_overload
def nonzero(input: Tensor, *, out: Any = None) -> Tensor: """Coordinates of the nonzero elements, one row each."""
@_overload
def nonzero(input: Tensor, *, as_tuple: _bool, out: Any = None) -> list[Tensor]: ...
def nonzero_static(input: Tensor, *, size: _int, fill_value: _int = -1, out: Any = None) -> Tensor: """The first rows of `nonzero`, filled up to a given number."""
@_overload
def norm(input: Tensor, p: _str | None = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: """Norm by name: "fro" is the 2-norm of all elements, "nuc" the sum of singular values."""
@_overload
def norm(input: Tensor, p: _Number, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: ...
@_overload
def norm(input: Tensor, p: _Number = 2, *, out: Any = None) -> Tensor: ...
@_overload
def norm(input: Tensor, p: _Number | None, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Any = None) -> Tensor: ...
@_overload
def norm(input: Tensor, p: _Number | None, *, dtype: _dtype, out: Any = None) -> Tensor: ...
@_overload
def norm(input: Tensor, p: _Number | None, dim: _int | Sequence[_int], keepdim: _bool, *, dtype: _dtype, out: Any = None) -> Tensor: ...
def norm_except_dim(v: Tensor, pow: _int = 2, dim: _int = 0, *, out: Any = None) -> Tensor: """Norm over all dims but one, which stays; over everything for dim -1."""
@_overload
def normal(mean: Tensor, std: Tensor, *, generator: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Normal numbers with the means and deviations that tensors give."""
@_overload
def normal(mean: Tensor, std: _float = 1, *, generator: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def normal(mean: _float, std: Tensor, *, generator: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def normal(mean: _float, std: _float, size: Sequence[_int], *, generator: Any = None, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def normal(input: Tensor, mean: _float = 0, std: _float = 1, *, generator: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def nuclear_norm(input: Tensor, keepdim: _bool = False, *, out: Any = None) -> Tensor: """Sum of the singular values of a matrix."""
@_overload
def nuclear_norm(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Any = None) -> Tensor: ...
@_overload
def ones(size: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """A tensor of ones."""
@_overload
def ones(*size: _int, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
def ones_like(input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Ones like another tensor."""
def orgqr(input: Tensor, input2: Tensor, *, out: Any = None) -> Tensor: """The first columns of a product of Householder reflections (older name)."""
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False, *, out: Any = None) -> Tensor: """A matrix multiplied from the left or right by a product of Householder reflections."""
def outer(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor: """All products of the elements of two vectors."""
def pairwise_distance(x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False, *, out: Any = None) -> Tensor: """p-norm of the difference of vectors along the last dim."""
def pdist(input: Tensor, p: _float = 2.0, *, out: Any = None) -> Tensor: """p-norm distances of all pairs of rows of a matrix."""
@_overload
def permute(input: Tensor, dims: Sequence[_int], *, out: Any = None) -> Tensor: """The dims in another order."""
@_overload
def permute(input: Tensor, *dims: _int, out: Any = None) -> Tensor: ...
@_overload
def permute_copy(input: Tensor, dims: Sequence[_int], *, out: Any = None) -> Tensor: """A copy of what `permute` shows."""
@_overload
def permute_copy(input: Tensor, *dims: _int, out: Any = None) -> Tensor: ...
def pinverse(input: Tensor, rcond: _float = 1e-15, *, out: Any = None) -> Tensor: """Pseudo-inverse (older name)."""
def pixel_shuffle(input: Tensor, upscale_factor: _int, *, out: Any = None) -> Tensor: """Each r * r channels become blocks of r by r pixels."""
def pixel_unshuffle(input: Tensor, downscale_factor: _int, *, out: Any = None) -> Tensor: """Blocks of r by r pixels become r * r channels."""
def poisson(input: Tensor, generator: Any = None, *, out: Any = None, requires_grad: _bool = False) -> Tensor: """Poisson numbers with the rates that a tensor gives."""
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: _bool, full: _bool, eps: _float, reduction: _int, *, out: Any = None) -> Tensor: """Negative log likelihood of counts under Poisson distributions, reduced."""
def polar(abs: Tensor, angle: Tensor, *, out: Any = None) -> Tensor: """Complex numbers from their absolute values and angles."""
def polygamma(n: _int, self: Tensor, *, out: Any = None) -> Tensor: """The n-th derivative of `digamma`."""
def special_polygamma(n: _int, self: Tensor, *, out: Any = None) -> Tensor: """The n-th derivative of `digamma`."""
def positive(input: Tensor, *, out: Any = None) -> Tensor: """The tensor itself; refuses bool."""
@_overload
def pow(input: Tensor, exponent: Tensor, *, out: Any = None) -> Tensor: """Each element of the first tensor to the power of the second."""
@_overload
def pow(input: Tensor, exponent: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def pow(input: _Number, exponent: Tensor, *, out: Any = None) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor, *, out: Any = None) -> Tensor: """Each element, times a learned slope (one for all, or one per channel) where negative."""
@_overload
def prod(input: Tensor, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: """Product of all elements."""
@_overload
def prod(input: Tensor, dim: _int, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: ...
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False, *, out: Any = None) -> Tensor: """A copy of `self` with elements written, or added, by their flattened position."""
def qr(input: Tensor, some: _bool = True, *, out: Any = None) -> _Q_R: """A = Q R with orthonormal columns of Q and an upper triangular R (older name)."""
@_overload
def quantile(input: Tensor, q: Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out: Any = None) -> Tensor: """Quantiles along a dim, or of all elements; NaN where there is a NaN."""
@_overload
def quantile(input: Tensor, q: _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear', out: Any = None) -> Tensor: ...
def rad2deg(input: Tensor, *, out: Any = None) -> Tensor: """Radians as degrees."""
@_overload
def rand(size: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Numbers evenly spread over [0, 1)."""
@_overload
def rand(*size: _int, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def rand(size: Sequence[_int], *, generator: Any, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def rand(*size: _int, generator: Any, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def rand_like(input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """`rand` with the shape of another tensor."""
@_overload
def rand_like(input: Tensor, *, generator: Any, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def randint(high: _int, size: Sequence[_int], *, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Integers from 0 up to but not including `high`."""
@_overload
def randint(low: _int, high: _int, size: Sequence[_int], *, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def randint(high: _int, size: Sequence[_int], *, generator: Any, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def randint(low: _int, high: _int, size: Sequence[_int], *, generator: Any, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def randint_like(input: Tensor, high: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """`randint` with the shape and dtype of another tensor."""
@_overload
def randint_like(input: Tensor, low: _int, high: _int, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def randn(size: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Standard normal numbers."""
@_overload
def randn(*size: _int, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def randn(size: Sequence[_int], *, generator: Any, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def randn(*size: _int, generator: Any, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def randn_like(input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """`randn` with the shape of another tensor."""
@_overload
def randn_like(input: Tensor, *, generator: Any, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
@_overload
def randperm(n: _int, *, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """The numbers below n in random order."""
@_overload
def randperm(n: _int, *, generator: Any, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
def range(start: _Number, end: _Number, step: _Number = 1, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """The numbers from `start` up to and including `end`, by steps."""
def ravel(input: Tensor, *, out: Any = None) -> Tensor: """All elements in one dim; a view if the tensor is contiguous."""
def real(input: Tensor, *, out: Any = None) -> Tensor: """Real part of each element, a view; a real tensor itself."""
def reciprocal(input: Tensor, *, out: Any = None) -> Tensor: """One divided by each element."""
def relu(input: Tensor, *, out: Any = None) -> Tensor: """Each element, or 0 where it is negative."""
@_overload
def remainder(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Remainder of the division that rounds down; it has the sign of the divisor."""
@_overload
def remainder(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def remainder(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
def renorm(input: Tensor, p: _Number, dim: _int, maxnorm: _Number, *, out: Any = None) -> Tensor: """Slices along a dim whose p-norm exceeds `maxnorm`, cut down to that norm."""
@_overload
def repeat_interleave(input: Tensor, repeats: _int, dim: _int | None = None, *, output_size: _int | None = None, out: Any = None) -> Tensor: """Each element repeated the same number of times."""
@_overload
def repeat_interleave(input: Tensor, repeats: Tensor, dim: _int | None = None, *, output_size: _int | None = None, out: Any = None) -> Tensor: ...
@_overload
def repeat_interleave(repeats: Tensor, *, output_size: _int | None = None, out: Any = None) -> Tensor: ...
@_overload
def reshape(input: Tensor, shape: Sequence[_int], *, out: Any = None) -> Tensor: """The same elements in another shape: a view if the strides allow it, else a copy."""
@_overload
def reshape(input: Tensor, *shape: _int, out: Any = None) -> Tensor: ...
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None, out: Any = None) -> Tensor: """`resize_` to the shape of another tensor."""
def resolve_conj(input: Tensor, *, out: Any = None) -> Tensor: """The tensor itself, or a copy of one whose conjugation is put off."""
def resolve_neg(input: Tensor, *, out: Any = None) -> Tensor: """The tensor itself, or a copy of one whose negation is put off."""
def rms_norm(input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, eps: _float | None = None, *, out: Any = None) -> Tensor: """Rows divided by their root mean square, scaled by `weight`."""
@_overload
def rnn_relu(input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool, *, out: Any = None) -> tuple[Tensor, Tensor]: """rnn_tanh.input with relu in place of tanh."""
@_overload
def rnn_relu(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Any = None) -> Tensor: """One step of a simple recurrent network with relu in place of tanh."""
@_overload
def rnn_tanh(input: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, batch_first: _bool, *, out: Any = None) -> tuple[Tensor, Tensor]: """Layers of simple recurrent networks over padded sequences: output and hidden states."""
@_overload
def rnn_tanh(data: Tensor, batch_sizes: Tensor, hx: Tensor, params: Sequence[Tensor], has_biases: _bool, num_layers: _int, dropout: _float, train: _bool, bidirectional: _bool, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None, *, out: Any = None) -> Tensor: """One step of a simple recurrent network: tanh of a linear map of input and hidden state."""
def roll(input: Tensor, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] = ..., *, out: Any = None) -> Tensor: """Elements moved along dims; what leaves at one end enters at the other."""
def rot90(input: Tensor, k: _int = 1, dims: Sequence[_int] = ..., *, out: Any = None) -> Tensor: """Rotation by multiples of 90 degrees in the plane of two dims."""
@_overload
def round(input: Tensor, *, out: Any = None) -> Tensor: """Nearest integer of each element; halves go to the even one."""
@_overload
def round(input: Tensor, *, decimals: _int, out: Any = None) -> Tensor: ...
@_overload
def special_round(input: Tensor, *, out: Any = None) -> Tensor: """Nearest integer of each element; halves go to the even one."""
@_overload
def special_round(input: Tensor, *, decimals: _int, out: Any = None) -> Tensor: ...
def row_indices_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of the rows of entries."""
def row_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: """Another name of `vstack`."""
def rrelu(input: Tensor, lower: _Number = 0.125, upper: _Number = 0.3333333333333333, training: _bool = False, generator: Any = None, *, out: Any = None) -> Tensor: """Each element, times a random (in training) or the mean slope where negative."""
def rsqrt(input: Tensor, *, out: Any = None) -> Tensor: """One divided by the square root of each element."""
@_overload
def rsub(input: Tensor, other: Tensor, *, alpha: _Number = 1, out: Any = None) -> Tensor: """`other` minus `alpha` times `self`."""
@_overload
def rsub(input: Tensor, other: _Number, alpha: _Number = 1, *, out: Any = None) -> Tensor: ...
def scalar_tensor(s: _Number, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """A 0-d tensor with one number."""
@_overload
def scatter(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Any = None) -> Tensor: """A copy of `self` with one element of src written for each entry of an index."""
@_overload
def scatter(input: Tensor, dim: _int, index: Tensor, value: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def scatter(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, reduce: _str, out: Any = None) -> Tensor: ...
@_overload
def scatter(input: Tensor, dim: _int, index: Tensor, value: _Number, *, reduce: _str, out: Any = None) -> Tensor: ...
def scatter_add(input: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Any = None) -> Tensor: """A copy of `self` with one element of src added for each entry of an index."""
def scatter_reduce(input: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True, out: Any = None) -> Tensor: """A copy of `self` reduced with one element of src for each entry of an index."""
@_overload
def searchsorted(sorted_sequence: Tensor, self: Tensor, *, out_int32: _bool = False, right: _bool = False, side: _str | None = None, sorter: Tensor | None = None, out: Any = None) -> Tensor: """Where values would be inserted into a sorted last dim."""
@_overload
def searchsorted(sorted_sequence: Tensor, self: _Number, *, out_int32: _bool = False, right: _bool = False, side: _str | None = None, sorter: Tensor | None = None, out: Any = None) -> Tensor: ...
def segment_reduce(data: Tensor, reduce: _str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None, axis: _int = 0, unsafe: _bool = False, initial: _Number | None = None, out: Any = None) -> Tensor: """Sums, means, products or extremes of consecutive elements along an axis."""
def select(input: Tensor, dim: _int, index: _int, *, out: Any = None) -> Tensor: """One index of one dim; the dim disappears."""
def select_copy(input: Tensor, dim: _int, index: _int, *, out: Any = None) -> Tensor: """A copy of what `select` shows."""
def select_scatter(input: Tensor, src: Tensor, dim: _int, index: _int, *, out: Any = None) -> Tensor: """A copy of `self` with `src` written where `select` reads."""
def selu(input: Tensor, *, out: Any = None) -> Tensor: """The exponential unit whose scales keep mean 0 and variance 1 of independent normal inputs."""
def sgn(input: Tensor, *, out: Any = None) -> Tensor: """Sign of each element; the unit number of the same phase for a complex one, 0 at 0."""
def sigmoid(input: Tensor, *, out: Any = None) -> Tensor: """1 / (1 + exp(-x)) of each element."""
def special_expit(input: Tensor, *, out: Any = None) -> Tensor: """1 / (1 + exp(-x)) of each element."""
def sign(input: Tensor, *, out: Any = None) -> Tensor: """-1, 0 or 1 by the sign of each element; NaN gives 0."""
def signbit(input: Tensor, *, out: Any = None) -> Tensor: """Whether the sign bit is set: negative numbers, and -0.0."""
def sin(input: Tensor, *, out: Any = None) -> Tensor: """Sine of each element."""
def sinc(input: Tensor, *, out: Any = None) -> Tensor: """sin(pi x) / (pi x) of each element, 1 at 0."""
def special_sinc(input: Tensor, *, out: Any = None) -> Tensor: """sin(pi x) / (pi x) of each element, 1 at 0."""
def sinh(input: Tensor, *, out: Any = None) -> Tensor: """Hyperbolic sine of each element."""
def slice_copy(input: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Any = None) -> Tensor: """A copy of what `slice` shows."""
def slice_inverse(input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Any = None) -> Tensor: """The tensor that `self` is a slice of, when the rest of it is that of `src`."""
def slice_scatter(input: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *, out: Any = None) -> Tensor: """A copy of `self` with `src` written where `slice` reads."""
def slogdet(input: Tensor, *, out: Any = None) -> _sign_logabsdet: """Sign (or phase) and logarithm of the absolute value of the determinant (older name)."""
def softmax(input: Tensor, dim: _int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor: """Exponentials divided by their sum along `dim`, optionally in another dtype."""
@_overload
def sort(input: Tensor, dim: _int = -1, descending: _bool = False, *, out: Any = None) -> _values_indices: """Elements in order along a dim, and where they were."""
@_overload
def sort(input: Tensor, *, stable: _bool | None, dim: _int = -1, descending: _bool = False, out: Any = None) -> _values_indices: ...
def special_airy_ai(x: Tensor, *, out: Any = None) -> Tensor: """Airy function Ai of each element."""
def special_bessel_j0(input: Tensor, *, out: Any = None) -> Tensor: """Bessel function of the first kind, order 0."""
def special_bessel_j1(input: Tensor, *, out: Any = None) -> Tensor: """Bessel function of the first kind, order 1."""
def special_bessel_y0(input: Tensor, *, out: Any = None) -> Tensor: """Bessel function of the second kind, order 0."""
def special_bessel_y1(input: Tensor, *, out: Any = None) -> Tensor: """Bessel function of the second kind, order 1."""
@_overload
def special_chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Chebyshev polynomials of the first kind."""
@_overload
def special_chebyshev_polynomial_t(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_chebyshev_polynomial_t(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Chebyshev polynomials of the second kind."""
@_overload
def special_chebyshev_polynomial_u(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_chebyshev_polynomial_u(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Chebyshev polynomials of the third kind."""
@_overload
def special_chebyshev_polynomial_v(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_chebyshev_polynomial_v(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Chebyshev polynomials of the fourth kind."""
@_overload
def special_chebyshev_polynomial_w(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_chebyshev_polynomial_w(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
def special_entr(input: Tensor, *, out: Any = None) -> Tensor: """-x log(x) of each element: 0 at 0, -inf below."""
def special_erfcx(input: Tensor, *, out: Any = None) -> Tensor: """exp(x^2) erfc(x) of each element, without underflow."""
@_overload
def special_hermite_polynomial_h(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Hermite polynomials of the physicists."""
@_overload
def special_hermite_polynomial_h(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_hermite_polynomial_h(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_hermite_polynomial_he(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Hermite polynomials of probability theory."""
@_overload
def special_hermite_polynomial_he(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_hermite_polynomial_he(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
def special_i0e(input: Tensor, *, out: Any = None) -> Tensor: """exp(-|x|) times the modified Bessel function of the first kind, order 0."""
def special_i1(input: Tensor, *, out: Any = None) -> Tensor: """Modified Bessel function of the first kind, order 1."""
def special_i1e(input: Tensor, *, out: Any = None) -> Tensor: """exp(-|x|) times the modified Bessel function of the first kind, order 1."""
@_overload
def special_laguerre_polynomial_l(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Laguerre polynomials."""
@_overload
def special_laguerre_polynomial_l(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_laguerre_polynomial_l(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_legendre_polynomial_p(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Legendre polynomials."""
@_overload
def special_legendre_polynomial_p(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_legendre_polynomial_p(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
def special_log_ndtr(input: Tensor, *, out: Any = None) -> Tensor: """Logarithm of `special_ndtr`, exact far below zero."""
def special_modified_bessel_i0(input: Tensor, *, out: Any = None) -> Tensor: """Modified Bessel function of the first kind, order 0."""
def special_modified_bessel_i1(input: Tensor, *, out: Any = None) -> Tensor: """Modified Bessel function of the first kind, order 1."""
def special_modified_bessel_k0(input: Tensor, *, out: Any = None) -> Tensor: """Modified Bessel function of the second kind, order 0."""
def special_modified_bessel_k1(input: Tensor, *, out: Any = None) -> Tensor: """Modified Bessel function of the second kind, order 1."""
def special_ndtr(input: Tensor, *, out: Any = None) -> Tensor: """Probability that a standard normal variable is below each element."""
def special_ndtri(input: Tensor, *, out: Any = None) -> Tensor: """Number below which a standard normal variable is with the given probability."""
def special_scaled_modified_bessel_k0(x: Tensor, *, out: Any = None) -> Tensor: """exp(x) times the modified Bessel function of the second kind, order 0."""
def special_scaled_modified_bessel_k1(x: Tensor, *, out: Any = None) -> Tensor: """exp(x) times the modified Bessel function of the second kind, order 1."""
@_overload
def special_shifted_chebyshev_polynomial_t(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Chebyshev polynomials of the first kind, for [0, 1]."""
@_overload
def special_shifted_chebyshev_polynomial_t(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_shifted_chebyshev_polynomial_t(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_shifted_chebyshev_polynomial_u(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Chebyshev polynomials of the second kind, for [0, 1]."""
@_overload
def special_shifted_chebyshev_polynomial_u(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_shifted_chebyshev_polynomial_u(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_shifted_chebyshev_polynomial_v(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Chebyshev polynomials of the third kind, for [0, 1]."""
@_overload
def special_shifted_chebyshev_polynomial_v(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_shifted_chebyshev_polynomial_v(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_shifted_chebyshev_polynomial_w(x: Tensor, n: Tensor, *, out: Any = None) -> Tensor: """Chebyshev polynomials of the fourth kind, for [0, 1]."""
@_overload
def special_shifted_chebyshev_polynomial_w(x: _Number, n: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_shifted_chebyshev_polynomial_w(x: Tensor, n: _Number, *, out: Any = None) -> Tensor: ...
def special_spherical_bessel_j0(x: Tensor, *, out: Any = None) -> Tensor: """sin(x) / x of each element, 1 at 0."""
@_overload
def special_xlog1py(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """x log(1 + y), 0 where x is 0."""
@_overload
def special_xlog1py(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_xlog1py(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_zeta(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Hurwitz zeta function: the sum over k >= 0 of (q + k)^(-s)."""
@_overload
def special_zeta(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_zeta(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def split(input: Tensor, split_size: _int, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """Consecutive pieces of equal size; the last may be smaller."""
@_overload
def split(input: Tensor, split_size: Sequence[_int], dim: _int = 0, *, out: Any = None) -> list[Tensor]: ...
def split_copy(input: Tensor, split_size: _int, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """A copy of what `split` shows."""
def split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0, *, out: Any = None) -> list[Tensor]: """Consecutive pieces of the given sizes."""
def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0, *, out: Any = None) -> list[Tensor]: """A copy of what `split_with_sizes` shows."""
def sqrt(input: Tensor, *, out: Any = None) -> Tensor: """Square root of each element."""
def square(input: Tensor, *, out: Any = None) -> Tensor: """Each element times itself."""
@_overload
def squeeze(input: Tensor, *, out: Any = None) -> Tensor: """All dims of size 1 removed."""
@_overload
def squeeze(input: Tensor, dim: _int, *, out: Any = None) -> Tensor: ...
@_overload
def squeeze(input: Tensor, dim: Sequence[_int], *, out: Any = None) -> Tensor: ...
@_overload
def squeeze(input: Tensor, *dim: _int, out: Any = None) -> Tensor: ...
@_overload
def squeeze_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of what `squeeze` shows."""
@_overload
def squeeze_copy(input: Tensor, dim: _int, *, out: Any = None) -> Tensor: ...
@_overload
def squeeze_copy(input: Tensor, dim: Sequence[_int], *, out: Any = None) -> Tensor: ...
@_overload
def squeeze_copy(input: Tensor, *dim: _int, out: Any = None) -> Tensor: ...
def stack(tensors: Sequence[Tensor], dim: _int = 0, *, out: Any = None) -> Tensor: """Tensors of one shape joined along a new dim."""
@_overload
def std(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False, out: Any = None) -> Tensor: """Standard deviations over some dims."""
@_overload
def std(input: Tensor, *dim: _int, correction: _Number | None = None, keepdim: _bool = False, out: Any = None) -> Tensor: ...
@_overload
def std(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False, *, out: Any = None) -> Tensor: ...
@_overload
def std(input: Tensor, unbiased: _bool = True, *, out: Any = None) -> Tensor: ...
@_overload
def std_mean(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False, out: Any = None) -> tuple[Tensor, Tensor]: """Standard deviations and means over some dims."""
@_overload
def std_mean(input: Tensor, *dim: _int, correction: _Number | None = None, keepdim: _bool = False, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def std_mean(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def std_mean(input: Tensor, unbiased: _bool = True, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def stft(input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None, *, out: Any = None) -> Tensor: """Short-time Fourier transform: of overlapping frames of a signal."""
@_overload
def stft(input: Tensor, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None, *, out: Any = None) -> Tensor: ...
@_overload
def sub(input: Tensor, other: Tensor | _Number, *, alpha: _Number = 1, out: Any = None) -> Tensor: """Difference of two tensors, the second times `alpha`."""
@_overload
def sub(input: Tensor, other: _Number, alpha: _Number = 1, *, out: Any = None) -> Tensor: ...
@_overload
def subtract(input: Tensor, other: Tensor | _Number, *, alpha: _Number = 1, out: Any = None) -> Tensor: """Difference of two tensors, the second times `alpha`."""
@_overload
def subtract(input: Tensor, other: _Number, alpha: _Number = 1, *, out: Any = None) -> Tensor: ...
@_overload
def sum(input: Tensor, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: """Sum of all elements."""
@_overload
def sum(input: Tensor, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: ...
@_overload
def sum_to_size(input: Tensor, size: Sequence[_int], *, out: Any = None) -> Tensor: """Sums until the tensor has the given size, undoing a broadcast."""
@_overload
def sum_to_size(input: Tensor, *size: _int, out: Any = None) -> Tensor: ...
def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Any = None) -> _U_S_V: """A = U diag(S) V^H, the singular values in descending order; gives V (older name)."""
def swapaxes(input: Tensor, axis0: _int, axis1: _int, *, out: Any = None) -> Tensor: """Another name of `transpose`."""
def swapdims(input: Tensor, dim0: _int, dim1: _int, *, out: Any = None) -> Tensor: """Another name of `transpose`."""
def t(input: Tensor, *, out: Any = None) -> Tensor: """Transpose of a matrix; vectors and scalars stay as they are."""
def t_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of what `t` shows."""
def take(input: Tensor, index: Tensor, *, out: Any = None) -> Tensor: """Elements of the flattened tensor."""
def take_along_dim(input: Tensor, indices: Tensor, dim: _int | None = None, *, out: Any = None) -> Tensor: """`gather` with broadcasting; without dim, elements of the flattened tensor."""
def tan(input: Tensor, *, out: Any = None) -> Tensor: """Tangent of each element."""
def tanh(input: Tensor, *, out: Any = None) -> Tensor: """Hyperbolic tangent of each element."""
@_overload
def tensor_split(input: Tensor, sections: _int, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """Pieces as equal as possible."""
@_overload
def tensor_split(input: Tensor, indices: Sequence[_int], dim: _int = 0, *, out: Any = None) -> list[Tensor]: ...
@_overload
def tensor_split(input: Tensor, tensor_indices_or_sections: Tensor, dim: _int = 0, *, out: Any = None) -> list[Tensor]: ...
def threshold(input: Tensor, threshold: _Number, value: _Number, *, out: Any = None) -> Tensor: """Each element, or `value` where it does not exceed `threshold`."""
@_overload
def tile(input: Tensor, dims: Sequence[_int], *, out: Any = None) -> Tensor: """`repeat` with missing repeats taken as 1."""
@_overload
def tile(input: Tensor, *dims: _int, out: Any = None) -> Tensor: ...
def topk(input: Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: Any = None) -> _values_indices: """The k largest or smallest elements along a dim, and where they were."""
def trace(input: Tensor, *, out: Any = None) -> Tensor: """Sum of the diagonal of a matrix."""
def transpose(input: Tensor, dim0: _int, dim1: _int, *, out: Any = None) -> Tensor: """Two dims exchanged."""
def transpose_copy(input: Tensor, dim0: _int, dim1: _int, *, out: Any = None) -> Tensor: """A copy of what `transpose` shows."""
@_overload
def trapezoid(y: Tensor, x: Tensor, *, dim: _int = -1, out: Any = None) -> Tensor: """Integral along a dim by the trapezoidal rule, at given sample points."""
@_overload
def trapezoid(y: Tensor, *, dx: _Number = 1, dim: _int = -1, out: Any = None) -> Tensor: ...
@_overload
def trapz(y: Tensor, x: Tensor, *, dim: _int = -1, out: Any = None) -> Tensor: """Another name of `trapezoid`."""
@_overload
def trapz(y: Tensor, *, dx: _float = 1.0, dim: _int = -1, out: Any = None) -> Tensor: ...
def triangular_solve(input: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Any = None) -> _solution_cloned_coefficient: """Solution of a triangular system A X = B (or A^T X = B), and a copy of A (older name)."""
def tril(input: Tensor, diagonal: _int = 0, *, out: Any = None) -> Tensor: """The lower triangle of matrices, zero elsewhere."""
def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Row and column of each element of a lower triangle."""
def triu(input: Tensor, diagonal: _int = 0, *, out: Any = None) -> Tensor: """The upper triangle of matrices, zero elsewhere."""
def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Row and column of each element of an upper triangle."""
def trunc(input: Tensor, *, out: Any = None) -> Tensor: """The integer part of each element."""
def fix(input: Tensor, *, out: Any = None) -> Tensor: """The integer part of each element."""
def unbind(input: Tensor, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """One tensor per index of a dim."""
def unbind_copy(input: Tensor, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """A copy of what `unbind` shows."""
def unflatten(input: Tensor, dim: _int, sizes: Sequence[_int], *, out: Any = None) -> Tensor: """Split one dim into several."""
def unfold_copy(input: Tensor, dimension: _int, size: _int, step: _int, *, out: Any = None) -> Tensor: """A copy of what `unfold` shows."""
def unique(input: Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None, *, out: Any = None) -> list[Tensor]: """The different values, and what else was asked for."""
@_overload
def unravel_index(indices: Tensor, shape: Sequence[_int], *, out: Any = None) -> list[Tensor]: """Coordinates of flattened positions, one tensor per dim."""
@_overload
def unravel_index(indices: Tensor, *shape: _int, out: Any = None) -> list[Tensor]: ...
def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """`chunk` whose pieces count as fresh memory, as those of `unsafe_split`."""
def unsafe_split(input: Tensor, split_size: _int, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """`split` whose pieces count as fresh memory: writes to them are not seen by the derivative."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0, *, out: Any = None) -> list[Tensor]: """`split_with_sizes` whose pieces count as fresh memory, as those of `unsafe_split`."""
def unsqueeze(input: Tensor, dim: _int, *, out: Any = None) -> Tensor: """A new dim of size 1."""
def unsqueeze_copy(input: Tensor, dim: _int, *, out: Any = None) -> Tensor: """A copy of what `unsqueeze` shows."""
def values_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of the values."""
def vander(x: Tensor, N: _int | None = None, increasing: _bool = False, *, out: Any = None) -> Tensor: """Vandermonde matrix of a vector, the highest power first unless `increasing`."""
@_overload
def var(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False, out: Any = None) -> Tensor: """Variances over some dims; the divisor is the count minus `correction` (1 by default)."""
@_overload
def var(input: Tensor, *dim: _int, correction: _Number | None = None, keepdim: _bool = False, out: Any = None) -> Tensor: ...
@_overload
def var(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False, *, out: Any = None) -> Tensor: ...
@_overload
def var(input: Tensor, unbiased: _bool = True, *, out: Any = None) -> Tensor: ...
@_overload
def var_mean(input: Tensor, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False, out: Any = None) -> tuple[Tensor, Tensor]: """Variances and means over some dims."""
@_overload
def var_mean(input: Tensor, *dim: _int, correction: _Number | None = None, keepdim: _bool = False, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def var_mean(input: Tensor, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def var_mean(input: Tensor, unbiased: _bool = True, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
def vdot(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Sum of the products of two vectors, the first one conjugated."""
@_overload
def view(input: Tensor, size: Sequence[_int], *, out: Any = None) -> Tensor: """The same elements in another shape, without a copy."""
@_overload
def view(input: Tensor, *size: _int, out: Any = None) -> Tensor: ...
@_overload
def view(input: Tensor, dtype: _dtype, *, out: Any = None) -> Tensor: ...
def view_as_complex(input: Tensor, *, out: Any = None) -> Tensor: """Pairs of real numbers in the last dim as complex numbers."""
def view_as_complex_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of what `view_as_complex` shows."""
def view_as_real(input: Tensor, *, out: Any = None) -> Tensor: """A complex tensor as pairs of real numbers in a last dim."""
def view_as_real_copy(input: Tensor, *, out: Any = None) -> Tensor: """A copy of what `view_as_real` shows."""
@_overload
def view_copy(input: Tensor, size: Sequence[_int], *, out: Any = None) -> Tensor: """A copy of what `view` shows."""
@_overload
def view_copy(input: Tensor, *size: _int, out: Any = None) -> Tensor: ...
@_overload
def view_copy(input: Tensor, dtype: _dtype, *, out: Any = None) -> Tensor: ...
@_overload
def vsplit(input: Tensor, sections: _int, *, out: Any = None) -> list[Tensor]: """Equal pieces along the first dim."""
@_overload
def vsplit(input: Tensor, indices: Sequence[_int], *, out: Any = None) -> list[Tensor]: ...
@_overload
def vsplit(input: Tensor, *indices: _int, out: Any = None) -> list[Tensor]: ...
def vstack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: """Tensors joined along the first dim, vectors as rows."""
@_overload
def where(condition: Tensor, self: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Elements of the first tensor where the condition holds, else of the second."""
@_overload
def where(condition: Tensor, self: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def where(condition: Tensor, self: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def where(condition: Tensor, self: _Number, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def where(condition: Tensor, *, out: Any = None) -> list[Tensor]: ...
@_overload
def xlogy(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """x log(y), 0 where x is 0."""
@_overload
def xlogy(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def xlogy(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
@_overload
def special_xlogy(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """x log(y), 0 where x is 0."""
@_overload
def special_xlogy(input: _Number, other: Tensor, *, out: Any = None) -> Tensor: ...
@_overload
def special_xlogy(input: Tensor, other: _Number, *, out: Any = None) -> Tensor: ...
def zero(input: Tensor, *, out: Any = None) -> Tensor: """The shape of `self` filled with zeros."""
@_overload
def zeros(size: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """A tensor of zeros."""
@_overload
def zeros(*size: _int, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: ...
def zeros_like(input: Tensor, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, memory_format: Any = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Zeros like another tensor."""
