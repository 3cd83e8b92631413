INPUTS = dict(
    a=Input('float32', (6, 8), seed=7, grad='leaf'),
    b=Input('float32', (6, 8), seed=38, grad='leaf'),
    c=Input('float32', (6, 8), seed=69, grad='leaf'),
)


def program(a, b, c):
    p = F.cosine_similarity(a, b, dim=-1)
    n = F.cosine_similarity(a, c, dim=-1)
    v = F.relu(n - p + 0.3)
    return v.mean()
