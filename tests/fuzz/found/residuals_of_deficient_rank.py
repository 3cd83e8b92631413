INPUTS = dict(
    a=Input('float64', (5, 5), seed=802111, odd='-inf'),
    b=Input('float64', (6, 7), seed=512455),
)
TRAITS = ['ambiguous', 'cut', 'tolerance']


def program(a, b):
    x1 = a.reshape(-1)[:12].reshape(1, 4, 3)
    x2 = b.reshape(-1)[:8].reshape(2, 4, 1)
    x3, x4, x5, x6 = torch.linalg_lstsq(x1, x2, driver='gelss')
    return (x3, x4, x5, x6)
