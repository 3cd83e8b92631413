"""Function transforms: grad, vjp, jvp, vmap, jacobians, hessian, functionalize."""

import sys
from typing import TYPE_CHECKING, Any

from ..facade import Shelf
from .functionalize import functionalize
from .grad import grad, grad_and_value, jvp, linearize, value_and_grad, vjp
from .jacobian import hessian, jacfwd, jacrev
from .vmap import vmap

if TYPE_CHECKING:  # for editors and type checkers
    from ..nn.stateless import functional_call as functional_call
    from ..nn.stateless import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
    from ..nn.stateless import stack_module_state as stack_module_state
    from .einops import rearrange as rearrange
    from .inside import debug_unwrap as debug_unwrap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "value_and_grad",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> Any:
    if name == "debug_unwrap":
        from .inside import debug_unwrap

        return debug_unwrap
    if name == "rearrange":
        from .einops import rearrange

        return rearrange
    if name in ("functional_call", "stack_module_state", "replace_all_batch_norm_modules_"):
        from ..nn import stateless

        return getattr(stateless, name)
    raise AttributeError(f"pullback.func has no attribute '{name}'")


sys.modules[__name__].__class__ = Shelf
