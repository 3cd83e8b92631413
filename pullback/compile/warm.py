"""What the disk remembers of a captured function, so that a new process need not cut and lower it.

A capture always runs, for Python may have changed.  Its joint graph as text, with what else the
compiled parts depend on (settings, the source of this package, the compiler), is a key: under it
lie the facts that a program takes from the simplified graph, and for each part that was ever
compiled the key of its plan (`backend.py`).  Then nothing is simplified, cut or lowered; the graphs
themselves are made when somebody asks for them.

Entries are JSON with a seal.  One that is missing, broken or does not fit is made again.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import cache, toolchain
from .errors import CompilerNotFound

if TYPE_CHECKING:
    from ..capture.joint import Joint
    from ..capture.run import Program

_FACTS = ("copied", "kept", "random")  # of every program
_SAVED = ("checked", "checked_outputs", "saved_copies")  # of what its forward saves
# Notes on nodes that the partitioner reads.
_NOTED = ("partitioner_tag", "cut", "recompute", "ac_graph_id", "custom")


class Remembered:
    """The entries of one joint graph."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.facts = self._read("facts", dict.fromkeys(_FACTS, (list, bool)))

    def fill(self, program: Program) -> None:
        """Tell a program what its simplified graph would."""
        for name, value in (self.facts or {}).items():
            setattr(program, name, value)

    def keep(self, program: Program) -> None:
        """Remember what a program found out."""
        self._write("facts", {name: getattr(program, name) for name in _FACTS})

    def part(self, name: str, module: Any, program: Program) -> Any:
        """A compiled part, None if it is not there or cannot be loaded without its graph."""
        from .backend import load_known

        kept = self._read(name, {"plan": str, "title": str, "saved": (list, type(None))})
        found = None if kept is None else load_known(kept["plan"], kept["title"], module)
        if found is not None and kept["saved"] is not None:
            for field, value in zip(_SAVED, kept["saved"]):
                setattr(program, field, value)
        return found

    def keep_part(self, name: str, made: Any, program: Program) -> None:
        """Remember a part that has been compiled."""
        key = getattr(made, "key", None)
        if key is None:
            return  # it runs on NumPy
        saved = None
        if name == "forward" and program.joint.differentiable:
            program.look_at_saved()
            saved = [getattr(program, field) for field in _SAVED]
        self._write(name, {"plan": key, "title": made.name, "saved": saved})

    def _read(self, name: str, expected: dict) -> dict | None:
        data = cache.read_sealed(f"{self.key}.{name}")
        try:
            found = None if data is None else json.loads(data)
        except ValueError:
            return None
        if not isinstance(found, dict) or found.keys() != expected.keys() or not all(
                isinstance(found[key], kind) for key, kind in expected.items()):
            return None
        cache.touch(f"{self.key}.{name}")
        return found

    def _write(self, name: str, entry: dict) -> None:
        try:
            cache.write_sealed(f"{self.key}.{name}", json.dumps(entry).encode())
        except OSError:
            pass  # the next process cuts again, that is all


def recall(joint: Joint, fuse: bool, flags: str) -> Remembered | None:
    """What is known of a joint graph; None where nothing can be."""
    from ..cut.settings import config
    from .backend import graph_text, identity

    if not config.enable_autograd_cache:
        return None
    try:
        tools = toolchain.find()
    except (CompilerNotFound, OSError):
        return None

    module = joint.module
    notes = [[node.name, *[str(node.meta.get(n)) for n in _NOTED]] for node in module.graph.nodes
             if not node.meta.keys().isdisjoint(_NOTED)]
    text = graph_text(module)
    facts = (joint.forward_count, joint.tangent_of, joint.grad_of, joint.differentiable,
             [(m.input, m.output, m.tracked, m.count, m.moved) for m in joint.mutated],
             joint.late, fuse, sorted(config.to_dict().items()))
    if " at 0x" in text or " at 0x" in repr(facts):  # an object that only this process has
        return None
    return Remembered(cache.key(text, repr(notes), repr(facts), flags, package_stamp(),
                                *identity(tools)))


@functools.cache
def package_stamp() -> str:
    """The source of this package, by sizes and times: formulas and passes decide on graphs."""
    found, root = [], Path(__file__).parents[1]
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith((".py", ".c", ".h")):
                facts = os.stat(os.path.join(folder, name))
                where = os.path.relpath(folder, root)
                found.append(f"{where}/{name} {facts.st_size} {facts.st_mtime_ns}")
    return cache.key(*sorted(found))
