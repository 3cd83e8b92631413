"""Products over vectors and chains: outer, inner, trace, tensordot, kron, multi_dot, cross.

Read next: `matmul.py`.
"""

from __future__ import annotations

from ..array.dims import broadcast_shapes, numel, wrap_dim
from ..core.op import Op
from ..errors import ShapeError
from ..table.packets import ops
from .kinds import ComplexComposite, Keeping, Synonym
from .matmul import is_half
from .pointwise import refuse

# ---------------------------------------------------------------------------------------------
# Composites over vectors


class outer(ComplexComposite):
    """All products of the elements of two vectors."""

    schema = "outer(Tensor self, Tensor vec2) -> Tensor"

    def compose(self, vec2):
        if self.ndim != 1 or vec2.ndim != 1:
            raise ShapeError(f"outer: 1D tensors expected, but got shapes {list(self.shape)} and "
                             f"{list(vec2.shape)}")
        return self.reshape([self.shape[0], 1]) * vec2

    samples = lambda s: [s(s.real(3), s.real(4)), s(s.real(0), s.real(4))]


class ger(Synonym):
    """The same as `outer`."""

    schema = "ger(Tensor self, Tensor vec2) -> Tensor"
    complex = True
    same_as = "outer"
    samples = lambda s: [s(s.real(3), s.real(4))]


class inner(ComplexComposite):
    """Products summed over the last dim of both arguments."""

    schema = "inner(Tensor self, Tensor other) -> Tensor"
    out = ("exact",)

    def compose(self, other):
        if self.ndim == 0 or other.ndim == 0:
            return self * other
        if self.shape[-1] != other.shape[-1]:
            raise ShapeError("inner() the last dimension must match on both input tensors but got "
                             f"shapes {list(self.shape)} and {list(other.shape)}")
        return ops.tensordot(self, other, [-1], [-1])

    def samples(s):
        yield s(s.real(3), s.real(3))
        yield s(s.real(2, 3), s.real(4, 3))
        yield s(s.real(), s.real(4, 3))


class linalg_vecdot(ComplexComposite):
    """Sum of products along one dim, the first operand conjugated."""

    schema = "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor"
    autocast = "lower"
    out = ("exact",)
    same_dtype = ("x", "y")

    def compose(x, y, dim):
        return (x.conj() * y).sum(dim)

    samples = lambda s: [s(s.real(2, 3), s.real(2, 3)), s(s.real(2, 3), s.real(3, 2, 1), dim=1)]


class trace(Keeping):
    """Sum of the diagonal of a matrix."""

    schema = "trace(Tensor self) -> Tensor"
    autocast = "float32"
    linear = ("self",)
    grad = {"self": "trace_grad(grad, self.shape)"}
    cost = "reduce"
    complex = True

    def run(xp, self):
        if self.ndim != 2:
            raise ShapeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
        refuse("trace", self, "b")
        if is_half(self):
            return xp.trace(self, dtype=xp.float32).astype(self.dtype)
        return xp.trace(self, dtype=xp.int64 if self.dtype.kind in "iu" else None)

    def shape(self):
        if self.ndim != 2:
            raise ShapeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
        return ()

    def dtype(self):
        from ..array.dtype import int64
        return int64 if self.dtype.category <= 1 else self.dtype

    def batch(n, batched, self):
        return self.diagonal(0, 1, 2).sum(-1)

    def decomp(self):
        return self.diagonal(0, 0, 1).sum()

    samples = lambda s: [s(s.real(3, 3)), s(s.real(2, 4)), s(s.real(4, 2).T), s(s.real(0, 0))]


# ---------------------------------------------------------------------------------------------
# tensordot, kron, chains


class tensordot(ComplexComposite):
    """Products summed over pairs of dims."""

    schema = "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor"
    function = False  # `pullback.tensordot` also takes a number of dims: see functional.py
    method = False

    def compose(self, other, dims_self, dims_other):
        if len(dims_self) != len(dims_other):
            raise ShapeError("both dimension lists should have same length, got "
                             f"{list(dims_self)} and {list(dims_other)}")
        left = [wrap_dim(d, self.ndim) for d in dims_self]
        right = [wrap_dim(d, other.ndim) for d in dims_other]
        for d, e in zip(left, right, strict=True):
            if self.shape[d] == other.shape[e]:
                continue
            # a size of 1 is broadcast: the other side is summed
            if self.shape[d] == 1:
                other = other.sum(e, keepdim=True)
            elif other.shape[e] == 1:
                self = self.sum(d, keepdim=True)
            else:
                raise ShapeError(
                    f"contracted dimensions need to match, but first has size {self.shape[d]} in "
                    f"dim {d} and second has size {other.shape[e]} in dim {e}"
                )
        kept_left = [d for d in range(self.ndim) if d not in left]
        kept_right = [d for d in range(other.ndim) if d not in right]
        out_shape = [self.shape[d] for d in kept_left] + [other.shape[d] for d in kept_right]
        inner = numel(self.shape[d] for d in left)
        rows = numel(self.shape[d] for d in kept_left)
        columns = numel(other.shape[d] for d in kept_right)
        a = self.permute(kept_left + left).reshape(rows, inner)
        b = other.permute(right + kept_right).reshape(inner, columns)
        return ops.mm(a, b).reshape(out_shape)

    def samples(s):
        yield s(s.real(2, 3, 4), s.real(4, 3, 5), [1, 2], [1, 0])
        yield s(s.real(2, 3), s.real(3, 2), [-1], [0])
        yield s(s.real(2, 3), s.real(4), [], [])
        yield s(s.real(2, 1), s.real(3, 4), [1], [0])


class kron(ComplexComposite):
    """Kronecker product: every element of `self` times all of `other`."""

    schema = "kron(Tensor self, Tensor other) -> Tensor"

    def compose(self, other):
        rank = max(self.ndim, other.ndim)
        a = (1,) * (rank - self.ndim) + tuple(self.shape)
        b = (1,) * (rank - other.ndim) + tuple(other.shape)
        left = [n for size in a for n in (size, 1)]
        right = [n for size in b for n in (1, size)]
        shape = [m * n for m, n in zip(a, b, strict=True)]
        return (self.reshape(left) * other.reshape(right)).reshape(shape)

    def samples(s):
        yield s(s.real(2, 3), s.real(4, 2))
        yield s(s.real(3), s.real(2, 2))
        yield s(s.real(), s.real(2))


def chain_order(sizes: list[int]) -> list[list[int]]:
    """Where to split each part of a chain of matrix products, for the fewest multiplications.

    Matrix i is `sizes[i]` by `sizes[i + 1]`; entry [i][j] is the last matrix of the left factor of
    the product of matrices i to j.
    """
    count = len(sizes) - 1
    best = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [
                best[i][k] + best[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            best[i][j] = min(costs)
            split[i][j] = i + costs.index(best[i][j])
    return split


class linalg_multi_dot(ComplexComposite):
    """Product of a chain of matrices in the cheapest order; the ends may be vectors."""

    schema = "linalg_multi_dot(Tensor[] tensors) -> Tensor"
    out = ("exact",)
    method = function = False

    def compose(tensors):
        if len(tensors) < 2:
            raise ShapeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
        first, *middle, last = tensors
        for i, tensor in enumerate(middle, 1):
            if tensor.ndim != 2:
                raise ShapeError(f"multi_dot(): tensor {i} must be 2D but got {tensor.ndim}D")
        for i, tensor in ((0, first), (len(tensors) - 1, last)):
            if tensor.ndim not in (1, 2):
                raise ShapeError(f"multi_dot(): tensor {i} must be 1D or 2D but got {tensor.ndim}D")
        row, column = first.ndim == 1, last.ndim == 1
        chain = [first.unsqueeze(0) if row else first, *middle,
                 last.unsqueeze(1) if column else last]
        split = chain_order([chain[0].shape[0]] + [m.shape[1] for m in chain])

        def multiply(i, j):
            if i == j:
                return chain[i]
            k = split[i][j]
            return ops.mm(multiply(i, k), multiply(k + 1, j))

        out = multiply(0, len(chain) - 1)
        if column:
            out = out.squeeze(1)
        return out.squeeze(0) if row else out

    def samples(s):
        yield s([s.real(2, 5), s.real(5, 3)])
        yield s([s.real(2, 5), s.real(5, 3), s.real(3, 4)])
        yield s([s.real(5), s.real(5, 3), s.real(3)])


class chain_matmul(ComplexComposite):
    """Product of a chain of matrices in the cheapest order (older name)."""

    schema = "chain_matmul(Tensor[] matrices) -> Tensor"
    function = False  # `pullback.chain_matmul` takes the matrices one by one: see functional.py
    method = False

    def compose(matrices):
        if len(matrices) == 1:
            return matrices[0]
        return ops.linalg_multi_dot(matrices)

    samples = lambda s: [s([s.real(2, 5), s.real(5, 3), s.real(3, 4)])]


class linalg_cross(Op):
    """Cross product of vectors of three elements along one dim."""

    schema = "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor"
    same_dtype = ("self", "other")
    promote = "default"
    multilinear = ("self", "other")
    grad = {
        "self": "linalg_cross(other.conj(), grad, dim=dim)",
        "other": "linalg_cross(grad, self.conj(), dim=dim)",
    }
    cost = "cheap"
    complex = True

    def _check(self, other, dim):
        if self.ndim != other.ndim:
            raise ShapeError("linalg.cross: inputs must have the same number of dimensions, got "
                             f"shapes {list(self.shape)} and {list(other.shape)}")
        dim = wrap_dim(dim, self.ndim)
        if self.ndim == 0 or self.shape[dim] != 3 or other.shape[dim] != 3:
            raise ShapeError(f"linalg.cross: inputs dimension {dim} must have length 3, got shapes "
                             f"{list(self.shape)} and {list(other.shape)}")
        return dim

    def run(xp, self, other, dim):
        dim = linalg_cross._check(self, other, dim)
        a, b = xp.moveaxis(self, dim, 0), xp.moveaxis(other, dim, 0)
        parts = [a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3]
                 for i in range(3)]
        return xp.stack(parts, axis=dim)

    def shape(self, other, dim):
        linalg_cross._check(self, other, dim)
        return broadcast_shapes(self.shape, other.shape)

    def batch(n, batched, self, other, dim):
        rank = self.ndim - batched[0]
        dim = wrap_dim(dim, rank) + 1
        return ops.linalg_cross(self if batched[0] else self.unsqueeze(0),
                                other if batched[1] else other.unsqueeze(0), dim=dim)

    def decomp(self, other, dim):
        def part(tensor, i):
            return tensor.select(dim, i % 3)

        return ops.stack([part(self, i + 1) * part(other, i + 2)
                          - part(self, i + 2) * part(other, i + 1) for i in range(3)], dim)

    def samples(s):
        yield s(s.real(2, 3), s.real(2, 3))
        yield s(s.real(3, 2), s.real(3, 2), dim=0)
        yield s(s.real(1, 3), s.real(4, 3))


class cross(ComplexComposite):
    """Cross product along `dim`, by default the first dim of size 3."""

    schema = "cross(Tensor self, Tensor other, int? dim=None) -> Tensor"
    out = ("exact",)

    def compose(self, other, dim):
        if dim is None:
            dim = next((d for d, size in enumerate(self.shape) if size == 3), None)
            if dim is None:
                raise ShapeError(f"no dimension of size 3 in input of shape {list(self.shape)}")
        return ops.linalg_cross(self, other, dim=dim)

    samples = lambda s: [s(s.real(2, 3), s.real(2, 3)), s(s.real(3, 2), s.real(3, 2))]
