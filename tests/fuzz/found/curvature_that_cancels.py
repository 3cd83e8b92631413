INPUTS = dict(
    b=Input('float16', (2, 1, 3, 4), seed=889767, grad='inner'),
    f=Input('bool', (3, 5), values=[[False, True, True, False, False], [False, False, False, False, True], [False, False, True, True, True]]),
    g=Input('int64', (3,), values=[3, 5, 0]),
    h=Input('float16', (3, 5), values=[[-1.1449, 1.7695, -0.5167, -1.1602, -0.3414], [1.0658, 0.9211, 1.1263, 0.5395, 1.1757], [-1.1298, -0.3586, -1.1484, 0.5756, 0.1793]]),
)
TRAITS = ['transform']


def program(b, f, g, h):
    x1 = torch.func.vmap(torch.func.grad(lambda p: (p ** 3).sum()))(b)
    x2 = F.normalize(x1, dim=-3)
    x4 = x2.reshape(-1)[:20].reshape(4, 5)
    x5 = torch.ops.aten._unsafe_masked_index_put_accumulate.default(x4, f, [g], h)
    x9 = torch.linalg_matrix_norm(b, -inf, [0, -1], True)
    return (x5, x9)
