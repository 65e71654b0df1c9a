"""Three steps of a small network on "cuda"; writes the most bytes that PyTorch's allocator reserved to a file."""

import sys

import torch

model = torch.nn.Sequential(torch.nn.Linear(500, 2000), torch.nn.GELU(), torch.nn.Linear(2000, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
labels = torch.zeros(4000, dtype=torch.long, device="cuda")
for _ in range(3):
    torch.nn.functional.cross_entropy(model(torch.randn(4000, 500).cuda()), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
with open(sys.argv[1], "w") as file:
    file.write(str(torch.cuda.max_memory_reserved()))
