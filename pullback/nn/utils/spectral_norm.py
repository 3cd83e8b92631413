"""`spectral_norm` by a hook: a weight divided by its largest singular value before each call.

The singular value is followed by power iteration while training.  `nn/utils/parametrizations.py`
has the newer form.
"""

from __future__ import annotations

from ...autograd.grad_mode import no_grad
from ...core.handle import Tensor
from ...table.packets import ops
from .. import functional as F
from ..module import Module
from ..parameter import Parameter
from .weight_norm import hooks_of


def output_dim(module: Module) -> int:
    """The dim of a layer's weight that counts its outputs."""
    from ..conv import _ConvTranspose

    return 1 if isinstance(module, _ConvTranspose) else 0


class SpectralNorm:
    """The hook: weight = original / singular value, between two vectors that are kept."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0,
                 eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight with outputs as rows."""
        if self.dim != 0:
            weight = weight.movedim(self.dim, 0)
        return weight.reshape([weight.shape[0], -1])

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight; the vectors are written in place, so that replicas share them."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v = F.normalize(ops.mv(matrix.t(), u), dim=0, eps=self.eps, out=v)
                    u = F.normalize(ops.mv(matrix, v), dim=0, eps=self.eps, out=u)
                u, v = u.clone(), v.clone()  # a second call before backward writes them again
        return weight / ops.dot(u, ops.mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for ending in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + ending)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self.name,
                self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, weight: Tensor, u: Tensor, target_sigma: Tensor) -> Tensor:
        """The second vector of checkpoints that have only the first."""
        v = ops.linalg_multi_dot([weight.t().mm(weight).pinverse(), weight.t(), u.unsqueeze(1)])
        v = v.squeeze(1)
        return v * (target_sigma / ops.dot(u, ops.mv(weight, v)))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int,
              eps: float) -> SpectralNorm:
        """Keep a weight aside and compute it before each call from now on."""
        if hooks_of(module, SpectralNorm, name):
            raise RuntimeError("Cannot register two spectral_norm hooks on the same parameter "
                               f"{name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with no_grad():
            matrix = hook.reshape_weight_to_matrix(weight)
            vectors = [F.normalize(weight.new_empty([n]).normal_(0, 1), dim=0, eps=eps)
                       for n in matrix.shape]
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)
        for ending, vector in zip(("_u", "_v"), vectors, strict=True):
            module.register_buffer(name + ending, vector)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Completes checkpoints from before version 1, which have a computed weight and no v."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                 error_msgs) -> None:
        hook = self.fn
        version = local_metadata.get("spectral_norm", {}).get(f"{hook.name}.version")
        if version is not None and version >= 1:
            return
        key = prefix + hook.name
        if all(key + e not in state_dict for e in ("_orig", "_u", "_v", "")):
            return
        if all(key + e in state_dict for e in ("_orig", "_u", "_v")) and key not in state_dict:
            return  # it is of version 1, only its metadata was lost
        parts = {}
        for ending in ("_orig", "", "_u"):
            if key + ending not in state_dict:
                if strict:
                    missing_keys.append(key + ending)
                return
            parts[ending] = state_dict[key + ending]
        with no_grad():
            matrix = hook.reshape_weight_to_matrix(parts["_orig"])
            sigma = (parts["_orig"] / parts[""]).mean()
            state_dict[f"{key}_v"] = hook._solve_v_and_rescale(matrix, parts["_u"], sigma)
        del state_dict[key]


class SpectralNormStateDictHook:
    """Writes the version next to the state."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError("Unexpected key in metadata['spectral_norm']: " + key)
        versions[key] = self.fn._version


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1,
                  eps: float = 1e-12, dim: int | None = None) -> Module:
    """Divide a weight by an estimate of its largest singular value before each call."""
    SpectralNorm.apply(module, name, n_power_iterations,
                       output_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`."""
    found = hooks_of(module, SpectralNorm, name)
    if not found:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    key, hook = found[0]
    hook.remove(module)
    del module._forward_pre_hooks[key]
    for table, kind in ((module._state_dict_hooks, SpectralNormStateDictHook),
                        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook)):
        for own, other in list(table.items()):
            other = getattr(other, "hook", other)  # PyTorch's table wraps some of them
            if isinstance(other, kind) and other.fn.name == name:
                del table[own]
                break
    return module
