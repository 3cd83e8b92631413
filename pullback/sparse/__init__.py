"""Sparse tensors: constructors, conversions, products and the functions of `torch.sparse`.

A sparse tensor is made of integers and of values (`parts/`); derivatives live on its entries and
cost as much as these.  Nothing is loaded before a program asks for it.  Read next: `tensor.py`.
"""

from ..absent import getter as _getter
from . import (
    dropout,
    elementwise,
    factories,
    indexing,
    inplace,
    joining,
    masked,
    products,
    reductions,
    shapes,
)
from .construct import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from .diagonals import spdiags
from .functions import addmm, as_sparse_gradcheck, mm
from .invariants import check_sparse_tensor_invariants
from .products import sampled_addmm
from .reductions import sum
from .scipy_forms import from_scipy, to_scipy
from .semi_structured import SparseSemiStructuredTensor, to_sparse_semi_structured
from .softmax import log_softmax, softmax
from .solve import spsolve

__all__ = [
    "SparseSemiStructuredTensor",
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "from_scipy",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "spdiags",
    "spsolve",
    "sum",
    "to_scipy",
    "to_sparse_semi_structured",
]
__getattr__ = _getter(__name__)
# loaded for what they add to the classes
_RULES = (dropout, elementwise, factories, indexing, inplace, joining, masked, products, reductions,
          shapes)
