"""Files of programs: they say the same again, load without code, train, and cannot do harm."""

import io
import random
import re
import subprocess
import sys
import textwrap
import zipfile
import zlib
from dataclasses import dataclass

import pytest

import pullback as torch
from pullback import control, errors, nn, safetensors
from pullback.cli import main
from pullback.core.handle import Tensor
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.core.stack import bind
from pullback.export import archive, export, load, save
from pullback.export.parse import parse
from pullback.export.text import program_text
from pullback.testing import samples
from pullback.utils import _pytree as pytree
from tests.helpers.export_modules import Function, arguments, leaves, net


def written(program) -> bytes:
    file = io.BytesIO()
    save(program, file)
    return file.getvalue()


def again(program):
    return load(io.BytesIO(written(program)))


def parts(program) -> tuple[str, bytes]:
    return program_text(program), safetensors.save(archive._weights(program))


SMALL = """\
pullback program 1

inputs
  %p_weight: f32[2, 3] = parameter "weight"
  %p_bias: f32[2] = frozen parameter "bias"
  %x: f32[5, 3] = argument

graph
  %linear: f32[5, 2] = aten.linear.default(%x, %p_weight, %p_bias)

takes
  input = %x

gives
  %linear
"""


def small():
    layer = nn.Linear(3, 2)
    layer.bias.requires_grad_(False)
    return export(layer, (torch.ones(5, 3),))


def test_text():
    assert program_text(small()) == SMALL.replace("%x", "%input")


def test_same_program_same_bytes():
    args, kwargs = arguments()
    program = export(net(), args, kwargs)
    data = written(program)
    assert written(export(net(), args, kwargs)) == data
    assert written(load(io.BytesIO(data))) == data
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None


def test_loaded_programs_train_as_the_module():
    model, (args, kwargs) = net(), arguments()
    module = again(export(net(), args, kwargs)).module()
    for _ in range(2):
        expected, found = model(*args, **kwargs), module(*args, **kwargs)
        assert all(map(torch.equal, leaves(found), leaves(expected)))
        for m, out in ((model, expected), (module, found)):
            m.zero_grad()
            (out["a"].sum() + out["c"].sum()).backward()
            with torch.no_grad():
                for p in m.parameters():
                    p.sub_(0.1 * p.grad)
    for name, value in model.state_dict().items():
        assert torch.equal(module.state_dict()[name], value), name


def test_loads_in_a_process_without_the_class(tmp_path):
    args, kwargs = arguments()
    program = export(net(), args, kwargs)
    save(program, tmp_path / "net.pt2")
    x = args[0]
    safetensors.save_file({"x": x}, tmp_path / "x")
    expected = program.module()(*args, **kwargs)["a"].detach()
    script = textwrap.dedent(f"""
        import sys
        sys.modules["test_program"] = None
        import pullback as torch
        module = torch.export.load({str(tmp_path / "net.pt2")!r}).module()
        x = torch.safetensors.load_file({str(tmp_path / "x")!r})["x"]
        compiled = torch.compile(module)
        out = compiled(x, {{"q": torch.ones(3)}}, k=2.0)["a"]
        out.sum().backward()
        assert all(p.grad is not None for p in module.parameters())
        torch.safetensors.save_file({{"out": out.detach()}}, {str(tmp_path / "out")!r})
    """)
    subprocess.run([sys.executable, "-c", script], check=True)
    torch.testing.assert_close(safetensors.load_file(tmp_path / "out")["out"], expected)


def test_folders(tmp_path):
    program = small()
    save(program, f"{tmp_path}/linear/")
    assert (tmp_path / "linear" / "program.txt").read_text() == program_text(program)
    found = load(tmp_path / "linear")
    assert torch.equal(found.state_dict["weight"], program.state_dict["weight"])
    assert not found.state_dict["bias"].requires_grad
    save(found, tmp_path / "linear")  # the folder is there now
    (tmp_path / "linear" / "weights.safetensors").unlink()
    with pytest.raises(errors.FileFormatError, match=r"no weights\.safetensors"):
        load(tmp_path / "linear")


def test_command_line(tmp_path, capsys):
    program = small()
    save(program, tmp_path / "p")
    assert main(["show", str(tmp_path / "p")]) == 0
    assert capsys.readouterr().out == program_text(program)
    (tmp_path / "p").write_bytes(b"something else")
    assert main(["show", str(tmp_path / "p")]) == 1
    assert "no complete zip archive" in capsys.readouterr().err
    assert main(["show", str(tmp_path / "nothing")]) == 1


def test_extra_files(tmp_path):
    save(small(), tmp_path / "p", extra_files={"note.txt": "hello"})
    wanted = {"note.txt": ""}
    load(tmp_path / "p", extra_files=wanted)
    assert wanted == {"note.txt": "hello"}


LITERALS = [
    0, -7, 1 << 40, 2.0, -0.0, 1e-300, 0.1, float("inf"), float("-inf"), 1 + 2j, True, False, None,
    "text \"with\" \\ marks\n", torch.float32, torch.bool, torch.strided, torch.channels_last,
    torch.device("cpu"), [1, [2, None]], (), (1,), (1, "a"), [],
]


@pytest.mark.parametrize("value", LITERALS, ids=repr)
def test_literals_come_back(value):
    from pullback.export.reader import Reader
    from pullback.export.text import literal

    reader = Reader(literal(value))
    found = reader.value()
    reader.end()
    assert repr(found) == repr(value) and type(found) is type(value)


def test_every_operator_comes_back():
    """A sample of every fifth entry: the loaded program says and computes the same."""
    checked = 0
    with_results = [  # and without a change of an argument's sizes, which is refused
        n for n in sorted(registry)
        if not registry[n].schema.endswith("-> ()") and not n.startswith("resize_")
    ]
    for name in with_results:
        if zlib.crc32(name.encode()) % 5:
            continue  # new entries do not change which others are taken
        op = registry[name]
        cases = samples.cases(op)
        if not cases:
            continue
        ov, flat = overload_of(op), samples.flat(op, cases[0])
        places = [place for place in samples.places(flat) if place[1] is None]

        def call(*tensors, ov=ov, flat=flat, places=places):
            out = bind(ov, samples.replaced(flat, places, tensors))
            return [o for o in (out if isinstance(out, (list, tuple)) else (out,))
                    if isinstance(o, Tensor)]

        tensors = tuple(flat[i].detach() for i, _ in places)
        try:
            program = export(Function(call), tensors)
        except (errors.DataDependentError, errors.TransformError):
            continue
        found = again(program)
        assert written(found) == written(program), name
        runs = []
        for run in (found.module(), program.module(), call):
            torch.manual_seed(0)
            runs.append(run(*[t.clone() for t in tensors]))
        for a, b, eager in zip(*runs, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-14, atol=0, equal_nan=True, msg=name)
            torch.testing.assert_close(a, eager, equal_nan=True, msg=name)
        checked += 1
    assert checked > 180


class Checked(nn.Module):
    def forward(self, x):
        torch.ops.aten._print("a line")
        torch.ops.aten._assert_async.msg((x < 100).all(), "too large")
        return x * 2


def test_checks_and_lines_are_kept_and_happen_when_the_program_runs(capsys):
    program = export(Checked(), (torch.ones(2),))
    found = again(program)
    assert written(found) == written(program)
    assert capsys.readouterr().out == ""
    assert found.module()(torch.ones(2)).tolist() == [2.0, 2.0]
    assert capsys.readouterr().out == "a line\n"
    with pytest.raises(RuntimeError, match="too large"):
        found.module()(torch.full((2,), 1000.0))


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new", "says"), [
    ("program 1", "program 2", "line 1.*has version 2"),
    ("pullback", "sillyback", "not the text of a program"),
    ("aten.linear.default", "aten.linear.nothing", "has no aten.linear.nothing"),
    ("aten.linear.default", "aten.from_file.default", "no operator that a file may call"),
    ("aten.linear.default", "aten.add_.Tensor", "no operator that a file may call"),
    ("aten.linear.default", "os.system", "no operator that a file may call"),
    ("aten.linear.default", "__import__", "no operator that a file may call"),
    ("(%x, %p_weight, %p_bias)", "(%x, %p_weight, %nobody)", "%nobody is not defined"),
    ("(%x, %p_weight, %p_bias)", "(%x)", "does not take these arguments"),
    ("(%x, %p_weight, %p_bias)", "(%x, 3, %p_bias)", "does not take these arguments"),
    ("(%x, %p_weight, %p_bias)", "(%x, %p_bias, %p_weight)", "%linear of the program is not"),
    ("%linear: f32[5, 2]", "%linear: f32[5, 3]", r"said to be f32\[5, 3\], and is f32\[5, 2\]"),
    ("%linear: f32[5, 2]", "%linear: f64[5, 2]", "said to be"),
    ("%linear: f32[5, 2]", "%x: f32[5, 2]", "%x is defined twice"),
    ("%linear: f32[5, 2]", "%import: f32[5, 2]", "%import cannot be a name"),
    ("%linear: f32[5, 2]", "%lambda: f32[5, 2]", "%lambda cannot be a name"),
    ("%p_bias: ", "%self: ", "%self cannot be a name"),
    ("%p_bias: ", "%None: ", "%None cannot be a name"),
    ("%linear: f32[5, 2]", "%linear: q32[5, 2]", "unknown dtype"),
    ('parameter "weight"', 'parameter "other"', "the weights have no 'other'"),
    ('parameter "weight"', 'parameter "__class__"', "no name of a parameter"),
    ('parameter "weight"', 'parameter "a/../b"', "no name of a parameter"),
    ('parameter "weight"', 'lambda "weight"', "unknown kind of input"),
    ("%p_weight: f32[2, 3]", "%p_weight: f32[3, 2]", "among the weights"),
    ("input = %x", "input = %linear", "not its arguments"),
    ("input = %x", "input = [%x, %x]", "not its arguments"),
    ("takes\n  input = %x\n", "", "not its arguments"),
    ("gives\n  %linear\n", "", "the text ends before"),
    ("gives\n  %linear", "gives\n  exec", "unknown word"),
    ("gives\n  %linear", "gives\n  " + "[" * 60 + "%linear" + "]" * 60, "brackets"),
    ("graph\n", "code\n", "unexpected section"),
    ("graph\n", "graph\n  grad back\n", "was not switched"),
    ("  %linear: ", "  import os; %linear: ", "expected ref|cannot read"),
])
def test_bad_texts_are_refused(old, new, says):
    _, weights = parts(small())
    assert old in SMALL
    archive._program(SMALL.encode(), weights)
    with pytest.raises(errors.FileFormatError, match=f"(?s){says}"):
        archive._program(SMALL.replace(old, new).encode(), weights)


def test_names_that_no_module_can_have():
    text = program_text(small())
    other = safetensors.save({"forward.weight": torch.ones(2, 3), "bias": torch.ones(2)})
    with pytest.raises(errors.FileFormatError, match="cannot be a module"):
        archive._program(text.replace('"weight"', '"forward.weight"').encode(), other)
    more = safetensors.save({
        "weight": torch.ones(2, 3), "bias": torch.ones(2), "more": torch.ones(1)})
    with pytest.raises(errors.FileFormatError, match="'more', which the program has not"):
        archive._program(text.encode(), more)


def test_what_a_file_cannot_hold(tmp_path):
    from collections import namedtuple

    Pair = namedtuple("Pair", "a b")
    program = export(Function(lambda x: Pair(x, x + 1)), (torch.ones(2),))
    assert isinstance(program.module()(torch.ones(2)), Pair)
    with pytest.raises(errors.ExportError, match="Pair"):
        save(program, tmp_path / "p")
    assert not (tmp_path / "p").exists()
    with pytest.raises(errors.ExportError, match="object"):
        save(export(Function(lambda x, o: x), (torch.ones(2), object())), tmp_path / "p")
    with pytest.raises(TypeError, match="ExportedProgram"):
        save(nn.Linear(1, 1), tmp_path / "p")


def test_other_files_are_refused(tmp_path):
    for data in (b"", b"not a zip", written(small())[:-30]):
        with pytest.raises(errors.FileFormatError):
            load(io.BytesIO(data))
    torch.save({"a": torch.ones(1)}, tmp_path / "checkpoint")
    with pytest.raises(errors.FileFormatError, match=r"no program\.txt"):
        load(tmp_path / "checkpoint")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


WORDS = [
    "%x", "%linear", "parameter", '"a.b"', "aten.add.Tensor", "aten.from_file.default", "none",
    "true", "inf", "-1", "0", "99999999999999999999", "1e999", "[", "]", "(", ")", "{", "}", ",",
    ":", "=", "grad", "back", "off", "dtype.float32", 'device("cuda:0")', "complex(1.0,",
    "ordered{", "keyword", "argument", "frozen", "%", "__class__", '"__class__"', '"forward"',
    "aten.unbind.int", "aten.item.default", "aten.nonzero.default",
]


def mutated(text: str, r: random.Random) -> str:
    kind = r.randrange(6)
    lines, words, at = text.split("\n"), text.split(" "), r.randrange(len(text))
    if kind == 0:
        return text[:at] + chr(r.randrange(300)) * r.randrange(2) + text[at + r.randrange(5):]
    if kind == 1:
        lines.insert(r.randrange(len(lines)), lines.pop(r.randrange(len(lines))))
        return "\n".join(lines)
    if kind == 2:
        words[r.randrange(len(words))] = r.choice(WORDS)
        return " ".join(words)
    if kind == 3:
        words[r.randrange(len(words))] = r.choice(words)
        return " ".join(words)
    if kind == 4:
        found = r.choice(list(re.finditer(r"\d+", text)))
        return text[:found.start()] + r.choice(["0", "7", "65536", "281474976710655", "-1"]) + (
            text[found.end():])
    return text[:at]


def test_mutated_texts_are_read_or_refused():
    args, kwargs = arguments()
    text, weights = parts(export(net(), args, kwargs))
    r, read = random.Random(0), 0
    for _ in range(600):
        changed = text
        for _ in range(r.choice([1, 1, 2, 4])):
            changed = mutated(changed, r) or " "
        try:
            program = archive._program(changed.encode("utf8", "surrogatepass"), weights)
        except errors.FileFormatError as error:
            assert "Fix: " in str(error)
            continue
        assert program_text(program)
        read += 1
    assert 5 < read < 200


def test_mutated_files_are_read_or_refused():
    data, r = written(small()), random.Random(0)
    for _ in range(600):
        changed, at = bytearray(data), r.randrange(len(data))
        changed[at:at + r.randrange(3)] = r.randbytes(r.randrange(4))
        try:
            load(io.BytesIO(bytes(changed)))
        except errors.FileFormatError:
            continue


def branches(x):
    def some(x):
        return torch.cond(x.sum() > 1, lambda x: x.cos().add_(4), lambda x: x - 2, [x])

    return torch.cond(x.sum() > 4, some, lambda x: x + 1, [x])


def test_branches_and_loops():
    program = export(Function(branches), (torch.ones(3),))
    text = program_text(program)
    titles = [line for line in text.splitlines() if line.startswith("graph")]
    assert titles == [
        "graph true_graph_0.true_graph_0", "graph true_graph_0.false_graph_0",
        "graph true_graph_0", "graph false_graph_0", "graph"]
    found = again(program)
    assert program_text(found) == text
    for value in (0.1, 5.0):
        x, y = torch.full((3,), value, requires_grad=True), torch.full((3,), value)
        y.requires_grad_()
        a, b = found.module()(x), branches(y)
        assert torch.equal(a, b)
        a.sum().backward()
        b.sum().backward()
        assert torch.equal(x.grad, y.grad)

    def looped(x, y):
        return control.map(lambda row, y: row.cos() * y, x, y)

    x, y = torch.randn(4, 2), torch.randn(2)
    found = again(export(Function(looped), (x, y)))
    assert torch.equal(found.module()(x, y), x.cos() * y)

    def totals(x):
        return control.scan(lambda carry, row: (carry + row, carry * row), torch.zeros(2), x)

    def halved(x):
        return control.while_loop(lambda t: t.sum() > 1, lambda t: (t / 2,), (x,))

    for function in (totals, halved):
        found = again(export(Function(function), (x.abs(),)))
        torch.testing.assert_close(found.module()(x.abs()), function(x.abs()))


@pytest.mark.parametrize(("old", "new", "says"), [
    ("@true_graph_0, @false", "@other, @false", "no graph @other"),
    ("  gives (%sub,)\n", "", "gives nothing"),
    ("  gives (%sub,)\n", "  gives (%nobody,)\n", "%nobody is not defined"),
    ("graph false_graph_0\n", "graph some_graph_0\n", "no graph @false_graph_0"),
    ("takes %arg0_1: f32[3]", "takes %arg0_1: f32[2]", "gives|is said to be"),
    ("@true_graph_0, @false_graph_0, (%args_0,)", "@true_graph_0, @false_graph_0, (%args_0, %gt)",
     "takes 1 tensors, 2 are given"),
    ("@true_graph_0, @false_graph_0", "@true_graph_0, %gt", "does not take these"),
    ("graph true_graph_0.true_graph_0\n", "graph __class__\n", "no name of a graph"),
    ("higher_order.cond", "higher_order.exec", "no operator that a file may call"),
])
def test_bad_branches_are_refused(old, new, says):
    text, weights = parts(export(Function(branches), (torch.ones(3),)))
    assert old in text
    with pytest.raises(errors.FileFormatError, match=says):
        archive._program(text.replace(old, new, 1).encode(), weights)


@torch.library.custom_op("files::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("files::count", mutates_args=("x",))
def count(x: torch.Tensor) -> None:  # who only writes needs no fake
    x.add_(1)


@torch.library.custom_op("files::told", mutates_args=("x",))
def told(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1) * 2


@told.register_fake
def _(x):
    return torch.empty_like(x)


def registered(x):
    y = twice(x)
    count(y)
    return told(y) + y


def wider(x):
    x = x.to(torch.int8)
    return control.out_dtype(torch.ops.aten.mm.default, torch.int32, x, x)


def chosen(x):
    return x.new_ones(torch.sym_ite(x.shape[0] > 4, x.shape[0], 3)) * (x.shape[0] / 2)


def read(x):
    return x * (x.max().item() * 2 + 1)


@pytest.mark.parametrize("forward", [registered, wider, chosen, read])
def test_operators_beside_the_table(forward):
    class Made(nn.Module):
        def forward(self, x):
            return forward(x)

    shapes = ({0: torch.export.Dim("n", max=9)},) if forward is chosen else None
    program, file = export(Made(), (torch.ones(6, 6),), dynamic_shapes=shapes), io.BytesIO()
    assert not any("_set_grad_enabled" in str(n.target) for n in program.graph.nodes)
    save(program, file)
    file.seek(0)
    made = load(file).module()
    for rows in (6, 3) if forward is chosen else (6,):
        x = torch.rand(rows, 6) * 9
        torch.testing.assert_close(made(x), forward(x))


def test_pytorchs_files_name_registered_operators():
    class Made(nn.Module):
        def forward(self, x):
            return twice(x) + (read(x) if torch.is_grad_enabled() else 0)

    for enabled in (False, True):
        with torch.set_grad_enabled(enabled):
            program, file = export(Made(), (torch.ones(2),)), io.BytesIO()
        if enabled:
            with pytest.raises(errors.ExportError, match=r"cannot hold the value of .*SymFloat"):
                save(program, file, format="pt2")
            continue
        save(program, file, format="pt2")
        file.seek(0)
        assert load(file).module()(torch.ones(2)).tolist() == [2.0, 2.0]


def test_operators_that_nobody_registered():
    class Made(nn.Module):
        def forward(self, x):
            return twice(x)

    text = program_text(export(Made(), (torch.ones(2),)))
    assert "files.twice.default(%x)" in text
    with pytest.raises(errors.FileFormatError, match=r"files.thrice .* nobody has registered it"):
        parse(text.replace("files.twice", "files.thrice"))
    with pytest.raises(errors.FileFormatError, match="no operator that a file may call"):
        parse(text.replace("files.twice", "files.count"))


@dataclass
class Point:
    x: torch.Tensor
    y: torch.Tensor
    z: torch.Tensor | None = None


torch.export.register_dataclass(Point, serialized_type_name="files.Point")


class Pair:
    def __init__(self, one, other, mark):
        self.one, self.other, self.mark = one, other, mark


pytree.register_pytree_node(
    Pair, lambda p: ([p.one, p.other], {p.mark}), lambda c, marks: Pair(*c, *marks),
    flatten_with_keys_fn=lambda p: (
        [(pytree.GetAttrKey(k), getattr(p, k)) for k in ("one", "other")], {p.mark}),
    serialized_type_name="files.Pair", to_dumpable_context=sorted, from_dumpable_context=set)


class Structured(nn.Module):
    def forward(self, p, pairs):
        return {"out": [Point(p.x + p.y, pairs["a"].one * 2)], "rest": pairs["a"]}


def test_registered_classes_are_arguments_and_results():
    one = torch.ones(2)
    args = Point(one, one * 2), {"a": Pair(one * 3, one * 4, "m")}
    program = export(Structured(), args)
    for form in ("text", "pt2"):
        file = io.BytesIO()
        save(program, file, format=form)
        file.seek(0)
        found = load(file).module()(*args)
        (point,) = found["out"]
        assert isinstance(point, Point) and point.x.tolist() == [3.0, 3.0] and point.z is None
        assert found["rest"].mark == "m" and found["rest"].other.tolist() == [4.0, 4.0]
    text = program_text(program)
    for old, new, says in (("files.Point", "files.Line", "nobody has registered the class"),
                           ('"[[', '"[[[', "no structure of"),
                           (" [%add, %mul]", " %add", "brackets"),
                           ("aten.mul.Tensor(%pairs_a_one, 2)",
                            'aten.mul.Tensor(registered "files.Pair" ["m"] [%p_x, %p_y], 2)',
                            "does not take these arguments")):
        with pytest.raises(errors.FileFormatError, match=says):
            parse(text.replace(old, new))


def test_structures_as_texts():
    for value in (Point(1, 2), Point(1, [Pair(2, 3, "m")])):
        spec = pytree.tree_flatten(value)[1]
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="must be None or registered"):
        pytree.register_pytree_node(Function, list, list, to_dumpable_context=list)
