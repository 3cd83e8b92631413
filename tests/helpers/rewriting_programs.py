"""Programs that rewrite graphs: patterns, splitting, passes; see `traced.py`."""
# ruff: noqa: F401, F811, F841, I001, UP006, UP007, UP045

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
from tests.helpers.traced import Parts, main, prog


def rp(f, pat, rep, **kw):
    gm = symbolic_trace(f)
    ms = replace_pattern(gm, pat, rep)
    gm.graph.lint()
    print(gm.code)
    print(ms)
    return gm


@prog
def r_single():
    rp(
        lambda x: torch.neg(x) + torch.relu(x),
        lambda x: torch.relu(x),
        lambda x: torch.relu6(x) if False else torch.sigmoid(x),
    )


@prog
def r_internal_no():
    def f(x):
        val = torch.neg(x) + torch.relu(x)
        return torch.add(val, val)

    def pat(x):
        return torch.neg(x) + torch.relu(x)

    def rep(x):
        return torch.relu(x)

    rp(f, pat, rep)


def replaces_cats(turned):
    def f(x, w1, w2):
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w2, w1] if turned else [w1, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    def pat(w1, w2):
        return torch.cat([w1, w2]).sum()

    def rep(w1, w2):
        return torch.stack([w1, w2])

    rp(f, pat, rep)


@prog
def t_replace_pattern():
    replaces_cats(False)


@prog
def r_multiple():
    replaces_cats(True)


@prog
def r_overlap():
    def f(x):
        x = torch.relu(x)
        x = torch.relu(x)
        x = torch.relu(x)
        x = torch.relu(x)
        x = torch.relu(x)
        return x

    rp(f, lambda x: torch.relu(torch.relu(x)), lambda x: torch.neg(x))


@prog
def r_overlap2():
    def f(x):
        x = torch.neg(x)
        a = torch.relu(x) + 1
        b = torch.relu(x) + 2
        return a, b

    rp(f, lambda x: torch.relu(torch.neg(x)), lambda x: torch.sigmoid(x))


@prog
def r_output():
    def f(x):
        y = torch.relu(x)
        return torch.neg(y) + y

    def pat(a, b):
        return torch.neg(a) + b

    rp(f, pat, lambda a, b: a.sub(b))


@prog
def r_multi_out():
    def f(x):
        y = torch.relu(x)
        z = torch.sigmoid(y)
        return y + z, z

    def pat(x):
        y = torch.relu(x)
        z = torch.sigmoid(y)
        return y, z

    def rep(x):
        y = torch.tanh(x)
        z = torch.cos(y)
        return y, z

    rp(f, pat, rep)


@prog
def r_multi_out2():
    def f(x):
        a = torch.split(x, 2)
        b = a[0]
        c = a[1]
        return b + c

    def pat(x):
        a = torch.split(x, 2)
        return a[0], a[1]

    def rep(x):
        a = torch.chunk(x, 2)
        return a[0], a[1]

    rp(f, pat, rep)


@prog
def r_kw():
    def f(x):
        return torch.clamp(x, min=0, max=1) + F.relu(x, inplace=True)

    rp(f, lambda x: F.relu(x, inplace=True), lambda x: F.relu6(x))


@prog
def r_method():
    def f(x):
        return x.relu().add(1).neg()

    rp(f, lambda x: x.add(1), lambda x: x.mul(2))


@prog
def r_literal():
    def f(x):
        return torch.add(x, 3) + torch.add(x, 4)

    rp(f, lambda x: torch.add(x, 3), lambda x: torch.sub(x, 3))


@prog
def r_literal_ignored():
    def f(x):
        return torch.add(x, 3) + torch.add(x, 4)

    gm = symbolic_trace(f)
    r = replace_pattern_with_filters(
        gm, lambda x: torch.add(x, 3), lambda x: torch.sub(x, 3), ignore_literals=True
    )
    print(gm.code)
    print([(q.anchor, q.nodes_map, q.replacements) for q in r])


def two_threes(x, y):
    return torch.add(x, 3) + torch.add(y, 3)


@prog
def r_filters():
    gm = symbolic_trace(two_threes)

    def filt(match, og, pg):
        print(
            type(match).__name__,
            match.anchors,
            match.nodes_map,
            match.returning_nodes,
            match.placeholder_nodes,
            match.name_node_map,
        )
        return [n.name for n in match.placeholder_nodes] == ["y"]

    r = replace_pattern_with_filters(
        gm, lambda x: torch.add(x, 3), lambda x: torch.sub(x, 3), [filt]
    )
    print(gm.code)
    print(r)


@prog
def r_callback():
    gm = symbolic_trace(two_threes)

    def cb(match, og, pg):
        return symbolic_trace(lambda x: torch.sub(x, 3)).graph

    r = replace_pattern_with_filters(gm, lambda x: torch.add(x, 3), replacement_callback=cb)
    print(gm.code)
    print(r)


class MM(Parts):
    def forward(self, x):
        return self.act(self.linear(x))


@prog
def r_module():
    class Rep(Parts):
        def forward(self, x):
            return self.sig(self.linear(x))

    gm = symbolic_trace(MM(linear=nn.Linear(2, 2), act=nn.ReLU()))
    pattern = MM(linear=nn.Linear(2, 2), act=nn.ReLU())
    ms = replace_pattern(gm, pattern, Rep(linear=nn.Linear(2, 2), sig=nn.Sigmoid()))
    gm.graph.lint()
    print(gm.code, ms)
    print(gm)
    print(gm(torch.ones(1, 2)).shape)


@prog
def r_attr():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("p", torch.ones(2))
            self.q = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x + self.p + self.q

    class Pat(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("p", torch.ones(2))

        def forward(self, x):
            return x + self.p

    class Rep(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("w", torch.ones(2) * 3)

        def forward(self, x):
            return x * self.w

    gm = symbolic_trace(M())
    ms = replace_pattern(gm, Pat(), Rep())
    gm.graph.lint()
    print(gm.code, ms)
    print(
        gm(torch.ones(2)), [n for n, _ in gm.named_buffers()], [n for n, _ in gm.named_parameters()]
    )


@prog
def r_submodule_name():
    class L(Parts):
        def forward(self, x):
            return self.sub(x)

    class R(Parts):
        def forward(self, x):
            return self.tanh(x)

    gm = symbolic_trace(L(sub=nn.ReLU()))
    ms = replace_pattern(gm, L(sub=nn.Sigmoid()), R(tanh=nn.Tanh()))
    print(gm.code, ms, gm)


@prog
def r_placeholder_only():
    def f(x):
        return torch.relu(x)

    rp(f, lambda x: x, lambda x: torch.neg(x))


@prog
def r_unused_args():
    def f(x, y):
        return torch.add(x, y).relu()

    rp(f, lambda a, b: torch.add(a, b).relu(), lambda a, b: torch.relu(a))


@prog
def r_same_arg():
    def f(x, y):
        return torch.add(x, y) + torch.add(x, x)

    rp(f, lambda a: torch.add(a, a), lambda a: a * 2)


@prog
def r_preserve_meta():
    def f(x):
        return torch.add(x, 1).relu()

    gm = symbolic_trace(f)
    for n in gm.graph.nodes:
        n.meta["stack_trace"] = "st " + n.name
    replace_pattern(gm, lambda x: torch.add(x, 1), lambda x: torch.sub(x, 1).neg())
    print([(n.name, n.meta.get("stack_trace")) for n in gm.graph.nodes])


@prog
def r_nested_list():
    def f(x, y):
        return torch.cat([x, y, x], 0).sum()

    rp(f, lambda a, b, c: torch.cat([a, b, c], 0), lambda a, b, c: torch.stack([a, c]))


@prog
def r_scalar_arg():
    def f(x):
        return torch.add(x, 3).mul(4)

    rp(f, lambda x, k: torch.add(x, k), lambda x, k: torch.sub(x, k))


@prog
def r_traced_gm():
    from torch.fx.experimental.proxy_tensor import make_fx

    def f(x):
        return (x + 1).relu()

    gm = make_fx(f)(torch.ones(2))
    pat = make_fx(lambda x: x + 1)(torch.ones(2))
    rep = make_fx(lambda x: x * 5)(torch.ones(2))
    r = replace_pattern(gm, pat, rep)
    print(gm.code, r)


@prog
def r_bigger():
    def f(x, w):
        a = torch.mm(x, w)
        b = torch.add(a, 1)
        c = torch.mm(b, w)
        d = torch.add(c, 1)
        return d

    rp(f, lambda x, w: torch.add(torch.mm(x, w), 1), lambda x, w: torch.addmm(x, x, w))


@prog
def r_noncallable():
    gm = symbolic_trace(lambda x: x.relu())
    replace_pattern(gm, 3, 4)


@prog
def matcher_utils():
    from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

    gm = symbolic_trace(lambda x: (torch.relu(x) + 1).relu())
    pat = symbolic_trace(lambda x: torch.relu(x) + 1).graph
    m = SubgraphMatcher(
        pat, match_output=False, match_placeholder=False, remove_overlapping_matches=True
    )
    r = m.match(gm.graph)
    print(r)


# split
@prog
def s_basic():
    from torch.fx.passes.split_module import split_module

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.param = nn.Parameter(torch.rand(3, 4))
            self.linear = nn.Linear(4, 5)

        def forward(self, x, y):
            z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
            w = self.linear(y).clamp(min=0.0, max=1.0)
            return z + w

    m = M()
    gm = symbolic_trace(m)
    c = [0]

    def cb(n):
        r = c[0] % 3
        c[0] += 1
        return r

    s = split_module(gm, m, cb)
    print(s.code)
    print(s)
    for n, ch in s.named_children():
        print(n, ch.code)
    x = torch.rand(3, 4)
    y = torch.rand(3, 4)
    print(torch.allclose(m(x, y), s(x, y)))


@prog
def s_linear():
    from torch.fx.passes.split_module import split_module

    m = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    gm = symbolic_trace(m)
    qm = {}
    s = split_module(gm, m, lambda n: 0 if n.target in ("0", "1") else 1, qualname_map=qm)
    print(s.code, qm)
    print(s.submod_0.code, s.submod_1.code)
    print([n for n, _ in s.named_parameters()])


@prog
def s_getattr():
    from torch.fx.passes.split_module import split_module

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))

        def forward(self, x, y=3):
            a = x * self.w
            b = a.size(0)
            c = a + b
            return c * y, a

    m = M()
    gm = symbolic_trace(m)
    s = split_module(gm, m, lambda n: "b" if n.name in ("add", "mul_1") else "a")
    print(s.code, s.submod_a.code, s.submod_b.code)


@prog
def s_kw():
    from torch.fx.passes.split_module import split_module

    m = nn.Module()

    def f(x, *args, **kw):
        return x + args[0] + kw["k"]

    gm = symbolic_trace(f)
    s = split_module(gm, gm, lambda n: 0)
    print(s.code, s.submod_0.code)


@prog
def s_cycle():
    from torch.fx.passes.split_module import split_module

    def f(x):
        return x.relu().neg().relu()

    gm = symbolic_trace(f)
    split_module(gm, gm, lambda n: 1 if n.name == "neg" else 0)


@prog
def s_utils():
    from torch.fx.passes.split_utils import split_by_tags, getattr_recursive, setattr_recursive

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1 = nn.Linear(2, 2)
            self.linear2 = nn.Linear(2, 2)
            self.linear3 = nn.Linear(2, 2)

        def forward(self, x1, x2):
            l1 = self.linear1(x1)
            l2 = self.linear2(x2)
            r = l1 + l2
            l3 = self.linear3(r)
            return l3, l1

    m = M()
    gm = symbolic_trace(m)
    tags = {"linear1": "red", "linear2": "blue", "add": "green", "linear3": "green"}
    for n in gm.graph.nodes:
        if n.op in ("call_function", "call_module"):
            n.tag = tags[n.name]
    s = split_by_tags(gm, ["red", "blue", "green"])
    print(s.code)
    print(s)
    for n, ch in s.named_children():
        print(n, ch.code)
    x = torch.ones(1, 2)
    print([torch.allclose(a, b) for a, b in zip(m(x, x), s(x, x))])
    s, mp = split_by_tags(gm, ["red", "blue", "green"], return_fqn_mapping=True)
    print(mp)
    setattr_recursive(m, "linear1.bias", None)
    print(getattr_recursive(m, "linear1.bias"))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.attr_1 = nn.Parameter(torch.tensor([[-0.9]]))
        self.attr_2 = nn.Parameter(torch.tensor([[17.1]]))

    def forward(self, x, y):
        a = self.attr_1 + self.attr_1
        x = x - a
        return x * y + self.attr_2


@prog
def cf_auto():
    from torch.fx.experimental import const_fold

    m = M()
    g = const_fold.split_const_subgraphs(m)
    x, y = torch.ones(1), torch.ones(1) * 2
    print(g(x, y))


@prog
def cf_none():
    from torch.fx.experimental import const_fold

    g = const_fold.split_const_subgraphs(symbolic_trace(lambda x: x + 1))
    print(g.code, g.const_subgraph_module)
    print(g(torch.ones(1)))


@prog
def cf_multi():
    from torch.fx.experimental import const_fold

    class N(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(2))
            self.l = nn.Linear(2, 2)

        def forward(self, x):
            c = self.a.relu()
            d = self.a * 2
            return self.l(x) * c + d

    m = N()
    g = const_fold.split_const_subgraphs(m)
    print(g.code)
    print(g.const_subgraph_module.code)
    x = torch.ones(1, 2)
    print(torch.allclose(m(x), g(x)))


@prog
def cf_skip():
    from torch.fx.experimental import const_fold

    m = M()
    g = const_fold.split_const_subgraphs(m, skip_folding_node_fn=lambda n: True)
    print(g.code)


@prog
def norm_mod():
    gm = symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    for n in gm.graph.nodes:
        print(
            n.name,
            n.normalized_arguments(gm),
            n.normalized_arguments(gm, normalize_to_only_use_kwargs=True),
        )


@prog
def type_match():
    from torch.fx.operator_schemas import type_matches

    for a, b in [
        (int, int),
        (float, int),
        (typing.List[int], typing.List[int]),
        (typing.Optional[int], int),
        (torch.Tensor, nn.Parameter),
        (typing.List[torch.Tensor], list),
        (typing.Union[int, float], float),
        (int, str),
        (typing.Any, int),
    ]:
        print(type_matches(a, b))


@prog
def annot_type():
    from torch.fx.experimental.normalize import NormalizeArgs
    from torch.fx.passes.shape_prop import ShapeProp

    class L(Parts):
        def forward(self, x):
            return F.max_pool1d(self.l(x), 2)

    gm = symbolic_trace(L(l=nn.Linear(2, 2)))
    print(NormalizeArgs(gm).transform().code)


@prog
def passmanager():
    from torch.fx.passes.infra.pass_manager import (
        PassManager,
        pass_result_wrapper,
        this_before_that_pass_constraint,
        inplace_wrapper,
    )
    from torch.fx.passes.infra.pass_base import PassBase, PassResult

    class P(PassBase):
        def call(self, gm):
            for n in gm.graph.nodes:
                if n.target is torch.add:
                    n.target = torch.sub
                    return PassResult(gm, True)
            return PassResult(gm, False)

        def requires(self, gm):
            print("req")

        def ensures(self, gm):
            print("ens")

    gm = symbolic_trace(lambda x: torch.add(torch.add(x, 1), 2))
    pm = PassManager(passes=[P()], steps=5)
    r = pm(gm)
    print(r.modified, r.graph_module.code)

    def p1(g):
        return None

    def p2(g):
        return None

    pm = PassManager(
        passes=[pass_result_wrapper(p1), pass_result_wrapper(p2)],
        constraints=[this_before_that_pass_constraint(p2, p1)],
    )
    pm.validate_constraints()


@prog
def passmanager_err():
    from torch.fx.passes.infra.pass_manager import PassManager

    pm = PassManager(passes=[lambda g: 3])
    pm(symbolic_trace(lambda x: x + 1))


@prog
def trace_meta():
    import torch.fx.traceback as ft

    gm = symbolic_trace(lambda x: x.relu() + 1)
    for n in gm.graph.nodes:
        n.meta["stack_trace"] = "ST " + n.name
        n.meta["custom"] = {"c": n.name}
    with ft.preserve_node_meta():
        g2 = make_fx(lambda *a: Interpreter(gm).run(*a))(torch.ones(2))
    for n in g2.graph.nodes:
        print(
            n.name,
            n.meta.get("stack_trace"),
            n.meta.get("custom"),
            type(n.meta.get("from_node")).__name__,
        )


@prog
def trace_annot():
    import torch.fx.traceback as ft

    def f(x):
        with ft.annotate({"stage": 1}):
            y = x.relu()
            with ft.annotate({"stage": 2, "k": 3}):
                y = y + 1
        return y * 2

    with ft.preserve_node_meta():
        g = make_fx(f)(torch.ones(2))
    for n in g.graph.nodes:
        print(n.name, n.meta.get("custom"))


@prog
def trace_misc():
    import torch.fx.traceback as ft

    print(ft.has_preserved_node_meta(), ft.get_current_meta(), type(ft.format_stack()).__name__)
    with ft.preserve_node_meta():
        print(ft.has_preserved_node_meta())
        ft.set_stack_trace(["hi"])
        print(ft.format_stack())


def reinplaced(f, x):
    from torch.fx.passes.reinplace import reinplace

    print(reinplace(make_fx(f)(x), x).code)


@prog
def reinplace_basic():
    def f(x):
        a = x.clone()
        b = a.add(1)
        return b

    reinplaced(f, torch.ones(2))


@prog
def reinplace_view():
    def f(x):
        a = x.clone()
        v = a.view(-1)
        b = v.add(1)
        return b

    reinplaced(f, torch.ones(2, 2))


@prog
def reinplace_used_later():
    def f(x):
        a = x.clone()
        b = a.add(1)
        c = a.mul(2)
        return b + c

    reinplaced(f, torch.ones(2, 2))


@prog
def reinplace_input():
    def f(x):
        b = x.add(1)
        c = b.mul(2)
        return c.relu()

    reinplaced(f, torch.ones(2, 2))


@prog
def reinplace_scatter():
    from torch.fx.passes.reinplace import reinplace
    from torch.func import functionalize

    def f(x):
        a = x.clone()
        a[0].add_(1)
        a.mul_(2)
        return a

    gm = make_fx(functionalize(f))(torch.ones(2, 2))
    print(gm.code)
    r = reinplace(gm, torch.ones(2, 2))
    print(r.code)
    print(r(torch.ones(2, 2)))


@prog
def reinplace_dtype():
    def f(x):
        a = x.clone()
        return a.add(1.5), a.ge(0)

    reinplaced(f, torch.ones(2, dtype=torch.int64))


@prog
def tools_common():
    from torch.fx.passes.tools_common import (
        legalize_graph,
        get_node_target,
        stable_topological_sort,
    )

    gm = symbolic_trace(lambda x: x.relu() + 1)
    ns = list(gm.graph.nodes)
    ns[2].append(ns[1])
    legalize_graph(gm)
    print(gm.graph)
    gm.graph.lint()
    print([get_node_target({}, n) for n in gm.graph.nodes if n.op.startswith("call")])


@prog
def merge_matmul_etc():
    from torch.fx.experimental.optimization import fuse

    m = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1)).eval()
    g = fuse(m)
    print(g)


@prog
def gm_print_readable():
    gm = symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    print(gm.print_readable(print_output=False))
    gm.print_readable()


@prog
def common_same():
    from torch.fx.passes.utils.common import compare_graphs

    a = symbolic_trace(lambda x: x + 1).graph
    b = symbolic_trace(lambda x: x + 1).graph
    c = symbolic_trace(lambda x: x + 2).graph
    print(compare_graphs(a, b), compare_graphs(a, c))


@prog
def regional():
    from torch.fx import Graph

    g = Graph()
    x = g.placeholder("x")
    with g.inserting_before(x):
        y = g.placeholder("y")
    with g.inserting_after(x):
        z = g.call_function(torch.neg, (x,))
    with g.inserting_before():
        w = g.placeholder("w")
    with g.inserting_after():
        v = g.call_function(torch.add, (z, w))
    g.output(v)
    print(g)
    g.lint()


@prog
def eq_hash():
    from torch.fx.immutable_collections import immutable_list, immutable_dict

    l = immutable_list([1, 2])
    d = immutable_dict({"a": 1})
    print(
        l == [1, 2],
        d == {"a": 1},
        hash(l) is not None,
        repr(l),
        repr(d),
        copy.deepcopy(l),
        pickle.loads(pickle.dumps(d)),
        type(pickle.loads(pickle.dumps(l))).__name__,
    )


@prog
def wrapped_bad():
    wrap("x_not_top")


@prog
def wrapped_bad2():
    wrap(3)


@prog
def sym_trace_fx_tracing():
    from torch.fx._symbolic_trace import is_fx_tracing

    r = []

    def f(x):
        r.append(is_fx_tracing())
        return x

    symbolic_trace(f)
    print(r, is_fx_tracing())


if __name__ == "__main__":
    main()
