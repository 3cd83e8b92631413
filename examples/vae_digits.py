"""A variational autoencoder learns to draw digits: gradients through random draws.

A pixel is a count from 0 to 16, so the decoder says it with a binomial distribution, and the bound
that is maximised is the true log-likelihood bound of the data, in nats per image. `rsample` draws
the code such that gradients reach the encoder. At the end it draws digits nobody has written.

    python examples/vae_digits.py [--quick]

    expected             full   --quick
    train bound        -112.1    -290.9
    test bound         -120.5    -270.4
    divergence          17.25     10.76

Read `neural_ode.py` next.
"""

import sys

from digits import load_digits

import pullback as torch
from pullback import nn
from pullback.distributions import Binomial, Independent, Normal, kl_divergence

CODE = 8  # numbers that describe an image


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ELU(), nn.Linear(128, 2 * CODE))
        self.decoder = nn.Sequential(nn.Linear(CODE, 128), nn.ELU(), nn.Linear(128, 64))
        self.register_buffer("zeros", torch.zeros(CODE))

    def posterior(self, counts):
        """What an image says about its code."""
        mean, scale = self.encoder(counts / 16).chunk(2, dim=-1)
        return Independent(Normal(mean, nn.functional.softplus(scale) + 1e-4), 1)

    def prior(self):
        return Independent(Normal(self.zeros, torch.ones_like(self.zeros)), 1)

    def pixels(self, code):
        """What a code says about the image."""
        return Independent(Binomial(16, logits=self.decoder(code)), 1)

    def forward(self, counts):
        """The lower bound of log p(image) for every image, and its part that is the divergence."""
        posterior = self.posterior(counts)
        divergence = kl_divergence(posterior, self.prior().expand(posterior.batch_shape))
        code = posterior.rsample()
        return self.pixels(code).log_prob(counts) - divergence, divergence


def draw(image) -> list[str]:
    """An image as lines of text."""
    return ["".join(" ░▒▓█"[int(v * 4.999)] * 2 for v in row) for row in image.tolist()]


def main(quick: bool) -> dict:
    torch.manual_seed(0)
    epochs = 2 if quick else 60
    images, _, test_images, _ = load_digits()
    counts, test_counts = (16 * images).flatten(1), (16 * test_images).flatten(1)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    total = 0.0
    for _ in range(epochs):
        total = 0.0
        for batch in torch.randperm(len(counts)).split(128):
            bound, _ = model(counts[batch])
            loss = -bound.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total -= loss.item() * len(batch)

    with torch.no_grad():
        bound, divergence = model(test_counts)
        drawn = model.pixels(model.prior().sample((5,))).base_dist.probs
    for lines in zip(*(draw(image) for image in drawn.view(-1, 8, 8)), strict=True):
        print("  ".join(lines))
    return {
        "train bound": total / len(counts),
        "test bound": bound.mean().item(),
        "divergence": divergence.mean().item(),
    }


if __name__ == "__main__":
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:<16}{value:>12.6g}")
