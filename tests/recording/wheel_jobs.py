"""Small jobs for a GPU that wheels_table.py records: wheel_jobs.py JOB. Each trains for two steps on "cuda",
but out_of_memory for three."""

import sys

import torch
from torch import nn
from torch.nn import functional as F


def train(model, loss, steps=2):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def cnn():
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(16 * 256, 10)).cuda()
    images, labels = torch.randn(8, 3, 32, 32, device="cuda"), torch.zeros(8, dtype=torch.long, device="cuda")
    train(model, lambda: F.cross_entropy(model(images), labels))


def embedding():
    model = nn.Sequential(nn.Embedding(1000, 64), nn.LayerNorm(64), nn.Linear(64, 1000)).cuda()
    words = torch.randint(1000, (8, 32), device="cuda")
    train(model, lambda: F.cross_entropy(model(words).flatten(0, 1), words.flatten()))


def attention():
    model = nn.Linear(64, 192).to("cuda", torch.bfloat16)
    words = torch.randn(2, 128, 64, device="cuda", dtype=torch.bfloat16)

    def loss():
        query, key, value = model(words).view(2, 128, 3, 4, 16).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(query, key, value, is_causal=True).float().square().mean()

    train(model, loss)


def indexing():
    model = nn.Linear(64, 64).cuda()
    rows = torch.tensor([1, 3, 3, 7], device="cuda")

    def loss():
        made = model(torch.randn(16, 64, device="cuda"))
        made.nonzero()
        return made[rows].sort(dim=1).values.square().mean() + made.topk(4).values.mean()

    train(model, loss)


def out_of_memory():
    model = nn.Linear(64, 64).cuda()
    train(model, lambda: model(torch.randn(4, 64, device="cuda")).square().mean(), 3)
    kept = []
    try:
        while True:
            kept.append(torch.empty(1 << 28, device="cuda"))
    except torch.OutOfMemoryError:
        print("out of memory")


def compiled():
    model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.GELU()).cuda())
    train(model, lambda: model(torch.randn(4, 64, device="cuda")).square().mean())


if __name__ == "__main__":
    {job.__name__: job for job in (cnn, embedding, attention, indexing, out_of_memory, compiled)}[sys.argv[1]]()
