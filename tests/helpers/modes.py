"""Modes that write down what they see."""


def noting(base, method, log, shown=str):
    """A mode with a name: for each call it adds `name:call` to a log, told by `method`."""

    class Noting(base):
        def __init__(self, name):
            self.name = name

    def see(self, func, types, args=(), kwargs=None):
        log.append(f"{self.name}:{shown(func)}")
        return func(*args, **(kwargs or {}))

    setattr(Noting, method, see)
    return Noting
