"""Gaussian process regression: hyperparameters by the marginal likelihood, error bars for free.

The logarithm of the marginal likelihood needs a Cholesky factor and a triangular solve; both have
derivatives, so length scale, amplitude and noise are found by L-BFGS with line search, in double
precision. The data are a draw of such a process, so the answer is known approximately.

    python examples/gaussian_process.py [--quick]

    expected             full   --quick
    log likelihood     8.7996    -18.14
    length             0.7090    0.7121
    amplitude          1.7198    1.4509
    noise              0.1780    0.1736
    error              0.0565    0.1350
    coverage           0.9650    0.8500

The draw had length 0.7, amplitude 1.5, noise 0.2. `error` is the root mean square distance of the
prediction from the function without noise; `coverage` is the part of new points at which it lies
within two standard deviations.
Read `lotka_volterra.py` next.
"""

import math
import sys

import pullback as torch

torch.set_default_dtype(torch.float64)
TRUE = {"length": 0.7, "amplitude": 1.5, "noise": 0.2}


def kernel(a, b, length, amplitude):
    """Covariance of function values: near points are alike."""
    return amplitude**2 * torch.exp(-0.5 * torch.cdist(a / length, b / length) ** 2)


def factor(x, length, amplitude, noise):
    """Cholesky factor of the covariance of the observations."""
    return torch.linalg.cholesky(kernel(x, x, length, amplitude) + noise**2 * torch.eye(len(x)))


def log_likelihood(x, y, length, amplitude, noise):
    L = factor(x, length, amplitude, noise)
    white = torch.linalg.solve_triangular(L, y[:, None], upper=False)
    return (
        -0.5 * white.square().sum()
        - L.diagonal().log().sum()
        - 0.5 * len(x) * math.log(2 * math.pi)
    )


def predict(x, y, new, length, amplitude, noise):
    """Mean and standard deviation of the function at new points."""
    L = factor(x, length, amplitude, noise)
    across = kernel(x, new, length, amplitude)
    mean = across.T @ torch.cholesky_solve(y[:, None], L)
    reduced = torch.linalg.solve_triangular(L, across, upper=False)
    return mean[:, 0], (amplitude**2 - reduced.square().sum(0)).clamp(min=0).sqrt()


def main(quick: bool) -> dict:
    torch.manual_seed(0)
    count, test = (60, 60) if quick else (200, 200)
    x = torch.rand(count + test, 1) * 10
    truth = factor(x, TRUE["length"], TRUE["amplitude"], 1e-4) @ torch.randn(count + test)
    y = truth[:count] + TRUE["noise"] * torch.randn(count)
    x, new, truth = x[:count], x[count:], truth[count:]

    log_params = torch.zeros(3, requires_grad=True)  # logarithms: all three stay positive
    optimizer = torch.optim.LBFGS([log_params], max_iter=50, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = -log_likelihood(x, y, *log_params.exp())
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        found = log_params.exp()
        mean, deviation = predict(x, y, new, *found)
        return {
            "log likelihood": log_likelihood(x, y, *found).item(),
            **dict(zip(TRUE, found.tolist(), strict=True)),
            "error": (mean - truth).square().mean().sqrt().item(),
            "coverage": ((mean - truth).abs() < 2 * deviation).double().mean().item(),
        }


if __name__ == "__main__":
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:<16}{value:>12.6g}")
