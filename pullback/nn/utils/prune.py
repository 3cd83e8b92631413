"""Weights set to zero by masks: at random, by size, by channel, over several modules.

A pruned parameter NAME lies in `NAME_orig`, its mask in the buffer `NAME_mask`; a hook multiplies
them before each call.  Several prunings of one parameter are joined in a `PruningContainer`.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

from ...core.handle import Tensor
from ...table.packets import ops
from ..module import Module
from .convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """A way to choose a mask, and the hook that applies it."""

    _tensor_name: str
    PRUNING_TYPE: str  # "unstructured": elements; "structured": channels of `dim`; "global"

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor of scores, given what is masked already."""

    def apply_mask(self, module: Module) -> Tensor:
        """The original times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args, importance_scores: Tensor | None = None,
              **kwargs) -> BasePruningMethod:
        """Prune a parameter of a module, on top of what was pruned before."""
        method = cls._joined(module, name, cls(*args, **kwargs))
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise AssertionError("importance_scores should have the same shape as parameter "
                                 f"{name} of {module}, got {importance_scores.shape} vs "
                                 f"{original.shape}")
        scores = original if importance_scores is None else importance_scores
        first = not isinstance(method, PruningContainer)
        mask = (ops.ones_like(original) if first
                else getattr(module, f"{name}_mask").detach().clone())
        mask = method.compute_mask(scores, default_mask=mask)
        if first:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        for key, _ in _hooks(module, name):  # the container takes its place
            del module._forward_pre_hooks[key]
        module.register_forward_pre_hook(method)
        return method

    @staticmethod
    def _joined(module: Module, name: str, method: BasePruningMethod) -> BasePruningMethod:
        """The method, or a container of the earlier ones and this one."""
        method._tensor_name = name
        found = _hooks(module, name)
        if len(found) > 1:
            raise AssertionError("Avoid adding multiple pruning hooks to the same tensor "
                                 f"{name} of module {module}. Use a PruningContainer.")
        if not found:
            return method
        earlier = found[0][1]
        if not isinstance(earlier, PruningContainer):
            earlier = PruningContainer(earlier)
        earlier.add_pruning_method(method)
        return earlier

    def prune(self, t: Tensor, default_mask: Tensor | None = None,
              importance_scores: Tensor | None = None) -> Tensor:
        """A pruned copy of a tensor."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t, got "
                                 f"{importance_scores.shape} vs {t.shape}")
        mask = ops.ones_like(t) if default_mask is None else default_mask
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor a parameter; its zeros stay."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = pruned.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several prunings of one tensor, one after the other."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Add a pruning of the same tensor."""
        if method is not None:
            if not isinstance(method, BasePruningMethod):
                raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
            if self._tensor_name != method._tensor_name:
                raise ValueError("Can only add pruning methods acting on the parameter named "
                                 f"'{self._tensor_name}' to PruningContainer {self}. Found "
                                 f"'{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method among what is not masked yet."""
        method, rank = self._pruning_methods[-1], t.ndim
        where: list | Tensor = [slice(None)] * rank
        if method.PRUNING_TYPE == "unstructured":
            where = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have '
                                     "the attribute `dim` defined.")
            if method.dim < -rank:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {rank}")
            dim = method.dim % rank
            others = [d for d in range(rank) if d != dim]
            where[dim] = default_mask.sum(dim=others) != 0
        elif method.PRUNING_TYPE != "global":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        where = where if isinstance(where, Tensor) else tuple(where)
        mask = default_mask.to(t.dtype).clone()
        mask[where] = method.compute_mask(t[where], default_mask=default_mask[where]).to(t.dtype)
        return mask


# ---------------------------------------------------------------------------------------------
# Methods


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask and the hook."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """Prunes the elements with the smallest of some numbers."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount) -> None:
        _check_amount(amount)
        self.amount = amount

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        if count:
            mask.view([-1])[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return ops.topk(ops.rand_like(t).view([-1]), count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount) -> BasePruningMethod:
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements that are nearest to zero."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return ops.topk(t.abs().view([-1]), count, largest=False).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount,
              importance_scores: Tensor | None = None) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """Prunes whole channels along `dim`."""

    PRUNING_TYPE = "structured"

    def _kept(self, t: Tensor, channels: int, count: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim <= 1:
            raise ValueError("Structured pruning can only be applied to multidimensional tensors. "
                             f"Found tensor of shape {t.shape} with {t.ndim} dims")
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        channels = t.shape[self.dim]
        count = _count(self.amount, channels)
        if count == 0:
            return default_mask
        where = [slice(None)] * t.ndim
        where[self.dim] = self._kept(t, channels, count)
        mask = ops.zeros_like(t)
        mask[tuple(where)] = 1
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def __init__(self, amount, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def _kept(self, t: Tensor, channels: int, count: int) -> Tensor:
        drawn = ops.rand([channels])
        return drawn > ops.kthvalue(drawn, count).values

    @classmethod
    def apply(cls, module: Module, name: str, amount, dim: int = -1) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels with the smallest norms."""

    def __init__(self, amount, n, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def _kept(self, t: Tensor, channels: int, count: int) -> Tensor:
        norms = ops.norm(t, self.n, [d for d in range(t.ndim) if d != self.dim % t.ndim])
        return ops.topk(norms, channels - count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount, n, dim: int,
              importance_scores: Tensor | None = None) -> BasePruningMethod:
        return super().apply(module, name, amount=amount, n=n, dim=dim,
                             importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask of the user's."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask "
                                 f"shape {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:
        return super().apply(module, name, mask=mask)


# ---------------------------------------------------------------------------------------------
# Functions


def identity(module: Module, name: str) -> Module:
    """Make mask and hook without pruning anything."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount) -> Module:
    """Prune a number or a share of elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount,
                    importance_scores: Tensor | None = None) -> Module:
    """Prune the elements that are nearest to zero."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount, dim: int) -> Module:
    """Prune channels at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount, n, dim: int,
                  importance_scores: Tensor | None = None) -> Module:
    """Prune the channels with the smallest norms."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune by a mask of the user's."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method: type, importance_scores: dict | None = None,
                        **kwargs) -> None:
    """Prune elements of several (module, name) as if they were one tensor."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
                        f"Found method {pruning_method} of type {method.PRUNING_TYPE}")
    parameters = list(parameters)
    weights = [getattr(module, name) for module, name in parameters]
    joined = parameters_to_vector([scores.get(key, weight) for key, weight in
                                   zip(parameters, weights, strict=True)])
    mask = parameters_to_vector([getattr(module, f"{name}_mask", ops.ones_like(weight))
                                 for (module, name), weight in
                                 zip(parameters, weights, strict=True)])
    container = PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    container.add_pruning_method(method)
    mask, start = container.compute_mask(joined, mask), 0
    for (module, name), weight in zip(parameters, weights, strict=True):
        part = mask[start:start + weight.numel()].view(weight.shape)
        custom_from_mask(module, name, mask=part)
        start += weight.numel()


def remove(module: Module, name: str) -> Module:
    """Make a pruned tensor an ordinary parameter; its zeros stay."""
    for key, hook in _hooks(module, name):
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can "
                     "be removed")


def is_pruned(module: Module) -> bool:
    """Is something of a module or of its submodules pruned?"""
    return any(isinstance(hook, BasePruningMethod) for part in module.modules()
               for hook in part._forward_pre_hooks.values())


def _hooks(module: Module, name: str) -> list:
    return [(key, hook) for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]


def _check_amount(amount) -> None:
    """A share, or a number of elements."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if isinstance(amount, numbers.Integral):
        if amount < 0:
            raise ValueError(f"amount={amount} should be a nonnegative integer")
    elif not 0.0 <= amount <= 1.0:
        raise ValueError(f"amount={amount} should be a float in the range [0, 1]")


def _count(amount, size: int) -> int:
    """How many of `size` to prune."""
    count = amount if isinstance(amount, numbers.Integral) else round(amount * size)
    if isinstance(count, numbers.Integral) and count > size:
        raise ValueError(f"amount={count} should be smaller than the number of parameters to "
                         f"prune={size}")
    return count
