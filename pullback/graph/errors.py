"""Exceptions of the graph package.

All are RuntimeErrors, as PyTorch raises there, so that code written against it keeps working.
Read `graph.py` next for where they are raised.
"""


class GraphError(RuntimeError):
    """A change that would leave the graph inconsistent, such as erasing a node still in use.

    Fix: replace the uses first (`node.replace_all_uses_with(other)`), or edit the nodes in an
    order that keeps every value defined before it is used.
    """


class NodeError(GraphError, AssertionError):
    """A node of a kind that does not exist, or one that would move into another graph.

    Fix: the message names the kinds; copy nodes between graphs with `graph.node_copy(node)`.
    """


class LintError(GraphError):
    """`graph.lint()` found a node whose place, inputs, name or target cannot be right.

    Fix: the message names the node. Nodes copied from another graph need their inputs mapped
    (`graph.node_copy(node, mapping.get)`); nodes created in the wrong place can be moved with
    `other.prepend(node)`.
    """


class TraceError(GraphError, ValueError):
    """Python asked a traced value for something that is only known when the graph runs.

    Fix: a truth value, a length or an iteration of a `Proxy` does not exist while tracing. Compute
    the decision from plain Python values, or keep the choice inside the graph.
    """


class MutableOperation(GraphError):
    """A tracer with `check_mutable_operations` met a call that writes into its arguments.

    Fix: use the operator that returns its result, or leave the switch off.
    """
