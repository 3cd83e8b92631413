"""Softmax over many classes, cheap for those that are frequent: `AdaptiveLogSoftmaxWithLoss`.

The most frequent classes and one entry per cluster of rarer ones make up the *head*; each cluster
has a softmax of its own over a narrower hidden layer.
"""

from __future__ import annotations

from collections import namedtuple
from itertools import pairwise

from ..core.handle import Tensor
from ..table.packets import ops
from . import functional as F
from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of targets among many classes, and their mean with the sign changed."""

    def __init__(self, in_features: int, n_classes: int, cutoffs, div_value: float = 4.0,
                 head_bias: bool = False, device=None, dtype=None) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1
                or any(int(c) != c for c in cutoffs)):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in "
                             "an increasing order, where each value is between 1 and n_classes-1")
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        place = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            hidden = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, **place),
                                        Linear(hidden, high - low, bias=False, **place)))

    def reset_parameters(self) -> None:
        """The initial numbers of all its linear layers again."""
        self.head.reset_parameters()
        for layers in self.tail:
            for layer in layers:
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input_, target_)
        single = target_.ndim == 0
        input = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        entries = target  # of the head: the class itself, or its cluster
        output = ops.new_zeros(input, [target.shape[0]])
        found = 0
        for i, (low, high) in enumerate(pairwise([0, *self.cutoffs])):
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().reshape([-1])
            found += rows.numel()
            if i == 0 or rows.numel() == 0:
                continue
            entries = entries.masked_fill(inside, self.shortlist_size + i - 1)
            scores = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            wanted = (target.index_select(0, rows) - low).unsqueeze(1)
            output = output.index_copy(0, rows, scores.gather(1, wanted).squeeze(1))
        if found != target.shape[0]:
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values "
                               f"in range [{target.min().item()}, {target.max().item()}] were "
                               "found. ")
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, entries.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _check(self, input: Tensor, target: Tensor) -> None:
        if target.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.ndim != target.ndim + 1:
            raise RuntimeError(f"{target.ndim}D target tensor expects {target.ndim + 1}D input "
                               f"tensors, but found inputs with size {input.shape}")
        if target.ndim and input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        """Log probabilities of all classes, given what the head computed."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, :self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            share = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), dim=1) + share)
        return ops.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Log probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row; clusters are computed for rows that need them."""
        head = self.head(input)
        best = head.argmax(dim=1)
        rare = best >= self.shortlist_size
        if not bool(rare.any()):
            return best
        rows = rare.nonzero().reshape([-1])
        full = self._get_full_log_prob(input.index_select(0, rows), head.index_select(0, rows))
        return best.index_copy(0, rows, full.argmax(dim=1))
