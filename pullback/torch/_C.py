"""Names of PyTorch's binary module that Python packages touch.

There is no binary here.  What packages ask it about the state of the library is answered, what
they switch is switched; nothing else of it exists.
"""

from __future__ import annotations

import contextlib
import threading

from ..array.device import Device as device
from ..array.dtype import DType as dtype
from ..array.generator import Generator
from ..array.size import Size
from ..autograd.grad_mode import _set_grad_enabled, is_grad_enabled, no_grad
from ..core.handle import Tensor as TensorBase
from ..core.handle import disabled as _disabled_torch_dispatch_impl
from ..core.handle import disabled as _disabled_torch_function_impl
from ..errors import LinAlgError as _LinAlgError
from ..library.dispatch_keys import DispatchKey, DispatchKeySet
from ..table.qualified import parse_schema
from ..threads.asking import DisableTorchFunction, DisableTorchFunctionSubclass
from ..threads.asking import Enabled as _EnableTorchFunction
from ..threads.asking import Undispatched as _DisableTorchDispatch
from ..threads.blocks import uncast
from ..threads.state import state

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet",
    "Generator", "Size", "TensorBase", "_DisableTorchDispatch", "_EnableTorchFunction",
    "_ExcludeDispatchKeyGuard",
    "_LinAlgError", "_are_functorch_transforms_active", "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl", "_dispatch_tls_local_exclude_set", "_get_default_device",
    "_get_tracing_state", "_log_api_usage_once", "_set_grad_enabled", "device", "dtype",
    "is_grad_enabled", "parse_schema",
]  # fmt: skip

__path__: list[str] = []  # `torch._C._functorch` is found by the alias map

class _ExcludeDispatchKeyGuard:
    """Skips steps in a block: autocast and recording are those that exist here."""

    def __init__(self, keys: DispatchKeySet):
        self.keys = keys
        names = {key.name for key in keys}
        self.kinds = [
            kind
            for start, kind in (("Autocast", uncast), ("Autograd", no_grad))
            if any(name.startswith(start) for name in names)
        ]

    def __enter__(self):
        self.blocks = contextlib.ExitStack()
        for kind in self.kinds:
            self.blocks.enter_context(kind())
        self.before, _excluded.keys = _excluded.keys, _excluded.keys | self.keys

    def __exit__(self, *exc):
        _excluded.keys = self.before
        self.blocks.close()


class _Excluded(threading.local):
    keys = DispatchKeySet()


_excluded = _Excluded()


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The steps that `_ExcludeDispatchKeyGuard` skips at the moment."""
    return _excluded.keys


def _is_torch_function_all_disabled() -> bool:
    """Do functions ask neither classes nor modes?"""
    return state.dispatch.overrides_off == 2


class _AutoDispatchBelowAutograd:
    """Below the tape, as long as it lives: in a `with` block, or until it is deleted."""

    def __init__(self):
        self.block = no_grad()
        self.block.__enter__()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        block, self.block = self.block, None
        if block is not None:
            block.__exit__(*exc)

    def __del__(self):
        self.__exit__(None, None, None)


def _get_autograd_fallback_mode() -> str:
    """What happens in a sweep through an operator that nobody registered a gradient for."""
    from ..library.fallback import autograd_fallback_mode

    return autograd_fallback_mode()


def _set_autograd_fallback_mode(mode: str) -> None:
    """Set that to "warn" or "nothing"."""
    from ..library.fallback import set_autograd_fallback_mode

    set_autograd_fallback_mode(mode)


def _get_tracing_state() -> None:
    """The trace of `jit.trace` that runs; none does, as programs are captured by running them."""


def _are_functorch_transforms_active() -> bool:
    """Does a transform run?"""
    return len(state.stack) > 1


def _log_api_usage_once(event: str) -> None:
    """Nothing is reported to anyone."""


def _get_cudnn_batch_norm_reserve_space_size(input, training: bool) -> int:
    """How many bytes batch normalisation keeps for its backward: none without cuDNN."""
    return 0


def _get_default_device() -> str:
    """Where tensors are made, as a string."""
    from .. import empty

    return str(empty(0).device)


def __getattr__(name: str):
    if name in _SWEEP:
        from ..autograd import running_sweep

        return getattr(running_sweep, name)
    if name in ("_is_fwd_grad_enabled", "_set_fwd_grad_enabled"):
        from ..autograd import forward_ad

        return getattr(forward_ad, name)
    if name == "_WeakTensorRef":
        from .weak_references import _WeakTensorRef

        return _WeakTensorRef
    from ..facade import elsewhere

    return elsewhere(__name__, name)


_SWEEP = (  # questions about the backward that runs
    "_current_autograd_node", "_current_graph_task_execution_order", "_current_graph_task_id",
    "_will_engine_execute_node")
