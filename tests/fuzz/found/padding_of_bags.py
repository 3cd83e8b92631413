INPUTS = dict(
    b=Input('float32', (3, 4), seed=572783),
    d=Input('int64', (4,), values=[0, 2, 1, 2]),
    e=Input('int64', (4,), values=[0, 0, 2, 2]),
    f=Input('int64', (3,), values=[2, 0, 2]),
    g=Input('int64', (3,), values=[2, 0, 2]),
    h=Input('float32', (4,), values=[-0.8184, 1.0122, -0.6065, -1.1881], grad='leaf'),
)


def program(b, d, e, f, g, h):
    x3 = torch.ops.aten._embedding_bag_dense_backward.default(b, d, e, f, g, 4, True, 0, h, 1)
    x5 = torch.special_entr(x3)
    return x5
