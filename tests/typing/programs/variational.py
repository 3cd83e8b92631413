"""A variational autoencoder with its two-part loss."""

import pullback as torch
from pullback import Tensor, nn
from pullback.nn import functional as F


class VAE(nn.Module):
    def __init__(self, size: int = 6, latent: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 8), nn.Tanh())
        self.mu, self.logvar = nn.Linear(8, latent), nn.Linear(8, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 8), nn.Tanh(), nn.Linear(8, size))

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.encoder(x)
        return self.mu(h), self.logvar(h)

    @staticmethod
    def sample(mu: Tensor, logvar: Tensor) -> Tensor:
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mu, logvar = self.encode(x)
        return self.decoder(self.sample(mu, logvar)), mu, logvar


def objective(x: Tensor, out: Tensor, mu: Tensor, logvar: Tensor) -> Tensor:
    reconstruction = F.binary_cross_entropy_with_logits(out, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return reconstruction + kl


model = VAE()
x = torch.rand(4, 6)
loss = objective(x, *model(x))
loss.backward()
grads: list[Tensor] = [p.grad for p in model.parameters() if p.grad is not None]
print(loss.item(), torch.stack([g.norm() for g in grads]).norm())
