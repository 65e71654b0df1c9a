"""Two ranks exchange Python objects as tensors on their devices, and run a pipeline whose stages send each other shapes."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

WIDTH, MICRO_BATCHES = 256, 4

rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
dist.init_process_group("nccl")
objects = [{"epochs": 3}] if rank == 0 else [None]
dist.broadcast_object_list(objects, src=0)
assert objects == [{"epochs": 3}], objects
objects = ["shapes"] if rank == 0 else [None]
if rank == 0:
    dist.send_object_list(objects, dst=1)
else:
    dist.recv_object_list(objects, src=0)
assert objects == ["shapes"], objects
offset = torch.tensor([5], device=device)
offset += torch.tensor([3], device=device)  # in place
assert offset.item() == 8, offset

layers = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)).to(device)
schedule = Schedule1F1B(PipelineStage(layers, rank, 2, device), MICRO_BATCHES, loss_fn=nn.functional.mse_loss)
batch = torch.randn(MICRO_BATCHES * 8, WIDTH, device=device)
for _ in range(2):
    if rank == 0:
        schedule.step(batch)
    else:
        schedule.step(target=batch)
dist.destroy_process_group()
