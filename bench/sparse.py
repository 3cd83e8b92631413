"""Sparse products, beside PyTorch and SciPy: `python -m bench.sparse [--rounds 15] [--threads 2]`.

All libraries that are installed do the same work in one process, in turn; the median and the least
time of each, and how many times as long the others take.  PyTorch's gradient of the values of a
matrix with coordinates is masked out of a dense one; where that does not fit, it has none.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

ROWS, ENTRIES, WIDTH = 4096, 65536, 64


def pattern() -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries, in order, each place once."""
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, ROWS * ROWS, ENTRIES))
    return keys // ROWS, keys % ROWS


def pointers(rows: np.ndarray) -> np.ndarray:
    """The compressed form of sorted rows."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=ROWS))])


class Work:
    """The programs, written once for both libraries."""

    def __init__(self, torch, ours: bool):
        self.torch, self.ours = torch, ours
        rows, cols = pattern()
        make = lambda a: torch.from_numpy(np.ascontiguousarray(a))
        self.rows, self.cols, self.crow = make(rows), make(cols), make(pointers(rows))
        rng = np.random.default_rng(1)
        self.values = make(rng.standard_normal(rows.size).astype("f4")).requires_grad_()
        self.dense = make(rng.standard_normal((ROWS, WIDTH)).astype("f4")).requires_grad_()
        self.left = make(rng.standard_normal((ROWS, WIDTH)).astype("f4")).requires_grad_()
        self.seed = make(rng.standard_normal((ROWS, WIDTH)).astype("f4"))

    def csr(self, values):
        return self.torch.sparse_csr_tensor(self.crow, self.cols, values, (ROWS, ROWS))

    def spmm(self):
        """A product and its gradients to the values and to the dense matrix."""
        if self.ours:
            out = self.csr(self.values) @ self.dense
        else:
            at = self.torch.stack([self.rows, self.cols])
            out = self.torch.sparse.mm(
                self.torch.sparse_coo_tensor(at, self.values, (ROWS, ROWS), is_coalesced=True),
                self.dense)
        return self.torch.autograd.grad(out, (self.values, self.dense), self.seed)

    def spmm_forward(self):
        """The product alone."""
        with self.torch.no_grad():
            return self.csr(self.values) @ self.dense

    def sddmm(self):
        """Entries of a dense product, and the gradients to both factors."""
        torch = self.torch
        zero = self.csr(torch.zeros_like(self.values))
        out = torch.sparse.sampled_addmm(zero, self.left, self.dense.t(), beta=0.0)
        return torch.autograd.grad(out.values(), (self.left, self.dense), self.values.detach())

    def softmax(self):
        """A softmax along rows, and its gradient."""
        torch = self.torch
        at = torch.stack([self.rows, self.cols])
        matrix = torch.sparse_coo_tensor(at, self.values, (ROWS, ROWS), is_coalesced=True)
        out = torch.sparse.softmax(matrix, 1).coalesce().values()
        return torch.autograd.grad(out, self.values, self.values.detach())


class Attention:
    """A layer of attention on a graph whose edges are the entries; gradients of its weights.

    Both libraries get the form that is fastest there: a sparse product, or rows that are gathered,
    weighted and added up.
    """

    def __init__(self, torch, ours: bool):
        self.torch, self.ours = torch, ours
        rows, cols = pattern()
        rng = np.random.default_rng(2)
        make = lambda *shape: torch.from_numpy(rng.standard_normal(shape).astype("f4"))
        self.rows, self.cols = torch.from_numpy(rows), torch.from_numpy(cols)
        self.crow = torch.from_numpy(pointers(rows))
        self.x = make(ROWS, WIDTH)
        self.weights = [w.requires_grad_() for w in (
            make(WIDTH, WIDTH) * 0.1, make(WIDTH), make(WIDTH))]
        self.compiled = torch.compile(self.loss)

    def loss(self, x, weight, source, target):
        torch, rows, cols = self.torch, self.rows, self.cols
        h = x @ weight
        scores = torch.nn.functional.leaky_relu((h @ source)[rows] + (h @ target)[cols], 0.2)
        highest = torch.full((ROWS,), -1e30).scatter_reduce(0, rows, scores.detach(), "amax")
        parts = (scores - highest[rows]).exp()
        parts = parts / torch.zeros(ROWS).index_add(0, rows, parts)[rows]
        if self.ours:
            out = torch.sparse_csr_tensor(self.crow, cols, parts, (ROWS, ROWS)) @ h
        else:
            out = torch.zeros(ROWS, WIDTH).index_add(0, rows, parts.unsqueeze(1) * h[cols])
        return (out.relu() ** 2).mean()

    def attention(self):
        return self.torch.autograd.grad(self.loss(self.x, *self.weights), self.weights)

    def attention_compiled(self):
        return self.torch.autograd.grad(self.compiled(self.x, *self.weights), self.weights)


class Embedding:
    """A training step of a large table of which few rows are used; its gradients are sparse."""

    def __init__(self, torch, ours: bool):
        torch.manual_seed(0)
        self.torch, self.table = torch, torch.nn.Embedding(200_000, WIDTH, sparse=True)
        self.optimizer = torch.optim.SparseAdam(self.table.parameters())
        words = np.random.default_rng(3).integers(0, 200_000, (64, 32))
        self.words = torch.from_numpy(words)
        self.compiled = torch.compile(self.loss)

    def loss(self, words):
        return (self.table(words) ** 2).mean()

    def embedding(self):
        self._step(self.loss)

    def embedding_compiled(self):
        self._step(self.compiled)

    def _step(self, loss):
        self.optimizer.zero_grad()
        loss(self.words).backward()
        self.optimizer.step()


class Ragged:
    """Attention over texts of different lengths: without padding here, padded with a mask there."""

    def __init__(self, torch, ours: bool):
        self.torch, self.ours = torch, ours
        rng = np.random.default_rng(4)
        lengths = rng.integers(8, 257, 32)
        parts = [torch.from_numpy(rng.standard_normal((n, 8, 32)).astype("f4")) for n in lengths]
        if ours:
            x = torch.nested.nested_tensor(parts, layout=torch.jagged)
            self.given = [x.transpose(1, 2).detach().requires_grad_() for _ in range(3)]
        else:
            x = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True).transpose(1, 2)
            self.given = [x.clone().requires_grad_() for _ in range(3)]
            seen = torch.arange(x.shape[2]) < torch.from_numpy(lengths).unsqueeze(1)
            self.mask = seen[:, None, None, :]

        self.compiled = torch.compile(self.loss)

    def loss(self, *given):
        attend = self.torch.nn.functional.scaled_dot_product_attention
        if self.ours:
            return attend(*given).values().square().sum()
        out = attend(*given, attn_mask=self.mask)
        return (out * self.mask.transpose(-1, -2)).square().sum()

    def ragged_attention(self):
        return self.torch.autograd.grad(self.loss(*self.given), self.given)

    def ragged_compiled(self):
        return self.torch.autograd.grad(self.compiled(*self.given), self.given)


def cases(threads: int) -> Iterator[tuple[str, dict[str, Callable]]]:
    """(name, library -> function)."""
    works, layers = {}, {}
    for name in ("pullback", "torch"):
        if importlib.util.find_spec(name) is None:
            continue
        library = importlib.import_module(name)
        library.set_num_threads(threads)
        works[name] = Work(library, name == "pullback")
        layers[name] = Attention(library, name == "pullback")
    for name in ("spmm", "spmm_forward", "sddmm", "softmax"):
        found = {library: getattr(work, name) for library, work in works.items()}
        if name == "spmm_forward":
            found["scipy"] = _scipy()
        yield name, found
    for name in ("attention", "attention_compiled"):
        yield name, {library: getattr(layer, name) for library, layer in layers.items()}
    for name, kind in (("embedding", Embedding), ("embedding_compiled", Embedding),
                       ("ragged_attention", Ragged), ("ragged_compiled", Ragged)):
        yield name, {library: getattr(kind(importlib.import_module(library), library == "pullback"),
                                      name) for library in works}


def _scipy() -> Callable:
    from scipy.sparse import csr_array

    rows, cols = pattern()
    rng = np.random.default_rng(1)
    matrix = csr_array((rng.standard_normal(rows.size).astype("f4"), cols, pointers(rows)),
                       shape=(ROWS, ROWS))
    dense = rng.standard_normal((ROWS, WIDTH)).astype("f4")
    return lambda: matrix @ dense


def measure(functions: dict[str, Callable], rounds: int) -> dict[str, list[float]]:
    """Seconds of each function, in turn; one that fails is left out, with its reason."""
    times: dict[str, list[float]] = {}
    for name, function in list(functions.items()):
        try:
            begun = time.perf_counter()
            while time.perf_counter() - begun < 0.5:  # long enough for libraries to be built
                function()
        except (RuntimeError, NotImplementedError, AttributeError) as error:
            print(f"  {name}: {str(error).splitlines()[0][:90]}")
            functions.pop(name)
    for _ in range(rounds):
        for name, function in functions.items():
            begun = time.perf_counter()
            function()
            times.setdefault(name, []).append(time.perf_counter() - begun)
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print(f"{ROWS} x {ROWS}, {pattern()[0].size} entries, {WIDTH} columns, float32, "
          f"{args.threads} threads")
    for name, functions in cases(args.threads):
        times = measure(functions, args.rounds)
        own = statistics.median(times["pullback"]) if "pullback" in times else None
        for library, found in times.items():
            middle = statistics.median(found)
            ratio = "" if own is None else f"  {middle / own:6.2f} x pullback"
            print(f"{name:18} {library:9} {middle * 1e3:9.3f} ms, least {min(found) * 1e3:9.3f} ms"
                  f"{ratio}")


if __name__ == "__main__":
    main()
