INPUTS = dict(
    a=Input('float64', (2, 2), seed=808069, odd='-inf'),
)


def program(a):
    x1 = a.mvlgamma(1)
    return x1
