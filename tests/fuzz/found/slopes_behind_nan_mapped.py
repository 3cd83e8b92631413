INPUTS = dict(
    a=Input('float32', (3,), values=[-1.5, 0.5, -0.2], grad='leaf'),
    b=Input('float32', (3,), values=[0.3296, 1.0, -2.0]),
)


def program(a, b):
    x1 = torch.log2(a)
    x3, x4 = torch.ops.aten._prelu_kernel_backward.default(x1, b, a)
    return (x3, x4)
