"""Modules that are made of parts given by name, for this package and for PyTorch alike."""


def parts_of(nn):
    """A base of modules that keep the parts, parameters and buffers that they are given by name."""

    class Parts(nn.Module):
        def __init__(self, **parts):
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

    return Parts
