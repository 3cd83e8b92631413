"""Operators that programs rarely call by name: aliases, lifts, sizes as operators, resizing.

PyTorch's own machinery calls them, and captured graphs name them; almost all are one line over
other operators.  `shape.py` has the views that people use.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array import lazy
from ..array.dims import infer_size, numel, view_strides, wrap_dim
from ..array.layout import memory_format
from ..core.handle import Box
from ..core.op import Composite
from ..errors import DTypeError, NotDifferentiable, ShapeError
from ..table.packets import ops
from ..tensor.reseat import resize_ as resize
from ..threads.state import state
from .complex_parts import Turning
from .kinds import ComplexComposite, ComplexFree, Free
from .pointwise import points
from .shape import Reshaped, shown_as
from .view_writes import derive_copies

# ---------------------------------------------------------------------------------------------
# Views under other names


class _reshape_alias(Reshaped):
    """`view` whose strides the caller has worked out already."""

    schema = "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)"
    method = False

    def run(xp, self, size, stride):
        made = shown_as(self, size)
        if made is not None and made.strides == tuple([self.itemsize * s for s in stride]):
            return made
        found = view_strides(self.shape, self.strides, size) if self.size == numel(size) else None
        steps = [] if found is None else [s // self.itemsize for s in found]
        other = self.size and any(n > 1 and s != t for n, s, t in zip(size, steps, stride))
        if found is None or other:
            raise RuntimeError(
                f"strides {list(stride)} are not those of a view of shape {list(size)}"
            )
        return self.reshape(size)

    def batch(n, batched, self, size, stride):
        return self.reshape((n, *size))

    def decomp(self, size, stride):
        return ops.view(self, size)

    def samples(s):
        yield s(s.real(3, 4), (2, 6), (6, 1))
        yield s(s.real(), (1, 1), (1, 1))
        yield s(s.real(0, 3), (3, 0), (1, 1))


class _reshape_copy(ComplexFree):
    """`reshape` that always copies."""

    schema = "_reshape_copy(Tensor self, SymInt[] size) -> Tensor"
    lower = "shape.view"

    def compose(self, size):
        return ops._unsafe_view(self.clone(memory_format="contiguous_format"),
                                infer_size(size, self.numel()))

    def samples(s):
        yield s(s.real(3, 4), (2, -1))
        yield s(s.real(3, 4).T, (12,))
        yield s(s.real(), (1,))
        yield s(s.real(0, 3), (3, 0))


class _neg_view(Turning):
    """Each element with the other sign, a view."""

    schema = "_neg_view(Tensor(a) self) -> Tensor(a)"
    by = lazy.NEG
    grad = {"self": "grad.neg()"}
    push = "self_t.neg()"
    c = "-{self}"
    scatter = "neg(new)"
    method = False
    samples = points()

    def batch(n, batched, self):
        return ops._neg_view(self)


def _identity(name: str, marks: str, doc: str, **more) -> None:
    """An operator that hands its tensor on."""
    body = {
        "__doc__": doc,
        "__module__": __name__,
        "schema": f"{name}(Tensor{marks} self) -> Tensor{marks}",
        "compose": lambda self: self,
        "samples": points(),
        "complex": True,
        "method": False,
        **more,
    }
    type(name, (Composite,), body)


_identity("lift", "", "The tensor itself: a tensor from outside, handed to the transforms that run.")
_identity("lift_fresh", "(a)", "The tensor itself, which nobody else holds yet.", noop=True)


def _copy(name: str, operator: str, doc: str, tags: tuple = ("view_copy",), **more) -> None:
    """An operator that is another one, or a copy, under a name of its own."""
    body = {
        "__doc__": doc,
        "__module__": __name__,
        "schema": f"{name}(Tensor self) -> Tensor",
        "tags": tags,
        "compose": lambda self: getattr(ops, operator)(self),
        "samples": points(),
        "complex": True,
        "method": False,
        **more,
    }
    type(name, (Composite,), body)


_copy("lift_fresh_copy", "clone", "A copy of a tensor from outside.", noop=True,
      lower="pointwise.copy")
_copy("_lazy_clone", "clone", "A copy in memory of its own; it is made at once.", ())
_copy("_conj_copy", "_conj_physical", "A copy of what `_conj` shows.")


class slice_inverse(ComplexFree):
    """The tensor that `self` is a slice of, when the rest of it is that of `src`."""

    schema = ("slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None,"
              " SymInt? end=None, SymInt step=1) -> Tensor(a)")  # a copy here

    def compose(self, src, dim, start, end, step):
        return ops.slice_scatter(src, self, dim, start, end, step)

    def samples(s):
        yield s(s.real(2, 4), s.real(5, 4), 0, 1, 3)
        yield s(s.real(5, 2), s.real(5, 4), -1, None, None, 2)


# ---------------------------------------------------------------------------------------------
# Copies and fresh tensors


class _pin_memory(ComplexFree):
    """A copy that a device could read by itself; ordinary memory serves here."""

    schema = "_pin_memory(Tensor self, Device? device=None) -> Tensor"

    def compose(self, device):
        return self.clone()

    samples = points()


class _efficientzerotensor(Free):
    """Zeros that share one element, and so cannot be written."""

    schema = ("_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None,"
              " Device? device=None, bool? pin_memory=None) -> Tensor")

    def compose(size, dtype, layout, device, pin_memory):
        return ops.zeros([], dtype=dtype, device=device).expand(size)

    samples = lambda s: [s([2, 3]), s([]), s([0, 2], dtype=s.dtype)]


class _new_zeros_with_same_feature_meta(ComplexFree):
    """Zeros like `other`, behind the batch dims of `self`."""

    schema = ("_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *,"
              " int self_num_batch_dims=0) -> Tensor")

    def compose(self, other, self_num_batch_dims):
        return other.detach().new_zeros((*self.shape[:self_num_batch_dims], *other.shape))

    samples = lambda s: [s(s.int(2, 3), s.int(4, 5), self_num_batch_dims=1), s(s.int(), s.int(3))]


class _index_put_impl(ComplexFree):
    """`index_put` with a flag that would skip the checks of the indices."""

    schema = ("_index_put_impl(Tensor self, Tensor?[] indices, Tensor values,"
              " bool accumulate=False, bool unsafe=False) -> Tensor")
    inplace = True

    def compose(self, indices, values, accumulate, unsafe):
        return ops.index_put(self, indices, values, accumulate)

    def samples(s):
        yield s(s.real(4, 3), [s.int(2, high=4)], s.real(2, 3), True)
        yield s(s.real(4, 3), [None, s.tensor([0, 2], dt.int64)], s.real(4, 2))


# ---------------------------------------------------------------------------------------------
# Truth of all elements


def _truth(name: str, operator: str, doc: str) -> None:
    """A reduction of truth values over all dims."""

    def compose(self):
        if dt.name_of(self.dtype) != "bool":
            raise DTypeError(f"{name} takes truth values, got {self.dtype}")
        while isinstance(self._payload, Box) and self._payload.hides:
            self = self._payload.inner  # of all examples, as PyTorch has it
        return getattr(ops, operator)(self)

    def samples(s):
        yield s(s.bool(3, 4))
        yield s(s.bool())
        yield s(s.bool(0, 3))

    body = {
        "__doc__": doc,
        "__module__": __name__,
        "schema": f"{name}(Tensor self) -> Tensor",
        "compose": compose,
        "samples": samples,
        "method": False,
    }
    type(name, (Composite,), body)


_truth("_is_all_true", "all", "Are all elements true?")
_truth("_is_any_true", "any", "Is any element true?")


# ---------------------------------------------------------------------------------------------
# Facts of a tensor as operators: Python numbers


def _fact(schema: str, doc: str, compose, core: bool | str = False) -> None:
    def samples(s):
        rows = memory_format.known["contiguous_format"]
        more = [-1] if "int dim" in schema else [rows] if "Format" in schema else []
        yield s(s.real(3, 4), *more)

    body = {
        "__doc__": doc,
        "__module__": __name__,
        "schema": schema,
        "core": core,
        "compose": compose,
        "samples": samples,
        "complex": True,
        "method": False,
        "function": False,
    }
    type(schema.partition("(")[0].replace(".", "_"), (Composite,), body)


def _fills(shape, strides) -> bool:
    """Does each place of the memory between the first and the last element have one?"""
    step = 1
    for stride, n in sorted((s, n) for n, s in zip(shape, strides) if n > 1):
        if stride != step:
            return False
        step *= n
    return True


_fact("sym_size.int(Tensor self, int dim) -> SymInt", "The size of one dim.",
      lambda self, dim: self.shape[wrap_dim(dim, self.ndim)], "apart")
_fact("sym_size(Tensor self) -> SymInt[]", "The sizes of all dims.", lambda self: list(self.shape))
_fact("sym_stride.int(Tensor self, int dim) -> SymInt", "The stride of one dim, in elements.",
      lambda self, dim: self.stride()[wrap_dim(dim, self.ndim)], "apart")
_fact("sym_stride(Tensor self) -> SymInt[]", "The strides of all dims, in elements.",
      lambda self: list(self.stride()))
_fact("dim(Tensor self) -> int", "The number of dims.", lambda self: self.ndim)
_fact("is_contiguous(Tensor self) -> bool", "Are elements in row-major order without gaps?",
      lambda self: self.is_contiguous())
_fact("is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
      "Do elements lie in memory as a format says?",
      lambda self, memory_format: self.is_contiguous(memory_format=memory_format))
_fact("sym_numel(Tensor self) -> SymInt", "The number of elements.", lambda self: self.numel(),
      True)
_fact("sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool",
      "Do elements lie in memory as a format says? Sizes may be symbols.",
      lambda self, memory_format: self.is_contiguous(memory_format=memory_format))
_fact("is_non_overlapping_and_dense(Tensor self) -> bool",
      "Do elements fill their memory, each once, in whatever order?",
      lambda self: _fills(self.shape, self.stride()))
_fact("is_pinned(Tensor self, Device? device=None) -> bool",
      "Is the memory of the kind that devices read by themselves?",
      lambda self, device: self.is_pinned(device))
_fact("numel(Tensor self) -> int", "The number of elements, as a number.",
      lambda self: self.numel())
_fact("sym_storage_offset(Tensor self) -> SymInt",
      "Where the first element lies in the memory, in elements.",
      lambda self: self.storage_offset(), True)


class record_stream(Composite):
    """Says that a stream uses the memory of a tensor; those of the CPU have none."""

    schema = "record_stream(Tensor(a!) self, Stream s) -> ()"
    method = function = False

    def compose(self, s):
        self.record_stream(s)


class _local_scalar_dense(ComplexComposite):
    """The only element as a Python number."""

    schema = "_local_scalar_dense(Tensor self) -> Scalar"
    tags = ("data_dependent_output",)
    core = True
    method = function = False

    def compose(self):
        return self.item()

    samples = lambda s: [s(s.real()), s(s.int(1, 1))]


# ---------------------------------------------------------------------------------------------
# Resizing


class resize_(Composite):
    """Gives the tensor another shape in its memory, which grows if it must; new bytes are zero."""

    schema = ("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None)"
              " -> Tensor(a!)")
    unchecked = ("vmap",)  # what is in further memory is not set
    tags = ("inplace_view",)
    core = True
    function = False

    def compose(self, size, memory_format):
        if self.requires_grad and not state.inference:
            raise NotDifferentiable("cannot resize variables that require grad")
        if any(n < 0 for n in size):
            raise ShapeError(f"resize_: sizes must not be negative, got {list(size)}")
        return resize(self, size, memory_format)

    def samples(s):
        yield s(s.int(2, 3), (4,))
        yield s(s.int(2, 3), (3, 3))
        yield s(s.int(2, 3), (2, 3))
        yield s(s.int(), (0, 2))


derive_copies(globals(), __name__)
