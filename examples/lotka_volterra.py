"""Hares and lynxes: SciPy fits a differential equation, with exact derivatives from Pullback.

    hares' = (a - b lynxes) hares          lynxes' = (d hares - c) lynxes

The data are pelts in thousands, collected by the Hudson's Bay Company from 1900 to 1920 (Howard,
2009, after Hewitt, 1921). `least_squares` wants residuals and their Jacobian with respect to the
four rates and the first two numbers. A year and its Jacobian, six tangents pushed through the
solver by `jacfwd`, are one compiled call in double precision; years are joined by the chain rule.

    python examples/lotka_volterra.py [--quick]

    expected             full   --quick
    a                  0.5402    0.5402
    b                  0.0272    0.0272
    c                  0.7964    0.7964
    d                  0.0237    0.0237
    deviation          0.2192    0.2192
    jacobian error  2.742e-09 2.807e-09

Carpenter (Predator-prey population dynamics: the Lotka-Volterra model in Stan, 2018) finds
a = 0.55, b = 0.028, c = 0.80, d = 0.024 by sampling. `deviation` is that of the logarithms,
`jacobian error` the distance from central differences. `--quick` takes longer steps in time.
"""

import sys

import numpy as np
from scipy.optimize import least_squares

import pullback as torch
from pullback.func import jacfwd

torch.set_default_dtype(torch.float64)
HARES = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1,
         40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]  # fmt: skip
LYNXES = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4,
          8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]  # fmt: skip
DATA = torch.tensor([HARES, LYNXES]).T.log()


GUESS = [0.5, 0.02, 0.5, 0.02, 30.0, 4.0]  # a, b, c, d, hares and lynxes of 1900


def year_later(state, steps: int):
    """The state is the logarithm of all six numbers: nothing can become negative."""
    rates, z = state[:4], state[4:]
    a, b, c, d = rates.exp()
    h = 1 / steps

    def slope(z):
        hares, lynxes = z.exp()
        return torch.stack([a - b * lynxes, d * hares - c])

    for _ in range(steps):  # Runge and Kutta
        k1 = slope(z)
        k2 = slope(z + h / 2 * k1)
        k3 = slope(z + h / 2 * k2)
        k4 = slope(z + h * k3)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return torch.cat([rates, z])


def main(quick: bool) -> dict:
    steps = 3 if quick else 10

    def twice(state):
        after = year_later(state, steps)
        return after, after

    year = torch.compile(lambda state: year_later(state, steps))
    year_and_jacobian = torch.compile(jacfwd(twice, has_aux=True))

    def residuals(x):
        states = [torch.from_numpy(x)]
        for _ in HARES[1:]:
            states.append(year(states[-1]))
        return (torch.stack(states)[:, 4:] - DATA).flatten().numpy()

    def jacobian(x):
        state, total = torch.from_numpy(x), torch.eye(6)
        rows = [total[4:]]
        for _ in HARES[1:]:
            step, state = year_and_jacobian(state)
            total = step @ total  # the chain rule, forwards
            rows.append(total[4:])
        return torch.cat(rows).numpy()

    guess = np.log(GUESS)
    fit = least_squares(residuals, guess, jac=jacobian)  # pyright: ignore[reportArgumentType]
    other = least_squares(residuals, guess)  # SciPy's differences
    print(f"{fit.nfev + fit.njev} calls; {other.nfev + 6 * other.njev} with differences")
    step = 1e-5 * np.eye(6)
    differences = [(residuals(fit.x + e) - residuals(fit.x - e)) / 2e-5 for e in step]
    apart = np.abs(jacobian(fit.x) - np.stack(differences, axis=1)).max()
    return {
        **dict(zip("abcd", np.exp(fit.x[:4]).tolist(), strict=True)),
        "deviation": np.sqrt(np.mean(fit.fun**2)),
        "jacobian error": apart,
    }


if __name__ == "__main__":
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:<16}{value:>12.6g}")
