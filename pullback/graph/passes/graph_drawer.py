"""`FxGraphDrawer`: a graph as text in the language of Graphviz; nothing else is needed for that."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ..graph_module import GraphModule
from ..node import Node
from ..printer import qualified_name

_COLORS = {"placeholder": "AliceBlue", "get_attr": "LightGrey", "output": "PowderBlue",
           "call_module": "LemonChiffon1"}
_HASHED = ("CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1",
           "LavenderBlush1", "LightSkyBlue", "MistyRose1", "MediumPurple1", "Peru")


class Dot:
    """The text of a picture."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def to_string(self) -> str:
        """The text."""
        return "\n".join(self.lines) + "\n"

    __str__ = to_string

    def write(self, path: Any) -> bool:
        """Write the text to a file, for `dot -Tsvg`."""
        Path(path).write_text(self.to_string())
        return True

    write_raw = write_dot = write


class FxGraphDrawer:
    """Draws a graph module, and each graph module that it calls."""

    def __init__(
        self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False, dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name, self._shape = name, dot_graph_shape or "record"
        self._hidden = ("get_attr",) if ignore_getattr else ()
        self._stack_trace, self._names_in_args = parse_stack_trace, not skip_node_names_in_args
        self._dots = {name: self._drawn(graph_module, name)}
        for child, module in graph_module.named_children():
            if isinstance(module, GraphModule):
                self._dots[f"{name}_{child}"] = self._drawn(module, f"{name}_{child}")

    def get_dot_graph(self, submod_name: str | None = None) -> Dot:
        """The picture of the module, or of a submodule."""
        return self._dots[self._name if submod_name is None else submod_name]

    def get_main_dot_graph(self) -> Dot:
        """The picture of the module."""
        return self._dots[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Dot:
        """The picture of a submodule."""
        return self._dots[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Dot]:
        """All pictures by name."""
        return self._dots

    def _drawn(self, module: GraphModule, name: str) -> Dot:
        lines = [f"digraph {_quoted(name)} {{", "rankdir=TB;"]
        shown = [n for n in module.graph.nodes if n.op not in self._hidden]
        for node in shown:
            lines.append(
                f"{node.name} [label={_quoted(self._label(module, node))}, shape={self._shape}, "
                f"style=\"filled,rounded\", fillcolor={_color(node)}, fontcolor=\"#000000\"];")
        lines += [f"{source.name} -> {node.name};" for node in shown for source in node._inputs
                  if source.op not in self._hidden]
        return Dot([*lines, "}"])

    def _label(self, module: GraphModule, node: Node) -> str:
        target = node.target if isinstance(node.target, str) else qualified_name(node.target)
        rows = [f"name=%{node.name}", f"op_code={node.op}"]
        if node.op == "call_module":
            rows.append(repr(module.get_submodule(node.target)).partition("\n")[0])
        rows.append(f"target={target}")
        if self._names_in_args and node.args:
            rows.append(f"args={node.args}")
        value = node.meta.get("tensor_meta")
        if hasattr(value, "shape"):
            rows.append(f"dtype={value.dtype}")
            rows.append(f"shape={tuple(value.shape)}")
        if self._stack_trace and node.stack_trace:
            rows.append(node.stack_trace.strip().splitlines()[-1].strip())
        return "{" + "|".join(_escaped(row) for row in rows) + r"\n}"


def _escaped(text: str) -> str:
    return "".join("\\" + c if c in '{}|<>"' else c for c in text)


def _quoted(text: str) -> str:
    return f'"{text}"'


def _color(node: Node) -> str:
    if node.op in _COLORS:
        return _COLORS[node.op]
    digest = hashlib.md5(str(node.target).encode(), usedforsecurity=False).digest()
    return _HASHED[digest[0] % len(_HASHED)]


__all__ = ["FxGraphDrawer"]
