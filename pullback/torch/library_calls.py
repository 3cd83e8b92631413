"""How calls of library functions stand in graphs that are traced with proxies.

PyTorch writes such a call in one form, whatever the user wrote: parameters without a default by
position, the others by name, defaults filled in.  Its functions that are C++ stay as they were
called, and are printed by the name that they have there.  Both are facts of its library, kept here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

# functions of `nn.functional` that are C++, by where: they take their arguments as given
_BELOW = {
    "torch": (
        "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d "
        "conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink "
        "native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ "
        "rrelu_ selu_ threshold_"
    ),
    "torch._C._nn": (
        "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear log_sigmoid one_hot "
        "scaled_dot_product_attention softplus softshrink"
    ),
}
# functions of the root that are Python, with their parameters where the table's are others
_PYTHON = {
    "atleast_1d": "", "atleast_2d": "", "atleast_3d": "", "block_diag": "", "cartesian_prod": "",
    "broadcast_tensors": "", "chain_matmul": "", "einsum": "", "unravel_index": "indices, *, shape",
    "cdist": "x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary'",
    "lu": "A, pivot=True, get_infos=False, out=None", "meshgrid": "*tensors, indexing=None",
    "norm": "input, p='fro', dim=None, keepdim=False, out=None, dtype=None",
    "split": "tensor, split_size_or_sections, dim=0",
    "stft": "input, n_fft, hop_length=None, win_length=None, window=None, center=True, "
            "pad_mode='reflect', normalized=False, onesided=None, return_complex=None, "
            "align_to_window=None",
    "tensordot": "a, b, dims=2, out=None",
    "unique": "input, sorted=True, return_inverse=False, return_counts=False, dim=None",
    "unique_consecutive": "input, return_inverse=False, return_counts=False, dim=None",
}  # fmt: skip
_OWN = __package__.partition(".")[0]
_FILES = ("linalg", "fft", "special")  # whose C++ has files of its own
_METHODS = ("sigmoid", "tanh")  # of `nn.functional`: calls of methods

NAMES = {
    **{f"torch.nn.functional.{name}": f"{place}.{name}"
       for place, names in _BELOW.items() for name in names.split()},
    "torch.nn.functional.logsigmoid": "torch._C._nn.log_sigmoid",
    "torch.nn.functional.threshold": "torch.nn.functional._threshold",
    **{f"torch.{name}": f"torch.functional.{name}" for name in _PYTHON},
}


def printed_name(name: str) -> str:
    """The name that PyTorch prints for a function that users know by `name`."""
    file = name.removeprefix("torch.").partition("_")[0]
    if file in _FILES and name.startswith(f"torch.{file}_"):
        return f"torch._C._{file}.{name.removeprefix('torch.')}"
    return NAMES.get(name, name)


@functools.cache
def _form(function: Any) -> Any:
    """The signature of the form in which calls are written, or the name of a method; or neither."""
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    if module.startswith(f"{_OWN}.nn.functional"):
        if name in _METHODS:
            return name
        native = NAMES.get(f"torch.nn.functional.{name}", "").rpartition(".")[2]
        return None if native == name or native == "log_sigmoid" else inspect.signature(function)
    if module.partition(".")[0] == _OWN and _PYTHON.get(name):
        return inspect.signature(eval(f"lambda {_PYTHON[name]}: 0"))
    return None


def recorded_signature(function: Any) -> inspect.Signature | None:
    """The parameters of a function of the library that is Python in PyTorch."""
    form = _form(function)
    return form if isinstance(form, inspect.Signature) else None


def recorded_form(function: Callable, args: tuple, kwargs: dict) -> tuple[str, Any, tuple, dict]:
    """(kind of node, target, args, kwargs) of a call of a function."""
    form = _form(function)
    if isinstance(form, str):
        return "call_method", form, args, kwargs
    if form is None:
        return "call_function", function, args, kwargs
    try:
        bound = form.bind(*args, **kwargs)
    except TypeError:  # a way to call it that this form does not know
        return "call_function", function, args, kwargs
    given: list = []
    named: dict[str, Any] = {}
    for name, parameter in form.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            given += bound.arguments.get(name, ())
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            given.append(bound.arguments[name])
        else:
            named[name] = bound.arguments.get(name, parameter.default)
    return "call_function", function, tuple(given), named
