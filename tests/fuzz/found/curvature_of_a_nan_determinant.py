INPUTS = dict(
    a=Input('float64', (3, 3), values=[[nan, 2.0, 3.0], [0.5, 1.0, -1.0], [2.0, 1.5, 0.0]], grad='leaf'),
)


def program(a):
    x1 = a.det()
    return x1
