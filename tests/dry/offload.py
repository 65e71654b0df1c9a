"""Two steps of a model that is sharded with FSDP2; parameters, gradients and the optimizer are on the host."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl")
model = nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range(6)])
for layer in model:
    fully_shard(layer, offload_policy=CPUOffloadPolicy())
fully_shard(model, offload_policy=CPUOffloadPolicy())
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    assert torch.cuda.memory_allocated() == 0
dist.destroy_process_group()
