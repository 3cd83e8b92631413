"""Runs the Python blocks of README.md and docs/*.md: what the documentation shows is true.

The blocks of one page run in order in one namespace. Blocks in another language (text, console, c)
are not run. What a page prints and then shows in a `text` block is compared: such a block directly
after a python block is its expected output, unless it says `...` in a line, which stands for
anything.
"""

import contextlib
import fnmatch
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```([\w-]*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def blocks(text: str):
    """`(language, first line number, code)` of each fenced block."""
    for match in FENCE.finditer(text):
        yield match[1], text.count("\n", 0, match.start(2)) + 1, match[2]


def run_page(path: Path) -> int:
    """Run a page; returns how many blocks ran."""
    namespace = {"__name__": "__main__"}
    printed = None
    count = 0
    for language, line, code in blocks(path.read_text(encoding="utf-8")):
        if language == "python":
            # Empty lines in front make tracebacks point into the page.
            program = compile("\n" * (line - 1) + code, str(path), "exec")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(program, namespace)
            printed = out.getvalue()
            count += 1
        elif language == "text" and printed:
            expected = [text.rstrip() for text in code.rstrip().splitlines()]
            got = [text.rstrip() for text in printed.rstrip().splitlines()]
            same = len(expected) == len(got) and all(
                fnmatch.fnmatchcase(g, re.sub(r"([\[*?])", r"[\1]", e).replace("...", "*"))
                for e, g in zip(expected, got, strict=True)
            )
            assert same, f"{path.name}:{line}: printed\n{printed}\nbut the page shows\n{code}"
            printed = None
        else:
            printed = None
    return count


@pytest.mark.parametrize("path", [p for p in PAGES if p.exists()], ids=lambda p: p.name)
def test_code_blocks_run(path, tmp_path, monkeypatch, without_torch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # for processes that a page starts
    run_page(path)


def test_the_pages_exist_and_have_code():
    ran = {p.name for p in PAGES if p.exists() and "```python" in p.read_text(encoding="utf-8")}
    assert {"README.md", "from-scratch.md", "guide.md", "compiling.md", "extending.md"} <= ran


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        if not page.exists():
            continue
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
