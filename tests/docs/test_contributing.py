"""The operators of CONTRIBUTING.md, added from the page's text, pass the checks of the table."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys

code = sys.stdin.read()
exec(compile(code, "CONTRIBUTING.md", "exec"))

import pullback
from pullback.array import dtype as dt
from pullback.compile.lower import lower
from pullback.core.op import registry
from pullback.core.overload import overload
from pullback.decomp import is_core
from pullback.graph.make_fx import make_fx
from pullback.testing import kit, samples

op = registry[sys.argv[1]]
kit.check(op)
for case in samples.cases(op):
    kit.check_compile(op, case, dt.float64)
assert overload(op.full_name).decomposition is not None or is_core(op.full_name)

x = pullback.randn(4, 5)
graph = make_fx(lambda x: getattr(pullback, sys.argv[1])(x * 2), None, "fake")(x)
assert sys.argv[1] in {getattr(n.target, "__name__", "") for n in graph.graph.nodes}
assert not lower(graph).externs  # loops, no call of the kernel
"""


@pytest.mark.parametrize("name", ["softsign2", "sum_of_squares"])
def test_the_example_passes_the_checks_of_the_table(name, tmp_path):
    """Finite differences, modes, vmap, fake tensors; compiled against eager, without a NumPy step.

    In a process of its own: an operator is added once.
    """
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (entry,) = [code for code in found if f"class {name}(" in code]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, name], input=entry, text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
