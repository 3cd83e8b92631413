"""The parts of `tools/sanitize.py` name tests that exist."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_parts_name_tests_that_exist(monkeypatch):
    spec = importlib.util.spec_from_file_location("sanitize", ROOT / "tools" / "sanitize.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "sanitize", module)
    spec.loader.exec_module(module)
    named = [word.partition("::") for kind in module.KINDS.values()
             for words in kind.parts.values() for word in words if word.startswith("tests/")]
    assert len(named) > 20
    for path, _, test in named:
        text = (ROOT / path).read_text()
        assert not test or f"def {test}(" in text, path
