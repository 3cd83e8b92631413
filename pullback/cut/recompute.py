"""What it costs to save a value of the forward pass for the backward, or to compute it again.

The unit is a sixteenth of a byte of memory traffic:

- Saving a value makes the backward read it: its bytes once. A value that the forward pass would
  not write to memory by itself, because the loop that makes it also uses it up, must be written as
  well: twice. Inputs, results of the forward, and operands and results of library calls are there
  anyway. Views take no memory, but the value they look at is preferred.
- Computing a pointwise operator again, inside the loop that uses the result, is nearly free: a
  sixteenth of its bytes. So a chain of 32 of them costs as much as saving the value at its end. If
  a library call of the backward needs the result, it is written to memory: its bytes once.
- Computing a reduction again goes through its operand again: a sixteenth of the operand's bytes.
- Library calls (matrix products, convolutions), random draws, side effects, and reductions that
  shrink their operand to a quarter or less are never computed again.
- Whether two floating-point tensors are equal (where a maximum is) is asked in the forward, of the
  very numbers it has: the backward may get the last bit of one of them from another loop.

Each infinite cost has a reason, which ends up in the report. PyTorch's settings lift some of the
prices: `rules.py` has them. Read `partition.py` next.
"""

import math
import operator

from ..graph.node import Node
from ..graph.traits import cost_of, is_tensor, nbytes, owner, trait, viewed
from .min_cut import CutProblem
from .rules import UNLIMITED, Rules, distances, far_apart
from .split import JointGraph, is_number, policy

UNIT = 16  # per byte of traffic
DEAR = 1 << 20  # how much more saving costs where a checkpoint asks to compute again
EXACT = "equality: holds for the very numbers of the forward"
SHRINKS = 4  # a reduction to this fraction of its operand is kept


def recompute_problem(joint: JointGraph, rules: Rules | None = None) -> CutProblem:
    """The problem whose solution is what to save, by given rules or by those of the settings."""
    return _Costs(joint, rules or Rules.in_force()).problem()


def _cost_class(node: Node) -> str:
    return cost_of(node.target) if node.op == "call_function" else "heavy"


def _is_library_call(node: Node) -> bool:
    return _cost_class(node) == "heavy" and node.op != "placeholder" and not is_number(node)


def operand_bytes(node: Node) -> int:
    """What a node reads."""
    return sum(nbytes(source.meta.get("val")) for source in node.all_input_nodes)


def reason_against(node: Node, rules: Rules | None = None) -> str:
    """Why a node of the forward pass must not be computed again; empty if it may be."""
    rules = rules or Rules.in_force()
    cost, wish = _cost_class(node), policy(node)
    if node.op == "placeholder":
        return "input: cannot be recomputed"
    if cost == "random":
        return "random: drawing again would give other numbers"
    if node.is_impure():
        return "side effect: must happen once"
    if wish.endswith(("_SAVE", "_OFFLOAD")):
        return f"checkpoint policy {wish}"
    if wish.endswith("RECOMPUTE") and cost not in ("view", "create"):
        return "result of a checkpoint that another one reads" if _leaves_region(node) else ""
    if cost == "reduce" or cost == "heavy" and rules.repeats(node):
        operands = operand_bytes(node) if rules.reductions else 0
        small = nbytes(node.meta.get("val")) * SHRINKS <= operands
        return f"reduction of {operands} bytes: the result is small" if small else ""
    if is_exact(node):
        return EXACT
    if cost in ("cheap", "view", "create") or is_number(node):
        return ""
    return "heavy operator: not recomputed"


def is_exact(node: Node) -> bool:
    """Does a node ask whether floating-point numbers that were computed are the same?"""
    given = [source.meta.get("val") for source in node.all_input_nodes]
    return len(given) == 2 and trait(node.target, "equality") is True and all(
        is_tensor(value) and value.dtype.is_floating_point for value in given)


def asked_again(node: Node) -> bool:
    """Did a checkpoint of the program ask for it, and is it not what two of them share?"""
    wish = node.meta.get("recompute")
    return hasattr(wish, "name") and wish.name.endswith("RECOMPUTE") and not _leaves_region(node)


def wanted_again(joint: JointGraph) -> set[Node]:
    """What checkpoints want computed again, and what follows from that alone: views, and values
    that only the backward has a use for."""
    found: set[Node] = set()
    for node in joint.candidates:
        if asked_again(node) or not found.isdisjoint(node.all_input_nodes) and (
                node not in joint.forward or _cost_class(node) == "view"):
            found.add(node)
    return found


def _goes_on(node: Node) -> bool:
    """Does the loop of a reduction go on with its result, and store something else instead?"""
    if _cost_class(node) != "reduce" or isinstance(node.meta.get("val"), (tuple, list)):
        return False
    size = nbytes(node.meta.get("val"))
    return bool(node.users) and all(
        _cost_class(user) == "cheap" and nbytes(user.meta.get("val")) == size for user in node.users
    )


def _leaves_region(node: Node) -> bool:
    """Is a value handed from one checkpoint to another?  Then that is what both keep."""
    own = node.meta.get("ac_graph_id")
    return own is not None and any(
        own < user.meta.get("ac_graph_id", 0) for user in node.users if policy(user)
    )


class _Costs:
    """Costs of the nodes of one joint graph."""

    def __init__(self, joint: JointGraph, rules: Rules) -> None:
        self.joint, self.rules = joint, rules
        self.twice = far_apart(joint) if rules.far_apart else {}
        self.distance = distances(joint) if rules.farthest < UNLIMITED else {}
        self.again = wanted_again(joint)
        # Memory that is written in the forward whatever is saved, by the node it belongs to; and
        # memory the backward must have written because a library call reads it.
        self.stored = {*joint.primals, *map(viewed, joint.forward_results)}
        self.wanted_stored: set[Node] = set()
        for node in joint.forward:
            if _cost_class(node) in ("heavy", "reduce", "random") and not _goes_on(node):
                self.stored.add(node)
            if _is_library_call(node):
                self.stored.update(map(viewed, node.all_input_nodes))
        for node in joint.dependent_needed:
            if _is_library_call(node):
                self.wanted_stored.update(map(viewed, node.all_input_nodes))

    def problem(self) -> CutProblem:
        joint, problem = self.joint, CutProblem()
        problem.demand = joint.demand
        for node in joint.candidates:
            problem.inputs[node] = [s for s in node.all_input_nodes if s.op != "get_attr"]
            problem.keep[node], reason = self.saving(node)
            if reason:
                problem.keep_reasons[node] = f"{node} cannot be saved: {reason}"
            if node in joint.forward:
                problem.again[node], reason = self.recomputing(node)
                if reason:
                    problem.again_reasons[node] = f"{node} cannot be recomputed: {reason}"
            else:
                problem.again[node] = self.storing_again(node)
                problem.extra.add(node)
                if is_exact(node) and node not in self.again:
                    problem.again[node] = math.inf
                    problem.again_reasons[node] = f"{node} cannot be recomputed: {EXACT}"
                if _is_library_call(node):
                    problem.once.add(node)
        return problem

    def saving(self, node: Node) -> tuple[float, str]:
        """Cost of saving a node, and the reason if it is infinite."""
        value = node.meta.get("val")
        if viewed(node) in self.joint.mutated:
            return math.inf, f"{self.joint.mutated[viewed(node)]} overwrites it"
        if node in self.joint.late_effects:
            return math.inf, "its effect belongs to the backward"
        if policy(node) == "MUST_RECOMPUTE":
            return math.inf, "checkpoint policy MUST_RECOMPUTE"
        if isinstance(value, (tuple, list)):
            return math.inf, "it is several values, of which each can be"
        if is_number(node):
            return 1, ""
        if self.rules.views and owner(node) is not node:
            return math.inf, "recompute_views: it is a view"
        if self.rules.parameters and node in self.joint.static:
            return 0, ""
        traffic = 1 if viewed(node) in self.stored else 2
        if node in self.again:
            traffic *= DEAR
        elif policy(node) == "PREFER_RECOMPUTE":  # a hint of ours
            traffic *= 4
        # Between equals, what is saved should be a value of the forward, and not a view of one.
        derived = (_cost_class(node) == "view") + (node not in self.joint.forward)
        return UNIT * traffic * max(nbytes(value), 1) + derived, ""

    def recomputing(self, node: Node) -> tuple[float, str]:
        """Cost of computing a node of the forward again, and the reason if it is infinite."""
        reason = reason_against(node, self.rules)
        if not reason and self.rules.farthest < self.distance.get(node, 0) < UNLIMITED:
            reason = f"more than max_dist_from_bw={self.rules.farthest} from the backward"
        if reason:
            return math.inf, reason
        if is_number(node) or policy(node).endswith("RECOMPUTE"):
            return 0, ""
        cost, work = _cost_class(node), 0
        if cost == "cheap":
            work = nbytes(node.meta.get("val")) if self.rules.chains else 0
        elif cost == "reduce" and self.rules.reductions:
            work = operand_bytes(node)
            if isinstance(node.meta.get("val"), (tuple, list)):
                work *= UNIT  # maxima and their places: no part of another loop
        return work + UNIT * self.twice.get(node, 0) + self.storing_again(node), ""

    def storing_again(self, node: Node) -> int:
        """Cost of writing a node to memory in the backward, if a library call there reads it."""
        if node not in self.wanted_stored or _cost_class(node) == "view":
            return 0
        if not self.rules.materialized and node in self.joint.forward:
            return 0
        return UNIT * nbytes(node.meta.get("val"))


def explain_saved(node: Node, joint: JointGraph) -> str:
    """Why a value is saved, in a few words."""
    if node.op == "placeholder":
        return "input: already in memory"
    if node in joint.forward_results:
        return "forward result: already in memory"
    source = node.args[0] if node.target is operator.getitem else node
    reason = reason_against(source) if source in joint.forward else ""
    return reason or "cheaper to keep than to compute again"


def explain_recomputed(node: Node) -> str:
    """Why a value is computed again, in a few words."""
    wish = policy(node)
    if wish in ("MUST_RECOMPUTE", "PREFER_RECOMPUTE"):
        return f"checkpoint policy {wish}"
    cost = _cost_class(node)
    if cost == "view":
        return "view: costs nothing"
    if cost == "create":
        return "created from nothing"
    if cost == "reduce":
        return "reduction: cheaper to repeat than to keep"
    if cost == "cheap":
        return "pointwise: nearly free inside the loop that uses it"
    if is_number(node):
        return "a number"
    return "heavy operator: computed again to save memory"
