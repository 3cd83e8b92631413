"""Quantised models, written for either package: each function takes it and gives its results.

Weights and inputs come from NumPy, so that they are the same in both.
"""

import numpy as np


def draw(torch, seed, *shape, scale=1.0):
    """Numbers that are the same in both packages."""
    numbers = np.random.default_rng(seed).normal(size=shape) * scale
    return torch.from_numpy(numbers.astype(np.float32))


def filled(torch, module, seed=0):
    """A module with parameters that are drawn."""
    with torch.no_grad():
        for k, (_, p) in enumerate(sorted(module.named_parameters())):
            p.copy_(draw(torch, seed + k, *p.shape, scale=0.4))
        for k, (name, b) in enumerate(sorted(module.named_buffers())):
            if "running_mean" in name:
                b.copy_(draw(torch, 70 + k, *b.shape, scale=0.1))
            elif "running_var" in name:
                b.copy_(draw(torch, 80 + k, *b.shape).abs() + 0.5)
    return module


def dynamic(torch, *layers, dtype=None, spec=None):
    """Some layers, filled and quantised dynamically."""
    model = filled(torch, torch.nn.Sequential(*layers))
    kinds = spec or {type(layer) for layer in layers}
    return torch.ao.quantization.quantize_dynamic(model, kinds, dtype=dtype or torch.qint8)


def linear(torch):
    nn, tq = torch.nn, torch.ao.quantization
    out = []
    for k, (ins, outs, bias) in enumerate([(5, 3, True), (33, 17, True), (64, 8, False),
                                           (700, 40, True)]):
        model = dynamic(torch, nn.Linear(ins, outs, bias=bias))
        out += [model(draw(torch, 90 + k, *lead, ins)) for lead in ((1,), (4,), (2, 3))]
        out += [model[0].weight(), repr(model)]
    each = dynamic(torch, nn.Linear(9, 4), spec={nn.Linear: tq.per_channel_dynamic_qconfig})
    out += [each(draw(torch, 1, 5, 9)), each[0].weight()]
    half = dynamic(torch, nn.Linear(9, 4), dtype=torch.float16)
    return [*out, half(draw(torch, 1, 5, 9)), repr(half)]


def recurrent(torch):
    nn = torch.nn
    out = []
    for kind in (nn.LSTM, nn.GRU):
        for more in ({}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}):
            model = dynamic(torch, kind(5, 4, **more), spec={kind})[0]
            states, last = model(draw(torch, 3, 6, 2, 5))
            out += [states, *(last if isinstance(last, tuple) else (last,)), repr(model)]
        model = dynamic(torch, kind(5, 4), spec={kind})[0]
        packed = nn.utils.rnn.pack_padded_sequence(
            draw(torch, 4, 6, 3, 5), torch.tensor([2, 6, 4]), enforce_sorted=False)
        states, last = model(packed)
        out += [states.data, *(last if isinstance(last, tuple) else (last,))]
        half = dynamic(torch, kind(5, 4), spec={kind}, dtype=torch.float16)[0]
        out.append(half(draw(torch, 3, 6, 2, 5))[0])
    return out


def cells(torch):
    nn = torch.nn
    out = []
    for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        model = dynamic(torch, kind(5, 4), spec={kind})[0]
        found = model(draw(torch, 3, 2, 5))
        again = model(draw(torch, 4, 2, 5), found)
        out += [*found, *again, repr(model)] if isinstance(found, tuple) else [found, again,
                                                                              repr(model)]
    return out


def embeddings(torch):
    nn = torch.nn
    out = []
    at = torch.tensor([[1, 2, 5], [0, 3, 3]])
    table = dynamic(torch, nn.Embedding(6, 8), dtype=torch.quint8)
    out += [table(at), repr(table)]
    for dtype in (torch.quint8, torch.quint4x2):
        bag = dynamic(torch, nn.EmbeddingBag(6, 8, mode="sum"), dtype=dtype)
        out += [bag[0](at), bag[0](at.reshape(-1), torch.tensor([0, 2, 2])), repr(bag)]
        out.append(bag[0](at.reshape(-1), torch.tensor([0, 2]),
                          per_sample_weights=draw(torch, 5, 6)))
    for name in ("byte", "4bit", "2bit"):
        pack = getattr(torch.ops.quantized, f"embedding_bag_{name}_prepack")
        rows = pack(draw(torch, 6, 5, 8))
        out += [rows, getattr(torch.ops.quantized, f"embedding_bag_{name}_unpack")(rows)]
    return out


def observers(torch):
    tq = torch.ao.quantization
    batches = [draw(torch, k, 3, 4, scale=k + 1.0) for k in range(3)]
    makers = [
        tq.MinMaxObserver, tq.MovingAverageMinMaxObserver, tq.PerChannelMinMaxObserver,
        tq.MovingAveragePerChannelMinMaxObserver, tq.HistogramObserver, tq.default_observer,
        tq.default_weight_observer, tq.default_per_channel_weight_observer,
        tq.default_float_qparams_observer, tq.weight_observer_range_neg_127_to_127,
        tq.default_fixed_qparams_range_0to1_observer,
        tq.MinMaxObserver.with_args(reduce_range=True),
        tq.MinMaxObserver.with_args(qscheme=torch.per_tensor_symmetric),
        tq.HistogramObserver.with_args(reduce_range=True, bins=64),
        tq.HistogramObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric),
    ]
    out = []
    for make in makers:
        observer = make()
        for batch in batches:
            observer(batch)
        out += [*observer.calculate_qparams(), sorted(observer.state_dict())]
    return out


def histograms(torch):
    out = []
    for make in (lambda k: draw(torch, k, 400), lambda k: draw(torch, k, 300).exp(),
                 lambda k: draw(torch, k, 50).relu() * 3, lambda k: torch.ones(4)):
        observer = torch.ao.quantization.HistogramObserver()
        for k in range(4):
            observer(make(k) * (1 + k % 3))
        out += [*observer.calculate_qparams(), observer.histogram.sum(), observer.min_val,
                observer.max_val]
    return out


def fake(torch):
    tq = torch.ao.quantization
    out = []
    for make in (tq.default_fake_quant, tq.default_weight_fake_quant,
                 tq.default_per_channel_weight_fake_quant, tq.default_fused_act_fake_quant,
                 tq.default_fused_wt_fake_quant, tq.default_fused_per_channel_wt_fake_quant,
                 tq.default_fixed_qparams_range_neg1to1_fake_quant):
        module = make()
        x = draw(torch, 1, 3, 4).requires_grad_()
        y = module(x)
        y.sum().backward()
        out += [y.detach(), x.grad, module.scale, module.zero_point, sorted(module.state_dict())]
        module.disable_fake_quant()
        out.append(module(x).detach())
    return out


def network(torch, norm=True):
    """A network with most of what is quantised."""
    nn, tq = torch.nn, torch.ao.quantization

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
            self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
            self.bn1, self.relu1 = nn.BatchNorm2d(8), nn.ReLU()
            self.conv2 = nn.Conv2d(8, 8, 3, stride=2, groups=2)
            self.relu2 = nn.ReLU()
            self.add = nn.quantized.FloatFunctional()
            self.pool = nn.AdaptiveAvgPool2d(2)
            self.fc = nn.Linear(32, 10)
            self.relu3 = nn.ReLU()
            self.out = nn.Linear(10, 4)

        def forward(self, x):
            x = self.relu1(self.bn1(self.conv1(self.quant(x))))
            x = self.relu2(self.conv2(x))
            x = self.add.add(x, x)
            x = self.pool(x).reshape(x.shape[0], -1)
            x = self.relu3(self.fc(x))
            return self.dequant(self.out(x))

    return filled(torch, Net())


FUSED = [["conv1", "bn1", "relu1"], ["conv2", "relu2"], ["fc", "relu3"]]


def static(torch):
    tq = torch.ao.quantization
    out = []
    for config in (tq.default_qconfig, tq.get_default_qconfig("x86"),
                   tq.get_default_qconfig("qnnpack")):
        model = tq.fuse_modules(network(torch).eval(), FUSED)
        model.qconfig = config
        ready = tq.prepare(model)
        for k in range(3):
            ready(draw(torch, k, 2, 3, 9, 9))
        done = tq.convert(ready)
        scales = [done.conv1.scale, done.conv2.scale, done.add.scale, done.fc.scale, done.out.scale]
        out += [done(draw(torch, 9, 2, 3, 9, 9)), done.conv1.weight(), torch.tensor(scales),
                done.fc.zero_point, done.quant.scale, [m._get_name() for m in done.modules()],
                sorted(k for k in done.state_dict())]
    return out


def trained(torch):
    tq = torch.ao.quantization
    torch.manual_seed(0)
    model = network(torch).train()
    model.qconfig = tq.get_default_qat_qconfig("x86")
    model = tq.fuse_modules_qat(model, FUSED)
    ready = tq.prepare_qat(model)
    optimizer = torch.optim.SGD(ready.parameters(), 0.01)
    out = []
    for k in range(3):
        loss = (ready(draw(torch, k, 2, 3, 9, 9)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.detach())
    done = tq.convert(ready.eval())
    return [*out, done(draw(torch, 9, 2, 3, 9, 9)), repr(type(done.conv1)).split(".")[-1],
            sorted(k for k in ready.state_dict())]


def layers(torch):
    nn, tq = torch.nn, torch.ao.quantization
    out = []
    images, rows = draw(torch, 1, 2, 4, 5, 5), draw(torch, 2, 3, 4, 6)
    volume = draw(torch, 3, 1, 2, 4, 4, 4)
    for layer, x in ((nn.ELU(), images), (nn.Hardswish(), images), (nn.LeakyReLU(0.2), images),
                     (nn.ReLU6(), images), (nn.LayerNorm(6), rows), (nn.GroupNorm(2, 4), images),
                     (nn.InstanceNorm2d(4, affine=True), images), (nn.BatchNorm2d(4), images),
                     (nn.BatchNorm3d(2), volume), (nn.Conv1d(4, 3, 3, padding=1), rows),
                     (nn.Conv3d(2, 3, 2), volume), (nn.Conv2d(4, 2, 3, dilation=2), images),
                     (nn.Sigmoid(), images),
                     (nn.ConvTranspose2d(4, 2, 3, padding=1, output_padding=1, stride=2), images),
                     (nn.Dropout(), images), (nn.Softmax(1), images), (nn.Linear(6, 4), rows)):
        model = nn.Sequential(tq.QuantStub(), filled(torch, layer), tq.DeQuantStub()).eval()
        model.qconfig = tq.default_qconfig
        ready = tq.prepare(model)
        ready(x)
        if isinstance(layer, (nn.Sigmoid, nn.Softmax)):
            continue
        done = tq.convert(ready)
        out += [done(x), done[1]._get_name()]
    return out


def functionals(torch):
    q = torch.quantize_per_tensor(draw(torch, 1, 3, 4), 0.05, 10, torch.quint8)
    other = torch.quantize_per_tensor(draw(torch, 2, 3, 4), 0.04, 7, torch.quint8)
    f = torch.ao.nn.quantized.QFunctional()
    f.scale, f.zero_point = 0.1, 20
    return [f.add(q, other), f.add_relu(q, other), f.mul(q, other), f.cat([q, other], 1),
            f.add_scalar(q, 0.7), f.mul_scalar(q, -1.5), f.matmul(q, other.t()),
            sorted(f.state_dict())]


def written_out(torch):
    """Recurrent layers and attention whose parts are observed and quantised."""
    nn, tq = torch.nn, torch.ao.quantization

    class Around(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.quant, self.layer, self.dequant = tq.QuantStub(), layer, tq.DeQuantStub()

        def forward(self, x):
            x = self.quant(x)
            given = (x,) if "LSTM" in type(self.layer).__name__ else (x, x, x)
            out, more = self.layer(*given)
            return [self.dequant(t) for t in (out, *(more if isinstance(more, tuple) else [more]))]

    out = []
    for make in (lambda: nn.LSTM(4, 3), lambda: nn.LSTM(4, 3, 2, bidirectional=True, bias=False),
                 lambda: nn.LSTM(4, 3, 2, batch_first=True), lambda: nn.MultiheadAttention(4, 2)):
        model = Around(filled(torch, make())).eval()
        model.qconfig = tq.default_qconfig
        ready = tq.prepare(model)
        ready(draw(torch, 0, 5, 2, 4))
        out.append(sorted(ready.state_dict()))
        done = tq.convert(ready)
        out += [sorted(done.state_dict()), done.layer._get_name(), *done(draw(torch, 1, 5, 2, 4))]
    return out


MODELS = [linear, recurrent, cells, embeddings, observers, histograms, fake, static, trained,
          layers, functionals, written_out]


def pickled(torch):
    """Whole models, inputs, and what they give: PyTorch pickles them with its own classes."""
    nn, tq = torch.nn, torch.ao.quantization
    image, rows = draw(torch, 1, 2, 2, 5, 5), draw(torch, 2, 5, 4)
    net = filled(torch, nn.Sequential(tq.QuantStub(), nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(),
                                      nn.Linear(27, 4), tq.DeQuantStub())).eval()
    net.qconfig = tq.default_qconfig
    ready = tq.prepare(tq.fuse_modules(net, ["1", "2"]))
    ready(image)
    models = {
        "static": (tq.convert(ready), image),
        "linear": (dynamic(torch, nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), rows),
        "half": (dynamic(torch, nn.Linear(4, 3), dtype=torch.float16), rows),
        "embedding": (dynamic(torch, nn.Embedding(5, 8), dtype=torch.quint8),
                      torch.tensor([1, 4, 0])),
        "lstm": (dynamic(torch, nn.LSTM(4, 3), spec={nn.LSTM}), draw(torch, 3, 5, 2, 4)),
    }
    return {name: {"model": m, "input": x, "output": m(x)} for name, (m, x) in models.items()}
