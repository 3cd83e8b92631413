INPUTS = dict(
    c=Input('float32', (2, 3), seed=5),
    f=Input('float32', (3, 4), seed=6, grad='leaf'),
)
TRAITS = ['cut', 'random']


def program(c, f):
    x1 = torch.cauchy(c, 1.0, 2.0)  # noqa: F841
    x7, x8 = torch.native_dropout(f, 0.5, True)
    return (x7, x8)
