INPUTS = dict(
    a=Input('float32', (4, 4), seed=589933, grad='leaf'),
    c=Input('float32', (3,), values=[0.1, 0.2, 0.5], grad='leaf'),
    d=Input('float32', (3,), values=[0.0, 1.4, 2.6]),
    h=Input('float32', (1,), values=[0.1], grad='leaf'),
)


def program(a, c, d, h):
    x1 = a.reshape(-1)[:12].reshape(2, 3, 2)
    x2 = torch.ops.aten._fake_quantize_learnable_per_channel_affine.default(x1, c, d, 1, -5, 5, 0.5)
    x3 = torch.ops.aten._fake_quantize_learnable_per_tensor_affine.default(a, h, h, -10, 20)
    return x2, x3
