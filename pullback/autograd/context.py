"""`FunctionCtx`: what the `forward` of an `autograd.Function` leaves for its `backward` and `jvp`.

Saved tensors are guarded by their version, as those of operators are.  Read next: `function.py`.
"""

from __future__ import annotations

import types
import warnings

from .. import errors
from ..core.events import UNPACKED
from ..core.handle import Tensor, is_buffer, make
from ..core.tape import as_saved, port
from ..errors import freed, modified
from ..interp.operator_dispatch import proper
from ..threads.state import state
from .saved_values import Packed, SavedTensor


class FunctionCtx:
    """What `forward` leaves for `backward` and `jvp`; take any free name for notes of your own."""

    needs_input_grad: tuple = ()
    materialize_grads = True
    _to_save: tuple = ()
    _shells: list | None = None  # what carriers among saved tensors are closed by (`carried.py`)
    _for_forward: tuple | None = None
    _dirty: tuple = ()
    _non_differentiable: tuple = ()
    _kept: tuple | None = ()  # saved for backward: (handle, number of the output that it is or -1)
    _node = None  # weak reference to the node, once there is one
    _pushing = False  # is `jvp` reading?
    _clears = False  # is what was saved let go when it is read?
    _forward_cls: type | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, where `saved_tensors` has them, guarded by their version."""
        self._to_save = _savable(tensors, "save_for_backward")

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, where `saved_tensors` has them."""
        self._for_forward = _savable(tensors, "save_for_forward")

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` overwrites; each of them must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no derivative."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Should gradients that did not arrive be zeros (the default) or None?"""
        self.materialize_grads = bool(value)

    def mark_shared_storage(self, *pairs) -> None:
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    @property
    def saved_tensors(self) -> tuple:
        """The saved tensors, as they were: one that was overwritten since is an error."""
        found, shells = self._saved(), self._shells
        return found if shells is None else tuple([
            t if shell is None else shell.close(t) for shell, t in zip(shells, found)])

    def _saved(self) -> tuple:
        if self._pushing:
            return self._to_save if self._for_forward is None else self._for_forward
        node = None if self._node is None else self._node()
        kept = self._kept
        if kept is None:
            raise freed(node or types.SimpleNamespace(name=self.name, where=None))
        if kept is CLEARED:
            raise errors.GraphFreed(errors.text(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True "
                f"is set on the autograd.Function ({errors.user_line()}): {self.name()}",
                cure="keep what it returns in variables, or set it to False"))
        stamp = 0 if node is None else node.stamp
        if kept.__class__ is not tuple:  # a checkpoint dropped them: they are computed again
            kept, stamp = kept.take()
        if node is None:
            return tuple([t for t, _ in kept]) if kept else self._to_save
        values = []
        for i, (value, number) in enumerate(kept):
            if value.__class__ is Packed:
                value = value.open(port(node, number) if number >= 0 else value.edge)
            elif value is not None:
                cell = value._cell
                if cell is not None and cell.stamps and cell.stamps[-1] > stamp:
                    raise modified(node, f"saved_tensors[{i}]", value)
                if number >= 0:
                    again = make(value._payload, port(node, number))
                    again._cell = cell
                    value = proper(again)
                elif not is_buffer(value._payload) and (
                        getattr(value._payload, "interp", None) is not None):
                    found = value._payload.interp.event(UNPACKED, value)
                    value = value if found is None else found
                else:
                    value = proper(value if value._edge is not None else as_saved(node, value))
            values.append(value)
        if self._clears:  # who asked has them now
            self._kept, node.saved, self._to_save = CLEARED, (), ()
        return tuple(values)

    def maybe_clear_saved_tensors(self) -> None:
        """Let the saved tensors go now, unless there may be another backward."""
        node = None if self._node is None else self._node()
        if node is not None and state.task is not None and not state.task.keep:
            node.release()

    @property
    def saved_variables(self) -> tuple:
        """The old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    @property
    def dirty_tensors(self) -> tuple | None:
        return self._dirty or None

    @property
    def non_differentiable(self) -> tuple | None:
        return self._non_differentiable or None

    @property
    def to_save(self) -> tuple | None:
        return self._to_save or None

    @property
    def saved_for_forward(self) -> tuple | None:
        return self._for_forward

    @property
    def next_functions(self) -> tuple:
        """(node, output number) of each tensor input."""
        node = self._node and self._node()
        return () if node is None else node.next_functions

    @property
    def metadata(self) -> dict:
        """The dictionary of the node."""
        node = self._node and self._node()
        return {} if node is None else node.metadata

    def _where(self):
        node = self._node and self._node()
        return None if node is None else node.where

    def name(self) -> str:
        """The name of the node, e.g. `SquareBackward`."""
        return type(self).__name__


CLEARED = object()  # in the place of saved tensors that were read


def _savable(tensors: tuple, method: str) -> tuple:
    for i, t in enumerate(tensors):
        if t is not None and not isinstance(t, Tensor):
            raise errors.ArgumentError(errors.text(
                f"{method} can only save variables, but argument {i} is of type "
                f"{type(t).__name__} ({errors.user_line(2)})",
                cure="keep other values as attributes: ctx.scale = scale"))
    return tensors


class KeptTensor(SavedTensor):
    """One of the tensors that a `Function` saved."""

    def _held(self):
        kept = self._node.ctx._kept
        return None if kept is None else [value for value, _ in kept]

    def _keep(self, packed: Packed) -> None:
        ctx, i = self._node.ctx, self._index
        ctx._kept = (*ctx._kept[:i], (packed, ctx._kept[i][1]), *ctx._kept[i + 1 :])
