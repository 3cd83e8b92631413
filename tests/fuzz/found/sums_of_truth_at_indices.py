INPUTS = dict(
    a=Input('bool', (), values=False),
    b=Input('int64', (1,), values=[0]),
    c=Input('bool', (3,), values=[True, False, False]),
    d=Input('int64', (3,), values=[0, 0, 1]),
)


def program(a, b, c, d):
    return torch.index_add(a, 0, b, a), torch.index_add(c, 0, d, c, alpha=2), d.index_add(0, d, d, alpha=2)
