"""The files of the operator table load when they are needed, and nobody can tell."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pullback.core.op import aliases, families, registry
from pullback.table.catalog import FILE_OF, FILES


def run(text: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LOADED = "print(sorted(m for m in sys.modules if m.startswith('pullback.ops.')))"


def test_importing_loads_no_file_of_the_table():
    assert run(f"import sys, pullback; {LOADED}") == "[]"


def test_methods_and_functions_are_there_before_their_files():
    out = run(
        "import sys, pullback as p; x = p.tensor([1.0, 2.0]);"
        "assert hasattr(p.Tensor, 'cholesky') and hasattr(p.Tensor, 'tanh_');"
        "before = 'pullback.ops.special' in sys.modules;"
        "y = x.i0(); print(before, 'pullback.ops.special' in sys.modules, y.shape)"
    )
    assert out == "False True torch.Size([2])"


def test_the_order_of_entries_does_not_depend_on_what_was_used_first():
    plain = run("import pullback; from pullback.core.op import registry; print(list(registry))")
    other = run(
        "import pullback as p; p.linalg.det(p.eye(2)); p.fft.fft(p.ones(4));"
        "from pullback.core.op import registry; print(list(registry))"
    )
    assert plain == other


def test_the_list_of_names_is_complete():
    own = [op for op in registry.values() if op.__module__.startswith("pullback.ops.")]
    assert {op.base_name for op in own} == set(FILE_OF)
    for op in own:
        assert op.__module__ == f"pullback.ops.{FILE_OF[op.base_name]}"
        assert all(aliases[name] == op.base_name for name in op.aliases)
    assert set(FILE_OF.values()) <= set(FILES)


def test_an_addition_to_a_family_comes_after_the_tables_own_entries():
    out = run(
        "import pullback as p\n"
        "from pullback.core.op import Composite, families\n"
        "class cholesky_mine(Composite):\n"
        "    schema = 'cholesky.mine(Tensor self, str how) -> Tensor'\n"
        "    def compose(self, how):\n"
        "        return self\n"
        "print([op.full_name for op in families['cholesky']])"
    )
    assert out == "['cholesky', 'cholesky.mine']"


@pytest.mark.parametrize("name", ["mul", "mul.Tensor", "no_such_operator"])
def test_asking_for_a_name_is_enough(name):
    assert (name in registry) == (name == "mul.Tensor")
    assert (name in families) == (name == "mul")
    assert families.get("no_such_operator") is None
    with pytest.raises(KeyError):
        registry["mul.NoSuchOverload"]


def test_a_name_that_is_not_listed_yet_is_found():
    """An entry just written, before `make stubs`."""
    out = run(
        "import sys, types, pathlib, importlib.util\n"
        "where = importlib.util.find_spec('pullback').submodule_search_locations[0]\n"
        "names = types.ModuleType('pullback.table.names')\n"
        "exec(pathlib.Path(where, 'table', 'names.py').read_text(), names.__dict__)\n"
        "del names.NAMES['ctc']\n"
        "sys.modules['pullback.table.names'] = names\n"
        "import pullback as p\n"
        "from pullback.table.catalog import FILE_OF\n"
        "print('ctc_loss' in FILE_OF, p.ops.aten.ctc_loss.IntList, hasattr(p, 'no_such_operator'))"
    )
    assert out == "False aten.ctc_loss.IntList False"


THREADS = """
import sys, threading, pullback as p
from pullback.core.op import registry
sys.setswitchinterval(1e-6)
start, found = threading.Barrier(8), []
def work(number):
    start.wait()
    x = p.ones(2, 2)
    y = (x @ x).sin().sort()[0] + p.linalg.inv(x + 2 * p.eye(2)).sum()
    found.append((y.shape, *([len(registry)] if number % 2 else ())))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sorted(set(found)))
"""


def test_threads_that_use_the_table_for_the_first_time_at_once():
    count = run("from pullback.core.op import registry; print(len(registry))")
    assert run(THREADS) == f"[(torch.Size([2, 2]),), (torch.Size([2, 2]), {count})]"


def test_listings_of_the_package_have_what_is_loaded_later():
    assert run(
        "import sys, pullback as p\n"
        "names = dir(p)\n"
        "print({'arccos', 'add', 'nn', 'no_grad'} <= set(names), len(names) == len(set(names)),"
        " 'pullback.ops.fft' in sys.modules, 'pullback.nn' in sys.modules)"
    ) == "True True False False"
    assert run(
        "from pullback import *\n"
        "import pullback as p\n"
        "print(arccos is p.arccos, float32, no_grad is p.no_grad, compile is p.compile,"
        " vmap is p.vmap, 'nn' in globals(), 'core' in globals())"
    ) == "True torch.float32 True True True False False"


def test_a_copy_of_the_namespace_has_all_names():
    """`dir` says which, without loading them."""
    assert run(
        "import sys, pullback as p\n"
        "names = dir(p)\n"
        "assert 'pullback.nn' not in sys.modules\n"
        "held = dict(vars(p))\n"
        "assert set(names) <= set(held), set(names) - set(held)\n"
        "assert held['nn'] is p.nn and held['vmap'] is p.vmap and held['sin'] is p.sin\n"
        "print(held is not p.__dict__ and vars(p) is p.__dict__)"
    ).strip() == "True"


@pytest.mark.parametrize("module, names", [
    ("fft", "fft2 ifft"), ("special", "erf i0"), ("linalg", "svd LinAlgError"),
    ("func", "functional_call vmap"), ("autograd", "Function grad"),
    ("nn.utils", "clip_grad_norm_ rnn"), ("export", "export Dim"),
])
def test_copies_of_other_namespaces_have_all_names(module, names):
    assert run(
        f"import pullback.{module} as m\n"
        f"held, space = dict(vars(m)), {{}}\n"
        f"exec('from pullback.{module} import *', space)\n"
        f"print(*[held[n] is space[n] is getattr(m, n) for n in {names.split()}])"
    ) == "True True"


def test_a_copy_of_the_namespace_finds_what_is_loaded_later():
    assert run(
        "import types, pullback as p\n"
        "copy = types.ModuleType('copy')\n"
        "copy.__dict__.update(vars(p))\n"
        "print(copy.nn.Linear is p.nn.Linear, copy.arccos is p.arccos)"
    ) == "True True"
