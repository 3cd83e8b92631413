"""Attention: the function of several heads (`forward`), its module (`layer`), masks (`bias`).

`sdpa_kernel` chooses among a vendor's implementations in PyTorch; here there is one, so that the
choice is kept and changes no numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum

from ...absent import getter as _getter

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Names of PyTorch's implementations of `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_chosen = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
           SDPBackend.MATH, SDPBackend.OVERRIDEABLE]


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """What the innermost `sdpa_kernel` chose."""
    return list(_chosen)


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend,
                set_priority: bool = False) -> Iterator[dict]:
    """While this is open attention may use only these implementations; all are the same one."""
    global _chosen
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend "
                             f"instances, got {type(backends).__name__}")
    before = _chosen
    _chosen = list(dict.fromkeys([backends] if isinstance(backends, SDPBackend) else backends))
    try:
        yield {}
    finally:
        _chosen = before


__getattr__ = _getter(__name__)
