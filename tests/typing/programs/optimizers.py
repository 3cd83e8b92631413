"""Optimisers, schedulers, parameter groups, closures, averages."""

import pullback as torch
from pullback import nn, optim
from pullback.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR, StepLR
from pullback.optim.swa_utils import AveragedModel

net = nn.Linear(3, 1)
sgd = optim.SGD([{"params": [net.weight], "lr": 0.1}, {"params": net.bias}], lr=0.01)
adam = optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=1e-2)
adamw = optim.AdamW(net.parameters(), lr=1e-3, eps=1e-8)
rms = torch.optim.RMSprop(net.parameters(), alpha=0.9)
step = StepLR(sgd, step_size=2, gamma=0.5)
cosine = CosineAnnealingLR(adam, T_max=10)
warm = LambdaLR(adamw, lr_lambda=lambda epoch: min(1.0, epoch / 5))
cycle = OneCycleLR(rms, max_lr=0.1, total_steps=10)
lbfgs = optim.LBFGS(net.parameters(), max_iter=4)
x, y = torch.randn(8, 3), torch.randn(8, 1)


def closure() -> float:
    lbfgs.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    return loss.item()


lbfgs.step(closure)
for optimizer, scheduler in ((sgd, step), (adam, cosine), (adamw, warm), (rms, cycle)):
    optimizer.zero_grad(set_to_none=True)
    nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
    scheduler.step()
    print(scheduler.get_last_lr()[0], optimizer.param_groups[0]["lr"])
average = AveragedModel(net)
average.update_parameters(net)
saved = adam.state_dict()
adam.load_state_dict(saved)
