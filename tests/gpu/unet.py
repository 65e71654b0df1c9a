"""A U-Net of four levels on images of 256 x 256, two classes for each pixel."""

import torch
import training
from torch import nn


def block(inputs, outputs):
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width, levels=4):
        super().__init__()
        widths = [width << level for level in range(levels + 1)]
        self.down = nn.ModuleList(block(a, b) for a, b in zip([3] + widths[:-1], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(block(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for level, layer in enumerate(self.down):
            x = layer(x if level == 0 else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], dim=1))
        return self.head(x)


options = training.arguments(batch=16)
side = 32 if options.small else 256


def make_batch(size, device):
    return torch.randn(size, 3, side, side, device=device), torch.randint(2, (size, side, side), device=device)


training.train(options, UNet(8 if options.small else 64), make_batch, training.classify)
