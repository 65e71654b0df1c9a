"""Runs three steps of a small network on "cuda" and records the allocator's history.

Arguments: the files to write the snapshot and the peak to.
"""

import sys

import torch

torch.cuda.memory._record_memory_history(max_entries=100_000)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
                            torch.nn.Linear(8 * 30 * 30, 500), torch.nn.GELU(), torch.nn.Linear(500, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
pixels = torch.randn(16, 3, 32, 32)
assert torch.equal(pixels.cuda().cpu(), pixels)  # copies are real, both ways
labels = torch.zeros(16, dtype=torch.long, device="cuda")
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(model(pixels.cuda()), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.memory._dump_snapshot(sys.argv[1])
with open(sys.argv[2], "w") as file:
    file.write(str(torch.cuda.max_memory_allocated()))
