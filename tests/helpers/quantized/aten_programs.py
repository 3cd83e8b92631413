"""Programs for operators that PyTorch has a kernel of for quantised tensors: `quantised relu`."""

import pullback as torch
from tests.helpers.quantized.models import draw
from tests.helpers.quantized.programs import SCALE, ZERO, Quantised, check, fact, into, made, moved

aten, F = torch.ops.aten, torch.nn.functional
IMAGE, VOLUME = ((2, 4, 6, 6),), ((1, 2, 4, 4, 4),)
BOTH, EIGHT = ("quint8", "qint8", "qint32"), ("quint8", "qint8")
ROWS = torch.tensor([2, 0])
UNIT = {"quint8": (1 / 256, 0), "qint8": (1 / 256, -128)}
SINGLE = {dtype: (float(torch.tensor(SCALE)), ZERO[dtype]) for dtype in EIGHT}
AROUND = {"quint8": (1 / 128, 128), "qint8": (1 / 128, 0)}
W, B, MEAN, VAR = (draw(torch, k, 4) for k in range(4))
POINTS = draw(torch, 9, 2, 3, 3, 2) * 0.3


def pool(call, shapes=IMAGE):
    return Quantised(call, shapes=shapes)


def comparison(name):
    """With another quantised tensor, numbers and one number."""
    compare = getattr(aten, name)
    return fact(lambda x, y: [compare(x, y), compare(x, 0.25), compare(x, y.dequantize())],
                lambda x, y: [compare(x, y), compare(x, 0.25), compare(x, y)],
                shapes=((3, 4), (3, 4)), dtypes=BOTH)


def written(name, *args, **more):
    """An operator in place, on a tensor with history that is no leaf."""
    write = getattr(aten, name)
    return Quantised(lambda x: write(x.clone(), *args), dtypes=EIGHT, **more)


def questions(name, value):
    """What a question says, as operator, function and method."""
    def ask():
        q = torch.quantize_per_channel(draw(torch, 0, 2, 3), torch.tensor([0.5, 0.25]),
                                       torch.tensor([3, 4]), 0, torch.qint8) if (
            "channel" in name) else torch.quantize_per_tensor(draw(torch, 0, 2, 3), 0.5, 3,
                                                              torch.qint8)
        for out in (getattr(aten, name)(q), getattr(torch, name)(q), getattr(q, name)()):
            found = out.tolist() if isinstance(out, torch.Tensor) else out
            assert found == value

    return check(forward=ask)


def empty(make, **wanted):
    """What is made for others to write to: its shape, dtype, scale and zero point."""
    def look():
        q = make()
        assert q.is_quantized
        for name, value in wanted.items():
            found = getattr(q, name)
            found = found() if callable(found) else found
            found = found.tolist() if isinstance(found, torch.Tensor) else found
            assert (tuple(found) if name == "shape" else found) == value, name
        q.copy_(torch.ones(q.shape))
        assert torch.allclose(q.dequantize(), torch.ones(q.shape), atol=0.3)

    return check(forward=look)


def per_channel(**more):
    return aten._empty_per_channel_affine_quantized(
        [2, 3], scales=torch.tensor([0.5, 0.25]), zero_points=torch.tensor([1, 2]), axis=0,
        dtype=torch.quint8, **more)


CHANNELS = torch.quantize_per_channel(draw(torch, 0, 2, 3), torch.tensor([0.5, 0.25]),
                                      torch.tensor([1, 2]), 0, torch.quint8)


def scheme():
    for q, wanted in ((made(0, (2, 3), "quint8")[0], torch.per_tensor_affine),
                      (CHANNELS, torch.per_channel_affine)):
        assert aten.qscheme(q) is q.qscheme() is wanted


def equal():
    for axis in (None, 0):
        q, _ = made(0, (3, 4), "quint8", axis)
        assert aten.equal(q, q.clone()) and torch.equal(q, q)
        assert not aten.equal(q, made(1, (3, 4), "quint8", axis)[0])
        assert not aten.equal(q, made(0, (3, 4), "qint8", axis)[0])
    q, x = made(0, (3, 4), "quint8")
    assert not torch.equal(q, torch.quantize_per_tensor(x, 0.1, 3, torch.quint8))


def dequantized():
    """The numbers: integers less the zero point, times the scale, in single precision."""
    for dtype in BOTH:
        q, _ = made(0, (3, 4), dtype)
        wanted = (q.int_repr().int() - q.q_zero_point()).float() * q.q_scale()
        assert torch.equal(aten.dequantize(q), wanted) and torch.equal(q.dequantize(), wanted)
        q, _ = made(0, (3, 4), dtype, 1)
        scales, zeros = q.q_per_channel_scales(), q.q_per_channel_zero_points()
        assert torch.allclose(q.dequantize(), ((q.int_repr() - zeros) * scales).float())
        assert torch.equal(torch.dequantize([q, q])[1], q.dequantize())


def dequantized_backward():
    q, x = made(0, (3, 4), "quint8", through=True)
    aten.dequantize(q).square().sum().backward()
    assert torch.equal(x.grad, 2 * q.dequantize())


def integers():
    """The nearest level, which is counted from the zero point; halves are even ones; cut off."""
    x = torch.tensor([-0.25, 0.25, 0.75, -9.0, 99.0, 1.0])
    q = torch.quantize_per_tensor(x, 0.5, 3, torch.quint8)
    assert aten.int_repr(q).tolist() == [2, 4, 4, 0, 201, 5]
    assert aten.int_repr(q).dtype is torch.uint8
    c = torch.quantize_per_channel(x.reshape(2, 3), torch.tensor([0.5, 1.0]), torch.tensor([3, 0]),
                                   0, torch.qint8)
    assert aten.int_repr(c).tolist() == [[2, 4, 4], [-9, 99, 1]]


def resized():
    for dtype in EIGHT:
        q, _ = made(0, (3, 4), dtype)
        before = q.int_repr().reshape(-1)
        assert aten.resize_(q, [2, 3]) is q and q.shape == (2, 3) and q.q_scale() == SCALE
        assert torch.equal(q.int_repr().reshape(-1), before[:6])
        q.resize_(4, 4)
        assert q.shape == (4, 4) and torch.equal(q.int_repr().reshape(-1)[:12], before)


def shown_elsewhere():
    """`set_`: another tensor's memory and parameters, or memory with one's own."""
    q, other = made(0, (3, 4), "quint8")[0], torch.quantize_per_tensor(
        draw(torch, 1, 2, 2), 0.1, 3, torch.quint8)
    assert q.set_(other) is q and torch.equal(q, other)
    q[0, 0] = 1.0
    assert other[0, 0].item() == 1.0
    q = made(0, (3, 4), "quint8")[0].set_(other.untyped_storage(), 1, (3,), (1,))
    assert q.q_scale() == SCALE and torch.equal(q.int_repr(), other.int_repr().reshape(-1)[1:])


def put(x):
    out = x.clone()
    aten._index_put_impl_(out, [ROWS], torch.tensor([0.5, 1.0, -0.5, 0.25]), False, True)
    return out


def windows(n):
    call = getattr(aten, f"quantized_max_pool{n}d")
    plain = getattr(F, f"max_pool{n}d")
    shape = (1, 2, *[5] * n)
    return moved(lambda x: call(x, [2] * n, [2] * n, [1] * n, [1] * n, True),
                 numbers=lambda x: plain(x, 2, 2, 1, 1, True), shapes=(shape,), dtypes=BOTH)


def normed(x):
    return aten.quantized_batch_norm(x, W, B, MEAN, VAR.abs(), 1e-5, 0.07, 50)


def parameters_of_one():
    for dtype in EIGHT:
        q, _ = made(0, (3, 4), dtype)
        assert q.q_scale() == SCALE and q.q_zero_point() == ZERO[dtype]


PROGRAMS = {
    "_adaptive_avg_pool2d": pool(lambda x: aten._adaptive_avg_pool2d(x, [2, 3])),
    "_adaptive_avg_pool3d": pool(lambda x: aten._adaptive_avg_pool3d(x, [2, 3, 1]), VOLUME),
    "_empty_affine_quantized": empty(
        lambda: aten._empty_affine_quantized([2, 3], scale=0.5, zero_point=2, dtype=torch.qint8),
        shape=(2, 3), dtype=torch.qint8, q_scale=0.5, q_zero_point=2),
    "_empty_per_channel_affine_quantized": empty(
        per_channel, shape=(2, 3), q_per_channel_scales=[0.5, 0.25], q_per_channel_axis=0,
        q_per_channel_zero_points=[1, 2]),
    "_index_put_impl_": moved(put, dtypes=EIGHT),
    "_prelu_kernel": Quantised(aten._prelu_kernel, shapes=((2, 4), (1, 4))),
    "_reshape_alias": moved(lambda x: aten._reshape_alias(x, [4, 3], [3, 1])),
    "_upsample_nearest_exact2d": moved(
        lambda x: aten._upsample_nearest_exact2d(x, [9, 5], None, None), shapes=IMAGE),
    "_upsample_nearest_exact3d": moved(
        lambda x: aten._upsample_nearest_exact3d(x, [5, 3, 6], None, None, None), shapes=VOLUME),
    "adaptive_avg_pool3d": pool(lambda x: aten.adaptive_avg_pool3d(x, [2, 3, 4]), VOLUME),
    "as_strided": moved(lambda x: aten.as_strided(x, [2, 3], [1, 4], 1)),
    "avg_pool2d": pool(lambda x: aten.avg_pool2d(x, [3, 2], [2, 1], [1, 0], False, False)),
    "avg_pool3d": pool(lambda x: aten.avg_pool3d(x, [2, 2, 3]), VOLUME),
    "cat": moved(lambda x, y: aten.cat([x, y], 1), shapes=((3, 4), (3, 2))),
    "channel_shuffle": moved(lambda x: aten.channel_shuffle(x, 2), shapes=IMAGE),
    "clamp": Quantised(lambda x: aten.clamp(x, -0.51, 0.33), dtypes=BOTH),
    "clone": moved(lambda x: aten.clone(x), channels=1, dtypes=BOTH),
    "dequantize": check(forward=dequantized, backward=dequantized_backward),
    "empty": empty(lambda: torch.empty(2, 3, dtype=torch.quint8), shape=(2, 3), q_scale=1.0,
                   q_zero_point=0),
    "empty_like": empty(lambda: aten.empty_like(CHANNELS), shape=(2, 3),
                        q_per_channel_scales=[0.5, 0.25], dtype=torch.quint8),
    "empty_quantized": empty(lambda: aten.empty_quantized([2, 4], CHANNELS), shape=(2, 4),
                             q_per_channel_zero_points=[1, 2]),
    "empty_strided": empty(lambda: torch.empty_strided((2, 3), (1, 2), dtype=torch.qint8),
                           shape=(2, 3), stride=(1, 2), q_scale=1.0),
    **{name: comparison(name) for name in ("eq", "ge", "gt", "le", "lt", "ne")},
    "equal": check(forward=equal),
    "fill_": Quantised(lambda x: aten.fill_(x.clone(), 0.76), lambda x: torch.full_like(x, 0.76),
                       followed=False, dtypes=BOTH),
    "flip": moved(lambda x: aten.flip(x, [0]), channels=0),
    "gelu": Quantised(lambda x: aten.gelu(x), params=SINGLE),
    "gelu_": written("gelu_", params=SINGLE),
    "grid_sampler_2d": Quantised(lambda x: aten.grid_sampler_2d(x, POINTS, 0, 0, False),
                                 shapes=IMAGE),
    "hardsigmoid": Quantised(lambda x: aten.hardsigmoid(x), params=UNIT),
    "hardtanh": Quantised(lambda x: aten.hardtanh(x, -0.51, 0.33)),
    "hardtanh_": written("hardtanh_", -0.51, 0.33),
    "index": moved(lambda x: aten.index(x, [ROWS, None]), dtypes=BOTH),
    "index_select": moved(lambda x: aten.index_select(x, 1, ROWS), channels=0),
    "int_repr": check(forward=integers),
    "leaky_relu": Quantised(lambda x: aten.leaky_relu(x, 0.13)),
    "leaky_relu_": written("leaky_relu_", 0.13),
    "masked_fill_": moved(lambda x: aten.masked_fill_(
        x.clone(), torch.tensor([True, False, True, False]), 0.5)),
    "max": moved(lambda x: [aten.max(x), aten.max(x, 1)[0]], dtypes=BOTH),
    "mean": Quantised(lambda x: aten.mean(x, [1])),
    "min": moved(lambda x: [aten.min(x), aten.min(x, 1)[0]], dtypes=BOTH),
    "q_per_channel_axis": questions("q_per_channel_axis", 0),
    "q_per_channel_scales": questions("q_per_channel_scales", [0.5, 0.25]),
    "q_per_channel_zero_points": questions("q_per_channel_zero_points", [3, 4]),
    "q_scale": questions("q_scale", 0.5),
    "q_zero_point": questions("q_zero_point", 3),
    "qscheme": check(forward=scheme),
    "quantized_batch_norm": into(
        normed, lambda x: F.batch_norm(x, MEAN, VAR.abs(), W, B, eps=1e-5), (0.07, 50),
        shapes=IMAGE),
    **{f"quantized_max_pool{n}d": windows(n) for n in (1, 2, 3)},
    "reflection_pad1d": moved(lambda x: aten.reflection_pad1d(x, [1, 2])),
    "reflection_pad2d": moved(lambda x: aten.reflection_pad2d(x, [1, 2, 3, 0]), shapes=IMAGE),
    "relu": moved(lambda x: aten.relu(x), dtypes=BOTH),
    "relu_": written("relu_"),
    "resize_": check(forward=resized),
    "set_": check(forward=shown_elsewhere),
    "sigmoid": Quantised(lambda x: aten.sigmoid(x), params=UNIT),
    "sort": moved(lambda x: list(torch.sort(x, dim=1, descending=True, stable=True)), dtypes=BOTH),
    "squeeze": moved(lambda x: aten.squeeze(x), shapes=((3, 1, 2),), dtypes=BOTH),
    "std": Quantised(lambda x: aten.std(x, [1])),
    "tanh": Quantised(lambda x: aten.tanh(x), params=AROUND),
    "threshold": Quantised(lambda x: aten.threshold(x, 0.4, 0.26)),
    "topk": moved(lambda x: aten.topk(x, 2)[0], dtypes=BOTH),
    "unfold": moved(lambda x: aten.unfold(x, 1, 2, 1)),
    "unsqueeze": moved(lambda x: aten.unsqueeze(x, 1), channels=0, dtypes=BOTH),
    "upsample_bilinear2d": Quantised(lambda x: aten.upsample_bilinear2d(x, [5, 7], False),
                                     shapes=IMAGE),
    "upsample_nearest2d": moved(lambda x: aten.upsample_nearest2d(x, [5, 7]), shapes=IMAGE),
    "upsample_nearest3d": moved(lambda x: aten.upsample_nearest3d(x, [5, 7, 2]), shapes=VOLUME),
    "view": moved(lambda x: aten.view(x, [3, 2, 2]), channels=0, dtypes=BOTH),
}
