"""Notes for people in printed code: tensor types, the user's source lines, colours.

`Annotations` answers the printer's questions line by line; with nothing switched on it answers
with plain code, so there is one printer and no second copy of it. Read `printer.py` next.
"""

import linecache
import re
from collections.abc import Callable
from typing import Any

from .node import Node
from .traits import is_tensor

_ABBREVIATIONS = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex32": "c32", "complex64": "c64", "complex128": "c128", "bool": "b8",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
    "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz",
}  # fmt: skip
_SYMBOLIC = ("SymInt", "SymFloat", "SymBool")
_RED, _GREEN, _BLUE, _DIM, _RESET = "\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[2m", "\x1b[0m"
_frame = re.compile(r'File "(.+)", line (\d+), in (.+)').match


def innermost_line(stack_trace: str) -> str | None:
    """The last frame of a traceback with its code: `train.py:41 in step, code: y = x * w`.

    A frame without its code, as the tracer records it to save time, is looked up in the file.
    """
    found = None
    lines = [line.strip() for line in stack_trace.strip().split("\n")]
    for place, code in zip(lines, [*lines[1:], ""]):
        frame = _frame(place)
        if frame:
            code = code or linecache.getline(frame[1], int(frame[2])).strip()
            if code:
                found = f"File: {frame[1]}:{frame[2]} in {frame[3]}, code: {code}"
    return found


class Annotations:
    """What stands beside the code proper; each method gives one kind of note."""

    def __init__(self, verbose: bool = False, include_stride: bool = False,
                 include_device: bool = False, colored: bool = False,
                 expanded_def: bool = False) -> None:
        self.verbose = verbose  # types and source lines
        self.include_stride = include_stride
        self.include_device = include_device
        self.colored = colored
        self.expanded_def = expanded_def  # one parameter and one result a line, with descriptions
        self._source_line: str | None = None

    def _color(self, code: str, text: str) -> str:
        return f"{code}{text}{_RESET}" if self.colored else text

    def dim(self, text: str) -> str:
        return self._color(_DIM, text)

    def constant(self, text: str) -> str:
        return self._color(_BLUE, text)

    def type_of(self, node: Node) -> str:
        """`: "f32[3, 4]"` from the node's example value; nothing if there is none to show."""
        if not self.verbose:
            return ""
        for key in ("val", "tensor_meta", "example_value"):
            value = node.meta.get(key)
            if value is not None:
                break
        if is_tensor(value):
            return f': "{self._tensor_type(value)}"'
        if type(value).__name__ in _SYMBOLIC:
            return f': "Sym({value})"'
        return ""

    def _tensor_type(self, value: Any) -> str:
        dtype = str(value.dtype).removeprefix("torch.")
        text = self._color(_RED, _ABBREVIATIONS.get(dtype, dtype))
        text += self._color(_BLUE, _extents(value.shape))
        if self.include_stride:
            text += self._color(_DIM + _BLUE, _extents(value.stride()))
        if self.include_device:
            text += self._color(_DIM + _GREEN, str(value.device))
        return text

    def source_line(self, node: Node) -> list[str]:
        """A comment naming the user's line, when it differs from that of the node before."""
        if not self.verbose:
            return []
        known = node.stack_trace if node.graph.shows_lines else None
        line = innermost_line(known) if known else None
        line = line or "No stacktrace found for following nodes"
        if line == self._source_line:
            return []
        self._source_line = line
        return ["", self.dim(f"# {line}")]

    def parameter(self, node: Node, text: str) -> str:
        return f"{text},{_description(node.meta.get('desc'))}" if self.expanded_def else text

    def trees(self, names: list[str]) -> list[str]:
        """Parameters that are trees."""
        return [f"{name}," for name in names] if self.expanded_def else names

    def leaves(self, nodes: list[Node]) -> list[str]:
        """The types of the leaves of trees, in front of the line that takes the trees apart."""
        if not self.verbose:
            return []
        typed = [f"{node.name}{self.type_of(node)}" for node in nodes]
        if self.expanded_def:
            return [text + _description(node.meta.get("desc")) for text, node in zip(typed, nodes)]
        return ["".join([f"{text}; " for text in typed]), ""]

    def signature(self, root: str, parameters: list[str], returns: str) -> str:
        if self.expanded_def:
            lines = "".join([f"    {line}\n" for line in [f"{root},", *parameters]])
            return f"def forward(\n{lines}){returns}:"
        names = parameters if parameters[:1] == [root] else [root, *parameters]
        return f"def forward({', '.join(names)}){returns}:"

    def output(self, node: Node, text: str, write: Callable[[Any], str]) -> list[str]:
        """The return statement; one line per result where the results are described."""
        described = node.meta.get("desc")
        if not self.expanded_def or not isinstance(described, (list, tuple)):
            return [text]
        results = zip(node.args[0], described)
        lines = [f"    {write(value)},  # {desc}" for value, desc in results]
        return ["return (", *lines, ")"]


def _extents(numbers: Any) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _description(desc: Any) -> str:
    return "" if desc is None else f"  # {desc}"


def format_class(name: str, forward: str, nested: list[str]) -> str:
    """Source of a class with `forward` and, for each submodule, a nested class."""
    blocks = [text.strip("\n").rstrip() for text in (forward, *nested)]
    indented = [re.sub(r"^(?=.)", "    ", block, flags=re.MULTILINE) for block in blocks]
    return f"class {name}(torch.nn.Module):\n" + "\n\n".join(indented) + "\n"
