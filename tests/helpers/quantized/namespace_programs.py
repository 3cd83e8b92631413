"""Programs for the functions of `torch.ops.quantized`, and for the makers of quantised tensors."""

import functools

import pullback as torch
from pullback import quantized
from tests.helpers.quantized.models import draw
from tests.helpers.quantized.programs import SCALE, ZERO, Quantised, check, into, made, moved

Q, F = torch.ops.quantized, torch.nn.functional
EIGHT = ("quint8", "qint8")
TO = (0.07, 50)  # scale and zero point of results
PAIR, IMAGE = ((3, 4), (3, 4)), ((2, 4, 6, 5),)
AT = {1: (2, 4, 9), 2: (2, 4, 6, 5), 3: (1, 4, 5, 4, 6)}  # inputs of convolutions
W4, B4, MEAN, VAR = (draw(torch, k, 4) for k in range(4))


def rounded(call, numbers, **more):
    """A function that is told the scale and zero point of its results."""
    return into(lambda *qs: call(*qs, *TO), numbers, TO, **more)


def out_of(call, numbers, **more):
    """The same into a tensor that has them, as last argument and by name."""
    def run(*qs):
        shape = numbers(*[q.dequantize().detach() for q in qs]).shape
        outs = [torch._empty_affine_quantized(shape, scale=TO[0], zero_point=TO[1],
                                              dtype=qs[0].dtype) for _ in range(2)]
        assert call(*qs, outs[0]) is outs[0] and call(*qs, out=outs[1]) is outs[1]
        assert torch.equal(outs[0], outs[1])
        return outs[0]

    return into(run, numbers, TO, followed=False, **more)


# ---------------------------------------------------------------------------------------------
# Arithmetic


def arithmetic(name, function):
    """Two tensors, a tensor and a number; with and without rectifier, into a new tensor or not."""
    found = {}
    for ending, after in (("", lambda y: y), ("_relu", torch.relu)):
        whole, scalar = f"{name}{ending}", f"{name}_scalar{ending}"
        both = functools.partial(lambda f, a, b: f(function(a, b)), after)
        found[whole] = rounded(getattr(Q, whole), both, shapes=PAIR)
        found[f"{whole}_out"] = out_of(getattr(Q, f"{whole}_out"), both, shapes=PAIR)
        for spelling, into_out in ((scalar, False), (f"{scalar}_out", True)):
            found[spelling] = with_number(name, getattr(Q, spelling), function, after, into_out)
    return found


def with_number(name, call, function, after, into_out):
    """The scale moves along with the numbers, so that nothing is rounded or cut off."""
    def look():
        for dtype in EIGHT:
            q, _ = made(0, (3, 4), dtype)
            for number in (0.375, -1.5, 0.0, 40.0, torch.tensor(-2.0)):
                given = (q, number, torch.empty_like(q)) if into_out else (q, number)
                out = call(*given)
                wanted = after(function(q.dequantize(), float(number)))
                assert out.dtype is q.dtype
                near = 1e-5 if name == "mul" else out.q_scale() * 0.5001  # of a zero point
                assert (out.dequantize() - wanted).abs().max() <= near
                if not into_out:
                    spelled = getattr(Q, name + "_relu" * (after is torch.relu))
                    for same in (spelled(q, float(number)), spelled.Scalar2(float(number), q),
                                 call.Tensor(q, torch.tensor(float(number)))):
                        assert torch.equal(same, out)

    def followed():
        q, x = made(0, (3, 4), "quint8", through=True)
        call(q, 1.5).dequantize().sum().backward()
        wanted = q.dequantize().detach().requires_grad_()
        after(function(wanted, 1.5)).sum().backward()
        assert torch.allclose(x.grad, wanted.grad)

    return check(forward=look) if into_out else check(forward=look, backward=followed)


# ---------------------------------------------------------------------------------------------
# Linear layers and convolutions: sums of integers are exact


@functools.cache
def weight(*shape, axis=None):
    """A weight in 8 bits."""
    numbers = draw(torch, 5, *shape) * 0.8
    if axis is None:
        return torch.quantize_per_tensor(numbers, 0.02, 0, torch.qint8)
    scales = torch.arange(1, shape[axis] + 1) * 0.01
    return torch.quantize_per_channel(numbers, scales, torch.zeros(shape[axis]).long(), axis,
                                      torch.qint8)


def linear(name, after=lambda y: y, *more):
    """A weight with one scale and one with a scale for each row."""
    bias = draw(torch, 6, 5)

    def call(q):
        return [getattr(Q, name)(q, Q.linear_prepack(weight(5, 40, axis=a), bias), 0.2, 50, *more)
                for a in (None, 0)]

    return into(call, lambda x: [after(F.linear(x, weight(5, 40, axis=a).dequantize(), bias))
                                 for a in (None, 0)], (0.2, 50), shapes=((2, 3, 40),))


def conv(n, transposed=False, after=lambda y: y, ending=""):
    """Groups, steps, distances and zeros around the input, with one scale and with many."""
    shape = (4, 3, *[3, 2, 2][:n]) if transposed else (6, 2, *[3, 2, 2][:n])
    bias, kind = draw(torch, 6, 6), f"conv{'_transpose' * transposed}{n}d"
    step, around, apart = [2, 1, 1][:n], [1, 0, 1][:n], [1, 2, 1][:n]
    more = ([1, 0, 0][:n],) if transposed else ()

    def call(q):
        pack = getattr(Q, f"{kind}_prepack")
        return [getattr(Q, f"{kind}{ending}")(
            q, pack(weight(*shape, axis=a), bias, step, around, *more, apart, 2), 0.2, 50)
            for a in (None, 0)[:1 if transposed else 2]]

    def numbers(x):
        plain = getattr(F, kind)
        rest = (*more, 2, apart) if transposed else (apart, 2)
        return [after(plain(x, weight(*shape, axis=a).dequantize(), bias, step, around, *rest))
                for a in (None, 0)[:1 if transposed else 2]]

    return into(call, numbers, (0.2, 50), shapes=(AT[n],))


def conv_add(after, name):
    """A convolution and another tensor."""
    packed = Q.conv2d_prepack(weight(6, 2, 3, 2), draw(torch, 6, 6), [1, 1], [0, 0], [1, 1], 2)
    return into(lambda q, z: getattr(Q, name)(q, z, packed, 0.2, 50),
                lambda x, z: after(F.conv2d(x, weight(6, 2, 3, 2).dequantize(), draw(torch, 6, 6),
                                            groups=2) + z),
                (0.2, 50), shapes=((2, 4, 6, 5), (2, 6, 4, 4)))


def packs(pack, unpack, shape, *more):
    """What is packed comes out again."""
    def look():
        for bias in (draw(torch, 6, 6), None):
            w, b = getattr(Q, unpack)(getattr(Q, pack)(weight(*shape), bias, *more))
            assert torch.equal(w, weight(*shape)) and (b is bias or torch.equal(b, bias))
        if more:
            packed = getattr(Q, pack)(weight(*shape), None, *more)
            assert packed.stride() == more[0] and packed.groups() == more[-1]

    return check(forward=look)


def convolution_packs(n, transposed=False):
    kind = f"conv{'_transpose' * transposed}{n}d"
    shape = (4, 6, *[3] * n) if transposed else (6, 4, *[3] * n)
    more = ([0] * n,) if transposed else ()
    return packs(f"{kind}_prepack", f"{kind}_unpack", shape, [2] * n, [1] * n, *more, [1] * n, 1)


def rows_of_an_embedding():
    """Rows with a scale each come out again, and are looked up as numbers."""
    scales, zeros = torch.rand(5) * 0.1 + 0.01, torch.rand(5) * 100
    for dtype in (torch.quint8, torch.quint4x2):
        table = torch.quantize_per_channel(draw(torch, 0, 5, 8), scales,
                                           zeros if dtype is torch.quint8 else zeros / 9, 0, dtype)
        packed = Q.embedding_bag_prepack(table)
        assert torch.equal(Q.embedding_bag_unpack(packed).dequantize(), table.dequantize())
        at = torch.tensor([[4, 0], [2, 2]])
        found = Q.embedding_byte(packed, at)
        near = 1e-5 if dtype is torch.quint8 else 0.02  # scales beside 4 bits are in half precision
        assert torch.allclose(found, F.embedding(at, table.dequantize()), atol=near)
        bags = Q.embedding_bag_byte(packed, at.reshape(-1), torch.tensor([0, 1]))
        wanted = F.embedding_bag(at.reshape(-1), table.dequantize(), torch.tensor([0, 1]),
                                 mode="sum")
        assert torch.allclose(bags, wanted, atol=near * 3)


# ---------------------------------------------------------------------------------------------
# Activations, norms, pools


def norm(name, shape, after=lambda y: y):
    return rounded(
        lambda q, *to: getattr(Q, name)(q, W4, B4, MEAN, VAR.abs(), 1e-5, *to),
        lambda x: after(F.batch_norm(x, MEAN, VAR.abs(), W4, B4, eps=1e-5)), shapes=(shape,))


def windows(n):
    call, plain = getattr(Q, f"max_pool{n}d"), getattr(F, f"max_pool{n}d")
    return moved(lambda q: call(q, [2] * n, [2] * n, [1] * n, [1] * n, True),
                 numbers=lambda x: plain(x, 2, 2, 1, 1, True), shapes=((1, 2, *[5] * n),))


SHAPES = {"": (2, 4, 3, 3), "1d": (5, 4), "2d": (2, 4, 3, 3), "3d": (2, 4, 2, 3, 2)}
FUNCTIONS = {
    **arithmetic("add", torch.add), **arithmetic("mul", torch.mul),
    **{f"batch_norm{kind}{ending}": norm(f"batch_norm{kind}{ending}", shape, after)
       for kind, shape in SHAPES.items()
       for ending, after in (("", lambda y: y), ("_relu", torch.relu))},
    "cat": rounded(lambda a, b, *to: Q.cat([a, b], 1, *to), lambda a, b: torch.cat([a, b], 1),
                   shapes=((3, 4), (3, 2))),
    "cat_out": out_of(lambda a, b, *o, **k: Q.cat_out([a, b], 1, *o, **k),
                      lambda a, b: torch.cat([a, b], 1), shapes=((3, 4), (3, 2))),
    "cat_relu": rounded(lambda a, b, *to: Q.cat_relu([a, b], 0, *to),
                        lambda a, b: torch.cat([a, b]).relu(), shapes=PAIR),
    "cat_relu_out": out_of(lambda a, b, *o, **k: Q.cat_relu_out([a, b], 0, *o, **k),
                           lambda a, b: torch.cat([a, b]).relu(), shapes=PAIR),
    "celu": rounded(lambda q, *to: Q.celu(q, *to, 1.5), lambda x: F.celu(x, 1.5)),
    "clamp": Quantised(lambda q: Q.clamp(q, -0.51, 0.33), lambda x: x.clamp(-0.51, 0.33)),
    **{f"conv{n}d": conv(n) for n in (1, 2, 3)},
    **{f"conv{n}d_relu": conv(n, after=torch.relu, ending="_relu") for n in (1, 2, 3)},
    **{f"conv{n}d_prepack": convolution_packs(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": conv(n, True) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d_prepack": convolution_packs(n, True) for n in (1, 2, 3)},
    "conv_prepack": packs("conv_prepack", "conv_unpack", (6, 4, 3, 3), [2, 1], [1, 0], [1, 1], 1),
    "conv2d_add": conv_add(lambda y: y, "conv2d_add"),
    "conv2d_add_relu": conv_add(torch.relu, "conv2d_add_relu"),
    "dropout": moved(lambda q: Q.dropout(q, *TO, 0.5, False), numbers=lambda x: x),
    "elu": rounded(lambda q, *to: Q.elu(q, *to, 1.5, 1.1, 0.9),
                   lambda x: torch.ops.aten.elu(x, 1.5, 1.1, 0.9)),
    "embedding_bag_prepack": check(forward=rows_of_an_embedding),
    "group_norm": rounded(lambda q, *to: Q.group_norm(q, 2, W4, B4, 1e-5, *to),
                          lambda x: F.group_norm(x, 2, W4, B4), shapes=IMAGE),
    "hardswish": rounded(Q.hardswish, F.hardswish),
    "instance_norm": rounded(lambda q, *to: Q.instance_norm(q, W4, B4, 1e-5, *to),
                             lambda x: F.instance_norm(x, None, None, W4, B4), shapes=IMAGE),
    "layer_norm": rounded(lambda q, *to: Q.layer_norm(q, [4], W4, B4, 1e-5, *to),
                          lambda x: F.layer_norm(x, [4], W4, B4)),
    "leaky_relu": rounded(lambda q, *to: Q.leaky_relu(q, 0.13, False, *to),
                          lambda x: F.leaky_relu(x, 0.13)),
    "linear": linear("linear"), "linear_relu": linear("linear_relu", torch.relu),
    "linear_leaky_relu": linear("linear_leaky_relu", lambda y: F.leaky_relu(y, 0.13), 0.13),
    "linear_tanh": linear("linear_tanh", torch.tanh),
    "linear_prepack": packs("linear_prepack", "linear_unpack", (6, 4)),
    "linear_prepack_legacy": packs("linear_prepack_legacy", "linear_unpack", (6, 4)),
    "matmul": rounded(Q.matmul, torch.matmul, shapes=((2, 3, 40), (2, 40, 5))),
    "max_pool1d": windows(1), "max_pool2d": windows(2),
    "prelu": rounded(Q.prelu, F.prelu, shapes=((3, 4), (4,))),
    "relu6": Quantised(lambda q: Q.relu6(q), F.relu6),
    "sigmoid": rounded(Q.sigmoid, torch.sigmoid),
    "softmax": rounded(lambda q, *to: Q.softmax(q, 1, *to), lambda x: x.softmax(1)),
    "threshold": Quantised(lambda q: Q.threshold(q, 0.4, 0.26),
                           lambda x: F.threshold(x, 0.4, 0.26)),
}

# ---------------------------------------------------------------------------------------------
# Makers


def per_tensor(x, through=True):
    return torch.quantize_per_tensor(x, SCALE, ZERO["qint8"], torch.qint8, straight_through=through)


def dynamic(x, through=True):
    return torch.quantize_per_tensor_dynamic(x, torch.quint8, False, straight_through=through)


def per_channel(x, through=True):
    return torch.quantize_per_channel(x, torch.tensor([0.1, 0.01]), torch.tensor([1, -2]), 0,
                                      torch.qint8, straight_through=through)


def numbers():
    """Some are outside of the range of the second channel."""
    return draw(torch, 3, 2, 5) * torch.tensor([[1.0], [2.0]])


def maker(make, name, *args):
    """Level by level: halves are even; gradients are 1 inside of the range and 0 outside."""
    def levels(q):
        if q.axis < 0:
            return q.q_scale(), q.q_zero_point()
        return q.q_per_channel_scales()[:, None], q.q_per_channel_zero_points()[:, None]

    def inside(x):
        scale, zero = levels(make(x))
        low, high = (0, 255) if make is dynamic else (-128, 127)
        level = x.double() / scale + zero
        return ((level >= low - 0.5) & (level <= high + 0.5)).float()

    def forward():
        x = numbers()
        q = make(x, False)
        scale, zero = levels(q)
        low, high = (0, 255) if make is dynamic else (-128, 127)
        level = (x.double() / scale + zero).clamp(low, high)
        assert (q.int_repr() - level).abs().max() <= 0.501
        assert torch.equal(getattr(torch.ops.aten, name)(x, *args), q)
        assert q.is_quantized and quantized.QuantizedTensor is type(q)
        if make is dynamic:  # it just reaches from the lowest to the highest, and has a zero
            assert abs(scale * 255 - (x.max() - x.min())) < 1e-5

    def backward():
        x = numbers().requires_grad_()
        (make(x).dequantize() ** 2).sum().backward()
        wanted = 2 * make(x).dequantize() * inside(x.detach())
        assert torch.allclose(x.grad, wanted)

    def jvp():
        x = numbers()
        out, slope = torch.func.jvp(lambda v: make(v).dequantize(), (x,), (x.cos(),))
        assert torch.equal(out, make(x).dequantize())
        assert torch.allclose(slope, x.cos() * inside(x))

    def compiled():
        x = numbers()
        function = torch.compile(lambda v: make(v, False).relu().dequantize() * 2, fullgraph=True)
        assert torch.equal(function(x), make(x, False).relu().dequantize() * 2)
        through = torch.compile(lambda v: make(v).dequantize() * 2, fullgraph=True)
        leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
        through(leaf).sum().backward()
        (make(other).dequantize() * 2).sum().backward()
        assert torch.equal(leaf.grad, other.grad)

    return check(forward=forward, backward=backward, jvp=jvp, compile=compiled)


CHANNEL_ARGS = torch.tensor([0.1, 0.01]), torch.tensor([1, -2]), 0, torch.qint8
PROGRAMS = {f"quantized::{name}": program for name, program in FUNCTIONS.items()} | {
    "quantize_per_tensor": maker(per_tensor, "quantize_per_tensor", SCALE, ZERO["qint8"],
                                 torch.qint8),
    "quantize_per_tensor_dynamic": maker(dynamic, "quantize_per_tensor_dynamic", torch.quint8,
                                         False),
    "quantize_per_channel": maker(per_channel, "quantize_per_channel", *CHANNEL_ARGS),
}
