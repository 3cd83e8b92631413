INPUTS = dict(
    b=Input('float32', (2, 2), seed=239558, grad='leaf'),
)


def program(b):
    x2 = b.any(dim=-2)
    x3 = F.mse_loss(b, x2)
    x4 = (b - x3).abs().amax(1)
    return x4
