INPUTS = dict(
    c=Input('float64', (5, 2), values=[[-1.2566, 1.7078], [-1.4542, 1.0298], [-1.4075, 0.4424], [-1.7629, -0.9675], [-1.8828, 1.0992]]),
    d=Input('int64', (), values=3),
)
TRAITS = ['control']


def program(c, d):
    x1 = torch.tensor_split(c, d)[1]
    x3 = torch.cond(x1.sum() > 0, lambda p: p.sin(), lambda p: p * 2, [x1])
    return x3
