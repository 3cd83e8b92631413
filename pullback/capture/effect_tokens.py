"""Effects in graphs that follow PyTorch's convention: calls with an effect form a chain of tokens.

A captured graph calls operators with effects as any others, and keeps their order.  PyTorch's
graphs say the order by data: `with_effects(token, op, ...)` takes the token of the call before and
returns one for the next.  The first token is an input of the graph, the last an output; both come
before all others in a forward, after all others in a backward.  At run time nothing is passed.
"""

from __future__ import annotations

import operator
from typing import Any

from ..control.effects import new_token_tensor, with_effects
from ..control.subgraph import HigherOrder, without_effects
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.make_fx import fake_of
from ..graph.node import Node, map_arg
from ..graph.traits import has_side_effect, is_late
from ..table.effects import EffectType, effect_of


class _Prim(HigherOrder):
    """An operator that only graphs name, `torch.ops.prims.<name>.default`."""

    def __init__(self, name: str, function: Any):
        self.__name__, self.function, self.own = "default", function, name
        self.__module__ = f"torch.ops.prims.{name}"

    def __reduce__(self) -> str:
        return self.own


_make_token = _Prim("_make_token", new_token_tensor)
_sink_tokens = has_side_effect(_Prim("_sink_tokens", lambda tokens: None))


def effectful(graph: Graph) -> bool:
    """Are there calls with effects in a graph?"""
    return any(n.op == "call_function" and effect_of(n.target) is not None for n in graph.nodes)


def without_forward_effects(module: GraphModule) -> GraphModule:
    """A joint graph to run again for its backward: what the forward did has been done."""
    return without_effects(module, is_late)


def _renamed(name: str, named: str, shift: int) -> str:
    """The name of an input behind so many tokens."""
    head, tail = named.partition("{")[0], "_1" if named.endswith("_1") else ""
    number = name.removeprefix(head).removesuffix(tail)
    if not name.startswith(head) or not number.isdigit():
        return name
    return f"{head}{int(number) + shift}{tail}"


class Threaded:
    """A copy of a graph without its output, in which effects are chains of tokens.

    `copied` maps old nodes to new ones; `last` are the tokens that come out of the forward, `late`
    those of the backward.  Unless they are `lifted`, the graph makes the first ones itself.
    """

    def __init__(self, graph: Graph, named: str = "arg{0}_1", lifted: bool = True):
        self.graph, self.copied, self.lifted = Graph(), {}, lifted
        self._many: set[Node] = set()  # calls whose results are taken out of the tuple one by one
        calls = [n for n in graph.nodes if n.op == "call_function" and effect_of(n.target)]
        early = dict.fromkeys(effect_of(n.target) for n in calls if not is_late(n))
        late = dict.fromkeys(effect_of(n.target) for n in calls if is_late(n))
        self.tokens: dict[tuple[bool, EffectType], Node] = {}
        first = [self._token(named.format(i, i + 1)) for i in range(len(early) if lifted else 0)]
        for n in graph.nodes:
            if n.op == "placeholder":
                self.copied[n] = self.graph.placeholder(_renamed(n.name, named, len(early)))
                self.copied[n].meta = dict(n.meta)
        first = first or [self._token("") for _ in early]
        self.tokens.update(zip([(False, e) for e in early], first))
        incoming = [self._token("tangents_token") for _ in late]
        self.tokens.update(zip([(True, e) for e in late], incoming))
        for node in graph.nodes:
            if node.op not in ("placeholder", "output"):
                self.copied[node] = self._copy(node)
        self.last = [self.tokens[False, e] for e in early]
        self.late = [self.tokens[True, e] for e in late]
        if not lifted:
            for ends in (self.last, self.late):
                if ends:
                    self._prim(_sink_tokens, [*ends])
                ends.clear()

    def _token(self, name: str) -> Node:
        if self.lifted:
            made = self.graph.placeholder(name)
        else:
            made = self._prim(_make_token)
        made.meta["val"] = fake_of(new_token_tensor())
        return made

    def _prim(self, target: _Prim, *args: Any) -> Node:
        made = self.graph.create_node(
            "call_function", target, args, name=f"{target.own}_default")
        made.meta["val"] = None
        return made

    def _copy(self, node: Node) -> Node:
        args, kwargs = (map_arg(a, self.copied.__getitem__) for a in (node.args, node.kwargs))
        effect = effect_of(node.target) if node.op == "call_function" else None
        if effect is None:
            if node.target is operator.getitem and node.args[0] in self._many:
                args = (args[0], args[1] + 1)  # behind the token
            made = self.graph.create_node(node.op, node.target, args, kwargs)
            made.meta = dict(node.meta)
            return made
        key = is_late(node), effect
        made = self.graph.call_function(
            with_effects, (self.tokens[key], node.target, *args), kwargs)
        made.meta = dict(node.meta)
        val, token = node.meta.get("val"), fake_of(new_token_tensor())
        several = len(getattr(getattr(node.target, "schema", None), "returns", ())) > 1
        made.meta["val"] = [token, *val] if several else [token, val]
        self.tokens[key] = self._pick(made, 0, token)
        if several:
            self._many.add(node)
            return made
        return self._pick(made, 1, val)

    def _pick(self, node: Node, i: int, val: Any) -> Node:
        made = self.graph.call_function(operator.getitem, (node, i))
        made.meta = {**node.meta, "val": val}
        return made


def unthreaded(graph: Graph, tokens: set[Node]) -> None:
    """Take the chains out of a graph again: calls as any others, without the given inputs."""
    for node in reversed(graph.find_nodes(op="call_function", target=with_effects)):
        _, op, *args = node.args
        with graph.inserting_before(node):
            made = graph.call_function(op, tuple(args), node.kwargs)
        made.meta = dict(node.meta)
        _, *vals = node.meta["val"]
        several = len(getattr(getattr(op, "schema", None), "returns", ())) > 1
        made.meta["val"] = vals if several else vals[0]
        for user in list(node.users):
            if user.target is operator.getitem and user.args[1]:
                if several:
                    user.args = (made, user.args[1] - 1)
                    continue
                user.replace_all_uses_with(made)
            graph.erase_node(user)
        graph.erase_node(node)
    for node in tokens:
        graph.erase_node(node)
