"""A two-layer bidirectional LSTM tagger, batch of 64 sentences of 128 words, Adam. Usage: python bilstm.py OUT.jsonl"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

import tidepool_torch


class Tagger(nn.Module):
    """A label for each word."""

    def __init__(self, words=20_000, labels=50, width=512):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, labels)

    def forward(self, words):
        return self.head(self.lstm(self.embedding(words))[0])


with tidepool_torch.fake_tensors():
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    words = torch.randint(0, 20_000, (64, 128))
    labels = torch.randint(0, 50, (64, 128))

    def step():
        F.cross_entropy(model(words).flatten(0, 1), labels.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    name = "bilstm, batch 64 of 128 words"
    recorder = tidepool_torch.record_steps(step, model, optimizer, device="a100", name=name)
recorder.save(sys.argv[1])
