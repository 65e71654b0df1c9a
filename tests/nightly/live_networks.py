"""Small networks with what training steps have: normalisations and their running statistics, updates in place, skip
connections, recurrent layers, attention, autocast, gradients of several passes, frozen layers, averages of weights,
checkpointed blocks and custom functions. Each function returns (network, optimizer, step); step() gives the loss."""

import torch
import torch.nn.functional as F
from models import Gelu  # of validator/live/tests
from torch import nn
from torch.utils.checkpoint import checkpoint


def trained(network, loss_of, optimizer=None, passes=1, clip=False, average=False):
    """passes: backward passes of a step. clip: of gradients. average: a moving average of the weights."""
    optimizer = optimizer or torch.optim.AdamW(network.parameters(), lr=1e-3, foreach=True)
    averages = [parameter.detach().clone() for parameter in network.parameters()] if average else []

    def step():
        optimizer.zero_grad()
        for _ in range(passes):
            loss = loss_of()
            (loss / passes).backward()
        if clip:
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for held, parameter in zip(averages, network.parameters()):
                held.lerp_(parameter, 0.1)
        return loss.item()

    return network, optimizer, step


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x):
        y = self.norm2(self.second(F.relu(self.norm1(self.first(x)), inplace=True)))
        y += x
        return F.relu(y, inplace=True)


def resnet():
    network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *(Residual(8) for _ in range(4)), nn.AdaptiveAvgPool2d(1),
                            nn.Flatten(), nn.Linear(8, 10))
    x, labels = torch.randn(16, 3, 12, 12), torch.randint(0, 10, (16,))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    return trained(network, lambda: F.cross_entropy(network(x), labels), optimizer)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.norm, self.middle, self.drop = nn.GroupNorm(2, 8), nn.Conv2d(16, 16, 3, padding=1), nn.Dropout2d(0.2)
        self.up2, self.join2 = nn.ConvTranspose2d(16, 16, 2, 2), nn.Conv2d(32, 8, 3, padding=1)
        self.up1, self.join1 = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, x):
        first = F.silu(self.norm(self.down1(x)))
        second = F.gelu(self.down2(F.max_pool2d(first, 2)))
        lowest = self.drop(F.relu(self.middle(F.avg_pool2d(second, 2))))
        joined = self.join2(torch.cat([self.up2(lowest), second], dim=1))
        return self.join1(torch.cat([self.up1(F.leaky_relu(joined, inplace=True)), first], dim=1))


def unet():
    network, x, target = UNet(), torch.randn(4, 3, 16, 16), torch.rand(4, 1, 16, 16)
    return trained(network, lambda: F.binary_cross_entropy_with_logits(network(x), target), average=True)


def lstm():
    network = nn.ModuleDict({"embed": nn.Embedding(50, 32), "layers": nn.LSTM(32, 32, 2, batch_first=True, dropout=0.1),
                             "head": nn.Linear(32, 50)})
    text = torch.randint(0, 50, (8, 13))

    def loss():
        hidden, _ = network["layers"](network["embed"](text[:, :-1]))
        return F.cross_entropy(network["head"](hidden).transpose(1, 2), text[:, 1:])

    return trained(network, loss, clip=True)


def attention():
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
    network = nn.Sequential(nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(32, 5))
    x, labels = torch.randn(6, 20, 32), torch.randint(0, 5, (6,))
    return trained(network, lambda: F.cross_entropy(network(x).mean(1), labels), clip=True)


def autocast():
    network = nn.Sequential(*(each for _ in range(5)
                              for each in (nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Dropout(0.1))))
    x = torch.randn(128, 64)

    def loss():
        with torch.autocast("cpu", torch.bfloat16):
            return network(x).float().square().mean()

    return trained(network, loss)


def accumulated():
    network = nn.Sequential(*(each for _ in range(4) for each in (nn.Linear(48, 48), nn.Tanh())))
    x = torch.randn(64, 48)
    return trained(network, lambda: network(x).square().mean(), passes=3, clip=True)


def frozen():
    """Frozen layers with adapters of low rank. The normalisations use their running statistics."""
    base = nn.ModuleList(nn.Sequential(nn.Linear(48, 48), nn.BatchNorm1d(48)) for _ in range(4))
    base.requires_grad_(False).eval()
    adapters = nn.ModuleList(nn.Sequential(nn.Linear(48, 4, bias=False), nn.Linear(4, 48, bias=False)) for _ in range(4))
    network, x = nn.ModuleList([base, adapters]), torch.randn(96, 48)

    def loss():
        hidden = x
        for layer, adapter in zip(base, adapters):
            hidden = F.relu(layer(hidden) + adapter(hidden))
        return hidden.square().mean()

    return trained(network, loss, torch.optim.Adam(adapters.parameters(), lr=1e-3))


def custom():
    """Every other block is checkpointed."""
    network, x = nn.ModuleList(nn.Linear(64, 64) for _ in range(6)), torch.randn(512, 64)

    def loss():
        hidden = x
        for number, layer in enumerate(network):
            block = lambda value, layer=layer: value + Gelu.apply(layer(value))  # noqa: E731
            hidden = block(hidden) if number % 2 else checkpoint(block, hidden, use_reentrant=number % 4 == 0)
        return hidden.square().mean()

    return trained(network, loss)


NETWORKS = {each.__name__: each for each in (resnet, unet, lstm, attention, autocast, accumulated, frozen, custom)}
