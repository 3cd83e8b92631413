"""Graphs whose printed form is compared with PyTorch's, and names compared with its naming.

Each case builds a graph `g` with the vocabulary `T` (operators, dtypes, examples), so that the same
code builds it with our classes and with PyTorch's. `record_prints.py` stores what PyTorch prints.
"""

import collections
import enum
import math
import operator

NAMES = [
    "sum", "sum", "primals_1", "primals_1", "x", "x_1", "x", "1a", "inf", "nan", "torch",
    "device", "self", "class", "_", "__", "x__", "a_01", "a_1_2", "a_1_2", "relu_", "NoneType",
    "print", "forward", "type", "x_0", "x_0", "if_1", "abs", "abs_1", "math", "list", "list_1",
    "a_1", "foo_9999999", "foo_9999999", "tensor", "object", "x_1_1", "x_1_1", "x_01", "x_01",
    "a__1", "a__1", "_1", "_1", "sum_1", "sum_2", "b_3", "b", "b", "b", "c", "c_1", "c", "c_5",
    "c", "c", "c_5", "c_2", "c", "d_7", "d", "d", "d_2", "d", "getattr", "int", "device_1",
    "q_", "q_", "w_1", "w", "w", "a.b", "a..b", "a--b", "9.9", "x-", "-x", "é", "",
    "a b",
]  # fmt: skip

METHODS = [
    "relu", "__add__", "__and__", "__foo__", "add_", "layers.0", "layers.0", "Relu", "ReLU",
    "aB2Cd_E", "a.B.cD", "0", "0",
]  # fmt: skip


class Color(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", "first second")


def custom(*args, **kwargs):
    return args


def empty(g, T):
    pass


def only_output(g, T):
    g.output(None)


def identity(g, T):
    g.output(g.placeholder("x"))


def mul(g, T):
    x, y = g.placeholder("primals_1"), g.placeholder("primals_2")
    g.output((g.call_function(T.aten.mul.Tensor, (x, y), name="mul"),))


def unused_results(g, T):
    x, y = g.placeholder("x"), g.placeholder("y")
    g.call_function(T.aten.sin.default, (x,), name="sin")
    g.call_function(T.aten.mul.Tensor, (x, y), name="mul")
    g.output((x,))


def several_last_uses(g, T):
    a, b, c = g.placeholder("a"), g.placeholder("b"), g.placeholder("c")
    s = g.call_function(T.aten.add.Tensor, (a, b), name="add")
    t = g.call_function(T.aten.cat.default, ([c, s, b, c],), {"dim": 0}, name="cat")
    g.output((g.call_function(T.aten.mul.Tensor, (t, t), name="mul"), a))


def keywords(g, T):
    x = g.placeholder("x")
    y = g.call_function(
        T.aten.sum.dim_IntList, (x, [0, -1], True), {"dtype": T.float32}, name="sum"
    )
    z = g.call_function(T.aten.softmax.int, (y,), {"dim": 1}, name="softmax")
    g.output((z,))


def factory(g, T):
    z = g.call_function(
        T.aten.zeros.default,
        ([2, 3],),
        {
            "dtype": T.float64,
            "layout": T.strided,
            "device": T.device("cpu"),
            "pin_memory": False,
        },
        name="zeros",
    )
    form = {"memory_format": T.contiguous_format}
    c = g.call_function(T.aten.clone.default, (z,), form, name="clone")
    g.output((c,))


def empty_factory(g, T):
    g.output((g.call_function(T.aten.zeros.default, ([],), name="zeros"),))


def getitems(g, T):
    x = g.placeholder("x")
    s = g.call_function(T.aten.split.Tensor, (x, 2), name="split")
    a = g.call_function(operator.getitem, (s, 0))
    b = g.call_function(operator.getitem, (s, 1))
    c = g.call_function(operator.getitem, (x, (slice(None), 0, None, Ellipsis, slice(1, 2))))
    d = g.call_function(operator.getitem, (x, "key"))
    g.output((a, b, c, d))


def not_finite(g, T):
    x = g.placeholder("x")
    y = g.call_function(T.aten.clamp.default, (x, -math.inf, math.inf), name="clamp")
    z = g.call_function(T.aten.add.Scalar, (y, math.nan), name="add")
    g.output((z,))


def numbers(g, T):
    x = g.placeholder("x")
    args = (x, 1, -1, 0.5, -0.0, 1e20, 1e-5, True, None, 1j, 2 - 3j, 10**20)
    g.output(g.call_function(custom, args))


def containers(g, T):
    x = g.placeholder("x")
    y = g.call_function(custom, (x, (x,), (), [], [[x]], {"k": x, "j": [1, (2,)]}, {}))
    z = g.call_function(custom, (slice(x, None, 2), Pair(x, 2), Color.RED, range(3), b"b", "s'q"))
    g.output([y, {"z": z}, (None, 1.5, "text")])


def dtypes_as_arguments(g, T):
    x = g.placeholder("x")
    y = g.call_function(custom, (x, T.float32, T.int64, T.bool, T.device("cpu")), {"d": T.float16})
    g.output(y)


def python_functions(g, T):
    x = g.placeholder("x")
    g.call_function(math.sqrt, (x,))
    g.call_function(len, (x,))
    g.call_function(max, (x, 1))
    g.call_function(getattr, (x, "shape"))
    g.call_function(getattr, (x, "not an identifier"))
    g.call_function(getattr, (x, "shape", None))
    g.call_function(custom, (x,), {"key": x})
    g.output(x)


def operators(g, T):
    x, y = g.placeholder("x"), g.placeholder("y")
    binary = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor eq ne lt le"
    for name in (binary + " gt ge getitem").split():
        g.call_function(getattr(operator, name), (x, y))
    for name in ["neg", "pos", "invert", "not_", "abs", "index", "truth"]:
        g.call_function(getattr(operator, name), (x,))
    for name in ["contains", "concat", "is_", "is_not"]:
        g.call_function(getattr(operator, name), (x, y))
    g.call_function(operator.sub, (2, x))
    g.output(x)


def in_place_operators(g, T):
    x, y = g.placeholder("x"), g.placeholder("y")
    names = "iadd isub imul itruediv ifloordiv imod ipow imatmul ilshift irshift iand ior ixor"
    for name in names.split():
        g.call_function(getattr(operator, name), (x, y))
    g.call_function(operator.setitem, (x, 0, y))
    g.output(x)


def methods(g, T):
    x = g.placeholder("x")
    y = g.call_method("add", (x, 1), {"alpha": 2})
    z = g.call_method("relu_", (y,))
    g.call_method("size", (z,))
    g.output(g.call_method("__add__", (z, x)))


def modules(g, T):
    x = g.placeholder("x")
    y = g.call_module("layers.0", (x,), {"mask": None})
    z = g.call_module("head", (y,))
    g.output((z, g.get_attr("layers.1.weight"), g.get_attr("head.weight")))


def attributes(g, T):
    c = g.get_attr("_tensor_constant0")
    x = g.placeholder("x")
    d = g.get_attr("_tensor_constant1")
    g.output((g.call_function(T.aten.add.Tensor, (x, c), name="add"), d))


def parameter_forms(g, T):
    a = g.placeholder("a")
    b = g.placeholder("b", default_value=3)
    c = g.placeholder("c", type_expr=int, default_value=None)
    d = g.placeholder("d", type_expr=str, default_value="x")
    e = g.placeholder("*args")
    f = g.placeholder("**kwargs")
    g.output((a, b, c, d, e, f))


def parameter_names(g, T):
    x, y, z = g.placeholder("x"), g.placeholder("sum"), g.placeholder("Y")
    g.output((x, y, z))


def annotated(g, T):
    x = g.placeholder("x", type_expr=int)
    y = g.call_function(T.aten.neg.default, (x,), type_expr=float, name="neg")
    g.output((y, x), type_expr=tuple[float, int])


def hidden_global(g, T):
    x = g.placeholder("math_sqrt")
    g.output(g.call_function(math.sqrt, (x,)))


def joint(g, T):
    p, q = g.placeholder("primals_1"), g.placeholder("primals_2")
    t = g.placeholder("tangents_1")
    m = g.call_function(T.aten.mul.Tensor, (p, q), name="mul")
    s = g.call_function(T.aten.sin.default, (m,), name="sin")
    c = g.call_function(T.aten.cos.default, (m,), name="cos")
    n = g.call_function(T.aten.mul.Tensor, (t, c), name="mul")
    a = g.call_function(T.aten.mul.Tensor, (n, p), name="mul")
    b = g.call_function(T.aten.mul.Tensor, (n, q), name="mul")
    g.output((s, b, a, None))


def nested_results(g, T):
    x = g.placeholder("x")
    y = g.call_function(T.aten.sin.default, (x,), name="sin")
    g.output(((y, [x]), {"a": (y,)}, None))


def long_chain(g, T):
    x = g.placeholder("x")
    for _ in range(12):
        x = g.call_function(T.aten.sin.default, (x,), name="sin")
    g.output((x,))


_FIRST = '  File "/home/u/train.py", line 41, in step\n    y = x * w\n'
_SECOND = (
    '  File "/home/u/run.py", line 1, in <module>\n    main()\n'
    '  File "/home/u/train.py", line 42, in step\n    z = y.sum()'
)


def _note(node, value=None, trace=None, **meta):
    if value is not None:
        node.meta["val"] = value
    if trace is not None:
        node.meta["stack_trace"] = trace
    node.meta.update(meta)
    return node


def typed(g, T):
    x = _note(g.placeholder("primals_1"), T.example((3, 4)))
    y = _note(g.placeholder("primals_2"), T.example((3, 4), "int64"))
    _note(g.get_attr("_tensor_constant0"), T.example(()))
    m = _note(g.call_function(T.aten.mul.Tensor, (x, y), name="mul"), T.example((3, 4)), _FIRST)
    n = _note(g.call_function(T.aten.mul.Tensor, (m, y), name="mul"), T.example((3, 4)), _FIRST)
    s = _note(g.call_function(T.aten.sum.default, (n,), name="sum"), T.example(()), _SECOND)
    p = _note(g.call_function(T.aten.split.Tensor, (n, 1), name="split"), [T.example((1, 4))])
    a = _note(g.call_function(operator.getitem, (p, 0)), T.example((1, 4)))
    i = _note(g.call_function(T.aten.sym_size.int, (a, 0), name="sym_size_int"), 1)
    t = T.example((4, 3), "float32", (1, 4))
    u = _note(g.call_function(T.aten.t.default, (m,), name="t"), t, _FIRST)
    g.output((s, a, u, None, i))


def typed_dtypes(g, T):
    x = _note(g.placeholder("x"), T.example((2,)))
    names = "float16 bfloat16 float64 complex64 complex128 uint8 int8 int16 int32 int64 bool"
    for dtype in names.split():
        _note(g.call_function(T.aten.neg.default, (x,), name="neg"), T.example((2, 0), dtype))
    g.output(x)


def traced_first(g, T):
    x = g.placeholder("x")
    y = _note(g.call_function(T.aten.neg.default, (x,), name="neg"), None, _FIRST)
    z = g.call_function(T.aten.neg.default, (y,), name="neg")
    w = _note(g.call_function(T.aten.neg.default, (z,), name="neg"), None, "no frames here")
    g.output(w)


def traced_carets(g, T):
    x = g.placeholder("x")
    trace = '  File "a.py", line 3, in f\n    x = y + z\n        ~~^~~\n'
    g.output(_note(g.call_function(T.aten.neg.default, (x,), name="neg"), None, trace))


def described(g, T):
    x = _note(g.placeholder("x"), T.example((3,)), desc="PlainAOTInput(idx=0)")
    y = _note(g.placeholder("y"), T.example((3,)))
    z = _note(g.call_function(T.aten.add.Tensor, (x, y), name="add"), T.example((3,)))
    o = g.output((z, x, None))
    o.meta["desc"] = ["PlainAOTOutput(idx=0)", "PlainAOTOutput(idx=1)", "None"]


def described_empty(g, T):
    g.output(())


def typed_with_annotation(g, T):
    x = _note(g.placeholder("x", type_expr=int), T.example((3,)))
    y = g.call_function(T.aten.neg.default, (x,), type_expr=float, name="neg")
    z = g.call_function(T.aten.neg.default, (y,), type_expr=float, name="neg")
    _note(z, T.example((3,)))
    g.output(z)


CASES = {
    case.__name__: case
    for case in (
        empty, only_output, identity, mul, unused_results, several_last_uses,
        keywords, factory, empty_factory, getitems, not_finite, numbers, containers,
        dtypes_as_arguments, python_functions, operators, in_place_operators, methods, modules,
        attributes, parameter_forms, parameter_names, annotated, hidden_global, joint,
        nested_results, long_chain, typed, typed_dtypes, traced_first, traced_carets, described,
        described_empty, typed_with_annotation,
    )
}  # fmt: skip

# Cases that are also printed with types and source lines, and with which options.
READABLE_CASES = [name for name in CASES if name.startswith(("typed", "traced", "described"))]
READABLE = {
    "readable": {},
    "stride": {"include_stride": True},
    "device": {"include_device": True},
    "colored": {"include_stride": True, "include_device": True, "colored": True},
    "expanded": {"expanded_def": True},
}
