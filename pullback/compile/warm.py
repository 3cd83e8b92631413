"""What the disk remembers of a captured function, so that a new process need not cut and lower it.

A capture always runs, for Python may have changed.  Its joint graph as text, with what else the
compiled parts depend on (settings, compilers, see `keys.py`), is a key: under it lie the facts that
a program takes from the simplified graph, and for each part that was ever compiled where its code
is: the key of a plan (`backend.py`), or bytes of the user's compiler.  Then nothing is simplified,
cut or lowered; the graphs themselves are made when somebody asks for them.

Entries are JSON with a seal, bytes of compilers lie beside them with one of their own.  One that is
missing, broken or does not fit is made again.  `graph/counters.py` counts how often programs were
found and how often not, and why some were not looked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import errors
from ..capture.build import writes_of
from ..capture.offload import offloading
from ..capture.saved_tensor_hooks import graph_hooks
from ..cut.settings import code_generator, config
from ..graph.counters import counters
from ..threads.state import state
from . import cache, toolchain
from .errors import CacheBypassed, CompilerNotFound, CutDiffers
from .keys import (
    NoKey,
    function_text,
    graph_text,
    identity,
    lowered_by_others,
    type_text,
    uuid_of,
    versions,
)

if TYPE_CHECKING:
    from ..capture.build import Backend
    from ..capture.joint import Joint
    from ..capture.run import Program
    from ..graph.graph_module import GraphModule

_FACTS = ("copied", "kept", "random", "fuse")  # of every program
_SAVED = ("checked", "checked_outputs", "saved_copies")  # of what its forward saves
# Notes on nodes that the partitioner reads.
_NOTED = ("partitioner_tag", "cut", "recompute", "ac_graph_id", "custom", "should_offload",
          "in_order")


def _count(what: str) -> None:
    counters["aot_autograd"][f"autograd_cache_{what}"] += 1


class Native:
    """How parts of `compile` are kept: under the key of their plan."""

    fields = {"plan": str, "title": str}

    def said(self, name: str, made: Any, at: str) -> dict | None:
        """What an entry says of a compiled part; None if it cannot be kept."""
        key = getattr(made, "key", None)  # none: it runs on NumPy
        return None if key is None else {"plan": key, "title": made.name}

    def load(self, name: str, entry: dict, at: str, module: GraphModule) -> Any:
        """The part of an entry, None where it is gone or needs its graph."""
        from .backend import load_known

        return load_known(entry["plan"], entry["title"], module)


class Artifacts:
    """How parts of `aot_function` are kept: as bytes that the class of a compiler's results makes.
    """

    fields = {"code": str}

    def __init__(self, parts: Backend, compilers: dict[str, Any]) -> None:
        layout = parts.layout
        self.results, self.compilers, self.module = parts.results, compilers, layout.module
        self.adapt = {"forward": layout.forward, "backward": layout.backward}

    def said(self, name: str, made: Any, at: str) -> dict | None:
        """What an entry says of a compiled part, whose bytes are stored; None if it has none."""
        compiler = self.compilers[name]
        part = name if name in self.results else "inference"
        try:
            data = compiler.output_code_ty.serialize_compile_artifacts(self.results[part])
        except Exception as error:  # the user's code; the program itself is compiled
            bypass(f"{_named(compiler)} gave no bytes: {type(error).__name__}: {error}")
            return None
        if not isinstance(data, bytes):
            bypass(f"{_named(compiler)} gave {type(data).__name__} in the place of bytes")
            return None
        cache.write_sealed(at, data)
        return {"code": cache.key(data)}

    def load(self, name: str, entry: dict, at: str, module: GraphModule) -> Any:
        """The part of an entry, None where its bytes are gone or nothing can be made of them."""
        data = cache.read_sealed(at)
        if data is None or cache.key(data) != entry["code"]:
            return None
        try:
            made = self.compilers[name].output_code_ty.deserialize_compile_artifacts(data)
            if hasattr(made, "attached"):
                made = made.attached(self.module)
        except Exception:  # bytes of another version of that class: they are made again
            made = None
        if not callable(made):
            cache.discard(at)
            return None
        cache.touch(at)
        return self.adapt[name](made)


class Remembered:
    """The entries of one joint graph."""

    def __init__(self, key: str, codec: Any = None, steady: bool = False) -> None:
        self.key, self.codec = key, codec or Native()
        self.steady = steady  # would a cut of now be the same?
        self.cut: str | None = None  # what forward and backward must agree on: how it was cut
        self.counted = ""  # hit or miss
        self.facts = self._read("facts", dict.fromkeys(_FACTS, (list, bool)))

    def fill(self, program: Program) -> None:
        """Tell a program what its simplified graph would."""
        for name, value in (self.facts or {}).items():
            setattr(program, name, value)

    def keep(self, program: Program) -> None:
        """Remember what a program found out."""
        self._write("facts", {name: getattr(program, name) for name in _FACTS})

    def was_cut(self, forward: GraphModule) -> None:
        """The joint graph was cut here; a part from the disk must come from the same cut."""
        cut = cache.key(graph_text(forward))
        if self.cut not in (None, cut):
            for name in ("forward", "backward"):
                cache.discard(f"{self.key}.{name}")
            raise CutDiffers()
        self.cut = cut

    def part(self, name: str, program: Program) -> Any:
        """A compiled part, None if it is not there or cannot be loaded without its graph."""
        kept, differentiable = self._part(name), program.joint.differentiable
        cut = kept and kept["cut"]
        if cut and self.cut not in (None, cut):
            kept = None
        elif cut and name == "forward" and self.cut is None:
            other = self._part("backward")  # nobody may have called it yet
            same = self.steady if other is None else other["cut"] == cut
            kept = kept if same else None
        if kept is None or differentiable and name != "fused" and not cut:
            return self._looked_for(None)
        found = self.codec.load(name, kept, f"{self.key}.{name}_code", program.joint.module)
        if found is not None:
            self.cut = cut or self.cut
            for field, value in zip(_SAVED, kept["saved"] or ()):
                setattr(program, field, value)
        return self._looked_for(found)

    def keep_part(self, name: str, made: Any, program: Program) -> None:
        """Remember a part that has been compiled."""
        try:
            said = self.codec.said(name, made, f"{self.key}.{name}_code")
        except OSError:
            return  # a full disk: the next process compiles again, that is all
        if said is None:
            return
        saved, split = None, program.joint.differentiable and name != "fused"
        if split and name == "forward":
            program.look_at_saved()
            saved = [getattr(program, field) for field in _SAVED]
        if self._write(name, {**said, "saved": saved, "cut": self.cut if split else None}):
            _count("saved")

    def _looked_for(self, found: Any) -> Any:
        """Count whether a program was there; one of which another part is missing was not."""
        what = "hit" if found is not None and self.counted != "miss" else "miss"
        if what != self.counted:
            self.counted = what
            _count(what)
        return found

    def _part(self, name: str) -> dict | None:
        return self._read(name, {**self.codec.fields, "saved": (list, type(None)),
                                 "cut": (str, type(None))})

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

    def _write(self, name: str, entry: dict) -> bool:
        try:
            cache.write_sealed(f"{self.key}.{name}", json.dumps(entry).encode())
        except OSError:
            return False  # the next process cuts again, that is all
        return True


def recall(joint: Joint, usual: bool, fuse: bool, flags: str,
           partitioner: Callable | None = None) -> Remembered | None:
    """What is known of a joint graph of `compile`, by its `usual` steps; None if nothing can be.

    `partitioner` is that of the user, if there is one.
    """
    if not config.enable_autograd_cache:
        return None
    try:
        if not usual:
            raise NoKey("steps of the pipeline were replaced")
        try:
            tools = toolchain.find()
        except (CompilerNotFound, OSError):
            raise NoKey("there is no C compiler") from None
        facts = (fuse, flags, repr(getattr(joint.module, "diary", None)),
                 partitioner and _uuid("_inductor.config.custom_partitioner_fn", partitioner))
        steady = partitioner is None and (
            config.activation_memory_budget_runtime_estimator != "profile")
        return Remembered(joint_key(joint, joint.module, facts, *identity(tools)), steady=steady)
    except NoKey as reason:
        return bypass(str(reason))


def recall_ahead(joint: Joint, parts: Backend, compilers: dict[str, Any], partition: Callable,
                 sized: bool) -> Remembered | None:
    """What is known of a joint graph of `aot_function` with these compilers."""
    if not config.enable_autograd_cache:
        return None
    try:
        if sized:
            raise NoKey("sizes of its inputs are symbols")
        said = [function_text(partition)]
        for compiler in compilers.values():
            kind = getattr(compiler, "output_code_ty", None)
            if not hasattr(kind, "serialize_compile_artifacts"):
                raise NoKey(f"results of {_named(compiler)} cannot be made bytes")
            told = uuid_of(compiler) is not None
            said += [function_text(compiler), kind.__qualname__ if told else type_text(kind)]
        layout = parts.layout
        key = joint_key(joint, layout.module, layout.count, layout.tokens, *said, *versions())
        return Remembered(key, Artifacts(parts, compilers))
    except NoKey as reason:
        return bypass(str(reason))


def _named(compiler: Any) -> str:
    return f"the compiler {getattr(compiler, '__name__', None) or repr(compiler)}"


def joint_key(joint: Joint, module: GraphModule, *others: Any) -> str:
    """What the parts of a captured function are kept under: `module` is its joint graph."""
    if joint.differentiable:
        if state.observers.saved_hooks and graph_hooks() is not None:
            raise NoKey("hooks of saved tensors are part of its graphs")
        if (config.enable_activation_offloading or code_generator.post_grad_fusion_options) and (
                offloading() is not None):
            raise NoKey("settings move or shrink what it saves")
    foreign = lowered_by_others(module)
    if foreign:
        raise NoKey(f"{foreign} is lowered by a function of the program's own")
    notes = [[node.name, *[str(node.meta.get(n)) for n in _NOTED]] for node in module.graph.nodes
             if not node.meta.keys().isdisjoint(_NOTED)]
    back = joint.backward
    facts = (joint.forward_count, back.tangent_of, back.grad_of,
             [(m.input, m.output, m.tracked, m.count, m.moved) for m in joint.mutated],
             writes_of(joint), back.late, _settings())
    said = graph_text(module), repr(notes), repr(facts), *map(str, others)
    for text in said:
        at = text.find(" at 0x")
        if at >= 0:
            what = text[max(text.rfind("<", 0, at), at - 80):at].lstrip("<")
            raise NoKey(f"it contains an object that only this process has: {what}")
    return cache.key(*said)


def _settings() -> list[tuple]:
    """All settings; functions among them must say what they are."""
    found = []
    for name, value in sorted(config.to_dict().items()):
        found.append((name, _uuid(f"config.{name}", value) if callable(value) else value))
    return found


def _uuid(where: str, function: Callable) -> str:
    """What a function among the settings says that it is."""
    found = uuid_of(function)
    if found is None:
        raise NoKey(f"{where} is a function without uuid()")
    return f"{type(function).__module__}.{type(function).__qualname__} {found!r}"


def bypass(reason: str) -> None:
    """A program is not looked for; with `config.strict_autograd_cache` that is an error."""
    if not config.enable_autograd_cache:
        return
    _count("bypass")
    counters["autograd_cache_bypass_reasons"][reason] += 1
    if config.strict_autograd_cache:
        raise CacheBypassed(errors.text(
            f"a compiled program is not kept on disk: {reason} ({errors.user_line()})",
            "config.strict_autograd_cache is True",
            "remove the reason, or set it to False"))
