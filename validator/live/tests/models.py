"""Three small networks that the tests train, and a custom function. Each network has a step that is the same on every run."""

import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    """Six layers; ReLU in place and dropout make versions that are updated and ops that draw random numbers."""
    layers = [(nn.Linear(64, 64), nn.ReLU(inplace=True), nn.Dropout(0.1)) for _ in range(6)]
    model, x = nn.Sequential(*(layer for each in layers for layer in each)), torch.randn(512, 64)
    return model, lambda: model(x).square().mean()


def cnn():
    """A pool, a classifier, and batch normalisation: recomputing it must not update its running statistics again."""
    def block(inputs, outputs):
        return nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)

    model = nn.Sequential(*block(3, 16), *block(16, 16), nn.MaxPool2d(2), *block(16, 32), nn.Flatten(),
                          nn.Dropout(0.2), nn.Linear(32 * 64, 10))
    x, labels = torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))
    return model, lambda: F.cross_entropy(model(x), labels)


class _Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        batch, length, width = x.shape
        heads = (part.view(batch, length, 4, width // 4).transpose(1, 2)
                 for part in self.heads(self.norm1(x)).split(width, 2))
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class _Gpt(nn.Module):
    def __init__(self, words=128, width=64):
        super().__init__()
        self.embed, self.norm = nn.Embedding(words, width), nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(_Block(width) for _ in range(3)))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.embed(tokens))))


def gpt():
    """Attention, layer normalisation, residual connections and tied weights."""
    model, text = _Gpt(), torch.randint(0, 128, (4, 33))
    return model, lambda: F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


class Gelu(torch.autograd.Function):
    """Its backward reads all saved tensors at once, before its first op."""

    @staticmethod
    def forward(context, x):
        curve = torch.tanh(0.8 * (x + 0.045 * x * x * x))
        context.save_for_backward(x, curve)
        return 0.5 * x * (1 + curve)

    @staticmethod
    def backward(context, gradient):
        x, curve = context.saved_tensors
        slope = 0.8 * (1 + 3 * 0.045 * x * x)
        return gradient * (0.5 * (1 + curve) + 0.5 * x * (1 - curve * curve) * slope)


def make(name):
    """(model, optimizer, step) of a fresh network. step() trains once and gives the loss as a number."""
    torch.manual_seed(0)
    model, compute_loss = {"mlp": mlp, "cnn": cnn, "gpt": gpt}[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)

    def step():
        optimizer.zero_grad()
        loss = compute_loss()
        loss.backward()
        optimizer.step()
        return loss.item()

    return model, optimizer, step
