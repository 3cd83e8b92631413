"""Names of the steps that PyTorch's dispatcher takes: a kernel is registered for one of them.

`overload_functions.py` and `torch/higher_order.py` say which of them exist here.
"""

from __future__ import annotations

import enum

DispatchKey = enum.Enum(
    "DispatchKey",
    """Undefined CPU CUDA XPU MPS Meta BackendSelect Python Functionalize ADInplaceOrView
    AutogradOther AutogradFunctionality AutogradCPU AutogradCUDA AutogradXPU Tracer AutocastCPU
    AutocastCUDA AutocastXPU AutocastMPS FuncTorchBatched PythonTLSSnapshot PythonDispatcher
    Autograd CompositeImplicitAutograd CompositeExplicitAutograd""",
    module="pullback._C",
)


class DispatchKeySet(frozenset):
    """Some of the steps that PyTorch's dispatcher takes."""

    def __new__(cls, keys: DispatchKey | frozenset = frozenset()):
        return super().__new__(cls, (keys,) if isinstance(keys, DispatchKey) else keys)

    def __or__(self, other):
        return DispatchKeySet(super().__or__(other))

    def __sub__(self, other):
        return DispatchKeySet(super().__sub__(other))

    def has(self, key: DispatchKey) -> bool:
        """Is the step among them?"""
        return key in self
