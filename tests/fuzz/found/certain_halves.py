INPUTS = dict(
    a=Input('float16', (4,), values=[0.0, 1.0, 0.5, 0.0], grad='leaf'),
    b=Input('float16', (4,), values=[0.0, 1.0, 0.5, 0.5]),
)


def program(a, b):
    return torch.ops.aten.binary_cross_entropy_backward.default(b, a.detach(), b, None, 0) * a
