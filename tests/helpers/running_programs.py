"""Programs that run, transform and change graphs node by node; see `traced.py`."""
# ruff: noqa: F401, F841, I001

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
from tests.helpers.traced import MyModule, Parts, main, prog

for e in [
    "atleast_1d(x)",
    "atleast_2d(x,x)[1]",
    "block_diag(x,x)",
    "broadcast_tensors(x,x)[0]",
    "cartesian_prod(x[0],x[1])",
    "cdist(x,x)",
    "chain_matmul(x,x)",
    "einsum('ij,jk->ik',x,x)",
    "norm(x)",
    "norm(x,2,dim=1)",
    "meshgrid(x[0],x[1])[0]",
    "split(x,2)[0]",
    "stft(x[0],2,return_complex=True)",
    "tensordot(x,x,dims=1)",
    "unique(x)",
    "unique(x,return_counts=True)[1]",
    "unique_consecutive(x)",
    "unravel_index(x.long(),(2,2))[0]",
    "split(x,[1,2])[1]",
]:

    def g(e=e):
        f = eval("lambda x: torch." + e)
        gm = symbolic_trace(f)
        x = torch.arange(9.0).reshape(3, 3).remainder(4)
        print(gm(x))
        print(f(x).equal(gm(x)))

    g.__name__ = "run_" + e
    prog(g)


@prog
def interp_override():
    class NI(Interpreter):
        def call_function(self, target, args, kwargs):
            if target == operator.add:
                return operator.mul(*args)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                return args[0].relu()
            return super().call_method(target, args, kwargs)

    gm = symbolic_trace(lambda x, y=2.0: (x + y).neg())
    print(NI(gm).run(torch.tensor([1.0, 2.0])))
    print(NI(gm).run(torch.tensor([1.0, 2.0]), 3.0))


@prog
def interp_run_node():
    class R(Interpreter):
        def run_node(self, n):
            r = super().run_node(n)
            print(n.op, n.name, r if not isinstance(r, torch.Tensor) else tuple(r.shape))
            return r

    R(symbolic_trace(MyModule())).run(torch.zeros(3, 4))


@prog
def interp_missing():
    Interpreter(symbolic_trace(lambda x: x + 1)).run()


@prog
def interp_err():
    Interpreter(symbolic_trace(lambda x: x.foo())).run(torch.ones(1))


@prog
def interp_star():
    print(Interpreter(symbolic_trace(lambda x, *a: x + a[0] + a[1])).run(1, 2, 3))


@prog
def interp_default():
    print(Interpreter(symbolic_trace(lambda x, y=3: x + y)).run(1))


@prog
def interp_gc():
    class R(Interpreter):
        def run_node(self, n):
            print(n.name, [k.name for k in self.env])
            return super().run_node(n)

    R(symbolic_trace(lambda x: ((x + 1) * 2) - 3)).run(1)
    R(symbolic_trace(lambda x: ((x + 1) * 2) - 3), garbage_collect_values=False).run(1)


@prog
def interp_boxed():
    a = [torch.ones(1), torch.ones(1)]
    print(Interpreter(symbolic_trace(lambda x, y: x + y)).boxed_run(a), a)


@prog
def interp_mod_graph():
    m = MyModule()
    g = Tracer().trace(m)
    print(Interpreter(m, graph=g).run(torch.zeros(3, 4)).shape)


@prog
def transformer():
    class T(Transformer):
        def call_function(self, target, args, kwargs):
            if target == operator.add:
                return super().call_function(torch.sigmoid, args[:1], kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                return args[0].relu() + 1
            return super().call_method(target, args, kwargs)

    gm = symbolic_trace(lambda x, y=2: (x + y).neg().neg())
    t = T(gm).transform()
    print(t.code)
    print(t.graph)
    t.graph.lint()


@prog
def transformer_aten():
    gm = make_fx(lambda x: (x + 1).relu())(torch.ones(2))

    class T(Transformer):
        def call_function(self, target, args, kwargs):
            if target is torch.ops.aten.relu.default:
                return torch.ops.aten.clamp_min.default(args[0], 0)
            return super().call_function(target, args, kwargs)

    t = T(gm).transform()
    print(t.code)
    print(t(torch.ones(2)))


@prog
def transformer_proxy_ops():
    gm = symbolic_trace(lambda x: torch.relu(x))

    class T(Transformer):
        def call_function(self, target, args, kwargs):
            x = args[0]
            return torch.add(x, 1) * x.sum(dim=0)[0]

    t = T(gm).transform()
    print(t.code)


@prog
def proxy_insert():
    gm = symbolic_trace(lambda x: torch.relu(x))
    for n in list(gm.graph.nodes):
        if n.op == "call_function":
            with gm.graph.inserting_after(n):
                p = Proxy(n) + 1
                q = F.relu(p)
                r = torch.cat([q, p])
                n.replace_all_uses_with(r.node, delete_user_cb=lambda u: u is not p.node)
    gm.recompile()
    print(gm.code)


@prog
def proxy_attr():
    g = Graph()
    p = Proxy(g.placeholder("x"))
    print(p, p.shape, p.foo.bar, repr(p.node))
    p.T
    g.output(p.shape[0].node)
    print(g)


@prog
def custom_tracer_args():
    class Foo:
        def __init__(self, a, b):
            self.a, self.b = a, b

    def f(x):
        return torch.add(x, 1, foo=Foo(x, 2)) if False else pair(Foo(x, 3))

    class T(Tracer):
        def create_arg(self, a):
            if isinstance(a, Foo):
                return self.create_node("call_function", Foo, (self.create_arg(a.a), a.b), {})
            return super().create_arg(a)

    def pair(foo):
        return foo

    g = T().trace(f)
    print(GraphModule({}, g).code)


@prog
def namedtuple_arg():
    P = collections.namedtuple("P", "x y")
    globals()["P"] = P
    gm = symbolic_trace(lambda a: P(a, a + 1))
    print(gm.code)


@prog
def tracer_proxy_sub():
    class MyProxy(Proxy):
        pass

    class T(Tracer):
        def proxy(self, node):
            return MyProxy(node, self)

    seen = []

    def f(x):
        seen.append(type(x).__name__)
        y = x + 1
        seen.append(type(y).__name__)
        return y

    T().trace(f)
    print(seen)


@prog
def tracer_create_node():
    class T(Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            n = super().create_node(kind, target, args, kwargs, name)
            n.tag = "foo"
            return n

    g = T().trace(MyModule())
    print([n.tag for n in g.nodes])


@prog
def tracer_to_bool():
    class T(Tracer):
        def to_bool(self, obj):
            return True

        def iter(self, obj):
            return iter([obj[0], obj[1]])

        def keys(self, obj):
            return ["a", "b"]

    def f(x, d):
        if x.sum():
            for i in x:
                x = x + i

        def g(a, b):
            return a + b

        return x + g(**d)

    print(GraphModule({}, T().trace(f)).code)


@prog
def tracer_module_stack():
    class In(nn.Module):
        def forward(self, x):
            return x + 1

    class Out(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(In(), nn.ReLU())

        def forward(self, x):
            return self.a(x) * 2

    for n in symbolic_trace(Out()).graph.nodes:
        print(
            n.name,
            [(k, (v[0], v[1].__name__)) for k, v in (n.meta.get("nn_module_stack") or {}).items()],
        )


@prog
def tracer_scope():
    g = Tracer(autowrap_functions=(), autowrap_modules=(math,)).trace(lambda x: math.sqrt(x))
    print(GraphModule({}, g).code)


class ByShape(Parts):
    def forward(self, x):
        if self.w.shape[0] == 2:
            return x @ self.w
        return x


@prog
def tracer_param_shapes():
    m = ByShape(w=nn.Parameter(torch.ones(2, 3)))
    print(GraphModule(m, Tracer(param_shapes_constant=True).trace(m)).code)


@prog
def param_shapes_no():
    symbolic_trace(ByShape(w=nn.Parameter(torch.ones(2, 3))))


@prog
def buffers_proxied():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.ones(2))
            self.c = torch.ones(2)
            self.d = 3

        def forward(self, x):
            return x + self.b + self.c + self.d

    class T(Tracer):
        proxy_buffer_attributes = True

    print(GraphModule(M(), T().trace(M())).code)
    print(symbolic_trace(M()).code)
    print(symbolic_trace(M()).graph)


@prog
def tensor_constants():
    def f(x):
        return x + torch.ones(2) * 3

    gm = symbolic_trace(f)
    print(gm.code)
    print(gm(torch.ones(2)), [k for k, _ in gm.named_buffers()])


@prog
def not_submodule():
    lin = nn.Linear(2, 2)

    class M(nn.Module):
        def forward(self, x):
            return lin(x)

    symbolic_trace(M())


@prog
def reused():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.r = nn.ReLU()
            self.s = self.r

        def forward(self, x):
            return self.s(self.r(x))

    print(symbolic_trace(M()).code)


@prog
def dict_module():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.d = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(2, 2)})
            self.l = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
            self.p = nn.ParameterList([nn.Parameter(torch.ones(2))])

        def forward(self, x):
            for l in self.l:
                x = l(x)
            return self.d["b"](self.d["a"](x)) + self.p[0]

    gm = symbolic_trace(M())
    print(gm.code)
    print(gm.graph)
    print(gm)


@prog
def torchscript_like():
    gm = symbolic_trace(MyModule())
    print(gm.state_dict().keys(), gm.training)
    gm.eval()
    print(gm.linear.training, gm.training)
    gm.load_state_dict(MyModule().state_dict())
    gm.double()
    print(gm.param.dtype)


@prog
def wrong_call():
    gm = symbolic_trace(MyModule())
    gm(torch.ones(3, 4), 1, 2)


@prog
def stack_traces():
    class T(Tracer):
        record_stack_traces = True

    g = T().trace(lambda x: x + 1)
    for n in g.nodes:
        print(n.name, (n.stack_trace or "None").strip().splitlines()[-1])


@prog
def del_unused():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Sigmoid(), nn.Tanh()))
            self.b = nn.Linear(2, 2)
            self.conv = nn.Conv2d(1, 1, 1)

        def forward(self, x):
            return torch.conv2d(x, self.conv.weight) + self.a[1][0](x)

    class T(Tracer):
        def is_leaf_module(self, m, q):
            return not isinstance(m, nn.Sequential)

    m = M()
    gm = GraphModule(m, T().trace(m))
    gm.add_submodule("foo.bar", nn.Dropout()) if False else None
    gm.add_submodule("b", nn.Linear(2, 2))
    print(gm.add_submodule("a.x.y", nn.ReLU()))
    print(gm.delete_submodule("nope.x"))
    gm.delete_all_unused_submodules()
    print(gm)


@prog
def nodeapi():
    gm = symbolic_trace(MyModule())
    ns = list(gm.graph.nodes)
    print(
        ns[0].next,
        ns[1].prev,
        ns[0] < ns[1],
        ns[2].is_impure(),
        ns[-1].is_impure(),
        ns[0].is_impure(),
    )
    n = ns[2]
    n.update_arg(1, 3)
    n.insert_arg(0, 5)
    n.update_kwarg("alpha", 2)
    print(n.args, n.kwargs, n.format_node())
    print(ns[0].replace_all_uses_with(ns[1]))
    print(n.args, sorted(gm.graph.nodes)[0], hash(n) == hash(n))
    n.name = "zz"
    print(gm.graph)


@prog
def nodeapi2():
    gm = symbolic_trace(lambda x: torch.relu(x) + 1)
    n = list(gm.graph.nodes)[1]
    n.target = torch.sigmoid
    gm.recompile()
    print(gm.code)
    m = n.meta
    n._rename("qq")
    gm.recompile()
    print(gm.code)
    print(n.normalized_arguments(gm))


@prog
def nodes_reversed():
    gm = symbolic_trace(MyModule())
    print(list(reversed(gm.graph.nodes)), len(gm.graph.nodes))


@prog
def dce_module():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.ReLU()
            self.b = nn.BatchNorm1d(2)
            self.d = nn.Dropout()

        def forward(self, x):
            self.a(x)
            self.b(x)
            self.d(x)
            return x

    gm = symbolic_trace(M())
    gm.graph.eliminate_dead_code()
    print(gm.graph)


@prog
def dce_random():
    def f(x):
        torch.rand(2)
        y = torch.rand_like(x)
        torch._assert(x.sum() > 0, "m")
        x[0] = 1
        operator.iadd(x, 1)
        return x

    gm = symbolic_trace(f)
    gm.graph.eliminate_dead_code()
    print(gm.graph)


@prog
def ongen():
    gm = symbolic_trace(lambda x: x + 1)

    def mk(cur):
        def t(body):
            return ["print('hi')\n", *body]

        return t

    gm.graph.on_generate_code(mk)
    gm.recompile()
    print(gm.code)
    gm(1)


@prog
def codegen():
    from torch.fx.graph import CodeGen

    class C(CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, lst):\n    {', '.join(free_vars)}, = lst"

        def additional_globals(self):
            return []

        def process_inputs(self, *i):
            return i[0]

    gm = symbolic_trace(lambda x, y: x + y)
    gm.graph.set_codegen(C())
    gm.recompile()
    print(gm.code)
    print(gm([1, 2]))
    print(Interpreter(gm).run([1, 2]))


@prog
def pytree_codegen():
    def f(x):
        return (x["a"] + x["b"][0], {"o": x["a"]})

    gm = symbolic_trace(f, concrete_args={"x": {"a": PH, "b": [PH]}})
    print(gm.code)
    v = {"a": torch.ones(1), "b": [torch.ones(1)]}
    print(gm(v))
    print(Interpreter(gm).run(v))
    t = Transformer(gm).transform()
    print(t.code, t(v))
    c = copy.deepcopy(gm)
    print(c(v))
    p = pickle.loads(pickle.dumps(gm))
    print(p(v))
    print(gm._in_spec if hasattr(gm, "_in_spec") else "")


if __name__ == "__main__":
    main()
