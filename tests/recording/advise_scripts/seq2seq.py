"""A transformer that learns to reverse sequences of several lengths, with padding, clipped gradients, a validation and
greedy decoding. The change in a file given as argument is applied."""
import math
import runpy
import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

PAD, BEGIN, END, WORDS = 0, 1, 2, 1000


class Positions(nn.Module):
    def __init__(self, width, longest=512):
        super().__init__()
        self.dropout = nn.Dropout(0.1)
        angle = torch.arange(longest).unsqueeze(1) * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        self.register_buffer("waves", torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1))

    def forward(self, x):
        return self.dropout(x + self.waves[:x.size(1)])


class Seq2Seq(nn.Module):
    def __init__(self, width=256, heads=8, layers=3):
        super().__init__()
        self.width = width
        self.sources, self.targets = nn.Embedding(WORDS, width, PAD), nn.Embedding(WORDS, width, PAD)
        self.positions = Positions(width)
        self.core = nn.Transformer(width, heads, layers, layers, 4 * width, 0.1, batch_first=True)
        self.out = nn.Linear(width, WORDS)

    def embed(self, table, words):
        return self.positions(table(words) * math.sqrt(self.width))

    def encode(self, source):
        return self.core.encoder(self.embed(self.sources, source), src_key_padding_mask=source == PAD)

    def decode(self, memory, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(1), device=target.device)
        return self.out(self.core.decoder(self.embed(self.targets, target), memory, tgt_mask=mask,
                                          tgt_key_padding_mask=target == PAD, memory_key_padding_mask=source == PAD))

    def forward(self, source, target):
        return self.decode(self.encode(source), source, target)


@torch.no_grad()
def greedy(model, source, longest):
    memory = model.encode(source)
    words = torch.full((source.size(0), 1), BEGIN, device=source.device)
    for _ in range(longest):
        words = torch.cat([words, model.decode(memory, source, words)[:, -1].argmax(-1, keepdim=True)], dim=1)
    return words


def padded(batch):
    source, target = zip(*batch)
    return pad_sequence(source, True, PAD), pad_sequence(target, True, PAD)


def loader_of(count):
    words = [torch.randint(3, WORDS, (int(torch.randint(32, 64, (1,))),)) for _ in range(count)]
    pairs = [(each, torch.cat([torch.tensor([BEGIN]), each.flip(0), torch.tensor([END])])) for each in words]
    return torch.utils.data.DataLoader(pairs, 32, shuffle=True, collate_fn=padded)


def main():
    torch.manual_seed(1)
    model = Seq2Seq().cuda()
    if len(sys.argv) > 1:
        runpy.run_path(sys.argv[1])["apply"](model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    loss_of = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    torch.manual_seed(2)
    training, validation = loader_of(160), loader_of(32)
    for epoch in range(2):
        model.train()
        for source, target in training:
            source, target = source.cuda(), target.cuda()
            logits = model(source, target[:, :-1])
            loss = loss_of(logits.reshape(-1, WORDS), target[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for source, target in validation:
                source, target = source.cuda(), target.cuda()
                loss_of(model(source, target[:, :-1]).reshape(-1, WORDS), target[:, 1:].reshape(-1)).item()
        greedy(model, source[:2], 8)
    print("peak", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
