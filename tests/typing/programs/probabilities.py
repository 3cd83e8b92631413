"""Distributions and what one does with them."""

import pullback as torch
from pullback import Tensor
from pullback.distributions import Bernoulli, Categorical, MultivariateNormal, Normal, kl_divergence

mean = torch.zeros(3, requires_grad=True)
q = Normal(mean, torch.ones(3))
p = Normal(torch.zeros(3), 2.0)
z = q.rsample((5,))
elbo: Tensor = p.log_prob(z).sum(-1).mean() - kl_divergence(q, p).sum()
elbo.backward()
policy = Categorical(logits=torch.randn(2, 4))
action = policy.sample()
loss = -(policy.log_prob(action) * torch.tensor([1.0, -1.0])).mean()
print(loss.item(), policy.entropy().mean(), policy.probs)
print(Bernoulli(torch.tensor([0.3])).sample(torch.Size([2])))
joint = MultivariateNormal(torch.zeros(2), covariance_matrix=torch.eye(2))
print(joint.log_prob(torch.ones(2)).item(), joint.batch_shape, q.mean, q.stddev)
