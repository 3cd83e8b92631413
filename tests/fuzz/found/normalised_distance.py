INPUTS = dict(
    a=Input('float32', (6, 8), seed=7, grad='leaf'),
    b=Input('float32', (6, 8), seed=38, grad='leaf'),
    c=Input('float32', (6, 8), seed=69, grad='leaf'),
)


def program(a, b, c):
    p = (F.normalize(a, dim=-1) * F.normalize(b, dim=-1)).sum(-1)
    n = -(a - c).norm(dim=-1)
    v = F.softplus(n - p)
    return v.sum()
