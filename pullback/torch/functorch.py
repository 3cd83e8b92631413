"""`functorch`: the transforms under their first names, which warn as PyTorch's do."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import func
from . import make_functional as older
from .make_functional import FunctionalModule, FunctionalModuleWithBuffers

# first name -> what to use today
_TODAY = {name: f"torch.func.{name}" for name in (
    "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp")} | {
    "vmap": "torch.vmap", "make_functional": "torch.func.functional_call",
    "make_functional_with_buffers": "torch.func.functional_call",
    "combine_state_for_ensemble": "torch.func.stack_module_state",
}
__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", *_TODAY]


def _warning(name: str) -> Callable:
    function = getattr(older, name, None) or getattr(func, name)

    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"`functorch.{name}` is deprecated. Please use `{_TODAY[name]}` instead",
                      FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    return warned


globals().update({name: _warning(name) for name in _TODAY})
