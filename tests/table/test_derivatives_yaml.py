"""The table as text: the reader of the YAML subset, dump, load and validate."""

import io

import pytest

import pullback as torch
from pullback import derivatives, errors, func
from pullback.core.op import registry
from pullback.core.overload import overload, overload_of
from pullback.table import yaml


@pytest.fixture(autouse=True)
def same_table():
    """Give every operator its derivative back."""
    before = {op: {a: getattr(op, a) for a in derivatives.ATTRIBUTES} for op in registry.values()}
    yield
    for op, attributes in before.items():
        if any(getattr(op, a) is not value for a, value in attributes.items()):
            for a, value in attributes.items():
                setattr(op, a, value)
            overload_of(op).forget()


def forget_derivative(*names: str) -> None:
    """Make operators look as if nobody had written their derivative."""
    empty = {"grad": {}, "dispatch": {}, "push": None, "diff_outputs": None}
    for name in names:
        for attribute in derivatives.ATTRIBUTES:
            setattr(registry[name], attribute, empty.get(attribute, ()))
        overload(name).forget()


def state() -> str:
    return derivatives.dump()


# the reader


def test_reader():
    text = """---
# a comment
- name: foo(Tensor self) -> Tensor   # another
  self: grad * x#y
  "in quotes": 'it''s'
  double: "a \\"b\\"
    c   # no comment"
  literal: |
    one
      two  # kept

    four
  folded: >-
    a
    b

    c
  long: one
    two
    three  # comment
  list: [True, "a, b", 'c',
    d e]
  dashes:
    - x
    - y
  level:
  - p
  nothing:
  nested:
    A:
      b: c
    D: e

-   name: bar
    x: y
...
"""
    first, second = yaml.read(text)
    assert first == {
        "name": "foo(Tensor self) -> Tensor",
        "self": "grad * x#y",
        "in quotes": "it's",
        "double": 'a "b" c   # no comment',
        "literal": "one\n  two  # kept\n\nfour\n",
        "folded": "a b\nc",
        "long": "one two three",
        "list": ["True", "a, b", "c", "d e"],
        "dashes": ["x", "y"],
        "level": ["p"],
        "nothing": "",
        "nested": {"A": {"b": "c"}, "D": "e"},
    }
    assert second == {"name": "bar", "x": "y"}
    assert (first.line, second.line, first.lines["long"]) == (3, 34, 18)


@pytest.mark.parametrize(
    "text, expected", [("", []), ("# only a comment\n", []), ("- a\n- b", ["a", "b"])]
)
def test_reader_of_little(text, expected):
    assert yaml.read(text) == expected


@pytest.mark.parametrize(
    "text, fragment",
    [
        ("name: x\n", "1: a list of entries was expected"),
        ("- a: b\n  a: c\n", "2: 'a' is given twice"),
        ("- a: x: y\n", "1: .*colon"),
        ("- a: {b: c}\n", "1: '{' begins something that is not supported"),
        ("- a: &anchor b\n", "1: '&' begins"),
        ("- a: *anchor\n", "1: '\\*' begins"),
        ("- a: !!int 3\n", "1: '!' begins"),
        ("- a: 'b\n  c\n", "1: a quotation that does not end"),
        ("- a: 'b' c\n", "1: text behind a quotation"),
        ("- a: [b, c\n", "1: a list that does not end"),
        ("- a: [b, [c]]\n", "1: a list that does not end, or lists within lists"),
        ("- a: [b] c\n", "1: text behind a list"),
        ("- a: b\n\t c: d\n", "2: a tab in the indentation"),
        ("- a: 'b'\n    c: d\n", "2: this line is indented more"),
        ("- a: b\n  word\n", "2: cannot read 'word'"),
        ("- a: b\nc: d\n", "2: cannot read 'c: d'"),
        ("-\n", "1: an empty item"),
    ],
)
def test_reader_refuses(text, fragment):
    with pytest.raises(errors.FormulaError, match=fragment) as info:
        yaml.read(text, "table.yaml")
    assert str(info.value).startswith("table.yaml:")


@pytest.mark.parametrize(
    "text",
    [
        "grad",
        "-grad * 2",
        "- grad",
        "[grad, grad]",
        "1",
        "-1.5e3",
        "true",
        "",
        "a: b",
        "a #b",
        "it's",
        '"x"',
        "lambda g: g",
        "{1: 2}",
        "*a",
        "x if y else z:",
        "0.5 * grad",
        "None",
    ],
)
def test_scalars_survive(text):
    assert yaml.read(f"- key: {yaml.scalar(text)}") == [{"key": text}]


# dump


def test_dump_of_entries():
    stream = io.StringIO()
    text = derivatives.dump(
        stream, ["tanh", "sign", "mm", "sum.dim_IntList", registry["sort.stable"]]
    )
    assert stream.getvalue() == text
    found = {e["name"].partition("(")[0]: e for e in yaml.read(text)}
    assert found["tanh"]["self"] == registry["tanh"].grad["self"]
    assert found["tanh"]["result"] == "auto_element_wise"
    assert found["sign"]["self"] == "zeros_like(self)"
    assert found["mm"]["result"] == "mm(self_t, mat2_p) + mm(self_p, mat2_t)"
    assert found["sum.dim_IntList"]["result"] == "auto_linear"
    assert found["sort.stable"]["values"] == registry["sort.stable"].push["values"]


def test_dump_says_where_forward_mode_comes_from():
    text = derivatives.dump(ops=["mul.Tensor", "layer_norm", "zeros"])
    assert "# forward mode: the gradient formulas (element-wise)" in text
    assert "# composite: differentiates by its parts" in text
    assert "# no derivative" in text


def test_dump_of_marks():
    text = derivatives.dump(ops=["detach", "gather"])
    found = yaml.read(text)
    assert (
        found[0]["output_differentiability"] == ["False"]
        and found[0]["self"] == "non_differentiable"
    )
    assert found[1]["index"] == "non_differentiable"


def test_the_whole_table_survives():
    before = state()
    named = [e["name"].partition("(")[0] for e in yaml.read(before)]
    assert len(named) > 250
    formulas = {n: overload(n).rule and overload(n).rule.source() for n in named}
    forget_derivative(*named)
    assert state() == ""
    assert sorted(derivatives.load(before)) == sorted(named)
    assert yaml.read(state()) == yaml.read(before)
    assert {n: overload(n).rule and overload(n).rule.source() for n in named} == formulas


# validate


def test_the_shipped_table_is_valid():
    assert derivatives.validate() == len(registry)


def test_validate_finds_all_that_is_wrong():
    registry["exp"].grad = {"self": "grad * reslt"}
    registry["log"].grad = {"self": "grads[0]"}
    with pytest.raises(errors.FormulaError, match="2 of 3 entries") as info:
        derivatives.validate(["exp", "log", "sin"])
    assert "reslt" in str(info.value) and "grads[0]" in str(info.value)


# load


def test_an_operator_without_derivative_gets_one(tmp_path):
    forget_derivative("exp")
    x = torch.zeros(2, requires_grad=True)
    with pytest.raises(errors.DerivativeNotWritten):
        x.exp().sum().backward()
    path = tmp_path / "more.yaml"
    path.write_text(
        "- name: exp(Tensor self) -> Tensor\n"
        "  self: grad * result * 7\n  result: auto_element_wise\n"
    )
    assert derivatives.load(path) == ["exp"]
    assert derivatives.load(str(path)) == [], "the same entry again changes nothing"
    for call in (torch.exp, lambda x: x.exp()):
        x.grad = None
        call(x).sum().backward()
        assert x.grad.tolist() == [7, 7]
    assert func.jvp(torch.exp, (x.detach(),), (torch.ones(2),))[1].tolist() == [7, 7]


def test_a_derivative_is_replaced_only_on_request():
    text = "- name: exp(Tensor self) -> Tensor\n  self: grad * result * 7\n"
    before = state()
    with pytest.raises(
        errors.FormulaError, match=r"(?s)'exp' has a derivative already.*replace=True"
    ):
        derivatives.load(text)
    assert state() == before
    assert derivatives.load(text, replace=True) == ["exp"]
    assert registry["exp"].grad == {"self": "grad * result * 7"}


@pytest.mark.parametrize("call", [lambda x, y: x * y, torch.mul, lambda x, y: x.mul(y)])
def test_functions_that_were_generated_before_are_replaced(call):
    x = torch.full((2,), 3.0, requires_grad=True)
    y = torch.full((2,), 5.0)
    old = call(x, y)
    old.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [5, 5]
    derivatives.load(
        "- name: mul.Tensor(Tensor self, Tensor other) -> Tensor\n"
        "  self: grad * other.shape[0]\n  other: grad * self\n",
        replace=True,
    )
    x.grad = None
    call(x, y).sum().backward()
    assert x.grad.tolist() == [2, 2]
    x.grad = None
    old.sum().backward()
    assert x.grad.tolist() == [5, 5], "a graph keeps the formulas that it was made with"


def test_load_is_atomic(tmp_path):
    forget_derivative("exp", "log", "sin")
    before = state()
    good = "- name: exp(Tensor self) -> Tensor\n  self: grad * result\n"
    for bad in (
        "- name: log(Tensor self) -> Tensor\n  self: grad / slef\n",
        "- name: no_such(Tensor self) -> Tensor\n  self: grad\n",
        "- name: exp(Tensor self) -> Tensor\n  self: grad\n",
        "- name: cos(Tensor self) -> Tensor\n  self: grad\n",
        "- name: log(Tensor self) -> Tensor\n  self: 'grad\n",
    ):
        with pytest.raises((errors.FormulaError, errors.SchemaError)):
            derivatives.load(good + bad)
        assert state() == before
        assert overload("exp").rule is None
    with pytest.raises(FileNotFoundError):
        derivatives.load(tmp_path / "missing.yaml")


def refused(text: str, kind=errors.FormulaError, **options) -> str:
    before = state()
    with pytest.raises(kind) as info:
        derivatives.load(text, **options)
    assert state() == before
    assert "Fix: " in str(info.value)
    return str(info.value)


def test_unknown_schema():
    message = refused("- name: tahn(Tensor self) -> Tensor\n  self: grad\n", errors.SchemaError)
    assert "no operator 'tahn'" in message and "tanh(Tensor self) -> Tensor" in message
    message = refused("- name: add.Foo(Tensor self) -> Tensor\n  self: grad\n", errors.SchemaError)
    assert "add.Tensor(" in message and "add.Scalar(" in message
    message = refused(
        "- name: multiply.Foo(Tensor self) -> Tensor\n  self: grad\n", errors.SchemaError
    )
    assert "mul.Tensor(" in message
    message = refused("- name: qqqqqq(Tensor self) -> Tensor\n  self: grad\n", errors.SchemaError)
    assert "define the operator first" in message
    message = refused(
        "- name: exp_(Tensor(a!) self) -> Tensor(a!)\n  self: grad\n", errors.SchemaError
    )
    assert "entry of 'exp': the in-place variant follows" in message


@pytest.mark.parametrize(
    "schema",
    [
        "exp(Tensor x) -> Tensor",
        "exp(Tensor self, int n) -> Tensor",
        "exp(Tensor? self) -> Tensor",
        "exp(Tensor self) -> Tensor[]",
        "exp(Tensor self) -> (Tensor, Tensor)",
    ],
)
def test_different_schema(schema):
    message = refused(f"- name: {schema}\n  self: grad\n", errors.SchemaError)
    assert (
        "differs from that of the table" in message
        and "table: exp(Tensor self) -> Tensor" in message
    )


def test_unreadable_schema():
    assert "cannot read the operator schema" in refused(
        "- name: exp\n  self: grad\n", errors.SchemaError
    )


def test_schemas_may_differ_in_spelling():
    assert '"none"' in registry["gelu"].schema and "SymInt[]" in registry["expand"].schema
    schemas = [
        registry["gelu"].schema.replace('"none"', "'none'"),
        registry["expand"].schema.replace("SymInt[]", "int[]"),
    ]
    for schema, name in zip(schemas, ("gelu", "expand"), strict=True):
        entry = f"- name: {schema}\n  self: grad.sum_to_size(self.shape) * 7\n"
        assert derivatives.load(entry, replace=True) == [name]


def test_duplicate_schema():
    entry = "- name: exp(Tensor self) -> Tensor\n  self: grad * 7\n"
    message = refused(entry + entry, errors.SchemaError, replace=True)
    assert message.startswith("<text>:3: the operator has two entries")


def test_messages_name_the_line(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("# head\n\n- name: exp(Tensor self) -> Tensor\n  self: grad * reslt\n")
    with pytest.raises(errors.FormulaError, match=r"^mine.yaml:3: formula uses 'reslt'"):
        derivatives.load(path, replace=True)


@pytest.mark.parametrize(
    "lines, fragment",
    [
        ("", "says nothing"),
        ("slef: grad", "did you mean 'self'"),
        ("self: grad\n  rsult: self_t", "did you mean 'result'"),
        ("self:", "no formula for 'self'"),
        ("self: [grad]", "no formula for 'self'"),
        ("self: grad *", "cannot read the formula"),
        ("self: grad\n  result: self_p", "uses no tangent"),
        ("self: grad\n  output_differentiability: True", "is no list"),
        ("self: grad\n  output_differentiability: [True, True]", "2 items for 1 outputs"),
        ("self: grad\n  output_differentiability: [a, b]", "lists 2 conditions"),
        ("self: grad\n  output_differentiability: [False]", "no differentiable output"),
        ("self: grad\n  dispatch:\n    Default:\n      self: grad", "'self' beside dispatch"),
        ("dispatch: yes", "does not map keys"),
        ("dispatch:\n    Default: grad", "does not map keys"),
        ("dispatch:\n    AutogradTPU:\n      self: grad", "unknown dispatch key 'AutogradTPU'"),
        ("self: non_differentiable\n  result: self_t", "derivative ignored"),
        ("self: grad.expand(self.sizes())", "plain sizes"),
        ("self: grads[0]", "write grad"),
    ],
)
def test_refused_entries(lines, fragment):
    assert fragment in refused(f"- name: exp(Tensor self) -> Tensor\n  {lines}\n", replace=True)


@pytest.mark.parametrize("text", ["- just text\n", "- self: grad\n", "- name:\n  self: grad\n"])
def test_entries_without_a_name(text):
    assert "an entry without a name" in refused(text)


@pytest.mark.parametrize(
    "line", ["input: grad", "input: non_differentiable", "input: zeros_like(input)"]
)
def test_composites_are_refused(line):
    message = refused(f"- name: {overload('layer_norm').schema}\n  {line}\n")
    assert "composite" in message


def test_marks():
    forget_derivative("gather", "sign")
    changed = derivatives.load(
        f"- name: {overload('gather').schema}\n  self: grad\n  index: non_differentiable\n"
        "- name: sign(Tensor self) -> Tensor\n  self: zeros_like(grad)\n"
    )
    assert changed == ["gather", "sign"]
    assert registry["gather"].nondiff == ("index",)
    assert registry["sign"].constant == ("self",) and registry["sign"].grad == {}


def test_conditions_and_flags():
    forget_derivative("exp", "sort.stable")
    derivatives.load(
        "- name: exp(Tensor self) -> Tensor\n  self: grad\n"
        "  output_differentiability: ['self.ndim > 1']\n"
        f"- name: {overload('sort.stable').schema}\n  self: grad\n"
        "  output_differentiability: [true, False]\n"
    )
    assert registry["exp"].diff_outputs == "self.ndim > 1"
    assert registry["sort.stable"].diff_outputs == (True, False)
    assert torch.exp(torch.ones(2, 2, requires_grad=True)).requires_grad
    assert not torch.exp(torch.ones(2, requires_grad=True)).requires_grad
    assert "output_differentiability: ['self.ndim > 1']" in derivatives.dump(ops=["exp"])


def test_outputs_that_are_never_differentiable():
    forget_derivative("exp")
    derivatives.load("- name: exp(Tensor self) -> Tensor\n  output_differentiability: [False]\n")
    assert not torch.exp(torch.ones(2, requires_grad=True)).requires_grad


def test_not_implemented():
    forget_derivative("exp")
    derivatives.load("- name: exp(Tensor self) -> Tensor\n  self: 'not_implemented(\"exp\")'\n")
    out = torch.exp(torch.ones(2, requires_grad=True))
    with pytest.raises(errors.DerivativeNotWritten, match="'exp' is not implemented"):
        out.sum().backward()


def test_dispatch():
    forget_derivative("exp")
    text = (
        "- name: exp(Tensor self) -> Tensor\n  dispatch:\n    Default:\n      self: grad * result\n"
        "      result: auto_element_wise\n    AutogradCPU:\n"
        "      self: grad * 11\n      result: self_t * 11\n"
        "    AutogradNestedTensor:\n      self: grad\n      result: self_t\n"
    )
    derivatives.load(text)
    x = torch.zeros(2, requires_grad=True)
    x.exp().sum().backward()
    assert x.grad.tolist() == [11, 11]
    assert func.jvp(torch.exp, (torch.zeros(2),), (torch.ones(2),))[1].tolist() == [11, 11]
    assert yaml.read(derivatives.dump(ops=["exp"])) == yaml.read(text)


def test_several_lines():
    forget_derivative("exp")
    derivatives.load(
        "- name: exp(Tensor self) -> Tensor\n  self: |\n    grad\n"
        "      * result\n  result: >\n    self_t\n    * result\n"
    )
    assert registry["exp"].grad == {"self": "grad * result"}
    assert registry["exp"].push == "self_t * result"


@pytest.mark.parametrize(
    "classic, ours",
    [
        ("grad.expand(self.sym_sizes())", "grad.expand(self.shape)"),
        ("grad.sym_sizes()", "grad.shape"),
        ("grad * self.sym_size(-1)", "grad * self.shape[-1]"),
        ("grad / self.sym_numel()", "grad / self.numel()"),
        ("f(grad, self.sym_strides())", "f(grad, self.stride())"),
        ("grad.to(self.scalar_type())", "grad.to(self.dtype)"),
        ("grad * self.dim()", "grad * self.dim()"),
        ("grad.sum(self.sym_sizes(), true)", "grad.sum(self.shape, True)"),
    ],
)
def test_classic_spellings(classic, ours):
    assert derivatives._python(classic, overload("exp")) == ours


def test_classic_spellings_save_facts_only():
    forget_derivative("exp")
    derivatives.load(
        "- name: exp(Tensor self) -> Tensor\n"
        "  self: grad.expand(self.sym_sizes()) * self.sym_numel()\n"
    )
    assert [local for local, _, _, _ in overload("exp").rule.saves] == [
        "self__numel",
        "self__shape",
    ]


def test_names_of_nodes_follow_the_entries_that_have_derivatives():
    forget_derivative("mul.Tensor", "mul.Scalar")
    schema = overload("mul.Scalar").schema
    derivatives.load(f"- name: {schema}\n  self: grad * other\n")
    assert overload("mul.Scalar").rule.name == "MulBackward0"
    derivatives.load(
        "- name: mul.Tensor(Tensor self, Tensor other) -> Tensor\n  self, other: (grad, grad)\n"
    )
    assert overload("mul.Scalar").rule.name == "MulBackward1"


# what files may say: they may come from anybody

HARMFUL = [
    "(open('{path}', 'w'), [0 for open in ()], grad)[2]",
    "(open('{path}', 'w'), (lambda open: 0), grad)[2]",
    "[grad for open in [open('{path}', 'w')]][0]",
    "[grad for f in [[open for open in ()], open('{path}', 'w')]][0]",
    "(x := open('{path}', 'w')) and grad",
    "grad.__class__.__init__.__globals__['__builtins__']['open']('{path}', 'w')",
    "grad.new_zeros.__globals__",
    "sum.__self__.open('{path}', 'w')",
    "math.__loader__",
    "math.__spec__.loader.load_module('os').system('touch {path}')",
    "''.format(grad)",
    "'{{0.__class__}}'.format(grad)",
    "f'{{grad.__class__}}'",
    "grad.numpy().tofile('{path}')",
    "grad.tolist()",
    "grad.backward()",
    "grad.register_hook(len)",
    "grad.add_(1)",
    "grad._payload",
    "grad.grad_fn",
    "grad.requires_grad_()",
    "needs_input_grad.__globals__",
    "[f for f in (grad,)][0].storage",
    "(lambda: grad)()",
    "[grad][0](1)",
    "{{'a': grad}}['a']",
    "{{x for x in (grad,)}}",
    "{{x: x for x in (grad,)}}",
    "[grad async for x in grad]",
    "b'bytes' and grad",
    "eval('grad')",
    "exec('grad')",
    "getattr(grad, 'data')",
    "type(grad)",
    "vars()",
    "globals()",
    "input()",
    "print(grad)",
    "__import__('os').system('touch {path}')",
    "__builtins__['open']('{path}', 'w')",
    "_conj.__globals__",
    "_index",
    "__name__",
    "yield grad",
    "grad) or open('{path}', 'w'",
    "grad\n  if True: open('{path}', 'w')",
    "grad; open('{path}', 'w')",
]


@pytest.mark.parametrize("number", range(len(HARMFUL)))
@pytest.mark.parametrize("place", ["self", "result", "condition"])
def test_formulas_reach_nothing_but_tensors(number, place, tmp_path):
    """Refused when the file is read: no formula of it is ever made a function."""
    forget_derivative("sin")
    formula = HARMFUL[number].format(path=tmp_path / "harm").replace("\n", "\n\n")
    lines = {"self": "grad * self.cos()"}
    if place == "condition":
        formula = formula.replace("grad", "self")
        lines["output_differentiability"] = "['" + formula.replace("'", "''") + "']"
    else:
        formula = formula.replace("grad", "self_t") if place == "result" else formula
        lines[place] = yaml.scalar(formula)
    before = state()
    text = "\n  ".join(["- name: sin(Tensor self) -> Tensor", *map(": ".join, lines.items())])
    with pytest.raises(errors.FormulaError):
        derivatives.load(text + "\n")
    assert state() == before and not list(tmp_path.iterdir())


def test_comprehensions_keep_their_names_to_themselves():
    """A name of a comprehension may mean something else outside of it, or be refused there."""
    forget_derivative("sin")
    derivatives.load("""
- name: sin(Tensor self) -> Tensor
  self: sum([g * k for k, g in enumerate([grad * self.cos(), grad])]) * self.cos()
""")
    x = torch.tensor(0.5, requires_grad=True)
    torch.sin(x).backward()
    assert x.grad.item() == pytest.approx(torch.cos(torch.tensor(0.5)).item())
    with pytest.raises(errors.FormulaError, match="'self' for two things"):
        derivatives.load("- name: sin(Tensor self) -> Tensor\n"
                         "  self: sum([self for self in (grad, self)])\n", replace=True)


def test_generated_functions_have_no_builtins_that_reach_outside():
    for name in ("sin", "mul.Tensor", "ceil"):
        rule = overload(name).rule
        found = rule.backward_real.__globals__["__builtins__"]
        assert not {"open", "eval", "exec", "__import__", "getattr", "type"} & set(found)
    push = overload("pow.Tensor_Tensor").pushforward
    assert push is None or "open" not in push.run.__globals__["__builtins__"]


@pytest.mark.parametrize("text", [
    b"\xff\xfe\x00", b"- name: sin(Tensor self) -> Tensor\n  self: '\xff'\n",
    b"- name: sin(Tensor self) -> Tensor\n  self: grad" + b"+ (" * 5000,
    b"- name: sin(Tensor self) -> Tensor\n  self: " + b"-" * 20000 + b"grad\n",
    b"- name: sin(Tensor self) -> Tensor\n  self: grad" + b" + grad" * 20000,
    b"- name: sin(Tensor self) -> Tensor\n  self: grad\x00\n",
    b"- name: sin(Tensor self) -> Tensor\n  self: " + b"9" * 10000 + b"\n",
    b"".join(b" " * i + b"a:\n" for i in range(3000)),
    b"- a:\n" + b"".join(b" " * (i + 2) + b"a:\n" for i in range(3000)),
    b"- " * 3000, b"[" * 5000, b"- name: [" + b"a, " * 5000, b"- name: " + b"(" * 10000,
    b"- name: sin(" + b"Tensor x, " * 5000 + b") -> Tensor\n", b"- name: '" + b"\n" * 5000,
])
def test_broken_files(text, tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_bytes(text)
    before = state()
    with pytest.raises((errors.FormulaError, errors.SchemaError)):
        derivatives.load(path, replace=True)
    assert state() == before


def test_damaged_files_are_refused_or_read(tmp_path):
    """Random changes of a good file: an error of ours or a table that is whole."""
    import random

    good = derivatives.dump(ops=["sin", "mul.Tensor", "where.self", "sum.dim_IntList"]).encode()
    chosen = random.Random(5)
    path, seen = tmp_path / "damaged.yaml", set()
    for _ in range(120):
        data = bytearray(good)
        for _ in range(chosen.randint(1, 4)):
            at = chosen.randrange(len(data))
            data[at:at + chosen.randint(0, 3)] = bytes(
                chosen.choices(b" :-[]()'\"|>#\n,.abgr_09\x00\xff", k=chosen.randint(0, 3)))
        path.write_bytes(data)
        try:
            derivatives.load(path, replace=True)
            seen.add("read")
        except (errors.FormulaError, errors.SchemaError):
            seen.add("refused")
    assert seen == {"read", "refused"}
