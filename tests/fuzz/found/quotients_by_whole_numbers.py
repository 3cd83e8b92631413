INPUTS = dict(
    a=Input('float32', (2,), values=[1.0, 2.0], grad='leaf'),
    b=Input('int64', (2,), values=[2, 3]),
    c=Input('bool', (), values=True),
)


def program(a, b, c):
    return torch.addcdiv(a, a, b, value=0.5), torch.addcdiv(a, a, c, value=0.5), torch.lerp(a, a, c)
