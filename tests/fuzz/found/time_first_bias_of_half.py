INPUTS = dict(
    a=Input('float32', (5, 2, 3), seed=1, grad='leaf'),
    b=Input('float32', (2, 3, 4), seed=2, grad='leaf'),
    c=Input('bfloat16', (4,), seed=3, grad='leaf'),
)


def program(a, b, c):
    return torch.conv_tbc(a, b, c, 1)
