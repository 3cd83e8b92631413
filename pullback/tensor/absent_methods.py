"""Methods of tensors that are about layouts, dtypes and devices which there are not.

A dense tensor answers some of them (`to_dense`), refuses others in PyTorch's words (`indices`);
those that would make another kind of tensor say that there is none.  `tensor/` attaches them.
"""

from __future__ import annotations

from .. import errors
from ..array import dtype as dt
from .overridable import fact, overridable

_NO_LAYOUT = """smm sspaddmm"""
_NO_QUANTA = """int_repr q_scale q_zero_point q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points qscheme"""
_ASKED_OF = {"coalesce": "coordinate", "is_coalesced": "coordinate"}  # -> the layout that answers
_REMOVED = {  # what PyTorch has removed -> what to call instead
    "eig": "linalg.eig", "lstsq": "linalg.lstsq", "matrix_rank": "linalg.matrix_rank",
    "solve": "linalg.solve", "symeig": "linalg.eigh",
}
_DEVICES = ("ipu", "mtia", "xpu")


def _facts(t) -> str:
    return f"tensor: {t.dtype.name}{list(t._payload.shape)}"


def _refusing(said: str, cure: str):
    """Makes methods that say what tensors are here, and what to do instead."""
    def named(name: str):
        def method(self, *args, **kwargs):
            raise errors.NotInThisBuild(errors.text(
                f"{name}(): tensors are {said} here ({errors.user_line(2)})", _facts(self), cure))

        return method

    return named


_no_layout = _refusing(
    "dense and strided", "leave the tensor as it is; SciPy's sparse matrices take tensor.numpy()")


def _no_quanta(name: str):
    def method(self, *args, **kwargs):
        raise errors.LayoutError(errors.text(
            f"{name}(): the tensor is not quantised ({errors.user_line(2)})", _facts(self),
            "ask x.is_quantized first; torch.quantize_per_tensor(x, scale, zero_point, dtype) "
            "makes one that is"))

    return method




def _asked(name: str, layout: str):
    def method(self):
        kind = f"sparse {layout}".strip()
        raise errors.RefusedValue(errors.text(
            f"{name} expected {kind} tensor layout but got Strided ({errors.user_line(2)})",
            _facts(self), "a dense tensor is its own values"))

    return method


def removed(name: str):
    """A function that PyTorch has removed."""

    def function(*args, **kwargs):
        raise errors.RefusedValue(errors.text(
            f"{name}(): This function was deprecated since version 1.9 and is now removed "
            f"({errors.user_line(2)})", cure=f"call torch.{_REMOVED[name]}"))

    function.__name__ = name
    return function


def _no_device(kind: str):
    def method(self, *args, **kwargs):
        raise errors.DeviceError(errors.text(
            f"{kind}(): there is no such device here ({errors.user_line(2)})", _facts(self),
            f"ask torch.{kind}.is_available() first" if kind != "ipu" else "stay on the CPU"))

    return method


def _no_stream(self, s):
    raise errors.DeviceError(errors.text(
        f"record_stream(): tensors of the device {self.device} have no streams here "
        f"({errors.user_line(2)})", _facts(self), "leave the call out"))


def _to_dense(self, dtype=None, *, masked_grad=None):
    return self if dtype is None else self.to(dtype)


def _module_load(self, other, assign: bool = False):
    """What load_state_dict() puts in the place of a parameter when it exchanges them."""
    return other.detach() if assign else self.copy_(other).detach()


def _reinforce(self, reward):
    raise errors.RefusedValue(errors.text(
        f"reinforce() was removed ({errors.user_line(2)})",
        cure="use torch.distributions: loss = -distribution.log_prob(action) * reward"))


def methods() -> dict:
    """All of them, by name."""
    found = {
        "to_dense": _to_dense,
        "dequantize": lambda self: self.float().clone() if self.dtype is dt.float32 else (
            self.float()),
        "module_load": _module_load,
        "reinforce": _reinforce,
        "record_stream": _no_stream,
        "volatile": property(fact(lambda self: False)),
    }
    for maker, names in ((_no_layout, _NO_LAYOUT.split()), (_no_quanta, _NO_QUANTA.split()),
                         (removed, _REMOVED), (_no_device, _DEVICES)):
        found |= {name: maker(name) for name in names}
    found |= {name: _asked(name, layout) for name, layout in _ASKED_OF.items()}
    for name, method in found.items():
        if callable(method):
            method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    return {name: overridable(v) if callable(v) else v for name, v in found.items()}


eig, lstsq, matrix_rank, solve, symeig = map(removed, _REMOVED)
