"""Writes `tests/data/expected_prints.json`: how PyTorch prints the graphs of `printed_cases.py`.

`python -m tests.helpers.record_prints` with PyTorch, when a case is added.
"""

import json
import types
from pathlib import Path

import torch
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, GraphModule

from tests.helpers import printed_cases

mode = FakeTensorMode()


def example(shape, dtype="float32", strides=None):
    dtype = getattr(torch, dtype)
    with mode:
        if strides is None:
            return torch.empty(shape, dtype=dtype)
        return torch.empty_strided(shape, strides, dtype=dtype)


names = ["float16", "float32", "float64", "int64", "bool", "strided", "contiguous_format", "device"]
T = types.SimpleNamespace(
    aten=torch.ops.aten, example=example, **{name: getattr(torch, name) for name in names}
)


class Weight(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.zeros(1)


def root():
    module = torch.nn.Module()
    module.layers = torch.nn.ModuleList([torch.nn.Module(), Weight()])
    module.head = Weight()
    module._tensor_constant0 = module._tensor_constant1 = torch.zeros(())
    return module


def record(case):
    graph = Graph()
    case(graph, T)
    # Some cases print code that does not compile, so only the others are made into modules.
    out = {"code": graph.python_code("self").src, "graph": str(graph)}
    if case.__name__ not in printed_cases.READABLE_CASES:
        return out
    module = GraphModule(root(), graph)
    for key, options in printed_cases.READABLE.items():
        out[key] = module.print_readable(print_output=False, **options)
    return out


def record_names():
    graph = Graph()
    made = [graph.create_node("call_function", len, (1,), name=n).name for n in printed_cases.NAMES]
    graph = Graph()
    return {
        "names": made,
        "methods": [graph.call_method(n, (1,)).name for n in printed_cases.METHODS],
        "parameters": [graph.placeholder(n).name for n in printed_cases.METHODS],
    }


prints = {name: record(case) for name, case in printed_cases.CASES.items()}
prints["(names)"] = record_names()
path = Path(__file__).parents[1] / "data/expected_prints.json"
path.write_text(json.dumps(prints, indent=1) + "\n")
print(f"{path}: {len(prints)} cases")
