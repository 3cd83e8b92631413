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
PAGES = [*[ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")],
         *sorted((ROOT / "docs").glob("**/*.md"))]
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


def named_files(text: str):
    """`(package, file)` of each file named in backquotes, where headings name a package or none."""
    package = ""
    text = FENCE.sub("", text)
    for line in text.splitlines():
        if line.startswith("#"):
            heading = re.match(r"#+ `([\w/]+)/`", line)
            package = heading[1] if heading else ""
        for name in re.findall(r"`([\w/]+\.(?:py|pyi|c|h))`", line):
            yield package, name


@pytest.mark.parametrize("page", [p for p in PAGES if p.exists()], ids=lambda p: p.name)
def test_files_that_are_named_exist(page):
    """A path begins in the repository or the package, or in the package that a section is about."""
    for package, name in named_files(page.read_text(encoding="utf-8")):
        if "/" not in name and not package:
            continue  # of the user's, as in `python train.py`, or of the page's own example
        places = [ROOT / name, ROOT / "pullback" / name, ROOT / "pullback" / package / name]
        assert any(p.exists() for p in places), f"{page.name} names {name}, which is not there"
