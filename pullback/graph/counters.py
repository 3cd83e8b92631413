"""Counts of what happened while functions were compiled: `counters["stats"]["unique_graphs"]`.

One table for all threads, by area and event, as `torch._dynamo.utils.counters`; users clear it.

| area | counts |
| --- | --- |
| frames | `total` captures that were begun, `ok` that became programs |
| stats | `unique_graphs` that were captured, `calls_captured` of operators in their forwards |
| aot_autograd | the same, `not_ok` that failed; disk: `autograd_cache_hit`, `_miss`, `_bypass` |
| autograd_cache_bypass_reasons | why programs are not looked for on disk |
| inductor | rewritings that a setting asked for |
"""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable
from typing import Any

counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(
    collections.Counter)


def counted(build: Callable[[], Any]) -> Any:
    """What a capture gives: a program, whose graph is counted."""
    counters["frames"]["total"] += 1
    counters["aot_autograd"]["total"] += 1
    try:
        program = build()
    except Exception:
        counters["aot_autograd"]["not_ok"] += 1
        raise
    counters["frames"]["ok"] += 1
    counters["aot_autograd"]["ok"] += 1
    counters["stats"]["unique_graphs"] += 1
    counters["stats"]["calls_captured"] += _calls(program.joint)
    return program


def _calls(joint: Any) -> int:
    """The operators that the results of the forward need."""
    todo = [n for n in joint.module.graph.output_node().args[0][:joint.forward_count]
            if hasattr(n, "all_input_nodes")]
    seen: set = set()
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += node.all_input_nodes
    return sum(n.op == "call_function" and n.target is not operator.getitem for n in seen)
