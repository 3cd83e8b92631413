"""In which order sequences are packed: the longest first.

Sequences of the same length could come in any order; PyTorch's depends on the quicksort that it
uses, and decides which numbers of a dropout mask meet which sequence.  This is that quicksort.
"""

from __future__ import annotations

FEW = 16  # parts of this many elements are left to the last pass, by insertion


def longest_first(lengths: list[int]) -> list[int]:
    """The places of the lengths from the longest to the shortest."""
    order, parts = list(range(len(lengths))), [(0, len(lengths))]
    while parts:
        first, last = parts.pop()
        while last - first > FEW:
            cut = _partition(lengths, order, first, last)
            parts.append((first, cut))
            first = cut
    for i in range(1, len(order)):
        moving = order[i]
        while i and lengths[order[i - 1]] < lengths[moving]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = moving
    return order


def _partition(lengths: list[int], order: list[int], first: int, last: int) -> int:
    """Put what is longer than the pivot in front of what is shorter; returns where they meet."""
    middle = _middle(lengths, order, (first + 1, (first + last) // 2, last - 1))
    order[first], order[middle] = order[middle], order[first]
    pivot = lengths[order[first]]
    left, right = first + 1, last
    while True:
        while lengths[order[left]] > pivot:
            left += 1
        right -= 1
        while lengths[order[right]] < pivot:
            right -= 1
        if left >= right:
            return left
        order[left], order[right] = order[right], order[left]
        left += 1


def _middle(lengths: list[int], order: list[int], places: tuple[int, int, int]) -> int:
    """The place of the median of three; which one of equals is part of the order."""
    one, two, three = (lengths[order[place]] for place in places)
    if one > two:
        return places[1] if two > three else places[2] if one > three else places[0]
    return places[0] if one > three else places[2] if two > three else places[1]
