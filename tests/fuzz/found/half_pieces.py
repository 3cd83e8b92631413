INPUTS = dict(
    a=Input('float16', (4, 4), seed=747687),
)


def program(a):
    x1 = a.split(2, 1)[-1]
    x2 = x1.flatten()
    return x2
