"""A fixed corpus of graphs; the C that each becomes is recorded in `tests/data/generated.txt`.

python -m tests.helpers.generated_corpus          writes the file anew, after a change that is meant
"""

from pathlib import Path

import numpy as np

import pullback as pb
import pullback.nn.functional as F
from tests.helpers import texts
from tests.helpers.compiler_graphs import trace, with_grad

RECORD = Path(__file__).parents[1] / "data" / "generated.txt"
WIDTHS = (16, 32, 64)  # bytes of a vector register: the text depends on nothing else of the machine


def real(*shape, dtype="f4"):
    return np.zeros(shape, dtype)


def whole(*shape):
    return np.zeros(shape, np.int64)


def attention(q, k, v):
    scores = (q @ k.transpose(-1, -2)) / 8
    mask = pb.ones(scores.shape[-1], scores.shape[-1]).tril() == 0
    return (scores.masked_fill(mask, float("-inf")).softmax(-1) @ v).sum()


def steps(x, w):
    h = x[0]
    for t in range(4):
        h = pb.tanh(h @ w + x[t])
    return (h * h).mean()


# name -> (function, arguments, number of arguments to differentiate)
CORPUS = {
    "pointwise": (
        lambda x, y: (pb.where(x > y, x.exp(), y) * 2, (x - y).abs().sqrt()),
        [real(33, 17), real(17)],
        0,
    ),
    "reductions": (
        lambda x: (x.sum(0), x.mean(1), x.amax((0, 2)), x.var(), x.prod(2)),
        [real(4, 9, 21)],
        0,
    ),
    "gelu_chain": (
        lambda x, w, b: (F.gelu(x * w + b, approximate="tanh") * x.tanh()).sum(),
        [real(64, 96), real(96), real(96)],
        3,
    ),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t), [real(64, 50), whole(64)], 1),
    "layer_norm": (
        lambda x, w, b: (F.layer_norm(x, (40,), w, b) ** 2).sum(),
        [real(8, 40), real(40), real(40)],
        3,
    ),
    "mlp": (
        lambda x, w, b, v, t: F.cross_entropy(pb.relu(pb.addmm(b, x, w)) @ v, t),
        [real(32, 20), real(20, 24), real(24), real(24, 10), whole(32)],
        4,
    ),
    "attention": (attention, [real(2, 16, 8), real(2, 16, 8), real(2, 16, 8)], 3),
    "embedding": (
        lambda w, i: (F.embedding(i, w).sin() * w[i]).sum(),
        [real(30, 16), whole(12)],
        1,
    ),
    "scatter": (
        lambda x, i, y: (x.scatter_add(1, i, y[:, :1]), x.gather(1, i), F.one_hot(i[:, 0], 6)),
        [real(5, 6), whole(5, 1), real(5, 6)],
        0,
    ),
    "views": (
        lambda x: (pb.cat([x.t(), x.t() * 2]), x[:, 1:7:2].sum(1), x.flip(0), x.reshape(3, -1)[1]),
        [real(6, 10)],
        0,
    ),
    "float64": (
        lambda x, w: (steps(x, w),),
        [real(4, 5, 8, dtype="f8"), real(8, 8, dtype="f8")],
        0,
    ),
    "integers": (
        lambda i, m: (i * 2 + 1, (i % 5).clamp(1, 3), (i > 2) & m, i.sum(0), i.double() / 3),
        [whole(7, 11), np.zeros((7, 11), bool)],
        0,
    ),
}


def generated(name: str, vector_bytes: int):
    """C text and plan of a graph of the corpus, for a width of vectors."""
    from pullback.compile.lower import lower
    from pullback.compile.schedule import schedule
    from pullback.compile.unit import make_unit

    fn, arrays, grad = CORPUS[name]
    lowered = lower(trace(with_grad(fn, grad) if grad else fn, *arrays))
    return make_unit(lowered, schedule(lowered), name, vector_bytes)


def text(name: str, vector_bytes: int) -> str:
    """The generated C and the plan, for people to read and tests to compare."""
    unit = generated(name, vector_bytes)
    plan = {
        k: v for k, v in unit.plan.items() if k not in ("inputs", "buffers", "outputs")
    }  # NumPy's type numbers
    shown = [f"/* {key}: {value!r} */" for key, value in plan.items()]
    shown += [f"/* {k['name']}: {', '.join(k['nodes'])} */" for k in unit.report["kernels"]]
    return "\n".join([unit.source, *shown])


def all_widths(name: str) -> dict[str, str]:
    """Width of vectors -> text."""
    return {str(w): text(name, w) for w in WIDTHS}


if __name__ == "__main__":
    from pullback.compile import unit

    unit.last_level_cache = lambda: 32 << 20  # as in the test
    texts.write(RECORD, {name: all_widths(name) for name in CORPUS})
