"""A machine that looks for differences: random programs, run in many ways, against eager mode.

    python tests/fuzz --minutes 5              new programs on all cores (make fuzz ARGS="...")
    python tests/fuzz --seeds 0:2000           these programs
    python tests/fuzz --show 17                what program 17 is
    python tests/fuzz --replay 17 --modes vmap judge it again, here, and make it small
    python tests/fuzz --textbook               a thousand textbook losses, attentions and norms
    python tests/fuzz --run found/x.py         judge a printed program in all modes

A seed is a program (`generate.py`): inputs, and steps that are lines of text, so that it prints
as a plain function over `torch` and runs with Pullback and with PyTorch (`program.py`). Steps come
from the operator table and its samples (`entries.py`) and from idioms (`idioms.py`). Modes
(`modes.py`, `natively.py`, `theirs.py`) run it in another way and compare results, writes and
gradients; what is unstable under rounding is not reported (`compare.py`). A failure is made small
(`shrink.py`) and told with the command that shows it again; workers that hang or die are findings
as well (`runner.py`).

To add a step: a function of a Builder in `idioms.py`, or a line in one of its lists of texts.
To add a mode: a function of a Case in `modes.py`, listed in `MODES` with its share of programs.
A mended failure goes as its printed program to `tests/fuzz/found/`; tests run it in all modes.

Needs Pullback, NumPy and SciPy, nothing else; with `TORCHPY` an interpreter that has PyTorch.
"""
