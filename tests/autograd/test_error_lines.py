"""The error for a graph that is gone names the user's line, whichever function made the node."""

import re

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from tests.helpers.custom_functions import Square


def times(x):
    y = x * 1
    y *= x
    return y


def over(x):
    y = x * 1
    y /= x
    return y


def power(x):
    y = x * 1
    y **= 2
    return y


def item(x):
    y = x * 1
    y[0] = x[1] * x[2]
    return y


torch.manual_seed(0)
LINEAR, LSTM, NORM = nn.Linear(3, 3), nn.LSTM(3, 3), nn.BatchNorm1d(3)
ATTENTION, CONV = nn.MultiheadAttention(3, 1), nn.Conv2d(1, 1, 2)
STACK = nn.Sequential(nn.Linear(3, 3), nn.GELU())
LAYER = nn.TransformerEncoderLayer(3, 1, 4, batch_first=True)
CLASSES = torch.tensor([0, 1, 2])

FORMS = {
    "2 / x": lambda x: 2 / x,
    "2 ** x": lambda x: 2**x,
    "7 % x": lambda x: (7 % x) * x,
    "7 // x": lambda x: (7 // x) * x,
    "3 * x": lambda x: 3 * x * x,
    "3 + x": lambda x: (3 + x) * x,
    "3 - x": lambda x: (3 - x) * x,
    "tensor / x": lambda x: torch.ones(3, 3) / x,
    "x @ x": lambda x: x @ x,
    "x / x": lambda x: x / (x + 1),
    "x ** 2": lambda x: x**2,
    "-x": lambda x: (-x) * x,
    "abs": abs,
    "method": lambda x: x.exp(),
    "function": lambda x: torch.exp(x),
    "rsub": lambda x: torch.rsub(x * x, 1),
    "outer": lambda x: torch.outer(x[0], x[1]),
    "einsum": lambda x: torch.einsum("ij,jk->ik", x, x),
    "norm": lambda x: x.norm(),
    "std": lambda x: x.std(),
    "cdist": lambda x: torch.cdist(x, x.flip(0)),
    "inv": lambda x: torch.linalg.inv(x),
    "svd": lambda x: torch.linalg.svd(x)[1],
    "cosine": lambda x: F.cosine_similarity(x, x.flip(0)),
    "normalize": lambda x: F.normalize(x),
    "softmax": lambda x: F.softmax(x, -1),
    "cross_entropy": lambda x: F.cross_entropy(x, CLASSES),
    "triplet": lambda x: F.triplet_margin_loss(x, x.flip(0), x.flip(1)),
    "layer_norm": lambda x: F.layer_norm(x, (3,)),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "log_prob": lambda x: torch.distributions.Normal(x, x.abs() + 1).log_prob(x.flip(0)),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False),
    "Function": lambda x: Square.apply(x),
    "Linear": LINEAR,
    "LSTM": lambda x: LSTM(x)[0],
    "BatchNorm": NORM,
    "Attention": lambda x: ATTENTION(x, x, x)[0],
    "Conv": lambda x: CONV(x[None, None]),
    "Sequential": STACK,
    "Layer": lambda x: LAYER(x[None]),
    "x *= x": times,
    "x /= x": over,
    "x **= 2": power,
    "x[0] =": item,
    "exp_": lambda x: (x * 1).exp_(),
    "x[0]": lambda x: x[0] * x[1],
    "x[i]": lambda x: x[CLASSES].exp(),
    "embedding": lambda x: F.embedding(CLASSES, x * x),
    "where": lambda x: torch.where(x > 0, x * x, x),
}


@pytest.mark.parametrize("form", list(FORMS))
def test_freed_graphs_name_the_users_line(form):
    for _ in range(2):  # the first call makes the function
        x = (torch.rand(3, 3) + 0.5).requires_grad_()
        y = FORMS[form](x).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time") as error:
            y.backward()
        places = re.findall(r"[\w<>.]+:\d+", str(error.value))
        assert places and all(p.startswith("test_error_lines.py:") for p in places), error.value


@pytest.mark.parametrize("form", ["normalize", "outer"])
def test_written_values_name_the_users_line(form):
    z = (torch.rand(3, 3) + 0.5).requires_grad_() * 1
    y = FORMS[form](z)
    with torch.no_grad():
        z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
        y.sum().backward()
    places = re.findall(r"[\w<>.]+\.py:\d+", str(error.value))
    assert places and all(p.startswith("test_error_lines.py:") for p in places), error.value
