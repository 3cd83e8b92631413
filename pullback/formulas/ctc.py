"""Second derivatives of connectionist temporal classification, of differentiable operators.

A target y_1 ... y_L becomes the path  blank y_1 blank ... y_L blank  of S = 2 L + 1 states; an
alignment moves along it by 0 or 1 states per step, or by 2 from one label to a different one.  With
e_t(s) the log probability of the label of state s at time t,
    a_t(s) = e_t(s) + lse over k of a_{t-1}(s - k)          what has been said up to t
    b_t(s) = lse over k of e_{t+1}(s + k) + b_{t+1}(s + k)  what remains to be said after t
    Z = lse over s of a_t(s) + b_t(s),  p_t(s) = exp(a_t(s) + b_t(s) - Z)
the loss is -Z and its gradient with respect to the log probabilities is -p, summed over the states
of each label.  Like PyTorch, the operators add exp(log_probs) to it, which the pullback of a
log-softmax removes again.  `ops/ctc.py` has the kernels.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..table.packets import ops

NEVER = -1e30  # stands for log 0: finite, so that differences and derivatives of it stay finite


def _numbers(values, device):
    """Whole numbers as a tensor."""
    return ops.cat([ops.full([1], v, dtype=dt.int64, device=device) for v in values])


def _listed(lengths):
    """Lengths in a tensor as a list."""
    return lengths if isinstance(lengths, (list, tuple)) else lengths.reshape([-1]).tolist()


def padded_targets(targets, target_lengths, blank):
    """One row of labels per example, filled up with blanks."""
    longest = max(target_lengths, default=0)
    if targets.ndim == 2:
        rows = targets[:, :longest]
    else:
        rows, start = [], 0
        for length in target_lengths:
            own = targets[start:start + length]
            rows.append(ops.constant_pad_nd(own, [0, longest - length], blank))
            start += length
        rows = ops.stack(rows, 0)
    used = ops.arange(longest, device=targets.device) < _numbers(
        target_lengths, targets.device).unsqueeze(1)
    return ops.where(used, rows, blank).to(dt.int64)


def _path(targets, target_lengths, blank):
    """Labels of the states (N, S), and which states may be entered from two states before."""
    rows = padded_targets(targets, target_lengths, blank)
    blanks = ops.full_like(rows, blank)
    path = ops.stack([blanks, rows], 2).reshape([rows.shape[0], -1])
    path = ops.cat([path, ops.full([rows.shape[0], 1], blank, dtype=dt.int64,
                                   device=rows.device)], 1)
    jump = (path != blank) & (path != _moved(path, 2, blank))
    return path, jump


def _moved(value, count, fill):
    """`value` shifted by `count` states to the right (left if negative)."""
    states = value.shape[-1]
    if abs(count) >= states:
        return ops.full_like(value, fill)
    if count > 0:
        return ops.constant_pad_nd(value[..., :states - count], [count, 0], fill)
    return ops.constant_pad_nd(value[..., -count:], [0, -count], fill)


def _merge(terms, tangents):
    """Log-sum-exp over the moves, and its tangent."""
    stacked = ops.stack(terms, 0)
    total = ops.logsumexp(stacked, 0)
    return total, ((stacked - total).exp() * ops.stack(tangents, 0)).sum(0)


def _alignments(emitted, emitted_t, path, jump, input_lengths, target_lengths):
    """p_t(s) and its tangent, as lists over t, for emissions (T, N, S) with a tangent."""
    steps, states = emitted.shape[0], emitted.shape[2]
    device = emitted.device
    ends = 2 * _numbers(target_lengths, device).unsqueeze(1)
    spot = ops.arange(states, device=device)
    last = ops.where((spot == ends) | (spot == ends - 1), 0.0, NEVER).to(emitted.dtype)
    first = ops.where((spot == 0) | ((spot == 1) & (ends > 0)), 0.0, NEVER).to(emitted.dtype)
    live = [_numbers([int(t < n) for n in input_lengths], device).unsqueeze(1) > 0
            for t in range(steps)]
    zeros = ops.zeros_like(last)
    forward, forward_t = [], []
    a, a_t = zeros, zeros
    for t in range(steps):
        if t == 0:
            new, new_t = first, zeros
        else:
            new, new_t = _merge(
                [a, _moved(a, 1, NEVER), ops.where(jump, _moved(a, 2, NEVER), NEVER)],
                [a_t, _moved(a_t, 1, 0), _moved(a_t, 2, 0)])
        a = ops.where(live[t], emitted[t] + new, a)
        a_t = ops.where(live[t], emitted_t[t] + new_t, a_t)
        forward.append(a)
        forward_t.append(a_t)
    whole = ops.logsumexp(a + last, 1, True)
    whole_t = ((a + last - whole).exp() * a_t).sum(1, True)
    chances, chances_t = [None] * steps, [None] * steps
    b, b_t = last, zeros
    ahead = _moved(jump.to(emitted.dtype), -2, 0) > 0
    for t in reversed(range(steps)):
        chance = ops.where(live[t], (forward[t] + b - whole).exp(), 0)
        chances[t] = chance
        chances_t[t] = chance * (forward_t[t] + b_t - whole_t)
        c, c_t = emitted[t] + b, emitted_t[t] + b_t
        new, new_t = _merge(
            [c, _moved(c, -1, NEVER), ops.where(ahead, _moved(c, -2, NEVER), NEVER)],
            [c_t, _moved(c_t, -1, 0), _moved(c_t, -2, 0)])
        b, b_t = ops.where(live[t], new, b), ops.where(live[t], new_t, b_t)
    return ops.stack(chances, 0), ops.stack(chances_t, 0)


def ctc_second(direction, weight, log_probs, targets, input_lengths, target_lengths,
               neg_log_likelihood, blank, zero_infinity):
    """The second derivative of the loss along `direction`, each example times its `weight`.

    That is exp(log_probs) times the direction minus the tangent of p, summed over states.
    """
    input_lengths, target_lengths = _listed(input_lengths), _listed(target_lengths)
    path, jump = _path(targets, target_lengths, blank)
    spread = path.expand([log_probs.shape[0], *path.shape])
    emitted, emitted_t = ops.gather(log_probs, 2, spread), ops.gather(direction, 2, spread)
    _, chances_t = _alignments(emitted, emitted_t, path, jump, input_lengths, target_lengths)
    moved = ops.scatter_add(ops.zeros_like(log_probs), 2, spread, chances_t)
    steps = ops.arange(log_probs.shape[0], device=log_probs.device).unsqueeze(1)
    live = (steps < _numbers(input_lengths, log_probs.device)).unsqueeze(2)
    out = ops.where(live, log_probs.exp() * direction - moved, 0) * weight.reshape([-1, 1])
    if zero_infinity:
        out = out.masked_fill((neg_log_likelihood == float("inf")).reshape([-1, 1]), 0)
    return out


def per_example(product):
    """Sum over time and classes."""
    return product.sum([0, 2])
