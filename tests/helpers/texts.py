"""Texts that are compared with recorded ones: graphs as they print, generated C.

A file holds many texts, each below the lines `==== name: part` of those that it is the text of:
what is equal is written once. A comparison that fails shows the difference, line by line.
"""

import difflib
from pathlib import Path

MARK = "==== "

Texts = dict[str, dict[str, str]]  # name -> part (which graph, say) -> text


def write(path: Path, texts: Texts) -> None:
    """Write texts to a file."""
    shared: dict[str, list[str]] = {}  # text -> titles
    for name, parts in texts.items():
        for part, text in parts.items():
            assert text and ": " not in part and "\n" not in name + part, (name, part)
            assert not text.startswith(MARK) and f"\n{MARK}" not in text, (name, part)
            shared.setdefault(text, []).append(f"{MARK}{name}: {part}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{''.join(titles)}{text}\n" for text, titles in shared.items()))


def read(path: Path) -> Texts:
    """The texts of a file, as `write` was given them."""
    found: Texts = {}
    titles: list[str] = []
    lines: list[str] = []

    def put() -> None:
        for title in titles:
            name, _, part = title.rpartition(": ")
            found.setdefault(name, {})[part] = "\n".join(lines)

    for line in path.read_text().split("\n")[:-1]:
        if not line.startswith(MARK):
            lines.append(line)
            continue
        if lines:
            put()
            titles, lines = [], []
        titles.append(line.removeprefix(MARK))
    put()
    return found


def check(name: str, found: dict, recorded: dict[str, str], hint: str = "") -> None:
    """Fail with the difference where a text is not the recorded one."""
    for part, text in recorded.items():
        if found.get(part) != text:
            raise AssertionError(f"{name}, {part}:\n{difference(found.get(part), text)}{hint}")


def difference(found, recorded: str) -> str:
    """What to change in the recorded text to get what was found."""
    before, after = recorded.splitlines(), str(found).splitlines()
    return "\n".join(difflib.unified_diff(before, after, "recorded", "found", "", "", 1000, ""))
