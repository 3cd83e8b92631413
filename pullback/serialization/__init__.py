"""`save` and `load`: PyTorch's checkpoint files, read without running what they say.

A file is a zip archive with a pickle that names storages, and a record of bytes for each storage.
`writing.py` and `reading.py` do the work on top of `archive.py` (zip), `restricted.py` (pickles
without code), `rebuild.py` (tensors from what a file says) and `names.py` (what things are called).
`pullback/safetensors.py` is another format, without any pickle.
"""

from __future__ import annotations

from ..absent import getter as _getter
from .reading import (
    LoadEndianness,
    add_safe_globals,
    clear_safe_globals,
    get_default_load_endianness,
    get_safe_globals,
    get_unsafe_globals_in_checkpoint,
    load,
    safe_globals,
    set_default_load_endianness,
)
from .writing import DEFAULT_PROTOCOL, save

MAP_LOCATION = object  # an annotation: a device, a name, a dictionary or a function

__all__ = [
    "DEFAULT_PROTOCOL",
    "LoadEndianness",
    "MAP_LOCATION",
    "add_safe_globals",
    "clear_safe_globals",
    "get_default_load_endianness",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
    "set_default_load_endianness",
]


__getattr__ = _getter(__name__)
