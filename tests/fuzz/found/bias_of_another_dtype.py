INPUTS = dict(
    a=Input('float64', (4,), seed=595342),
    b=Input('bfloat16', (6, 2, 4), seed=741201, low=-1.863, high=1.961),
    c=Input('bfloat16', (5, 2, 3), seed=1),
    d=Input('bfloat16', (2, 3, 4), seed=1),
)


def program(a, b, c, d):
    x1, x2, x3 = torch.ops.aten.conv_tbc_backward.default(b, c, d, a, 1)
    return x1, x2, x3
