"""Ahead of time: function -> joint graph -> forward and backward graphs -> callable with
eager's side effects. The public names; the work is done in `capture/` and `cut/`.
"""

import importlib
from typing import Any

_FROM = {
    "capture.entry": "aot_function compiled_function",
    "capture.modules": "aot_module aot_module_simplified compiled_module",
    "capture.compilers": "SerializableAOTDispatchCompiler SerializableCallable "
    "boxed_nop_preserve_node_meta draw_graph draw_graph_compile "
    "make_boxed_compiler make_boxed_func nop print_compile",
    "cut.settings": "config get_aot_compilation_context get_aot_graph_name "
    "get_graph_being_compiled set_model_name",
}
_PLACE = {name: file for file, names in _FROM.items() for name in names.split()}
__all__ = sorted(_PLACE)


def __getattr__(name: str) -> Any:
    if name in _PLACE:
        return getattr(importlib.import_module(f"..{_PLACE[name]}", __name__), name)
    if name in ("partition", "extraction", "export"):  # paths that lead to where the files are
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"pullback.aot has no attribute '{name}'")
