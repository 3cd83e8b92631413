"""PyTorch's tags: what is said of operators, of the table's and of those that users define.

They are attributes of the entries, `tags` and `core`; what variants have follows from how they are
made.
"""

from __future__ import annotations

import enum
import functools


@functools.cache
def _made() -> type[enum.Enum]:
    tag = enum.Enum("Tag", (
        "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout "
        "generated inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides "
        "needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise "
        "nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy"
    ), module=__name__)
    tag.__doc__ = "What may be said of an operator when it is defined."
    return tag


def __getattr__(name: str):
    if name != "Tag":
        raise AttributeError(name)
    globals()["Tag"] = _made()  # when somebody asks: it takes longer than the rest of this file
    return _made()


def tags_of(ov) -> list:
    """The tags of an overload of the table, or of one that follows from it."""
    functional = getattr(ov, "functional", ov)  # of the variants that write
    if isinstance(functional, list):
        functional = functional[0]
    entry, name = functional.op, str(ov.name)
    found = {*entry.tags, "pt2_compliant_tag"}
    if entry.core and functional is ov or entry.core == "out" and name.endswith(".out"):
        found.add("core")
    if name.partition(".")[0].endswith("_"):
        found |= {"inplace", "inplace_view"} if functional.is_view else {"inplace"}
    elif functional is not ov:
        found.add("out")
    tag_class = _made()
    return [tag_class[tag] for tag in sorted(found)]
