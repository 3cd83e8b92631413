"""Small helpers that programs import from here: one number for each dim, names in state dicts."""

from __future__ import annotations

from collections.abc import Callable

from ..shared import sizes

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable:
    """The function that makes n values of one, and a tuple of several."""

    def parse(x) -> tuple:
        return sizes(x, n)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple, n: int) -> tuple:
    """Each element n times, from the last to the first: padding as `functional.pad` takes it."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults: list[int]):
    """Sizes with None replaced by the last of the defaults."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size):]
    return [d if v is None else v for v, d in zip(out_size, last, strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Take a prefix away from the names in a state dict, in place.

    With "module." the state of a `DataParallel` becomes that of the module inside.
    """
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    bare = prefix.rstrip(".")
    for key in [] if metadata is None else list(metadata):
        if key and (key == bare or key.startswith(prefix)):
            metadata[key[len(prefix):]] = metadata.pop(key)
