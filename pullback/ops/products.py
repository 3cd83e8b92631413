"""Products that are not plain matrix products: trilinear forms, groups of rows, fused activations.

Matrix products are in `ops/matmul.py`, Einstein sums in `ops/contraction.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array.dims import broadcast_shapes, wrap_dims
from ..array.evaluate import Spec
from ..core.op import Composite, Op
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .histograms import one_by_one
from .kinds import ComplexComposite, ComplexFree, Free, Keeping
from .layout import in_front
from .norm import narrowed, widened
from .pointwise import title

# ---------------------------------------------------------------------------------------------
# Trilinear forms


def _expanded(shape, places) -> tuple[int, ...]:
    """A shape with dims of size 1 at the given places of the result."""
    rank = len(shape) + len(places)
    where = set(wrap_dims(places, rank, empty_is_all=False))
    sizes = iter(shape)
    return tuple(1 if d in where else next(sizes) for d in range(rank))


def _trilinear_shapes(i1, i2, i3, expand1, expand2, expand3):
    shapes = [_expanded(i.shape, e) for i, e in ((i1, expand1), (i2, expand2), (i3, expand3))]
    if len({len(s) for s in shapes}) > 1:
        raise ShapeError("_trilinear: the expanded inputs have different numbers of dims: "
                         f"{', '.join(str(list(s)) for s in shapes)}")
    return shapes


class _trilinear(Op):
    """The sum over some dims of the product of three tensors, after dims of size 1 were put in."""
    schema = ("_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2,"
              " int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor")
    intensive = True
    same_dtype = ("i1", "i2", "i3")
    promote = "default"
    grad = {
        "i1": "_trilinear(grad, i2.conj(), i3.conj(), sumdim, expand2, expand3, expand1)",
        "i2": "_trilinear(i1.conj(), grad, i3.conj(), expand1, sumdim, expand3, expand2)",
        "i3": "_trilinear(i1.conj(), i2.conj(), grad, expand1, expand2, sumdim, expand3)",
    }
    multilinear = ("i1", "i2", "i3")
    complex = True
    method = False

    def run(xp, i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
        shapes = _trilinear_shapes(i1, i2, i3, expand1, expand2, expand3)
        whole = broadcast_shapes(*shapes)
        gone = wrap_dims(sumdim, len(whole), empty_is_all=False)
        arrays = [xp.reshape(i, s) for i, s in zip((i1, i2, i3), shapes, strict=True)]
        if len(whole) > 20:
            return (arrays[0] * arrays[1] * arrays[2]).sum(axis=gone)
        # an Einstein sum without the dims of size 1 never makes the whole product
        letters = "abcdefghijklmnopqrstuvwxyz"
        terms = ["".join(letters[d] for d, n in enumerate(s) if n != 1 or whole[d] == 1)
                 for s in shapes]
        arrays = [xp.reshape(a, [n for d, n in enumerate(s) if n != 1 or whole[d] == 1])
                  for a, s in zip(arrays, shapes, strict=True)]
        kept = "".join(letters[d] for d in range(len(whole)) if d not in gone)
        missing = [d for d in range(len(whole)) if not any(letters[d] in t for t in terms)]
        if missing:  # cannot happen: a dim of size 1 is kept where all have it
            raise ShapeError(f"_trilinear: dims {missing} belong to no input")
        return xp.einsum(f"{','.join(terms)}->{kept}", *arrays, optimize=True)

    def shape(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
        whole = broadcast_shapes(*_trilinear_shapes(i1, i2, i3, expand1, expand2, expand3))
        gone = wrap_dims(sumdim, len(whole), empty_is_all=False)
        return tuple(n for d, n in enumerate(whole) if d not in gone)

    def batch(n, batched, i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
        given = [i1, i2, i3]
        places = []
        for k, expand in enumerate((expand1, expand2, expand3)):
            rank = given[k].ndim - batched[k] + len(expand)
            expand = [d + 1 for d in wrap_dims(expand, rank, empty_is_all=False)]
            places.append(expand if batched[k] else [0, *expand])
        gone = [d + 1 for d in wrap_dims(sumdim, rank, empty_is_all=False)]
        return ops._trilinear(*given, *places, gone, unroll_dim)

    def decomp(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
        shapes = _trilinear_shapes(i1, i2, i3, expand1, expand2, expand3)
        a, b, c = (i.reshape(s) for i, s in zip((i1, i2, i3), shapes, strict=True))
        return ops.sum(a * b * c, list(sumdim)) if sumdim else a * b * c

    def samples(s):
        yield s(s.real(2, 3), s.real(5, 3, 4), s.real(2, 4), [1, 3], [0], [1, 2], [2, 3])
        yield s(s.real(2), s.real(3), s.real(2, 3), [1], [0], [], [])
        yield s(s.real(2), s.real(2), s.real(2), [], [], [], [-1])


class bilinear(ComplexFree):
    """x1^T W x2 + b for each row of the weight and each pair of vectors."""
    schema = "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor"

    def compose(input1, input2, weight, bias):
        _check_bilinear(input1, input2, weight, bias)
        flat = [x.reshape((-1, x.shape[-1]) if x.numel() else (math.prod(x.shape[:-1]), x.shape[-1]))
                for x in (input1, input2)]
        out = ops._trilinear(flat[0], weight, flat[1], [1, 3], [0], [1, 2], [2, 3])
        out = out.reshape((*input1.shape[:-1], weight.shape[0]))
        return out if bias is None else out + bias

    def samples(s):
        yield s(s.real(2, 3), s.real(2, 4), s.real(5, 3, 4))
        yield s(s.real(2, 2, 3), s.real(2, 2, 4), s.real(5, 3, 4), s.real(5))
        yield s(s.real(3), s.real(4), s.real(5, 3, 4))
        yield s(s.real(0, 3), s.real(0, 4), s.real(5, 3, 4))


def _check_bilinear(input1, input2, weight, bias) -> None:
    if input1.ndim != input2.ndim:
        raise ShapeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and "
                         f"{input2.ndim}")
    for d in range(input1.ndim - 1):
        if input1.shape[d] != input2.shape[d]:
            raise ShapeError(f"bilinear(): input batch dimensions do not match at dim {d}: got "
                             f"{input1.shape[d]} and {input2.shape[d]}")
    for name, x, d in (("input1", input1, 1), ("input2", input2, 2)):
        if x.shape[-1] != weight.shape[d]:
            raise ShapeError(f"bilinear(): {name} size does not match weight size: got "
                             f"{x.shape[-1]} but expected {weight.shape[d]}")
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise ShapeError("bilinear(): bias size does not match weight size: got "
                         f"{bias.shape[0]} but expected {weight.shape[0]}")


class linear_backward(ComplexComposite):
    """Gradients of `linear` with respect to input, weight and bias, as far as they are wanted."""
    schema = ("linear_backward(Tensor self, Tensor grad_output, Tensor weight,"
              " bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    method = function = False

    def compose(self, grad_output, weight, output_mask):
        rows = math.prod(self.shape[:-1])
        x, g = self.reshape((rows, self.shape[-1])), grad_output.reshape((rows, weight.shape[0]))
        return (
            grad_output.matmul(weight.conj()) if output_mask[0] else None,
            g.t().matmul(x.conj()) if output_mask[1] else None,
            g.sum(0) if output_mask[2] else None,
        )

    def samples(s):
        yield s(s.real(2, 3, 4), s.real(2, 3, 5), s.real(5, 4), [True, True, True])
        yield s(s.real(3, 4), s.real(3, 5), s.real(5, 4), [True, False, False])
        yield s(s.real(4), s.real(5), s.real(5, 4), [True, True, True])


# ---------------------------------------------------------------------------------------------
# Matrix products of groups


def _check_groups(a, b, offs, bias, out_dtype) -> tuple[int, ...]:
    """The shape of the result, after all checks that shapes allow."""
    for name, x in (("mat_a", a), ("mat_b", b)):
        if x.ndim not in (2, 3):
            raise ShapeError(f"{name} has to be 2 or 3d, got {x.ndim}d")
        if not x.dtype.is_floating_point:
            raise DTypeError(f"Expected {name} to be a floating point matrix, got "
                             f"{title(x.dtype)}")
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError("contraction dimension of mat_a and mat_b must match, got "
                         f"{a.shape[-1]} and {b.shape[-2]}")
    flat = a.ndim == 2 or b.ndim == 2
    if flat != (offs is not None):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both "
                           "matrices are 3d")
    if offs is not None:
        if offs.ndim != 1:
            raise ShapeError(f"offs has to be 1D, got {offs.ndim}D")
        if offs.dtype is not dt.int32:
            raise DTypeError(f"Offsets have to be int32, got {title(offs.dtype)}")
    groups = [x.shape[0] for x in (a, b) if x.ndim == 3]
    if offs is None and groups[0] != groups[1]:
        raise ShapeError(f"batched dimension has to match, got {groups[0]} and {groups[1]}")
    if offs is not None and groups and groups[0] != offs.shape[0]:
        raise ShapeError(f"matrix batch sizes have to match, got {groups[0]} matrices and "
                         f"{offs.shape[0]} offsets")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if a.dtype is not b.dtype:
        raise DTypeError(f"expected m1 and m2 to have the same dtype, but got: {title(a.dtype)} != "
                         f"{title(b.dtype)}")
    if out_dtype is not None and out_dtype is not a.dtype:
        raise DTypeError("Grouped gemm output dtype must match `mat_a` dtype")
    if a.ndim == b.ndim:
        return (offs.shape[0] if offs is not None else groups[0], a.shape[-2], b.shape[-1])
    return (a.shape[-2], b.shape[-1])


class _grouped_mm(Keeping):
    """Matrix products of groups of rows or columns; offsets are where the groups end.

    One flat and one stacked factor: each group of rows (or columns) meets its own matrix.  Two flat
    factors: the groups lie along the summed dim, and there is one product for each.
    """
    schema = ("_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None,"
              " ScalarType? out_dtype=None) -> Tensor")
    intensive = True
    kept = "matrix"
    grad = {"self": "_grouped_mm(grad, mat2.mT, offs)", "mat2": "_grouped_mm(self.mT, grad, offs)"}
    multilinear = ("self", "mat2")
    nondiff = ("offs",)
    batch = one_by_one()
    method = False

    def run(xp, self, mat2, offs, bias, out_dtype):
        facts = [None if x is None else Spec(x) for x in (self, mat2, offs)]
        shape = _check_groups(*facts, bias, out_dtype)
        a, b = widened(xp, self), widened(xp, mat2)
        if offs is None:
            return narrowed(xp.matmul(a, b), self.dtype)
        out = xp.zeros(shape, dtype=a.dtype)
        start = 0
        for group, end in enumerate(offs.tolist()):
            part = slice(start, max(end, start))
            if a.ndim == b.ndim:
                out[group] = xp.matmul(a[:, part], b[part])
            elif a.ndim == 2:
                out[part] = xp.matmul(a[part], b[group])
            else:
                out[:, part] = xp.matmul(a[group], b[:, part])
            start = part.stop
        return narrowed(out, self.dtype)

    def shape(self, mat2, offs, bias, out_dtype):
        return _check_groups(self, mat2, offs, bias, out_dtype)

    def dtype(self, mat2, offs, bias, out_dtype):
        return self.dtype

    def samples(s):
        offs = s.tensor([2, 2, 5], dt.int32)
        yield s(s.real(5, 4), s.real(3, 4, 2), offs)
        yield s(s.real(3, 2, 4), s.real(4, 5), offs)
        yield s(s.real(2, 5), s.real(5, 3), offs)
        yield s(s.real(3, 2, 4), s.real(3, 4, 2))


# ---------------------------------------------------------------------------------------------
# Products and sums with something done to the result


class _addmm_activation(Composite):
    """`addmm` followed by `relu` or `gelu`."""
    schema = ("_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1,"
              " Scalar alpha=1, bool use_gelu=False) -> Tensor")
    autocast = "lower"

    def compose(self, mat1, mat2, beta, alpha, use_gelu):
        out = ops.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
        return ops.gelu(out) if use_gelu else ops.relu(out)

    def samples(s):
        yield s(s.real(3), s.real(2, 4), s.real(4, 3))
        yield s(s.real(3), s.real(2, 4), s.real(4, 3), beta=0.5, alpha=2, use_gelu=True)


class _add_relu_Tensor(Free):
    """`add` followed by `relu`."""
    schema = "_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    inplace = True

    def compose(self, other, alpha):
        return ops.relu(ops.add(self, other, alpha=alpha))

    samples = lambda s: [s(s.real(3, 4), s.real(4), alpha=2)]


class _add_relu_Scalar(Free):
    """`add` of a number followed by `relu`."""
    schema = "_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"
    inplace = True

    def compose(self, other, alpha):
        return ops.relu(ops.add(self, other, alpha=alpha))

    samples = lambda s: [s(s.real(3, 4), 0.3, 2)]


class _int_mm(Keeping):
    """Product of matrices of small integers, summed in int32."""
    schema = "_int_mm(Tensor self, Tensor mat2) -> Tensor"
    intensive = True
    kept = "matrix"
    method = False
    dtype = dt.int32

    def run(xp, self, mat2):
        for name, x in (("self", self), ("mat2", mat2)):
            if x.ndim != 2:
                raise ShapeError(f"_int_mm: expected {name} to be of dimension 2, got {x.ndim}")
            if x.dtype.kind not in "iu" or x.dtype.itemsize != 1:
                raise DTypeError(f"_int_mm: expected {name} dtype to be int8 or uint8 but got "
                                 f"{title(x.dtype)}")
        if self.shape[1] != mat2.shape[0]:
            raise ShapeError(f"_int_mm: self.size(1) is {self.shape[1]}, mat2.size(0) is "
                             f"{mat2.shape[0]}")
        return xp.matmul(self.astype(xp.int32), mat2.astype(xp.int32))

    def shape(self, mat2):
        return (self.shape[0], mat2.shape[1])

    def batch(n, batched, self, mat2):
        first, second = in_front(self, batched[0], n), in_front(mat2, batched[1], n)
        return ops.matmul(first.to(dt.int32), second.to(dt.int32))

    samples = lambda s: [s(s.int(2, 3).to(dt.int8), s.int(3, 4).to(dt.int8))]


class _compute_linear_combination(ComplexFree):
    """Sums of a stack of tensors with rows of coefficients."""
    schema = "_compute_linear_combination(Tensor input, Tensor coefficients) -> Tensor"

    def compose(input, coefficients):
        if input.shape[0] != coefficients.shape[1]:
            raise ShapeError(f"_compute_linear_combination: {input.shape[0]} tensors, "
                             f"{coefficients.shape[1]} coefficients")
        return ops.tensordot(coefficients, input, [1], [0])

    samples = lambda s: [s(s.real(3, 2), s.real(2, 3))]
