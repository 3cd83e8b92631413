INPUTS = dict(
    b=Input('float64', (3, 4), seed=299007),
    c=Input('float64', (3, 4), values=[[-0.3868, -1.7523, 0.05, -1.308], [-1.2515, 1.3486, -1.5645, 1.3096], [1.8932, -1.3839, 0.1457, 0.6378]]),
)


def program(b, c):
    x3 = torch.ops.aten.isfinite.default(b)
    x4 = x3.dist(c, 1.5)
    return x4
