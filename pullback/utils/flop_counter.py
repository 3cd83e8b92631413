"""`FlopCounterMode`: counts the multiplications and additions of a program, by module and operator.

    with FlopCounterMode(display=False) as counter:
        loss = model(x).sum()
        loss.backward()
    counter.get_total_flops()

Matrix products, convolutions and attention are counted, in backward passes too; everything else is
taken for nothing.  How is said by functions of this file, which entries of the table name
(`counted`); `register_flop_formula` adds to them.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ..core.handle import Tensor
from ..core.op import registry
from ..pytree import tree_map_only
from ..table.packets import ops
from ._python_dispatch import TorchDispatchMode
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "bmm_flop", "conv_flop", "conv_flop_count", "flop_registry",
           "mm_flop", "register_flop_formula", "sdpa_flop_count"]

flop_registry: dict[Any, Callable] = {}  # family of overloads -> function of shapes


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable:
    """Decorate a function that says what operators cost.

    It gets the arguments with shapes in the place of tensors, and the shape of the result as
    `out_shape`; with `get_raw` the tensors themselves, and the result as `out_val`.
    """

    def decorate(function: Callable) -> Callable:
        if get_raw:
            counted = function
        else:
            @functools.wraps(function)
            def counted(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
                shapes = tree_map_only(Tensor, _shape, (args, kwargs, out_val))
                return function(*shapes[0], out_shape=shapes[2], **shapes[1])

        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not hasattr(target, "entries"):
                raise ValueError(f"register_flop_formula(targets): expected a family of overloads "
                                 f"such as ops.aten.mm, got {target!r}")
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return function

    return decorate


def _shape(t: Tensor) -> tuple:
    return tuple(t.shape)


def mm_flop(a_shape: tuple, b_shape: tuple, *args: Any, out_shape: Any = None,
            **kwargs: Any) -> int:
    """A product of matrices: a multiplication and an addition per pair of numbers that meet."""
    m, k = a_shape
    return 2 * m * k * b_shape[1]


def addmm_flop(self_shape: tuple, a_shape: tuple, b_shape: tuple, out_shape: Any = None,
               **kwargs: Any) -> int:
    """The same; what is added to it is not counted."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: tuple, b_shape: tuple, out_shape: Any = None, **kwargs: Any) -> int:
    """Several products."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


def baddbmm_flop(self_shape: tuple, a_shape: tuple, b_shape: tuple, out_shape: Any = None,
                 **kwargs: Any) -> int:
    """The same; what is added to them is not counted."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: tuple, w_shape: tuple, out_shape: tuple,
                    transposed: bool = False) -> int:
    """A convolution: weights meet places of the result, or of the input if transposed."""
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * math.prod(places) * math.prod(w_shape)


def conv_flop(x_shape: tuple, w_shape: tuple, _bias: Any, _stride: Any, _padding: Any,
              _dilation: Any, transposed: bool, *args: Any, out_shape: Any = None,
              **kwargs: Any) -> int:
    """A convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def _turned(shape: tuple) -> tuple:
    return (shape[1], shape[0], *shape[2:])


def conv_backward_flop(grad_out_shape: tuple, x_shape: tuple, w_shape: tuple, _bias: Any,
                       _stride: Any, _padding: Any, _dilation: Any, transposed: bool,
                       _output_padding: Any, _groups: int, output_mask: Any,
                       out_shape: Any = None) -> int:
    """Two convolutions: the other way round for the input, and of input and gradient."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed)
    if output_mask[1]:
        one, two = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += conv_flop_count(_turned(one), _turned(two), _turned(out_shape[1]))
    return count


def sdpa_flop_count(query_shape: tuple, key_shape: tuple, value_shape: tuple) -> int:
    """Attention: scores, then their product with the values."""
    *batch, rows, depth = query_shape
    columns = key_shape[-2]
    return 2 * math.prod(batch) * rows * columns * (depth + value_shape[-1])


def sdpa_flop(query_shape: tuple, key_shape: tuple, value_shape: tuple, *args: Any,
              out_shape: Any = None, **kwargs: Any) -> int:
    """Attention in one operator."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop(grad_out_shape: tuple, query_shape: tuple, key_shape: tuple,
                       value_shape: tuple, *args: Any, out_shape: Any = None,
                       **kwargs: Any) -> int:
    """Scores once more, then their gradient and those of query, key and value: five products."""
    *batch, rows, depth = query_shape
    return 2 * math.prod(batch) * rows * key_shape[-2] * (3 * depth + 2 * value_shape[-1])


for _entry in registry.values():
    if _entry.counted is not None and getattr(ops, _entry.base_name) not in flop_registry:
        register_flop_formula(getattr(ops, _entry.base_name))(globals()[_entry.counted])


class _Counting(TorchDispatchMode):
    def __init__(self, counter: FlopCounterMode) -> None:
        self.counter = counter

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        family = getattr(func, "overloadpacket", None)
        self.counter._count(family, out, args, kwargs)
        return out


class FlopCounterMode:
    """A block whose matrix products, convolutions and attention are counted."""

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True,
                 custom_mapping: dict | None = None) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        custom = {k: v if getattr(v, "_get_raw", False) else _of_shapes(v)
                  for k, v in (custom_mapping or {}).items()}
        self.flop_registry = {**flop_registry, **custom}
        self.mod_tracker = ModuleTracker()
        self._mode = _Counting(self)

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._mode.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._mode.__exit__(*exc)
        self.mod_tracker.__exit__(*exc)
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, family: Any, out: Any, args: tuple, kwargs: dict) -> None:
        formula = self.flop_registry.get(family)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for parent in set(self.mod_tracker.parents):
                self.flop_counts[parent][family] += count

    def get_total_flops(self) -> int:
        """All of them."""
        return sum(self.flop_counts["Global"].values()) if "Global" in self.flop_counts else 0

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Module -> family of overloads -> number; all modules together are "Global"."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The numbers as a table, modules down to a depth."""
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        names = sorted(n for n in self.flop_counts if n != "Global" and n.count(".") < depth)
        inside = {n for n in names if sum(self.flop_counts[n].values()) < total}
        for name in ["Global", *names] if inside or not names else names:
            counts = self.flop_counts[name]
            indent = " " * (name.count(".") + (name != "Global"))
            rows.append((indent + name, *_shown(sum(counts.values()), total)))
            rows += [(f"{indent} - {family}", *_shown(n, total)) for family, n in counts.items()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip()
                 for a, b, c in rows]
        lines.insert(1, "  ".join("-" * w for w in widths))
        return "\n".join(lines)


def _of_shapes(function: Callable) -> Callable:
    """A user's formula, which gets shapes."""

    def counted(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        shapes = tree_map_only(Tensor, _shape, (args, kwargs, out_val))
        return function(*shapes[0], out_shape=shapes[2], **shapes[1])

    return counted


_UNITS = ("", "K", "M", "B", "T")


def _shown(number: int, total: int) -> tuple[str, str]:
    unit = min(len(_UNITS) - 1, max(0, (len(str(number)) - 1) // 3))
    text = f"{number / 1000**unit:.3f}{_UNITS[unit]}" if unit else str(number)
    return text, f"{100 * number / total:.2f}%" if total else "0%"
