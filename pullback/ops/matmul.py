"""Matrix products: the table entries of mm, bmm, addmm ... and the composites built from them.

Half precision accumulates in float32, as PyTorch's CPU kernels do.  The composites (`matmul`,
`linear`, `einsum`, `tensordot`) reduce to `mm`, `bmm`, `mv` and `dot`, so that derivatives,
batching and native code only need to know those.  Formulas longer than a line are in `formulas/matmul.py`;
read next: `vectors.py`, `linalg.py` (factorizations and solvers).
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import broadcast_shapes, numel
from ..core.op import Composite, Op
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from ..threads.state import fast
from .contraction import contract
from .kinds import ComplexComposite, InFunctional, Keeping, Synonym

# ---------------------------------------------------------------------------------------------
# What the kernels share


def is_half(array) -> bool:
    """Whether an array has a 16-bit floating dtype (float16, bfloat16)."""
    return array.dtype.itemsize == 2 and array.dtype.kind not in "iu"


def product(xp, a, b):
    """`a @ b` of raw arrays of one dtype; half precision accumulates in float32."""
    if is_half(a):
        return xp.matmul(a.astype(xp.float32), b.astype(xp.float32)).astype(a.dtype)
    return xp.matmul(a, b)


def affine(xp, base, a, b, beta, alpha):
    """`beta * base + alpha * (a @ b)` of raw arrays; beta 0 ignores `base`, NaNs included."""
    half = is_half(a)
    if half:
        dtype = a.dtype
        a, b, base = a.astype(xp.float32), b.astype(xp.float32), base.astype(xp.float32)
    elif a.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    out = xp.matmul(a, b)
    if alpha != 1:
        out *= alpha
    if beta == 1:
        out += base
    elif beta != 0:
        out += base * beta
    return out.astype(dtype) if half else out


def check_ranks(name: str, batched: tuple, tensors: tuple, ranks: tuple) -> None:
    """Refuse operands of other ranks where `matmul`, which takes any, computes a batch of them."""
    for flag, t, rank in zip(batched, tensors, ranks):
        if t.ndim - bool(flag) != rank:
            raise ShapeError(
                f"{name}: Shape mismatch, expected a tensor of {rank} dims, got {list(t.shape[bool(flag):])}")


_C_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "int64": "long", "int32": "int", "int16": "short", "int8": "signed char",
    "uint8": "unsigned char", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def _c_name(dtype) -> str:
    return _C_NAMES.get(dtype.name, dtype.name)


def _same_dtype(name: str, a, b) -> None:
    if a.dtype != b.dtype:
        if name in ("mm", "addmm"):
            what = "expected m1 and m2 to have the same dtype"
        else:
            what = f"{name}: expected both operands to have the same dtype"
        raise DTypeError(f"{what}, but got: {_c_name(a.dtype)} != {_c_name(b.dtype)}")
    if a.dtype.kind == "b":
        raise NotImplementedError(f'"{name}" not implemented for \'Bool\'')


def _by(shape) -> str:
    return "x".join(map(str, shape))


def _check_mm(name: str, a, b) -> None:
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(f"{name}: both operands must be matrices, got shapes "
                         f"{list(a.shape)} and {list(b.shape)}")
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"{name}: mat1 and mat2 shapes cannot be multiplied "
                         f"({_by(a.shape)} and {_by(b.shape)})")
    if a.dtype != b.dtype or a.dtype.kind == "b":
        _same_dtype(name, a, b)


def _check_bmm(name: str, a, b) -> None:
    if a.ndim != 3 or b.ndim != 3:
        raise ShapeError(f"{name}: batch1 and batch2 must be 3D tensors, got shapes "
                         f"{list(a.shape)} and {list(b.shape)}")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ShapeError(
            f"{name}: Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}] "
            f"(shapes {list(a.shape)} and {list(b.shape)})"
        )
    if a.dtype != b.dtype or a.dtype.kind == "b":
        _same_dtype(name, a, b)


def _check_mv(name: str, a, b) -> None:
    if a.ndim != 2 or b.ndim != 1:
        raise ShapeError(f"{name}: vector + matrix @ vector expected, got shapes "
                         f"{list(a.shape)} and {list(b.shape)}")
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"{name}: size mismatch, got input ({a.shape[0]}), "
                         f"mat ({_by(a.shape)}), vec ({b.shape[0]})")
    if a.dtype != b.dtype or a.dtype.kind == "b":
        _same_dtype(name, a, b)


def _check_dot(name: str, a, b) -> None:
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"{name}: 1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors "
                         f"(shapes {list(a.shape)} and {list(b.shape)})")
    if a.shape[0] != b.shape[0]:
        raise ShapeError(f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src "
                         f"[{b.shape[0]}] to have the same number of elements, but got "
                         f"{a.shape[0]} and {b.shape[0]} elements respectively")
    if a.dtype != b.dtype or a.dtype.kind == "b":
        _same_dtype(name, a, b)


def _check_base(name: str, base, a, shape) -> None:
    """The added operand of addmm and friends: expandable to `shape`, of the same dtype."""
    if base.dtype != a.dtype:
        raise DTypeError(f"{name}: self and the matrices must have the same dtype, but got "
                         f"{_c_name(base.dtype)} and {_c_name(a.dtype)}")
    extra = len(shape) - len(base.shape)
    if extra >= 0 and base.shape == shape[extra:]:
        return
    if extra < 0 or any(n not in (1, m) for n, m in zip(base.shape, shape[extra:], strict=True)):
        raise ShapeError(f"{name}: the added tensor of shape {list(base.shape)} cannot be "
                         f"expanded to the result's shape {list(shape)}")


def _aligned(tensor, batched: bool, rank: int):
    """A batched operand with dims inserted behind the batch dim up to `rank` logical dims."""
    if not batched or tensor.ndim > rank:
        return tensor
    return tensor.reshape(tensor.shape[:1] + (1,) * (rank + 1 - tensor.ndim) + tensor.shape[1:])


def _affine_handles(base, value, beta, alpha):
    """`beta * base + alpha * value` on Tensor handles, without needless products."""
    if alpha != 1:
        value = value * alpha
    if beta == 0:
        return value
    return value + (base if beta == 1 else base * beta)


def _batched_affine(n, base, value, beta, alpha):
    """The same with the batch dim in front, also where only an unused `base` has it."""
    out = _affine_handles(base, value, beta, alpha)
    return out if out.shape[0] == n else out.expand([n, *out.shape[1:]])


# ---------------------------------------------------------------------------------------------
# Products


class MatrixProduct(Keeping):
    """Product of two tensors of `rank` dims, the last two of which are matrices."""

    writing = "dtype_out"
    intensive = True
    flops = "product(0)"
    lower = "index.mm"
    autocast = "lower"
    core = True
    multilinear = ("self", "mat2")
    cost = "heavy"
    complex = True
    rank = 0

    @classmethod
    def batch(cls, n, batched, self, mat2):
        check_ranks(cls.base_name, batched, (self, mat2), (cls.rank, cls.rank))
        return ops.matmul(self, mat2)


class mm(MatrixProduct):
    """Matrix times matrix."""

    schema = "mm(Tensor self, Tensor mat2) -> Tensor"
    native = "mm"
    counted = "mm_flop"
    widens = True
    rank = 2
    grad = {
        "self": "mm_left_grad(grad, mat2.conj(), self.shape, self.stride())",
        "mat2": "mm_right_grad(grad, self.conj(), mat2.shape, mat2.stride())",
    }

    def run(xp, self, mat2):
        _check_mm("mm", self, mat2)
        return product(xp, self, mat2)

    def shape(self, mat2):
        _check_mm("mm", self, mat2)
        return (self.shape[0], mat2.shape[1])

    def samples(s):
        yield s(s.real(3, 4), s.real(4, 2))
        yield s(s.real(4, 3).T, s.real(2, 4).T)
        yield s(s.real(1, 4), s.real(4, 1))
        yield s(s.real(0, 4), s.real(4, 2))
        yield s(s.real(3, 0), s.real(0, 2))


class bmm(MatrixProduct):
    """Matrix products of two stacks of matrices."""

    schema = "bmm(Tensor self, Tensor mat2) -> Tensor"
    counted = "bmm_flop"
    rank = 3
    grad = {
        "self": "grad.bmm(mat2.transpose(1, 2).conj())",
        "mat2": "self.transpose(1, 2).conj().bmm(grad)",
    }

    def run(xp, self, mat2):
        _check_bmm("bmm", self, mat2)
        return product(xp, self, mat2)

    def shape(self, mat2):
        _check_bmm("bmm", self, mat2)
        return (self.shape[0], self.shape[1], mat2.shape[2])

    def samples(s):
        yield s(s.real(2, 3, 4), s.real(2, 4, 5))
        yield s(s.real(2, 4, 3).transpose(1, 2), s.real(2, 5, 4).transpose(1, 2))
        yield s(s.real(0, 3, 4), s.real(0, 4, 5))
        yield s(s.real(2, 3, 0), s.real(2, 0, 5))


class mv(Keeping):
    """Matrix times vector."""

    schema = "mv(Tensor self, Tensor vec) -> Tensor"
    intensive = True
    flops = "product(0)"
    lower = "index.mv"
    multilinear = ("self", "vec")
    grad = {"self": "outer(grad, vec.conj())", "vec": "self.t().conj().mv(grad)"}
    cost = "heavy"
    complex = True

    def run(xp, self, vec):
        _check_mv("mv", self, vec)
        return product(xp, self, vec)

    def shape(self, vec):
        _check_mv("mv", self, vec)
        return (self.shape[0],)

    def batch(n, batched, self, vec):
        check_ranks("mv", batched, (self, vec), (2, 1))
        if not batched[0]:
            return ops.matmul(vec, self.t())
        if not batched[1]:
            return ops.matmul(self, vec)
        return ops.matmul(self, vec.unsqueeze(-1)).squeeze(-1)

    def decomp(self, vec):
        return (self * vec).sum(dim=1)

    def samples(s):
        yield s(s.real(3, 4), s.real(4))
        yield s(s.real(4, 3).T, s.real(4))
        yield s(s.real(3, 0), s.real(0))
        yield s(s.real(0, 3), s.real(3))


class dot(Keeping):
    """Sum of the products of two vectors (no conjugation)."""

    schema = "dot(Tensor self, Tensor tensor) -> Tensor"
    flops = "product(0)"
    lower = "index.dot"
    multilinear = ("self", "tensor")
    grad = {"self": "grad * tensor.conj()", "tensor": "grad * self.conj()"}
    cost = "reduce"
    complex = True

    def run(xp, self, tensor):
        _check_dot("dot", self, tensor)
        return product(xp, self, tensor)

    def shape(self, tensor):
        _check_dot("dot", self, tensor)
        return ()

    def batch(n, batched, self, tensor):
        check_ranks("dot", batched, (self, tensor), (1, 1))
        if batched[0] and batched[1]:
            return ops.matmul(self.unsqueeze(1), tensor.unsqueeze(2)).reshape([n])
        return ops.matmul(self, tensor) if batched[0] else ops.matmul(tensor, self)

    def decomp(self, tensor):
        return (self * tensor).sum()

    samples = lambda s: [s(s.real(4), s.real(4)), s(s.real(1), s.real(1)), s(s.real(0), s.real(0))]


class vdot(Keeping):
    """Sum of the products of two vectors, the first one conjugated."""

    schema = "vdot(Tensor self, Tensor other) -> Tensor"
    lower = "index.dot"
    multilinear = ("self", "other")
    grad = {"self": "grad.conj() * other", "other": "grad * self"}
    cost = "reduce"
    complex = True

    def run(xp, self, other):
        _check_dot("vdot", self, other)
        return product(xp, xp.conj(self), other)

    def shape(self, other):
        _check_dot("vdot", self, other)
        return ()

    def batch(n, batched, self, other):
        return dot.batch(n, batched, self.conj(), other)

    def decomp(self, other):
        return (self.conj() * other).sum()

    samples = lambda s: [s(s.real(4), s.real(4)), s(s.real(0), s.real(0))]


# ---------------------------------------------------------------------------------------------
# Products with an added operand


class addmm(Keeping):
    """A matrix plus the product of two others, each scaled."""

    schema = ("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)"
              " -> Tensor")
    native = "addmm"
    legacy = ("beta self alpha mat1 mat2", "beta self mat1 mat2")
    counted = "addmm_flop"
    intensive = True
    flops = "product(1)"
    lower = "index.addmm"
    autocast = "lower"
    core = True
    grad = {
        "self": "scale_by(grad, beta)",
        "mat1": ("scale_by(mm_left_grad(grad, mat2.conj(), mat1.shape, mat1.stride()),"
                 " alpha)"),
        "mat2": ("scale_by(mm_right_grad(grad, mat1.conj(), mat2.shape, mat2.stride()),"
                 " alpha)"),
    }
    push = "times(self_t, beta) + times(mat1_t.mm(mat2_p) + mat1_p.mm(mat2_t), alpha)"
    cost = "heavy"
    inplace = True
    complex = True

    def run(xp, self, mat1, mat2, beta, alpha):
        _check_mm("addmm", mat1, mat2)
        _check_base("addmm", self, mat1, (mat1.shape[0], mat2.shape[1]))
        return affine(xp, self, mat1, mat2, beta, alpha)

    def shape(self, mat1, mat2, beta, alpha):
        _check_mm("addmm", mat1, mat2)
        shape = (mat1.shape[0], mat2.shape[1])
        _check_base("addmm", self, mat1, shape)
        return shape

    def batch(n, batched, self, mat1, mat2, beta, alpha):
        check_ranks("addmm", batched[1:], (mat1, mat2), (2, 2))
        if batched[1] and not batched[0] and not batched[2] and self.ndim <= 1:
            rows = mat1.reshape(mat1.shape[0] * mat1.shape[1], mat1.shape[2])
            flat = ops.addmm(self, rows, mat2, beta=beta, alpha=alpha)
            return flat.reshape(mat1.shape[0], mat1.shape[1], mat2.shape[1])
        value = ops.matmul(mat1, mat2)
        if value.ndim == 2:  # only `self` is batched
            value = value.unsqueeze(0)
        return _batched_affine(n, _aligned(self, batched[0], 2), value, beta, alpha)

    def samples(s):
        yield s(s.real(2), s.real(3, 4), s.real(4, 2))
        yield s(s.real(3, 2), s.real(3, 4), s.real(4, 2), beta=0.5, alpha=-2)
        yield s(s.real(3, 1), s.real(4, 3).T, s.real(2, 4).T)
        yield s(s.real(), s.real(3, 4), s.real(4, 2), beta=2)
        yield s(s.real(3, 2), s.real(3, 4), s.real(4, 2), beta=0)
        yield s(s.real(2), s.real(0, 4), s.real(4, 2))
        yield s(s.real(2), s.real(3, 0), s.real(0, 2))


class baddbmm(Keeping):
    """A stack of matrices plus the products of two other stacks, each scaled."""

    schema = ("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1,"
              " Scalar alpha=1) -> Tensor")
    legacy = ("beta self alpha batch1 batch2", "beta self batch1 batch2")
    counted = "baddbmm_flop"
    intensive = True
    flops = "product(1)"
    lower = "index.addmm"
    autocast = "lower"
    grad = {
        "self": "scale_by(grad, beta)",
        "batch1": "scale_by(grad.bmm(batch2.transpose(1, 2).conj()), alpha)",
        "batch2": "scale_by(batch1.transpose(1, 2).conj().bmm(grad), alpha)",
    }
    push = "times(self_t, beta) + times(batch1_t.bmm(batch2_p) + batch1_p.bmm(batch2_t), alpha)"
    cost = "heavy"
    inplace = True
    complex = True

    def run(xp, self, batch1, batch2, beta, alpha):
        _check_bmm("baddbmm", batch1, batch2)
        shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
        _check_base("baddbmm", self, batch1, shape)
        return affine(xp, self, batch1, batch2, beta, alpha)

    def shape(self, batch1, batch2, beta, alpha):
        _check_bmm("baddbmm", batch1, batch2)
        shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
        _check_base("baddbmm", self, batch1, shape)
        return shape

    def batch(n, batched, self, batch1, batch2, beta, alpha):
        check_ranks("baddbmm", batched[1:], (batch1, batch2), (3, 3))
        value = ops.matmul(batch1, batch2)
        if value.ndim == 3:
            value = value.unsqueeze(0)
        return _batched_affine(n, _aligned(self, batched[0], 3), value, beta, alpha)

    def decomp(self, batch1, batch2, beta, alpha):
        return _affine_handles(self, ops.bmm(batch1, batch2), beta, alpha)

    def samples(s):
        yield s(s.real(2, 3, 5), s.real(2, 3, 4), s.real(2, 4, 5))
        yield s(s.real(5), s.real(2, 3, 4), s.real(2, 4, 5), beta=0.5, alpha=2)
        yield s(s.real(2, 3, 5), s.real(2, 3, 4), s.real(2, 4, 5), beta=0, alpha=3)
        yield s(s.real(3, 1), s.real(0, 3, 4), s.real(0, 4, 5))


class addbmm(Keeping):
    """A matrix plus the sum of the products of two stacks of matrices, each scaled."""

    schema = ("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)"
              " -> Tensor")
    legacy = ("beta self alpha batch1 batch2", "beta self batch1 batch2")
    intensive = True
    autocast = "lower"
    grad = {
        "self": "scale_by(grad, beta)",
        "batch1": "scale_by(matmul(grad, batch2.transpose(1, 2).conj()), alpha)",
        "batch2": "scale_by(matmul(batch1.transpose(1, 2).conj(), grad), alpha)",
    }
    push = ("times(self_t, beta) "
            "+ times(batch1_t.bmm(batch2_p).sum(0) + batch1_p.bmm(batch2_t).sum(0), alpha)")
    cost = "heavy"
    inplace = True
    complex = True

    def run(xp, self, batch1, batch2, beta, alpha):
        _check_bmm("addbmm", batch1, batch2)
        b, n, k = batch1.shape
        _check_base("addbmm", self, batch1, (n, batch2.shape[2]))
        # the sum over the stack is one longer inner sum
        left = batch1.transpose(1, 0, 2).reshape(n, b * k)
        return affine(xp, self, left, batch2.reshape(b * k, batch2.shape[2]), beta, alpha)

    def shape(self, batch1, batch2, beta, alpha):
        _check_bmm("addbmm", batch1, batch2)
        shape = (batch1.shape[1], batch2.shape[2])
        _check_base("addbmm", self, batch1, shape)
        return shape

    def batch(n, batched, self, batch1, batch2, beta, alpha):
        check_ranks("addbmm", batched[1:], (batch1, batch2), (3, 3))
        value = ops.matmul(batch1, batch2).sum(-3)
        if value.ndim == 2:
            value = value.unsqueeze(0)
        return _batched_affine(n, _aligned(self, batched[0], 2), value, beta, alpha)

    def decomp(self, batch1, batch2, beta, alpha):
        return _affine_handles(self, ops.bmm(batch1, batch2).sum(0), beta, alpha)

    def samples(s):
        yield s(s.real(3, 5), s.real(2, 3, 4), s.real(2, 4, 5))
        yield s(s.real(5), s.real(2, 3, 4), s.real(2, 4, 5), beta=0.5, alpha=2)
        yield s(s.real(3, 5), s.real(2, 3, 4), s.real(2, 4, 5), beta=0)
        yield s(s.real(3, 5), s.real(0, 3, 4), s.real(0, 4, 5))


class addmv(Keeping):
    """A vector plus a matrix times a vector, each scaled."""

    schema = ("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1)"
              " -> Tensor")
    legacy = ("beta self alpha mat vec", "beta self mat vec")
    intensive = True
    flops = "product(1)"
    grad = {
        "self": "scale_by(grad, beta)",
        "mat": "scale_by(outer(grad, vec.conj()), alpha)",
        "vec": "scale_by(mat.t().conj().mv(grad), alpha)",
    }
    push = "times(self_t, beta) + times(mat_t.mv(vec_p) + mat_p.mv(vec_t), alpha)"
    cost = "heavy"
    inplace = True
    complex = True

    def run(xp, self, mat, vec, beta, alpha):
        _check_mv("addmv", mat, vec)
        _check_base("addmv", self, mat, (mat.shape[0],))
        return affine(xp, self, mat, vec, beta, alpha)

    def shape(self, mat, vec, beta, alpha):
        _check_mv("addmv", mat, vec)
        _check_base("addmv", self, mat, (mat.shape[0],))
        return (mat.shape[0],)

    def batch(n, batched, self, mat, vec, beta, alpha):
        if batched[1] or batched[2]:
            value = mv.batch(n, batched[1:], mat, vec)
        else:
            value = ops.mv(mat, vec).unsqueeze(0)
        return _batched_affine(n, _aligned(self, batched[0], 1), value, beta, alpha)

    def decomp(self, mat, vec, beta, alpha):
        return _affine_handles(self, mv.decomp(mat, vec), beta, alpha)

    def samples(s):
        yield s(s.real(3), s.real(3, 4), s.real(4))
        yield s(s.real(1), s.real(3, 4), s.real(4), beta=0.5, alpha=2)
        yield s(s.real(), s.real(4, 3).T, s.real(4), beta=0)
        yield s(s.real(3), s.real(3, 0), s.real(0))


class addr(Op):
    """A matrix plus the outer product of two vectors, each scaled."""

    schema = ("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1)"
              " -> Tensor")
    legacy = ("beta self alpha vec1 vec2", "beta self vec1 vec2")
    out = ("castable",)
    promote = "default"
    grad = {
        "self": "scale_by(grad, beta)",
        "vec1": "scale_by(grad.mv(vec2.conj()), alpha)",
        "vec2": "scale_by(grad.t().mv(vec1.conj()), alpha)",
    }
    push = "times(self_t, beta) + times(outer(vec1_t, vec2_p) + outer(vec1_p, vec2_t), alpha)"
    cost = "cheap"
    inplace = True
    complex = True

    def _check(self, vec1, vec2):
        if vec1.ndim != 1 or vec2.ndim != 1:
            raise ShapeError(f"addr: Expected 1-D argument vec1 and vec2, but got shapes "
                             f"{list(vec1.shape)} and {list(vec2.shape)}")
        shape = (vec1.shape[0], vec2.shape[0])
        _check_base("addr", self, self, shape)
        return shape

    def run(xp, self, vec1, vec2, beta, alpha):
        addr._check(self, vec1, vec2)
        if vec1.dtype.kind in "iu":
            beta, alpha = int(beta), int(alpha)
        out = xp.multiply.outer(vec1 if alpha == 1 else vec1 * alpha, vec2)
        if beta == 1:
            out = out + self
        elif beta != 0:
            out = out + self * beta
        return out

    def shape(self, vec1, vec2, beta, alpha):
        return addr._check(self, vec1, vec2)

    def batch(n, batched, self, vec1, vec2, beta, alpha):
        wanted = dt.promote_types(dt.promote_types(self.dtype, vec1.dtype), vec2.dtype)
        value = vec1.to(wanted).unsqueeze(-1) * vec2.unsqueeze(-2)
        if value.ndim == 2:
            value = value.unsqueeze(0)
        return _batched_affine(n, _aligned(self, batched[0], 2), value, beta, alpha)

    def decomp(self, vec1, vec2, beta, alpha):
        return _affine_handles(self, vec1.unsqueeze(1) * vec2, beta, alpha)

    def samples(s):
        yield s(s.real(3, 4), s.real(3), s.real(4))
        yield s(s.real(4), s.real(3), s.real(4), beta=0.5, alpha=2)
        yield s(s.real(3, 4), s.real(3), s.real(4), beta=0)
        yield s(s.real(0, 4), s.real(0), s.real(4))


# ---------------------------------------------------------------------------------------------
# matmul and linear


class matmul(ComplexComposite):
    """Product of two tensors seen as stacks of matrices or vectors."""

    schema = "matmul(Tensor self, Tensor other) -> Tensor"
    flops = "product(0)"
    autocast = "lower"
    out = ("exact",)

    def compose(self, other):
        a, b = self.ndim, other.ndim
        if a == 2 and b == 2:
            return ops.mm(self, other)
        if a == 0 or b == 0:
            raise ShapeError(f"both arguments to matmul need to be at least 1D, but they are {a}D "
                             f"and {b}D")
        if b == 1:
            if a == 1:
                return ops.dot(self, other)
            return ops.mv(self, other) if a == 2 else _fold_left(self, other)
        if a == 1:
            if b == 2:
                return ops.mm(self.unsqueeze(0), other).squeeze(0)
            return _fold_left(other.transpose(-2, -1), self)
        if b == 2:
            return _fold_left(self, other)
        if a == 2 and self.requires_grad:
            # one large product: otherwise the gradient of `self` has a copy for each matrix
            return _fold_left(other.transpose(-2, -1), self.t()).transpose(-2, -1)
        return _stacked(self, other)

    def samples(s):
        yield s(s.real(4), s.real(4))
        yield s(s.real(3, 4), s.real(4))
        yield s(s.real(4), s.real(4, 2))
        yield s(s.real(3, 4), s.real(4, 2))
        yield s(s.real(2, 3, 4), s.real(4))
        yield s(s.real(4), s.real(2, 4, 3))
        yield s(s.real(2, 3, 4), s.real(4, 5))
        yield s(s.real(3, 4), s.real(2, 4, 5))
        yield s(s.real(2, 3, 4), s.real(2, 4, 5))
        yield s(s.real(2, 1, 3, 4), s.real(3, 4, 5))
        yield s(s.real(0, 3, 4), s.real(4, 5))


def _fold_left(stack, other):
    """A stack of matrices times one matrix or vector, as one product with all rows."""
    shape = stack.shape
    rows = stack.reshape(numel(shape[:-1]), shape[-1])
    if other.ndim == 1:
        return ops._unsafe_view(ops.mv(rows, other), list(shape[:-1]))
    return ops._unsafe_view(ops.mm(rows, other), [*shape[:-1], other.shape[1]])


def _stacked(a, b):
    """Two stacks of matrices, their leading dims broadcast."""
    if a.ndim == 3 and b.ndim == 3 and a.shape[0] == b.shape[0]:
        return ops.bmm(a, b)
    rows, inner_a = a.shape[-2:]
    inner_b, columns = b.shape[-2:]
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = numel(lead)
    shown = fast["ACTIVE"]  # captures show every step, as PyTorch's do
    if shown or tuple(a.shape[:-2]) != lead:
        a = a.expand([*lead, rows, inner_a])
    a = a.reshape(count, rows, inner_a)
    if shown or tuple(b.shape[:-2]) != lead:
        b = b.expand([*lead, inner_b, columns])
    b = b.reshape(count, inner_b, columns)
    return ops.bmm(a, b).reshape([*lead, rows, columns])


class linalg_matmul(Synonym):
    """The same as `matmul`."""

    schema = "linalg_matmul(Tensor self, Tensor other) -> Tensor"
    out = ("exact",)
    complex = True
    same_as = "matmul"
    samples = lambda s: [s(s.real(3, 4), s.real(4, 2))]


class linear(InFunctional, ComplexComposite):
    """`input @ weight.T + bias`, over the last dim of `input`."""

    schema = "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"
    widens = True
    lower = "index.linear"
    autocast = "lower"
    method = function = False

    def compose(input, weight, bias):
        if weight.ndim != 2:
            if weight.ndim != 1:
                raise ShapeError(f"linear: weight must be a matrix, got shape {list(weight.shape)}")
            if bias is None or bias.ndim == 0:
                out = ops.matmul(input, weight)
                return out if bias is None else out + bias
            raise ShapeError("linear: a bias with one dim needs a weight with two, got weight "
                             f"shape {list(weight.shape)} and bias shape {list(bias.shape)}")
        if bias is None:
            return ops.matmul(input, weight.t())
        ndim = input.ndim
        if ndim == 2:
            return ops.addmm(bias, input, weight.t())
        if ndim == 0 or bias.ndim != 1:
            return ops.matmul(input, weight.t()) + bias
        lead = input.shape[:-1]
        rows = input.reshape(numel(lead), input.shape[-1])
        return ops.addmm(bias, rows, weight.t()).reshape([*lead, weight.shape[0]])

    def samples(s):
        yield s(s.real(3, 4), s.real(5, 4), s.real(5))
        yield s(s.real(3, 4), s.real(5, 4))
        yield s(s.real(4), s.real(5, 4), s.real(5))
        yield s(s.real(2, 3, 4), s.real(5, 4), s.real(5))
        yield s(s.real(2, 3, 4), s.real(5, 4))
        yield s(s.real(0, 4), s.real(5, 4), s.real(5))
        yield s(s.real(3, 4), s.real(4))


# ---------------------------------------------------------------------------------------------
# einsum


class einsum(ComplexComposite):
    """Sum of products of elements, written in Einstein's notation."""

    schema = "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor"
    function = False  # `pullback.einsum` takes the operands one by one: see functional.py
    method = False
    compose = contract

    def samples(s):
        yield s("ij,jk->ik", [s.real(2, 3), s.real(3, 4)])
        yield s("ij,jk", [s.real(2, 3), s.real(3, 4)])
        yield s("bij,bjk->bik", [s.real(2, 3, 4), s.real(2, 4, 5)])
        yield s("ii", [s.real(3, 3)])
        yield s("ii->i", [s.real(3, 3)])
        yield s("ij->ji", [s.real(2, 3)])
        yield s("i,j->ij", [s.real(2), s.real(3)])
        yield s("...ij,...jk->...ik", [s.real(2, 1, 3, 4), s.real(5, 4, 3)])
        yield s("ij,jk,kl->il", [s.real(2, 3), s.real(3, 4), s.real(4, 2)])
        yield s("ijk,jl,ik->l", [s.real(2, 3, 4), s.real(3, 5), s.real(2, 4)])
        yield s("ij,ij->", [s.real(2, 3), s.real(1, 3)])


def _widened(self, first, second, out_dtype):
    """The operands of a half-precision product that is summed up and kept in float32."""
    if out_dtype is not first.dtype and not (
        out_dtype is dt.float32 and first.dtype in (dt.float16, dt.bfloat16)
    ):
        raise DTypeError(
            "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs, got "
            f"{out_dtype} for {first.dtype}"
        )
    return self.to(out_dtype), first.to(out_dtype), second.to(out_dtype)


class addmm_dtype(Composite):
    """`addmm` with a wider result."""

    schema = (
        "addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, "
        "Scalar beta=1, Scalar alpha=1) -> Tensor"
    )
    flops = "product(1)"
    autocast = "lower"

    def compose(self, mat1, mat2, out_dtype, beta, alpha):
        return ops.addmm(*_widened(self, mat1, mat2, out_dtype), beta=beta, alpha=alpha)

    samples = lambda s: [s(s.real(2, 4), s.real(2, 3), s.real(3, 4), s.dtype)]


class baddbmm_dtype(Composite):
    """`baddbmm` with a wider result."""

    schema = (
        "baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, "
        "Scalar beta=1, Scalar alpha=1) -> Tensor"
    )
    flops = "product(1)"
    autocast = "lower"

    def compose(self, batch1, batch2, out_dtype, beta, alpha):
        return ops.baddbmm(*_widened(self, batch1, batch2, out_dtype), beta=beta, alpha=alpha)

    samples = lambda s: [s(s.real(2, 2, 4), s.real(2, 2, 3), s.real(2, 3, 4), s.dtype)]
