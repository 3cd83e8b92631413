"""Schemas: the whole grammar, read and printed back; what is refused; how calls are bound."""

from pathlib import Path

import pytest

import pullback as torch
from pullback import errors
from pullback.array import dtype as dt
from pullback.core.op import registry
from pullback.core.schema import Schema

SCHEMAS = (Path(__file__).parents[1] / "data" / "schemas.txt").read_text().splitlines()


def test_every_known_schema_is_printed_as_it_was_read():
    assert len(SCHEMAS) > 1000
    different = {text: str(Schema(text)) for text in SCHEMAS if str(Schema(text)) != text}
    assert not different


def test_every_schema_of_the_table_is_printed_as_it_is_written():
    for op in registry.values():
        assert str(Schema(op.schema)) == " ".join(op.schema.split())


def test_printing_is_a_fixed_point():
    for text in SCHEMAS:
        again = Schema(str(Schema(text)))
        assert all(a.same_as(b) for a, b in zip(again.args, Schema(text).args, strict=True))


def argument(text: str, where: str = "args"):
    schema = f"f({text}) -> Tensor" if where == "args" else f"f() -> {text}"
    return getattr(Schema(schema), where)[0]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Tensor x", {"base": "Tensor", "is_tensor": True, "optional": False, "is_list": False}),
        ("Tensor? x", {"optional": True}),
        ("Tensor[] x", {"is_list": True, "size": None, "is_tensor": True}),
        ("Tensor?[] x", {"is_list": True, "optional_items": True, "optional": False}),
        ("Tensor[]? x", {"is_list": True, "optional_items": False, "optional": True}),
        ("Tensor(a) x", {"alias": "a", "is_write": False}),
        ("Tensor(a!) x", {"alias": "a!", "is_write": True}),
        ("Tensor(a! -> *) x", {"alias": "a! -> *", "is_write": True}),
        ("Tensor(a->*) x", {"alias": "a -> *"}),
        ("Tensor(a!)[] x", {"alias": "a!", "is_list": True}),
        ("Scalar x", {"base": "Scalar", "is_tensor": False}),
        ("SymInt x", {"base": "int", "symbolic": True}),
        ("SymBool x", {"base": "bool", "symbolic": True}),
        ("SymInt[2]? x=None", {"is_list": True, "size": 2, "optional": True, "default": None}),
        ("int[1]? dim=None", {"size": 1, "optional": True, "has_default": True}),
        ("int[2] x=0", {"default": [0, 0], "default_text": "0"}),
        ("int[3] x=[1, 2, 3]", {"default": [1, 2, 3]}),
        ("int[2] x=[]", {"default": []}),
        ("bool[3] x", {"base": "bool", "is_list": True, "size": 3}),
        ("float x=1e-05", {"default": 1e-05}),
        ("float p=2.", {"default": 2.0, "default_text": "2."}),
        ("float? x=None", {"default": None, "has_default": True}),
        ("int x=-1", {"default": -1}),
        ("bool x=True", {"default": True}),
        ("int reduction=Mean", {"default": 1}),
        ("ScalarType x=long", {"default": dt.int64}),
        ("str x='none'", {"default": "none", "default_text": "'none'"}),
        ('str x="a, b"', {"default": "a, b"}),
        ("str? x=None", {"default": None}),
        ("MemoryFormat? x=contiguous_format", {"default": "contiguous_format"}),
        ("Generator? x=None", {"base": "Generator"}),
    ],
)
def test_argument(text, expected):
    found = argument(text)
    assert {key: getattr(found, key) for key in expected} == expected
    assert str(found) == text.replace("a->*", "a -> *")


@pytest.mark.parametrize(
    "text, names",
    [
        ("Tensor", [""]),
        ("(Tensor, Tensor)", ["", ""]),
        ("(Tensor values, Tensor indices)", ["values", "indices"]),
        ("()", []),
        ("Tensor(a)[]", [""]),
        ("(Tensor(a!) x, Tensor(b!) y)", ["x", "y"]),
        ("bool", [""]),
        ("(Tensor, Tensor[], int)", ["", "", ""]),
        ("Tensor(a -> *)[]", [""]),
    ],
)
def test_returns(text, names):
    schema = Schema(f"f(Tensor self) -> {text}")
    assert [r.name for r in schema.returns] == names
    assert str(schema).endswith(f"-> {text}")


def test_names_and_keyword_only():
    schema = Schema(
        "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
    )
    assert (schema.name, schema.overload, schema.full_name) == ("add", "out", "add.out")
    assert [a.kwarg_only for a in schema.args] == [False, False, True, True]
    assert schema.kw_only_from == 2
    assert schema.tensor_positions == [0, 1, 3]


@pytest.mark.parametrize(
    "text, fragment",
    [
        ("no arrow(Tensor self)", "cannot read the operator schema"),
        ("f(Tensor self)", "cannot read the operator schema"),
        ("f(Tensr self) -> Tensor", "cannot read the type of 'Tensr self'"),
        ("f(Tensor) -> Tensor", "argument 1 has no name"),
        ("f(Tensor self, int) -> Tensor", "argument 2 has no name"),
        ("f(Tensor self, Tensor self) -> Tensor", "names an argument twice"),
        ("f(int x=seven) -> Tensor", "cannot read the default 'seven' of 'x'"),
        ("f(str x='open) -> Tensor", "cannot read the default"),
        ("f(int x=) -> Tensor", "cannot read the default"),
        ("f(Tensor self) -> Foo", "cannot read the type of 'Foo'"),
    ],
)
def test_refused(text, fragment):
    with pytest.raises(errors.SchemaError, match=fragment) as info:
        Schema(text)
    assert "Fix: " in str(info.value) and (text in str(info.value))


def test_same_meaning_with_other_spellings():
    def same(a, b):
        return argument(a).same_as(argument(b))

    assert same("SymInt[2] x=1", "int[2] x=[1, 1]")
    assert same("int reduction=Mean", "int reduction=1")
    assert same("str a='none'", 'str a="none"')
    assert not same("Tensor x", "Tensor? x")
    assert not same("int x", "int y")
    assert not same("int x=1", "int x=2")


def test_bind():
    schema = Schema("f(Tensor self, int[2] size=1, *, float p=2, Tensor? mask=None) -> Tensor")
    x = torch.ones(2)
    assert schema.bind((x,), {}) == (x, [1, 1], 2.0, None)
    assert schema.bind((x, 3), {"p": 1}) == (x, [3, 3], 1, None)
    assert schema.bind((), {"input": x, "size": [1, 2]}) == (x, [1, 2], 2.0, None)
    for args, kwargs in [
        ((x, 3, 4.0, None, 5), {}),
        ((x,), {"q": 1}),
        ((3,), {}),
        ((x,), {"self": x}),
        ((), {}),
        ((x,), {"p": "2"}),
    ]:
        assert schema.bind(args, kwargs) is None
    lone = Schema("g(Tensor self, SymInt[] size) -> Tensor")
    assert lone.bind((x, 2, 3), {}) == (x, [2, 3])
    number = Schema("h(Tensor self, Tensor other) -> Tensor")
    assert number.bind((x, 2), {}) is None
    assert number.bind((x, 2), {}, ("other",)) == (x, 2)
