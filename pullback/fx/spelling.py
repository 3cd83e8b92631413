"""How graphs show what PyTorch has in another form: parts, whole operators, formulas.

An operator of the table may be one kernel here and several operators in PyTorch (`where` with a
number), or the other way round (`norm`), and a formula may be written for speed or for the sake of
higher derivatives.  Graphs that people read (`make_fx`, `aot_function`, `aot_export_*`) follow
PyTorch; eager mode and `compile` do not come here.  `formulas/printed.py` has the longer formulas.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..core import dtype as dt
from ..core.dims import wrap_dim
from ..core.formula import Rule
from ..core.layout import STRIDED
from ..core.table import ops

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
""".split()


class Spelling:
    """The parts of operators, operators that are whole, and formulas of one kind of capture."""

    def __init__(self, *tables: dict[str, Callable]):
        self.parts = {name: f for table in tables for name, f in table.items()}
        self._whole = {n for n in WHOLE if not n.endswith("*")}
        self._families = tuple(n[:-1] for n in WHOLE if n.endswith("*"))
        self._rules: dict = {}

    def whole(self, ov) -> bool:
        """Is a composite operator to be one node?"""
        return ov.name in self._whole or ov.name.startswith(self._families)

    def rule(self, ov) -> Rule | None:
        """The derivative of an operator, by PyTorch's formulas where these differ."""
        try:
            return self._rules[ov]
        except KeyError:
            printed = FORMULAS.get(ov.name)
            rule = Rule(ov, printed) if printed else None if ov.is_composite else ov.rule
            self._rules[ov] = rule
            return rule


# formulas, where PyTorch's are not those of the table

FORMULAS: dict[str, dict[str, str]] = {}

# parts

PARTS: dict[str, Callable] = {}
TRACED: dict[str, Callable] = {}  # of captures with PyTorch's dispatcher in Python


def spells(*names: str, table: dict = PARTS):
    """Enter the parts of operators."""
    def enter(function: Callable) -> Callable:
        table.update(dict.fromkeys(names, function))
        return function
    return enter


def number(value, like, dtype=None):
    """A number as a tensor, as C++ makes it."""
    return ops.scalar_tensor(value, dtype=dtype or like.dtype, layout=STRIDED, device=like.device)


@spells("where.ScalarOther")
def _where_other(condition, self, other):
    dtype = dt.result_type([self._data, other])
    return ops.where(condition, self.to(dtype), number(other, self, dtype))


@spells("where.ScalarSelf")
def _where_self(condition, self, other):
    dtype = dt.result_type([other._data, self])
    return ops.where(condition, number(self, other, dtype), other.to(dtype))


@spells("where.Scalar")
def _where_both(condition, self, other):
    dtype = dt.result_type([self, other])
    second = number(other, condition, dtype)
    return ops.where(condition, number(self, condition, dtype), second)


@functools.cache
def eager() -> Spelling:
    """Of captures that run PyTorch's own kernels: `make_fx`, unless sizes are symbols."""
    return Spelling(PARTS)


@functools.cache
def traced() -> Spelling:
    """Of captures in which Python stands in for more of PyTorch's operators: AOT, symbolic sizes."""
    return Spelling(PARTS, TRACED)
