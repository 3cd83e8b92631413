"""Small trainings with public packages that are written for PyTorch; their code is not ours.

Each function builds a model and data from a seed and returns an optimizer, the model and a function
from the model to a loss, which is what gets compiled.  The file says `import torch`: whether that
is PyTorch or Pullback is up to who runs it.  Read next: `__main__.py`, which compares the two.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

PROGRAMS: dict = {}


def program(package: str):
    """Registers a program of a package under the name of its function."""

    def add(function):
        PROGRAMS[function.__name__] = function
        return function

    return add


def adam(model, lr: float = 1e-3):
    return torch.optim.Adam(model.parameters(), lr=lr)


def sgd(model, lr: float = 1e-3):
    """For networks with batch normalisation.

    Where few values are normalised their differences grow without bound, and optimizers that
    divide by the size of gradients make steps of rounding errors: such trainings part in float64.
    """
    return torch.optim.SGD(model.parameters(), lr=lr)


def images(count: int, size: int, classes: int):
    return torch.randn(count, 3, size, size), torch.randint(0, classes, (count,))


@program("vit-pytorch")
def vit():
    from vit_pytorch import ViT

    model = ViT(image_size=16, patch_size=4, num_classes=5, dim=32, depth=2, heads=4, mlp_dim=64)
    x, y = torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,))
    return adam(model), model, lambda m: F.cross_entropy(m(x), y)


@program("x-transformers")
def x_transformers():
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True)
    model = TransformerWrapper(num_tokens=50, max_seq_len=16, attn_layers=layers)
    x = torch.randint(0, 50, (2, 16))

    def loss(m):
        out = m(x[:, :-1])
        return F.cross_entropy(out.reshape(-1, 50), x[:, 1:].reshape(-1))

    return adam(model), model, loss


@program("torchdiffeq")
def torchdiffeq_ode():
    from torchdiffeq import odeint

    class Right(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

        def forward(self, t, y):
            return self.net(y**3)

    model = Right()
    y0, t = torch.tensor([[2.0, 0.0]]), torch.linspace(0, 1, 8)
    target = torch.randn(8, 1, 2)
    return adam(model), model, lambda m: (odeint(m, y0, t, method="rk4") - target).abs().mean()


@program("timm")
def timm_resnet():
    import timm

    model = timm.create_model("resnet10t", num_classes=4, in_chans=3)
    x, y = images(8, 64, classes=4)
    return sgd(model, 3e-4), model, lambda m: F.cross_entropy(m(x), y)


@program("timm")
def timm_convnext():
    import timm

    model = timm.create_model("convnext_atto", num_classes=4)
    x, y = images(2, 32, classes=4)
    return torch.optim.AdamW(model.parameters(), lr=2e-5), model, (
        lambda m: F.cross_entropy(m(x), y)
    )


@program("kornia")
def kornia_registration():
    import kornia.geometry.transform as T

    class Warp(nn.Module):
        def __init__(self):
            super().__init__()
            self.matrix = nn.Parameter(torch.eye(2, 3)[None] + 0.01 * torch.randn(1, 2, 3))

        def forward(self, image):
            return T.warp_affine(image, self.matrix, (16, 16))

    model, image = Warp(), torch.rand(1, 1, 16, 16)
    target = torch.roll(image, 1, -1)
    return adam(model, 1e-2), model, lambda m: F.mse_loss(m(image), target)


@program("e3nn")
def e3nn_network():
    from e3nn import o3

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.sh = o3.Irreps.spherical_harmonics(2)
            self.tp = o3.FullyConnectedTensorProduct("4x0e + 2x1o", self.sh, "4x0e + 2x1o")
            self.last = o3.Linear("4x0e + 2x1o", "1x0e")

        def forward(self, x, edges):
            sh = o3.spherical_harmonics(self.sh, edges, True, normalization="component")
            return self.last(self.tp(x, sh))

    model, x, edges, y = Net(), torch.randn(6, 10), torch.randn(6, 3), torch.randn(6, 1)
    return adam(model), model, lambda m: F.mse_loss(m(x, edges), y)


@program("gpytorch")
def gpytorch_regression():
    import gpytorch

    x = torch.linspace(0, 1, 20)
    y = torch.sin(6 * x) + 0.1 * torch.randn(20)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(likelihood)
    model.train()
    likelihood.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    return adam(model, 0.05), model, lambda m: -mll(m(x), y)


@program("higher")
def higher_maml():
    import higher

    model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
    x, phases = torch.linspace(-1, 1, 10)[:, None], torch.rand(3) * 3

    def loss(m):
        total = 0.0
        for phase in phases:
            inner = torch.optim.SGD(m.parameters(), lr=0.05)
            with higher.innerloop_ctx(m, inner, copy_initial_weights=False) as (fast, opt):
                opt.step(F.mse_loss(fast(x[::2]), torch.sin(3 * x[::2] + phase)))
                total = total + F.mse_loss(fast(x[1::2]), torch.sin(3 * x[1::2] + phase))
        return total / 3

    return adam(model), model, loss


@program("lion-pytorch")
def lion():
    from lion_pytorch import Lion

    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3))
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    return Lion(model.parameters(), lr=1e-3), model, lambda m: F.cross_entropy(m(x), y)


@program("pyro-ppl")
def pyro_svi():
    """With an objective of its own: `Trace_ELBO` looks for NaN in each loss, a draw."""
    import pyro
    import pyro.distributions as dist
    from pyro import poutine

    pyro.enable_validation(False)
    data = torch.randn(20) + 2

    def model(data):
        loc = pyro.sample("loc", dist.Normal(0.0, 10.0))
        with pyro.plate("data", len(data)):
            pyro.sample("obs", dist.Normal(loc, 1.0), obs=data)

    def guide(data):
        a = pyro.param("a", torch.tensor(0.5))
        b = pyro.param("b", torch.tensor(1.0), constraint=dist.constraints.positive)
        pyro.sample("loc", dist.Normal(a, b))

    pyro.clear_param_store()
    guide(data)  # makes the parameters
    parameters = [p.unconstrained() for p in pyro.get_param_store().values()]

    def negative_elbo(_):
        drawn = poutine.trace(guide).get_trace(data)
        replayed = poutine.trace(poutine.replay(model, drawn)).get_trace(data)
        return drawn.log_prob_sum() - replayed.log_prob_sum()

    return torch.optim.Adam(parameters, lr=0.02), None, negative_elbo


@program("nflows")
def nflows_maf():
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
    from nflows.transforms.base import CompositeTransform
    from nflows.transforms.permutations import ReversePermutation

    parts = []
    for _ in range(2):
        parts += [ReversePermutation(2), MaskedAffineAutoregressiveTransform(2, 8)]
    model = Flow(CompositeTransform(parts), StandardNormal([2]))
    x = torch.randn(32, 2) * 0.5 + 1
    return adam(model), model, lambda m: -m.log_prob(inputs=x).mean()


@program("denoising-diffusion-pytorch")
def diffusion():
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    unet = Unet(dim=8, dim_mults=(1, 2), flash_attn=False)
    model = GaussianDiffusion(unet, image_size=8, timesteps=10)
    x = torch.rand(2, 3, 8, 8)
    return adam(model), model, lambda m: m(x)


@program("vector-quantize-pytorch")
def vector_quantize():
    from vector_quantize_pytorch import VectorQuantize

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(4, 16), nn.Linear(16, 4)
            self.vq = VectorQuantize(dim=16, codebook_size=8, kmeans_init=False)

        def forward(self, x):
            q, _, commit = self.vq(self.up(x))
            return F.mse_loss(self.down(q), x) + commit.sum()

    model, x = Net(), torch.randn(2, 10, 4)
    return adam(model), model, lambda m: m(x)


@program("perceiver-pytorch")
def perceiver():
    from perceiver_pytorch import Perceiver

    model = Perceiver(
        input_channels=3, input_axis=2, num_freq_bands=4, max_freq=10.0, depth=2, num_latents=8,
        latent_dim=16, num_classes=4, latent_heads=2, cross_dim_head=8, latent_dim_head=8,
    )
    x, y = torch.randn(2, 8, 8, 3), torch.randint(0, 4, (2,))
    return adam(model), model, lambda m: F.cross_entropy(m(x), y)


@program("efficientnet-pytorch")
def efficientnet():
    from efficientnet_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-b0", num_classes=4, dropout_rate=0.0,
                                   drop_connect_rate=0.0)
    x, y = images(4, 64, classes=4)
    return sgd(model), model, lambda m: F.cross_entropy(m(x), y)


@program("torchsde")
def torchsde_fit():
    import torchsde

    class SDE(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.mu, self.sigma = nn.Linear(2, 2), nn.Linear(2, 2)

        def f(self, t, y):
            return self.mu(y)

        def g(self, t, y):
            return torch.sigmoid(self.sigma(y))

    model, y0, ts = SDE(), torch.full((4, 2), 0.1), torch.linspace(0, 1, 5)

    def loss(m):
        torch.manual_seed(1)
        bm = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 2), entropy=7)
        return torchsde.sdeint(m, y0, ts, bm=bm, dt=0.25, method="euler").pow(2).mean()

    return adam(model), model, loss


@program("opacus")
def opacus_dpsgd():
    from opacus import GradSampleModule

    model = GradSampleModule(nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3)))
    x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
    return torch.optim.SGD(model.parameters(), lr=0.1), model, lambda m: F.cross_entropy(m(x), y)


@program("pytorch-metric-learning")
def metric_learning():
    from pytorch_metric_learning import losses

    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))
    x, y = torch.randn(16, 6), torch.randint(0, 4, (16,))
    loss = losses.MultiSimilarityLoss()
    return adam(model), model, lambda m: loss(m(x), y)


@program("segmentation-models-pytorch")
def segmentation():
    import segmentation_models_pytorch as smp

    model = smp.Unet("resnet18", encoder_depth=3, decoder_channels=(32, 16, 8),
                     encoder_weights=None, classes=2)
    x, y = torch.randn(4, 3, 64, 64), torch.randint(0, 2, (4, 64, 64))
    return sgd(model), model, lambda m: F.cross_entropy(m(x), y)


@program("siren-pytorch")
def siren():
    from siren_pytorch import SirenNet

    model = SirenNet(dim_in=2, dim_hidden=16, dim_out=3, num_layers=3, w0_initial=30.0)
    x, y = torch.rand(32, 2), torch.rand(32, 3)
    return adam(model), model, lambda m: F.mse_loss(m(x), y)


@program("performer-pytorch")
def performer():
    from performer_pytorch import Performer

    model = Performer(dim=16, depth=1, heads=2, dim_head=8, causal=False)
    x, y = torch.randn(1, 12, 16), torch.randn(1, 12, 16)
    return adam(model), model, lambda m: F.mse_loss(m(x), y)


@program("transformers")
def transformers_gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=40, n_positions=16, n_embd=16, n_layer=2, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )
    model = GPT2LMHeadModel(config)
    x = torch.randint(0, 40, (2, 12))
    return adam(model), model, lambda m: m(input_ids=x, labels=x).loss


@program("schedulefree")
def schedule_free():
    import schedulefree

    model = nn.Sequential(nn.Linear(6, 16), nn.SiLU(), nn.Linear(16, 1))
    x, y = torch.randn(16, 6), torch.randn(16, 1)
    optimizer = schedulefree.AdamWScheduleFree(model.parameters(), lr=1e-2)
    optimizer.train()
    return optimizer, model, lambda m: F.mse_loss(m(x), y)


@program("torch-geometric")
def graph_convolution():
    from torch_geometric.nn import GCNConv

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = GCNConv(6, 16), GCNConv(16, 3)

        def forward(self, x, edges):
            return self.b(self.a(x, edges).relu(), edges)

    model, x = Net(), torch.randn(10, 6)
    edges, y = torch.randint(0, 10, (2, 30)), torch.randint(0, 3, (10,))
    return adam(model), model, lambda m: F.cross_entropy(m(x, edges), y)
