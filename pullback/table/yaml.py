"""The part of YAML that the classic derivative table is written in, read and written.

A list of mappings; plain, quoted and block (`|`, `>`) scalars; lists in brackets or dashes; nested
mappings; comments.  No anchors, tags, mappings in braces or several documents: these are refused
with the line.  Scalars stay text.
"""

from __future__ import annotations

import re

from .. import errors

_KEY = re.compile(r"""(?P<key>"[^"]*"|'[^']*'|[^\s#'"\[\]{}|>&*!%@`,?-][^:#]*?)"""
                  r"\s*:(?:\s+(?P<rest>.*)|$)")
_BLOCK = re.compile(r"(?P<style>[|>])(?P<marks>[1-9+-]{0,2})\s*(#.*)?$")
_ITEM = re.compile(r"""\s*(?P<item>'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|[^\s'",\[\]{}][^,\[\]{}]*|)"""
                   r"\s*(?P<end>[,\]])")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", " ": " "}
_RESERVED = re.compile(r"""[\[\]{}|>&*!%@`"'#,]|[-?:](\s|$)""")
_TYPED = re.compile(r"(true|false|yes|no|on|off|null|~|[-+]?[\d.][\w.+-]*|)$", re.I)


class Mapping(dict):
    """A mapping that knows its line, and those of its keys."""

    def __init__(self, line: int):
        super().__init__()
        self.line, self.lines = line, {}


def read(text: str, place: str = "<text>") -> list:
    """The list that a document holds."""
    reader = _Reader(text, place)
    line = reader.next_line()
    if line is not None and line.strip() == "---":
        reader.position += 1
        line = reader.next_line()
    if line is None:
        return []
    if not _is_item(line):
        reader.fail("a list of entries was expected", "begin each entry with `- name: ...`")
    items = reader.items(_indent(line))
    line = reader.next_line()
    if line is not None and line.strip() != "...":
        reader.fail(f"cannot read {line.strip()!r}", "indent all entries alike")
    return items


def scalar(text: str) -> str:
    """A text as a scalar, quoted where a plain one would be read as something else."""
    text = " ".join(text.split())
    plain = not (_RESERVED.match(text) or _TYPED.match(text) or ": " in text or " #" in text
                 or text.endswith(":"))
    return text if plain else "'" + text.replace("'", "''") + "'"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_item(line: str) -> bool:
    return line.lstrip(" ").startswith("- ") or line.strip() == "-"


def _uncommented(text: str) -> str:
    """A plain scalar without the comment behind it."""
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()


class _Reader:
    """Reads line by line; `position` is the number of the next line, from 0."""

    def __init__(self, text: str, place: str):
        self.lines, self.position, self.place = text.splitlines(), 0, place

    def fail(self, what: str, cure: str = "", line: int | None = None):
        number = self.position if line is None else line
        raise errors.FormulaError(errors.text(
            f"{self.place}:{min(number, len(self.lines) - 1) + 1}: {what}",
            self.lines[number].strip() if number < len(self.lines) else "", cure))

    def next_line(self) -> str | None:
        """The next line that is neither blank nor a comment."""
        while self.position < len(self.lines):
            line = self.lines[self.position]
            if line.strip() and not line.lstrip().startswith("#"):
                if "\t" in line[:len(line) - len(line.lstrip())]:
                    self.fail("a tab in the indentation", "indent with spaces")
                return line
            self.position += 1
        return None

    def line_at(self, indent: int) -> str | None:
        """The next such line if it has this indentation."""
        line = self.next_line()
        return line if line is not None and _indent(line) == indent else None

    def items(self, indent: int) -> list:
        """A list in dashes."""
        found = []
        while (line := self.line_at(indent)) is not None and _is_item(line):
            rest = line[indent + 1:]
            inner = indent + 1 + _indent(rest)
            if not rest.strip():
                self.fail("an empty item", "write it on the line of its dash")
            self.lines[self.position] = " " * inner + rest.strip()
            if _KEY.match(rest.strip()):
                found.append(self.mapping(inner))
            else:
                self.position += 1
                found.append(self.value(rest.strip(), indent))
        return found

    def mapping(self, indent: int) -> Mapping:
        """`key: value` lines of one indentation."""
        found = Mapping(self.position + 1)
        while (line := self.line_at(indent)) is not None and not _is_item(line):
            match = _KEY.match(line.strip())
            if match is None:
                self.fail(f"cannot read {line.strip()!r}", "write `name: value`")
            key = match["key"].strip("'\"")
            if key in found:
                self.fail(f"'{key}' is given twice", "keep one of the two")
            found.lines[key] = self.position + 1
            self.position += 1
            found[key] = self.value((match["rest"] or "").strip(), indent)
        line = self.next_line()
        if line is not None and _indent(line) > indent:
            self.fail("this line is indented more than the one above it",
                      "indent the keys of an entry alike")
        return found

    def value(self, rest: str, indent: int):
        """What stands behind a key whose line has this indentation."""
        start = self.position - 1
        block = _BLOCK.match(rest)
        if block:
            return self.block(block["style"] == "|", block["marks"], indent)
        if rest[:1] in ("'", '"'):
            return self.quoted(rest, start)
        if rest[:1] == "[":
            return self.flow(rest, start)
        if rest[:1] in tuple("{}]&*!%@`|>"):
            self.fail(f"{rest[0]!r} begins something that is not supported here",
                      "put the text into quotes", start)
        if not _uncommented(rest):
            return self.nested(indent)
        return self.plain(rest, indent, start)

    def nested(self, indent: int):
        """A list or mapping on the lines below its key."""
        line = self.next_line()
        least = indent if line is not None and _is_item(line) else indent + 1
        if line is None or _indent(line) < least:
            return ""
        if _is_item(line):
            return self.items(_indent(line))
        if _KEY.match(line.strip()):
            return self.mapping(_indent(line))
        self.position += 1
        return self.value(line.strip(), indent)

    def plain(self, rest: str, indent: int, start: int) -> str:
        """A plain scalar; lines that are indented more continue it."""
        words = [_uncommented(rest)]
        while (self.position < len(self.lines) and self.lines[self.position].strip()
               and _indent(self.lines[self.position]) > indent
               and not self.lines[self.position].lstrip().startswith("#")):
            words.append(_uncommented(self.lines[self.position]))
            self.position += 1
        text = " ".join(words)
        if ": " in text or text.endswith(":"):
            self.fail("a plain text must not contain a colon followed by a space",
                      "put the text into quotes", start)
        return text

    def quoted(self, rest: str, start: int) -> str:
        """A quoted scalar, perhaps over several lines."""
        mark = rest[0]
        closing = re.compile(r"'((?:[^']|'')*)'" if mark == "'" else r'"((?:[^"\\]|\\.)*)"')
        while not (match := closing.match(rest)):
            more = []
            while not (more and mark in more[-1]):  # only such a line can end it
                if self.position >= len(self.lines):
                    self.fail("a quotation that does not end", f"close it with {mark}", start)
                more.append(self.lines[self.position].strip())
                self.position += 1
            rest = " ".join([rest, *more])
        behind = rest[match.end():].strip()
        if behind and not behind.startswith("#"):
            self.fail(f"text behind a quotation: {behind!r}", "put all of it into quotes", start)
        if mark == "'":
            return match[1].replace("''", "'")
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), match[1])

    def flow(self, rest: str, start: int) -> list[str]:
        """A list in brackets, perhaps over several lines."""
        found, position = [], 1
        while True:
            match = _ITEM.match(rest, position)
            if match is None and self.position < len(self.lines):
                rest = f"{_uncommented(rest)} {self.lines[self.position].strip()}"
                self.position += 1
                continue
            if match is None:
                self.fail("a list that does not end, or lists within lists",
                          "close it with ], put items with brackets into quotes", start)
            if match["item"]:
                found.append(_unquoted(match["item"].strip()))
            position = match.end()
            if match["end"] == "]":
                break
        behind = _uncommented(rest[position:])
        if behind:
            self.fail(f"text behind a list: {behind!r}", "put all of it into quotes", start)
        return found

    def block(self, literal: bool, marks: str, indent: int) -> str:
        """A block scalar: `|` keeps the line ends, `>` folds them."""
        digits = re.sub(r"\D", "", marks)
        depth = indent + int(digits) if digits else None
        lines = []
        while self.position < len(self.lines):
            line = self.lines[self.position]
            if line.strip():
                if _indent(line) <= indent:
                    break
                depth = _indent(line) if depth is None else depth
            lines.append(line[depth:] if depth is not None else "")
            self.position += 1
        text = "\n".join(lines).rstrip("\n")
        if not literal:
            text = re.sub(r"\n+", lambda m: m[0][1:] or " ", text)
        return text if "-" in marks else text + "\n"


def _unquoted(item: str) -> str:
    if item[:1] == "'" and item[-1:] == "'":
        return item[1:-1].replace("''", "'")
    if item[:1] == '"' and item[-1:] == '"':
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), item[1:-1])
    return item
