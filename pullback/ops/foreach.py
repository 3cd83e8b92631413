"""Lists of tensors: an operator of the table for each element.

Each line below says which operators have a list form, and what its arguments are; the rest is
derived in `table/lists.py`.  The order is that in which overloads are tried.
"""

from __future__ import annotations

from ..table.lists import derive

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
SCALAR = "add.Scalar sub.Scalar mul.Scalar div.Scalar clamp_min clamp_max maximum minimum"
PAIR = "Tensor[] self, Tensor[] other"
NORM = "Tensor[] self, Scalar ord=2, ScalarType? dtype=None"
TRIPLE = "Tensor[] self, Tensor[] tensor1, Tensor[] tensor2"
BLEND = "Tensor[] self, Tensor[] tensors1"

WITH_INPLACE = (  # operators, overload, arguments
    (UNARY, "", "Tensor[] self"),
    ("add.Tensor sub.Tensor", "List", f"{PAIR}, *, Scalar alpha=1"),
    ("mul.Tensor div.Tensor clamp_min.Tensor clamp_max.Tensor maximum minimum", "List", PAIR),
    ("add.Tensor", "Tensor", "Tensor[] self, Tensor other, *, Scalar alpha=1"),
    ("mul.Tensor div.Tensor", "Tensor", "Tensor[] self, Tensor other"),
    (SCALAR, "Scalar", "Tensor[] self, Scalar scalar"),
    (SCALAR, "ScalarList", "Tensor[] self, Scalar[] scalars"),
    ("pow.Tensor_Tensor", "List", "Tensor[] self, Tensor[] exponent"),
    ("pow.Tensor_Scalar", "Scalar", "Tensor[] self, Scalar exponent"),
    ("pow.Tensor_Scalar", "ScalarList", "Tensor[] self, Scalar[] exponent"),
    ("lerp.Tensor", "List", f"{BLEND}, Tensor[] weights"),
    ("lerp.Scalar", "Scalar", f"{BLEND}, Scalar weight"),
    ("lerp.Scalar", "ScalarList", f"{BLEND}, Scalar[] weight"),
    ("addcmul addcdiv", "Tensor", f"{TRIPLE}, Tensor scalars"),
    ("addcmul addcdiv", "Scalar", f"{TRIPLE}, Scalar value=1"),
    ("addcmul addcdiv", "ScalarList", f"{TRIPLE}, Scalar[] scalars"),
)
for _names, _overload, _arguments in WITH_INPLACE:
    for _name in _names.split():
        derive(_name, _overload, _arguments)

derive(
    "copy", "", "Tensor[] self, Tensor[] src, bool non_blocking=False", returns="Tensor[] self_out"
)
derive("zero", "", "Tensor[] self", returns="Tensor[] self_out")

derive("clone", "", "Tensor[] self, *, MemoryFormat? memory_format=None", inplace=False)
derive("max", "", "Tensor[] self", inplace=False)
derive("mm", "", "Tensor[] self, Tensor[] mat2", inplace=False)
derive("pow.Scalar", "ScalarAndTensor", "Scalar self, Tensor[] exponent", inplace=False)
derive("linalg_vector_norm", "Scalar", NORM, name="norm", inplace=False)
derive("linalg__powsum", "Scalar", NORM, name="powsum", inplace=False)
