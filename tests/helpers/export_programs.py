"""Programs to export, and what an export shows; `record_exports.py` wrote what PyTorch gives.

`outcomes(torch)` runs with either library: every name is looked up in the module that it gets.
"""

import re
from contextlib import ExitStack


def programs(torch, over) -> dict:
    """Name -> (module, arguments, options of `aot_export_module`); `over` is `map`."""
    nn, F = torch.nn, torch.nn.functional

    class Function(nn.Module):
        def __init__(self, function, **state):
            super().__init__()
            self.function = function
            for name, value in state.items():
                if isinstance(value, nn.Parameter):
                    self.register_parameter(name, value)
                elif isinstance(value, nn.Module):
                    self.add_module(name, value)
                else:
                    self.register_buffer(name, value)

        def forward(self, *args, **kwargs):
            out = self.function(self, *args, **kwargs)
            return (out,) if isinstance(out, torch.Tensor) else out

    class ConvBnRelu(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(1, 3, 1, 1), nn.BatchNorm2d(3)

        def forward(self, x):
            out = torch.relu(self.bn(self.conv(x)))
            return out.sum(), out.detach()

    def ones(*shape, grad=False):
        return torch.ones(*shape, requires_grad=grad)

    def parameter():
        return nn.Parameter(ones(3, 3))

    def write_input(self, x):
        y = x.add_(4)
        return y.sum() + x.sum() + self.b.cos()

    def write_several(self, x, y):
        y.add_(4)
        self.b.add_(5)
        return x.cos().sum() + y.sin().sum() + self.b.sum()

    def write_required(self, x):
        y = x.add_(4)
        return y

    def write_parameter(self, x):
        with torch.no_grad():
            self.p.mul_(2)
        return (self.p + x).sum()

    def write_recorded(self, x):
        self.p.mul(1).add_(2)
        x.add_(self.p)
        return x.sum()

    def turn(self, x):
        x.transpose_(1, 0)
        return x + x

    def write_first(self, x, y):
        x.mul_(2)
        return (x + y).sum()

    def grad_modes(self, x):
        y = x.sin()
        with torch.no_grad():
            y.add_(5)
            z = y.cos()
        with torch.enable_grad():
            z = z + x
        return z, y

    def autograd_op(self, x):
        y = x.add(1)
        with torch.set_grad_enabled(True):
            w = x.add(2)
            w.relu_()
            with torch.set_grad_enabled(False):
                y = w + y
        return y.sub(1), w

    def composite(self, x, y):
        with torch.enable_grad():
            x = torch.matmul(x, y)
            x.add_(1)
        return x.relu() + y.sum()

    def composite_view(self, x, y):
        z = torch.matmul(x, y)
        z.view(-1)[0].add_(5)
        return z.sum()

    def linear(self, x):
        return F.linear(x, self.p).relu()

    def dropout(self, x):
        y = F.dropout(x, 0.1, training=False)
        y.add_(5)
        return y

    def write_buffer(self, x):
        self.b.add_(3)
        self.b.mul_(x.sum())
        return self.b.sum() + x.cos()

    def branch(x):
        y = x.cos()
        y.add_(5)
        return x.sin().sum() + y.sum()

    def cond(self, x):
        return torch.cond(x.sum() > 4, branch, lambda x: (x - 1).sum(), [x])

    def inner(x):
        return torch.cond(x.sum() > 1, lambda x: x.cos().add_(4), lambda x: x - 2, [x])

    def nested(self, x):
        return torch.cond(x.sum() > 4, inner, lambda x: x + 1, [x])

    def body(x, y):
        z = x.cos()
        z.add_(1)
        return z + y

    def mapped(self, x, y):
        return over(body, x, y), over(body, x, y + 1)

    def item(self):
        return torch.full((torch.full((), 11).item(),), 0)

    def factory(self):
        return torch.full((torch.tensor(4).item(),), 7)

    return {
        "cond": (Function(cond), (ones(3, 4),), {}),
        "pre cond": (Function(cond), (ones(3, 4),), {"pre_dispatch": True}),
        "pre nested cond": (Function(nested), (ones(3, 4),), {"pre_dispatch": True}),
        "map": (Function(mapped), (ones(2, 2), ones(2)), {}),
        "pre map": (Function(mapped), (ones(2, 2), ones(2)), {"pre_dispatch": True}),
        "item of a constant": (Function(factory), (), {}),
        "item": (Function(item), (), {"dynamic_shapes": True}),
        "joint": (ConvBnRelu(), (ones(1, 1, 3, 3),), {"trace_joint": True, "output_loss_index": 0}),
        "inference": (ConvBnRelu(), (ones(1, 1, 3, 3),), {}),
        "eval": (ConvBnRelu().eval(), (ones(1, 1, 3, 3),), {}),
        "pre conv_bn": (ConvBnRelu(), (ones(1, 1, 3, 3),), {"pre_dispatch": True}),
        "joint mlp": (
            Function(lambda m, x, t: F.mse_loss(m.b(F.gelu(m.a(x))), t), a=nn.Linear(3, 4),
                     b=nn.Linear(4, 2)),
            (ones(5, 3), ones(5, 2)), {"trace_joint": True, "output_loss_index": 0}),
        "joint input": (
            Function(lambda m, x: (m.p * x).sum(), p=parameter()), (ones(3, 3, grad=True),),
            {"trace_joint": True, "output_loss_index": 0}),
        "tree": (
            Function(lambda m, x, d: (x + d["a"], [d["b"][0] * m.b]), b=ones(2)),
            (ones(2), {"a": ones(2), "b": [ones(2)]}), {}),
        "dictionary": (Function(lambda m, x: {"u": x + 1}), (ones(2),), {}),
        "keyword": (
            Function(lambda m, x, *, scale: x * scale), (ones(2),), {"kwargs": {"scale": ones(2)}}),
        "write input": (Function(write_input, b=ones(3)), (ones(3),), {}),
        "write several": (Function(write_several, b=ones(6, 4)), (ones(6, 4), ones(6, 4)), {}),
        "write required": (Function(write_required), (ones(2, grad=True),), {}),
        "write parameter": (Function(write_parameter, p=parameter()), (ones(3, 3),), {}),
        "joint write": (
            Function(write_recorded, p=parameter()), (ones(3, 3),),
            {"trace_joint": True, "output_loss_index": 0}),
        "joint write parameter": (
            Function(write_parameter, p=parameter()), (ones(3, 3),),
            {"trace_joint": True, "output_loss_index": 0}),
        "metadata": (Function(turn), (ones(3, 2),), {}),
        "overlap": (Function(write_first), (lambda x: (x, x.view(-1)))(ones(4)), {}),
        "duplicate": (Function(write_first), (lambda x: (x, x))(ones(4)), {}),
        "two outputs": (
            Function(lambda m, x: ((m.p * x).sum(), m.p + x), p=parameter()), (ones(3, 3),),
            {"trace_joint": True, "output_loss_index": 0}),
        "no loss": (
            Function(lambda m, x: (m.p * x).sum(), p=parameter()), (ones(3, 3),),
            {"trace_joint": True}),
        "large loss": (
            Function(lambda m, x: m.p * x, p=parameter()), (ones(3, 3),),
            {"trace_joint": True, "output_loss_index": 0}),
        "constant loss": (
            Function(lambda m, x: x.sum(), p=parameter()), (ones(3, 3),),
            {"trace_joint": True, "output_loss_index": 0}),
        "pre joint": (
            Function(lambda m, x: x.sum()), (ones(3),),
            {"trace_joint": True, "output_loss_index": 0, "pre_dispatch": True}),
        "pre dropout": (Function(dropout), (ones(3),), {"pre_dispatch": True}),
        "dropout": (Function(dropout), (ones(3),), {}),
        "pre grad modes": (Function(grad_modes), (ones(3, 4),), {"pre_dispatch": True}),
        "pre autograd op": (Function(autograd_op), (ones(3, 4),), {"pre_dispatch": True}),
        "pre composite": (Function(composite), (ones(4, 3), ones(3, 5)), {"pre_dispatch": True}),
        "pre view": (Function(composite_view), (ones(4, 3), ones(3, 5)), {"pre_dispatch": True}),
        "pre linear": (Function(linear, p=parameter()), (ones(4, 3),), {"pre_dispatch": True}),
        "pre inplace": (
            Function(lambda m, x: x.clone().absolute_()), (ones(3),), {"pre_dispatch": True}),
        "pre reshape": (
            Function(lambda m, x: x.reshape(4, 4) + x.reshape(4, 4).sum()), (ones(2, 8),),
            {"pre_dispatch": True}),
        "pre contiguous": (
            Function(lambda m, x: x.contiguous().cos()), (ones(2, 8),), {"pre_dispatch": True}),
        "pre buffer": (Function(write_buffer, b=ones(6, 4)), (ones(6, 4),), {"pre_dispatch": True}),
    }


FIELDS = [
    "parameters", "buffers", "user_inputs", "user_outputs", "inputs_to_parameters",
    "inputs_to_buffers", "buffers_to_mutate", "parameters_to_mutate", "user_inputs_to_mutate",
]


def signature(found) -> dict:
    """The fields of a signature as plain data."""
    back = found.backward_signature
    out = {name: getattr(found, name) for name in FIELDS}
    out["in_spec"] = re.sub(r"\s+", " ", str(found.in_spec))
    out["out_spec"] = re.sub(r"\s+", " ", str(found.out_spec))
    if back is not None:
        out["backward"] = [
            back.gradients_to_parameters, back.gradients_to_user_inputs, back.loss_output]
    return out


def typed(module) -> str:
    """The typed print without the places in source files."""
    text = module.print_readable(print_output=False, expanded_def=True)
    text = re.sub(r"\bu\d+\b", "u", text)  # PyTorch counts sizes from data over several traces
    lines = text.splitlines()
    return "\n".join([n.rstrip() for n in lines if n.strip() and not n.strip().startswith("# ")])


def outcome(aot, module, args, options) -> dict:
    """What an export gives: code, typed print and signature, or how it is refused."""
    try:
        graph, found = aot.aot_export_module(
            module, args, **{"trace_joint": False, **options})
    except Exception as error:
        return {"error": refusal(error)}
    return {"code": graph.code.strip(), "typed": typed(graph), "signature": signature(found)}


def refusal(error: Exception) -> list[str]:
    kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")
    return [kind.__name__, str(error).strip().splitlines()[0]]


def functions(torch) -> dict:
    """Name -> (function, arguments, options of `aot_export_joint_simple`)."""
    def x(grad=True):
        return torch.ones(3, requires_grad=grad)

    def two(a, b):
        return a.sin() * b, b.relu()

    def write(a):
        a.mul_(2)
        return (a,)

    return {
        "simple": (two, (x(False), x(False)), {"trace_joint": False}),
        "simple joint": (two, (x(), x()), {"trace_joint": True}),
        "simple write": (write, (x(False),), {"trace_joint": False}),
        "simple view": (lambda a: (a.view(-1),), (x(False),), {"trace_joint": False}),
        "simple tensor": (lambda a: a + 1, (x(False),), {"trace_joint": False}),
        "simple tree": (lambda a: (a[0] + 1,), ([x(False)],), {"trace_joint": False}),
        "simple nest": (lambda a: ([a + 1],), (x(False),), {"trace_joint": False}),
    }


def described(torch) -> dict:
    """Name -> (module, arguments, keyword arguments) of `aot_export_joint_with_descriptors`."""
    nn = torch.nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)
            self.register_buffer("b", torch.ones(2))

        def forward(self, x, *, scale):
            self.b.add_(1)
            return {"o": self.linear(x) * scale + self.b, "l": [x]}

    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2, 2))

        def forward(self, x):
            y = self.w * x
            return y.view(-1), y.t()

    return {
        "described": (Scaled(), (torch.ones(4, 3),), {"scale": torch.ones(2)}),
        "described views": (Views(), (torch.ones(2, 2),), {}),
        "described linear": (nn.Linear(3, 2), (torch.ones(4, 3),), {}),
    }


def outcomes(torch, aot, over) -> dict:
    """Everything above, as plain data."""
    torch.manual_seed(0)
    found = {name: outcome(aot, *program) for name, program in programs(torch, over).items()}
    for name, (function, args, options) in functions(torch).items():
        try:
            graph = aot.aot_export_joint_simple(function, args, **options)
            found[name] = {"code": graph.code.strip(), "typed": typed(graph)}
        except Exception as error:
            found[name] = {"error": refusal(error)}
    for name, (module, args, kwargs) in described(torch).items():
        with ExitStack() as stack:
            joint = aot.aot_export_joint_with_descriptors(stack, module, args, kwargs)
            found[name] = {"typed": typed(joint.graph_module)}

    def write(a, b):
        a.add_(1)
        return [a * b]

    graph, _, _, _ = aot._aot_export_function(
        write, (torch.ones(3), torch.ones(3, requires_grad=True)), keep_input_mutations=True,
        trace_joint=True)
    found["kept writes"] = {"code": graph.code.strip()}
    return found
