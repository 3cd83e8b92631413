"""PyTorch's rules about what a backward may compute again, where its settings change the measure.

PyTorch's min cut forbids certain recomputations by rules of thumb, and has a setting per rule. Here
each of them is a price (`recompute.py` adds them up), and a setting that lifts a ban lifts the
price. So the defaults are the measure, and whoever lifts bans saves less, as there.

| setting | what it does while it is on |
| --- | --- |
| `ban_recompute_used_far_apart` | a value read on both sides of a library call is read twice |
| `ban_recompute_long_fusible_chains` | each pointwise operator takes time |
| `ban_recompute_materialized_backward` | what a library call of the backward reads is written |
| `ban_recompute_not_in_allowlist` | library calls, little arithmetic or much, are not repeated |
| `ban_recompute_reductions` | nor are operators whose result is small beside their operands |

Read `recompute.py` next.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from ..graph.node import Node
from ..graph.traits import cost_of, nbytes, trait
from .settings import config

if TYPE_CHECKING:
    from .split import JointGraph

UNLIMITED = 1000  # PyTorch's distance at which `max_dist_from_bw` forbids nothing


@dataclasses.dataclass(frozen=True)
class Rules:
    """Which prices are in force; the defaults are the measure itself."""

    far_apart: bool = True
    chains: bool = True
    materialized: bool = True
    allowlist: bool = True
    reductions: bool = True
    views: bool = False  # `recompute_views`: views are never saved
    farthest: int = UNLIMITED  # `max_dist_from_bw`
    parameters: bool = True  # `treat_parameters_as_free_to_save`
    custom: bool = False  # `is_non_builtin_to_include`: custom operators as if they were intensive

    @classmethod
    def in_force(cls) -> Rules:
        """What the settings say."""
        rules = cls(
            config.ban_recompute_used_far_apart, config.ban_recompute_long_fusible_chains,
            config.ban_recompute_materialized_backward, config.ban_recompute_not_in_allowlist,
            config.ban_recompute_reductions, config.recompute_views, config.max_dist_from_bw,
            config.treat_parameters_as_free_to_save, config.is_non_builtin_to_include)
        return rules.aggressive() if config.aggressive_recomputation else rules

    def eager(self) -> Rules:
        """No price on pointwise operators, wherever they are."""
        return dataclasses.replace(self, far_apart=False, chains=False, materialized=False)

    def aggressive(self) -> Rules:
        """And none on library calls with little arithmetic."""
        return dataclasses.replace(self.eager(), allowlist=False)

    def repeats(self, node: Node) -> bool:
        """May a library call be repeated?"""
        target = node.target
        if self.allowlist or getattr(target, "is_random", False) or not hasattr(target, "schema"):
            return False
        return not self.custom if is_custom(node) else not trait(target, "intensive")


def is_custom(node: Node) -> bool:
    """Is it somebody's own operator?"""
    return getattr(node.target, "namespace", "aten") not in ("aten", "prims")


def fusible(node: Node, user: Node) -> bool:
    """Could one loop compute both?"""
    return _loops(node) and _loops(user)


def _loops(node: Node) -> bool:
    return node.op == "call_function" and cost_of(node.target) != "heavy"


def far_apart(joint: JointGraph) -> dict[Node, int]:
    """Nodes that read a value behind a library call which another reader of it leads to.

    With the bytes that they read once more: two loops that far apart are never one.
    """
    place = {node: k for k, node in enumerate(joint.nodes) if node in joint.forward}
    first: dict[Node, float] = {}  # node -> the next call behind it that ends its loop
    found: dict[Node, int] = {}
    for node in reversed(joint.nodes):
        if node not in place:
            continue
        users = [user for user in node.users if user in place]
        first[node] = min(
            (first[user] if fusible(node, user) else place[user] for user in users),
            default=math.inf)
        if len(users) < 2:
            continue
        end = min(first[user] for user in users)
        for user in users:
            if place[user] > end and fusible(node, user):
                found[user] = found.get(user, 0) + nbytes(node.meta.get("val"))
    return found


def distances(joint: JointGraph) -> dict[Node, float]:
    """How many nodes of the forward lie between each of them and the backward."""
    found: dict[Node, float] = {}
    for node in reversed(joint.nodes):
        if node.op == "output":
            found[node] = math.inf
        elif node in joint.forward:
            found[node] = min((found[user] + 1 for user in node.users), default=math.inf)
        else:
            found[node] = 0
    return found
