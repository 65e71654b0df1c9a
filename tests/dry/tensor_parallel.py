"""Two steps of a tensor-parallel layer pair; ZeroRedundancyOptimizer divides the optimizer's state over the ranks."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

WIDTH, BATCH = 256, 8

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group()
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH, bias=False))
layers = parallelize_module(layers.cuda(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
head = nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)]).cuda()  # on every rank
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
divided = ZeroRedundancyOptimizer(head.parameters(), torch.optim.AdamW)
for _ in range(2):
    head(layers(torch.randn(BATCH, WIDTH, device="cuda"))).sum().backward()
    optimizer.step()
    divided.step()
    head.zero_grad()
    layers.zero_grad()
dist.destroy_process_group()
