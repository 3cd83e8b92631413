"""Programs whose symbolic traces print as PyTorch's do (`record_captures.py`)."""


def programs(torch) -> dict:
    """Name -> (function, concrete arguments)."""
    held = torch.ones(2)

    def starred(*args, **kw):
        return args[0] + kw["k"]

    def typed(x: torch.Tensor, n: int = 3) -> torch.Tensor:
        return x * n

    def written(x):
        x += 1
        return x.add_(2)

    def unpacked(x):
        a, b = x.chunk(2)
        return a * b

    def flagged(x, flag):
        return x + 1 if flag else x - 1

    return {
        "operators": (lambda x, y: (x + y, 2 * x, x // 2, 2**x, x @ y, -x, x & y, x < y, x[1:2],
                                    x[..., None], 1 - x), None),
        "methods": (lambda x: x.view(2, -1).sum(dim=1, keepdim=True) + x.shape[0], None),
        "functions": (lambda x: torch.add(torch.relu(x), 1, alpha=2), None),
        "starred": (starred, None),
        "typed": (typed, None),
        "written": (written, None),
        "unpacked": (unpacked, None),
        "flagged": (flagged, {"flag": True}),
        "none": (flagged, {"flag": None}),
        "list": (lambda x, n: x * n[0], {"n": [3, 4]}),
        "held": (lambda x: (held + x, held.mul(x), held - x, held @ x, held == x, held**x,
                            torch.where(held > 0, x, held), held[x], held < x), None),
        "trees": (lambda x: {"a": x, "b": [x + 1, (x,)]}, None),
    }
