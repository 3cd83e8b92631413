"""The command line: `python -m pullback`."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullback
from pullback import cli, derivatives
from pullback.core.op import registry
from pullback.table import yaml


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess:
    """The command as a user runs it."""
    done = subprocess.run(
        [sys.executable, "-m", "pullback", *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done


def printed(capsys, *arguments: str, code: int = 0) -> tuple[str, str]:
    """The same inside of this process."""
    assert cli.main(list(arguments)) == code
    return capsys.readouterr()


def sections(name: str) -> dict[str, list[str]]:
    found, _ = cli.find(name)
    return dict(cli.describe(found[0]))


def test_as_a_program():
    assert run("version").stdout == f"pullback {pullback.__version__}\n"
    done = run("table", "tahn", code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("the table has no operator 'tahn'; did you mean ")
    assert "tanh" in done.stderr


def test_a_reader_that_leaves_early():
    done = subprocess.run(
        f"'{sys.executable}' -m pullback table --yaml | head -1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.startswith("- name: ")
    assert done.stderr == ""


def test_no_command_prints_help(capsys):
    out, _ = printed(capsys)
    assert "table" in out and "demo" in out and "version" in out


def test_unknown_arguments(capsys):
    with pytest.raises(SystemExit) as info:
        cli.main(["tabel"])
    assert info.value.code == 2
    assert "tabel" in capsys.readouterr().err


def test_entry(capsys):
    out, _ = printed(capsys, "table", "mul.Scalar")
    assert out.startswith(
        "mul.Scalar(Tensor self, Scalar other) -> Tensor\n  Product of a tensor and a number.\n"
    )
    assert "\x1b" not in out
    for text in (
        "pointwise",
        "xp.multiply(self, other)",
        "self: grad * other",
        "saves other",
        "MulBackward1",
        "auto_element_wise",
        "mul_",
        "mul(..., out=)",
        "{self} * {other}",
        "pullback/ops/binary.py:",
    ):
        assert text in out


def test_derived_parts():
    tanh = sections("tanh")
    assert set(tanh) == {
        "kind",
        "kernel",
        "promotion",
        "gradient",
        "forward mode",
        "node",
        "in-place",
        "out=",
        "vmap",
        "shape rule",
        "decomposition",
        "C",
        "cost",
        "samples",
        "defined in",
    }
    assert tanh["node"] == ["TanhBackward0"] and tanh["C"] == ["tanh({self})"]
    assert tanh["gradient"][1].strip() == "saves result"
    assert tanh["samples"][0].endswith("real and complex")
    assert sections("mm")["forward mode"][0] == "product rule in self, mat2"
    assert sections("sum.dim_IntList")["forward mode"] == [
        "the operator itself (linear in self)",
        "  result: auto_linear",
    ]
    assert sections("select.int")["forward mode"][0] == "the operator itself (a view)"
    assert sections("softmax.int")["gradient"] == ["by its parts"]
    assert sections("sort.stable")["outputs"] == ["differentiable: values"]
    assert "index: not differentiable" in sections("gather")["gradient"]
    assert (
        sections("sign")["gradient"] == ["self: zero"]
        and sections("sign")["forward mode"][0] == "zero"
    )
    assert sections("eq.Tensor")["forward mode"] == ["none"]
    assert "node" not in sections("eq.Tensor")
    assert sections("sum")["gradient"][1].strip() == "saves self.shape"


def test_every_entry_can_be_described():
    for name in registry:
        found = sections(name)
        assert found["kind"] and found["gradient"] and found["forward mode"]


@pytest.mark.parametrize(
    "name, first, remark",
    [
        ("mul", ["mul.Tensor", "mul.Scalar"], ""),
        ("aten.tanh", ["tanh"], ""),
        ("aten::mul.Scalar", ["mul.Scalar"], ""),
        ("tanh.default", ["tanh"], ""),
        ("multiply", ["mul.Tensor", "mul.Scalar"], "multiply is another name of mul"),
        ("tanh_", ["tanh"], "tanh_ is derived from tanh"),
        ("mul.Foo", [], "operator 'mul' has no overload 'Foo'; it has mul.Tensor, mul.Scalar"),
        ("zzzzzz", [], "the table has no operator 'zzzzzz'; `python -m pullback table` lists all"),
    ],
)
def test_find(name, first, remark):
    found, said = cli.find(name)
    assert ([o.name for o in found], said) == (first, remark)


def test_remarks_are_printed(capsys):
    out, _ = printed(capsys, "table", "tanh_")
    assert out.startswith("tanh_ is derived from tanh\ntanh(Tensor self) -> Tensor\n")
    out, _ = printed(capsys, "table", "tanh_", "--yaml")
    assert [e["name"] for e in yaml.read(out)] == ["tanh(Tensor self) -> Tensor"]
    out, err = printed(capsys, "table", "mul.Foo", "--yaml", code=2)
    assert out == "" and "mul.Tensor" in err


def test_list(capsys):
    out, _ = printed(capsys, "table")
    lines = out.splitlines()
    assert lines[0].split() == ["operator", "kind", "gradient", "forward", "mode"]
    assert len(lines) == len(registry) + 1
    assert any(line.split()[:4] == ["mul.Tensor", "pointwise", "self,", "other"] for line in lines)


def test_yaml(capsys):
    out, _ = printed(capsys, "table", "--yaml")
    assert out == derivatives.dump()
    out, _ = printed(capsys, "table", "mul", "--yaml")
    assert out == derivatives.dump(ops=["mul.Tensor", "mul.Scalar"])


def test_in_a_terminal(capsys, monkeypatch):
    rich = pytest.importorskip("rich.console")
    screen = io.StringIO()
    monkeypatch.setattr(
        cli, "_console", lambda: rich.Console(file=screen, force_terminal=True, width=120)
    )
    printed(capsys, "table", "clamp")
    assert "\x1b[" in screen.getvalue() and "ClampBackward1" in screen.getvalue()
    assert "Tensor? " in screen.getvalue() or "Scalar? " in screen.getvalue()
    screen.truncate(0)
    printed(capsys, "table")
    assert f"{len(registry)} operators" in screen.getvalue()


def test_no_colours_outside_of_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert cli._console() is None


def test_without_rich(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    assert cli._console() is not None
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert cli._console() is None


def test_demo_runs_the_example(tmp_path, monkeypatch, capsys):
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "chargpt.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "pullback" / "cli.py"))
    before = list(sys.argv)
    out, _ = printed(capsys, "demo", "--steps", "3")
    assert out == "__main__ ['--steps', '3']\n"
    assert sys.argv == before


def test_demo_without_a_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "pullback" / "cli.py"))
    _, err = printed(capsys, "demo", code=1)
    assert "no examples/chargpt.py" in err and "checkout" in err


def test_the_installed_command_is_this_one():
    from pullback import __main__

    assert __main__.main is cli.main
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert 'pullback = "pullback.__main__:main"' in text
    assert os.access(sys.executable, os.X_OK)
