"""`CodeGen`: how the source of a graph begins and ends, for those who want it otherwise.

A subclass may change the signature (`gen_fn_def`), the `return` (`generate_output`), and what is
done to arguments and results when a graph is run node by node.  `Graph.set_codegen` takes one.
"""

from __future__ import annotations

from typing import Any


class CodeGen:
    """The usual form: one parameter per placeholder."""

    def __init__(self) -> None:
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line(s) from `def` to the first statement."""
        names = free_vars if free_vars[:1] == ["self"] else ["self", *free_vars]
        return f"def {self._func_name}({', '.join(names)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, **kwargs: Any) -> str:
        """The last line."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a call returns, from the value of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the source needs besides those of its nodes."""
        return []
