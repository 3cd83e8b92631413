INPUTS = dict(
    a=Input('int16', (4,), values=[-5, 3, -2, -1]),
)
TRAITS = ['sized']


def program(a):
    x1 = a[a > 0]
    return x1.view(1), x1.reshape(())
