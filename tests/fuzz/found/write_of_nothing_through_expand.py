INPUTS = dict(
    a=Input('float64', (), values=1.5),
)
TRAITS = ['write']


def program(a):
    x1 = a.clone()
    x2 = x1.expand(0, 2)
    x2.masked_fill_(x2 > 0, 0.5)
    return x1, x2
