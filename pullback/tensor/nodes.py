"""What users see of the nodes of the tape is attached here: their class in `core/tape.py` is bare.

Read next: `hooks.py`; `../autograd/engine.py`, which runs nodes.
"""

from __future__ import annotations

from .. import errors
from ..core.tape import Node, Port
from ..errors import freed
from .hooks import on_node


class Shown:
    """Properties and methods that all nodes get."""

    def __call__(self, *grads):
        """The gradients of the inputs, given those of the outputs: one step of a sweep by hand."""
        if len(grads) != self.outputs:
            raise errors.ArgumentError(
                f"{self.name()}: expected {self.outputs} arguments, got {len(grads)} instead "
                f"({errors.user_line()})")
        results = self.apply(list(grads), [e is not None for e in self.edges])
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def next_functions(self) -> tuple:
        """(node, output number) of each input."""
        return tuple(
            (None, 0) if e is None else (e.node, e.number) if type(e) is Port else (e, 0)
            for e in self.edges
        )

    @property
    def _input_metadata(self) -> list:
        """Shape, dtype and device of the gradients that arrive, where a tensor has told."""
        known = self.__dict__.get("_spaces", {})
        return [known.get(i) for i in range(self.outputs)]

    @property
    def metadata(self) -> dict:
        """A dictionary for the user's own notes."""
        return self.__dict__.setdefault("_user_metadata", {})

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {id(self):#x}>"

    @classmethod
    def __init_subclass__(cls):
        """Saved values are properties of an operator's class of nodes.

        A `__getattr__` would do as well, but with one Python looks up every attribute of every node
        the slow way.
        """
        rule = vars(cls).get("rule")
        for local, kind, name, attribute in rule.saves if rule else ():
            if kind == "fact" and attribute == "shape":  # PyTorch's names for it
                for ending in ("sizes", "sym_sizes"):
                    setattr(cls, f"_saved_{name[1]}_{ending}", Saved(local))
            else:
                setattr(cls, f"_saved_{local}", Saved(local))
            if kind in ("arg", "out"):
                setattr(cls, f"_raw_saved_{local}", RawSaved(local))

    def _sequence_nr(self) -> int:
        """The number of the node, in order of creation."""
        return self.seq

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; it may return other ones."""
        return on_node(self, "post", fn)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before this node runs; it may return other ones."""
        return on_node(self, "pre", fn)

    def saved_value(self, name: str):
        """A saved value by its name in the formulas."""
        if self.saved is None:
            raise freed(self)
        for i, (local, _, _, _) in enumerate(self.rule.saves):
            if local == name:
                value = self.value_of(i)
                return tuple(value) if type(value) is list else value
        raise AttributeError(f"{self.name()} saved no '{name}'")


class Saved:
    """A property of nodes: a value that they have saved."""

    def __init__(self, local: str):
        self.local = local

    def __get__(self, node: Node | None, kind: type):
        return self if node is None else node.saved_value(self.local)


class RawSaved(Saved):
    """The same, as it is kept."""

    def __get__(self, node: Node | None, kind: type):
        from ..autograd.saved_values import raw_saved

        return self if node is None else raw_saved(node, self.local)


for _name, _value in vars(Shown).items():
    if hasattr(_value, "__get__") and _name not in ("__dict__", "__weakref__"):
        if callable(_value):
            _value.__qualname__ = f"Node.{_name}"
        setattr(Node, _name, _value)
