"""autocast, GradScaler, accumulation, clipping."""

import pullback as torch
from pullback import nn

net = nn.Linear(4, 1)
optimizer = torch.optim.AdamW(net.parameters())
scaler = torch.amp.GradScaler("cpu", enabled=False)
for i in range(4):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(net(torch.randn(2, 4)), torch.zeros(2, 1)) / 2
    scaler.scale(loss).backward()
    if (i + 1) % 2 == 0:
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        print(norm.item())
