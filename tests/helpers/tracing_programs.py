"""Programs that trace functions and modules, and look at the graphs; see `traced.py`."""
# ruff: noqa: B009, F401, F841, I001

import collections
import copy
import math
import operator
import pickle
import typing

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.fx import PH, Graph, GraphModule, Interpreter, Proxy, Tracer, Transformer
from torch.fx import replace_pattern, symbolic_trace, wrap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.subgraph_rewriter import replace_pattern_with_filters
from tests.helpers.traced import MyModule, main, prog


def a_lifted_leaf(a, b):
    return a[0] + a[1] + b


wrap("a_lifted_leaf")


def a_lifted_leaf2(a, b):
    return a[0] + a[1] + b


wrap(a_lifted_leaf2)
wrap("len")
wrap("getattr")


@wrap
def decorated(x):
    return x * 2


wrapped_via_decorator = decorated


@prog
def t_wrap():
    def to_trace(y):
        return a_lifted_leaf((4, y), 3) + a_lifted_leaf((3, 4), 5) + a_lifted_leaf((y, y), y)

    m = symbolic_trace(to_trace)
    print(m.code)
    print(m(torch.tensor(3)))


@prog
def t_wrap2():
    def to_trace(y):
        return a_lifted_leaf2((4, y), 3) + decorated(y)

    m = symbolic_trace(to_trace)
    print(m.code)
    print(m(torch.tensor(3)))
    print(symbolic_trace(m).code)


@prog
def t_wrap_len():
    def to_trace(y):
        return len(y)

    print(symbolic_trace(to_trace).code)


@prog
def t_wrap_getattr():
    class M(nn.Module):
        def forward(self, y):
            return getattr(y, "shape")

    print(symbolic_trace(M()).code)


@prog
def t_mymodule():
    gm = symbolic_trace(MyModule())
    print(gm.code)
    print(gm.graph)
    print(gm)
    gm.graph.lint()


@prog
def t_names():
    g = Graph()
    x = g.placeholder("x")
    y = g.create_node("placeholder", "y_t", name="z")
    w = g.create_node("placeholder", "w", name="y_t")
    r = g.call_function(torch.add, (x, y))
    r2 = g.call_function(torch.add, (r, w))
    g.output(r2)
    gm = GraphModule({}, g)
    print(gm.code)
    print(g)


@prog
def t_names2():
    g = Graph()
    x = g.placeholder("self")
    y = g.placeholder("input")
    z = g.placeholder("0bad name")
    r = g.call_function(torch.add, (x, y))
    g.output(r)
    print(g)
    print(g.python_code("self").src)


@prog
def t_kwdefault():
    def f(x, y=2, *args, z: int = 3, **kw):
        return x + y + args[0] + z + kw["q"]

    print(symbolic_trace(f).code)
    print(symbolic_trace(f).graph)


@prog
def t_inplace():
    def f(x):
        x += 1
        x *= 2
        x[0] = 3
        x[1:2] = x[0]
        return x

    print(symbolic_trace(f).code)


@prog
def t_ops():
    def f(x, y):
        a = x + y
        b = x - 1
        c = 2 * x
        d = x / y
        e = x // 2
        g = x % 3
        h = x**2
        i = 2**x
        j = -x
        k = ~x
        l = x & y
        m = x | y
        n = x ^ y
        o = x << 1
        p = x >> 1
        q = x @ y
        r = x == y
        s = x != y
        t = x < y
        u = x <= y
        v = x > y
        w = x >= y
        z = abs(x)
        aa = +x
        bb = 1 - x
        cc = 1 / x
        dd = 3 // x
        ee = 3 % x
        ff = 1 & x
        gg = 1 << x
        return (
            a,
            b,
            c,
            d,
            e,
            g,
            h,
            i,
            j,
            k,
            l,
            m,
            n,
            o,
            p,
            q,
            r,
            s,
            t,
            u,
            v,
            w,
            z,
            aa,
            bb,
            cc,
            dd,
            ee,
            ff,
            gg,
        )

    print(symbolic_trace(f).code)
    print(symbolic_trace(f).graph)


@prog
def t_slice():
    def f(x):
        return x[:, 1:3], x[..., None], x[0, 1], x[x > 0]

    print(symbolic_trace(f).code)


@prog
def t_if():
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    symbolic_trace(f)


@prog
def t_len():
    g = Graph()
    p = Proxy(g.placeholder("x"))
    len.__call__(p)


@prog
def t_bool_proxy():
    g = Graph()
    p = Proxy(g.placeholder("x"))
    bool(p)


@prog
def t_iter_proxy():
    g = Graph()
    p = Proxy(g.placeholder("x"))
    iter(p)


@prog
def t_contains():
    def f(x):
        return 3 in x

    symbolic_trace(f)


@prog
def t_index():
    def f(x):
        return [1, 2][x]

    symbolic_trace(f)


@prog
def t_unpack():
    def f(x):
        a, b = x
        return a + b

    print(symbolic_trace(f).code)


@prog
def t_assert_no():
    def f(x):
        assert x.shape[0] == 3, "msg"
        return x

    symbolic_trace(f)


@prog
def t_concrete():
    def f(x, flag):
        if flag:
            return x + 1
        return x

    gm = symbolic_trace(f, concrete_args={"flag": True})
    print(gm.code)
    print(gm.graph)
    print(gm(torch.ones(1), True))
    gm(torch.ones(1), False)


@prog
def t_concrete_none():
    def f(x, y=None):
        if y is None:
            return x + 1
        return x

    gm = symbolic_trace(f, concrete_args={"y": None})
    print(gm.code)
    print(gm(torch.ones(1), None))
    gm(torch.ones(1), 1)


@prog
def t_concrete_pytree():
    def f(d):
        return d["a"] + d["b"][0] + d["b"][1]

    gm = symbolic_trace(f, concrete_args={"d": {"a": PH, "b": [PH, PH]}})
    print(gm.code)
    print(gm.graph)
    print(gm({"a": torch.ones(1), "b": [torch.ones(1), torch.ones(1)]}))


@prog
def t_concrete_pytree2():
    def f(d, x):
        return {"c": d["a"] + d["b"][0] + d["b"][1], "r": [x]}

    gm = symbolic_trace(f, concrete_args={"d": {"a": PH, "b": [PH, 3]}})
    print(gm.code)
    print(gm.graph)
    print(gm({"a": torch.ones(1), "b": [torch.ones(1), 3]}, torch.ones(1)))
    print(gm({"a": torch.ones(1), "b": [torch.ones(1), 4]}, torch.ones(1)))


@prog
def t_concrete_tuple():
    class M(nn.Module):
        def forward(self, x, y):
            return x + y

    print(symbolic_trace(M(), concrete_args=(PH, 3)).code)


@prog
def t_leaf_tracer():
    class MyLeaf(nn.Module):
        def forward(self, x):
            return x.neg()

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = MyLeaf()
            self.s = nn.Sequential(nn.Linear(2, 2), MyLeaf())

        def forward(self, x):
            return self.s(self.l(x))

    class T(Tracer):
        def is_leaf_module(self, m, q):
            return isinstance(m, MyLeaf)

    m = M()
    print(T().trace(m))
    print(symbolic_trace(m).graph)
    print(symbolic_trace(m).code)
    print(symbolic_trace(m))


@prog
def t_nodecopy():
    def f(x):
        return torch.relu(x + 1)

    g = symbolic_trace(f).graph
    ng = Graph()
    vm = {}
    out = ng.graph_copy(g, vm)
    ng.output(torch.fx.Proxy(out).node)
    print(ng)
    ng2 = Graph()
    print(ng2.graph_copy(g, {}, return_output_node=True))
    ng.lint()


def relu_graph():
    """A graph without an output, its placeholder and the `relu` of that."""
    g = Graph()
    x = g.placeholder("x")
    return g, x, g.call_function(torch.relu, (x,))


@prog
def t_lint1():
    g, x, y = relu_graph()
    g.output(y)
    y.append(x)
    g.lint()


@prog
def t_lint2():
    g, g2 = Graph(), Graph()
    g2.output(g2.call_function(torch.relu, (g.placeholder("x"),)))
    g2.lint()


@prog
def t_lint3():
    g = Graph()
    x = g.placeholder("x")
    y = g.create_node("call_module", "nope", (x,))
    g.output(y)
    m = nn.Module()
    m.nope = nn.ReLU()
    gm = GraphModule(m, g)
    del gm.nope
    g.lint()


@prog
def t_lint4():
    g = Graph()
    x = g.placeholder("x")
    y = g.get_attr("p")
    g.output(y)
    m = nn.Module()
    m.p = 3
    gm = GraphModule(m, g)
    g.lint()
    print("ok")


@prog
def t_erase():
    g, x, y = relu_graph()
    g.output(y)
    g.erase_node(x)


@prog
def t_erase2():
    g, _, y = relu_graph()
    g.erase_node(y)
    g.erase_node(y)
    print(g)


@prog
def t_move():
    g = Graph()
    x = g.placeholder("x")
    g2 = Graph()
    y = g2.placeholder("y")
    x.append(y)


@prog
def t_selfappend():
    g = Graph()
    x = g.placeholder("x")
    x.append(x)
    print(g)


@prog
def t_find():
    gm = symbolic_trace(MyModule())
    print(
        gm.graph.find_nodes(op="call_function", target=operator.add),
        gm.graph.find_nodes(op="call_method"),
        gm.graph.find_nodes(op="call_module", target="linear"),
        gm.graph.find_nodes(op="placeholder"),
    )
    print(gm.graph.output_node())
    gm.graph.find_nodes(op="blah")


@prog
def t_node_args2():
    g = Graph()
    x = g.placeholder("x")
    y = g.call_function(torch.add, (x, {"a": x}))
    y.args[1]["b"] = 2


@prog
def t_create_bad():
    g = Graph()
    g.create_node("foo", "bar")


@prog
def t_create_bad2():
    g = Graph()
    g.call_function("foo")


@prog
def t_create_bad3():
    g = Graph()
    g.create_node("call_method", torch.relu)


@prog
def t_call_foreign():
    g = Graph()
    x = g.placeholder("x")
    h = Graph()
    y = h.call_function(torch.add, (x, 1))
    print(h)


@prog
def t_deepcopy_graph():
    gm = symbolic_trace(MyModule())
    g = copy.deepcopy(gm.graph)
    print(g)
    print(g.owning_module)


@prog
def t_annotate_type():
    g = Graph()
    x = g.placeholder("x", type_expr=torch.Tensor)
    y = g.call_function(torch.neg, (x,), type_expr=torch.Tensor)
    g.output(y, type_expr=torch.Tensor)
    print(g)
    print(GraphModule({}, g).code)


@prog
def t_dictout():
    def f(x):
        return {"a": x, "b": [x + 1, (x,)]}

    gm = symbolic_trace(f)
    print(gm.code)
    print(gm.graph)


if __name__ == "__main__":
    main()
