"""Models that are quantised as graphs, in PyTorch and here.

`python -m tests.helpers.quantized.graph_models` writes what PyTorch makes of them to
`tests/data/quantized_graphs.json`, where it is installed.
"""

import copy
import importlib
import json
import pathlib

DATA = pathlib.Path(__file__).resolve().parents[2] / "data" / "quantized_graphs.json"
SHOWN = 8  # numbers that are kept of each result


def models(torch):
    """Classes of models by name."""
    nn, F = torch.nn, torch.nn.functional

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.relu, self.conv2 = nn.ReLU(), nn.Conv2d(4, 4, 1)
            self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 5)

        def forward(self, x):
            x = self.relu(self.bn(self.conv(x)))
            x = F.relu(x + self.conv2(x))
            return self.fc(torch.flatten(self.pool(x), 1))

    class Joined(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 3), nn.Linear(4, 3), nn.Linear(6, 2)

        def forward(self, x):
            a, b = self.a(x), torch.relu(self.b(x))
            joined = torch.cat([a, b], dim=1)
            return torch.sigmoid(self.c(joined * 0.5)), a * b

    class Functions(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.w = nn.Linear(4, 6), nn.Parameter(torch.randn(5, 6))
            self.v = nn.Parameter(torch.randn(2, 5))
            self.b = nn.Parameter(torch.randn(5))

        def forward(self, x):
            x = F.relu(F.linear(self.first(x), self.w, self.b))
            return F.linear(x.reshape(x.size(0), -1), self.v)

    class Norms(nn.Module):
        def __init__(self):
            super().__init__()
            self.l, self.ln, self.h = nn.Linear(6, 6), nn.LayerNorm(6), nn.Hardswish()
            self.d, self.lr, self.t = nn.Dropout(0.0), nn.LeakyReLU(0.1), nn.Tanh()
            self.sm, self.elu = nn.Softmax(-1), nn.ELU()

        def forward(self, x):
            x = self.d(self.h(self.lr(self.ln(self.l(x)))))
            y = self.t(x)
            return self.sm(self.elu(x)), y.mean(1), torch.exp(y)

    class Tables(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.l = nn.Embedding(10, 8), nn.Linear(8, 3)
            self.bag = nn.EmbeddingBag(10, 8, mode="sum", include_last_offset=True)

        def forward(self, i, o):
            return self.l(self.e(i)).sum(1), self.bag(i.reshape(-1), o)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.r, self.g = nn.LSTM(4, 5, 2, batch_first=True), nn.GRU(5, 3)
            self.l = nn.Linear(3, 2)

        def forward(self, x):
            x, (h, _) = self.r(x)
            x, _ = self.g(x)
            return F.relu(self.l(x)), h

    class Dims(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU())
            self.d, self.u = nn.Conv3d(1, 2, 2), nn.ConvTranspose2d(2, 2, 2)
            self.bn = nn.BatchNorm2d(2)

        def forward(self, x, y, z):
            return self.c(x).flatten(1), F.relu(self.d(y)), F.relu(self.bn(self.u(z)))

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
            self.head, self.scale = nn.Linear(4, 2), nn.Parameter(torch.tensor([1.5]))

        def forward(self, x):
            y = self.head(self.block(x) + x) * self.scale
            return y.view(-1).unsqueeze(0).permute(1, 0).contiguous().squeeze()

    return {cls.__name__: cls for cls in (Residual, Joined, Functions, Norms, Tables, Recurrent,
                                          Dims, Inner)}


def inputs(torch, name):
    """Arguments for a model."""
    torch.manual_seed(5)
    if name == "Tables":
        return torch.randint(0, 10, (3, 4)), torch.tensor([0, 4, 8, 12])
    shapes = {"Residual": [(2, 3, 6, 6)], "Joined": [(3, 4)], "Functions": [(3, 4)],
              "Norms": [(4, 6)], "Recurrent": [(2, 3, 4)], "Inner": [(3, 4)],
              "Dims": [(2, 2, 6), (1, 1, 3, 3, 3), (1, 2, 3, 3)]}
    return tuple(torch.randn(*shape) for shape in shapes[name])


def mappings(torch, q):
    """What is quantised, by name."""
    nn, default = torch.nn, q.get_default_qconfig_mapping
    rows = q.float_qparams_weight_only_qconfig
    return {
        "x86": lambda: default("x86"), "qnnpack": lambda: default("qnnpack"),
        "dynamic": lambda: q.QConfigMapping().set_global(q.default_dynamic_qconfig),
        "tables": lambda: q.QConfigMapping().set_object_type(
            nn.Embedding, rows).set_object_type(nn.EmbeddingBag, rows),
        "partly": lambda: default("x86").set_module_name("fc", None).set_module_name(
            "block", None).set_module_name_regex("a.*", None).set_object_type(
            nn.LayerNorm, None),
    }


def numbers(results):
    """The first numbers of all results."""
    if isinstance(results, (tuple, list)):
        return [v for r in results for v in numbers(r)]
    return [[round(v, 6) for v in results.detach().reshape(-1)[:SHOWN].tolist()]]


def calls(graph):
    """The calls of a graph, by what they call."""
    return " ".join(str(getattr(n.target, "__name__", n.target)) for n in graph.graph.nodes
                    if n.op.startswith("call"))


def seeded(torch, name):
    """A model in evaluation whose norms have seen something."""
    torch.manual_seed(1)
    model = models(torch)[name]().eval()
    for module in model.modules():
        if hasattr(module, "running_mean"):
            module.running_mean += 0.1
            module.running_var *= 1.5
    return model


def calibrated(torch, name, mapping):
    """What graph mode makes of a model that has seen some inputs."""
    q = importlib.import_module(f"{torch.__name__}.ao.quantization")
    fx = importlib.import_module(f"{torch.__name__}.ao.quantization.quantize_fx")
    given = inputs(torch, name)
    prepared = fx.prepare_fx(seeded(torch, name), mappings(torch, q)[mapping](), given)
    prepared(*given)
    prepared(*[v * 0.7 if v.is_floating_point() else v for v in given])
    return _found(fx, prepared, given)


def trained(torch, name):
    """The same after some steps of training with rounding."""
    q = importlib.import_module(f"{torch.__name__}.ao.quantization")
    fx = importlib.import_module(f"{torch.__name__}.ao.quantization.quantize_fx")
    torch.manual_seed(1)
    model, given = models(torch)[name]().train(), inputs(torch, name)
    prepared = fx.prepare_qat_fx(model, q.get_default_qat_qconfig_mapping("x86"), given)
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.01)
    for _ in range(3):
        out = prepared(*given)
        loss = sum((v * v).mean() for v in (out if isinstance(out, tuple) else (out,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return _found(fx, prepared.eval(), given)


def _found(fx, prepared, given):
    converted = fx.convert_fx(copy.deepcopy(prepared))
    reference = fx.convert_to_reference_fx(copy.deepcopy(prepared))
    return {"prepared": calls(prepared), "observed": numbers(prepared(*given)),
            "results": numbers(converted(*given)), "reference": numbers(reference(*given))}


CASES = [(name, mapping) for name in ("Residual", "Joined", "Functions", "Norms", "Tables",
                                      "Recurrent", "Dims", "Inner")
         for mapping in ("x86", "qnnpack", "dynamic", "tables", "partly", "trained")
         if not (name == "Tables" and mapping in ("dynamic", "trained"))]


def record():
    """Write what PyTorch makes of the models."""
    import torch

    found = {f"{name} {mapping}": trained(torch, name) if mapping == "trained" else
             calibrated(torch, name, mapping) for name, mapping in CASES}
    DATA.write_text("{\n" + ",\n".join(
        f" {json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")


if __name__ == "__main__":
    record()
