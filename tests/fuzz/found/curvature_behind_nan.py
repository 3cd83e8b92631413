INPUTS = dict(
    a=Input('float32', (6, 7), seed=542961),
    b=Input('float32', (6, 7), seed=400674, grad='leaf'),
)


def program(a, b):
    x1 = torch.acosh(a)
    x2 = torch.ops.aten.softplus_backward.default(x1, b, 2, 1.5)
    return x2
