"""Programs about the structure of modules; each writes down what a user sees.

`test_structure.py` runs them with this package and compares with `tests/data/structure.json`, which
`python -m tests.helpers.module_structure` records with PyTorch.
"""

import builtins
import copy
import pickle
import warnings
from collections import OrderedDict

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def report(name, torch):
    """What a program writes down, as JSON would give it back."""
    log = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        PROGRAMS[name](torch, torch.nn, log.append)
    return log


def numbers(x):
    return None if x is None else [round(float(v), 5) for v in x.detach().reshape(-1)]


def error(function):
    """The built-in class and the text of what a call raises."""
    try:
        function()
    except Exception as raised:
        kind = next(c for c in type(raised).__mro__ if hasattr(builtins, c.__name__))
        return f"{kind.__name__}: {raised}"
    return "nothing raised"


@program
def names(torch, nn, note):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))
            self.register_buffer("seen", torch.zeros(3))
            self.register_buffer("cache", torch.zeros(1), persistent=False)
            self.inner = nn.Linear(2, 2)
            self.register_parameter("absent", None)
            self.register_buffer("nothing", None)
            self.register_module("gap", None)
            self.marked = nn.Buffer(torch.ones(2))
            self.hidden = nn.Buffer(torch.ones(2), persistent=False)
            self.plain = 3

    net = Net()

    def tables():
        note([list(net._parameters), list(net._buffers), list(net._modules),
              sorted(net._non_persistent_buffers_set), list(net.state_dict()),
              [n for n, _ in net.named_parameters()], [n for n, _ in net.named_buffers()]])

    tables()
    note(repr(net))
    note([type(net.marked).__name__, isinstance(net.marked, nn.Buffer),
          isinstance(net.seen, nn.Buffer)])
    for name, value in [("weight", torch.ones(2)), ("weight", None), ("inner", 3), ("inner", None),
                        ("seen", 3), ("seen", torch.ones(1)), ("seen", None),
                        ("plain", nn.Parameter(torch.ones(1))), ("hidden", torch.ones(1)),
                        ("inner", nn.Tanh()), ("cache", nn.Parameter(torch.ones(1)))]:
        note([name, error(lambda: setattr(net, name, value))])
    note("plain" in net.__dict__)
    tables()
    note([error(lambda: net.register_parameter(name, value)) for name, value in [
        ("a.b", None), ("", None), (3, None), ("forward", None), ("new", torch.ones(1)),
        ("new", nn.Parameter(torch.ones(1)) * 2)]])
    note([error(lambda: net.register_buffer(name, value)) for name, value in [
        ("a.b", None), ("", None), (3, None), ("forward", None), ("new", 3),
        ("weight", torch.ones(1))]])
    note([error(lambda: net.add_module(name, value)) for name, value in [
        ("a.b", None), ("", None), (3, None), ("training", nn.ReLU()), ("new", 3)]])
    note([error(lambda: delattr(net, "cache")), error(lambda: delattr(net, "no")),
          error(lambda: net.no)])
    tables()
    note([error(lambda: nn.Module(3)), error(lambda: nn.Module(a=3)),
          error(lambda: nn.Module()(3))])
    note([name for name in dir(net) if name in ("weight", "hidden", "inner", "forward", "0")])


@program
def before_init(torch, nn, note):
    for act in (lambda m: setattr(m, "a", nn.Tanh()), lambda m: m.register_parameter("a", None),
                lambda m: setattr(m, "a", nn.Parameter(torch.ones(1))),
                lambda m: m.register_buffer("a", torch.ones(1))):
        class Broken(nn.Module):
            def __init__(self, act=act):
                act(self)

        note(error(Broken))

    class Other:
        def __init__(self, *args, **kwargs):
            self.got = [args, kwargs]

    class Both(nn.Module, Other):
        call_super_init = True

    note(Both(1, z=2).got)


@program
def walks(torch, nn, note):
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, nn.ReLU(), shared, nn.Sequential(nn.BatchNorm1d(2), shared))
    net.tied = shared.weight
    for once in (True, False):
        note([n for n, _ in net.named_parameters(remove_duplicate=once)])
        note([n for n, _ in net.named_buffers("pre", remove_duplicate=once)])
        note([n for n, _ in net.named_modules(prefix="pre", remove_duplicate=once)])
        note(len(list(net.modules(remove_duplicate=once))))
    note([n for n, _ in net.named_parameters("pre", recurse=False)])
    note([[n for n, _ in net.named_children()], len(list(net.parameters()))])
    note(list(net.state_dict()))
    order = []
    net.apply(lambda module: order.append(type(module).__name__))
    note(order)
    note([type(net.get_submodule(path)).__name__ for path in ("", "3", "3.0")])
    note([error(lambda: net.get_submodule(path)) for path in ("3.9", "3.0.weight", "x.y")])
    note([numbers(net.get_parameter("3.0.weight")), numbers(net.get_buffer("3.0.running_mean"))])
    note([error(lambda: net.get_parameter(path)) for path in ("3.0.running_mean", "3.0.x")])
    note([error(lambda: net.get_buffer(path)) for path in ("3.0.weight", "3.0.x")])
    net.set_submodule("3.0", nn.Tanh())
    note(repr(net))
    note([error(lambda: net.set_submodule(*arguments)) for arguments in [
        ("", nn.Tanh()), ("3.7", nn.Tanh(), True), ("3.1.weight", nn.Tanh())]])


@program
def states(torch, nn, note):
    net = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), norm=nn.BatchNorm1d(3)))
    state = net.state_dict(prefix="pre.")
    note([list(state), {key: dict(value) for key, value in state._metadata.items()}])
    state = net.state_dict()
    note([type(state).__name__, [v.requires_grad for v in state.values()],
          [v.requires_grad for v in net.state_dict(keep_vars=True).values()]])
    note([repr(net.load_state_dict(state)), list(net.load_state_dict(state))])
    bad = OrderedDict(state)
    del bad["a.weight"]
    bad.update({"extra": torch.ones(1), "a.other": torch.ones(1), "a.b.c": torch.ones(1),
                "norm.running_mean": torch.ones(5), "a.bias": 3})
    note(error(lambda: net.load_state_dict(bad)))
    note(error(lambda: net.load_state_dict(bad, strict=False)))
    bad.update({"norm.running_mean": torch.ones(3), "a.bias": torch.ones(3)})
    note([repr(net.load_state_dict(bad, strict=False)), numbers(net.a.bias)])
    note([error(lambda: net.load_state_dict(3)), error(lambda: net.load_state_dict([1]))])
    weight = net.a.weight
    net.a.bias.requires_grad_(False)
    net.load_state_dict(state, assign=True)
    note([net.a.weight is weight, isinstance(net.a.weight, nn.Parameter),
          [p.requires_grad for p in net.parameters()],
          net.norm.running_mean.data_ptr() == state["norm.running_mean"].data_ptr()])
    old = {key: value for key, value in state.items() if "tracked" not in key}
    note([repr(net.load_state_dict(old)), error(lambda: net.a.load_state_dict(
        {"weight": torch.ones(3, 2), "bias": torch.ones(3), "_extra_state": 1}))])


@program
def own_states(torch, nn, note):
    class Counts(nn.Module):
        _version = 7

        def __init__(self):
            super().__init__()
            self.count, self.scale = 0, nn.Parameter(torch.zeros(()))

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    one, two = Counts(), Counts()
    one.count = 5
    state = one.state_dict()
    note([list(state), dict(state._metadata)])
    two.load_state_dict({**state, "scale": torch.ones(1)})  # a very old scalar
    note([two.count, numbers(two.scale)])
    del state["_extra_state"]
    note(error(lambda: two.load_state_dict(state)))

    class Renamed(nn.Module):
        _version = 2

        def __init__(self):
            super().__init__()
            self.new = nn.Parameter(torch.zeros(2))

        def _load_from_state_dict(self, state_dict, prefix, metadata, *rest):
            note(metadata.get("version"))
            if prefix + "old" in state_dict:
                state_dict[prefix + "new"] = state_dict.pop(prefix + "old")
            super()._load_from_state_dict(state_dict, prefix, metadata, *rest)

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "mark"] = torch.ones(1)

    net = nn.Sequential(Renamed())
    note([list(net.state_dict()), error(lambda: net.load_state_dict(net.state_dict()))])
    given = {"0.old": torch.ones(2)}
    note([repr(net.load_state_dict(given)), numbers(net[0].new), list(given)])


@program
def state_hooks(torch, nn, note):
    def make():
        return nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1)))

    net = make()
    net[1].register_state_dict_pre_hook(lambda module, prefix, keep: note(["pre", prefix, keep]))
    handle = net[1].register_state_dict_post_hook(
        lambda module, state, prefix, metadata: note(["post", len(state), prefix, metadata]))
    net._register_state_dict_hook(lambda module, state, prefix, metadata: OrderedDict(
        (key + "!", value) for key, value in state.items()))
    note(list(net.state_dict()))
    handle.remove()
    note(list(net.state_dict()))

    def returns(module, state, prefix, metadata):
        return 3

    net[1].register_state_dict_post_hook(returns)
    note([error(net.state_dict), error(lambda: net._register_state_dict_hook(returns))])
    net = make()
    net[1].register_load_state_dict_pre_hook(lambda module, state, prefix, metadata, strict, *rest:
                                             note([type(module).__name__, sorted(state), strict]))
    net._register_load_state_dict_pre_hook(lambda state, *rest: state.pop("extra", None) and None)

    def forgive(module, keys):
        note([list(keys[0]), list(keys[1])])
        keys.missing_keys.clear()

    net[1].register_load_state_dict_post_hook(forgive)
    state = net.state_dict()
    state["extra"] = torch.ones(1)
    del state["1.0.bias"]
    note(repr(net.load_state_dict(state)))


@program
def forward_hooks(torch, nn, note):
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    net.register_forward_pre_hook(lambda module, args: note(["second", len(args)]))
    net.register_forward_pre_hook(lambda module, args, kwargs: note(["first", kwargs]),
                                  prepend=True, with_kwargs=True)
    net[0].register_forward_pre_hook(lambda module, args: args[0] * 2)
    net[0].register_forward_hook(lambda module, args, out: out + 1)
    net[0].register_forward_hook(lambda module, args, kwargs, out: note([len(args), kwargs]),
                                 with_kwargs=True)
    handle = net[1].register_forward_hook(lambda module, args, out: note("fourth"))
    net[1].register_forward_hook(lambda module, args, out: note("third"), prepend=True)
    x = torch.ones(1, 2)
    note(numbers(net(x)))
    handle.remove()
    handle.remove()
    with net.register_forward_hook(lambda module, args, out: note("inside")):
        net(x)
    net(x)

    class Scale(nn.Module):
        def forward(self, x, k=1, fail=False):
            if fail:
                raise ValueError("failed")
            return x * k

    scale = Scale()
    scale.register_forward_pre_hook(lambda module, args, kwargs: (args, {**kwargs, "k": 7}),
                                    with_kwargs=True)
    note(numbers(scale(x)))
    scale.register_forward_hook(lambda module, args, out: note(["always", out is None]),
                                always_call=True)
    scale.register_forward_hook(lambda module, args, out: note("only then"))
    scale(x)
    note(error(lambda: scale(x, fail=True)))
    scale.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    note(error(lambda: scale(x)))


@program
def backward_hooks(torch, nn, note):
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())

    def shown(grads):
        return [numbers(g) for g in grads]

    net[0].register_full_backward_hook(
        lambda module, inputs, outputs: note(["after", shown(inputs), shown(outputs)]))
    net[0].register_full_backward_pre_hook(lambda module, outputs: note(["before", len(outputs)]))
    net[1].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))
    net[1].register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 3,))
    net.register_full_backward_hook(
        lambda module, inputs, outputs: note(["outer", shown(inputs), shown(outputs)]))
    for needed in (True, False):
        x = torch.ones(2, 2, requires_grad=needed)
        net(x).sum().backward()
        note([numbers(x.grad), numbers(net[0].weight.grad)])
        net.zero_grad()
    with torch.no_grad():
        net(x)
    note([error(lambda: net.register_backward_hook(note))])
    tanh, x = nn.Tanh(), torch.ones(2, requires_grad=True)
    tanh.register_backward_hook(lambda module, inputs, outputs: (inputs[0] * 5,))
    tanh(x).sum().backward()
    note([numbers(x.grad), error(lambda: tanh.register_full_backward_hook(note))])

    class Three(nn.Module):
        def forward(self, a, b):
            return a * 2, b * 3, 5

    a, b = torch.ones(1, requires_grad=True), torch.ones(1)
    three = Three()
    three.register_full_backward_hook(
        lambda module, inputs, outputs: note([shown(inputs), shown(outputs)]))
    results = three(a, b)
    (results[0] + results[1]).backward()
    three.register_full_backward_hook(lambda module, inputs, outputs: (None,))
    note(error(three(a, b)[0].backward))
    three = Three()
    three.register_full_backward_pre_hook(lambda module, outputs: (None,))
    note(error(three(a, b)[0].backward))


@program
def global_hooks(torch, nn, note):
    every = nn.modules.module
    kinds = [
        every.register_module_forward_pre_hook(lambda m, a: note(["pre", type(m).__name__])),
        every.register_module_forward_hook(lambda m, a, out: note(["post", type(m).__name__])),
        every.register_module_full_backward_hook(
            lambda m, i, o: note(["back", type(m).__name__, len(i), len(o)])),
        every.register_module_full_backward_pre_hook(lambda m, o: note(type(m).__name__)),
    ]
    note(error(lambda: every.register_module_backward_hook(note)))
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net.register_forward_hook(lambda module, args, out: note("own"))
    net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    for handle in kinds:
        handle.remove()
    net(torch.ones(1, 2))
    kinds = [
        every.register_module_parameter_registration_hook(lambda m, n, p: note(["parameter", n])),
        every.register_module_buffer_registration_hook(lambda m, n, b: note(["buffer", n])),
        every.register_module_module_registration_hook(lambda m, n, c: note(["module", n])),
    ]
    nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(2))
    for handle in kinds:
        handle.remove()


@program
def conversions(torch, nn, note):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight, mean = net[0].weight, net[1].running_mean
    net(torch.ones(3, 2)).sum().backward()
    grad = weight.grad
    net.double()
    note([net[0].weight is weight, net[1].running_mean is mean, str(weight.dtype),
          weight.grad is grad, str(grad.dtype), str(net[1].num_batches_tracked.dtype)])
    for change in (net.half, net.bfloat16, net.float, net.double, net.cpu):
        note([change() is net, str(weight.dtype), str(weight.grad.dtype)])
    for arguments in [(torch.float32,), ("cpu", torch.float64), (torch.zeros(1),),
                      (torch.device("cpu"),)]:
        note(str(net.to(*arguments)[0].weight.dtype))
    net.to(device="cpu", dtype=torch.float64, non_blocking=True)
    note([str(weight.dtype), error(lambda: net.to(torch.int32))])
    net.type(torch.float32)
    note(str(net[1].num_batches_tracked.dtype))
    note([[m.training for m in net.eval().modules()], error(lambda: net.train(3))])
    note([p.requires_grad for p in net.requires_grad_(False).parameters()])
    net.requires_grad_().train()
    net.zero_grad(set_to_none=False)
    note([numbers(p.grad) for p in net.parameters()])
    net.zero_grad()
    note([numbers(p.grad) for p in net.parameters()])
    net = nn.Linear(2, 2, device="meta")
    note([net.weight.is_meta, error(lambda: net.to("cpu"))])
    weight = net.weight
    net.to_empty(device="cpu")
    note([net.weight.is_meta, net.weight is weight, net.weight.requires_grad])
    net = nn.Linear(2, 2, device="meta")
    net.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.ones(2)}, assign=True)
    note(numbers(net(torch.ones(1, 2))))


@program
def copies(torch, nn, note):
    layer = nn.Linear(2, 2)
    layer.weight.grad, layer.weight.mark = torch.ones(2, 2), 3
    copied = copy.deepcopy(layer)
    note([numbers(copied.weight) == numbers(layer.weight), copied.weight.grad,
          hasattr(copied.weight, "mark"), type(copied.weight).__name__])
    again = pickle.loads(pickle.dumps(layer))
    note([numbers(again.weight) == numbers(layer.weight), type(again.weight).__name__,
          again.weight.requires_grad, again.weight.mark, again.weight.grad])
    both = copy.deepcopy(nn.Sequential(layer, layer))
    note([both[0] is both[1], both[0].weight is both[1].weight])
    note([repr(nn.Parameter(torch.ones(2))), str(nn.Parameter(torch.ones(2))),
          repr(nn.Parameter(requires_grad=False))])
    memory = torch.ones(2)
    parameter = nn.Parameter(memory)
    memory[0] = 5
    note([numbers(parameter), parameter.is_leaf, parameter.data_ptr() == memory.data_ptr()])
    layer.share_memory()
    note(layer.weight.is_shared())


@program
def containers(torch, nn, note):
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    note([repr(net), repr(net[1:]), repr(net + net), repr(net * 2), repr(2 * net)])
    net *= 2
    net.pop(0)
    del net[1:3]
    net.insert(1, nn.Tanh()).append(nn.GELU()).extend(sequential=[nn.SiLU()])
    net[-1] = nn.ReLU6()
    note([repr(net), len(net), [type(m).__name__ for m in net]])
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    note([repr(named[1:]), type(named.b).__name__, type(named[0]).__name__])
    many = nn.ModuleList([nn.Linear(2, 3) for _ in range(4)] + [nn.ReLU()])
    many.insert(0, nn.Tanh())
    many += [nn.ReLU()]
    note([repr(many), repr(nn.ModuleList()), repr(many[1:3]), repr(many + [nn.Tanh()])])
    note([nn.ReLU() in many, many[1] in many, [name for name in dir(many) if name.isdigit()]])
    table = nn.ModuleDict([["x", nn.ReLU()], ["y", nn.Tanh()]])
    table.update({"z": nn.GELU()})
    note([repr(table), list(table.keys()), "x" in table, len(table), type(table.pop("x")).__name__])
    some = nn.ParameterList([torch.zeros(2), nn.Parameter(torch.ones(2, 3)), "text", 5])
    note([repr(some), repr(some[1:]), list(some.state_dict()), len(some)])
    pairs = nn.ParameterDict({"b": torch.zeros(2), "a": nn.Parameter(torch.ones(2)), "c": "text"})
    note([repr(pairs), list(pairs), list((pairs | nn.ParameterDict({"z": torch.ones(1)})).keys()),
          list(pairs.copy()), pairs.get("none", 4), list(reversed(pairs)), pairs.popitem()[0]])
    note([error(lambda: act()) for act in [
        lambda: nn.Sequential({"a": nn.ReLU()}), lambda: net + [1], lambda: many[10],
        lambda: net[-10], lambda: nn.ModuleDict(3), lambda: nn.ModuleDict([[1, 2, 3]]),
        lambda: some(1), lambda: some.extend(torch.ones(1)), lambda: many.extend(3),
        lambda: table["no"], lambda: net.insert(99, nn.ReLU()), lambda: nn.ModuleList([3]),
        lambda: nn.ModuleList()(1)]])


@program
def printed(torch, nn, note):
    class Lines(nn.Module):
        def extra_repr(self):
            return "a=1\nb=2"

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def extra_repr(self):
            return "one"

        def _get_name(self):
            return "Other"

    note([repr(Lines()), repr(Named()), repr(nn.Module())])
    note(repr(nn.Sequential(Lines(), nn.ModuleDict({"a": nn.ModuleList([Lines(), Lines()])}))))


if __name__ == "__main__":
    import json
    from pathlib import Path

    import torch

    kept = {name: report(name, torch) for name in PROGRAMS}
    path = Path(__file__).parents[1] / "data" / "structure.json"
    path.write_text(json.dumps(kept, indent=0) + "\n")
