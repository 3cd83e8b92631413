INPUTS = dict(
    a=Input('float64', (2, 2), seed=493364, odd='nan', grad='inner'),
    b=Input('int64', (2, 2), values=[[0, -1], [1, -1]]),
)


def program(a, b):
    x1 = F.multi_margin_loss(a, a.argmax(-1))
    x2 = F.multilabel_margin_loss(a, b, reduction='none')
    return x1, x2
