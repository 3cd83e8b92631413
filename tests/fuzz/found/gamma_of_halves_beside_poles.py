INPUTS = dict(
    a=Input('bfloat16', (3,), values=[-0.99609375, -0.00390625, 2.5]),
)


def program(a):
    return a.mvlgamma(3)
