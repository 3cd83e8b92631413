"""Derivative formulas: what they save, what they become, and every check on them.

The entries made here are not put into the table.
"""

import pytest

import pullback as torch
from pullback import errors, func
from pullback.core.formula import Rule, _by_device
from pullback.core.op import Composite, Op, Pointwise, View
from pullback.core.overload import OpOverload
from pullback.table import checks

UNARY = "f(Tensor self) -> Tensor"
BINARY = "f(Tensor self, Tensor other) -> Tensor"
PAIR = "f(Tensor self) -> (Tensor first, Tensor second)"
INPLACE = "f_(Tensor(a!) self) -> Tensor(a!)"


def entry(schema: str, kind=Op, **attributes) -> OpOverload:
    """An operator outside of the table."""
    name = schema[: schema.index("(")]
    op = type("entry", (kind,), {"function": False, "method": False})
    for key, value in {
        "schema": schema,
        "full_name": name,
        "base_name": name.partition(".")[0],
        **attributes,
    }.items():
        setattr(op, key, staticmethod(value) if callable(value) else value)
    return OpOverload(op)


def compiled(schema: str, kind=Op, **attributes) -> OpOverload:
    """The same with everything compiled that can be."""
    overload = entry(schema, kind, **attributes)
    if overload.schema and overload.rule is None:
        checks.check_ignored(overload)
    assert overload.pushforward is not None or overload.op.push is None
    return overload


def saved(overload: OpOverload) -> list[str]:
    return [local for local, _, _, _ in overload.rule.saves]


# checks

REFUSED = {  # what it is: schema, attributes or the formula of self, message
    "both input and output": ("f(Tensor self) -> (Tensor self, Tensor other)", "grad",
        "'self' is both an input and an output"),
    "no such argument": (UNARY, {"grad": {"slef": "grad"}},
        "'slef', which is no argument.*did you mean 'self'"),
    "not a tensor": ("f(Tensor self, int n) -> Tensor", {"grad": {"n": "grad"}},
        "'n', which is not a tensor"),
    "differentiable and not": (UNARY, {"grad": {"self": "grad"}, "nondiff": ("self",)},
        "'self' is both differentiable and not"),
    "formula and zero": (UNARY, {"grad": {"self": "grad"}, "constant": ("self",)},
        "'self' is both differentiable and not"),
    "given twice": (BINARY, {"grad": {"self": "grad", "self, other": "(grad, grad)"}},
        "'self' is given twice"),
    "nondiff is no argument": (UNARY, {"grad": {"self": "grad"}, "nondiff": ("index",)},
        "'index', which is no"),
    "no expression": (UNARY, "grad *", "cannot read the formula 'grad \\*'"),
    "unknown name": (UNARY, "grad * cosx", "uses 'cosx', which is neither"),
    "misspelt name": (UNARY, "grad * reslt", "did you mean result"),
    "mixed spellings": (PAIR, "grads[0] + grad_first + grads[1]",
        "mixes the gradient spellings grad_NAME, grads"),
    "mixed in two formulas": (BINARY, {"grad": {"self": "grad", "other": "grads"}},
        "mixes the gradient spellings grad, grads"),
    "lone grads[0]": (UNARY, "grads[0]", "uses only grads\\[0\\].*write grad"),
    "lone grads[0] of two": (PAIR, "grads[0]", "uses only grads\\[0\\]"),
    "index out of range": (PAIR, "grads[0] + grads[2]", "grads\\[2\\] is out of range"),
    "negative index out of range": (PAIR, "grads[0] + grads[-3]", "grads\\[-3\\] is out of range"),
    "index counts differentiable outputs": (PAIR,
        {"grad": {"self": "grads[0] + grads[1]"}, "diff_outputs": (True, False)},
        "grads\\[1\\] is out of range: the operator has 1 "),
    "gradient of a constant output": (PAIR,
        {"grad": {"self": "grad_first + grad_second"}, "diff_outputs": (True, False)},
        "uses grad_second, but 'second' is not differentiable"),
    "sizes()": (UNARY, "grad.expand(self.sizes())", "plain sizes or strides: self.sizes\\(\\)"),
    "size(i)": (UNARY, "grad * self.size(0)", "plain sizes or strides: self.size\\(0\\)"),
    "strides()": (UNARY, "f(self.strides())", "plain sizes or strides: self.strides\\(\\)"),
    "sizes of the result": (UNARY, "grad * result.size(0)", "result.size\\(0\\)"),
    "sizes of the gradient": (UNARY, "grad.expand(grad.sizes())", "grad.sizes\\(\\)"),
    "strides of another tensor": (BINARY,
        {"grad": {"self": "grad * other.stride(0)", "other": "grad"}},
        "strides of 'other': only those"),
    "strides in a formula of two": (BINARY, {"grad": {"self, other": "(grad, self.stride())"}},
        "strides of 'self': only those"),
    "strides of the gradient": (UNARY, "grad * grad.stride(0)", "strides of 'grad': only"),
    "strides of an overwritten tensor": (INPLACE, "grad * self.stride(0)",
        "strides of 'self', which the operator overwrites"),
    "condition of wrap_opt_if": (BINARY,
        {"grad": {"self, other": "h(wrap_opt_if(other, self.requires_grad))"}},
        "wrap_opt_if\\(other, self.requires_grad\\) tests 'self'"),
    "mask of wrap_opt_if": (BINARY,
        {"grad": {"self, other": "h(wrap_opt_if(other, grad_input_mask[2]))"}},
        "grad_input_mask\\[2\\] is out of range"),
    "several conditions": (PAIR, {"grad": {"self": "grad"}, "diff_outputs": ("a", "b")},
        "lists 2 conditions"),
    "condition in a list": (UNARY, {"grad": {"self": "grad"}, "diff_outputs": ("True",)},
        "lists 1 conditions"),
    "condition on several outputs": (PAIR, {"grad": {"self": "grad"}, "diff_outputs": "True"},
        "a condition on 2 outputs"),
    "wrong number of flags": (PAIR, {"grad": {"self": "grad"}, "diff_outputs": (True,)},
        "has 1 items for 2 outputs"),
    "False for an in-place operator": (INPLACE,
        {"grad": {"self": "grad"}, "diff_outputs": (False,)},
        "in-place operator with an output that is not"),
    "no differentiable output": (UNARY, {"grad": {"self": "grad"}, "diff_outputs": (False,)},
        "derivative ignored: .*no differentiable output"),
    "no tensor output": ("f(Tensor self) -> bool", "grad",
        "derivative ignored: .*no differentiable output"),
    "pushforward without gradient": (UNARY, {"push": "self_t", "nondiff": ("self",)},
        "derivative ignored: `push`.*no differentiable input"),
    "linear without gradient": (UNARY, {"linear": ("self",)}, "derivative ignored: `linear`"),
    "dispatch without inputs": (UNARY,
        {"dispatch": {"AutogradCPU": {"self": "non_differentiable"}}}, "no differentiable input"),
    "linear misses an input": (BINARY,
        {"grad": {"self": "grad", "other": "grad"}, "linear": ("self",)}, "disagree about 'other'"),
    "linear names no argument": (UNARY, {"grad": {"self": "grad"}, "linear": ("self", "x")},
        "disagree about 'x'"),
    "multilinear misses an input": (BINARY,
        {"grad": {"self": "grad", "other": "grad"}, "multilinear": ("other",)},
        "disagree about 'self'"),
    "unknown dispatch key": (UNARY, {"dispatch": {"AutogradCpu": {"self": "grad"}}},
        "unknown dispatch key 'AutogradCpu'.*AutogradCPU"),
    "unknown name under dispatch": (UNARY, {"dispatch": {"AutogradCPU": {"slef": "grad"}}},
        "'slef' is neither an input nor an output.*'self'"),
    "ambiguous name": (UNARY, {"grad": {"self": "grad"}, "push": "self_t * self"},
        "names 'self'.*write self_p or self_t"),
    "unknown name in a pushforward": (UNARY, {"grad": {"self": "grad"}, "push": "self_t * slf_p"},
        "unknown name 'slf_p'.*did you mean self_p"),
    "no tangent": (UNARY, {"grad": {"self": "grad"}, "push": "self_p * 2"}, "uses no tangent"),
    "too few forward formulas": (PAIR,
        {"grad": {"self": "grads[0] + grads[1]"}, "push": {"first": "self_t"}},
        "forward formulas for first, but the differentiable outputs are first, second"),
    "too many forward formulas": (PAIR,
        {"grad": {"self": "grad"}, "push": {"first": "self_t", "second": "self_t"}},
        "but the differentiable outputs are first\n"),
    "auto_linear of two outputs": (PAIR,
        {"grad": {"self": "grads[0] + grads[1]"}, "push": {"first, second": "auto_linear"}},
        "auto_linear needs exactly one differentiable output; there are 2"),
    "auto_element_wise of two inputs": (BINARY,
        {"grad": {"self": "grad", "other": "grad"}, "push": "auto_element_wise"},
        "auto_element_wise needs exactly one differentiable input; there are 2"),
    "auto_element_wise of two outputs": (PAIR,
        {"grad": {"self": "grads[0] + grads[1]"}, "push": {"first, second": "auto_element_wise"}},
        "auto_element_wise needs exactly one differentiable output"),
    "auto_element_wise in place": (INPLACE, {"grad": {"self": "grad"}, "push": "auto_element_wise"},
        "not for in-place operators"),
    "overwritten primal": (INPLACE, {"grad": {"self": "grad"}, "push": "self_t * self_p"},
        "value of 'self', which the operator overw"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    schema, attributes, fragment = REFUSED[case]
    if isinstance(attributes, str):
        attributes = {"grad": {"self": attributes}}
    with pytest.raises(errors.FormulaError, match=f"(?s){fragment}") as info:
        compiled(schema, **attributes)
    assert schema in str(info.value), "the message quotes the entry"
    assert "Fix: " in str(info.value), "the message names a cure"


@pytest.mark.parametrize(
    "attributes",
    [
        {"grad": {"self": "grad"}},
        {"constant": ("self",)},
        {"nondiff": ("self",)},
        {"push": "self_t"},
        {"diff_outputs": (True,)},
        {"dispatch": {"AutogradCPU": {"self": "grad"}}},
    ],
)
def test_composites_have_no_formulas(attributes):
    with pytest.raises(errors.FormulaError, match="composite"):
        compiled(UNARY, Composite, compose=lambda self: self, **attributes)


@pytest.mark.parametrize("name", ["result", "grad_input_mask"])
def test_forbidden_argument_names(name):
    with pytest.raises(errors.SchemaError, match=f"must not be called '{name}'") as info:
        compiled(f"f(Tensor {name}) -> Tensor")
    assert "Fix: " in str(info.value)


def test_a_tensor_list_needs_no_tangent():
    compiled(
        "f(Tensor[] tensors) -> Tensor",
        grad={"tensors": "[grad for t in tensors]"},
        push="result.clone()",
    )


# what is saved


@pytest.mark.parametrize(
    "schema, grad, expected",
    [
        (UNARY, {"self": "grad * self"}, ["self"]),
        (UNARY, {"self": "grad * result"}, ["result"]),
        (UNARY, {"self": "grad.expand(self.shape)"}, ["self__shape"]),
        (
            UNARY,
            {"self": "grad * self.shape[0] * self.numel() * self.ndim * self.dim()"},
            ["self__dim", "self__ndim", "self__numel", "self__shape"],
        ),
        (
            UNARY,
            {"self": "grad.to(self.dtype) * self.is_complex()"},
            ["self__dtype", "self__is_complex"],
        ),
        (UNARY, {"self": "grad * self.stride(0)"}, ["self__stride"]),
        (UNARY, {"self": "grad + self.shape[0] * self"}, ["self__shape", "self"]),
        (UNARY, {"self": "sum(g for g in [grad])"}, []),
        (BINARY, {"self": "grad * other", "other": "grad * self"}, ["other", "self"]),
        ("f(Tensor self, int n, Scalar? s) -> Tensor", {"self": "grad * n"}, ["n"]),
    ],
)
def test_saved_values(schema, grad, expected):
    assert saved(entry(schema, grad=grad)) == expected


def test_a_value_is_kept_only_for_a_gradient_that_needs_it():
    rule = entry(BINARY, grad={"self": "grad * other", "other": "grad * self"}).rule
    assert rule.guards == [(0,), (1,)]
    rule = entry(BINARY, grad={"self, other": "(grad * other, grad * self)"}).rule
    assert rule.guards == [(), ()]


def test_wrap_opt_if_is_a_condition_on_saving():
    schema = "f(Tensor self, Tensor weight, Tensor bias) -> Tensor"
    text = "(grad * wrap_opt_if(weight, grad_input_mask[0] or grad_input_mask[2]), grad, grad)"
    rule = entry(schema, grad={"self, weight, bias": text}).rule
    assert (rule.saves, rule.guards) == ([("weight", "arg", "weight", None)], [(0, 2)])
    seen = entry(BINARY, run="self * 1 + other * 1", shape="self.shape",
        grad={"self, other": "(grad * wrap_opt_if(other, grad_input_mask[0]), grad)"})
    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.0)
    out = seen.call(x, y)
    assert out.grad_fn._saved_other is y
    out.sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert seen.call(torch.ones(2), y.clone().requires_grad_()).grad_fn._saved_other is None


# what they become


def run(overload, *args):
    leaves = [a.detach().requires_grad_() if isinstance(a, torch.Tensor) else a for a in args]
    out = overload.call(*leaves)
    return leaves, out


def test_conjugations_are_for_complex_numbers_only():
    rule = entry(UNARY, grad={"self": "grad * self.conj() + grad.mH"}).rule
    assert "_conj" not in rule.source(conjugate=False) and "mT" in rule.source(conjugate=False)
    assert "_conj(self)" in rule.source(conjugate=True) and "mH" in rule.source(conjugate=True)


def test_names_of_gradients():
    make = {"run": "(self * 2, self * 3)", "promote": "keep", "shape": "[self.shape, self.shape]"}
    for text in (
        "grads[0] * 2 + grads[1] * 3",
        "grad_first * 2 + grad_second * 3",
        "grads[-2] * 2 + grads[1] * 3",
    ):
        (x,), (first, second) = run(entry(PAIR, grad={"self": text}, **make), torch.ones(2))
        (first + second).sum().backward()
        assert x.grad.tolist() == [5, 5]
    (x,), (first, second) = run(entry(PAIR, grad={"self": "grad * 2"}, **make), torch.ones(2))
    assert first.requires_grad and not second.requires_grad


def test_mask_and_needs():
    text = "(grad if grad_input_mask[0] else None, grad if grad_input_mask[1] else None)"
    both = entry(BINARY, run="self + other", shape="self.shape", grad={"self, other": text})
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    both.call(x, y).sum().backward()
    assert x.grad.tolist() == [1, 1]
    text = "grad * (2 if needs_input_grad('other') else 3) * (1 if retain_variables else 5)"
    one = entry(
        BINARY, run="self + other", shape="self.shape", grad={"self": text, "other": "grad"})
    x.grad = None
    one.call(x, y).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_the_gradient_of_one_piece_of_many_is_not_lost():
    x = torch.arange(6.0).requires_grad_()
    x.split(2)[1].sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 1, 0, 0]
    x.grad = None
    (x * 1).unbind()[4].backward()
    assert x.grad.tolist() == [0, 0, 0, 0, 1, 0]


def test_zero_derivatives():
    one = entry(UNARY, run="self * 0", shape="self.shape", constant=("self",))
    (x,), out = run(one, torch.ones(2, 3))
    out.sum().backward()
    assert x.grad.tolist() == [[0] * 3] * 2
    many = entry("f(Tensor[] tensors) -> Tensor", run="tensors[0] * 0", shape="tensors[0].shape",
        constant=("tensors",))
    tensors = [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]
    many.call(tensors).sum().backward()
    assert [t.grad.tolist() for t in tensors] == [[0, 0], [0, 0, 0]]


def test_not_implemented():
    half = entry(BINARY, run="self * other", shape="self.shape", grad={ "self": "grad * other",
        "other": "not_implemented('f: other', 'nobody asked for it')", })
    (x, _), out = run(half, torch.ones(2), torch.full((2,), 3.0))
    assert torch.autograd.grad(out.sum(), x, retain_graph=True)[0].tolist() == [3, 3]
    with pytest.raises(
        errors.DerivativeNotWritten, match=r"(?s)'f: other' is not implemented.*nobody asked"
    ) as info:
        out.sum().backward()
    assert isinstance(info.value, NotImplementedError) and "test_formula.py" in str(info.value)
    forward = entry(UNARY, run="self * 1", shape="self.shape", grad={"self": "grad"},
        push="not_implemented('f')")
    with pytest.raises(errors.DerivativeNotWritten, match="'f' is not implemented"):
        func.jvp(forward.call, (torch.ones(2),), (torch.ones(2),))


def test_condition():
    maybe = entry("f(Tensor self, bool on) -> Tensor", run="self * 1", shape="self.shape",
        grad={"self": "grad"}, diff_outputs="on")
    x = torch.ones(2, requires_grad=True)
    assert maybe.call(x, True).requires_grad and not maybe.call(x, False).requires_grad


def test_never_differentiable():
    never = entry(UNARY, run="self * 1", shape="self.shape", diff_outputs=(False,))
    assert never.rule is None
    assert not never.call(torch.ones(2, requires_grad=True)).requires_grad
    assert func.jvp(never.call, (torch.ones(2),), (torch.ones(2),))[1].tolist() == [0, 0]


# forward mode


def test_auto_linear():
    twice = entry(BINARY, run="self * 2 + other * 3", shape="self.shape", push="auto_linear",
        grad={"self": "grad * 2", "other": "grad * 3"})
    x, t = torch.ones(2), torch.full((2,), 5.0)
    assert func.jvp(twice.call, (x, x), (t, x))[1].tolist() == [13, 13]


def test_auto_linear_of_one_output_among_several():
    made = entry(PAIR, run="(self * 2, self * self)", promote="keep",
        shape="[self.shape, self.shape]", grad={"self": "grad * 2"}, push={"first": "auto_linear"})
    x, t = torch.ones(2), torch.full((2,), 5.0)
    first, second = func.jvp(made.call, (x,), (t,))[1]
    assert (first.tolist(), second.tolist()) == ([10, 10], [0, 0])


def test_auto_element_wise():
    square = entry(UNARY, run="self * self", shape="self.shape",
        push={"result": "auto_element_wise"}, grad={"self": "grad * 2 * self.conj()"}, complex=True)
    x, t = torch.full((2,), 3.0), torch.full((2,), 5.0)
    assert func.jvp(square.call, (x,), (t,))[1].tolist() == [30, 30]
    z, s = torch.tensor([1 + 2j]), torch.tensor([3 - 1j])
    assert func.jvp(square.call, (z,), (s,))[1].tolist() == [2 * (1 + 2j) * (3 - 1j)]


def test_written_pushforward():
    made = entry("f(Tensor self, int n) -> (Tensor first, Tensor second)",
        run="(self * n, self * self)", promote="keep", shape="[self.shape, self.shape]",
        grad={"self": "grads[0] * n + grads[1] * 2 * self"},
        push={"first": "self_t * n", "second": "sum([self_t, first * 0]) * self_p * 2"})
    first, second = func.jvp(lambda x: made.call(x, 4), (torch.full((2,), 3.0),), (torch.ones(2),))[
        1
    ]
    assert (first.tolist(), second.tolist()) == ([4, 4], [6, 6])


def test_a_view_and_a_pointwise_operator_need_no_pushforward():
    assert entry("f(Tensor(a) self) -> Tensor(a)", View, grad={"self": "grad"}).pushforward is None
    double = entry(UNARY, Pointwise, run="self * 2", grad={"self": "grad * 2"})
    assert double.pushforward is None
    assert func.jvp(double.call, (torch.ones(2),), (torch.ones(2),))[1].tolist() == [2, 2]


# dispatch


def test_formulas_for_a_backend():
    both = entry(UNARY, run="self * 2", shape="self.shape", grad={"self": "grad * 2"},
        push="self_t * 2",
        dispatch={"AutogradCPU": {"self": "grad * 20 * self", "result": "self_t * 20"}})
    (x,), out = run(both, torch.ones(2))
    out.sum().backward()
    assert x.grad.tolist() == [20, 20]
    assert func.jvp(both.call, (torch.ones(2),), (torch.ones(2),))[1].tolist() == [20, 20]

    class Elsewhere:
        _edge = None

        class device:
            type = "cuda"

    assert _by_device({"Default": 1, "AutogradCPU": 2}, [None, Elsewhere], both.rule) == 1
    assert _by_device({"Default": 1, "AutogradCUDA": 3}, [[Elsewhere]], both.rule) == 3


def test_formulas_for_another_backend_only():
    nested = entry(UNARY, run="self * 2", shape="self.shape",
        dispatch={"AutogradNestedTensor": {"self": "grad * 2"}})
    (_,), out = run(nested, torch.ones(2))
    with pytest.raises(errors.DerivativeNotWritten, match="not implemented for AutogradCPU"):
        out.sum().backward()


def test_an_input_that_one_backend_lacks():
    part = entry(BINARY, run="self + other", shape="self.shape",
        grad={"self": "grad", "other": "grad"}, dispatch={"AutogradCPU": {"self": "grad"}})
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    assert torch.autograd.grad(part.call(x, y).sum(), x)[0].tolist() == [1, 1]
    with pytest.raises(errors.DerivativeNotWritten, match=r"(?s)'other'.*not for AutogradCPU"):
        torch.autograd.grad(part.call(x, y).sum(), y)


def test_rules_exist_only_where_something_is_said():
    assert not Rule.exists(entry(UNARY).op) and not Rule.exists(entry(UNARY, nondiff=("self",)).op)
    assert entry(UNARY).rule is None and entry(UNARY).pushforward is None
