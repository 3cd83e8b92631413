"""What a captured function returns: which tensors are results of the graph, which are inputs, and
which are views of either that the run time makes again.

`Results` decides that for every output of the user's function, at the end of a capture.  Read next:
`capture.py`, `run.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..array import dtype as dt
from ..array.size import from_data
from ..autograd.engine import node_of
from ..autograd.function import Opaque
from ..core.handle import Tensor
from ..core.overload import overload
from ..core.tape import Accumulate, Blind
from ..graph.node import map_aggregate
from ..graph.traits import owner
from ..memory.links import Link
from ..memory.views import Detached, recording_set, refresh, unnoticed
from ..symbolic.number import SymBool, SymFloat, SymInt
from ..table.packets import ops
from .effects.results import (
    Output,
    ReturnHandle,
    ReturnInput,
    ReturnNumber,
    ReturnValue,
    ReturnView,
)

if TYPE_CHECKING:
    from .capture import Capture

_DTYPES = {int: dt.int64, SymInt: dt.int64, SymFloat: dt.float64, SymBool: dt.bool_}


class Results:
    """The outputs of a graph, and how the user's are made of them."""

    def __init__(self, level: Capture, handles: list[Tensor], outputs: list[Tensor]):
        self.level = level
        self.outputs, self.as_given = outputs, False
        self.keeps_pieces = level.convention.keeps_pieces
        self.unwritten = {id(t._payload): i for i, t in enumerate(handles)}
        self.by_handle = {id(t): i for i, t in enumerate(handles)}
        for stand_in, (_, t, _) in level.memory.stand_ins.items():
            if id(t) in self.by_handle:
                self.by_handle[stand_in] = self.by_handle[id(t)]
        self.nodes: list = []
        self.values: list[Tensor] = []
        self.placed: dict[int, Output] = {}
        self.roots: dict[int, int] = {}  # how many outputs look at the same memory
        # memory that is looked at by pieces, and that by so much else that all is made again
        self.cut: set[int] = set()
        self.whole: set[int] = set()
        self.torn: set[int] = set()  # memory that is several values of the graph
        others: set[int] = set()
        self.late: set[int] = set()  # views that PyTorch's graphs take at their end
        self.stale: set[int] = set()  # views that must not be used: their base was written
        for o in {id(o): o for o in outputs}.values():
            link = o._link
            if link is not None:
                if (link.multi or link.hidden) and link.seen != o._cell.version and (
                        not unnoticed(o, level.level)):
                    self.stale.add(id(o))
                if link.seen == ~o._cell.version:  # it is to be taken anew, at the end
                    self.late.add(id(o))
                else:
                    with recording_set(level.level, False):  # stale ones may be returned, not used
                        refresh(o)
            root = id(root_of(o))
            self.roots[root] = self.roots.get(root, 0) + 1
            stays = self._stays(o)
            if stays and link is not None and link.multi:
                self.cut.add(root)
            elif not stays or root in others or root in self.by_handle:
                self.whole.add(root)
            else:
                others.add(root)

    def give_views(self) -> None:
        """Let the graph return views as they are, where they show the same memory there, too."""
        self.as_given = True
        shown: dict[int, object] = {}
        returned: dict[object, Tensor] = {}
        for o in self.outputs:
            root = id(root_of(o))
            if id(o) not in self.late and root not in self.by_handle:
                node = self.level.node(o)
                if (shown.setdefault(root, owner(node)) is not owner(node) or id(o) in self.stale
                        or returned.setdefault(node, o) is not o):  # two tensors of one value
                    self.torn.add(root)

    def reshapes(self, t: Tensor) -> int:
        """How often inputs with the memory of a tensor changed their shape in place."""
        return sum(len(v.steps) for v in self.level.memory.views.values()
                   if id(v.handle) in self.by_handle and (
                       v.handle is t or v.handle._cell is t._cell))

    def add(self, value: Tensor) -> int:
        self.nodes.append(self.level.node(value))
        self.values.append(value)
        return len(self.nodes) - 1

    def number(self, value) -> Output:
        """How to return a number, or a size, that depends on data."""
        parts = [ops.scalar_tensor(n, dtype=_DTYPES[type(n)])
                 for n in (value if isinstance(value, tuple) else (value,))]
        return ReturnNumber(self.add(ops.stack(parts) if isinstance(value, tuple) else parts[0]))

    def handle(self, value) -> Output:
        """How to return the handle of a hook."""
        return self.placed.setdefault(id(value), ReturnHandle(value))

    def place(self, o: Tensor) -> Output:
        """How to return a tensor."""
        found = self.placed.get(id(o))
        if found is not None:
            return found
        if id(o) in self.by_handle:
            found = ReturnInput(self.by_handle[id(o)])
        else:
            is_view = o._link is not None and self._aliases(o, o._link)
            found = self._view(o, o._link) if is_view else self._value(o)
            if isinstance(o._edge, Accumulate):
                found.leaf = o._edge.leaf() is o
            found.retains, found.cls = retains(o), type(o)
        self.placed[id(o)] = found
        return found

    def _view(self, o: Tensor, link: Link) -> ReturnView:
        """How to return a view that is made again from its base."""
        of = self.place(link.base)
        found = ReturnView(
            of=of, chain=link.chain, hidden=link.hidden, apart=link.apart, multi=link.multi,
            stale=id(o) in self.stale, late=id(o) in self.late, tracked=has_history(o),
            computed=from_data(link.chain, marked=False) or _takes_tensors(link))
        if link.apart and not link.counts:
            found.writes = link.writes
        if hooked(o) and not (link.apart or link.hidden):
            found.own = self.add(o)
        if found.tracked and of.kind == "input" and link.base._edge is None:
            found.early = True  # it was detached since
        found.half = bool(link.hidden) and o._edge is not None and type(o._edge) is not Blind
        if id(link.base) in self.level.memory.stand_ins:
            found.early, found.chain = self._since(link)
        if found.computed:
            found.chain = map_aggregate(found.chain, self._said)
        return found

    def _value(self, o: Tensor) -> ReturnValue:
        """How to return an output of the graph."""
        link = o._link
        if id(o) in self.late:
            refresh(o)
        found = ReturnValue(index=self.add(o))
        if link is not None and from_data(link.chain, marked=False):
            link = None  # it is not made again
        if link is not None and link.multi and self.keeps_pieces and has_history(o):
            found.piece = self.by_handle.get(id(root_of(o))), self._since(link)[1]
        if link is not None and (link.apart or self._outlives(o)) and has_history(o) and (
                self._shown(o)) and not _takes_tensors(link):
            found.shares = self.place(link.base), link.chain
        if isinstance(link, Opaque) and id(link.base) in self.by_handle and (
                not _takes_tensors(link)):
            found.opaque = self.by_handle[id(link.base)], link.chain, link.multi
        number = self.unwritten.get(id(o._payload)) if link is None else None
        if number is not None and has_history(o):  # a function returned it as it was
            found.opaque = number, ((overload("alias"), (), None),), False
        return found

    def _said(self, value):
        """What says where a view begins: a number or a tensor that the graph gives."""
        if isinstance(value, Tensor):
            return self.place(value)
        return self.number(value) if from_data((value,), marked=False) else value

    def _since(self, link: Link) -> tuple[bool, tuple]:
        """The views that lead to a tensor from an input which may have changed its shape in place:
        from what it is now, or (True) from what it was before that."""
        before = self.level.memory.stand_ins.get(id(link.base))
        if before is None or id(link.base) not in self.by_handle:  # or it is no input
            return False, link.chain
        reshaped = self.level.memory.views.get(id(before[1]))
        if reshaped is not None and not before[2] and _begins(link.chain, reshaped.steps):
            return False, link.chain[len(reshaped.steps):]
        return True, (*before[2], *link.chain)

    def _stays(self, o: Tensor) -> bool:
        """May a tensor be a result of the graph beside pieces of the same memory?  It has a history
        of its own, which is that of the graph."""
        link = o._link
        return has_history(o) and id(o) not in self.stale and (
            link is None or not (link.hidden or link.apart or link.multi and self._since(link)[0]))

    def _aliases(self, o: Tensor, link: Link) -> bool:
        """Must a view be made again from its base, for what can be done to it later?"""
        if link.__class__ not in (Link, Detached):
            return False
        if has_history(o) and (link.apart or self._outlives(o)):
            return False
        root = root_of(o)
        if self.as_given and id(root) not in self.by_handle and id(root) not in self.torn:
            return False  # the compiled graph returns views as they are
        if self.keeps_pieces and id(root) in self.cut and id(root) not in self.whole:
            return False  # results of the graph, with gradients of their own
        return self._shown(o) or link.multi or bool(link.hidden)

    def _outlives(self, o: Tensor) -> bool:
        """Is a tensor a view of a result that was detached in place since?"""
        base = o._link.base
        return base._edge is None and id(base) not in self.by_handle and not o._link.hidden

    def _shown(self, o: Tensor) -> bool:
        """Is the memory of a tensor that of an input, or of another output?"""
        root = id(root_of(o))
        return root in self.by_handle or self.roots.get(root, 0) > 1


def _takes_tensors(link: Link) -> bool:
    """Do tensors say where a view lies?"""
    return any(isinstance(a, Tensor) for _, rest, _ in link.chain for a in rest)


def _begins(chain: tuple, steps: list) -> bool:
    """Was a view made when its base had become what it is now, in place?"""
    return len(chain) > len(steps) and all(
        ov is other and rest == others for (ov, rest, _), (other, others, _) in zip(chain, steps))


def root_of(o: Tensor) -> Tensor:
    """The tensor whose memory another one looks at, detached or not."""
    while o._link is not None:
        o = o._link.base
    return o


def has_history(t: Tensor) -> bool:
    return t._edge is not None and not (isinstance(t._edge, Accumulate) and t._edge.leaf() is t)


def hooked(t: Tensor) -> bool:
    """Has a tensor that was computed a hook, which is to get all of its gradient?"""
    if not has_history(t):
        return False
    tables = node_of(t._edge).hooks
    return tables is not None and any(
        any(table.values()) if kind == "tensor" else kind != "retain" and table
        for kind, table in tables.items())


def retains(t: Tensor) -> bool:
    """Does a tensor that is no leaf keep its gradient?"""
    return t._record is not None and t._record.retains


def used_up(t: Tensor) -> bool:
    """Has a sweep inside of the function used up the history of an output?"""
    todo, seen = [node_of(t._edge)], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.saved is None:
            return True
        todo += [node_of(e) for e in node.edges]
    return False
