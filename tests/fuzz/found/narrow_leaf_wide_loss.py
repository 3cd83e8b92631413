INPUTS = dict(
    a=Input('bfloat16', (2, 2), seed=169261, grad='leaf'),
)


def program(a):
    x2 = a.double()
    return x2
