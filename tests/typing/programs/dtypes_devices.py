"""Arguments that say of which kind and where."""

import pullback as torch
from pullback import Tensor


def make(n: int, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> Tensor:
    return torch.zeros(n, dtype=dtype, device=device)


half = make(3, torch.float16)
x = torch.ones(2, 3, dtype=torch.long)
y = x.to(torch.float64).to("cpu").to(device="cpu", dtype=torch.bfloat16).to(half)
z = x.float() + x.double() + x.half().float() + x.bool().int() + x.long()
like = torch.empty_like(z).normal_().new_zeros(2, 2)
full = torch.full((2, 3), 1.5), torch.eye(3), torch.linspace(0, 1, 5), torch.arange(0, 1, 0.1)
made = torch.tensor([[1, 2], [3, 4]], dtype=torch.float, requires_grad=True)
rand = torch.rand(2, 3), torch.randn((2, 3)), torch.randn(2, 3, generator=torch.Generator())
shape: torch.Size = z.shape
print(torch.finfo(torch.float32).eps, torch.iinfo(torch.int32).max, z.dtype == torch.float64)
print(z.device.type, z.is_cuda, z.numel(), z.element_size(), z.dim(), shape.numel(), like, full)
print(y.dtype.is_floating_point, torch.get_default_dtype(), made.requires_grad, rand, half)
torch.set_default_dtype(torch.float32)
print(torch.promote_types(torch.int32, torch.float16), torch.is_tensor(z), z.type(torch.int32))
