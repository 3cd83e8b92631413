"""The generated C of a fixed corpus does not change unnoticed, nor with the machine or the run."""

import os
import subprocess
import sys

import pytest

from pullback.compile import toolchain, unit
from tests.helpers import generated_corpus as corpus
from tests.helpers import texts

RECORDED = texts.read(corpus.RECORD)
HINT = "\nthe generated C changed; if that is meant, run: python -m tests.helpers.generated_corpus"


@pytest.fixture(autouse=True)
def plain_machine(monkeypatch):
    """The size of the last cache decides about streaming stores: the same here on every machine."""
    monkeypatch.setattr(unit, "last_level_cache", lambda: 32 << 20)


@pytest.mark.parametrize("name", list(corpus.CORPUS))
def test_recorded(name):
    assert sorted(RECORDED) == sorted(corpus.CORPUS)
    texts.check(name, corpus.all_widths(name), RECORDED[name], HINT)


def test_another_process_generates_the_same():
    """Neither hash seeds nor addresses nor what was compiled before show in the text."""
    code = (
        "from tests.helpers import generated_corpus as corpus\n"
        "print(corpus.text('mlp', 32), corpus.text('attention', 32))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@pytest.mark.parametrize("width", corpus.WIDTHS)
def test_every_width_compiles(width, tmp_path):
    """The text for other machines is valid C as well."""
    from pullback.compile import native

    for name in ("cross_entropy", "integers"):
        source = tmp_path / f"{name}.c"
        source.write_text(corpus.generated(name, width).source)
        tools = toolchain.find()
        flags = [*tools.flags, "-w", "-I", str(native.SOURCES), "-fsyntax-only"]
        subprocess.run([*tools.command, *flags, str(source)], check=True)
