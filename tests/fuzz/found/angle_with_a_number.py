INPUTS = dict(
    a=Input('float32', (), seed=505480),
    b=Input('bfloat16', (2, 1, 2, 2), seed=594197),
)


def program(a, b):
    x5 = 1 - F.cosine_similarity(b, a, dim=3)
    return x5
