"""Three steps of a small model with DistributedDataParallel; torchrun starts it."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda())
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.randn(32, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
number = torch.tensor([rank + 1]).cuda()
dist.all_reduce(number)
print(f"rank {rank}: the sum is {number.item()}", flush=True)
objects = [None] * dist.get_world_size()
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": 0}, {"rank": 1}], objects
dist.barrier()
dist.destroy_process_group()
