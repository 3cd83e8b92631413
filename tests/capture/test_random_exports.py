"""Random modules through `aot_export_*`: the graphs give what the module gives, writes included."""

import random
from contextlib import ExitStack

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.capture import export

UNARY = ["sin", "cos", "relu", "tanh", "exp", "sigmoid", "neg", "abs", "square"]
OPERATIONS = [  # a, b: values; r: numbers
    lambda r, a, b: f"{a}.{r.choice(UNARY)}()",
    lambda r, a, b: f"{a} {r.choice('+-*')} {b}",
    lambda r, a, b: f"{a}.{r.choice(['t()', 'detach()', 'reshape(-1).reshape(3, 3)'])}",
    lambda r, a, b: r.choice([
        "{} @ {}", "F.linear({}, {})", "torch.where({0} > 0, {0}, {1})",
        "torch.cat([{}[:1], {}[1:]])", "{} + {}.sum(0, keepdim=True)"]).format(a, b),
    lambda r, a, b: r.choice(["torch.softmax({}, 1)", "{}.clamp(-1, 1)", "{} * 0.5"]).format(a),
]
WRITES = ["add_(1)", "mul_(2)", "relu_()", "zero_()", "select(0, 0).fill_(2)", "t().add_(1)"]


def source(seed: int, loss: bool) -> str:
    r = random.Random(seed)
    lines, values = [], ["x", "y", "self.w", "self.b"]
    for i in range(r.randint(3, 9)):
        lines.append(f"v{i} = {r.choice(OPERATIONS)(r, r.choice(values), r.choice(values))}")
        values.append(f"v{i}")
        chance = r.random()
        if chance < 0.12:
            lines.append(f"self.b.{r.choice(['add_(1)', 'mul_(2)', f'copy_(v{i}.detach())'])}")
        elif chance < 0.18:
            lines.append(f"y.{r.choice(['add_(1)', 'mul_(2)'])}")
        elif chance < 0.28:
            lines.append(f"v{i} = v{i}.clone(); v{i}.{r.choice(WRITES)}")
        elif chance < 0.33:
            lines.append(f"with torch.no_grad(): v{i} = v{i} * 2")
    first, second = r.sample([v for v in values if v[0] == "v"], 2)
    results = f"{first}.mean(), {second}.detach()" if loss else f"{first}, {second}"
    lines.append(f"return {results}")
    return "def forward(self, x, y):\n    " + "\n    ".join(lines)


def made(seed: int, loss: bool = False):
    names = {"torch": torch, "F": nn.functional}
    exec(source(seed, loss), names)

    class Program(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.arange(9.0).reshape(3, 3) / 9)
            self.register_buffer("b", torch.ones(3, 3))

        forward = names["forward"]

    return Program(), torch.arange(9.0).reshape(3, 3) / 5, torch.full((3, 3), 0.5)


def check(found, wanted):
    torch.testing.assert_close(list(found), list(wanted), equal_nan=True)


@pytest.mark.parametrize("seed", range(30))
def test_graphs_give_what_modules_give(seed):
    for pre_dispatch in (False, True):
        module, x, y = made(seed)
        graph, signature = export.aot_export_module(
            module, (x, y), trace_joint=False, pre_dispatch=pre_dispatch)
        with torch.no_grad():
            found = dict(zip([n.name for n in graph.graph.output_node().args[0]],
                             graph(module.w, module.b.clone(), x, y.clone())))
            results = module(x, y)
        check([found[n] for n in signature.user_outputs], results)
        check([found[n] for n in signature.buffers_to_mutate], [module.b] * len(
            signature.buffers_to_mutate))
        check([found[n] for n in signature.user_inputs_to_mutate], [y] * len(
            signature.user_inputs_to_mutate))


@pytest.mark.parametrize("seed", range(30))
def test_joint_graphs_give_gradients(seed):
    module, x, y = made(seed, loss=True)
    given = module.w, module.b.clone(), x, y.clone()
    try:
        graph, signature = export.aot_export_module(
            module, (x, y.clone()), trace_joint=True, output_loss_index=0)
    except errors.ExportError:  # the loss, or a write to the buffer, does not fit
        loss = module(x, y)[0]
        assert not loss.requires_grad or module.b.requires_grad or y.requires_grad
        return
    found = dict(zip([n.name for n in graph.graph.output_node().args[0]], graph(*given)))
    loss, other = module(x, y)
    check([found[n] for n in signature.user_outputs], [loss, other])
    back = signature.backward_signature.gradients_to_parameters
    check([found[n] for n in back], torch.autograd.grad(loss, [module.w]))


@pytest.mark.parametrize("seed", range(30))
def test_described_graphs_compile(seed):
    module, x, y = made(seed)
    other, _, z = made(seed)
    with ExitStack() as stack:
        function = export.aot_compile_joint_with_descriptors(
            export.aot_export_joint_with_descriptors(stack, module, (x, y)))
    out, want = function(module.w, module.b, x, y), other(x, z)
    check(out, want)
    check([module.b, y], [other.b, z])
    sums = [sum([v.sum() for v in side if v.requires_grad], torch.zeros(()))
            for side in (out, want)]
    assert sums[0].requires_grad == sums[1].requires_grad
    if sums[0].requires_grad:
        check(torch.autograd.grad(sums[0], [module.w], allow_unused=True, materialize_grads=True),
              torch.autograd.grad(sums[1], [other.w], allow_unused=True, materialize_grads=True))
