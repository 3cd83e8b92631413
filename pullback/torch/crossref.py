"""`CrossRefFakeMode`: every operator runs with data and without, and both results are compared.

For authors of `register_fake`: a fake that has another shape, dtype, stride or device than the
result, or shares memory where that does not, is an error with the operator's name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..array.fake import is_fake
from ..array.layout import suggest_memory_format
from ..core.handle import Tensor
from ..errors import MetadataMismatchError
from ..func.functionalize import functionalize
from ..graph.fake_mode import FakeTensorMode, maybe_get_fake_mode
from ..memory.storages import root_of
from ..pytree import tree_leaves, tree_map
from ..utils._python_dispatch import TorchDispatchMode


def compare_tensor_meta(a: Any, b: Any, check_sizes: bool = True, check_strides: bool = False, *,
                        allow_rhs_unbacked: bool = False, check_conj: bool = True) -> None:
    """Refuse two tensors of which one is not as the other: shape, dtype, device, strides."""
    for t in (a, b):
        if not isinstance(t, Tensor):
            raise MetadataMismatchError(f"expected a tensor, got {type(t).__name__}")
    facts = [("shape", tuple(a.shape), tuple(b.shape))] if check_sizes else []
    facts += [("dtype", a.dtype, b.dtype), ("device", a.device, b.device)]
    if check_strides:
        facts += [("strides", _steps(a), _steps(b)),
                  ("storage offset", a.storage_offset(), b.storage_offset())]
    if check_conj:
        facts += [("conjugation", a.is_conj(), b.is_conj()), ("negation", a.is_neg(), b.is_neg())]
    for what, one, other in facts:
        if one != other and not (allow_rhs_unbacked and what in ("shape", "strides")):
            raise MetadataMismatchError(f"the {what} differ: {one} and {other}")


@dataclass(frozen=True)
class TensorMetadata:
    """All facts of a tensor but its data: what two calls of an operator may have in common."""

    dtype: Any
    shape: tuple
    stride: tuple
    device: Any
    layout: Any
    memory_format: Any
    storage_offset: int
    storage_bytes: int | None
    requires_grad: bool
    is_quantized: bool
    is_conj: bool
    is_neg: bool
    is_inference: bool
    is_sparse: bool
    is_coalesced: bool | None = None
    dense_dim: int | None = None
    sparse_dim: int | None = None


def extract_tensor_metadata(t: Tensor) -> TensorMetadata:
    """The facts of a tensor; the memory format is None where its memory has gaps."""
    wanted = suggest_memory_format(t)
    return TensorMetadata(
        t.dtype, t.shape, t.stride(), t.device, t.layout,
        wanted if t.is_contiguous(memory_format=wanted) else None, t.storage_offset(),
        t.untyped_storage().nbytes(), t.requires_grad, t.is_quantized, t.is_conj(), t.is_neg(),
        t.is_inference(), t.is_sparse)


def _steps(t: Tensor) -> list:
    """Strides that mean something: not those of empty tensors, nor of dims with one element."""
    return [s for n, s in zip(t.shape, t.stride()) if n > 1] if t.numel() else []


def outputs_alias_inputs(outputs: Any, inputs: Any) -> bool:
    """Does an output share the memory of an input?"""
    given = {id(root_of(t)) for t in tree_leaves(inputs) if isinstance(t, Tensor)}
    return any(id(root_of(t)) in given
               for t in tree_leaves(outputs) if isinstance(t, Tensor))


def outputs_are_inputs(outputs: Any, inputs: Any) -> bool:
    """Is an output an input?"""
    given = {id(t) for t in tree_leaves(inputs) if isinstance(t, Tensor)}
    return any(id(t) in given for t in tree_leaves(outputs) if isinstance(t, Tensor))


def output_alias_each_other(outputs: Any) -> bool:
    """Do two outputs share memory?"""
    memories = [id(root_of(t)) for t in tree_leaves(outputs) if isinstance(t, Tensor)]
    return len(set(memories)) < len(memories)


def try_convert_fake_to_real(ten_list: Sequence[Any]) -> list[Any]:
    """Tensors with fakes replaced by views of the real ones whose memory theirs stands for."""
    return [_real(t) if is_fake(t) else t for t in ten_list]


def _real(fake: Tensor) -> Tensor:
    mode, root = maybe_get_fake_mode(fake), root_of(fake)
    known = () if mode is None else list(mode.fake_tensor_converter.tensor_memo.values())
    for tensor, made in known:
        real, own = tensor(), made()
        if real is not None and own is not None and root_of(own) is root:
            return real.as_strided(fake.shape, fake.stride(),
                                   fake.storage_offset() - own.storage_offset()
                                   + real.storage_offset())
    return fake


class CrossRefFakeMode(TorchDispatchMode):
    """A block in which operators are run on fakes, too, and the results compared.

    `ignore_op_fn` says which operators are left out.
    """

    def __init__(self, ignore_op_fn: Callable | None = None, *, check_strides: bool = True,
                 check_aliasing: bool = True, only_check_ops_with_meta: bool = True) -> None:
        super().__init__()
        self.ignore_op_fn = ignore_op_fn if ignore_op_fn is not None else lambda func: False
        self.check_strides, self.check_aliasing = check_strides, check_aliasing
        self.only_check_ops_with_meta = only_check_ops_with_meta

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        expected = _Nothing if self.ignore_op_fn(func) else self._faked(func, args, kwargs)
        result = func(*args, **kwargs)
        if expected is not _Nothing:
            self._compare(func, args, kwargs, result, expected)
        return result

    def _faked(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        mode = FakeTensorMode()
        try:
            given, named = tree_map(
                lambda t: mode.from_tensor(t) if isinstance(t, Tensor) else t, (args, kwargs))
            with mode:
                made = self._run(func, given, named)
        except (errors.DataDependentError, errors.DynamicOutputShapeException):
            return _Nothing  # only the data know
        except errors.DerivativeNotWritten:
            if self.only_check_ops_with_meta:
                return _Nothing
            raise
        self._given = given, named
        return made

    def _run(self, func: Callable, given: tuple, named: dict) -> Any:
        return func(*given, **named)

    def _compare(self, func: Any, args: tuple, kwargs: dict, result: Any, expected: Any) -> None:
        name, real, fakes = str(func), tree_leaves(result), tree_leaves(expected)
        given, named = self._given
        if self.check_aliasing:
            for what, found, made in (
                ("outputs that are views of inputs", outputs_alias_inputs(real, (args, kwargs)),
                 outputs_alias_inputs(fakes, (given, named))),
                ("outputs that share memory", output_alias_each_other(real),
                 output_alias_each_other(fakes)),
            ):
                if found != made:
                    raise _mismatch(name, f"{what}: {found} with data, {made} without")
        if len(real) != len(fakes):
            raise _mismatch(name, f"{len(real)} results with data, {len(fakes)} without")
        for i, (a, b) in enumerate(zip(real, fakes)):
            if isinstance(a, Tensor) != isinstance(b, Tensor):
                raise _mismatch(name, f"output {i} is a {type(a).__name__} with data, a "
                                f"{type(b).__name__} without")
            if isinstance(a, Tensor):
                try:
                    compare_tensor_meta(a, b, check_strides=self.check_strides)
                except MetadataMismatchError as error:
                    raise _mismatch(name, f"output {i}: {error}") from error


class _CrossRefFunctionalize(CrossRefFakeMode):
    """The fakes go through the operator without writes that stands for it in captured graphs."""

    def _run(self, func: Callable, given: tuple, named: dict) -> Any:
        return functionalize(func)(*given, **named)


@contextlib.contextmanager
def enable_crossref_functionalize() -> Iterator[None]:
    """A block in which operators run, on fakes, as `functionalize` would have them, too.

    An operator whose form without writes gives other shapes, dtypes or devices is an error.
    """
    with _CrossRefFunctionalize(check_strides=False, check_aliasing=False):
        yield


class _Nothing:
    """No result to compare."""


def _mismatch(name: str, what: str) -> MetadataMismatchError:
    return MetadataMismatchError(errors.text(
        f"{name}: its fake is not as its result ({errors.user_line(3)})", what,
        "correct what register_fake says of it"))
