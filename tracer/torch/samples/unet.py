"""U-Net (four levels, 64 to 1024 channels), batch of 8 images of 256 x 256, Adam. Usage: python unet.py OUT.jsonl"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

import tidepool_torch


def block(inputs, outputs):
    """Two 3 x 3 convolutions, each normalised."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """The contracting and the expanding path; each level passes its features from one to the other."""

    def __init__(self, classes, widths=(64, 128, 256, 512, 1024)):
        super().__init__()
        self.down = nn.ModuleList(block(a, b) for a, b in zip((3,) + widths, widths))
        self.widen = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(block(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        across = []
        for level in self.down[:-1]:
            x = level(x)
            across.append(x)
            x = F.max_pool2d(x, 2)
        x = self.down[-1](x)
        for widen, level in zip(reversed(self.widen), reversed(self.up)):
            x = level(torch.cat([across.pop(), widen(x)], dim=1))
        return self.head(x)


with tidepool_torch.fake_tensors():
    model = UNet(classes=21)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    images = torch.randn(8, 3, 256, 256)
    labels = torch.randint(0, 21, (8, 256, 256))

    def step():
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    name = "unet, batch 8 of 256 x 256"
    recorder = tidepool_torch.record_steps(step, model, optimizer, device="a100", name=name)
recorder.save(sys.argv[1])
