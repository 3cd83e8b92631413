"""Stand-in graphs for tests of the compiler alone: the node interface, made from functions on torch
tensors (torch is the oracle here: it traces, and evaluates what goes through NumPy steps).
"""

import operator

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx

_NUMPY = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.bool: "bool",
    torch.uint8: "uint8",
    torch.float16: "float16",
    torch.int16: "int16",
    torch.complex64: "complex64",
}


class DType:
    def __init__(self, dtype):
        self.np = np.dtype(_NUMPY[dtype])

    def __repr__(self):
        return f"torch.{self.np.name}"


class Example:
    """What `node.meta["val"]` offers."""

    def __init__(self, tensor):
        self.shape, self.dtype, self._stride = (
            tuple(tensor.shape),
            DType(tensor.dtype),
            tensor.stride(),
        )
        self.ndim = len(self.shape)

    def stride(self):
        return self._stride


class Entry:
    """The table entry behind a target: evaluates on raw arrays."""

    c = None

    def __init__(self, overload):
        self.overload = overload

    def evaluate(self, *args, **kwargs):
        def there(a):
            if isinstance(a, (list, tuple)):
                return [there(x) for x in a]
            return (
                torch.from_numpy(np.ascontiguousarray(a).reshape(a.shape))
                if isinstance(a, np.ndarray)
                else a
            )

        out = self.overload(*there(args), **{k: there(v) for k, v in kwargs.items()})
        return (
            tuple(o.numpy() if o is not None else None for o in out)
            if isinstance(out, (tuple, list))
            else out.numpy()
        )


class Target:
    def __init__(self, overload):
        self.op, self.text = Entry(overload), str(overload)

    def __str__(self):
        return self.text


class Node:
    def __init__(self, op, name, target, args=(), kwargs=None, meta=None):
        self.op, self.name, self.target, self.args = op, name, target, args
        self.kwargs, self.meta = kwargs or {}, meta or {}


class Graph:
    def __init__(self):
        self.nodes = []


class GraphModule:
    def __init__(self, graph):
        self.graph = graph


def convert(gm):
    """A torch fx graph as a stand-in graph."""
    out, env = GraphModule(Graph()), {}

    def there(a):
        if isinstance(a, (list, tuple)):
            return tuple(there(x) for x in a)
        return env[a] if isinstance(a, torch.fx.Node) else a

    def example(v):
        if isinstance(v, (list, tuple)):
            return tuple(example(x) for x in v)
        return Example(v) if isinstance(v, torch.Tensor) else v

    for n in gm.graph.nodes:
        target = n.target
        if n.op == "call_function" and target is not operator.getitem:
            target = Target(target)
        if n.op == "get_attr":
            value = getattr(gm, n.target)
            setattr(out, n.target, value.detach().numpy())
            n.meta["val"] = value
        env[n] = Node(
            n.op,
            n.name,
            target,
            there(n.args),
            {k: there(v) for k, v in n.kwargs.items()},
            {"val": example(n.meta["val"])} if "val" in n.meta else {},
        )
        out.graph.nodes.append(env[n])
    return out


def trace(fn, *arrays, decompositions=None):
    """The stand-in graph of a function of arrays, traced by torch."""
    tensors = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arrays]
    gm = make_fx(fn, tracing_mode="fake", decomposition_table=decompositions)(*tensors)
    gm.graph.eliminate_dead_code()
    return convert(gm)


def with_grad(fn, count):
    """Loss and gradients of the first `count` arguments."""

    def both(*args):
        leaves = [a.detach().requires_grad_() for a in args[:count]]
        loss = fn(*leaves, *args[count:])
        grads = torch.autograd.grad(loss, leaves)
        return (loss, *grads)

    return both
