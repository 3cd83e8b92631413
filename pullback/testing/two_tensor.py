"""`TwoTensor`: a wrapper that holds two tensors and does everything to both.

The smallest class that shows all of the protocol: how a wrapper is made, what an operator does to
it, and how `compile` takes it apart and puts it together.
"""

from __future__ import annotations

from typing import Any

from .. import pytree
from ..core.handle import Tensor
from ..utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

__all__ = ["TwoTensor", "TwoTensorMode"]


class TwoTensor(Tensor):
    """Two tensors of the same shape, strides, dtype and device; its own facts are those of `a`."""

    a: Tensor
    b: Tensor

    @staticmethod
    def __new__(cls, a: Tensor, b: Tensor, outer_size=None, outer_stride=None, *,
                requires_grad: bool | None = None) -> TwoTensor:
        for name in ("device", "layout", "requires_grad", "dtype", "shape"):
            if getattr(a, name) != getattr(b, name):
                raise AssertionError(f"the two tensors differ in their {name}: "
                                     f"{getattr(a, name)} and {getattr(b, name)}")
        if (a.stride(), a.storage_offset()) != (b.stride(), b.storage_offset()):
            raise AssertionError("the two tensors lie differently in their memory: strides "
                                 f"{a.stride()} and {b.stride()}")
        new = Tensor._make_wrapper_subclass(
            cls, a.size() if outer_size is None else outer_size,
            a.stride() if outer_stride is None else outer_stride, a.storage_offset(),
            dtype=a.dtype, layout=a.layout, device=a.device,
            requires_grad=requires_grad or a.requires_grad)
        new.a, new.b = a, b
        return new

    def __init__(self, a, b, outer_size=None, outer_stride=None, *, requires_grad=None):
        pass

    def __repr__(self) -> str:  # type: ignore[override]
        return f"TwoTensor({self.a!r}, {self.b!r})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """(names of the attributes that are tensors, what else is needed to make one)."""
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner_tensors: dict, meta: Any, outer_size, outer_stride):
        """One of these out of what `__tensor_flatten__` said."""
        return TwoTensor(inner_tensors["a"], inner_tensors["b"], outer_size, outer_stride)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}

        def run(name: str) -> tuple[list, Any]:
            inside = pytree.tree_map_only(TwoTensor, lambda t: getattr(t, name), (args, kwargs))
            return pytree.tree_flatten(func(*inside[0], **inside[1]))

        (first, spec), (second, _) = run("a"), run("b")
        both = [cls(x, y) if isinstance(x, Tensor) else x for x, y in zip(first, second)]
        out = pytree.tree_unflatten(both, spec)
        return return_and_correct_aliasing(func, args, kwargs, out)

    def get_elem_a(self) -> Tensor:
        """The first one."""
        return self.a


class TwoTensorMode(TorchDispatchMode):
    """Tensors that are made from sizes alone are two, inside of this mode."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        made = getattr(func, "kind", None) in ("creation", "random")
        return TwoTensor(out, out.clone()) if made and isinstance(out, Tensor) else out
