INPUTS = dict(
    c=Input('float64', (6, 7), seed=1074, odd='nan'),
)


def program(c):
    x5 = c.reshape(-1)[:40].reshape(1, 2, 4, 5)
    x6 = torch.ops.aten._upsample_bicubic2d_aa.default(x5, [5, 5], False, 1.7, 0.6)
    x7 = F.interpolate(x5, [4, 9], mode='bilinear')
    return (x6, x7)
