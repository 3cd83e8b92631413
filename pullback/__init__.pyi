"""Types of the package's names. Made from the operator table by tools/gen_stubs.py."""

# mypy: disable-error-code="override,misc,overload-overlap,overload-cannot-match"
from collections.abc import Callable as Callable, Iterator as Iterator, Sequence as Sequence
from types import EllipsisType as _EllipsisType
from typing import Any as Any, overload as _overload

import numpy as _np
from pullback.core.device import Device as device
from pullback.core.dtype import DType as dtype
from pullback.core.size import Size as Size

# Names of builtin types that the package or Tensor use for something else.
_bool = bool
_complex = complex
_float = float
_int = int
_str = str
_type = type
_dtype = dtype
_device = device
_Number = _int | _float | _bool | _complex
_Index = Any

from pullback.errors import DeviceError as AcceleratorError
from torch import BFloat16Storage as BFloat16Storage
from torch import BFloat16Tensor as BFloat16Tensor
from torch import BoolStorage as BoolStorage
from torch import BoolTensor as BoolTensor
from torch import ByteStorage as ByteStorage
from torch import ByteTensor as ByteTensor
from torch import CharStorage as CharStorage
from torch import CharTensor as CharTensor
from torch import ComplexDoubleStorage as ComplexDoubleStorage
from torch import ComplexFloatStorage as ComplexFloatStorage
from pullback.core.overriding import DisableTorchFunction as DisableTorchFunction
from pullback.core.overriding import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from torch import DoubleStorage as DoubleStorage
from torch import DoubleTensor as DoubleTensor
from pullback.machine import Event as Event
from torch import FloatStorage as FloatStorage
from torch import FloatTensor as FloatTensor
from pullback.futures import Future as Future
from pullback.core.generator import Generator as Generator
from pullback.amp.grad_scaler import GradScaler as GradScaler
from torch import HalfStorage as HalfStorage
from torch import HalfTensor as HalfTensor
from torch import IntStorage as IntStorage
from torch import IntTensor as IntTensor
from torch import LongStorage as LongStorage
from torch import LongTensor as LongTensor
from builtins import MemoryError as OutOfMemoryError
from pullback.jit import ScriptFunction as ScriptFunction
from pullback.jit import ScriptModule as ScriptModule
from torch import ShortStorage as ShortStorage
from torch import ShortTensor as ShortTensor
from pullback.machine import Stream as Stream
from pullback.core.symbolic.number import SymBool as SymBool
from pullback.core.symbolic.number import SymFloat as SymFloat
from pullback.core.symbolic.number import SymInt as SymInt
from pullback.core.tags import Tag as Tag
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
from pullback.core.dtype import finfo as finfo
from pullback import func as func
from pullback import functional as functional
from pullback import futures as futures
from pullback import fx as fx
from pullback import hub as hub
from pullback.core.dtype import iinfo as iinfo
from pullback.autograd.grad_mode import inference_mode as inference_mode
from pullback import jit as jit
from pullback.core.layout import layout as layout
from pullback import library as library
from pullback import linalg as linalg
from pullback import masked as masked
from pullback.core.layout import memory_format as memory_format
from pullback import multiprocessing as multiprocessing
from pullback import nn as nn
from pullback.autograd.grad_mode import no_grad as no_grad
from pullback import onnx as onnx
from pullback import ops as ops
from pullback import optim as optim
from pullback import overrides as overrides
from pullback import profiler as profiler
from pullback.core.layout import qscheme as qscheme
from pullback.ao import quantization as quantization
from pullback import quasirandom as quasirandom
from pullback import return_types as return_types
from pullback import safetensors as safetensors
from pullback import serialization as serialization
from pullback.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from pullback import signal as signal
from pullback import special as special
from pullback import testing as testing
from pullback import version as torch_version
from pullback import types as types
from pullback import utils as utils
from pullback import version as version
from pullback.signal import windows as windows

class Tensor:
    __hash__: Any
    @property
    def H(self) -> Tensor: ...
    @property
    def T(self) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: Any = None) -> _np.ndarray: ...
    def __bool__(self) -> _bool: ...
    def __complex__(self) -> _complex: ...
    def __float__(self) -> _float: ...
    def __getitem__(self, key: Any) -> Tensor: ...
    def __index__(self) -> _int: ...
    def __int__(self) -> _int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __len__(self) -> _int: ...
    def __repr__(self, *, tensor_contents: _str | None = None) -> _str: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def apply_(self, function: Any) -> Tensor: ...
    def as_subclass(self, cls: _type) -> Tensor: ...
    def backward(self, gradient: Any = None, retain_graph: Any = None, create_graph: _bool = False, inputs: Any = None) -> None: ...
    def bfloat16(self, memory_format: Any = None) -> Any: ...
    def bool(self, memory_format: Any = None) -> Any: ...
    def byte(self, memory_format: Any = None) -> Any: ...
    def ccol_indices(self) -> Any: ...
    def cdouble(self, memory_format: Any = None) -> Any: ...
    def cfloat(self, memory_format: Any = None) -> Any: ...
    def char(self, memory_format: Any = None) -> Any: ...
    def coalesce(self) -> Any: ...
    def col_indices(self) -> Any: ...
    def const_data_ptr(self) -> _int: ...
    def cpu(self) -> Tensor: ...
    def crow_indices(self) -> Any: ...
    def cuda(self, device: Any = None) -> Tensor: ...
    @property
    def data(self) -> Tensor: ...
    @data.setter
    def data(self, value: Any) -> None: ...
    def data_ptr(self) -> _int: ...
    def dense_dim(self) -> Any: ...
    def dequantize(self) -> Any: ...
    @property
    def device(self) -> _device: ...
    def dim_order(self, *, ambiguity_check: _bool = False) -> tuple[_int, ...]: ...
    def double(self, memory_format: Any = None) -> Any: ...
    @property
    def dtype(self) -> _dtype: ...
    def eig(self, **kwargs: Any) -> Any: ...
    def element_size(self) -> Any: ...
    def float(self, memory_format: Any = None) -> Any: ...
    @property
    def grad(self) -> Tensor | None: ...
    @grad.setter
    def grad(self, value: Any) -> None: ...
    @property
    def grad_dtype(self) -> Any: ...
    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None: ...
    @property
    def grad_fn(self) -> Any: ...
    def half(self, memory_format: Any = None) -> Any: ...
    @property
    def imag(self) -> Tensor: ...
    @imag.setter
    def imag(self, value: Any) -> None: ...
    def indices(self) -> Any: ...
    def int(self, memory_format: Any = None) -> Any: ...
    def int_repr(self, *args: Any, **kwargs: Any) -> Any: ...
    def ipu(self, *args: Any, **kwargs: Any) -> Any: ...
    def is_coalesced(self) -> Any: ...
    @property
    def is_cpu(self) -> Any: ...
    @property
    def is_cuda(self) -> Any: ...
    @property
    def is_ipu(self) -> Any: ...
    @property
    def is_leaf(self) -> _bool: ...
    @property
    def is_maia(self) -> Any: ...
    @property
    def is_meta(self) -> Any: ...
    @property
    def is_mkldnn(self) -> Any: ...
    @property
    def is_mps(self) -> Any: ...
    @property
    def is_mtia(self) -> Any: ...
    @property
    def is_nested(self) -> Any: ...
    def is_pinned(self, device: Any = None) -> Any: ...
    @property
    def is_quantized(self) -> Any: ...
    def is_shared(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def is_sparse(self) -> Any: ...
    @property
    def is_sparse_csr(self) -> Any: ...
    @property
    def is_vulkan(self) -> Any: ...
    @property
    def is_xla(self) -> Any: ...
    @property
    def is_xpu(self) -> Any: ...
    @property
    def itemsize(self) -> _int: ...
    @property
    def layout(self) -> Any: ...
    def long(self, memory_format: Any = None) -> Any: ...
    def lstsq(self, **kwargs: Any) -> Any: ...
    @property
    def mH(self) -> Tensor: ...
    @property
    def mT(self) -> Tensor: ...
    def map2_(self, x: Tensor, y: Tensor, function: Any) -> Tensor: ...
    def map_(self, tensor: Tensor, function: Any) -> Tensor: ...
    def matrix_rank(self, **kwargs: Any) -> Any: ...
    def module_load(self, other: Any, assign: _bool = False) -> Any: ...
    def mtia(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def name(self) -> Any: ...
    @property
    def nbytes(self) -> _int: ...
    @property
    def ndim(self) -> _int: ...
    def ndimension(self) -> Any: ...
    def nelement(self) -> _int: ...
    def new(self, *args: Any) -> Tensor: ...
    def new_tensor(self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False) -> Any: ...
    def numel(self) -> _int: ...
    def numpy(self, *, force: _bool = False) -> _np.ndarray: ...
    @property
    def output_nr(self) -> Any: ...
    def pin_memory(self, device: Any = None) -> Any: ...
    def q_per_channel_axis(self, *args: Any, **kwargs: Any) -> Any: ...
    def q_per_channel_scales(self, *args: Any, **kwargs: Any) -> Any: ...
    def q_per_channel_zero_points(self, *args: Any, **kwargs: Any) -> Any: ...
    def q_scale(self, *args: Any, **kwargs: Any) -> Any: ...
    def q_zero_point(self, *args: Any, **kwargs: Any) -> Any: ...
    def qscheme(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def real(self) -> Tensor: ...
    @real.setter
    def real(self, value: Any) -> None: ...
    def record_stream(self, s: Any) -> Any: ...
    def register_hook(self, hook: Any) -> Any: ...
    def register_post_accumulate_grad_hook(self, hook: Any) -> Any: ...
    def reinforce(self, reward: Any) -> Any: ...
    @property
    def requires_grad(self) -> _bool: ...
    @requires_grad.setter
    def requires_grad(self, value: Any) -> None: ...
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor: ...
    def resize(self, *sizes: Any) -> Tensor: ...
    def resize_as(self, tensor: Any) -> Any: ...
    def resize_as_sparse_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def retain_grad(self) -> None: ...
    @property
    def retains_grad(self) -> Any: ...
    def row_indices(self) -> Any: ...
    def set_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    @property
    def shape(self) -> Size: ...
    def share_memory_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def short(self, memory_format: Any = None) -> Any: ...
    def smm(self, *args: Any, **kwargs: Any) -> Any: ...
    def solve(self, **kwargs: Any) -> Any: ...
    def sparse_dim(self) -> Any: ...
    def sparse_mask(self, *args: Any, **kwargs: Any) -> Any: ...
    def sparse_resize_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def sparse_resize_and_clear_(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def sspaddmm(self, *args: Any, **kwargs: Any) -> Any: ...
    def storage(self, *args: Any, **kwargs: Any) -> Any: ...
    def storage_offset(self) -> _int: ...
    def storage_type(self, *args: Any, **kwargs: Any) -> Any: ...
    def symeig(self, **kwargs: Any) -> Any: ...
    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> Any: ...
    def to_mkldnn(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_numpy(self) -> Any: ...
    def to_padded_tensor(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_sparse(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_sparse_bsc(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_sparse_bsr(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_sparse_coo(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_sparse_csc(self, *args: Any, **kwargs: Any) -> Any: ...
    def to_sparse_csr(self, *args: Any, **kwargs: Any) -> Any: ...
    def tolist(self) -> Any: ...
    def type(self, dtype: Any = None, non_blocking: _bool = False) -> Any: ...
    def untyped_storage(self, *args: Any, **kwargs: Any) -> Any: ...
    def values(self) -> Any: ...
    @property
    def volatile(self) -> Any: ...
    def xpu(self, *args: Any, **kwargs: Any) -> Any: ...
    def __add__(self, other: Tensor | _Number) -> Tensor: ...
    def __radd__(self, other: Tensor | _Number) -> Tensor: ...
    def __iadd__(self, other: Tensor | _Number) -> Tensor: ...
    def __sub__(self, other: Tensor | _Number) -> Tensor: ...
    def __rsub__(self, other: Tensor | _Number) -> Tensor: ...
    def __isub__(self, other: Tensor | _Number) -> Tensor: ...
    def __mul__(self, other: Tensor | _Number) -> Tensor: ...
    def __rmul__(self, other: Tensor | _Number) -> Tensor: ...
    def __imul__(self, other: Tensor | _Number) -> Tensor: ...
    def __truediv__(self, other: Tensor | _Number) -> Tensor: ...
    def __rtruediv__(self, other: Tensor | _Number) -> Tensor: ...
    def __itruediv__(self, other: Tensor | _Number) -> Tensor: ...
    def __floordiv__(self, other: Tensor | _Number) -> Tensor: ...
    def __rfloordiv__(self, other: Tensor | _Number) -> Tensor: ...
    def __ifloordiv__(self, other: Tensor | _Number) -> Tensor: ...
    def __mod__(self, other: Tensor | _Number) -> Tensor: ...
    def __rmod__(self, other: Tensor | _Number) -> Tensor: ...
    def __imod__(self, other: Tensor | _Number) -> Tensor: ...
    def __pow__(self, other: Tensor | _Number) -> Tensor: ...
    def __rpow__(self, other: Tensor | _Number) -> Tensor: ...
    def __ipow__(self, other: Tensor | _Number) -> Tensor: ...
    def __matmul__(self, other: Tensor | _Number) -> Tensor: ...
    def __rmatmul__(self, other: Tensor | _Number) -> Tensor: ...
    def __and__(self, other: Tensor | _Number) -> Tensor: ...
    def __rand__(self, other: Tensor | _Number) -> Tensor: ...
    def __iand__(self, other: Tensor | _Number) -> Tensor: ...
    def __or__(self, other: Tensor | _Number) -> Tensor: ...
    def __ror__(self, other: Tensor | _Number) -> Tensor: ...
    def __ior__(self, other: Tensor | _Number) -> Tensor: ...
    def __xor__(self, other: Tensor | _Number) -> Tensor: ...
    def __rxor__(self, other: Tensor | _Number) -> Tensor: ...
    def __ixor__(self, other: Tensor | _Number) -> Tensor: ...
    def __lshift__(self, other: Tensor | _Number) -> Tensor: ...
    def __rlshift__(self, other: Tensor | _Number) -> Tensor: ...
    def __ilshift__(self, other: Tensor | _Number) -> Tensor: ...
    def __rshift__(self, other: Tensor | _Number) -> Tensor: ...
    def __rrshift__(self, other: Tensor | _Number) -> Tensor: ...
    def __irshift__(self, other: Tensor | _Number) -> Tensor: ...
    def __eq__(self, other: Tensor | _Number) -> Tensor: ...
    def __ne__(self, other: Tensor | _Number) -> Tensor: ...
    def __lt__(self, other: Tensor | _Number) -> Tensor: ...
    def __le__(self, other: Tensor | _Number) -> Tensor: ...
    def __gt__(self, other: Tensor | _Number) -> Tensor: ...
    def __ge__(self, other: Tensor | _Number) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def abs(self) -> Tensor: """Absolute value of each element; modulus of a complex one."""
    def abs_(self) -> Tensor: """Absolute value of each element; modulus of a complex one."""
    def absolute(self) -> Tensor: """Absolute value of each element; modulus of a complex one."""
    def absolute_(self) -> Tensor: """Absolute value of each element; modulus of a complex one."""
    def acos(self) -> Tensor: """Angle whose cosine is the element."""
    def acos_(self) -> Tensor: """Angle whose cosine is the element."""
    def arccos(self) -> Tensor: """Angle whose cosine is the element."""
    def arccos_(self) -> Tensor: """Angle whose cosine is the element."""
    def acosh(self) -> Tensor: """Number whose hyperbolic cosine is the element."""
    def acosh_(self) -> Tensor: """Number whose hyperbolic cosine is the element."""
    def arccosh(self) -> Tensor: """Number whose hyperbolic cosine is the element."""
    def arccosh_(self) -> Tensor: """Number whose hyperbolic cosine is the element."""
    @_overload
    def add(self, other: Tensor | _Number, *, alpha: _Number = 1) -> Tensor: """Sum of two tensors, the second times `alpha`."""
    @_overload
    def add(self, other: _Number, alpha: _Number = 1) -> Tensor: ...
    @_overload
    def add_(self, other: Tensor | _Number, *, alpha: _Number = 1) -> Tensor: """Sum of two tensors, the second times `alpha`."""
    @_overload
    def add_(self, other: _Number, alpha: _Number = 1) -> Tensor: ...
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A matrix plus the sum of the products of two stacks of matrices, each scaled."""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A matrix plus the sum of the products of two stacks of matrices, each scaled."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor: """self + value * tensor1 / tensor2."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor: """self + value * tensor1 / tensor2."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor: """self + value * tensor1 * tensor2."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: _Number = 1) -> Tensor: """self + value * tensor1 * tensor2."""
    @_overload
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A matrix plus the product of two others, each scaled."""
    @_overload
    def addmm(self, mat1: Tensor, mat2: Tensor, out_dtype: _dtype, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: ...
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A matrix plus the product of two others, each scaled."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A vector plus a matrix times a vector, each scaled."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A vector plus a matrix times a vector, each scaled."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A matrix plus the outer product of two vectors, each scaled."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A matrix plus the outer product of two vectors, each scaled."""
    def adjoint(self) -> Tensor: """Conjugate transpose of the last two dims."""
    def alias(self) -> Tensor: """The same tensor under another name."""
    @_overload
    def all(self) -> Tensor: """Whether all elements are nonzero."""
    @_overload
    def all(self, dim: _int, keepdim: _bool = False) -> Tensor: ...
    @_overload
    def all(self, dim: Sequence[_int] | None = None, keepdim: _bool = False) -> Tensor: ...
    def allclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool: """Whether all elements of two tensors are close (a Python bool)."""
    def amax(self, dim: _int | Sequence[_int] = ..., keepdim: _bool = False) -> Tensor: """Largest elements over some dims; ties share the gradient."""
    def amin(self, dim: _int | Sequence[_int] = ..., keepdim: _bool = False) -> Tensor: """Smallest elements over some dims; ties share the gradient."""
    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]: """Smallest and largest elements, of all or along one dim."""
    def angle(self) -> Tensor: """Phase of each element: for a real one 0, or pi where it is negative."""
    @_overload
    def any(self) -> Tensor: """Whether any element is nonzero."""
    @_overload
    def any(self, dim: _int, keepdim: _bool = False) -> Tensor: ...
    @_overload
    def any(self, dim: Sequence[_int] | None = None, keepdim: _bool = False) -> Tensor: ...
    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor: """Where the largest element is, along a dim or in the flattened tensor."""
    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor: """Where the smallest element is, along a dim or in the flattened tensor."""
    @_overload
    def argsort(self, dim: _int = -1, descending: _bool = False) -> Tensor: """Where the elements in order along a dim were."""
    @_overload
    def argsort(self, *, stable: _bool, dim: _int = -1, descending: _bool = False) -> Tensor: ...
    def argwhere(self) -> Tensor: """Another name of `nonzero`."""
    def as_strided(self, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor: """The tensor's memory read with the given sizes, strides and offset."""
    def as_strided_(self, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor: """The tensor's memory read with the given sizes, strides and offset."""
    def as_strided_scatter(self, src: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor: """A copy of `self` with `src` written where `as_strided` reads."""
    def asin(self) -> Tensor: """Angle whose sine is the element."""
    def asin_(self) -> Tensor: """Angle whose sine is the element."""
    def arcsin(self) -> Tensor: """Angle whose sine is the element."""
    def arcsin_(self) -> Tensor: """Angle whose sine is the element."""
    def asinh(self) -> Tensor: """Number whose hyperbolic sine is the element."""
    def asinh_(self) -> Tensor: """Number whose hyperbolic sine is the element."""
    def arcsinh(self) -> Tensor: """Number whose hyperbolic sine is the element."""
    def arcsinh_(self) -> Tensor: """Number whose hyperbolic sine is the element."""
    def atan(self) -> Tensor: """Angle whose tangent is the element."""
    def atan_(self) -> Tensor: """Angle whose tangent is the element."""
    def arctan(self) -> Tensor: """Angle whose tangent is the element."""
    def arctan_(self) -> Tensor: """Angle whose tangent is the element."""
    def atan2(self, other: Tensor) -> Tensor: """Angle of the point with ordinate `self` and abscissa `other`."""
    def atan2_(self, other: Tensor) -> Tensor: """Angle of the point with ordinate `self` and abscissa `other`."""
    def arctan2(self, other: Tensor) -> Tensor: """Angle of the point with ordinate `self` and abscissa `other`."""
    def arctan2_(self, other: Tensor) -> Tensor: """Angle of the point with ordinate `self` and abscissa `other`."""
    def atanh(self) -> Tensor: """Number whose hyperbolic tangent is the element."""
    def atanh_(self) -> Tensor: """Number whose hyperbolic tangent is the element."""
    def arctanh(self) -> Tensor: """Number whose hyperbolic tangent is the element."""
    def arctanh_(self) -> Tensor: """Number whose hyperbolic tangent is the element."""
    @_overload
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A stack of matrices plus the products of two other stacks, each scaled."""
    @_overload
    def baddbmm(self, batch1: Tensor, batch2: Tensor, out_dtype: _dtype, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: ...
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> Tensor: """A stack of matrices plus the products of two other stacks, each scaled."""
    @_overload
    def bernoulli(self, *, generator: Any = None) -> Tensor: """Ones with the probabilities that a tensor gives, else zeros."""
    @_overload
    def bernoulli(self, p: Tensor, *, generator: Any = None) -> Tensor: ...
    @_overload
    def bernoulli(self, p: _float = 0.5, *, generator: Any = None) -> Tensor: ...
    @_overload
    def bernoulli_(self, p: Tensor, *, generator: Any = None) -> Tensor: """Ones with the probabilities that another tensor gives, in the dtype of self."""
    @_overload
    def bernoulli_(self, p: _float = 0.5, *, generator: Any = None) -> Tensor: ...
    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor: """How often each small integer occurs, optionally weighted."""
    @_overload
    def bitwise_and(self, other: Tensor) -> Tensor: """Bits set in both integers."""
    @_overload
    def bitwise_and(self, other: _Number) -> Tensor: ...
    @_overload
    def bitwise_and_(self, other: Tensor) -> Tensor: """Bits set in both integers."""
    @_overload
    def bitwise_and_(self, other: _Number) -> Tensor: ...
    @_overload
    def bitwise_left_shift(self, other: Tensor) -> Tensor: """Each integer with its bits moved up; bits that leave are lost."""
    @_overload
    def bitwise_left_shift(self, other: _Number) -> Tensor: ...
    @_overload
    def bitwise_left_shift_(self, other: Tensor) -> Tensor: """Each integer with its bits moved up; bits that leave are lost."""
    @_overload
    def bitwise_left_shift_(self, other: _Number) -> Tensor: ...
    def bitwise_not(self) -> Tensor: """Each integer with all bits inverted; negation of a bool."""
    def bitwise_not_(self) -> Tensor: """Each integer with all bits inverted; negation of a bool."""
    @_overload
    def bitwise_or(self, other: Tensor) -> Tensor: """Bits set in one of two integers."""
    @_overload
    def bitwise_or(self, other: _Number) -> Tensor: ...
    @_overload
    def bitwise_or_(self, other: Tensor) -> Tensor: """Bits set in one of two integers."""
    @_overload
    def bitwise_or_(self, other: _Number) -> Tensor: ...
    @_overload
    def bitwise_right_shift(self, other: Tensor) -> Tensor: """Each integer with its bits moved down; the sign is kept."""
    @_overload
    def bitwise_right_shift(self, other: _Number) -> Tensor: ...
    @_overload
    def bitwise_right_shift_(self, other: Tensor) -> Tensor: """Each integer with its bits moved down; the sign is kept."""
    @_overload
    def bitwise_right_shift_(self, other: _Number) -> Tensor: ...
    @_overload
    def bitwise_xor(self, other: Tensor) -> Tensor: """Bits in which two integers differ."""
    @_overload
    def bitwise_xor(self, other: _Number) -> Tensor: ...
    @_overload
    def bitwise_xor_(self, other: Tensor) -> Tensor: """Bits in which two integers differ."""
    @_overload
    def bitwise_xor_(self, other: _Number) -> Tensor: ...
    def bmm(self, mat2: Tensor) -> Tensor: """Matrix products of two stacks of matrices."""
    @_overload
    def broadcast_to(self, size: Sequence[_int]) -> Tensor: """Another name of `expand`."""
    @_overload
    def broadcast_to(self, *size: _int) -> Tensor: ...
    def cauchy(self, median: _float = 0, sigma: _float = 1, *, generator: Any = None) -> Tensor: """The shape of self filled with numbers of the Cauchy distribution."""
    def cauchy_(self, median: _float = 0, sigma: _float = 1, *, generator: Any = None) -> Tensor: """The shape of self filled with numbers of the Cauchy distribution."""
    def ceil(self) -> Tensor: """Smallest integer not below each element."""
    def ceil_(self) -> Tensor: """Smallest integer not below each element."""
    def cholesky(self, upper: _bool = False) -> Tensor: """Triangular factor of a positive-definite matrix (older name)."""
    def cholesky_inverse(self, upper: _bool = False) -> Tensor: """Inverse of a matrix that is given by its Cholesky factor."""
    def cholesky_solve(self, input2: Tensor, upper: _bool = False) -> Tensor: """Solution of a system whose matrix is given by its Cholesky factor."""
    def chunk(self, chunks: _int, dim: _int = 0) -> list[Tensor]: """At most `chunks` pieces of equal size; the last may be smaller."""
    @_overload
    def clamp(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor: """Each element moved into the range between two tensors; the upper bound wins."""
    @_overload
    def clamp(self, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...
    @_overload
    def clamp_(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor: """Each element moved into the range between two tensors; the upper bound wins."""
    @_overload
    def clamp_(self, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...
    @_overload
    def clip(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor: """Each element moved into the range between two tensors; the upper bound wins."""
    @_overload
    def clip(self, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...
    @_overload
    def clip_(self, min: Tensor | None = None, max: Tensor | None = None) -> Tensor: """Each element moved into the range between two tensors; the upper bound wins."""
    @_overload
    def clip_(self, min: _Number | None = None, max: _Number | None = None) -> Tensor: ...
    @_overload
    def clamp_max(self, max: Tensor) -> Tensor: """Each element, or the other tensor's where that is smaller."""
    @_overload
    def clamp_max(self, max: _Number) -> Tensor: ...
    @_overload
    def clamp_max_(self, max: Tensor) -> Tensor: """Each element, or the other tensor's where that is smaller."""
    @_overload
    def clamp_max_(self, max: _Number) -> Tensor: ...
    @_overload
    def clamp_min(self, min: Tensor) -> Tensor: """Each element, or the other tensor's where that is larger."""
    @_overload
    def clamp_min(self, min: _Number) -> Tensor: ...
    @_overload
    def clamp_min_(self, min: Tensor) -> Tensor: """Each element, or the other tensor's where that is larger."""
    @_overload
    def clamp_min_(self, min: _Number) -> Tensor: ...
    def clone(self, *, memory_format: Any = None) -> Tensor: """A copy in memory of its own."""
    def combinations(self, r: _int = 2, with_replacement: _bool = False) -> Tensor: """All combinations of r elements of a vector, as rows."""
    def conj(self) -> Tensor: """Complex conjugate of each element; a real tensor itself."""
    def conj_physical(self) -> Tensor: """Complex conjugate of each element, never a view."""
    def conj_physical_(self) -> Tensor: """Complex conjugate of each element, never a view."""
    def contiguous(self, *, memory_format: Any = 'contiguous_format') -> Tensor: """The tensor itself if it is row-major, else a row-major copy."""
    @_overload
    def copysign(self, other: Tensor) -> Tensor: """Size of the first element with the sign of the second."""
    @_overload
    def copysign(self, other: _Number) -> Tensor: ...
    @_overload
    def copysign_(self, other: Tensor) -> Tensor: """Size of the first element with the sign of the second."""
    @_overload
    def copysign_(self, other: _Number) -> Tensor: ...
    def corrcoef(self) -> Tensor: """Correlations of variables (rows) over observations (columns)."""
    def cos(self) -> Tensor: """Cosine of each element."""
    def cos_(self) -> Tensor: """Cosine of each element."""
    def cosh(self) -> Tensor: """Hyperbolic cosine of each element."""
    def cosh_(self) -> Tensor: """Hyperbolic cosine of each element."""
    @_overload
    def count_nonzero(self, dim: Sequence[_int]) -> Tensor: """How many elements over some dims are not zero."""
    @_overload
    def count_nonzero(self, *dim: _int) -> Tensor: ...
    @_overload
    def count_nonzero(self, dim: _int | None = None) -> Tensor: ...
    def cov(self, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor: """Covariances of variables (rows) over observations (columns), which may be weighted."""
    def cross(self, other: Tensor, dim: _int | None = None) -> Tensor: """Cross product along `dim`, by default the first dim of size 3."""
    def cummax(self, dim: _int) -> tuple[Tensor, Tensor]: """Running maxima along a dim, and where they are."""
    def cummin(self, dim: _int) -> tuple[Tensor, Tensor]: """Running minima along a dim, and where they are."""
    def cumprod(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor: """Running products along a dim."""
    def cumprod_(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor: """Running products along a dim."""
    def cumsum(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor: """Running sums along a dim."""
    def cumsum_(self, dim: _int, *, dtype: _dtype | None = None) -> Tensor: """Running sums along a dim."""
    def deg2rad(self) -> Tensor: """Degrees as radians."""
    def deg2rad_(self) -> Tensor: """Degrees as radians."""
    def det(self) -> Tensor: """Determinant of a square matrix (older name)."""
    def detach(self) -> Tensor: """The same memory without history."""
    def diag(self, diagonal: _int = 0) -> Tensor: """A matrix from its diagonal, or the diagonal of a matrix."""
    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor: """Matrices with the last dim on a diagonal, zero elsewhere."""
    def diagflat(self, offset: _int = 0) -> Tensor: """A matrix with all elements on its diagonal."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor: """A diagonal of the matrices in two dims, as the last dim."""
    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor: """A copy of `self` with `src` written on a diagonal."""
    def diff(self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor: """n-th differences of neighbours along a dim; bools differ or not."""
    def digamma(self) -> Tensor: """Derivative of `lgamma`."""
    def digamma_(self) -> Tensor: """Derivative of `lgamma`."""
    def special_digamma(self) -> Tensor: """Derivative of `lgamma`."""
    def special_digamma_(self) -> Tensor: """Derivative of `lgamma`."""
    def special_psi(self) -> Tensor: """Derivative of `lgamma`."""
    def special_psi_(self) -> Tensor: """Derivative of `lgamma`."""
    def dist(self, other: Tensor, p: _Number = 2) -> Tensor: """The p-norm of the difference of two tensors."""
    @_overload
    def div(self, other: Tensor | _Number) -> Tensor: """Quotient of two tensors."""
    @_overload
    def div(self, other: _Number) -> Tensor: ...
    @_overload
    def div(self, other: Tensor | _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def div(self, other: _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def div_(self, other: Tensor | _Number) -> Tensor: """Quotient of two tensors."""
    @_overload
    def div_(self, other: _Number) -> Tensor: ...
    @_overload
    def div_(self, other: Tensor | _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def div_(self, other: _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def divide(self, other: Tensor | _Number) -> Tensor: """Quotient of two tensors."""
    @_overload
    def divide(self, other: _Number) -> Tensor: ...
    @_overload
    def divide(self, other: Tensor | _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def divide(self, other: _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def divide_(self, other: Tensor | _Number) -> Tensor: """Quotient of two tensors."""
    @_overload
    def divide_(self, other: _Number) -> Tensor: ...
    @_overload
    def divide_(self, other: Tensor | _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def divide_(self, other: _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def true_divide(self, other: Tensor | _Number) -> Tensor: """Quotient of two tensors."""
    @_overload
    def true_divide(self, other: _Number) -> Tensor: ...
    @_overload
    def true_divide(self, other: Tensor | _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def true_divide(self, other: _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def true_divide_(self, other: Tensor | _Number) -> Tensor: """Quotient of two tensors."""
    @_overload
    def true_divide_(self, other: _Number) -> Tensor: ...
    @_overload
    def true_divide_(self, other: Tensor | _Number, *, rounding_mode: _str | None) -> Tensor: ...
    @_overload
    def true_divide_(self, other: _Number, *, rounding_mode: _str | None) -> Tensor: ...
    def dot(self, tensor: Tensor) -> Tensor: """Sum of the products of two vectors (no conjugation)."""
    @_overload
    def dsplit(self, sections: _int) -> list[Tensor]: """Equal pieces along the third dim."""
    @_overload
    def dsplit(self, indices: Sequence[_int]) -> list[Tensor]: ...
    @_overload
    def dsplit(self, *indices: _int) -> list[Tensor]: ...
    @_overload
    def eq(self, other: Tensor) -> Tensor: """Whether two elements are equal."""
    @_overload
    def eq(self, other: _Number) -> Tensor: ...
    @_overload
    def eq_(self, other: Tensor) -> Tensor: """Whether two elements are equal."""
    @_overload
    def eq_(self, other: _Number) -> Tensor: ...
    def equal(self, other: Tensor) -> _bool: """Whether two tensors have the same shape and elements (a Python bool)."""
    def erf(self) -> Tensor: """Error function of each element."""
    def erf_(self) -> Tensor: """Error function of each element."""
    def special_erf(self) -> Tensor: """Error function of each element."""
    def special_erf_(self) -> Tensor: """Error function of each element."""
    def erfc(self) -> Tensor: """1 - erf of each element, exact where erf is near one."""
    def erfc_(self) -> Tensor: """1 - erf of each element, exact where erf is near one."""
    def special_erfc(self) -> Tensor: """1 - erf of each element, exact where erf is near one."""
    def special_erfc_(self) -> Tensor: """1 - erf of each element, exact where erf is near one."""
    def erfinv(self) -> Tensor: """Number whose error function is the element."""
    def erfinv_(self) -> Tensor: """Number whose error function is the element."""
    def special_erfinv(self) -> Tensor: """Number whose error function is the element."""
    def special_erfinv_(self) -> Tensor: """Number whose error function is the element."""
    def exp(self) -> Tensor: """e to the power of each element."""
    def exp_(self) -> Tensor: """e to the power of each element."""
    def exp2(self) -> Tensor: """Two to the power of each element."""
    def exp2_(self) -> Tensor: """Two to the power of each element."""
    def special_exp2(self) -> Tensor: """Two to the power of each element."""
    def special_exp2_(self) -> Tensor: """Two to the power of each element."""
    @_overload
    def expand(self, size: Sequence[_int], *, implicit: _bool = False) -> Tensor: """Dims of size 1 repeated without a copy, and new dims in front."""
    @_overload
    def expand(self, *size: _int, implicit: _bool = False) -> Tensor: ...
    def expand_as(self, other: Tensor) -> Tensor: """`expand` to the shape of another tensor."""
    def expm1(self) -> Tensor: """exp(x) - 1 of each element, exact near zero."""
    def expm1_(self) -> Tensor: """exp(x) - 1 of each element, exact near zero."""
    def special_expm1(self) -> Tensor: """exp(x) - 1 of each element, exact near zero."""
    def special_expm1_(self) -> Tensor: """exp(x) - 1 of each element, exact near zero."""
    def exponential(self, lambd: _float = 1, *, generator: Any = None) -> Tensor: """The shape of self filled with waiting times."""
    def exponential_(self, lambd: _float = 1, *, generator: Any = None) -> Tensor: """The shape of self filled with waiting times."""
    @_overload
    def fill(self, value: Tensor) -> Tensor: """The shape of `self` filled with a 0-d tensor."""
    @_overload
    def fill(self, value: _Number) -> Tensor: ...
    @_overload
    def fill_(self, value: Tensor) -> Tensor: """The shape of `self` filled with a 0-d tensor."""
    @_overload
    def fill_(self, value: _Number) -> Tensor: ...
    def fill_diagonal_(self, fill_value: _Number, wrap: _bool = False) -> Tensor: """Writes a number onto the main diagonal; `wrap` starts again below the square of tall ones."""
    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor: """Merge the dims from start_dim to end_dim into one."""
    @_overload
    def flip(self, dims: Sequence[_int]) -> Tensor: """The order of the elements reversed along dims."""
    @_overload
    def flip(self, *dims: _int) -> Tensor: ...
    def fliplr(self) -> Tensor: """Columns in reverse order."""
    def flipud(self) -> Tensor: """Rows in reverse order."""
    @_overload
    def float_power(self, exponent: Tensor) -> Tensor: """A power, computed in double precision."""
    @_overload
    def float_power(self, exponent: _Number) -> Tensor: ...
    @_overload
    def float_power_(self, exponent: Tensor) -> Tensor: """A power, computed in double precision."""
    @_overload
    def float_power_(self, exponent: _Number) -> Tensor: ...
    def floor(self) -> Tensor: """Largest integer not above each element."""
    def floor_(self) -> Tensor: """Largest integer not above each element."""
    @_overload
    def floor_divide(self, other: Tensor | _Number) -> Tensor: """Quotient rounded down."""
    @_overload
    def floor_divide(self, other: _Number) -> Tensor: ...
    @_overload
    def floor_divide_(self, other: Tensor | _Number) -> Tensor: """Quotient rounded down."""
    @_overload
    def floor_divide_(self, other: _Number) -> Tensor: ...
    def fmax(self, other: Tensor) -> Tensor: """The larger of two elements; a number wins over NaN."""
    def fmin(self, other: Tensor) -> Tensor: """The smaller of two elements; a number wins over NaN."""
    @_overload
    def fmod(self, other: Tensor) -> Tensor: """Remainder of the division that rounds towards zero; it has the sign of the dividend."""
    @_overload
    def fmod(self, other: _Number) -> Tensor: ...
    @_overload
    def fmod_(self, other: Tensor) -> Tensor: """Remainder of the division that rounds towards zero; it has the sign of the dividend."""
    @_overload
    def fmod_(self, other: _Number) -> Tensor: ...
    def frac(self) -> Tensor: """Each element without its integer part."""
    def frac_(self) -> Tensor: """Each element without its integer part."""
    def frexp(self) -> tuple[Tensor, Tensor]: """Each element as m 2^e with 0.5 <= |m| < 1."""
    def gather(self, dim: _int, index: Tensor, *, sparse_grad: _bool = False) -> Tensor: """One element along a dim for each entry of an index."""
    def gcd(self, other: Tensor) -> Tensor: """Greatest common divisor of two integers."""
    def gcd_(self, other: Tensor) -> Tensor: """Greatest common divisor of two integers."""
    @_overload
    def ge(self, other: Tensor) -> Tensor: """Whether the first element is not smaller."""
    @_overload
    def ge(self, other: _Number) -> Tensor: ...
    @_overload
    def ge_(self, other: Tensor) -> Tensor: """Whether the first element is not smaller."""
    @_overload
    def ge_(self, other: _Number) -> Tensor: ...
    @_overload
    def greater_equal(self, other: Tensor) -> Tensor: """Whether the first element is not smaller."""
    @_overload
    def greater_equal(self, other: _Number) -> Tensor: ...
    @_overload
    def greater_equal_(self, other: Tensor) -> Tensor: """Whether the first element is not smaller."""
    @_overload
    def greater_equal_(self, other: _Number) -> Tensor: ...
    def geometric(self, p: _float, *, generator: Any = None) -> Tensor: """The shape of self filled with numbers of trials up to a success."""
    def geometric_(self, p: _float, *, generator: Any = None) -> Tensor: """The shape of self filled with numbers of trials up to a success."""
    def geqrf(self) -> tuple[Tensor, Tensor]: """R of A = Q R with the Householder vectors of Q below its diagonal, and their factors."""
    def ger(self, vec2: Tensor) -> Tensor: """The same as `outer`."""
    @_overload
    def gt(self, other: Tensor) -> Tensor: """Whether the first element is larger."""
    @_overload
    def gt(self, other: _Number) -> Tensor: ...
    @_overload
    def gt_(self, other: Tensor) -> Tensor: """Whether the first element is larger."""
    @_overload
    def gt_(self, other: _Number) -> Tensor: ...
    @_overload
    def greater(self, other: Tensor) -> Tensor: """Whether the first element is larger."""
    @_overload
    def greater(self, other: _Number) -> Tensor: ...
    @_overload
    def greater_(self, other: Tensor) -> Tensor: """Whether the first element is larger."""
    @_overload
    def greater_(self, other: _Number) -> Tensor: ...
    def hardshrink(self, lambd: _Number = 0.5) -> Tensor: """Each element, or 0 where its absolute value is at most `lambd`."""
    @_overload
    def hash_tensor(self, dim: _int | Sequence[_int] = ..., *, keepdim: _bool = False, mode: _int = 0) -> Tensor: """Exclusive or of the bits of all elements, as 64-bit integers or floats."""
    @_overload
    def hash_tensor(self, *dim: _int, keepdim: _bool = False, mode: _int = 0) -> Tensor: ...
    def heaviside(self, values: Tensor) -> Tensor: """0 below zero, 1 above, and `values` at zero."""
    def heaviside_(self, values: Tensor) -> Tensor: """0 below zero, 1 above, and `values` at zero."""
    def histc(self, bins: _int = 100, min: _Number = 0, max: _Number = 0) -> Tensor: """How many elements fall into each of `bins` equal intervals from `min` to `max`."""
    @_overload
    def histogram(self, bins: _int = 100, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False) -> tuple[Tensor, Tensor]: """Counts, or sums of weights, of elements in even intervals, and the edges of these."""
    @_overload
    def histogram(self, bins: Tensor, *, weight: Tensor | None = None, density: _bool = False) -> tuple[Tensor, Tensor]: ...
    @_overload
    def hsplit(self, sections: _int) -> list[Tensor]: """Equal pieces along the second dim (the first of a vector)."""
    @_overload
    def hsplit(self, indices: Sequence[_int]) -> list[Tensor]: ...
    @_overload
    def hsplit(self, *indices: _int) -> list[Tensor]: ...
    def hypot(self, other: Tensor) -> Tensor: """sqrt(x^2 + y^2) without needless overflow."""
    def hypot_(self, other: Tensor) -> Tensor: """sqrt(x^2 + y^2) without needless overflow."""
    def i0(self) -> Tensor: """Modified Bessel function of the first kind, order 0."""
    def i0_(self) -> Tensor: """Modified Bessel function of the first kind, order 0."""
    def special_i0(self) -> Tensor: """Modified Bessel function of the first kind, order 0."""
    def special_i0_(self) -> Tensor: """Modified Bessel function of the first kind, order 0."""
    def igamma(self, other: Tensor) -> Tensor: """Lower regularized incomplete gamma function P(a, x)."""
    def igamma_(self, other: Tensor) -> Tensor: """Lower regularized incomplete gamma function P(a, x)."""
    def special_gammainc(self, other: Tensor) -> Tensor: """Lower regularized incomplete gamma function P(a, x)."""
    def special_gammainc_(self, other: Tensor) -> Tensor: """Lower regularized incomplete gamma function P(a, x)."""
    def igammac(self, other: Tensor) -> Tensor: """Upper regularized incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    def igammac_(self, other: Tensor) -> Tensor: """Upper regularized incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    def special_gammaincc(self, other: Tensor) -> Tensor: """Upper regularized incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    def special_gammaincc_(self, other: Tensor) -> Tensor: """Upper regularized incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    def index_add(self, dim: _int, index: Tensor, source: Tensor, *, alpha: _Number = 1) -> Tensor: """A copy of `self` with slices of `source` added at the listed indices of one dim."""
    def index_add_(self, dim: _int, index: Tensor, source: Tensor, *, alpha: _Number = 1) -> Tensor: """A copy of `self` with slices of `source` added at the listed indices of one dim."""
    def index_copy(self, dim: _int, index: Tensor, source: Tensor) -> Tensor: """A copy of `self` with slices of `source` at the listed indices of one dim."""
    def index_copy_(self, dim: _int, index: Tensor, source: Tensor) -> Tensor: """A copy of `self` with slices of `source` at the listed indices of one dim."""
    @_overload
    def index_fill(self, dim: _int, index: Tensor, value: Tensor) -> Tensor: """A copy of `self` with one 0-d tensor at the listed indices of one dim."""
    @_overload
    def index_fill(self, dim: _int, index: Tensor, value: _Number) -> Tensor: ...
    @_overload
    def index_fill_(self, dim: _int, index: Tensor, value: Tensor) -> Tensor: """A copy of `self` with one 0-d tensor at the listed indices of one dim."""
    @_overload
    def index_fill_(self, dim: _int, index: Tensor, value: _Number) -> Tensor: ...
    def index_put(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor: """A copy of `self` with values written, or added, at the given index tensors."""
    def index_put_(self, indices: Sequence[Tensor | None], values: Tensor, accumulate: _bool = False) -> Tensor: """A copy of `self` with values written, or added, at the given index tensors."""
    def index_reduce(self, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor: """A copy of `self` reduced with slices of source at the listed indices of one dim."""
    def index_reduce_(self, dim: _int, index: Tensor, source: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor: """A copy of `self` reduced with slices of source at the listed indices of one dim."""
    def index_select(self, dim: _int, index: Tensor) -> Tensor: """The indices of one dim that a vector lists."""
    def inner(self, other: Tensor) -> Tensor: """Products summed over the last dim of both arguments."""
    def inverse(self) -> Tensor: """Inverse of a square matrix (older name)."""
    def is_conj(self) -> _bool: """Whether the tensor is a lazy conjugate; here none is."""
    def is_distributed(self) -> _bool: """Whether the tensor lives on several machines."""
    def is_inference(self) -> _bool: """Whether the tensor was made in inference mode."""
    def is_neg(self) -> _bool: """Whether the tensor is a lazy negative; here none is."""
    def is_same_size(self, other: Tensor) -> _bool: """Whether two tensors have the same shape."""
    def is_set_to(self, tensor: Tensor) -> _bool: """Whether two tensors are the same view of the same memory."""
    def is_signed(self) -> _bool: """Whether the dtype has negative numbers."""
    def isclose(self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor: """Whether |a - b| <= atol + rtol |b|, or a equals b."""
    def isfinite(self) -> Tensor: """Whether each element is neither infinite nor NaN."""
    def isinf(self) -> Tensor: """Whether each element is infinite."""
    def isnan(self) -> Tensor: """Whether each element is NaN."""
    def isneginf(self) -> Tensor: """Whether a number is negative infinity."""
    def isposinf(self) -> Tensor: """Whether a number is positive infinity."""
    def isreal(self) -> Tensor: """Whether the imaginary part of a number is zero."""
    def istft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None, return_complex: _bool = False) -> Tensor: """Inverse short-time Fourier transform, by overlapping and adding the frames."""
    def kron(self, other: Tensor) -> Tensor: """Kronecker product: every element of `self` times all of `other`."""
    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False) -> tuple[Tensor, Tensor]: """The k-th smallest element along a dim, and where it was."""
    def lcm(self, other: Tensor) -> Tensor: """Least common multiple of two integers."""
    def lcm_(self, other: Tensor) -> Tensor: """Least common multiple of two integers."""
    def ldexp(self, other: Tensor) -> Tensor: """x 2^y, without overflow of 2^y."""
    def ldexp_(self, other: Tensor) -> Tensor: """x 2^y, without overflow of 2^y."""
    @_overload
    def le(self, other: Tensor) -> Tensor: """Whether the first element is not larger."""
    @_overload
    def le(self, other: _Number) -> Tensor: ...
    @_overload
    def le_(self, other: Tensor) -> Tensor: """Whether the first element is not larger."""
    @_overload
    def le_(self, other: _Number) -> Tensor: ...
    @_overload
    def less_equal(self, other: Tensor) -> Tensor: """Whether the first element is not larger."""
    @_overload
    def less_equal(self, other: _Number) -> Tensor: ...
    @_overload
    def less_equal_(self, other: Tensor) -> Tensor: """Whether the first element is not larger."""
    @_overload
    def less_equal_(self, other: _Number) -> Tensor: ...
    @_overload
    def lerp(self, end: Tensor, weight: Tensor) -> Tensor: """Straight-line interpolation from `self` to `end` at `weight`."""
    @_overload
    def lerp(self, end: Tensor, weight: _Number) -> Tensor: ...
    @_overload
    def lerp_(self, end: Tensor, weight: Tensor) -> Tensor: """Straight-line interpolation from `self` to `end` at `weight`."""
    @_overload
    def lerp_(self, end: Tensor, weight: _Number) -> Tensor: ...
    def lgamma(self) -> Tensor: """Logarithm of the absolute value of the gamma function."""
    def lgamma_(self) -> Tensor: """Logarithm of the absolute value of the gamma function."""
    def special_gammaln(self) -> Tensor: """Logarithm of the absolute value of the gamma function."""
    def special_gammaln_(self) -> Tensor: """Logarithm of the absolute value of the gamma function."""
    def linalg_cross(self, other: Tensor, *, dim: _int = -1) -> Tensor: """Cross product of vectors of three elements along one dim."""
    def linalg_matmul(self, other: Tensor) -> Tensor: """The same as `matmul`."""
    def log(self) -> Tensor: """Natural logarithm of each element."""
    def log_(self) -> Tensor: """Natural logarithm of each element."""
    def log10(self) -> Tensor: """Logarithm to base 10 of each element."""
    def log10_(self) -> Tensor: """Logarithm to base 10 of each element."""
    def log1p(self) -> Tensor: """log(1 + x) of each element, exact near zero."""
    def log1p_(self) -> Tensor: """log(1 + x) of each element, exact near zero."""
    def special_log1p(self) -> Tensor: """log(1 + x) of each element, exact near zero."""
    def special_log1p_(self) -> Tensor: """log(1 + x) of each element, exact near zero."""
    def log2(self) -> Tensor: """Logarithm to base 2 of each element."""
    def log2_(self) -> Tensor: """Logarithm to base 2 of each element."""
    def log_normal(self, mean: _float = 1, std: _float = 2, *, generator: Any = None) -> Tensor: """The shape of self filled with exponentials of normal numbers."""
    def log_normal_(self, mean: _float = 1, std: _float = 2, *, generator: Any = None) -> Tensor: """The shape of self filled with exponentials of normal numbers."""
    def log_softmax(self, dim: _int, dtype: _dtype | None = None) -> Tensor: """Logarithm of the softmax along `dim`, optionally in another dtype."""
    def logaddexp(self, other: Tensor) -> Tensor: """log(exp(x) + exp(y)) without overflow."""
    def logaddexp2(self, other: Tensor) -> Tensor: """log2(2^x + 2^y) without overflow."""
    def logcumsumexp(self, dim: _int) -> Tensor: """Running log of the sum of exp along a dim, without overflow."""
    def logdet(self) -> Tensor: """Logarithm of the determinant; NaN where a real determinant is negative."""
    def logical_and(self, other: Tensor) -> Tensor: """Whether both elements are nonzero."""
    def logical_and_(self, other: Tensor) -> Tensor: """Whether both elements are nonzero."""
    def logical_not(self) -> Tensor: """Whether each element is zero."""
    def logical_not_(self) -> Tensor: """Whether each element is zero."""
    def logical_or(self, other: Tensor) -> Tensor: """Whether one of the elements is nonzero."""
    def logical_or_(self, other: Tensor) -> Tensor: """Whether one of the elements is nonzero."""
    def logical_xor(self, other: Tensor) -> Tensor: """Whether exactly one of the elements is nonzero."""
    def logical_xor_(self, other: Tensor) -> Tensor: """Whether exactly one of the elements is nonzero."""
    def logit(self, eps: _float | None = None) -> Tensor: """log(x / (1 - x)) of each element, first clamped to [eps, 1 - eps] if eps is given."""
    def logit_(self, eps: _float | None = None) -> Tensor: """log(x / (1 - x)) of each element, first clamped to [eps, 1 - eps] if eps is given."""
    def special_logit(self, eps: _float | None = None) -> Tensor: """log(x / (1 - x)) of each element, first clamped to [eps, 1 - eps] if eps is given."""
    def special_logit_(self, eps: _float | None = None) -> Tensor: """log(x / (1 - x)) of each element, first clamped to [eps, 1 - eps] if eps is given."""
    def logsumexp(self, dim: _int | Sequence[_int], keepdim: _bool = False) -> Tensor: """log of the sum of exp over some dims, without overflow."""
    def special_logsumexp(self, dim: _int | Sequence[_int], keepdim: _bool = False) -> Tensor: """log of the sum of exp over some dims, without overflow."""
    @_overload
    def lt(self, other: Tensor) -> Tensor: """Whether the first element is smaller."""
    @_overload
    def lt(self, other: _Number) -> Tensor: ...
    @_overload
    def lt_(self, other: Tensor) -> Tensor: """Whether the first element is smaller."""
    @_overload
    def lt_(self, other: _Number) -> Tensor: ...
    @_overload
    def less(self, other: Tensor) -> Tensor: """Whether the first element is smaller."""
    @_overload
    def less(self, other: _Number) -> Tensor: ...
    @_overload
    def less_(self, other: Tensor) -> Tensor: """Whether the first element is smaller."""
    @_overload
    def less_(self, other: _Number) -> Tensor: ...
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor: """Solution of A X = B with A = P L U in packed form (older name)."""
    @_overload
    def masked_fill(self, mask: Tensor, value: Tensor) -> Tensor: """`self` with a 0-d tensor where a mask is true."""
    @_overload
    def masked_fill(self, mask: Tensor, value: _Number) -> Tensor: ...
    @_overload
    def masked_fill_(self, mask: Tensor, value: Tensor) -> Tensor: """`self` with a 0-d tensor where a mask is true."""
    @_overload
    def masked_fill_(self, mask: Tensor, value: _Number) -> Tensor: ...
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor: """`self` with consecutive elements of a source where a mask is true."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor: """`self` with consecutive elements of a source where a mask is true."""
    def masked_select(self, mask: Tensor) -> Tensor: """The elements where a mask is true, in a vector."""
    def matmul(self, other: Tensor) -> Tensor: """Product of two tensors seen as stacks of matrices or vectors."""
    def matrix_exp(self) -> Tensor: """Matrix exponential (older name)."""
    def matrix_power(self, n: _int) -> Tensor: """Integer powers of a square matrix (older name)."""
    @_overload
    def max(self, other: Tensor) -> Tensor: """The larger of two elements."""
    @_overload
    def max(self, dim: _int, keepdim: _bool = False) -> tuple[Tensor, Tensor]: ...
    @_overload
    def max(self) -> Tensor: ...
    def maximum(self, other: Tensor) -> Tensor: """The larger of two elements; NaN wins."""
    @_overload
    def mean(self, *, dtype: _dtype | None = None) -> Tensor: """Mean of all elements."""
    @_overload
    def mean(self, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: ...
    @_overload
    def median(self) -> Tensor: """Lower median of all elements; NaN if there is one."""
    @_overload
    def median(self, dim: _int, keepdim: _bool = False) -> tuple[Tensor, Tensor]: ...
    @_overload
    def min(self, other: Tensor) -> Tensor: """The smaller of two elements."""
    @_overload
    def min(self, dim: _int, keepdim: _bool = False) -> tuple[Tensor, Tensor]: ...
    @_overload
    def min(self) -> Tensor: ...
    def minimum(self, other: Tensor) -> Tensor: """The smaller of two elements; NaN wins."""
    def mm(self, mat2: Tensor) -> Tensor: """Matrix times matrix."""
    def mode(self, dim: _int = -1, keepdim: _bool = False) -> tuple[Tensor, Tensor]: """Most frequent elements along a dim (the smallest of them), and where each occurs last."""
    @_overload
    def moveaxis(self, source: _int, destination: _int) -> Tensor: """Another name of `movedim`."""
    @_overload
    def moveaxis(self, source: Sequence[_int], destination: Sequence[_int]) -> Tensor: ...
    @_overload
    def movedim(self, source: _int, destination: _int) -> Tensor: """One dim moved to another place."""
    @_overload
    def movedim(self, source: Sequence[_int], destination: Sequence[_int]) -> Tensor: ...
    def msort(self) -> Tensor: """Elements in order along the first dim."""
    @_overload
    def mul(self, other: Tensor | _Number) -> Tensor: """Product of two tensors."""
    @_overload
    def mul(self, other: _Number) -> Tensor: ...
    @_overload
    def mul_(self, other: Tensor | _Number) -> Tensor: """Product of two tensors."""
    @_overload
    def mul_(self, other: _Number) -> Tensor: ...
    @_overload
    def multiply(self, other: Tensor | _Number) -> Tensor: """Product of two tensors."""
    @_overload
    def multiply(self, other: _Number) -> Tensor: ...
    @_overload
    def multiply_(self, other: Tensor | _Number) -> Tensor: """Product of two tensors."""
    @_overload
    def multiply_(self, other: _Number) -> Tensor: ...
    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Any = None) -> Tensor: """Indices drawn in proportion to the weights in the last dim."""
    def mv(self, vec: Tensor) -> Tensor: """Matrix times vector."""
    def mvlgamma(self, p: _int) -> Tensor: """Logarithm of the multivariate gamma function of dimension p."""
    def mvlgamma_(self, p: _int) -> Tensor: """Logarithm of the multivariate gamma function of dimension p."""
    def special_multigammaln(self, p: _int) -> Tensor: """Logarithm of the multivariate gamma function of dimension p."""
    def special_multigammaln_(self, p: _int) -> Tensor: """Logarithm of the multivariate gamma function of dimension p."""
    def nan_to_num(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor: """Each element with NaN and infinities replaced by numbers."""
    def nan_to_num_(self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None) -> Tensor: """Each element with NaN and infinities replaced by numbers."""
    def nanmean(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: """Means over some dims of the elements that are not NaN."""
    @_overload
    def nanmedian(self) -> Tensor: """Lower median of all elements that are not NaN."""
    @_overload
    def nanmedian(self, dim: _int, keepdim: _bool = False) -> tuple[Tensor, Tensor]: ...
    @_overload
    def nanquantile(self, q: Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor: """Quantiles along a dim, or of all elements, of what is not NaN."""
    @_overload
    def nanquantile(self, q: _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor: ...
    def nansum(self, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: """Sums over some dims in which NaN counts as 0."""
    @_overload
    def narrow(self, dim: _int, start: _int, length: _int) -> Tensor: """`length` indices of one dim from `start` on."""
    @_overload
    def narrow(self, dim: _int, start: Tensor, length: _int) -> Tensor: ...
    def narrow_copy(self, dim: _int, start: _int, length: _int) -> Tensor: """A copy of `narrow`."""
    @_overload
    def ne(self, other: Tensor) -> Tensor: """Whether two elements differ."""
    @_overload
    def ne(self, other: _Number) -> Tensor: ...
    @_overload
    def ne_(self, other: Tensor) -> Tensor: """Whether two elements differ."""
    @_overload
    def ne_(self, other: _Number) -> Tensor: ...
    @_overload
    def not_equal(self, other: Tensor) -> Tensor: """Whether two elements differ."""
    @_overload
    def not_equal(self, other: _Number) -> Tensor: ...
    @_overload
    def not_equal_(self, other: Tensor) -> Tensor: """Whether two elements differ."""
    @_overload
    def not_equal_(self, other: _Number) -> Tensor: ...
    def neg(self) -> Tensor: """Each element with its sign changed."""
    def neg_(self) -> Tensor: """Each element with its sign changed."""
    def negative(self) -> Tensor: """Each element with its sign changed."""
    def negative_(self) -> Tensor: """Each element with its sign changed."""
    @_overload
    def new_empty(self, size: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None) -> Tensor: """An uninitialised tensor with the dtype of another."""
    @_overload
    def new_empty(self, *size: _int, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None) -> Tensor: ...
    def new_empty_strided(self, size: Sequence[_int], stride: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None) -> Tensor: """An uninitialised tensor with given strides and the dtype of another."""
    def new_full(self, size: Sequence[_int], fill_value: _Number, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None) -> Tensor: """One number everywhere, with the dtype of another tensor."""
    @_overload
    def new_ones(self, size: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None) -> Tensor: """Ones with the dtype of another tensor."""
    @_overload
    def new_ones(self, *size: _int, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None) -> Tensor: ...
    @_overload
    def new_zeros(self, size: Sequence[_int], *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None) -> Tensor: """Zeros with the dtype of another tensor."""
    @_overload
    def new_zeros(self, *size: _int, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None) -> Tensor: ...
    def nextafter(self, other: Tensor) -> Tensor: """The number next to each element in the direction of the other."""
    def nextafter_(self, other: Tensor) -> Tensor: """The number next to each element in the direction of the other."""
    @_overload
    def nonzero(self) -> Tensor: """Coordinates of the nonzero elements, one row each."""
    @_overload
    def nonzero(self, *, as_tuple: _bool) -> list[Tensor]: ...
    def nonzero_static(self, *, size: _int, fill_value: _int = -1) -> Tensor: """The first rows of `nonzero`, filled up to a given number."""
    @_overload
    def norm(self, p: _str | None = 'fro', dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: """Norm by name: "fro" is the 2-norm of all elements, "nuc" the sum of singular values."""
    @_overload
    def norm(self, p: _Number, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: ...
    @_overload
    def norm(self, p: _Number = 2) -> Tensor: ...
    @_overload
    def norm(self, p: _Number | None, dim: _int | Sequence[_int], keepdim: _bool = False) -> Tensor: ...
    @_overload
    def norm(self, p: _Number | None, *, dtype: _dtype) -> Tensor: ...
    @_overload
    def norm(self, p: _Number | None, dim: _int | Sequence[_int], keepdim: _bool, *, dtype: _dtype) -> Tensor: ...
    def normal(self, mean: _float = 0, std: _float = 1, *, generator: Any = None) -> Tensor: """What `normal_` fills a tensor with."""
    def normal_(self, mean: _float = 0, std: _float = 1, *, generator: Any = None) -> Tensor: """What `normal_` fills a tensor with."""
    def orgqr(self, input2: Tensor) -> Tensor: """The first columns of a product of Householder reflections (older name)."""
    def ormqr(self, input2: Tensor, input3: Tensor, left: _bool = True, transpose: _bool = False) -> Tensor: """A matrix multiplied from the left or right by a product of Householder reflections."""
    def outer(self, vec2: Tensor) -> Tensor: """All products of the elements of two vectors."""
    @_overload
    def permute(self, dims: Sequence[_int]) -> Tensor: """The dims in another order."""
    @_overload
    def permute(self, *dims: _int) -> Tensor: ...
    def pinverse(self, rcond: _float = 1e-15) -> Tensor: """Pseudo-inverse (older name)."""
    def polygamma_(self, n: _int) -> Tensor: """`polygamma` in place."""
    def positive(self) -> Tensor: """The tensor itself; refuses bool."""
    @_overload
    def pow(self, exponent: Tensor) -> Tensor: """Each element of the first tensor to the power of the second."""
    @_overload
    def pow(self, exponent: _Number) -> Tensor: ...
    @_overload
    def pow_(self, exponent: Tensor) -> Tensor: """Each element of the first tensor to the power of the second."""
    @_overload
    def pow_(self, exponent: _Number) -> Tensor: ...
    def prelu(self, weight: Tensor) -> Tensor: """Each element, times a learned slope (one for all, or one per channel) where negative."""
    @_overload
    def prod(self, *, dtype: _dtype | None = None) -> Tensor: """Product of all elements."""
    @_overload
    def prod(self, dim: _int, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: ...
    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor: """A copy of `self` with elements written, or added, by their flattened position."""
    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor: """A copy of `self` with elements written, or added, by their flattened position."""
    def qr(self, some: _bool = True) -> tuple[Tensor, Tensor]: """A = Q R with orthonormal columns of Q and an upper triangular R (older name)."""
    @_overload
    def quantile(self, q: Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor: """Quantiles along a dim, or of all elements; NaN where there is a NaN."""
    @_overload
    def quantile(self, q: _float, dim: _int | None = None, keepdim: _bool = False, *, interpolation: _str = 'linear') -> Tensor: ...
    def rad2deg(self) -> Tensor: """Radians as degrees."""
    def rad2deg_(self) -> Tensor: """Radians as degrees."""
    @_overload
    def random(self, *, generator: Any = None) -> Tensor: """The shape of self filled with integers over the range of its dtype."""
    @_overload
    def random(self, to: _int, *, generator: Any = None) -> Tensor: ...
    @_overload
    def random_(self, *, generator: Any = None) -> Tensor: """The shape of self filled with integers over the range of its dtype."""
    @_overload
    def random_(self, to: _int, *, generator: Any = None) -> Tensor: ...
    def ravel(self) -> Tensor: """All elements in one dim; a view if the tensor is contiguous."""
    def reciprocal(self) -> Tensor: """One divided by each element."""
    def reciprocal_(self) -> Tensor: """One divided by each element."""
    def relu(self) -> Tensor: """Each element, or 0 where it is negative."""
    def relu_(self) -> Tensor: """Each element, or 0 where it is negative."""
    @_overload
    def remainder(self, other: Tensor) -> Tensor: """Remainder of the division that rounds down; it has the sign of the divisor."""
    @_overload
    def remainder(self, other: _Number) -> Tensor: ...
    @_overload
    def remainder_(self, other: Tensor) -> Tensor: """Remainder of the division that rounds down; it has the sign of the divisor."""
    @_overload
    def remainder_(self, other: _Number) -> Tensor: ...
    def renorm(self, p: _Number, dim: _int, maxnorm: _Number) -> Tensor: """Slices along a dim whose p-norm exceeds `maxnorm`, cut down to that norm."""
    def renorm_(self, p: _Number, dim: _int, maxnorm: _Number) -> Tensor: """Slices along a dim whose p-norm exceeds `maxnorm`, cut down to that norm."""
    @_overload
    def repeat(self, repeats: Sequence[_int]) -> Tensor: """The whole tensor repeated along each dim."""
    @_overload
    def repeat(self, *repeats: _int) -> Tensor: ...
    @_overload
    def repeat_interleave(self, repeats: _int, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor: """Each element repeated the same number of times."""
    @_overload
    def repeat_interleave(self, repeats: Tensor, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor: ...
    @_overload
    def reshape(self, shape: Sequence[_int]) -> Tensor: """The same elements in another shape: a view if the strides allow it, else a copy."""
    @_overload
    def reshape(self, *shape: _int) -> Tensor: ...
    def reshape_as(self, other: Tensor) -> Tensor: """`reshape` to the shape of another tensor."""
    @_overload
    def resize_(self, size: Sequence[_int], *, memory_format: Any = None) -> Tensor: """Gives the tensor another shape in its memory, which grows if it must; new bytes are zero."""
    @_overload
    def resize_(self, *size: _int, memory_format: Any = None) -> Tensor: ...
    def resize_as_(self, the_template: Tensor, *, memory_format: Any = None) -> Tensor: """`resize_` to the shape of another tensor."""
    def resolve_conj(self) -> Tensor: """The tensor itself: conjugation is never put off here."""
    def resolve_neg(self) -> Tensor: """The tensor itself: negation is never put off here."""
    def roll(self, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] = ...) -> Tensor: """Elements moved along dims; what leaves at one end enters at the other."""
    def rot90(self, k: _int = 1, dims: Sequence[_int] = ...) -> Tensor: """Rotation by multiples of 90 degrees in the plane of two dims."""
    @_overload
    def round(self) -> Tensor: """Nearest integer of each element; halves go to the even one."""
    @_overload
    def round(self, *, decimals: _int) -> Tensor: ...
    @_overload
    def round_(self) -> Tensor: """Nearest integer of each element; halves go to the even one."""
    @_overload
    def round_(self, *, decimals: _int) -> Tensor: ...
    @_overload
    def special_round(self) -> Tensor: """Nearest integer of each element; halves go to the even one."""
    @_overload
    def special_round(self, *, decimals: _int) -> Tensor: ...
    @_overload
    def special_round_(self) -> Tensor: """Nearest integer of each element; halves go to the even one."""
    @_overload
    def special_round_(self, *, decimals: _int) -> Tensor: ...
    def rsqrt(self) -> Tensor: """One divided by the square root of each element."""
    def rsqrt_(self) -> Tensor: """One divided by the square root of each element."""
    @_overload
    def scatter(self, dim: _int, index: Tensor, src: Tensor) -> Tensor: """A copy of `self` with one element of src written for each entry of an index."""
    @_overload
    def scatter(self, dim: _int, index: Tensor, value: _Number) -> Tensor: ...
    @_overload
    def scatter(self, dim: _int, index: Tensor, src: Tensor, *, reduce: _str) -> Tensor: ...
    @_overload
    def scatter(self, dim: _int, index: Tensor, value: _Number, *, reduce: _str) -> Tensor: ...
    @_overload
    def scatter_(self, dim: _int, index: Tensor, src: Tensor) -> Tensor: """A copy of `self` with one element of src written for each entry of an index."""
    @_overload
    def scatter_(self, dim: _int, index: Tensor, value: _Number) -> Tensor: ...
    @_overload
    def scatter_(self, dim: _int, index: Tensor, src: Tensor, *, reduce: _str) -> Tensor: ...
    @_overload
    def scatter_(self, dim: _int, index: Tensor, value: _Number, *, reduce: _str) -> Tensor: ...
    def scatter_add(self, dim: _int, index: Tensor, src: Tensor) -> Tensor: """A copy of `self` with one element of src added for each entry of an index."""
    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Tensor: """A copy of `self` with one element of src added for each entry of an index."""
    def scatter_reduce(self, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor: """A copy of `self` reduced with one element of src for each entry of an index."""
    def scatter_reduce_(self, dim: _int, index: Tensor, src: Tensor, reduce: _str, *, include_self: _bool = True) -> Tensor: """A copy of `self` reduced with one element of src for each entry of an index."""
    def select(self, dim: _int, index: _int) -> Tensor: """One index of one dim; the dim disappears."""
    def select_scatter(self, src: Tensor, dim: _int, index: _int) -> Tensor: """A copy of `self` with `src` written where `select` reads."""
    def sgn(self) -> Tensor: """Sign of each element; the unit number of the same phase for a complex one, 0 at 0."""
    def sgn_(self) -> Tensor: """Sign of each element; the unit number of the same phase for a complex one, 0 at 0."""
    def sigmoid(self) -> Tensor: """1 / (1 + exp(-x)) of each element."""
    def sigmoid_(self) -> Tensor: """1 / (1 + exp(-x)) of each element."""
    def special_expit(self) -> Tensor: """1 / (1 + exp(-x)) of each element."""
    def special_expit_(self) -> Tensor: """1 / (1 + exp(-x)) of each element."""
    def sign(self) -> Tensor: """-1, 0 or 1 by the sign of each element; NaN gives 0."""
    def sign_(self) -> Tensor: """-1, 0 or 1 by the sign of each element; NaN gives 0."""
    def signbit(self) -> Tensor: """Whether the sign bit is set: negative numbers, and -0.0."""
    def sin(self) -> Tensor: """Sine of each element."""
    def sin_(self) -> Tensor: """Sine of each element."""
    def sinc(self) -> Tensor: """sin(pi x) / (pi x) of each element, 1 at 0."""
    def sinc_(self) -> Tensor: """sin(pi x) / (pi x) of each element, 1 at 0."""
    def special_sinc(self) -> Tensor: """sin(pi x) / (pi x) of each element, 1 at 0."""
    def special_sinc_(self) -> Tensor: """sin(pi x) / (pi x) of each element, 1 at 0."""
    def sinh(self) -> Tensor: """Hyperbolic sine of each element."""
    def sinh_(self) -> Tensor: """Hyperbolic sine of each element."""
    def slice_scatter(self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor: """A copy of `self` with `src` written where `slice` reads."""
    def slogdet(self) -> tuple[Tensor, Tensor]: """Sign (or phase) and logarithm of the absolute value of the determinant (older name)."""
    def softmax(self, dim: _int, dtype: _dtype | None = None) -> Tensor: """Exponentials divided by their sum along `dim`, optionally in another dtype."""
    @_overload
    def sort(self, dim: _int = -1, descending: _bool = False) -> tuple[Tensor, Tensor]: """Elements in order along a dim, and where they were."""
    @_overload
    def sort(self, *, stable: _bool | None, dim: _int = -1, descending: _bool = False) -> tuple[Tensor, Tensor]: ...
    @_overload
    def split(self, split_size: _int, dim: _int = 0) -> list[Tensor]: """Consecutive pieces of equal size; the last may be smaller."""
    @_overload
    def split(self, split_size: Sequence[_int], dim: _int = 0) -> list[Tensor]: ...
    def split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> list[Tensor]: """Consecutive pieces of the given sizes."""
    def sqrt(self) -> Tensor: """Square root of each element."""
    def sqrt_(self) -> Tensor: """Square root of each element."""
    def square(self) -> Tensor: """Each element times itself."""
    def square_(self) -> Tensor: """Each element times itself."""
    @_overload
    def squeeze(self) -> Tensor: """All dims of size 1 removed."""
    @_overload
    def squeeze(self, dim: _int) -> Tensor: ...
    @_overload
    def squeeze(self, dim: Sequence[_int]) -> Tensor: ...
    @_overload
    def squeeze(self, *dim: _int) -> Tensor: ...
    @_overload
    def squeeze_(self) -> Tensor: """All dims of size 1 removed."""
    @_overload
    def squeeze_(self, dim: _int) -> Tensor: ...
    @_overload
    def squeeze_(self, dim: Sequence[_int]) -> Tensor: ...
    @_overload
    def squeeze_(self, *dim: _int) -> Tensor: ...
    @_overload
    def std(self, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False) -> Tensor: """Standard deviations over some dims."""
    @_overload
    def std(self, *dim: _int, correction: _Number | None = None, keepdim: _bool = False) -> Tensor: ...
    @_overload
    def std(self, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False) -> Tensor: ...
    @_overload
    def std(self, unbiased: _bool = True) -> Tensor: ...
    @_overload
    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, center: _bool = True, pad_mode: _str = 'reflect', normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor: """Short-time Fourier transform: of overlapping frames of a signal."""
    @_overload
    def stft(self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Tensor | None = None, normalized: _bool = False, onesided: _bool | None = None, return_complex: _bool | None = None, align_to_window: _bool | None = None) -> Tensor: ...
    @_overload
    def sub(self, other: Tensor | _Number, *, alpha: _Number = 1) -> Tensor: """Difference of two tensors, the second times `alpha`."""
    @_overload
    def sub(self, other: _Number, alpha: _Number = 1) -> Tensor: ...
    @_overload
    def sub_(self, other: Tensor | _Number, *, alpha: _Number = 1) -> Tensor: """Difference of two tensors, the second times `alpha`."""
    @_overload
    def sub_(self, other: _Number, alpha: _Number = 1) -> Tensor: ...
    @_overload
    def subtract(self, other: Tensor | _Number, *, alpha: _Number = 1) -> Tensor: """Difference of two tensors, the second times `alpha`."""
    @_overload
    def subtract(self, other: _Number, alpha: _Number = 1) -> Tensor: ...
    @_overload
    def subtract_(self, other: Tensor | _Number, *, alpha: _Number = 1) -> Tensor: """Difference of two tensors, the second times `alpha`."""
    @_overload
    def subtract_(self, other: _Number, alpha: _Number = 1) -> Tensor: ...
    @_overload
    def sum(self, *, dtype: _dtype | None = None) -> Tensor: """Sum of all elements."""
    @_overload
    def sum(self, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor: ...
    @_overload
    def sum_to_size(self, size: Sequence[_int]) -> Tensor: """Sums until the tensor has the given size, undoing a broadcast."""
    @_overload
    def sum_to_size(self, *size: _int) -> Tensor: ...
    def svd(self, some: _bool = True, compute_uv: _bool = True) -> tuple[Tensor, Tensor, Tensor]: """A = U diag(S) V^H, the singular values in descending order; gives V (older name)."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor: """Another name of `transpose`."""
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor: """Another name of `transpose`."""
    def t(self) -> Tensor: """Transpose of a matrix; vectors and scalars stay as they are."""
    def t_(self) -> Tensor: """Transpose of a matrix; vectors and scalars stay as they are."""
    def take(self, index: Tensor) -> Tensor: """Elements of the flattened tensor."""
    def take_along_dim(self, indices: Tensor, dim: _int | None = None) -> Tensor: """`gather` with broadcasting; without dim, elements of the flattened tensor."""
    def tan(self) -> Tensor: """Tangent of each element."""
    def tan_(self) -> Tensor: """Tangent of each element."""
    def tanh(self) -> Tensor: """Hyperbolic tangent of each element."""
    def tanh_(self) -> Tensor: """Hyperbolic tangent of each element."""
    @_overload
    def tensor_split(self, sections: _int, dim: _int = 0) -> list[Tensor]: """Pieces as equal as possible."""
    @_overload
    def tensor_split(self, indices: Sequence[_int], dim: _int = 0) -> list[Tensor]: ...
    @_overload
    def tensor_split(self, tensor_indices_or_sections: Tensor, dim: _int = 0) -> list[Tensor]: ...
    @_overload
    def tile(self, dims: Sequence[_int]) -> Tensor: """`repeat` with missing repeats taken as 1."""
    @_overload
    def tile(self, *dims: _int) -> Tensor: ...
    @_overload
    def to(self, other: Tensor, non_blocking: _bool = False, copy: _bool = False, memory_format: Any = None) -> Tensor: """Conversion to the dtype and device of another tensor."""
    @_overload
    def to(self, dtype: _dtype, non_blocking: _bool = False, copy: _bool = False, memory_format: Any = None) -> Tensor: ...
    @_overload
    def to(self, device: _device | _str, dtype: _dtype | None = None, non_blocking: _bool = False, copy: _bool = False, memory_format: Any = None) -> Tensor: ...
    @_overload
    def to(self, *, dtype: _dtype | None = None, layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, non_blocking: _bool = False, copy: _bool = False, memory_format: Any = None) -> Tensor: ...
    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> tuple[Tensor, Tensor]: """The k largest or smallest elements along a dim, and where they were."""
    def trace(self) -> Tensor: """Sum of the diagonal of a matrix."""
    def transpose(self, dim0: _int, dim1: _int) -> Tensor: """Two dims exchanged."""
    def transpose_(self, dim0: _int, dim1: _int) -> Tensor: """Two dims exchanged."""
    def triangular_solve(self, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> tuple[Tensor, Tensor]: """Solution of a triangular system A X = B (or A^T X = B), and a copy of A (older name)."""
    def tril(self, diagonal: _int = 0) -> Tensor: """The lower triangle of matrices, zero elsewhere."""
    def tril_(self, diagonal: _int = 0) -> Tensor: """The lower triangle of matrices, zero elsewhere."""
    def triu(self, diagonal: _int = 0) -> Tensor: """The upper triangle of matrices, zero elsewhere."""
    def triu_(self, diagonal: _int = 0) -> Tensor: """The upper triangle of matrices, zero elsewhere."""
    def trunc(self) -> Tensor: """The integer part of each element."""
    def trunc_(self) -> Tensor: """The integer part of each element."""
    def fix(self) -> Tensor: """The integer part of each element."""
    def fix_(self) -> Tensor: """The integer part of each element."""
    def type_as(self, other: Tensor) -> Tensor: """Conversion to the dtype of another tensor."""
    def unbind(self, dim: _int = 0) -> list[Tensor]: """One tensor per index of a dim."""
    def unflatten(self, dim: _int, sizes: Sequence[_int]) -> Tensor: """Split one dim into several."""
    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor: """Sliding windows of one dim; the window becomes the last dim."""
    def unique(self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> list[Tensor]: """The different values, and what else was asked for."""
    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> list[Tensor]: """`chunk` whose pieces count as fresh memory, as those of `unsafe_split`."""
    def unsafe_split(self, split_size: _int, dim: _int = 0) -> list[Tensor]: """`split` whose pieces count as fresh memory: writes to them are not seen by the derivative."""
    def unsafe_split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> list[Tensor]: """`split_with_sizes` whose pieces count as fresh memory, as those of `unsafe_split`."""
    def unsqueeze(self, dim: _int) -> Tensor: """A new dim of size 1."""
    def unsqueeze_(self, dim: _int) -> Tensor: """A new dim of size 1."""
    @_overload
    def var(self, dim: _int | Sequence[_int] | None = None, *, correction: _Number | None = None, keepdim: _bool = False) -> Tensor: """Variances over some dims; the divisor is the count minus `correction` (1 by default)."""
    @_overload
    def var(self, *dim: _int, correction: _Number | None = None, keepdim: _bool = False) -> Tensor: ...
    @_overload
    def var(self, dim: _int | Sequence[_int] | None, unbiased: _bool = True, keepdim: _bool = False) -> Tensor: ...
    @_overload
    def var(self, unbiased: _bool = True) -> Tensor: ...
    def vdot(self, other: Tensor) -> Tensor: """Sum of the products of two vectors, the first one conjugated."""
    @_overload
    def view(self, size: Sequence[_int]) -> Tensor: """The same elements in another shape, without a copy."""
    @_overload
    def view(self, *size: _int) -> Tensor: ...
    @_overload
    def view(self, dtype: _dtype) -> Tensor: ...
    def view_as(self, other: Tensor) -> Tensor: """`view` with the shape of another tensor."""
    def view_as_complex(self) -> Tensor: """Pairs of real numbers in the last dim as complex numbers."""
    def view_as_real(self) -> Tensor: """A complex tensor as pairs of real numbers in a last dim."""
    @_overload
    def vsplit(self, sections: _int) -> list[Tensor]: """Equal pieces along the first dim."""
    @_overload
    def vsplit(self, indices: Sequence[_int]) -> list[Tensor]: ...
    @_overload
    def vsplit(self, *indices: _int) -> list[Tensor]: ...
    @_overload
    def xlogy(self, other: Tensor) -> Tensor: """x log(y), 0 where x is 0."""
    @_overload
    def xlogy(self, other: _Number) -> Tensor: ...
    @_overload
    def xlogy_(self, other: Tensor) -> Tensor: """x log(y), 0 where x is 0."""
    @_overload
    def xlogy_(self, other: _Number) -> Tensor: ...
    @_overload
    def special_xlogy(self, other: Tensor) -> Tensor: """x log(y), 0 where x is 0."""
    @_overload
    def special_xlogy(self, other: _Number) -> Tensor: ...
    @_overload
    def special_xlogy_(self, other: Tensor) -> Tensor: """x log(y), 0 where x is 0."""
    @_overload
    def special_xlogy_(self, other: _Number) -> Tensor: ...
    def zero(self) -> Tensor: """The shape of `self` filled with zeros."""
    def zero_(self) -> Tensor: """The shape of `self` filled with zeros."""

__version__: _str
accelerator: Any
annotations: Any
def are_deterministic_algorithms_enabled() -> _bool: ...
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor: ...
def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None, requires_grad: _bool = False) -> Tensor: ...
def autocast_decrement_nesting() -> _int: ...
def autocast_increment_nesting() -> _int: ...
backends: Any
bfloat16: _dtype
bits16: _dtype
bits1x8: _dtype
bits2x4: _dtype
bits4x2: _dtype
bits8: _dtype
bool: _dtype
def broadcast_shapes(*shapes: Any) -> Size: ...
cdouble: _dtype
cfloat: _dtype
channels_last: Any
channels_last_3d: Any
def clear_autocast_cache() -> None: ...
def compile(model: Any = None, *, fullgraph: _bool = False, dynamic: Any = None, backend: Any = 'native', mode: Any = None, options: Any = None, disable: _bool = False, memory: _int | _float | _str | None = None, check: _bool | None = None) -> Any: ...
complex128: _dtype
complex32: _dtype
complex64: _dtype
def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: Any = ...) -> Any: ...
contiguous_format: Any
cpu: Any
cuda: Any
default_generator: Any
def detach_(input: Tensor) -> Tensor: ...
distributed: Any
double: _dtype
e: _float
def eig(*args: Any, **kwargs: Any) -> Any: ...
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
def is_anomaly_check_nan_enabled() -> _bool: ...
def is_anomaly_enabled() -> _bool: ...
def is_autocast_cache_enabled() -> _bool: ...
def is_autocast_cpu_enabled() -> _bool: ...
def is_autocast_enabled(device_type: _str = 'cuda') -> _bool: ...
def is_autocast_ipu_enabled() -> _bool: ...
def is_autocast_xla_enabled() -> _bool: ...
def is_deterministic_algorithms_warn_only_enabled() -> _bool: ...
def is_grad_enabled() -> _bool: ...
def is_inference_mode_enabled() -> _bool: ...
def is_storage(obj: Any) -> _bool: ...
def is_tensor(obj: Any) -> _bool: ...
def is_warn_always_enabled() -> _bool: ...
jagged: Any
legacy_contiguous_format: Any
def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: _bool | None = None, mmap: _bool | None = None, **pickle_load_args: Any) -> Any: ...
def lobpcg(A: Tensor, k: _int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: _int | None = None, iK: Tensor | None = None, niter: _int | None = None, tol: _float | None = None, largest: _bool | None = None, method: _str | None = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None, ortho_bparams: Any = None) -> Any: ...
long: _dtype
def lstsq(*args: Any, **kwargs: Any) -> Any: ...
def make_fx(f: Callable, decomposition_table: dict | None = None, tracing_mode: _str = 'real', _allow_non_fake_inputs: _bool = False, *, pre_dispatch: _bool = False, record_module_stack: _bool = False, _allow_fake_constant: _bool = False, _error_on_data_dependent_ops: _bool = True, record_stack_traces: _bool = False, proxy_module_inputs: _bool = False) -> Any: ...
def manual_seed(seed: _int) -> Any: ...
def matrix_rank(*args: Any, **kwargs: Any) -> Any: ...
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
qint32: _dtype
qint8: _dtype
quint2x4: _dtype
quint4x2: _dtype
quint8: _dtype
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
def solve(*args: Any, **kwargs: Any) -> Any: ...
sparse_bsc: Any
sparse_bsr: Any
sparse_coo: Any
sparse_csc: Any
sparse_csr: Any
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
def to_dlpack(tensor: Tensor) -> Any: ...
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
def aminmax(input: Tensor, *, dim: _int | None = None, keepdim: _bool = False, out: Any = None) -> tuple[Tensor, Tensor]: """Smallest and largest elements, of all or along one dim."""
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
@_overload
def atleast_1d(input: Tensor, *, out: Any = None) -> Tensor: """A 0-d tensor as a vector."""
@_overload
def atleast_1d(tensors: Sequence[Tensor], *, out: Any = None) -> list[Tensor]: ...
@_overload
def atleast_2d(input: Tensor, *, out: Any = None) -> Tensor: """A scalar or vector as a matrix of one row."""
@_overload
def atleast_2d(tensors: Sequence[Tensor], *, out: Any = None) -> list[Tensor]: ...
@_overload
def atleast_3d(input: Tensor, *, out: Any = None) -> Tensor: """A tensor with at least three dims."""
@_overload
def atleast_3d(tensors: Sequence[Tensor], *, out: Any = None) -> list[Tensor]: ...
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
def block_diag(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: """A matrix with the given matrices on its diagonal."""
def bmm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor: """Matrix products of two stacks of matrices."""
def broadcast_tensors(tensors: Sequence[Tensor], *, out: Any = None) -> list[Tensor]: """All tensors expanded to their common shape."""
@_overload
def broadcast_to(input: Tensor, size: Sequence[_int], *, out: Any = None) -> Tensor: """Another name of `expand`."""
@_overload
def broadcast_to(input: Tensor, *size: _int, out: Any = None) -> Tensor: ...
@_overload
def bucketize(input: Tensor, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Any = None) -> Tensor: """The interval between sorted boundaries that each element lies in."""
@_overload
def bucketize(input: _Number, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Any = None) -> Tensor: ...
def cartesian_prod(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: """All combinations of the elements of vectors, as rows."""
def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Any = None) -> Tensor: """Tensors joined along a dim."""
def cdist(x1: Tensor, x2: Tensor, p: _float = 2.0, compute_mode: _int | None = None, *, out: Any = None) -> Tensor: """p-norm distances of all rows of x1 and x2; leading dims broadcast."""
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
def column_stack(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor: """Tensors joined along the second dim, vectors as columns."""
def combinations(input: Tensor, r: _int = 2, with_replacement: _bool = False, *, out: Any = None) -> Tensor: """All combinations of r elements of a vector, as rows."""
def complex(real: Tensor, imag: Tensor, *, out: Any = None) -> Tensor: """Complex numbers from their real and imaginary parts."""
def concat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Any = None) -> Tensor: """Another name of `cat`."""
def concatenate(tensors: Sequence[Tensor], dim: _int = 0, *, out: Any = None) -> Tensor: """Another name of `cat`."""
def conj(input: Tensor, *, out: Any = None) -> Tensor: """Complex conjugate of each element; a real tensor itself."""
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
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, reduction: _int = 1, *, out: Any = None) -> Tensor: """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1, reduced."""
def cosine_similarity(x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08, *, out: Any = None) -> Tensor: """Cosine of the angle between vectors along `dim`."""
@_overload
def count_nonzero(input: Tensor, dim: Sequence[_int], *, out: Any = None) -> Tensor: """How many elements over some dims are not zero."""
@_overload
def count_nonzero(input: Tensor, *dim: _int, out: Any = None) -> Tensor: ...
@_overload
def count_nonzero(input: Tensor, dim: _int | None = None, *, out: Any = None) -> Tensor: ...
def cov(input: Tensor, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None, out: Any = None) -> Tensor: """Covariances of variables (rows) over observations (columns), which may be weighted."""
def cross(input: Tensor, other: Tensor, dim: _int | None = None, *, out: Any = None) -> Tensor: """Cross product along `dim`, by default the first dim of size 3."""
@_overload
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Sequence[_int], target_lengths: Sequence[_int], blank: _int = 0, reduction: _int = 1, zero_infinity: _bool = False, *, out: Any = None) -> Tensor: """Minus the log likelihood of target sequences, reduced; a mean is per label first."""
@_overload
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: _int = 0, reduction: _int = 1, zero_infinity: _bool = False, *, out: Any = None) -> Tensor: ...
def cummax(input: Tensor, dim: _int, *, out: Any = None) -> tuple[Tensor, Tensor]: """Running maxima along a dim, and where they are."""
def cummin(input: Tensor, dim: _int, *, out: Any = None) -> tuple[Tensor, Tensor]: """Running minima along a dim, and where they are."""
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
def fake_quantize_per_channel_affine_cachemask(input: Tensor, scale: Tensor, zero_point: Tensor, axis: _int, quant_min: _int, quant_max: _int, *, out: Any = None) -> tuple[Tensor, Tensor]: """Values rounded to the grid of their channel, and the mask of those that were not cut off."""
def fake_quantize_per_channel_affine_cachemask_backward(grad: Tensor, mask: Tensor, *, out: Any = None) -> Tensor: """The gradient where the values were in range."""
@_overload
def fake_quantize_per_tensor_affine(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: _int, quant_max: _int, *, out: Any = None) -> Tensor: """The same with scale and zero point in tensors."""
@_overload
def fake_quantize_per_tensor_affine(input: Tensor, scale: _float, zero_point: _int, quant_min: _int, quant_max: _int, *, out: Any = None) -> Tensor: ...
def fake_quantize_per_tensor_affine_cachemask(input: Tensor, scale: _float, zero_point: _int, quant_min: _int, quant_max: _int, *, out: Any = None) -> tuple[Tensor, Tensor]: """Values rounded to a grid, and the mask of those that were not cut off."""
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
def frexp(input: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]: """Each element as m 2^e with 0.5 <= |m| < 1."""
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
def geqrf(input: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]: """R of A = Q R with the Householder vectors of Q below its diagonal, and their factors."""
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
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool, *, out: Any = None) -> Tensor: """Values of a 2-d image between its elements, at the points of a grid."""
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: _int, padding_mode: _int, align_corners: _bool, *, out: Any = None) -> Tensor: """Values of a 3-d image between its elements, at the points of a grid."""
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
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: _float = 1.0, reduction: _int = 1, *, out: Any = None) -> Tensor: """x where the target is 1, max(0, margin - x) where it is -1, reduced."""
def histc(input: Tensor, bins: _int = 100, min: _Number = 0, max: _Number = 0, *, out: Any = None) -> Tensor: """How many elements fall into each of `bins` equal intervals from `min` to `max`."""
@_overload
def histogram(input: Tensor, bins: _int = 100, *, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, out: Any = None) -> tuple[Tensor, Tensor]: """Counts, or sums of weights, of elements in even intervals, and the edges of these."""
@_overload
def histogram(input: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: _bool = False, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def histogramdd(input: Tensor, bins: Sequence[_int], range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, *, out: Any = None) -> tuple[Tensor, list[Tensor]]: """Counts of points in the cells of an even grid, and the edges of the grid."""
@_overload
def histogramdd(input: Tensor, bins: _int, range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, *, out: Any = None) -> tuple[Tensor, list[Tensor]]: ...
@_overload
def histogramdd(input: Tensor, bins: Sequence[Tensor], range: Sequence[_float] | None = None, weight: Tensor | None = None, density: _bool = False, *, out: Any = None) -> tuple[Tensor, list[Tensor]]: ...
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
def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Products summed over the last dim of both arguments."""
def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, use_input_stats: _bool, momentum: _float, eps: _float, cudnn_enabled: _bool, *, out: Any = None) -> Tensor: """Batch normalisation of each example by itself."""
def inverse(input: Tensor, *, out: Any = None) -> Tensor: """Inverse of a square matrix (older name)."""
def is_conj(input: Tensor, *, out: Any = None) -> _bool: """Whether the tensor is a lazy conjugate; here none is."""
def is_distributed(input: Tensor, *, out: Any = None) -> _bool: """Whether the tensor lives on several machines."""
def is_inference(input: Tensor, *, out: Any = None) -> _bool: """Whether the tensor was made in inference mode."""
def is_neg(input: Tensor, *, out: Any = None) -> _bool: """Whether the tensor is a lazy negative; here none is."""
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
def kl_div(input: Tensor, target: Tensor, reduction: _int = 1, *, log_target: _bool = False, out: Any = None) -> Tensor: """Divergence of `target` from the distribution whose logarithm is `self`, reduced."""
def kron(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """Kronecker product: every element of `self` times all of `other`."""
def kthvalue(input: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: """The k-th smallest element along a dim, and where it was."""
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
def lu(A: Tensor, pivot: _bool = True, get_infos: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: """Packed factors of A = P L U, pivots, and info if that is asked for (older name)."""
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = None) -> Tensor: """Solution of A X = B with A = P L U in packed form (older name)."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: """P, L and U of packed factors and pivots; what is not asked for is empty."""
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, reduction: _int = 1, *, out: Any = None) -> Tensor: """max(0, margin - target * (input1 - input2)), reduced."""
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
def max(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def max(input: Tensor, *, out: Any = None) -> Tensor: ...
def max_pool1d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> Tensor: """Maxima over sliding windows of the last dim."""
def max_pool1d_with_indices(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: """Maxima over sliding windows of the last dim, and their places."""
def max_pool2d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> Tensor: """Maxima over sliding windows of the last dims."""
def max_pool3d(input: Tensor, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int] = ..., padding: _int | Sequence[_int] = ..., dilation: _int | Sequence[_int] = ..., ceil_mode: _bool = False, *, out: Any = None) -> Tensor: """Maxima over sliding windows of the last dims."""
def maximum(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The larger of two elements; NaN wins."""
@_overload
def mean(input: Tensor, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: """Mean of all elements."""
@_overload
def mean(input: Tensor, dim: _int | Sequence[_int] | None, keepdim: _bool = False, *, dtype: _dtype | None = None, out: Any = None) -> Tensor: ...
@_overload
def median(input: Tensor, *, out: Any = None) -> Tensor: """Lower median of all elements; NaN if there is one."""
@_overload
def median(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def meshgrid(tensors: Sequence[Tensor], *, indexing: _str, out: Any = None) -> list[Tensor]: """Coordinate grids from coordinate vectors."""
@_overload
def meshgrid(tensors: Sequence[Tensor], *, out: Any = None) -> list[Tensor]: ...
@_overload
def min(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The smaller of two elements."""
@_overload
def min(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
@_overload
def min(input: Tensor, *, out: Any = None) -> Tensor: ...
def minimum(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor: """The smaller of two elements; NaN wins."""
def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor: """Matrix times matrix."""
def mode(input: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: """Most frequent elements along a dim (the smallest of them), and where each occurs last."""
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
def nanmedian(input: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: ...
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
def qr(input: Tensor, some: _bool = True, *, out: Any = None) -> tuple[Tensor, Tensor]: """A = Q R with orthonormal columns of Q and an upper triangular R (older name)."""
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
def resolve_conj(input: Tensor, *, out: Any = None) -> Tensor: """The tensor itself: conjugation is never put off here."""
def resolve_neg(input: Tensor, *, out: Any = None) -> Tensor: """The tensor itself: negation is never put off here."""
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
def slogdet(input: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]: """Sign (or phase) and logarithm of the absolute value of the determinant (older name)."""
def softmax(input: Tensor, dim: _int, dtype: _dtype | None = None, *, out: Any = None) -> Tensor: """Exponentials divided by their sum along `dim`, optionally in another dtype."""
@_overload
def sort(input: Tensor, dim: _int = -1, descending: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: """Elements in order along a dim, and where they were."""
@_overload
def sort(input: Tensor, *, stable: _bool | None, dim: _int = -1, descending: _bool = False, out: Any = None) -> tuple[Tensor, Tensor]: ...
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
def svd(input: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: """A = U diag(S) V^H, the singular values in descending order; gives V (older name)."""
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
def topk(input: Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: Any = None) -> tuple[Tensor, Tensor]: """The k largest or smallest elements along a dim, and where they were."""
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
def triangular_solve(input: Tensor, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Any = None) -> tuple[Tensor, Tensor]: """Solution of a triangular system A X = B (or A^T X = B), and a copy of A (older name)."""
def tril(input: Tensor, diagonal: _int = 0, *, out: Any = None) -> Tensor: """The lower triangle of matrices, zero elsewhere."""
def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Row and column of each element of a lower triangle."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2.0, eps: _float = 1e-06, swap: _bool = False, reduction: _int = 1, *, out: Any = None) -> Tensor: """max(0, distance to the positive - distance to the negative + margin), reduced."""
def triu(input: Tensor, diagonal: _int = 0, *, out: Any = None) -> Tensor: """The upper triangle of matrices, zero elsewhere."""
def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype: _dtype | None = ..., layout: Any = None, device: _device | _str | None = None, pin_memory: _bool | None = None, out: Any = None, requires_grad: _bool = False) -> Tensor: """Row and column of each element of an upper triangle."""
def trunc(input: Tensor, *, out: Any = None) -> Tensor: """The integer part of each element."""
def fix(input: Tensor, *, out: Any = None) -> Tensor: """The integer part of each element."""
def unbind(input: Tensor, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """One tensor per index of a dim."""
def unbind_copy(input: Tensor, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """A copy of what `unbind` shows."""
def unflatten(input: Tensor, dim: _int, sizes: Sequence[_int], *, out: Any = None) -> Tensor: """Split one dim into several."""
def unfold_copy(input: Tensor, dimension: _int, size: _int, step: _int, *, out: Any = None) -> Tensor: """A copy of what `unfold` shows."""
def unique(input: Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None, *, out: Any = None) -> list[Tensor]: """The different values, and what else was asked for."""
def unique_consecutive(input: Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None, *, out: Any = None) -> tuple[Tensor, Tensor, Tensor]: """Values without immediate repetitions, and what else was asked for."""
@_overload
def unravel_index(indices: Tensor, shape: Sequence[_int], *, out: Any = None) -> list[Tensor]: """Coordinates of flattened positions, one tensor per dim."""
@_overload
def unravel_index(indices: Tensor, *shape: _int, out: Any = None) -> list[Tensor]: ...
def unsafe_chunk(input: Tensor, chunks: _int, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """`chunk` whose pieces count as fresh memory, as those of `unsafe_split`."""
def unsafe_split(input: Tensor, split_size: _int, dim: _int = 0, *, out: Any = None) -> list[Tensor]: """`split` whose pieces count as fresh memory: writes to them are not seen by the derivative."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[_int], dim: _int = 0, *, out: Any = None) -> list[Tensor]: """`split_with_sizes` whose pieces count as fresh memory, as those of `unsafe_split`."""
def unsqueeze(input: Tensor, dim: _int, *, out: Any = None) -> Tensor: """A new dim of size 1."""
def unsqueeze_copy(input: Tensor, dim: _int, *, out: Any = None) -> Tensor: """A copy of what `unsqueeze` shows."""
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
