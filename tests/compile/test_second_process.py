"""A second process finds what the first has captured, cut, lowered and compiled, or nothing wrong.

Each test runs small programs in processes of their own, on one cache folder.  `ran` says how often
they cut, lowered and called the C compiler.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

from pullback.compile import native

ROOT = pathlib.Path(__file__).parents[2]

BEGIN = """
import json, sys
import pullback as torch
from pullback.aot import config
from pullback.compile import backend, cache
from pullback.cut import partition

ran = {"cut": 0, "lowered": 0}

def counted(module, name, what):
    function = getattr(module, name)
    def run(*args, **kwargs):
        ran[what] += 1
        return function(*args, **kwargs)
    run.uuid = lambda: name
    setattr(module, name, run)

counted(partition, "min_cut_rematerialization_partition", "cut")
counted(partition, "default_partition", "cut")
counted(backend, "schedule_graph", "lowered")

def tensors(*shape, dtype=torch.float32):
    values = torch.arange(24, dtype=torch.float32)[:6] / 7 - 0.3
    x = values.reshape(2, 3).to(dtype).requires_grad_()
    w = (torch.arange(12.0).reshape(3, 4) / 11).to(dtype).requires_grad_()
    return x, w
"""
END = """
info = torch.compiler.cache_info()
ran["compiled"] = info["code"]["compiled"]
print(json.dumps({"found": found, "ran": ran, "folder": info["folder"], "reasons": info["reasons"],
                  **{k: info[k] for k in ("hits", "misses", "saved", "bypasses")}}))
"""
STEP = """
def f(x, w):
    return ((x @ w).relu() * {number} + shift).pow(2){end}
shift = {shift}
x, w = tensors()
out = torch.compile(f)(x, w)
out.sum().backward()
found = [out.tolist(), x.grad.tolist(), w.grad.tolist()]
plain = [t.detach().clone().requires_grad_() for t in (x, w)]
out = f(*plain)
out.sum().backward()
wanted = [out, *[t.grad for t in plain]]
assert all(torch.allclose(torch.tensor(a), b) for a, b in zip(found, wanted))
"""
NOTHING = {"cut": 0, "lowered": 0, "compiled": 0}


@pytest.fixture(scope="module", autouse=True)
def runtime():
    """The runtime is built before, where all processes look for it."""
    native.runtime()
    native.product("f")


def runner(folder):
    """Runs a program in a new process, on a cache in a folder."""
    from pullback.compile import cache

    for built in cache.folder().glob("*/*"):  # the runtime need not be built again
        if built.name.startswith(("runtime-", "product-", "toolchain-")):
            (folder / built.parent.name).mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy2(built, folder / built.parent.name / built.name)
    folder.chmod(0o700)

    def run(program, **environment):
        made = subprocess.run(
            [sys.executable, "-c", BEGIN + textwrap.dedent(program) + END],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PULLBACK_CACHE_DIR": str(folder),
                 **environment}, capture_output=True, text=True, timeout=300)
        assert made.returncode == 0, made.stderr
        run.complained = made.stderr
        return json.loads(made.stdout.splitlines()[-1])

    run.folder = folder
    return run


@pytest.fixture
def process(tmp_path):
    """Runs a program in a new process, on a cache of its own."""
    return runner(tmp_path / "cache")


@pytest.fixture(scope="module")
def ran_once(tmp_path_factory, runtime):
    """A process has run `step()`: its cache, and what it found."""
    process = runner(tmp_path_factory.mktemp("once") / "cache")
    return process.folder, process(step())


@pytest.fixture
def later(tmp_path, ran_once):
    """Runs a program in a new process, after one that has run `step()`."""
    folder, first = ran_once
    shutil.copytree(folder, tmp_path / "cache")
    process = runner(tmp_path / "cache")
    process.first = first
    return process


def step(number=2.0, shift=0.5, end=""):
    return STEP.format(number=number, shift=shift, end=end)


@pytest.mark.parametrize("end", ["", ".sum()"])  # in halves, and a loss
def test_a_second_process_finds_everything(process, end):
    first = process(step(end=end))
    assert first["misses"] and not first["hits"] and first["ran"]["lowered"] and first["saved"]
    assert first["ran"]["compiled"]
    for seed in "12":  # the order of sets is another one
        second = process(step(end=end), PYTHONHASHSEED=seed)
        assert second["ran"] == NOTHING
        assert (second["hits"], second["misses"], second["saved"]) == (1, 0, 0)
        assert second["found"] == first["found"]


@pytest.mark.parametrize("change", [
    {"number": 3.0}, {"number": -2.0}, {"shift": 0.25}, {"shift": 1}, {"end": ".mean()"}])
def test_other_numbers_are_other_programs(later, change):
    other = later(step(**change))
    assert other["misses"] and not other["hits"] and other["found"] != later.first["found"]


def test_values_of_tensors_outside_are_read_anew(process):
    """One that is found outside is an input, one that is made inside belongs to the program."""
    outside = step(shift="torch.tensor([{}, 1.0, 2.0, 3.0])")
    first = process(outside.replace("{}", "0.0"))
    second = process(outside.replace("{}", "5.0"))
    assert second["ran"] == NOTHING and second["found"] != first["found"]
    inside = step().replace("+ shift", "+ torch.tensor([{}, 1.0, 2.0, 3.0])")
    first, second = process(inside.replace("{}", "0.0")), process(inside.replace("{}", "5.0"))
    assert second["found"] != first["found"]  # and each is right


@pytest.mark.parametrize("line", [
    "torch.set_default_dtype(torch.float64)",
    "config.ban_recompute_reductions = False",
    "config.donated_buffer = False",
    "tensors = lambda tensors=tensors: tensors(dtype=torch.float64)",
    "tensors = lambda: [t.requires_grad_() for t in (torch.ones(5, 3), torch.ones(3, 4))]",
    "tensors = lambda tensors=tensors: [t.detach().t().contiguous().t().requires_grad_() for t in "
    "tensors()]",
    "tensors = lambda tensors=tensors: [t.detach().requires_grad_(i == 0) for i, t in "
    "enumerate(tensors())]",
    "from pullback.compile import keys; keys.package_stamp = lambda: 'another version'",
    "import numpy; numpy.__version__ = '9.9.9'",
    "import sys; sys.version += ' another'",
    "from pullback.compile import toolchain; toolchain.FLAGS += ('-DANOTHER',)",
])
def test_what_matters_is_part_of_the_key(later, line):
    program = step().replace("w.grad.tolist()]", "w.grad is not None and w.grad.tolist()]")
    other = later(line + program.split("plain =")[0])
    assert other["misses"] and not other["hits"]


USERS = """
from pullback.core.op import Pointwise
class mine(Pointwise):
    '''A multiple.'''
    schema = "mine(Tensor self) -> Tensor"
    promote, kept = "float", "function"
    run = "self * {number}"
    grad = {{"self": "grad"}}
    c = "{{self}} * {number}"
    {more}
x, w = tensors()
found = torch.compile(lambda x: torch.mine(x.detach()))(x).tolist()
assert found == (x * {number}).tolist()
"""


def test_operators_of_the_program_are_part_of_the_key(process):
    process(USERS.format(number=2.0, more=""))
    assert process(USERS.format(number=2.0, more=""))["hits"] == 1
    assert process(USERS.format(number=4.0, more=""))["misses"] == 1


def test_code_by_a_function_of_the_program_is_found_by_what_it_writes(process):
    rule = ("lower = lambda b, example, x: b.pointwise('mul', x, factor, dtype='f')\n"
            "    globals()['factor'] = ")
    for number in (2.0, 4.0):
        made = process(USERS.format(number=number, more=rule + str(number)))
        assert made["bypasses"] == 1 and not made["hits"]
        assert list(made["reasons"]) == [
            "aten.mine.default is lowered by a function of the program's own"]


def test_settings_that_are_functions(process):
    program = "config.joint_custom_pass = {}\n" + step()
    made = process(program.format("lambda module, inputs: module"))
    assert made["bypasses"] and "joint_custom_pass is a function" in str(made["reasons"])
    named = """
class Pass:
    def __call__(self, module, inputs):
        return module
    def uuid(self):
        return "{}"
config.joint_custom_pass = Pass()
""" + step()
    process(named.format("one"))
    assert process(named.format("one"))["ran"] == NOTHING
    assert process(named.format("two"))["misses"]


def test_why_programs_are_not_kept(process):
    numpy = process(step().replace("compile(f)", "compile(f, backend='numpy')"))
    assert numpy["bypasses"] == numpy["misses"] == numpy["saved"] == 0  # nothing is to be kept
    off = process("config.enable_autograd_cache = False\n" + step())
    assert off["bypasses"] == off["misses"] == off["saved"] == 0
    none = process(step(), PULLBACK_CC="no-compiler-of-this-name")
    assert none["reasons"] == {"there is no C compiler": 1} and none["ran"]["compiled"] == 0
    strict = """
from pullback import errors
config.strict_autograd_cache = True
x, w = tensors()
try:
    with config.patch(joint_custom_pass=lambda module, inputs: module):
        torch.compile(lambda x: x * 2)(x)
except errors.CompileError as error:
    found = type(error).__name__, str(error)
"""
    name, text = process(strict)["found"]
    assert name == "CacheBypassed" and "without uuid() (<string>:" in text and "False" in text


def test_a_forward_without_its_backward_is_cut_again(later):
    """What a forward saves and what a backward reads come from one cut."""
    for path in later.folder.glob("*/*.backward"):
        path.unlink()
    again = later(step())
    assert again["ran"]["cut"] == 1 and again["ran"]["compiled"] == 0 and again["misses"]
    assert later(step())["ran"] == NOTHING
    for path in later.folder.glob("*/*.backward"):  # that of another cut
        entry = path.read_bytes()
        at = entry.index(b'"cut": "') + 8
        program = f"cache.write_sealed({path.name!r}, {entry[:at]!r} + b'0' * 40 + " \
                  f"{entry[at + 40:-40]!r})\nfound = 0"
        later(program)
    assert later(step())["ran"]["cut"] == 1
    assert later(step())["ran"] == NOTHING


def test_a_forward_that_nobody_has_called_backward_of(process):
    """Evaluation with parameters, or gradients of `func` in a step that nobody differentiates."""
    lines = """
w = torch.linspace(-1, 1, 12).reshape(4, 3).requires_grad_()
y = torch.compile(lambda w: torch.sin(torch.linspace(0, 1, 8).reshape(2, 4) @ w) * 2)(w)
found = y.tolist()
"""
    first = process(lines)
    again = process(lines)
    assert again["ran"] == NOTHING and again["found"] == first["found"] and again["hits"] == 1
    more = process(lines + "y.sum().backward()\nfound = w.grad.tolist()")
    assert more["ran"]["cut"] == 1
    last = process(lines + "y.sum().backward()\nfound = w.grad.tolist()")
    assert last["ran"] == NOTHING and last["found"] == more["found"]


@pytest.mark.parametrize("suffix", [".facts", ".forward", ".backward", ".plan", ".so"])
@pytest.mark.parametrize("damage", ["cut", "writable"])
def test_damaged_entries_are_made_again(later, suffix, damage):
    paths = [p for p in later.folder.glob(f"*/*{suffix}") if "-" not in p.name]
    assert paths
    for path in paths:
        data = path.read_bytes()
        if damage == "writable":  # for others
            path.chmod(0o666)
        else:
            path.unlink()
            path.write_bytes(data[: len(data) // 2])
    made = later(step())
    assert made["found"] == later.first["found"]
    assert made["ran"] != NOTHING or suffix == ".facts"
    assert later(step())["ran"] == NOTHING


def test_a_folder_that_cannot_be_written_is_read(later):
    if os.getuid() == 0:  # whom no mode stops
        deny = "import os, tempfile\nreal = tempfile._TemporaryFileWrapper\n" \
               "cache._readable = None\n" \
               "def refuse(*a, **k):\n    raise PermissionError(13, 'Permission denied')\n" \
               "cache.tempfile = type('T', (), dict(NamedTemporaryFile=refuse, " \
               "mkdtemp=tempfile.mkdtemp, mkstemp=tempfile.mkstemp))\n"
    else:
        deny = ""
        later.folder.chmod(0o500)
    second = later(deny + step())
    later.folder.chmod(0o700)
    assert second["ran"] == NOTHING and second["found"] == later.first["found"]
    assert second["folder"] != str(later.folder) and "cannot be written" in later.complained


def test_without_a_folder(process):
    made = process(step(), PULLBACK_CACHE_DIR="/proc/no/folder/here")
    assert made["misses"] == 1 and made["found"]


def test_writers_at_the_same_time(process):
    program = BEGIN + step() + END
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PULLBACK_CACHE_DIR": str(process.folder)}
    running = [subprocess.Popen([sys.executable, "-c", program], env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    found = [p.communicate(timeout=300) for p in running]
    assert not any(p.returncode for p in running), [e for _, e in found]
    results = [json.loads(out.splitlines()[-1])["found"] for out, _ in found]
    assert results[0] == results[1] == results[2]
    assert process(step())["ran"] == NOTHING


def test_clearing(later):
    names = "from pullback.torch.autograd_cache import AOTAutogradCache, FxGraphCache\n"
    cut = later(names + "AOTAutogradCache.clear()\n" + step())
    assert cut["ran"]["cut"] == 1 and cut["ran"]["lowered"] == cut["ran"]["compiled"] == 0
    assert later(step())["ran"] == NOTHING
    assert later("count = torch.compiler.clear_cache()\nassert count > 3\n" + step())["ran"][
        "lowered"] == 2
    fresh = """
from pullback.torch.autograd_cache import fresh_cache
held = {}
with fresh_cache(held):
""" + textwrap.indent(step(), "    ")
    made = later(fresh + "assert any(name.endswith('.forward') for name in held)\n")
    assert made["misses"] == 1 and made["folder"] == str(later.folder)


def test_memory_limits(process):
    limited = step(end=".sum()").replace("compile(f)", "compile(f, memory='{}')")
    first = process(limited.format("1MB"))
    second = process(limited.format("1MB"))
    assert second["ran"] == NOTHING and second["found"] == first["found"]
    assert process(limited.format("2MB"))["misses"]


def test_partitioners_of_users(process):
    program = """
from pullback._inductor import config as generator
class Mine:
    def __call__(self, module, inputs, num_fwd_outputs, **options):
        return partition.default_partition(module, inputs, num_fwd_outputs=num_fwd_outputs)
    {}
generator.custom_partitioner_fn = Mine()
""" + step()
    made = process(program.format(""))
    assert "custom_partitioner_fn is a function" in str(made["reasons"])
    named = program.format("def uuid(self): return 'number {}'")
    assert process(named.format(1))["ran"]["cut"]
    assert process(named.format(1))["ran"] == NOTHING
    assert process(named.format(2))["misses"]


AHEAD = """
from pullback.aot import aot_function, aot_module
from pullback.compile.ahead import memory_efficient_fusion, ts_compile
x, w = tensors()
scale = torch.tensor([1.0, 2.0, 3.0, 4.0])
f = aot_function(lambda x, w: (x @ w).sin() * torch.tensor([1.0, 2.0, 3.0, {}]), ts_compile)
out = f(x, w)
out.sum().backward()
found = [out.tolist(), x.grad.tolist()]
with torch.no_grad():
    found.append(f(x, w).tolist())
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4))
fused = memory_efficient_fusion(net)
out = fused(x)
out.pow(2).sum().backward()
found += [out.tolist(), [p.grad.tolist() for p in net.parameters()], net[2].running_mean.tolist()]
"""


def test_compilers_of_aot_function(process):
    first = process(AHEAD.format("4.0"))
    assert first["misses"] == 3 and first["saved"] == 5
    second = process(AHEAD.format("4.0"))
    assert second["ran"] == NOTHING and second["hits"] == 3
    assert second["found"] == first["found"]
    third = process(AHEAD.format("5.0"))  # a constant is the graph's own
    assert third["ran"] == NOTHING and third["found"] != first["found"]
    assert third["found"][0][0][:3] == first["found"][0][0][:3]
    inputs = AHEAD.replace("torch.tensor([1.0, 2.0, 3.0, {}])", "scale")
    none = process(inputs, PULLBACK_CC="no-compiler-of-this-name")
    assert none["reasons"] == {"uuid() of ts_compile is None": 3}  # there is nothing to keep


MINE = """
from pullback.aot import SerializableAOTDispatchCompiler, SerializableCallable
called = []

class Scaled(SerializableCallable):
    def __init__(self, number):
        self.number = number
    def __call__(self, x):
        return [x * self.number]
    @classmethod
    def serialize_compile_artifacts(cls, fn):
        {serialize}
    @classmethod
    def deserialize_compile_artifacts(cls, data):
        return cls(float(data))

def scaled(module, inputs):
    called.append(1)
    return Scaled(next(float(n.args[1]) for n in module.graph.nodes if len(n.args) > 1))

def with_list(held, module, inputs):
    return scaled(module, inputs)

compiler = SerializableAOTDispatchCompiler(Scaled, scaled{uuid})
"""
SCALED = """
import mine
from pullback.aot import aot_function
x, w = tensors()
out = aot_function(lambda x: x * {number}, mine.compiler)(x)
out.sum().backward()
assert out.tolist() == (x * {number}).tolist() and x.grad.tolist() == [[{number}] * 3] * 2
found = len(mine.called)
"""


@pytest.fixture
def mine(process, tmp_path):
    """Runs a function with a compiler of the user's, which is in a file."""
    def run(number=2.0, uuid="", serialize="return repr(fn.number).encode()", comment=""):
        text = MINE.format(uuid=uuid, serialize=serialize)
        if not (tmp_path / "mine.py").exists() or comment is not None:
            (tmp_path / "mine.py").write_text(text + f"# {comment}\n")
            os.utime(tmp_path / "mine.py", (1, 1))
        return process(f"sys.path.insert(0, {str(tmp_path)!r})\nsys.dont_write_bytecode = True\n"
                       + SCALED.format(number=number))

    return run


def test_compilers_of_users_give_bytes(process, mine):
    assert mine()["found"] == 2
    second = mine()
    assert second["found"] == 0 and second["hits"] == 1 and second["ran"] == NOTHING
    assert mine(number=3.0)["found"] == 2  # another graph
    assert mine(comment="another file")["found"] == 2
    for path in process.folder.glob("*/*.forward_code"):
        path.write_bytes(path.read_bytes()[:-1])
    assert mine()["found"] == 1 and mine()["found"] == 0  # its backward was there


def test_a_uuid_says_which_compiler_it_is(mine):
    assert mine(uuid=", 'one'")["found"] == 2
    assert mine(uuid=", lambda: 'one'", comment="another file")["found"] == 0
    assert mine(uuid=", 'two'")["found"] == 2


@pytest.mark.parametrize("serialize, reason", [
    ("raise ValueError('no')", "gave no bytes: ValueError: no"),
    ("return 'text'", "gave str in the place of bytes")])
def test_compilers_that_give_no_bytes(mine, serialize, reason):
    for _ in range(2):
        made = mine(serialize=serialize)
        assert made["found"] == 2 and made["bypasses"] == 2 and reason in str(made["reasons"])


@pytest.mark.parametrize("compiler, reason", [
    ("SerializableAOTDispatchCompiler(mine.Scaled, lambda m, i: mine.scaled(m, i))",
     "comes from no file and has no uuid()"),
    ("SerializableAOTDispatchCompiler(dict, mine.scaled)", "cannot be made bytes"),
    ("SerializableAOTDispatchCompiler(mine.Scaled, functools.partial(mine.with_list, []))",
     "partial holds a list and has no uuid()")])
def test_compilers_that_nobody_could_recognise(process, tmp_path, compiler, reason):
    (tmp_path / "mine.py").write_text(MINE.format(
        uuid="", serialize="return repr(fn.number).encode()"))
    made = process(f"""
import functools
sys.path.insert(0, {str(tmp_path)!r})
import mine
from pullback.aot import aot_function, SerializableAOTDispatchCompiler
x, w = tensors()
compiler = {compiler}
found = aot_function(lambda x: x.detach() * 2, lambda m, i: compiler(m, i))(x).tolist()
assert torch.compiler.cache_info()["bypasses"] == 0  # it does not say that it gives bytes
assert found == aot_function(lambda x: x.detach() * 2, compiler)(x).tolist()
""")
    assert reason in str(made["reasons"])
