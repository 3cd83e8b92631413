"""The example programs run, small, and print the numbers that their headers promise.

The demo runs with and without a C compiler. Those marked `torch` run on PyTorch, too, with nothing
but the imports changed.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
SMALL = ["--steps", "6", "--width", "16", "--heads", "2", "--batch", "4", "--context", "8"]
QUICK = sorted(
    path.stem for path in EXAMPLES.glob("*.py") if "--quick" in path.read_text(encoding="utf-8")
)


def run(file: Path, *arguments: str, cache: Path, **environment) -> str:
    """What a program prints."""
    env = dict(os.environ, PULLBACK_CACHE_DIR=str(cache), COLUMNS="100", **environment)
    env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # other tests have the other cores
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, str(file), *arguments],
        env=env,
        text=True,
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- numbers of the headers --------------------------------------------------------------------


def printed(output: str) -> dict[str, float]:
    rows = re.findall(r"^([a-z]\S*(?: \S+)*) {2,}(\S+)$", output, re.MULTILINE)
    return {name: float(value) for name, value in rows}


def promised(name: str) -> dict[str, tuple[float, float]]:
    """The table in the header of an example: the full and the quick number by name."""
    header = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")))
    table = re.search(r"^ +expected +full +--quick\n((?: +\S.*\n)+)", header, re.MULTILINE)[1]
    rows = (line.rsplit(maxsplit=2) for line in table.splitlines())
    return {label.strip(): (float(full), float(quick)) for label, full, quick in rows}


def test_every_example_is_run():
    assert set(QUICK) == {p.stem for p in EXAMPLES.glob("*.py")} - {"chargpt", "digits"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Compiled code of all examples; the first builds the runtime."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("name", QUICK)
def test_numbers_are_those_of_the_header(name, cache):
    expected = {label: quick for label, (_, quick) in promised(name).items()}
    found = printed(run(EXAMPLES / f"{name}.py", "--quick", cache=cache))
    # Another BLAS rounds otherwise; that may be worth one of the 360 test digits, not two.
    assert found == pytest.approx(expected, rel=5e-3, abs=1e-4)


@pytest.mark.torch
@pytest.mark.parametrize("name", QUICK)
def test_numbers_are_those_of_pytorch(name, tmp_path):
    ours = printed(run(EXAMPLES / f"{name}.py", "--quick", cache=tmp_path))
    copies = tmp_path / "examples"
    (copies / "data").mkdir(parents=True)
    (copies / "data" / "digits.npz").write_bytes((EXAMPLES / "data" / "digits.npz").read_bytes())
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text(encoding="utf-8").replace("import pullback as torch", "import torch")
        text = re.sub(r"^(from|import) pullback\b", r"\1 torch", text, flags=re.MULTILINE)
        assert not re.search(r"^\s*(from|import) pullback", text, re.MULTILINE)
        (copies / path.name).write_text(text, encoding="utf-8")
    output = run(copies / f"{name}.py", "--quick", cache=tmp_path, TORCHDYNAMO_DISABLE="1")
    assert ours and ours == pytest.approx(printed(output), rel=1e-4, abs=1e-7)


# --- the demo ----------------------------------------------------------------------------------


def run_demo(cache, **environment) -> str:
    program = EXAMPLES / "chargpt.py"
    return run(program, *SMALL, "--letters", "20", cache=cache, **environment)


def check(output: str) -> None:
    """Both runs lose the same, and begin where a uniform guess over 59 letters would."""
    rows = re.findall(r"^\s+\d+\s+([\d.]+)\s+([\d.]+)\s*$", output, re.MULTILINE)
    assert len(rows) == 2, output
    for eager, compiled in rows:
        assert abs(float(eager) - float(compiled)) < 2e-4
    assert 3.5 < float(rows[0][0]) < 5.5
    assert "Shall I compare thee to " in output


@pytest.mark.cc
def test_demo_trains_eager_and_compiled(cache):
    output = run_demo(cache)
    check(output)
    source = re.search(r"Generated C: (\S+\.c)", output)
    assert source and Path(source[1]).exists()


def test_demo_needs_no_compiler(tmp_path):
    output = run_demo(tmp_path, PULLBACK_CC=str(tmp_path / "no-such-compiler"), PATH="/nonexistent")
    check(output)
    assert "Generated C" not in output
