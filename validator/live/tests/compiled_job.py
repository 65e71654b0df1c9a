"""compiled_job.py MODEL: trains a small model for three steps, compiled by Inductor."""

import sys

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Of a transformer."""

    def __init__(self, width):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.heads, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, words, width = x.shape
        heads = self.heads(self.norms[0](x)).view(batch, words, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.joined(mixed.transpose(1, 2).reshape(batch, words, width))
        return x + functional.dropout(self.narrow(functional.gelu(self.wide(self.norms[1](x)))), 0.1)


def mlp():
    layers = [layer for _ in range(6) for layer in (nn.Linear(128, 128), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(128, 10)), torch.randn(512, 128)


def gpt():
    return nn.Sequential(Block(64), Block(64), nn.Linear(64, 10), nn.Flatten(0, 1)), torch.randn(8, 64, 64)


def cnn():
    layers = [layer for number in range(3)
              for layer in (nn.Conv2d(16 if number else 3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)), torch.randn(16, 3, 32, 32)


torch.manual_seed(0)
model, batch = {"mlp": mlp, "gpt": gpt, "cnn": cnn}[sys.argv[1]]()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
compiled = torch.compile(model)
for _ in range(3):
    output = compiled(batch)
    loss = functional.cross_entropy(output, torch.arange(len(output)) % 10)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
