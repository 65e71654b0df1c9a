"""Two steps of a pipeline with a stage on each rank, by the 1F1B schedule."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

parser = argparse.ArgumentParser()
for name, value in {"layers": 3, "width": 2048, "tokens": 1024, "micro-batches": 16}.items():
    parser.add_argument("--" + name, type=int, default=value)
shape = parser.parse_args()

rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
dist.init_process_group()
with device:
    layers = nn.Sequential(*[nn.TransformerEncoderLayer(shape.width, 16, 4 * shape.width, dropout=0.0, batch_first=True)
                             for _ in range(shape.layers)])
optimizer = torch.optim.AdamW(layers.parameters())
# The input and output of a stage for each micro-batch. Without them, stages send each other the shapes (objects.py).
part = torch.empty(1, shape.tokens, shape.width, device="meta", requires_grad=True)
stage = PipelineStage(layers, rank, dist.get_world_size(), device, input_args=part, output_args=part)
schedule = Schedule1F1B(stage, shape.micro_batches, loss_fn=nn.functional.mse_loss)
for _ in range(2):
    batch = torch.randn(shape.micro_batches, shape.tokens, shape.width, device=device)
    if rank == 0:
        schedule.step(batch)
    elif rank == dist.get_world_size() - 1:
        schedule.step(target=batch)
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
