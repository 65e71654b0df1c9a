"""A training job on the CPU: early_updates_job.py MODEL OPTIMIZER STEPS [CHANGE]. Prints each loss with all its bits.

CHANGE is the file that `tidepool advise --kinds early-updates --apply pytorch` prints."""

import runpy
import sys

import torch
from torch import nn


class Tied(nn.Module):
    """A language model whose output layer has the weights of its embedding: their gradient has two parts."""

    def __init__(self, words=2000, width=256):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))


def mlp():
    return nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(512, 512), nn.Tanh())), nn.Linear(512, 10))


def cnn():
    widths = [3, 64, 128, 256, 512]
    layers = [layer for a, b in zip(widths, widths[1:])
              for layer in (nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 4, 1024), nn.ReLU(), nn.Linear(1024, 10))


def images():
    return torch.randn(8, 3, 32, 32), torch.randint(10, (8,))


# Functions that make a model and its batch.
MODELS = {"mlp": (mlp, lambda: (torch.randn(32, 512), torch.randint(10, (32,)))), "cnn": (cnn, images),
          "lm": (Tied, lambda: (torch.randint(2000, (2, 64)), torch.randint(2000, (2, 64))))}
OPTIMIZERS = {"sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-2, momentum=0.9),
              "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
              "adamw-foreach": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, foreach=True)}


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    make, make_batch = MODELS[sys.argv[1]]
    model, (inputs, labels) = make(), make_batch()
    optimizer = OPTIMIZERS[sys.argv[2]](model.parameters())
    if len(sys.argv) > 4:
        runpy.run_path(sys.argv[4])["apply"](model, optimizer)
    for _ in range(int(sys.argv[3])):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), labels.flatten())
        loss.backward()
        optimizer.step()
        print(loss.item().hex())


if __name__ == "__main__":
    main()
