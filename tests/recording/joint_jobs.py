"""Two training steps of a small GPT on several ranks; the first argument says how its work is divided.

    torchrun --nproc-per-node N joint_jobs.py KIND [--layers 8] [--width 1024] [--tokens 1024] [--batch 4] [--vocabulary 16384]

  ddp           every rank has the whole model, and gradients are averaged while backward runs
  accumulation  the same, for 4 micro-batches, of which only the last averages gradients
  fsdp2         parameters, gradients and optimizer state are divided over the ranks
  uneven        the same; a rank r has sequences of 1 - r / 8 of the tokens
  tensor        each layer is divided: the attention's heads, and the width of the feed-forward part
  1f1b          a stage of the layers on each rank, one micro-batch forward, one backward
  interleaved   the same with two stages on each rank
  zero3         DeepSpeed's stage 3
  experts       the feed-forward part of a layer is an expert on each rank; a linear layer chooses each token's expert.
                Gradients of the rest are added up over the ranks
  mesh          tensor parallelism on pairs of ranks, FSDP2 over the pairs
"""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("kind")
for name, value in {"layers": 8, "width": 1024, "tokens": 1024, "batch": 4, "vocabulary": 16384}.items():
    parser.add_argument("--" + name, type=int, default=value)
shape = parser.parse_args()
WIDTH, HEADS, MICRO = shape.width, shape.width // 64, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (-1, 64)).transpose(1, 2) for part in (self.q, self.k, self.v))
        return self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


class Exchange(torch.autograd.Function):
    """Sends rows to the ranks of a group and gets rows from them; the gradients go back."""

    @staticmethod
    def forward(ctx, rows, sends, gets):
        ctx.counts = sends, gets
        result = rows.new_empty(sum(gets), rows.shape[1])
        dist.all_to_all_single(result, rows.contiguous(), gets, sends)
        return result

    @staticmethod
    def backward(ctx, gradient):
        sends, gets = ctx.counts
        result = gradient.new_empty(sum(sends), gradient.shape[1])
        dist.all_to_all_single(result, gradient.contiguous(), sends, gets)
        return result, None, None


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.choose, self.own = nn.Linear(WIDTH, dist.get_world_size(), bias=False), FeedForward()

    def forward(self, x):
        rows = x.flatten(0, 1)
        share, chosen = self.choose(rows).softmax(-1).max(-1)
        order = chosen.argsort()
        counts = torch.bincount(chosen, minlength=dist.get_world_size())
        others = torch.empty_like(counts)
        dist.all_to_all_single(others, counts)
        sends, gets = counts.tolist(), others.tolist()
        done = Exchange.apply(self.own(Exchange.apply(rows[order], sends, gets)), gets, sends)
        return (torch.empty_like(done).index_copy(0, order, done) * share.unsqueeze(-1)).view_as(x)


class Block(nn.Module):
    def __init__(self, part=FeedForward):
        super().__init__()
        self.before, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.between, self.forward_part = nn.LayerNorm(WIDTH), part()

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.forward_part(self.between(x))


class Gpt(nn.Module):
    def __init__(self, part=FeedForward):
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, WIDTH)
        self.blocks = nn.ModuleList(Block(part) for _ in range(shape.layers))
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, shape.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


def loss_of(logits, tokens):
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())


def tokens_of(length=shape.tokens):
    return torch.randint(shape.vocabulary, (shape.batch, length), device="cuda")


def train(model, optimizer, length=shape.tokens):
    tokens = tokens_of(length)
    loss_of(model(tokens), tokens).backward()
    optimizer.step()
    optimizer.zero_grad()


def adam_of(model):
    """AdamW. Parameters that are divided over ranks have a group of their own, since an op takes one kind."""
    kinds = {}
    for each in model.parameters():
        kinds.setdefault(type(each.data), []).append(each)
    return torch.optim.AdamW([{"params": each} for each in kinds.values()])


def with_adam(model, *arguments):
    optimizer = adam_of(model)
    for _ in range(2):
        train(model, optimizer, *arguments)


def ddp():
    with_adam(nn.parallel.DistributedDataParallel(Gpt().cuda().bfloat16()))


def accumulation():
    model = nn.parallel.DistributedDataParallel(Gpt().cuda().bfloat16())
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        for part in range(MICRO):
            model.require_backward_grad_sync = part == MICRO - 1
            tokens = tokens_of()
            loss_of(model(tokens), tokens).backward()
        optimizer.step()
        optimizer.zero_grad()


def sharded(model, mesh=None):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def divided(model, mesh):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    plan = {"forward_part.up": ColwiseParallel(), "forward_part.down": RowwiseParallel(), "attention.out": RowwiseParallel(),
            **{f"attention.{name}": ColwiseParallel() for name in "qkv"}}
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    return model


def mesh_of(*sizes):
    return dist.init_device_mesh("cuda", sizes, mesh_dim_names=("data", "tensor")[-len(sizes):])


def pipeline(stages):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
    rank, ranks = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", torch.cuda.current_device())
    part = torch.empty(shape.batch, shape.tokens, WIDTH, device="meta", requires_grad=True)
    share = shape.layers // (stages * ranks)
    models = [nn.Sequential(*[Block() for _ in range(share)]).to(device) for _ in range(stages)]
    parts = [PipelineStage(model, rank + i * ranks, stages * ranks, device, input_args=part, output_args=part)
             for i, model in enumerate(models)]
    optimizer = torch.optim.AdamW([each for model in models for each in model.parameters()])
    loss = nn.functional.mse_loss
    schedule = (Schedule1F1B(parts[0], 2 * ranks, loss_fn=loss) if stages == 1
                else ScheduleInterleaved1F1B(parts, 2 * ranks, loss_fn=loss))
    for _ in range(2):
        batch = torch.randn(2 * ranks * shape.batch, shape.tokens, WIDTH, device=device)
        schedule.step(*([batch] if rank == 0 else []), **({"target": batch} if rank == ranks - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()


def zero3():
    import deepspeed
    settings = {"train_micro_batch_size_per_gpu": shape.batch, "bf16": {"enabled": True},
                "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}},
                "zero_optimization": {"stage": 3}}
    engine = deepspeed.initialize(model=Gpt(), config=settings)[0]
    for _ in range(2):
        tokens = tokens_of()
        engine.backward(loss_of(engine(tokens), tokens))
        engine.step()


def experts():
    model = Gpt(Experts).cuda().bfloat16()
    optimizer = adam_of(model)
    shared = [each for name, each in model.named_parameters() if ".own." not in name]
    for _ in range(2):
        tokens = tokens_of()
        loss_of(model(tokens), tokens).backward()
        gradients = torch.cat([each.grad.flatten() for each in shared])
        dist.all_reduce(gradients)
        for each, part in zip(shared, gradients.split([each.numel() for each in shared])):
            each.grad.copy_(part.view_as(each))
        optimizer.step()
        optimizer.zero_grad()


KINDS = {
    "ddp": ddp,
    "accumulation": accumulation,
    "fsdp2": lambda: with_adam(sharded(Gpt().cuda())),
    "uneven": lambda: with_adam(sharded(Gpt().cuda()), shape.tokens * (8 - dist.get_rank()) // 8),
    "tensor": lambda: with_adam(divided(Gpt().cuda().bfloat16(), mesh_of(dist.get_world_size()))),
    "1f1b": lambda: pipeline(1),
    "interleaved": lambda: pipeline(2),
    "zero3": zero3,
    "experts": experts,
    "mesh": lambda: (lambda mesh: with_adam(sharded(divided(Gpt().cuda(), mesh["tensor"]), mesh["data"])))(
        mesh_of(dist.get_world_size() // 2, 2)),
}

if __name__ == "__main__":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    KINDS[shape.kind]()
    dist.destroy_process_group()
