"""Operators under vendors' names give what the ordinary ones give, in every mode.

The samples are those of the table, which checks derivatives, vmap and shapes by itself; here each
call is compared with another spelling of the same numbers, eager, compiled and traced.
"""

import pytest

import pullback as torch
from pullback import errors
from pullback.core.op import registry
from pullback.core.overload import overload_of
from pullback.graph.make_fx import make_fx
from pullback.testing import samples

F = torch.nn.functional
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def conv(x, w, b, padding, stride, dilation, groups, *flags):
    return CONV[w.ndim - 2](x, w, b, stride, padding, dilation, groups)


def unbiased(x, w, *geometry):
    return conv(x, w, None, *geometry)


def transposed(x, w, b, padding, output_padding, stride, dilation, groups, *flags):
    return TRANSPOSED[w.ndim - 2](x, w, b, stride, padding, output_padding, groups, dilation)


def unbiased_transposed(x, w, *geometry):
    return transposed(x, w, None, *geometry)


def conv_relu(x, w, b, stride, padding, dilation, groups):
    return F.relu(conv(x, w, b, padding, stride, dilation, groups))


def conv_add_relu(x, w, z, alpha, b, stride, padding, dilation, groups):
    out = conv(x, w, b, padding, stride, dilation, groups)
    return F.relu(out + (1 if alpha is None else alpha) * z)


def batch_norm(x, w, b, mean, var, training, momentum, eps):
    """Output alone: statistics are compared below."""
    return F.batch_norm(x, mean, var, w, b, training, momentum, eps)


def ctc(log_probs, targets, inputs, lengths, blank, deterministic, zero_infinity):
    return F.ctc_loss(log_probs, targets, inputs, lengths, blank, "none", zero_infinity)


def grid(x, points):
    return F.grid_sample(x, points, "bilinear", "zeros", True)


def affine(theta, n, c, h, w):
    return torch.affine_grid_generator(theta, (n, c, h, w), True)


GENERIC = {  # operator -> the same by other names: its first result
    "cudnn_convolution": unbiased,
    "cudnn_convolution_transpose": unbiased_transposed,
    "miopen_convolution": conv,
    "miopen_convolution_transpose": transposed,
    "miopen_depthwise_convolution": conv,
    "mkldnn_convolution": conv,
    "_mps_convolution": conv,
    "_mps_convolution_transpose": unbiased_transposed,
    "_nnpack_spatial_convolution": lambda x, w, b, padding, stride=1: F.conv2d(
        x, w, b, stride, padding),
    "cudnn_convolution_relu": conv_relu,
    "miopen_convolution_relu": conv_relu,
    "cudnn_convolution_add_relu": conv_add_relu,
    "miopen_convolution_add_relu": conv_add_relu,
    "cudnn_batch_norm": batch_norm,
    "miopen_batch_norm": batch_norm,
    "_cudnn_ctc_loss": ctc,
    "_cudnn_ctc_loss.Tensor": ctc,
    "miopen_ctc_loss": ctc,
    "miopen_ctc_loss.Tensor": ctc,
    "cudnn_grid_sampler": grid,
    "cudnn_affine_grid_generator": affine,
    "mkldnn_linear": F.linear,
    "mkldnn_adaptive_avg_pool2d": F.adaptive_avg_pool2d,
    "mkldnn_max_pool2d": F.max_pool2d,
    "mkldnn_max_pool3d": F.max_pool3d,
    "_mkldnn_reshape": lambda x, shape: x.reshape(shape),
    "_mkldnn_transpose": lambda x, a, b: x.transpose(a, b),
    "to_mkldnn": lambda x: x * 1,
}
CASES = [pytest.param(name, i, id=f"{name}-{i}") for name in GENERIC
         for i, _ in enumerate(samples.cases(registry[name]))]


def first(out):
    return out[0] if isinstance(out, (tuple, list)) else out


def leaves(args):
    return [a for a in args if isinstance(a, torch.Tensor) and a.dtype.is_floating_point]


def derivatives(f, args):
    """Value, gradients and gradients of these by all floating arguments."""
    own = [a.detach().clone().requires_grad_() if isinstance(a, torch.Tensor)
           and a.dtype.is_floating_point else a for a in args]
    given = leaves(own)
    out = first(f(*own))
    weights = torch.linspace(0.3, 1.7, out.numel(), dtype=out.dtype).reshape(out.shape)
    found = torch.autograd.grad((out * weights).sum(), given, create_graph=True)
    total = sum((g * g.detach().sin()).sum() for g in found)
    second = [None] * len(given)  # as zeros
    if total.requires_grad:
        second = torch.autograd.grad(total, given, allow_unused=True)
    return [out, *found, *second]


def assert_same(ours, wanted):
    assert len(ours) == len(wanted)
    for a, b in zip(ours, wanted):
        if a is None or b is None:  # nothing and zeros are the same gradient
            rest = b if a is None else a
            assert rest is None or not rest.any()
            continue
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)


def case_of(name, number):
    case = samples.cases(registry[name])[number]
    assert not case.kwargs
    return overload_of(registry[name]), case.args


@pytest.mark.parametrize("name, number", CASES)
def test_numbers_and_derivatives(name, number):
    f, args = case_of(name, number)
    assert_same(derivatives(f, args), derivatives(GENERIC[name], args))


@pytest.mark.parametrize("name, number", CASES)
def test_compiled_and_traced(name, number):
    f, args = case_of(name, number)
    where = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor)
             and a.dtype.is_floating_point]

    def program(*tensors):
        flat = list(args)
        for i, t in zip(where, tensors):
            flat[i] = t
        return first(f(*flat)).sin().sum()

    given = [args[i].detach().clone().requires_grad_() for i in where]
    wanted = torch.autograd.grad(program(*given), given, allow_unused=True)
    compiled = torch.compile(program)
    assert_same(torch.autograd.grad(compiled(*given), given, allow_unused=True), wanted)
    plain = [t.detach() for t in given]
    traced = make_fx(program)(*plain)
    assert torch.allclose(traced(*plain), program(*plain), equal_nan=True)
    ones = tuple(map(torch.ones_like, plain))
    push = torch.func.jvp(program, tuple(plain), ones)[1]
    if push.isfinite():
        reverse = sum(g.sum() for g in wanted if g is not None)
        assert torch.allclose(push, reverse, rtol=1e-8, atol=1e-8)


# what is beside the first result


@pytest.mark.parametrize("f", [torch.cudnn_batch_norm, torch.miopen_batch_norm])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_batch_norm_writes_statistics_in_training_only(f, dtype):
    x = torch.randn(4, 3, 5, dtype=dtype, requires_grad=True)
    weight = torch.randn(3, dtype=dtype, requires_grad=True)
    mean, var = torch.zeros(3), torch.ones(3)
    out = f(x, weight, None, mean, var, True, 0.1, 1e-5)
    saved = torch.float64 if dtype is torch.float64 else torch.float32
    assert out[0].dtype is dtype and out[1].dtype is out[2].dtype is saved
    assert not any(o.requires_grad for o in out[1:])
    own_mean, own_var = torch.zeros(3), torch.ones(3)
    wanted = F.batch_norm(x, own_mean, own_var, weight, None, True, 0.1, 1e-5)
    assert torch.allclose(out[0], wanted, rtol=1e-2 if dtype.itemsize == 2 else 1e-6)
    assert torch.allclose(mean, own_mean) and torch.allclose(var, own_var) and mean.any()
    wide = x.detach().to(torch.float64)
    assert torch.allclose(out[1].double(), wide.mean((0, 2)), atol=1e-5)
    out[0].sum().backward()
    assert x.grad.dtype is weight.grad.dtype is dtype
    out = f(x, weight, None, mean, var, False, 0.1, 1e-5)
    assert torch.equal(mean, own_mean)
    assert [tuple(o.shape) for o in out[1:3]] == [(0,), (0,)]
    if f is torch.cudnn_batch_norm:
        assert out[3].dtype is torch.uint8 and tuple(out[3].shape) == (0,)


def test_backward_of_batch_norm_is_its_derivative():
    x, weight = torch.randn(4, 3, 5, dtype=torch.float64), torch.rand(3, dtype=torch.float64)
    x.requires_grad_(), weight.requires_grad_()
    bias = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    out, mean, scale, reserve = torch.cudnn_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5)
    grad = torch.randn_like(out)
    wanted = torch.autograd.grad(out, (x, weight, bias), grad)
    ours = torch.ops.aten.cudnn_batch_norm_backward(x, grad, weight, None, None, mean, scale, 1e-5,
                                                    reserve)
    assert_same(ours, wanted)
    assert_same(torch.ops.aten.miopen_batch_norm_backward(x, grad, weight, None, None, mean, scale,
                                                          1e-5), wanted)
    assert torch._C._get_cudnn_batch_norm_reserve_space_size(x, True) == reserve.numel() == 0


@pytest.mark.parametrize("name", ["_cudnn_ctc_loss", "miopen_ctc_loss"])
def test_the_second_result_of_ctc_is_the_gradient(name):
    scores = torch.randn(4, 3, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 2], [3, 3], [1, 1]])
    case = targets, [4, 4, 2], [2, 1, 2], 0, True
    f = getattr(torch, name)
    loss, raw = f(scores.log_softmax(2), *case, True)
    assert loss[2] == 0 and not raw.requires_grad and not raw[:, 2].any()
    assert_same(torch.autograd.grad(loss.sum(), scores), [raw])
    loss, raw = f(scores.log_softmax(2), *case, False)
    assert loss[2] == torch.inf and raw[:, :2].isfinite().all()
    lengths = torch.tensor(case[1]), torch.tensor(case[2])
    again = f(scores.log_softmax(2), targets, *lengths, 0, True, True)
    assert torch.equal(again[0][:2], loss[:2])


@pytest.mark.parametrize("name, forward", [
    ("mkldnn_linear_backward", lambda x, w, b: F.linear(x, w, b)),
    ("mps_convolution_backward", lambda x, w, b: F.conv1d(x, w, b, 2, 1)),
    ("mps_convolution_transpose_backward", lambda x, w, b: F.conv_transpose1d(x, w, None, 2, 1, 1)),
])
def test_backward_operators_are_derivatives(name, forward):
    x, w, b = (torch.randn(s, dtype=torch.float64, requires_grad=True)
               for s in (((2, 3, 4), (5, 4), (5,)) if "linear" in name else
                         ((2, 3, 6), (3, 3, 2), (3,))))
    out = forward(x, w, b)
    grad = torch.randn_like(out)
    used = [x, w] if "transpose" in name else [x, w, b]
    wanted = torch.autograd.grad(out, used, grad)
    more = {"mkldnn_linear_backward": (), "mps_convolution_backward": ([1], [2], [1], 1),
            "mps_convolution_transpose_backward": ([1], [1], [2], [1], 1)}[name]
    ours = getattr(torch.ops.aten, name)(x, grad, w, *more, [True] * len(used))
    assert_same(ours, wanted)


@pytest.mark.parametrize("dims", [2, 3])
def test_backward_of_pools(dims):
    x = torch.randn(2, 3, *[6] * dims, dtype=torch.float64, requires_grad=True)
    out = getattr(torch, f"mkldnn_max_pool{dims}d")(x, 3, 2, 1)
    grad = torch.randn_like(out)
    ours = getattr(torch.ops.aten, f"mkldnn_max_pool{dims}d_backward")(grad, out, x, 3, 2, 1)
    assert_same([ours], torch.autograd.grad(out, x, grad))
    if dims == 2:
        out = torch.mkldnn_adaptive_avg_pool2d(x, (2, 3))
        grad = torch.randn_like(out)
        ours = torch.ops.aten.mkldnn_adaptive_avg_pool2d_backward(grad, x)
        assert_same([ours], torch.autograd.grad(out, x, grad))


def test_nobody_asks_for_a_library():
    x = torch.ones(2, 1, 2)
    assert not torch.cudnn_is_acceptable(x) and not torch._nnpack_available()
    assert not torch._use_cudnn_rnn_flatten_weight()
    assert not torch._use_cudnn_ctc_loss(x, x.int(), [2], [1], 0)


def test_wrong_arguments_are_refused_and_nothing_changes():
    x, w = torch.ones(1, 2, 4), torch.ones(3, 1, 2)
    with pytest.raises(errors.PullbackError):
        torch.mkldnn_convolution(x, w, None, [0], [1], [1], 1)
    with pytest.raises(TypeError):
        torch.cudnn_convolution(x, w, [0], [1], [1], 2)
    mean, var = torch.zeros(3), torch.ones(3)
    with pytest.raises(errors.ShapeError):
        torch.cudnn_batch_norm(x, torch.ones(2), None, mean, var, True, 0.1, 1e-5)
    assert not mean.any() and torch.equal(var, torch.ones(3))


# recurrent layers

KINDS = ("rnn_relu", "rnn_tanh", "lstm", "gru")
GATES = (1, 1, 4, 3)


def stack(mode, layers=2, directions=2, biases=True, projected=0, batch=3, inputs=4, hidden=5):
    """(weights, states) of a stack: leaves."""
    torch.manual_seed(mode)

    def real(*shape):
        return (torch.randn(*shape, dtype=torch.float64) * 0.5).requires_grad_()

    weights, width = [], projected or hidden
    for layer in range(layers):
        for _ in range(directions):
            rows = GATES[mode] * hidden
            weights += [real(rows, width * directions if layer else inputs), real(rows, width)]
            weights += [real(rows), real(rows)] if biases else []
            weights += [real(projected, hidden)] if projected else []
    states = [real(layers * directions, batch, width)]
    return weights, states + [real(layers * directions, batch, hidden)] * (mode == 2)


def cudnn(x, weights, states, mode, rest, sizes=(), proj=0, layers=2, directions=2):
    stride = len(weights) // layers // directions
    hx, cx = states if mode == 2 else (*states, None)
    return torch._cudnn_rnn(x, weights, stride, None, hx, cx, mode, 5, proj, layers, *rest, sizes,
                            None)


def generic(x, weights, states, mode, layers=2, directions=2, dropout=0.0, train=False,
            batch_first=False, sizes=(), biases=True):
    f = getattr(torch, KINDS[mode])
    state = states if mode == 2 else states[0]
    rest = biases, layers, dropout, train, directions == 2
    if sizes:
        return f(x, torch.tensor(sizes), state, weights, *rest)
    return f(x, state, weights, *rest, batch_first)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("packed, batch_first, biases, projected", [
    (False, False, True, 0), (False, True, False, 0), (True, False, True, 0),
    (False, True, True, 2), (True, False, False, 2)])
def test_stacks_of_cudnn(mode, packed, batch_first, biases, projected):
    if projected and mode != 2:
        projected = 0
    weights, states = stack(mode, biases=biases, projected=projected)
    sizes = [3, 3, 2, 1] if packed else []
    shape = (9, 4) if packed else (3, 6, 4) if batch_first else (6, 3, 4)
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    rest = batch_first, 0.0, True, True
    ours = cudnn(x, weights, states, mode, rest, sizes, projected)
    wanted = generic(x, weights, states, mode, batch_first=batch_first, sizes=sizes, biases=biases)
    assert_same(ours[:2 + (mode == 2)], wanted)
    if mode != 2:
        assert tuple(ours[2].shape) == (0,) and ours[2].dtype is x.dtype
        aten = torch.miopen_rnn(x, weights, len(weights) // 4, states[0], None, mode, 5, 2, *rest,
                                sizes, None)
        assert_same(aten, ours)
    assert ours[3].dtype is torch.uint8 and ours[3].numel() == 0
    assert ours[4].numel() == sum(w.numel() for w in weights)
    assert [o.requires_grad for o in ours] == [True, True, mode == 2, False, False]
    grads = [torch.randn_like(o) for o in wanted]
    leaves = [x, *states, *weights]
    first = torch.autograd.grad(wanted, leaves, grads, create_graph=True)
    back = torch.ops.aten._cudnn_rnn_backward(
        x, weights, len(weights) // 4, ours[4], states[0], states[1] if mode == 2 else None,
        ours[0], *grads, *[None] * (3 - len(grads)), mode, 5, projected, 2, *rest, sizes, None,
        ours[3], [True] * 4)
    given = [*back[:2 + (mode == 2)], *back[3]]
    assert_same(given, first)
    assert (back[2] is None) == (mode != 2)
    total, wanted_total = (sum((g * g.detach().cos()).sum() for g in f) for f in (given, first))
    assert_same(torch.autograd.grad(total, leaves), torch.autograd.grad(wanted_total, leaves))


@pytest.mark.parametrize("mode", range(4))
def test_dropout_between_layers_is_that_of_the_forward(mode):
    weights, states = stack(mode, layers=3, directions=1)
    x = torch.randn(6, 3, 4, dtype=torch.float64, requires_grad=True)
    rest = False, 0.5, True, False
    torch.manual_seed(3)
    ours = cudnn(x, weights, states, mode, rest, layers=3, directions=1)
    torch.manual_seed(3)
    wanted = generic(x, weights, states, mode, 3, 1, 0.5, True)
    assert torch.allclose(ours[0], wanted[0])
    assert ours[3].numel() == 2 * 6 * 3 * 5 and not ours[3].all()
    leaves = [x, *states, *weights]
    grad = torch.randn_like(ours[0])
    first = torch.autograd.grad(ours[0], leaves, grad)
    case = (x, weights, 4, ours[4], states[0], states[1] if mode == 2 else None, ours[0], grad,
            None, None, mode, 5, 0, 3, *rest, [], None)
    back = torch.ops.aten._cudnn_rnn_backward(*case, ours[3], [True] * 4)
    assert_same([*back[:2 + (mode == 2)], *back[3]], first)
    with pytest.raises(errors.ShapeError, match="reserve"):
        torch.ops.aten._cudnn_rnn_backward(*case, ours[3][:3], [True] * 4)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_lstm_of_mps(batch_first, dropout):
    weights, states = stack(2)
    x = torch.randn(3, 6, 4, dtype=torch.float64, requires_grad=True)
    x = x if batch_first else x.transpose(0, 1).detach().requires_grad_()
    rest = True, 2, dropout, True, True, batch_first
    torch.manual_seed(1)
    ours = torch._lstm_mps(x, states, weights, *rest)
    torch.manual_seed(1)
    wanted = torch.lstm(x, states, weights, *rest)
    assert_same(ours[:3], wanted)
    gates, cells, outputs = ours[3:]
    assert tuple(gates.shape) == (2, 6, 3, 40) and not gates.requires_grad
    assert tuple(cells.shape) == tuple(outputs.shape) == (2, 6, 3, 10)
    last = outputs[-1].transpose(0, 1) if batch_first else outputs[-1]
    assert torch.equal(last, ours[0])
    own = gates[1, :, :, 15:20] * cells[1, :, :, :5].tanh()  # o of the last layer, forward
    assert torch.allclose(own, outputs[1, :, :, :5])
    assert torch.equal(cells[1, -1, :, :5], ours[2][2])
    grads = [torch.randn_like(o) for o in wanted]
    first = torch.autograd.grad(ours[:3], [x, *states, *weights], grads)
    back = torch.ops.aten.lstm_mps_backward(*grads, gates, cells, x, outputs, states, weights,
                                            *rest)
    assert_same([back[0], *back[1], *back[2]], first)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("biases", [False, True])
def test_layers_of_onednn(mode, reverse, biases):
    weights, states = stack(mode, 1, 1)
    hx, cx = states if mode == 2 else (*states, states[0])
    x = torch.randn(6, 3, 4, dtype=torch.float64, requires_grad=True)
    rest = mode, 5, 1, biases
    ours = torch.mkldnn_rnn_layer(x, *weights, hx, cx, reverse, [], *rest, False, False, True)
    turned = x.flip(0) if reverse else x
    wanted = generic(turned, weights[:4 if biases else 2], states, mode, 1, 1, biases=biases)
    wanted = [wanted[0].flip(0) if reverse else wanted[0], *wanted[1:]]
    assert_same(ours[:2 + (mode == 2)], wanted)
    assert ours[3].dtype is torch.uint8 and tuple(ours[2].shape) == tuple(cx.shape)
    flat = torch.mkldnn_rnn_layer(x, *weights, hx[0], cx[0], reverse, [], *rest, False, True, True)
    assert_same([flat[0], flat[1]], [ours[0], ours[1][0]])
    grads = [torch.randn_like(o) for o in wanted]
    leaves = [x, *weights, hx, cx] if mode == 2 else [x, *weights, hx]
    first = torch.autograd.grad(wanted, leaves, grads, allow_unused=True)
    back = torch.ops.aten.mkldnn_rnn_layer_backward(
        x, *weights, hx, cx, ours[0], ours[1], ours[2], *grads, *[None] * (3 - len(grads)),
        reverse, *rest, True, False, [], False, ours[3])
    assert_same(back[:len(leaves)], first)


@pytest.mark.parametrize("name", ["_cudnn_rnn", "miopen_rnn", "_lstm_mps", "mkldnn_rnn_layer",
                                  "_cudnn_rnn_backward", "lstm_mps_backward",
                                  "mkldnn_rnn_layer_backward"])
def test_recurrent_operators_compiled_traced_and_batched(name):
    case = samples.cases(registry[name])[-1]
    f, x = overload_of(registry[name]), next(
        a for a in case.args if isinstance(a, torch.Tensor) and a.dtype.is_floating_point)
    where = next(i for i, a in enumerate(case.args) if a is x)

    def program(x):
        out = f(*case.args[:where], x, *case.args[where + 1:])
        return first(out).sin().sum()

    leaf = x.detach().clone().requires_grad_()
    wanted, = torch.autograd.grad(program(leaf), leaf)
    assert torch.allclose(torch.autograd.grad(torch.compile(program)(leaf), leaf)[0], wanted)
    assert torch.allclose(make_fx(program)(x)(x), program(x))
    many = torch.stack([x, x * 0.5])
    assert torch.allclose(torch.func.vmap(program)(many),
                          torch.stack([program(x), program(x * 0.5)]))
    push = torch.func.jvp(program, (x,), (torch.ones_like(x),))[1]
    assert torch.allclose(push, wanted.sum())


def test_wrong_stacks_are_refused():
    weights, states = stack(2, 1, 1)
    x = torch.randn(6, 3, 4, dtype=torch.float64)
    rest = 1, False, 0.0, False, False, [], None
    for args, said in (
        ((x, weights, 4, None, states[0], None, 2, 5, 0), "needs cx"),
        ((x, weights, 4, None, *states, 3, 5, 0), "illegal defined cx"),
        ((x, weights, 4, None, *states, 9, 5, 0), "mode 9"),
        ((x, weights, 3, None, *states, 2, 5, 0), "do not have 4 weights"),
        ((x, weights, 4, None, *states, 2, 7, 0), "expected hx"),
    ):
        with pytest.raises(errors.PullbackError, match=said):
            torch._cudnn_rnn(*args, *rest)


def test_weights_of_cudnn_in_one_piece():
    weights, _ = stack(3, 1, 1)
    packed = torch._cudnn_rnn_flatten_weight(weights, 4, 4, 3, 5, 0, 1, False, False)
    assert torch.equal(packed[:60], weights[0].reshape(-1))
    assert torch.equal(packed[-15:], weights[3])
    state = torch._cudnn_init_dropout_state(0.5, True, 0, dtype=torch.uint8)
    assert state.dtype is torch.uint8
