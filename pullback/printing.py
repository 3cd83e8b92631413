"""How tensors are printed: the text PyTorch prints for the same values.

`tensor_repr` takes a NumPy array and the facts about its handle and gives the text. All columns of
a tensor share one format: whole numbers end in a bare point, others show `precision` digits, and
values of very different size switch all to scientific notation. Tensors with more than `threshold`
elements show only their edges.

The file imports nothing from the package and knows no Tensor; `tensor/values.py` calls it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["PrintOptions", "get_printoptions", "opaque_repr", "printoptions",
           "set_printoptions", "tensor_repr"]


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """What `set_printoptions` sets."""

    precision: int = 4  # digits after the point
    threshold: float = 1000  # more elements than this are summarised
    edgeitems: int = 3  # how many are shown at each end of a summarised dimension
    linewidth: int = 80  # columns
    sci_mode: bool | None = None  # scientific notation: None decides by the values


_profiles = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed; what is not given stays, except `sci_mode`, which is set anew.

    `profile` is one of `default`, `short`, `full` and is applied first.
    """
    global _options
    start = _options
    if profile is not None:
        if profile not in _profiles:
            raise ValueError(f"profile is {profile!r}, expected one of {', '.join(_profiles)}")
        start = replace(_profiles[profile], linewidth=80)
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    _options = replace(start, **changes, sci_mode=sci_mode)


@contextlib.contextmanager
def printoptions(**changes):
    """Print otherwise within a `with` block."""
    global _options
    before = _options
    set_printoptions(**changes)
    try:
        yield
    finally:
        _options = before


def get_printoptions() -> PrintOptions:
    """The options in force."""
    return _options


class _Live:
    """The options in force, as PyTorch's `PRINT_OPTS`: read and set by attribute."""

    __slots__ = ()

    def __getattr__(self, name: str):
        return getattr(_options, name)

    def __setattr__(self, name: str, value) -> None:
        global _options
        _options = replace(_options, **{name: value})


PRINT_OPTS = _Live()


def _tensor_str(tensor, indent: int) -> str:
    """The values alone, as PyTorch's function of this name gives them."""
    array = tensor.numpy(force=True)
    return _values(array, tensor.dtype.name, indent, _options) if array.size else "[]"


def tensor_repr(array: np.ndarray, dtype_name: str, *, requires_grad: bool = False,
                grad_fn_name: str | None = None, device: str = "cpu",
                default_dtype: str = "float32", prefix: str = "tensor(", indent: int = 0,
                extra: tuple[str, ...] = (), options: PrintOptions | None = None) -> str:
    """The text of a tensor.

    `dtype_name` is the name without `torch.`; float16 and bfloat16 arrays may come in any type that
    NumPy turns into float32. `grad_fn_name` is the node's name (`MulBackward0`) and hides
    `requires_grad`. `indent` is how far the first line will be moved right by the caller; `extra`
    are further suffixes, printed last.
    """
    opts = options or _options
    column = indent + len(prefix)
    suffixes = []
    if device != "cpu":
        suffixes.append(f"device='{device}'")
    if array.size == 0:
        text = "[]"
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        if dtype_name != default_dtype:
            suffixes.append(f"dtype=torch.{dtype_name}")
    else:
        text = _values(array, dtype_name, column, opts)
        if dtype_name not in _unnamed_dtypes(default_dtype):
            suffixes.append(f"dtype=torch.{dtype_name}")
    suffixes += _history(requires_grad, grad_fn_name)
    return _with_suffixes(prefix + text, [*suffixes, *extra], column, opts.linewidth)


def opaque_repr(
    shape: tuple[int, ...], dtype_name: str, *, device: str = "meta", **facts: Any
) -> str:
    """The text of a tensor without values: `tensor(..., device='meta', size=(2, 3))`."""
    size = f"size=({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    return with_facts("...", dtype_name, size, device=device, **facts)


def with_facts(contents: str, dtype_name: str, *more: str, requires_grad: bool = False,
               grad_fn_name: str | None = None, device: str = "cpu", default_dtype: str = "float32",
               prefix: str = "tensor(") -> str:
    """The text of a tensor whose values are given as text."""
    suffixes = [] if device == "cpu" else [f"device='{device}'"]
    suffixes += more
    if dtype_name not in _unnamed_dtypes(default_dtype):
        suffixes.append(f"dtype=torch.{dtype_name}")
    suffixes += _history(requires_grad, grad_fn_name)
    return _with_suffixes(prefix + contents, suffixes, len(prefix), _options.linewidth)


def composed_repr(parts: list[tuple[str, str]], facts: list[str], dtype_name: str, *more: str,
                  requires_grad: bool = False, grad_fn_name: str | None = None,
                  default_dtype: str = "float32", breaks: bool = False,
                  contents: str | None = None) -> str:
    """The text of a tensor that is made of others: names and texts of these, and facts.

    With `breaks`, the facts begin on a line of their own.
    """
    indent = len("tensor(")
    text = contents or (",\n" + " " * indent).join([f"{n}=tensor({v})" for n, v in parts])
    suffixes = list(facts)
    if dtype_name not in _unnamed_dtypes(default_dtype):
        suffixes.append(f"dtype=torch.{dtype_name}")
    suffixes += [*more, *_history(requires_grad, grad_fn_name)]
    return _with_suffixes(f"tensor({text}", suffixes, indent, _options.linewidth, breaks)


def _history(requires_grad: bool, grad_fn_name: str | None) -> list[str]:
    """The node that made a tensor, or that it wants a gradient."""
    if grad_fn_name is not None:
        return [f"grad_fn=<{grad_fn_name}>"]
    return ["requires_grad=True"] if requires_grad else []


def _unnamed_dtypes(default_dtype: str) -> tuple[str, ...]:
    """Types that one can read off the values, so that the text does not name them."""
    paired = {"float64": "complex128", "float16": "complex32"}.get(default_dtype, "complex64")
    return (default_dtype, paired, "int64", "bool")


def _with_suffixes(text: str, suffixes: list[str], indent: int, linewidth: int,
                   breaks: bool = False) -> str:
    """Append the suffixes, each on the last line if it fits and on a new one if not."""
    # One column more than is there, as PyTorch counts; it decides where lines break.
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if breaks or used + len(suffix) + 2 > linewidth:
            text += ",\n" + " " * indent + suffix
            used, breaks = indent + len(suffix), False
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


# ------------------------------------------------------------------------------
# Values


def _values(array: np.ndarray, dtype_name: str, indent: int, opts: PrintOptions) -> str:
    if dtype_name in ("float16", "bfloat16") or dtype_name.startswith("float8"):
        array = np.asarray(array, dtype=np.float32)
    elif dtype_name == "complex32":
        array = np.asarray(array, dtype=np.complex64)
    summarize = array.size > opts.threshold
    shown = _edges(array, opts.edgeitems) if summarize else array
    if np.iscomplexobj(array):
        # Both parts have a column format of their own.
        real, imag = _Column(shown.real, opts), _Column(shown.imag, opts)
        width = real.width + imag.width + 1

        def cell(z: Any) -> str:
            second = imag(z.imag) + "j"
            second = second.lstrip()
            return real(z.real) + (second if second[0] in "+-" else "+" + second)

    else:
        cell = _Column(shown, opts)
        width = cell.width
    return _nest(array, indent, summarize, cell, width, opts)


def _edges(array: np.ndarray, count: int) -> np.ndarray:
    """The elements that a summary shows."""
    kept = [
        range(size) if size <= 2 * count else [*range(count), *range(size - count, size)]
        for size in array.shape
    ]
    return array[np.ix_(*kept)]


class _Column:
    """Format shared by all elements: calling it writes one, padded to `width`."""

    __slots__ = ("_write", "width")

    def __init__(self, values: np.ndarray, opts: PrintOptions) -> None:
        if values.dtype.kind != "f":
            self._write: Callable[[Any], str] = str
            self.width = max((len(str(value)) for value in values.ravel().tolist()), default=1)
            return
        flat = values.astype(np.float64).ravel()
        counted = flat[np.isfinite(flat) & (flat != 0)]
        whole = bool(np.all(counted == np.ceil(counted)))
        scientific = False
        if counted.size:
            sizes = np.abs(counted)
            low, high = sizes.min(), sizes.max()
            with np.errstate(over="ignore"):
                scientific = bool(high / low > 1000.0 or high > 1.0e8)
            scientific |= not whole and bool(low < 1.0e-4)
            if opts.sci_mode is not None:
                scientific = opts.sci_mode
        digits = opts.precision
        if scientific:
            self._write = f"{{:.{digits}e}}".format
        elif whole:
            self._write = _whole
        else:
            self._write = f"{{:.{digits}f}}".format
        # Zeros, nans and infinities do not count: they may stick out to the left.
        self.width = max(map(len, map(self._write, counted.tolist())), default=1)

    def __call__(self, value: Any) -> str:
        return self._write(value).rjust(self.width)


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


def _nest(
    array: np.ndarray,
    indent: int,
    summarize: bool,
    cell: Callable[[Any], str],
    width: int,
    opts: PrintOptions,
) -> str:
    """The bracketed text of an array whose first bracket stands in column `indent`."""
    if array.ndim == 0:
        return cell(array.item())
    edge, size = opts.edgeitems, len(array)
    cut = summarize and size > 2 * edge
    if array.ndim == 1:
        if cut:
            items = [*map(cell, array[:edge].tolist()), " ..."]
            items += map(cell, array[size - edge :].tolist())
        else:
            items = list(map(cell, array.tolist()))
        per_line = max(1, (opts.linewidth - indent) // (width + 2))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = [*array[:edge], None, *array[size - edge :]] if cut else list(array)
    parts = [
        "..." if row is None else _nest(row, indent + 1, summarize, cell, width, opts)
        for row in rows
    ]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"
