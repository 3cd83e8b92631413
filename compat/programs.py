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
    """For trainings in which rounding errors grow, on PyTorch as well (compare with float64 there).

    Where few values are normalised over a batch their differences grow without bound; optimizers
    that divide by the size of gradients make steps of errors where a gradient should vanish.
    """
    return torch.optim.SGD(model.parameters(), lr=lr)


def fitted(model, x, y, loss=F.mse_loss):
    """A model that learns to give `y` for `x`."""
    return adam(model), model, lambda m: loss(m(x), y)


def classifier(optimizer, activation, lr: float = 1e-3):
    """A small network for points in eight dims, with an optimizer of that class."""
    model = nn.Sequential(nn.Linear(8, 16), activation, nn.Linear(16, 3))
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    return optimizer(model.parameters(), lr=lr), model, lambda m: F.cross_entropy(m(x), y)


def images(count: int, size: int, classes: int):
    return torch.randn(count, 3, size, size), torch.randint(0, classes, (count,))


@program("vit-pytorch")
def vit():
    from vit_pytorch import ViT

    model = ViT(image_size=16, patch_size=4, num_classes=5, dim=32, depth=2, heads=4, mlp_dim=64)
    return fitted(model, torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,)), loss=F.cross_entropy)


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

    return classifier(Lion, nn.GELU())


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
    return fitted(model, torch.randn(2, 8, 8, 3), torch.randint(0, 4, (2,)), loss=F.cross_entropy)


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
    return fitted(model, torch.rand(32, 2), torch.rand(32, 3))


@program("performer-pytorch")
def performer():
    from performer_pytorch import Performer

    model = Performer(dim=16, depth=1, heads=2, dim_head=8, causal=False)
    return fitted(model, torch.randn(1, 12, 16), torch.randn(1, 12, 16))


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
@program("transformers")
def transformers_bert():
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model, x = BertForMaskedLM(config), torch.randint(0, 40, (2, 12))
    return adam(model), model, lambda m: m(input_ids=x, labels=x).loss


@program("transformers")
def transformers_llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=32, max_position_embeddings=16,
    )
    model, x = LlamaForCausalLM(config), torch.randint(0, 40, (2, 12))
    return adam(model), model, lambda m: m(input_ids=x, labels=x).loss


@program("transformers")
def transformers_t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    model = T5ForConditionalGeneration(config)
    x, y = torch.randint(1, 40, (2, 12)), torch.randint(1, 40, (2, 8))
    return adam(model), model, lambda m: m(input_ids=x, labels=y).loss


@program("transformers")
def transformers_whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=60, num_mel_bins=8, d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32,
        decoder_ffn_dim=32, max_source_positions=16, max_target_positions=12, dropout=0.0,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )
    model = WhisperForConditionalGeneration(config)
    sound, y = torch.randn(2, 8, 32), torch.randint(3, 60, (2, 8))
    return adam(model), model, lambda m: m(input_features=sound, labels=y).loss


@program("transformers")
def transformers_vit():
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        image_size=16, patch_size=4, num_labels=4, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = ViTForImageClassification(config)
    x, y = images(2, 16, classes=4)
    return adam(model), model, lambda m: m(pixel_values=x, labels=y).loss


@program("transformers")
def transformers_mamba():
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(vocab_size=40, hidden_size=16, state_size=4, num_hidden_layers=2)
    model, x = MambaForCausalLM(config), torch.randint(0, 40, (2, 10))
    return adam(model), model, lambda m: m(input_ids=x, labels=x).loss



@program("linear-attention-transformer")
def linear_attention():
    from linear_attention_transformer import LinearAttentionTransformerLM

    model = LinearAttentionTransformerLM(
        num_tokens=40, dim=16, heads=2, depth=2, max_seq_len=16, causal=True, n_local_attn_heads=1,
        local_attn_window_size=8,
    )
    x = torch.randint(0, 40, (1, 16))
    return adam(model), model, lambda m: F.cross_entropy(m(x)[0, :-1], x[0, 1:])



@program("nystrom-attention")
def nystromformer():
    from nystrom_attention import Nystromformer

    model = Nystromformer(dim=16, depth=1, heads=2, dim_head=8, num_landmarks=4, pinv_iterations=4)
    return fitted(model, torch.randn(1, 12, 16), torch.randn(1, 12, 16))


@program("linformer")
def linformer():
    from linformer import LinformerLM

    model = LinformerLM(num_tokens=40, dim=16, seq_len=16, depth=2, heads=2, k=8)
    x = torch.randint(0, 40, (2, 16))
    return adam(model), model, lambda m: F.cross_entropy(m(x).flatten(0, 1), x.flatten())


@program("conformer")
def conformer():
    from conformer import Conformer

    model = Conformer(dim=16, depth=1, dim_head=8, heads=2, ff_mult=2, conv_kernel_size=5)
    x, y = torch.randn(2, 12, 16), torch.randn(2, 12, 16)
    return sgd(model, 1e-2), model, lambda m: F.mse_loss(m(x), y)


@program("soft-moe-pytorch")
def soft_moe():
    from soft_moe_pytorch import SoftMoE

    model = SoftMoE(dim=16, seq_len=12, num_experts=3)
    return fitted(model, torch.randn(2, 12, 16), torch.randn(2, 12, 16))


@program("pytorch-crf")
def linear_chain_crf():
    from torchcrf import CRF

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.crf = nn.LSTM(6, 5, batch_first=True), CRF(5, batch_first=True)

        def forward(self, x, tags):
            return -self.crf(self.rnn(x)[0], tags, reduction="mean")

    model, x, tags = Tagger(), torch.randn(3, 7, 6), torch.randint(0, 5, (3, 7))
    return adam(model, 1e-2), model, lambda m: m(x, tags)


@program("pytorch-tcn")
def temporal_convolution():
    from pytorch_tcn import TCN

    model = TCN(num_inputs=3, num_channels=[8, 8], kernel_size=3, dropout=0.0)
    return fitted(model, torch.randn(2, 3, 20), torch.randn(2, 8, 20))


@program("rotary-embedding-torch")
def rotary_attention():
    from rotary_embedding_torch import RotaryEmbedding

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.rotary, self.qkv = RotaryEmbedding(dim=8), nn.Linear(16, 48)

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
            q, k = self.rotary.rotate_queries_or_keys(q), self.rotary.rotate_queries_or_keys(k)
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    model, x, y = Attention(), torch.randn(2, 10, 16), torch.randn(2, 2, 10, 8)
    return fitted(model, x, y)


@program("g-mlp-pytorch")
def gated_mlp():
    from g_mlp_pytorch import gMLPVision

    model = gMLPVision(image_size=16, patch_size=4, num_classes=4, dim=16, depth=2)
    x, y = images(2, 16, classes=4)
    return fitted(model, x, y, loss=F.cross_entropy)


@program("mlp-mixer-pytorch")
def mlp_mixer():
    from mlp_mixer_pytorch import MLPMixer

    model = MLPMixer(image_size=16, channels=3, patch_size=4, dim=16, depth=2, num_classes=4)
    x, y = images(2, 16, classes=4)
    return fitted(model, x, y, loss=F.cross_entropy)


@program("lambda-networks")
def lambda_network():
    from lambda_networks import LambdaLayer

    model = nn.Sequential(LambdaLayer(dim=8, dim_out=8, n=8, dim_k=4, heads=2, dim_u=1))
    x, y = torch.randn(2, 8, 8, 8), torch.randn(2, 8, 8, 8)
    return sgd(model, 1e-2), model, lambda m: F.mse_loss(m(x), y)


@program("axial-attention")
def axial_attention():
    from axial_attention import AxialAttention

    model = AxialAttention(dim=8, dim_index=1, heads=2, num_dimensions=2)
    return fitted(model, torch.randn(2, 8, 6, 6), torch.randn(2, 8, 6, 6))


@program("fft-conv-pytorch")
def fft_convolution():
    from fft_conv_pytorch import FFTConv2d

    model = nn.Sequential(FFTConv2d(3, 4, 5, padding=2), nn.Tanh(), FFTConv2d(4, 2, 3))
    return fitted(model, torch.randn(2, 3, 12, 12), torch.randn(2, 2, 10, 10))


@program("torchvision")
def torchvision_mobilenet():
    from torchvision.models import mobilenet_v3_small

    model = mobilenet_v3_small(num_classes=4, dropout=0.0)
    x, y = images(8, 64, classes=4)
    return sgd(model), model, lambda m: F.cross_entropy(m(x), y)


@program("neuraloperator")
def fourier_neural_operator():
    from neuralop.models import FNO

    model = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
    return fitted(model, torch.randn(2, 1, 12, 12), torch.randn(2, 1, 12, 12))


@program("torchcde")
def neural_cde():
    import torchcde

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(4, 4 * 3)

        def forward(self, t, z):
            return torch.tanh(self.net(z)).view(*z.shape[:-1], 4, 3)

    t = torch.linspace(0, 1, 6)
    x = torch.cat([t.expand(2, 6)[..., None], torch.randn(2, 6, 2)], -1)
    coeffs = torchcde.hermite_cubic_coefficients_with_backward_differences(x)
    model, z0, y = Field(), torch.zeros(2, 4), torch.randn(2, 4)

    def loss(m):
        path = torchcde.CubicSpline(coeffs)
        z = torchcde.cdeint(X=path, func=m, z0=z0, t=path.interval, adjoint=False, method="rk4",
                            options={"step_size": 0.25})
        return F.mse_loss(z[:, -1], y)

    return adam(model), model, loss


@program("egnn-pytorch")
def equivariant_graph_network():
    from egnn_pytorch import EGNN

    model = EGNN(dim=8)
    feats, coors, y = torch.randn(1, 6, 8), torch.randn(1, 6, 3), torch.randn(1, 6, 3)
    return adam(model), model, lambda m: F.mse_loss(m(feats, coors)[1], y)


@program("normflows")
def real_nvp():
    import normflows as nf

    flows = []
    for _ in range(2):
        flows += [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 16, 2], init_zeros=True)),
                  nf.flows.Permute(2, mode="swap")]
    model = nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), flows)
    x = torch.randn(32, 2) * 0.5 + 1
    return adam(model, 1e-2), model, lambda m: m.forward_kld(x)


@program("botorch")
def botorch_gp():
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = torch.linspace(0, 1, 12, dtype=torch.float64)[:, None]
    y = torch.sin(6 * x) + 0.1 * torch.randn(12, 1, dtype=torch.float64)
    model = SingleTaskGP(x, y)
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    mll.train()
    return adam(model, 0.05), model, lambda m: -mll(m(*m.train_inputs), m.train_targets)


@program("tab-transformer-pytorch")
def tab_transformer():
    from tab_transformer_pytorch import FTTransformer

    model = FTTransformer(categories=(4, 3), num_continuous=3, dim=16, dim_out=1, depth=1, heads=2)
    kinds = torch.stack([torch.randint(0, 4, (8,)), torch.randint(0, 3, (8,))], 1)
    numbers, y = torch.randn(8, 3), torch.randn(8, 1)
    model.eval()  # no dropout
    return adam(model), model, lambda m: F.mse_loss(m(kinds, numbers), y)


@program("torch-geometric")
def graph_attention():
    from torch_geometric.nn import GATConv, global_mean_pool

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.last = GATConv(6, 8, heads=2), nn.Linear(16, 3)

        def forward(self, x, edges, batch):
            return self.last(global_mean_pool(self.conv(x, edges).relu(), batch))

    model, x, batch = Net(), torch.randn(10, 6), torch.arange(10) // 5
    edges, y = torch.randint(0, 5, (2, 30)), torch.randint(0, 3, (2,))
    edges = torch.cat([edges, edges + 5], 1)
    return adam(model), model, lambda m: F.cross_entropy(m(x, edges, batch), y)


@program("entmax")
def sparse_attention():
    from entmax import entmax15

    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 5))
    x, y = torch.randn(16, 6), torch.randint(0, 5, (16,))
    return adam(model), model, lambda m: -entmax15(m(x), dim=-1)[torch.arange(16), y].mean()


@program("torchmetrics")
def structural_similarity():
    from torchmetrics.functional.image import structural_similarity_index_measure as ssim

    model = nn.Conv2d(1, 1, 3, padding=1)
    x = torch.rand(2, 1, 16, 16)
    return adam(model, 1e-2), model, lambda m: 1 - ssim(m(x), x, data_range=1.0)


@program("byol-pytorch")
def byol():
    from byol_pytorch import BYOL

    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 8))
    model = BYOL(net, image_size=8, hidden_layer=2, projection_size=8, projection_hidden_size=16,
                 augment_fn=nn.Identity(), augment_fn2=nn.Hardtanh())
    x = torch.rand(32, 3, 8, 8)
    return sgd(model), model, lambda m: m(x)


@program("ema-pytorch")
def ema_teacher():
    from ema_pytorch import EMA

    model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3))
    ema = EMA(model, beta=0.9, update_after_step=0, update_every=1)
    x = torch.randn(16, 6)
    optimizer = adam(model, 1e-2)
    optimizer.register_step_post_hook(lambda *_: ema.update())
    return optimizer, model, lambda m: F.mse_loss(m(x + 0.1), ema(x).detach() + 0.5)


@program("torch-optimizer")
def torch_optimizer_lamb():
    import torch_optimizer

    return classifier(torch_optimizer.Lamb, nn.GELU(), lr=1e-2)


@program("pytorch_optimizer")
def adabelief():
    from pytorch_optimizer import AdaBelief

    return classifier(AdaBelief, nn.Tanh())


@program("adam-atan2-pytorch")
def adam_atan2():
    from adam_atan2_pytorch import AdamAtan2

    return classifier(AdamAtan2, nn.GELU())
