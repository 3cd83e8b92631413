"""Programs to keep: `export` makes one of a module, `save` writes it, `load` needs no code for it.

`program.py` has `ExportedProgram`, `trace.py` makes one (`draft.py` at any price), `text.py` and
`parse.py` are the two directions of the file format, `archive.py` puts text and weights into a file
or a folder.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from ..facade import Package, elsewhere

if TYPE_CHECKING:  # for editors and type checkers
    from .archive import load as load
    from .archive import save as save
    from .dynamic_shapes import Dim as Dim
    from .program import ExportedProgram as ExportedProgram
    from .trace import export as export
    from .unflatten import unflatten as unflatten

_FROM = {
    "trace": "export",
    "draft": "draft_export",
    "archive": "load save",
    "program": "CallSpec ExportedProgram ModuleCallEntry ModuleCallSignature",
    "graph_signature": """
        ConstantArgument ExportBackwardSignature ExportGraphSignature InputKind InputSpec OutputKind
        OutputSpec SymIntArgument TensorArgument
    """,
    "dynamic_shapes": "Dim dims",
    "shapes_collection": "AdditionalInputs ShapesCollection",
    "unflatten": "InterpreterModule UnflattenedModule unflatten",
}
_PLACE = {name: (f".{module}", name) for module, names in _FROM.items() for name in names.split()}
_PLACE["register_dataclass"] = "..pytree", "register_dataclass"
_PLACE["default_decompositions"] = "..decomp", "core_aten_decompositions"
__all__ = sorted(_PLACE)
sys.modules[__name__].__class__ = Package


def __getattr__(name: str) -> Any:
    if name not in _PLACE:
        return elsewhere(__name__, name)
    module, there = _PLACE[name]
    value = getattr(importlib.import_module(module, __name__), there)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
