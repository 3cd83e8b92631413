"""Ordinary programs run, and editors know what a loss is; `make lint` checks their types."""

import pathlib
import runpy

import jedi
import pytest

PROGRAMS = sorted((pathlib.Path(__file__).parent / "programs").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_run(path, capsys):
    runpy.run_path(str(path), run_name="__main__")


def test_there_are_twenty():
    assert len(PROGRAMS) >= 20


@pytest.mark.parametrize("line", [
    "loss = ((x @ x.t()) ** 2).mean()", "loss = torch.nn.functional.mse_loss(model(x), x)",
])
def test_completion_after_a_loss(line):
    before = ["import pullback as torch", "x = torch.randn(3, 3)", "model = torch.nn.Linear(3, 3)"]
    source = "\n".join([*before, line, "loss."])
    root = pathlib.Path(__file__).parents[2]
    found = jedi.Script(source, project=jedi.Project(root, smart_sys_path=False,
                                                     added_sys_path=[str(root)])).complete(5, 5)
    assert {"backward", "item", "detach", "shape", "grad"} <= {c.name for c in found}
