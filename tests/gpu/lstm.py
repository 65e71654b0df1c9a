"""A language model of two LSTM layers on sequences of 256."""

import torch
import training
from torch import nn


class Language(nn.Module):
    def __init__(self, width, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


def make_loss(model, batch):
    return nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


options = training.arguments(batch=64)
vocabulary = 1000 if options.small else 10000
width, length = (32, 16) if options.small else (1024, 256)
training.train(options, Language(width, vocabulary), training.tokens(vocabulary, length), make_loss)
