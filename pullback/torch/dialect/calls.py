"""Operators and calls of PyTorch's dialect: what is one node and what its arguments are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...array.size import Symbolic
from ...core.formula import Rule
from ...core.handle import Tensor, make
from ...core.overload import OpOverload, overload
from ...graph.dialect import Dialect
from ...graph.make_fx import Recorder
from ...graph.node import Node
from ...interp.factories import added
from ...interp.operator_dispatch import of_formula
from ...memory.fresh import lifted
from ...table.packets import ops
from ...threads.state import calling
from .formulas import matches, rule
from .parts import TRACED

# Composite here, one operator there.  Patterns end with `*`.
WHOLE = """
    linalg__powsum norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dtype norm.ScalarOpt_dim_dtype
    block_diag _chunk_cat _unsafe_index.Tensor _unsafe_index_put _unsafe_masked_index
    _unsafe_masked_index_put_accumulate scatter.reduce scatter.value_reduce index_reduce
    unique_consecutive searchsorted.Scalar bucketize.Tensor bucketize.Scalar isin.Tensor_Scalar
    isin.Scalar_Tensor linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor
    logspace.Tensor_Tensor logspace.Tensor_Scalar logspace.Scalar_Tensor addmm.dtype baddbmm.dtype
    cholesky cholesky_inverse linalg_householder_product ormqr _linalg_eigvals triangular_solve
    rrelu_with_noise native_batch_norm batch_norm_update_stats batch_norm_stats batch_norm_elemt
    batch_norm_gather_stats_with_counts batch_norm_gather_stats batch_norm_backward_reduce
    batch_norm_backward_elemt _weight_norm_interface_backward _embedding_bag_forward_only
    _embedding_bag_backward _grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback_backward
    fft_fftfreq fft_rfftfreq hann_window* hamming_window* blackman_window* bartlett_window*
    kaiser_window* _segment_reduce_backward _cdist_backward _pdist_backward
    _fake_quantize_learnable_per_tensor_affine_backward
    _fake_quantize_learnable_per_channel_affine_backward linear_backward _addmm_activation
    _add_relu.Tensor _add_relu.Scalar _compute_linear_combination _stack _aminmax _aminmax.dim
    native_norm* _is_all_true _is_any_true slow_conv3d_forward slow_conv_dilated2d
    slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d _conv_depthwise2d
    conv_depthwise3d _slow_conv2d_forward _slow_conv2d_backward.output_mask _foreach_*
"""


class TorchDialect(Dialect):
    """What PyTorch's graphs of one kind of capture show."""

    keeps_whole = True

    def __init__(self, compositions: Mapping[str, Callable]):
        self.compositions = compositions
        self._numbers: dict[int, complex] = {}  # of operators that are made of others

    def whole(self, ov: OpOverload) -> bool:
        return matches(str(ov.name), WHOLE) or ov.op.base_name.endswith("_copy")

    def rule(self, ov: OpOverload) -> Rule | None:
        return rule(ov)

    def stored(self, value: complex, like: Tensor) -> Tensor | None:
        kernel = ops.scalar_tensor.default.kernel
        return lifted(make(kernel(np, value, like.dtype, None, None, None)))

    def keeps_slice(self, size: Any) -> bool:
        return isinstance(size, Symbolic)

    def shown(self, recorder: Recorder, ov: OpOverload, flat: tuple, args: list,
              kwargs: dict) -> tuple:
        forward = recorder.pulled is None
        if forward and ov.name in _SLICES:
            args = _bounded(args, _SLICES[ov.name])
        elif forward and "pin_memory" not in kwargs and not _inside(recorder.composing):
            kwargs = {**kwargs, **added(ov, any(isinstance(v, Node) for v in flat))}
        number = args[1] if len(args) == 2 else None
        number = flat[1] if isinstance(number, Node) else number  # a size that is a symbol
        if ov.op.with_number and len(args) == 2 and not kwargs and (
                isinstance(number, (int, float, complex, Symbolic))
                and self._compiled(recorder, number)):
            ov = overload(ov.op.with_number)
            self._numbers[id(number)] = number
        if forward and ov.name in _CORRECTED and not kwargs and len(args) > 1 and (
                args[1] is not None and calling.by is not ov):
            kwargs = {"correction": 1}  # of the overload that PyTorch chooses for `x.std(1)`
        return ov, args, kwargs

    def _compiled(self, recorder: Recorder, number: complex) -> bool:
        """Is it of C++ in PyTorch: of an operator made of others, or of a formula?

        And did not stand in the place of a tensor in the user's call?
        """
        if recorder.pulled is None or recorder.origin is not None:  # of a decomposition in Python
            return _composed(recorder.composing)
        return self._numbers.get(id(number)) is number or of_formula(recorder.pulled, number)


# calls as PyTorch's functions make them

_SLICES = {"slice.Tensor": 1, "slice_copy.Tensor": 1, "slice_scatter": 2}  # where the dim stands
_CORRECTED = {f"{name}.correction" for name in ("std", "var", "std_mean", "var_mean")}


def _bounded(args: list, at: int) -> list:
    """How `x[1:]` and `x[:3]` say where they begin and end."""
    args = [*args, *[0, None, None][len(args) - at:]] if len(args) < at + 3 else args
    args[at + 1] = 0 if args[at + 1] is None else args[at + 1]
    args[at + 2] = sys.maxsize if args[at + 2] is None else args[at + 2]
    return args


def _inside(composing: list) -> bool:
    """Is what is recorded a part of another operator?  `resize_` is one of ours alone."""
    ov = composing[-1] if composing else None
    return ov is not None and ov.name != "resize_"


def _composed(composing: list) -> bool:
    """Is what is recorded a part of an operator that PyTorch takes apart in C++?"""
    for ov in reversed(composing):
        if ov is None or ov.name in TRACED:
            return False
        if ov.is_composite:
            return True
    return False
