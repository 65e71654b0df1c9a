"""Two steps of a GPT that is sharded over all ranks with FSDP2; 1.4 billion parameters, unless its shape is given."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

parser = argparse.ArgumentParser()
for name, value in {"layers": 24, "width": 2048, "heads": 16, "vocabulary": 50304, "tokens": 1024, "batch": 2}.items():
    parser.add_argument("--" + name, type=int, default=value)
shape = parser.parse_args()
WIDTH, HEADS = shape.width, shape.heads


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1))
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(shape.vocabulary, WIDTH), nn.Embedding(shape.tokens, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(shape.layers))
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, shape.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group()
with torch.device("meta"):
    model = Gpt()
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for block in model.blocks:
    fully_shard(block, mp_policy=policy)
fully_shard(model, mp_policy=policy)
model.to_empty(device="cuda")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    tokens = torch.randint(shape.vocabulary, (shape.batch, shape.tokens), device="cuda")
    logits = model(tokens)
    nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
