INPUTS = dict(
    a=Input('float32', (2,), seed=48884),
)


def program(a):
    x1 = a.min(dim=-1, keepdim=True).values
    x2 = F.nll_loss(x1.log_softmax(-1), x1.argmax(-1))
    return x2.reciprocal(), (x1 * -0.0).abs().neg().sum(0).reciprocal()
