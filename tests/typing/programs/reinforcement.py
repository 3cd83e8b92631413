"""Policy gradients: rewards, advantages, a soft update of a target network."""

import copy
from collections import deque
from dataclasses import dataclass

import numpy as np

import pullback as torch
from pullback import Tensor, nn


@dataclass
class Step:
    state: Tensor
    action: int
    reward: float


def returns(rewards: list[float], gamma: float = 0.99) -> Tensor:
    found: list[float] = []
    total = 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.insert(0, total)
    out = torch.tensor(found, dtype=torch.float32)
    return (out - out.mean()) / (out.std() + 1e-8)


policy = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
target = copy.deepcopy(policy)
memory: deque[Step] = deque(maxlen=100)
state = torch.from_numpy(np.zeros(3, dtype=np.float32))
for _ in range(5):
    dist = torch.distributions.Categorical(logits=policy(state))
    action = dist.sample()
    memory.append(Step(state, int(action.item()), 1.0))
    state = state + 0.1
states = torch.stack([s.state for s in memory])
actions = torch.as_tensor([s.action for s in memory])
q = policy(states).gather(1, actions.unsqueeze(1)).squeeze(1)
loss = -(torch.log_softmax(policy(states), -1)[range(5), actions] * returns([1.0] * 5)).mean()
(loss + nn.functional.smooth_l1_loss(q, torch.ones(5))).backward()
with torch.no_grad():
    for p, t in zip(policy.parameters(), target.parameters()):
        t.data.mul_(0.995).add_(0.005 * p.data)
