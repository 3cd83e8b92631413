"""A classifier, its loss and its optimiser, as the first tutorial has them."""

import pullback as torch
import pullback.nn as nn
import pullback.optim as optim

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x = torch.randn(32, 4, device=device)
y = torch.randint(0, 3, (32,), device=device)

model.train()
total: float = 0.0
for epoch in range(2):
    optimizer.zero_grad()
    logits = model(x)
    loss = criterion(logits, y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    total += loss.item()
    print(f"{epoch}: {loss.item():.3f}")

model.eval()
with torch.no_grad():
    correct = (model(x).argmax(dim=1) == y).float().mean().item()
    probabilities = torch.softmax(model(x), dim=-1)
print(correct, probabilities.shape, total / 2)
