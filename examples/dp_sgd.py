"""Training with differential privacy (DP-SGD, Abadi et al., 2016): a gradient for every example.

`vmap(grad(loss))` gives the gradient of each example. Each is clipped to norm 1 and their sum gets
Gaussian noise, so that no single example can be told from what was learnt. The accountant adds up
the privacy that is spent (Rényi differential privacy of the sampled Gaussian mechanism, Mironov et
al., 2019): what is learnt is (epsilon, 1e-5)-private.

    python examples/dp_sgd.py [--quick]

    expected             full   --quick
    mean norm          1.0848    3.7415
    test accuracy      0.8972    0.6833
    epsilon            4.2204    0.7979

`mean norm` is that of the examples' gradients in the last step, before clipping.
"""

import math
import sys

from digits import load_digits

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.func import functional_call, grad, vmap

CLIP, NOISE, DELTA = 1.0, 2.0, 1e-5


def epsilon_of(steps: int, rate: float) -> float:
    """Privacy spent by `steps` steps that each see an example with probability `rate`."""
    best = math.inf
    for order in range(2, 64):
        k = torch.arange(order + 1, dtype=torch.float64)
        n = torch.tensor(float(order), dtype=torch.float64)
        choose = torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
        terms = choose + (n - k) * math.log1p(-rate) + k * math.log(rate)
        divergence = torch.logsumexp(terms + k * (k - 1) / (2 * NOISE**2), 0) / (order - 1)
        best = min(best, steps * divergence.item() + math.log(1 / DELTA) / (order - 1))
    return best


def main(quick: bool) -> dict:
    torch.manual_seed(0)
    steps, rate = (20, 0.05) if quick else (200, 0.1)
    images, labels, test_images, test_labels = load_digits()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    params = dict(model.named_parameters())

    def loss(params, image, label):
        scores = functional_call(model, params, (image.unsqueeze(0),))
        return F.cross_entropy(scores, label.unsqueeze(0))

    per_example = vmap(grad(loss), in_dims=(None, 0, 0))

    norms = torch.zeros(1)
    for _ in range(steps):
        drawn = torch.rand(len(images)) < rate  # each example for itself, as the accountant assumes
        bare = {name: p.detach() for name, p in params.items()}
        gradients = per_example(bare, images[drawn], labels[drawn])
        squares = [g.flatten(1).square().sum(1) for g in gradients.values()]
        norms = torch.stack(squares).sum(0).sqrt()
        scale = (CLIP / norms).clamp(max=1.0)
        for name, p in params.items():
            clipped = torch.einsum("n,n...->...", scale, gradients[name])
            noise = NOISE * CLIP * torch.randn_like(p)
            p.grad = (clipped + noise) / (rate * len(images))
        optimizer.step()

    with torch.no_grad():
        right = model(test_images).argmax(dim=1) == test_labels
    return {
        "mean norm": norms.mean().item(),
        "test accuracy": right.float().mean().item(),
        "epsilon": epsilon_of(steps, rate),
    }


if __name__ == "__main__":
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:<16}{value:>12.6g}")
