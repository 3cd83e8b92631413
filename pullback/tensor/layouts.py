"""Methods of tensors that give them another layout: `sparse/`, `nested/` and others do the work.

Those packages are loaded by the first call.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array.layout import layout as layouts
from ..core.handle import Tensor
from .overridable import overridable


def _converted(t: Tensor, to: Any, blocks: Any = None, sparse_dim: int | None = None,
               dense_dim: int | None = None):
    from ..sparse.convert import convert

    return convert(t, layouts.known[f"sparse_{to}"] if type(to) is str else to, blocks, sparse_dim,
                   dense_dim)


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None,
              blocksize: Any = None, dense_dim: int | None = None):
    """The elements that are not zero, with coordinates or in another sparse layout."""
    if sparse_dim is not None and (layout, blocksize, dense_dim) != (None, None, None):
        raise errors.ArgumentError(
            "to_sparse() takes a number of sparse dims, or layout=, blocksize= and dense_dim= "
            f"({errors.user_line(2)})")
    return _converted(self, layout or "coo", blocksize, sparse_dim, dense_dim)


def to_sparse_coo(self: Tensor):
    """The elements that are not zero, with coordinates."""
    return _converted(self, "coo")


def to_sparse_csr(self: Tensor, dense_dim: int | None = None):
    """A matrix as the elements of its rows that are not zero."""
    return _converted(self, "csr", None, None, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None):
    """A matrix as the elements of its columns that are not zero."""
    return _converted(self, "csc", None, None, dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None):
    """A matrix as the blocks of its rows that are not zero."""
    return _converted(self, "bsr", blocksize, None, dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None):
    """A matrix as the blocks of its columns that are not zero."""
    return _converted(self, "bsc", blocksize, None, dense_dim)


METHODS = {f.__name__: overridable(f) for f in (
    to_sparse, to_sparse_coo, to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc)}
