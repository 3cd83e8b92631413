INPUTS = dict(
    a=Input('float32', (3, 4), values=[[-0.9, 1.8, -0.7, -0.6], [1.2, -0.5, -1.4, -0.1], [-1.2, 0.6, 0.1, -1.4]], grad='leaf'),
    b=Input('int64', (3, 4), values=[[0, 2, -1, 1], [1, -1, 0, 3], [3, 2, 1, -1]]),
)


def program(a, b):
    return F.multilabel_margin_loss(a, b).var(), F.multilabel_margin_loss(a[0], b[0], reduction='none')
