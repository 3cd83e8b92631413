"""The example programs run, small, with and without a C compiler."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SMALL = ["--steps", "6", "--width", "16", "--heads", "2", "--batch", "4", "--context", "8"]


def run_demo(tmp_path, **environment) -> str:
    env = dict(os.environ, PULLBACK_CACHE_DIR=str(tmp_path), COLUMNS="100", **environment)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "chargpt.py"), *SMALL, "--letters", "20"],
        env=env,
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(output: str) -> None:
    """Both runs lose the same, and begin where a uniform guess over 59 letters would."""
    rows = re.findall(r"^\s+\d+\s+([\d.]+)\s+([\d.]+)\s*$", output, re.MULTILINE)
    assert len(rows) == 2, output
    for eager, compiled in rows:
        assert abs(float(eager) - float(compiled)) < 2e-4
    assert 3.5 < float(rows[0][0]) < 5.5
    assert "Shall I compare thee to " in output


@pytest.mark.cc
def test_demo_trains_eager_and_compiled(tmp_path):
    output = run_demo(tmp_path)
    check(output)
    source = re.search(r"Generated C: (\S+\.c)", output)
    assert source and Path(source[1]).exists()


def test_demo_needs_no_compiler(tmp_path):
    output = run_demo(tmp_path, PULLBACK_CC=str(tmp_path / "no-such-compiler"), PATH="/nonexistent")
    check(output)
    assert "Generated C" not in output
