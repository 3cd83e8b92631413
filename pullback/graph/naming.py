"""How nodes get their names: from the target, made a legal identifier, made unique by a suffix.

The rules are PyTorch's to the letter, because printed graphs are compared literally: `sum` would
hide a builtin and becomes `sum_1`, a second `mul` becomes `mul_1`, a second `primals_1` becomes
`primals_2`. Read `node.py` next.
"""

import builtins
import keyword
import re
from typing import Any

# Functions of the `operator` module that print as the operator itself.
OPERATORS = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "truediv": "{} / {}",
    "floordiv": "{} // {}", "mod": "{} % {}", "pow": "{} ** {}", "matmul": "{} @ {}",
    "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "le": "{} <= {}",
    "gt": "{} > {}", "ge": "{} >= {}", "neg": "-{}", "pos": "+{}", "invert": "~{}",
    "getitem": "{}[{}]",
}  # fmt: skip
IN_PLACE_OPERATORS = {
    "iadd": "{} += {}", "isub": "{} -= {}", "imul": "{} *= {}", "itruediv": "{} /= {}",
    "ifloordiv": "{} //= {}", "imod": "{} %= {}", "ipow": "{} **= {}", "imatmul": "{} @= {}",
    "ilshift": "{} <<= {}", "irshift": "{} >>= {}", "iand": "{} &= {}", "ior": "{} |= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip

# Names the printed code uses itself, whatever the graph contains.
_RESERVED = {"inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"}
_ILLEGAL = _RESERVED | set(keyword.kwlist) | set(dir(builtins))

_not_identifier = re.compile(r"[^0-9a-zA-Z_]+").sub
_hump = re.compile(r"(?<=[a-z])([A-Z])").sub
_numbered = re.compile(r"(.+)_(\d+)$").match


def is_operator_overload(target: Any) -> bool:
    """True for entries of the operator table, which print as `torch.ops.<namespace>.<name>`.

    Those that write (`add_`, `add.out`) are made of an entry, their `functional`.
    """
    return (hasattr(target, "op") or hasattr(target, "functional")) and not isinstance(target, type)


def _raw_name(target: Any) -> str:
    if isinstance(target, str):
        return target[2:-2] if target[:2] == target[-2:] == "__" else target
    if is_operator_overload(target):
        if str(target).startswith("aten.sym_"):
            return str(target)[5:].replace(".", "_")  # sizes are named by their overload
        return str(target).split(".")[1]  # "aten.mul.Tensor" -> "mul", as traced graphs name it
    return getattr(target, "__name__", None) or type(target).__name__


def overload_name(target: Any) -> str:
    """What a call of an overload by the user asks for: `add_tensor`, where captures have `add`."""
    return "_".join(str(target).split(".")[1:]).lower()


def name_of_target(target: Any) -> str:
    """The snake_case name a node of this target asks for, before it is made unique."""
    return _identifier(_hump(r"_\1", _raw_name(target)).lower())


def _identifier(name: str) -> str:
    if name.isidentifier() and name.isascii():
        return name
    name = _not_identifier("_", name) or "_unnamed"
    return f"_{name}" if name[0].isdigit() else name


class Namespace:
    """Hands out unique, legal Python names; one per graph."""

    __slots__ = ("_last_number", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._last_number: dict[str, int] = {}  # base name -> suffix given out last

    def create_name(self, candidate: str) -> str:
        """The candidate itself if it is legal and free, otherwise with the next free suffix."""
        candidate = _identifier(candidate)
        match = _numbered(candidate) if candidate[-1].isdigit() else None
        base = match[1] if match else candidate
        if candidate in self._used or candidate in _ILLEGAL:
            number = self._last_number.get(base, 0) + 1
            while f"{base}_{number}" in self._used:
                number += 1
            candidate = f"{base}_{number}"
            self._last_number[base] = number
        elif match:
            self._last_number[base] = int(match[2])
        self._used.add(candidate)
        return candidate

    def __contains__(self, name: str) -> bool:
        return name in self._used
