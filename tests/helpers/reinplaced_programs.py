"""Programs for `reinplace`, and what PyTorch 2.13 makes of them.

`python -m tests.helpers.reinplaced_programs` with PyTorch writes `tests/data/reinplaced.json`.
"""

import json
from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "reinplaced.json"


def programs(torch):
    """Name -> (function, shape of its argument)."""

    def through_views(x):
        a = x.clone()
        e, d = a.view(-1), a.view(-1)[0].view(-1)
        d.add_(1)
        return a + e

    def twice(x):
        a = x.clone()
        a[:, 1][1].add_(1)
        return a

    def mirror(start, place):
        def f(x):
            a = x.clone()
            new = a[:, 1][1].add(1)
            return torch.select_scatter(a.as_strided((4,), (4,), start), new, 0, place)

        return f

    def returned():
        x = torch.zeros(2, 2)
        return [torch.diagonal_scatter(x, x.diagonal().add(1))]

    def assigned():
        a = torch.zeros(4, 4, 4)
        a[:, 2:] = torch.ones(4, 2, 4)
        return a

    def doubled(x):
        y = x + 1
        return y * y

    def read_later(x):
        y = x + 1
        return y[0] * 2 + y.sum()

    return {"through_views": (through_views, (4,)), "twice": (twice, (4, 4)),
            "same_place": (mirror(1, 1), (4, 4)), "other_place": (mirror(1, 0), (4, 4)),
            "other_base": (mirror(0, 1), (4, 4)), "returned": (returned, None),
            "assigned": (assigned, None), "doubled": (doubled, (2,)),
            "read_later": (read_later, (2,))}


if __name__ == "__main__":
    import torch
    from torch.func import functionalize
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.passes.reinplace import reinplace

    found = {}
    for name, (function, shape) in programs(torch).items():
        args = [] if shape is None else [torch.ones(shape)]
        found[name] = reinplace(make_fx(functionalize(function))(*args), *args).code
    DATA.write_text(json.dumps(found, indent=1) + "\n")
