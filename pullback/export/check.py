"""Is a program what it says?  Shapes are computed again, without data, and compared."""

from __future__ import annotations

from .. import errors
from ..core.handle import Tensor, make
from ..core.op import OpOverload
from ..core.state import state
from ..fx.node import map_arg
from ..interp.box import map_tensors
from .parse import alike
from .program import ExportedProgram
from .text import type_text

_LONG = 1 << 16  # sizes up to which operators that give lists are run on shapes


def check_program(program: ExportedProgram) -> None:
    """Refuse a program whose values are not of the types that it states."""
    before, record = state.fake, state.record[-1]
    state.fake, state.record[-1] = True, False
    try:
        for node in program.graph.nodes:
            if isinstance(node.target, OpOverload):
                _check(node)
    finally:
        state.fake, state.record[-1] = before, record


def _check(node) -> None:
    ov, stated = node.target, node.meta.get("val")
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    sizes = [max(n.meta["val"].shape, default=0) for n in node.all_input_nodes]
    if not isinstance(stated, Tensor) and max(sizes, default=0) > _LONG:
        return  # a list per element would be long; what is taken from it is checked
    try:
        found = ov(*args, **kwargs)
    except Exception as error:
        raise _wrong(node, f"{ov} refuses its arguments: {error}") from error
    if isinstance(found, tuple):
        found = list(found)
    found = map_tensors(lambda t: make(t._data), found)
    if not alike(found, stated):
        raise _wrong(node, f"it is said to be {type_text(stated)}, and is {type_text(found)}")


def _wrong(node, what: str) -> Exception:
    return errors.FileFormatError(errors.text(
        f"%{node.name} of the program is not what it should be: {what} ({errors.user_line(3)})",
        cure="get the program again from where it came, or export it again"))
