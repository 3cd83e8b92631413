"""Training without `compile` does not load the packages that only compiling needs."""

import subprocess
import sys

PROGRAM = """
import sys
import pullback as torch

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
for kind in (torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop):
    kind(model.parameters(), lr=0.1)
packages = ("capture", "compile", "cut", "graph", "python_state", "serialization", "torch")
print(sorted(m for m in sys.modules if m.split(".")[:1] == ["pullback"]
             and m.split(".")[1:2] and m.split(".")[1] in packages))
"""


def test_a_model_and_its_optimizer_load_no_compiler():
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                         check=True)
    assert out.stdout.strip() == "[]"
