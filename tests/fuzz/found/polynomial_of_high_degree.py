INPUTS = dict(
    a=Input('float32', (3,), values=[1.0, 5191009.0, 29565072.0]),
    b=Input('float64', (3,), values=[1.5, 2.5, -3.0], grad='leaf'),
)


def program(a, b):
    x1 = torch.special.chebyshev_polynomial_t(1.5, a)
    x2 = torch.special.hermite_polynomial_he(b, a)
    x3 = torch.special.legendre_polynomial_p(b, a)
    return x1, x2, x3
