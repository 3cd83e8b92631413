"""nn.utils, functional_call and nn.grad against what PyTorch gives.

Each case is a function of the library; `tests/data/nn_utils.json` holds what PyTorch 2.13 answers:
two numbers of each tensor, text and flags as they are, the type of an exception.  To record it
anew, run this file as a script where PyTorch is installed.
"""

import copy
import importlib
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

import pullback

DATA = Path(__file__).parents[1] / "data" / "nn_utils.json"
CASES = {}


def case(*variants):
    """Register a function of the library and of each variant's values."""
    def add(function):
        for values in variants or [()]:
            values = values if isinstance(values, tuple) else (values,)
            name = f"{function.__name__}({', '.join(map(str, values))})"
            CASES[name] = lambda torch, values=values: function(torch, *values)
        return function
    return add


def real(torch, *shape):
    return torch.tensor(np.random.default_rng(5).standard_normal(shape).astype(np.float32))


def linear(torch, *sizes):
    return torch.nn.Linear(*(sizes or (4, 3)))


def utils(torch, name):
    return importlib.import_module(f"{torch.nn.__name__}.utils.{name}")


def trained(torch):
    net = torch.nn.Sequential(linear(torch), torch.nn.Tanh(), linear(torch, 3, 2))
    (net(real(torch, 5, 4)) ** 2).sum().backward()
    return net


def grads(module):
    return [p.grad for p in module.parameters()]


def state(module):
    return dict(module.state_dict())


# clipping and vectors


@case(*((order, foreach) for order in (2, 1, "inf", math.inf, 3.5, 0)
        for foreach in (None, True, False)))
def clip_norm(torch, order, foreach):
    net = trained(torch)
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5, order, foreach=foreach)
    return norm, grads(net)


@case(None, False)
def clip_value(torch, foreach):
    net = trained(torch)
    torch.nn.utils.clip_grad_value_(net.parameters(), 0.1, foreach)
    return grads(net)


@case(True, False)
def clip_infinite(torch, refuse):
    net = trained(torch)
    net[0].weight.grad[0, 0] = math.inf
    return torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=refuse)


@case()
def clip_rest(torch):
    net, u = trained(torch), torch.nn.utils
    u.clip_grads_with_norm_(net.parameters(), 0.5, torch.tensor(3.0))
    return (u.clip_grad_norm_([], 1.0), u.get_total_norm(real(torch, 5)), grads(net),
            u.clip_grad_norm(net[0].weight, 0.1))


@case()
def vectors(torch):
    net, u = trained(torch), torch.nn.utils
    vector = u.parameters_to_vector(net.parameters())
    u.vector_to_parameters(vector * 2, net.parameters())
    return vector, state(net)


@case()
def vector_of_a_list(torch):
    torch.nn.utils.vector_to_parameters([1.0], linear(torch).parameters())


# weight norm and spectral norm by hooks


@case(0, 1, -1, None)
def weight_norm(torch, dim):
    layer = torch.nn.utils.weight_norm(linear(torch), dim=dim)
    out = layer(real(torch, 5, 4))
    out.sum().backward()
    found = out, state(layer), grads(layer), repr(layer)
    torch.nn.utils.remove_weight_norm(layer)
    return *found, state(layer), layer(real(torch, 5, 4))


@case()
def weight_norm_of_a_recurrent_layer(torch):
    layer = torch.nn.utils.weight_norm(torch.nn.LSTM(4, 3), "weight_hh_l0")
    out = layer(real(torch, 5, 2, 4))[0]
    out.sum().backward()
    return out, state(layer), grads(layer)


@case()
def weight_norm_twice(torch):
    torch.nn.utils.weight_norm(torch.nn.utils.weight_norm(linear(torch)))


@case("weight", "spectral")
def norm_that_is_not_there(torch, kind):
    getattr(torch.nn.utils, f"remove_{kind}_norm")(linear(torch))


@case(*((kind, count) for kind in ("Linear", "Conv2d", "ConvTranspose2d") for count in (1, 3)))
def spectral_norm(torch, kind, count):
    made = linear(torch) if kind == "Linear" else getattr(torch.nn, kind)(2, 3, 2)
    layer = torch.nn.utils.spectral_norm(made, n_power_iterations=count)
    x = real(torch, 5, 4) if kind == "Linear" else real(torch, 1, 2, 4, 4)
    copied = copy.deepcopy(layer)
    out = layer(x) + layer(x)
    out.sum().backward()
    saved = layer.state_dict()
    found = [out, dict(saved), grads(layer), repr(layer), layer.eval()(x),
             copied(x), saved._metadata[""]["spectral_norm"]]
    layer.load_state_dict(saved)
    torch.nn.utils.remove_spectral_norm(layer)
    return *found, state(layer), layer(x), len(layer._state_dict_hooks)


@case()
def spectral_norm_without_iterations(torch):
    torch.nn.utils.spectral_norm(linear(torch), n_power_iterations=0)


# parametrizations


@case(*((way, based, rows, columns) for way in (None, "matrix_exp", "cayley", "householder", "x")
        for based in (True, False) for rows, columns in ((4, 4), (3, 5), (5, 3))))
def orthogonal(torch, way, based, rows, columns):
    layer = linear(torch, columns, rows)
    utils(torch, "parametrizations").orthogonal(layer, "weight", way, use_trivialization=based)
    out = layer(real(torch, 2, columns))
    (out**2).sum().backward()
    return out, layer.weight, state(layer), grads(layer), repr(layer)


@case()
def orthogonal_assigned(torch):
    layer = utils(torch, "parametrizations").orthogonal(linear(torch, 4, 4))
    layer.weight = torch.linalg.qr(real(torch, 4, 4))[0]
    return layer.weight, state(layer)


@case(0, 1, None)
def parametrized_weight_norm(torch, dim):
    layer = utils(torch, "parametrizations").weight_norm(linear(torch), dim=dim)
    out = layer(real(torch, 5, 4))
    out.sum().backward()
    found = [out, state(layer), grads(layer), repr(layer)]
    layer.load_state_dict(torch.nn.utils.weight_norm(linear(torch), dim=dim).state_dict())
    found.append(state(layer))
    utils(torch, "parametrize").remove_parametrizations(layer, "weight")
    return *found, state(layer), repr(layer), type(layer).__name__


@case("Linear", "ConvTranspose2d")
def parametrized_spectral_norm(torch, kind):
    made = linear(torch) if kind == "Linear" else torch.nn.ConvTranspose2d(2, 3, 2)
    layer = utils(torch, "parametrizations").spectral_norm(made, n_power_iterations=2)
    x = real(torch, 5, 4) if kind == "Linear" else real(torch, 1, 2, 4, 4)
    out = layer(x)
    out.sum().backward()
    found = [out, state(layer), grads(layer), repr(layer), layer.eval()(x)]
    utils(torch, "parametrize").remove_parametrizations(layer, "weight", False)
    return *found, state(layer)


@case("bias", "nothing")
def spectral_norm_of(torch, name):
    return state(utils(torch, "parametrizations").spectral_norm(linear(torch), name))


def symmetric(torch):
    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    return Symmetric()


def rank_one(torch):
    class RankOne(torch.nn.Module):
        def forward(self, left, right):
            return left.unsqueeze(-1) @ right.unsqueeze(-2)

        def right_inverse(self, x):
            return x[:, 0].clone(), x[0].clone()

    return RankOne()


@case()
def parametrized(torch):
    class Turn(torch.nn.Module):
        def forward(self, x):
            return torch.matrix_exp(x - x.mT)

    p, layer = utils(torch, "parametrize"), linear(torch, 4, 4)
    p.register_parametrization(layer, "weight", symmetric(torch))
    found = [layer.weight, state(layer), repr(layer), p.is_parametrized(layer),
             p.is_parametrized(layer, "bias"), p.type_before_parametrizations(layer).__name__]
    layer.weight = real(torch, 4, 4)
    found += [layer.weight, state(layer)]
    p.register_parametrization(layer, "weight", Turn())
    with p.cached():
        found += [layer.weight, layer.weight is layer.weight, len(layer.parametrizations.weight)]
    found += [layer.weight is layer.weight, copy.deepcopy(layer).weight]
    other = p.transfer_parametrizations_and_params(layer, linear(torch, 4, 4))
    found += [other.weight, state(other),
              other.parametrizations.weight.original is layer.parametrizations.weight.original]
    p.remove_parametrizations(layer, "weight")
    return *found, state(layer), type(layer).__name__, isinstance(layer.weight, torch.nn.Parameter)


@case(True, False)
def parametrized_by_several(torch, leave):
    p, layer = utils(torch, "parametrize"), linear(torch, 4, 4)
    p.register_parametrization(layer, "weight", rank_one(torch))
    found = [layer.weight, state(layer), repr(layer)]
    layer.weight = real(torch, 4, 4)
    layer(real(torch, 5, 4)).sum().backward()
    found += [state(layer), grads(layer)]
    p.remove_parametrizations(layer, "weight", leave)
    return *found, state(layer)


@case("x[:1]", "x.double()", "None")
def parametrized_wrongly(torch, result):
    class Wrong(torch.nn.Module):
        def forward(self, x):
            return eval(result)

    utils(torch, "parametrize").register_parametrization(linear(torch), "weight", Wrong())


@case()
def parametrized_nothing(torch):
    utils(torch, "parametrize").register_parametrization(linear(torch), "w", symmetric(torch))


@case()
def parametrized_pickled(torch):
    p = utils(torch, "parametrize")
    pickle.dumps(p.register_parametrization(linear(torch, 4, 4), "weight", symmetric(torch)))


@case()
def parametrization_that_is_not_there(torch):
    utils(torch, "parametrize").remove_parametrizations(linear(torch), "weight")


# pruning


@case(("random_unstructured", "weight", 0.4), ("l1_unstructured", "weight", 5),
      ("random_structured", "weight", 2, 0), ("random_structured", "weight", 1, -1),
      ("ln_structured", "weight", 0.5, 2, 1), ("ln_structured", "weight", 1, math.inf, 0),
      ("identity", "bias"), ("l1_unstructured", "weight", 0.3, "scores"),
      ("custom_from_mask", "weight", "mask"), ("l1_unstructured", "weight", 100),
      ("l1_unstructured", "weight", -1), ("l1_unstructured", "weight", 1.5),
      ("l1_unstructured", "weight", None), ("ln_structured", "bias", 1, 2, 0),
      ("remove", "weight"), ("ln_structured", "weight", 1, 2, 5))
def pruned(torch, way, *arguments):
    p, layer, x = utils(torch, "prune"), linear(torch), real(torch, 5, 4)
    scores = real(torch, 3, 4)
    arguments = [{"scores": scores, "mask": scores > -0.2}.get(a, a) for a in arguments]
    getattr(p, way)(layer, *arguments)
    out = layer(x)
    out.sum().backward()
    found = [out, state(layer), grads(layer), p.is_pruned(layer),
             [name for name, _ in layer.named_parameters()]]
    p.l1_unstructured(layer, "weight", 2)
    found += [state(layer), layer(x)]
    p.ln_structured(layer, "weight", 1, 1, 0)
    found += [state(layer), layer(x), [type(h).__name__ for h in
                                       layer._forward_pre_hooks.values()]]
    p.remove(layer, "weight")
    return *found, state(layer), p.is_pruned(layer)


@case("L1Unstructured", "RandomStructured")
def pruned_together(torch, way):
    p, net = utils(torch, "prune"), torch.nn.Sequential(linear(torch), linear(torch, 3, 2))
    p.global_unstructured([(net[0], "weight"), (net[1], "weight")], getattr(p, way), amount=0.4)
    return state(net), p.L1Unstructured(3).prune(real(torch, 2, 3))


# fusion, other forms of modules


@case(*((affine, bias) for affine in (True, False) for bias in (True, False)))
def fused(torch, affine, bias):
    conv, norm = torch.nn.Conv2d(2, 3, 2, bias=bias), torch.nn.BatchNorm2d(3, affine=affine)
    norm(real(torch, 4, 3, 2, 2))
    made = torch.nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval())
    x = real(torch, 1, 2, 4, 4)
    return state(made), made(x), norm(conv(x)), [p.requires_grad for p in made.parameters()]


@case()
def fused_others(torch):
    u, norm = torch.nn.utils, torch.nn.BatchNorm1d(3)
    norm(real(torch, 5, 3))
    across = u.fuse_conv_bn_eval(torch.nn.ConvTranspose1d(2, 3, 2).eval(), norm.eval(), True)
    return state(across), state(u.fuse_linear_bn_eval(linear(torch).eval(), norm))


@case()
def fused_while_training(torch):
    torch.nn.utils.fuse_conv_bn_eval(torch.nn.Conv1d(2, 3, 2), torch.nn.BatchNorm1d(3))


@case("Linear", "ReLU")
def skipped_init(torch, kind):
    layer = torch.nn.utils.skip_init(getattr(torch.nn, kind), *(3, 4)[:2 * (kind == "Linear")])
    return torch.rand(1), list(state(layer)), list(layer.weight.shape)


def tied(torch):
    net = torch.nn.Sequential(linear(torch, 4, 4), linear(torch, 4, 4))
    net[1].weight = net[0].weight
    return net


@case(("{'0.weight': w}", ""), ("{'0.weight': w, '1.weight': w * 1}", ""), ("{'0.w': w}", ""),
      ("{'0.weight': w}", "tie_weights=False"), ("{'0.weight': w}", "strict=True"),
      ("({'0.weight': w}, {'1.bias': w[0]})", ""), ("({'0.bias': w[0]}, {'0.bias': w[0]})", ""))
def called(torch, tensors, options):
    net = tied(torch)
    names = {"w": real(torch, 4, 4), "net": net, "x": real(torch, 5, 4), "torch": torch}
    out = eval(f"torch.func.functional_call(net, {tensors}, x, {options})", names)
    return out, state(net)


@case()
def called_with_buffers(torch):
    norm = torch.nn.BatchNorm1d(4)
    buffers = {name: b.clone() for name, b in norm.named_buffers()}
    out = torch.func.functional_call(norm, buffers, (real(torch, 5, 4),))
    layer = torch.nn.LSTM(4, 3)
    doubled = {name: p * 2 for name, p in layer.named_parameters()}
    long = torch.func.functional_call(layer, doubled, real(torch, 5, 2, 4))
    old = utils(torch, "stateless").functional_call
    return out, buffers, state(norm), long, old(linear(torch), {"weight": real(torch, 3, 4)},
                                                real(torch, 5, 4))


@case()
def stacked(torch):
    f = torch.func
    params, buffers = f.stack_module_state([linear(torch) for _ in range(3)])
    base = linear(torch)
    out = f.vmap(lambda p, b, x: f.functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(
        params, buffers, real(torch, 5, 4))
    return params, buffers, out, [p.requires_grad for p in params.values()]


@case((1, 7), (2, 6, 5), (3, 4, 4, 5))
def gradients_of_convolutions(torch, rank, *size):
    x, weight = real(torch, 2, 4, *size), real(torch, 6, 2, *(2,) * rank)
    convolve = getattr(torch.nn.functional, f"conv{rank}d")
    out = convolve(x, weight, stride=2, padding=1, groups=2)
    g = importlib.import_module(f"{torch.nn.__name__}.grad")
    return (getattr(g, f"conv{rank}d_input")(x.shape, weight, out, 2, 1, 1, 2),
            getattr(g, f"conv{rank}d_weight")(x, weight.shape, out, 2, 1, 1, 2))


@pytest.fixture(scope="module")
def recorded():
    return json.loads(DATA.read_text())


@pytest.mark.parametrize("name", CASES)
def test_recorded(name, recorded, compare):
    compare(CASES[name], pullback, recorded[name], name)


def test_refused_pruning_changes_nothing():
    layer = linear(pullback)
    before = list(layer.state_dict())
    with pytest.raises(ValueError):
        pullback.nn.utils.prune.l1_unstructured(layer, "weight", 1000)
    assert list(layer.state_dict()) == before and not layer._forward_pre_hooks


if __name__ == "__main__":
    import torch
    import torch.nn.utils.prune
    from conftest import answer

    lines = [f"{json.dumps(name)}: {json.dumps(answer(f, torch))}" for name, f in CASES.items()]
    DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n")
