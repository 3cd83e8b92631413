"""Traced, rewritten and split graphs print as PyTorch's do; see `tests/helpers/traced.py`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOPICS = ("tracing", "running", "rewriting", "library")
EXPECTED = {t: json.loads((HERE.parent / "data" / "traced" / f"{t}.json").read_text())
            for t in TOPICS}


@pytest.fixture(scope="module")
def found():
    """What all programs of a topic print, each topic in a process of its own."""
    known = {}

    def of(topic):
        if topic not in known:
            program = HERE.parent / "helpers" / f"{topic}_programs.py"
            command = [sys.executable, "-m", "pullback", "run", str(program)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1],
                                  env={**os.environ, "PYTHONPATH": str(HERE.parents[1])})
            assert done.returncode == 0, done.stderr
            known[topic] = json.loads(done.stdout)
        return known[topic]

    return of


@pytest.mark.parametrize("topic", TOPICS)
def test_prints(topic, found):
    ours = found(topic)
    assert ours.keys() == EXPECTED[topic].keys()
    for name, (text, raised) in EXPECTED[topic].items():
        assert ours[name][0] == text, name
        assert (ours[name][1] is None) is (raised is None), (name, ours[name][1])
        assert raised is None or raised[0] in ours[name][1], name
