"""An image model with a residual block and pooling."""

import pullback as torch
import pullback.nn.functional as F
from pullback import Tensor, nn


class Residual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, kernel_size=(3, 3), padding="same")
        self.bn2 = nn.BatchNorm2d(outside)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.skip = nn.Sequential(nn.Conv2d(inside, outside, 1, stride),
                                      nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x))


net = nn.Sequential(
    Residual(3, 4), nn.MaxPool2d(2), Residual(4, 8, 2), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(),
    nn.Linear(8, 10),
)  # fmt: skip
images = torch.rand(2, 3, 16, 16)
print(net(images).shape, F.interpolate(images, scale_factor=2.0, mode="bilinear").shape)
print(F.avg_pool2d(images, 2).shape, F.pad(images, (1, 1, 1, 1)).shape,
      F.one_hot(torch.tensor([1])))
net[0].train(False)
for layer in net.children():
    if isinstance(layer, nn.Linear):
        print(layer.in_features, layer.weight.std().item())
print(next(net.parameters()).device, len(list(net.modules())))
