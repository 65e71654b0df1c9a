"""Three iterations of each Llama-2-7B slice on all ranks, as Galvatron's memory profiler runs it; prints the memory.

    torchrun --nproc-per-node 8 galvatron_job.py PP,TP,VOCABULARY_TP,CHECKPOINT,LAYERS,BATCH,TOKENS...

A slice is the model with LAYERS layers, divided over the ranks in one way; each argument is one. Layers are divided
over tensor-parallel groups with sequence parallelism (Korthikanti et al. 2022, section 4.2), and over the other ranks
of a stage with FSDP (FULL_SHARD, parameters in fp32, computation and reduction in bf16); embedding and output
projection have a tensor-parallel degree of their own. There is one micro-batch, and a pipeline sends it
through all stages before it comes back. The first and the last rank print a line of JSON for each slice: MiB that are
allocated before forward, after forward, after backward, and at most in between (the definitions of Galvatron's
RuntimeProfiler). They are those of the third iteration, the second one that begins with the optimizer's state.
"""
import argparse
import collections
import functools
import gc
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision

HIDDEN, HEADS, FEED_FORWARD, VOCABULARY = 4096, 32, 11008, 32000
HEAD = HIDDEN // HEADS
buffers = {}
Slice = collections.namedtuple("Slice", "pp tp vocabulary_tp checkpoint layers batch tokens")


def gathered(x, group):
    """All parts of a sequence, in a buffer that all layers share and that stays (Megatron's global memory buffer)."""
    size = x.numel() * group.size()
    if buffers.get(x.dtype) is None or buffers[x.dtype].numel() < size:
        buffers[x.dtype] = torch.empty(size, dtype=x.dtype, device="cuda")
    whole = buffers[x.dtype][:size].view(x.shape[0] * group.size(), *x.shape[1:])
    dist.all_gather_into_tensor(whole, x, group=group)
    return whole


def collected(x, group):
    """All parts, in a new tensor."""
    whole = torch.empty(x.shape[0] * group.size(), *x.shape[1:], dtype=x.dtype, device="cuda")
    dist.all_gather_into_tensor(whole, x.contiguous(), group=group)
    return whole


def reduced(x, group):
    part = torch.empty(x.shape[0] // group.size(), *x.shape[1:], dtype=x.dtype, device="cuda")
    dist.reduce_scatter_tensor(part, x.contiguous(), group=group)
    return part


class Product(torch.autograd.Function):
    """x W^T. With a group, x is this rank's part of the sequence, and W has only the rows for this rank's columns of x W^T."""

    @staticmethod
    def forward(ctx, x, weight, group):
        ctx.save_for_backward(x, weight)
        ctx.group = group
        return torch.matmul(gathered(x, group) if group else x, weight.t())

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        whole = gathered(x, ctx.group) if ctx.group else x
        of_input = gradient.matmul(weight)
        if ctx.group:
            of_input = reduced(of_input, ctx.group)
        of_weight = gradient.flatten(0, 1).t().matmul(whole.flatten(0, 1))
        return of_input, of_weight, None


class ReduceScatter(torch.autograd.Function):
    """Sums x over all ranks; each rank keeps a part of the sequence."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return reduced(x, group)

    @staticmethod
    def backward(ctx, gradient):
        return collected(gradient, ctx.group), None


def exchanged(x, group, to_sequence):
    """From whole sequences of one rank's batch to parts of the sequences of the group's batch, or back."""
    x = x.transpose(0, 1) if to_sequence else x
    whole = collected(x, group).transpose(0, 1)
    part = whole.shape[0] // group.size()
    own = whole[part * group.rank():part * (group.rank() + 1)]
    return own.contiguous() if to_sequence else own.transpose(0, 1).contiguous()


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, to_sequence):
        ctx.arguments = group, to_sequence
        return exchanged(x, group, to_sequence)

    @staticmethod
    def backward(ctx, gradient):
        group, to_sequence = ctx.arguments
        return exchanged(gradient, group, not to_sequence), None, None


class Rotation(torch.autograd.Function):
    """Rotary position embedding (Su et al. 2021, section 3.2.2). Only the angles are kept."""

    @staticmethod
    def forward(ctx, x, angles):
        ctx.save_for_backward(angles)
        return rotated(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype))

    @staticmethod
    def backward(ctx, gradient):
        angles, = ctx.saved_tensors
        return rotated(gradient, angles.cos().to(gradient.dtype), -angles.sin().to(gradient.dtype)), None


def rotated(x, cosine, sine):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1).mul_(sine).addcmul_(x, cosine)


class RootMeanSquare(torch.autograd.Function):
    """RMSNorm (Zhang and Sennrich 2019, equation 4); the input is kept, and one number for each token."""

    @staticmethod
    def forward(ctx, x, scale):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float)
        inverse = length.square_().div_(HIDDEN).add_(1e-5).rsqrt_()
        ctx.save_for_backward(x, scale, inverse)
        return (x * scale).mul_(inverse)

    @staticmethod
    def backward(ctx, gradient):
        x, scale, inverse = ctx.saved_tensors
        of_scale = (gradient * x).mul_(inverse).sum((0, 1))
        of_input = gradient * scale
        along = (of_input * x).sum(-1, keepdim=True).mul(inverse.pow(3) / HIDDEN).to(x.dtype)
        return of_input.mul_(inverse).addcmul_(x, along, value=-1), of_scale


class SwiGlu(torch.autograd.Function):
    """silu(a) b (Shazeer 2020), with a and b side by side; the input is kept, and nothing but results is allocated."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        first, second = x.chunk(2, -1)
        return nn.functional.silu(first).mul_(second)

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        first, second = x.chunk(2, -1)
        result = torch.empty_like(x)
        of_first, of_second = result.chunk(2, -1)
        torch.mul(gradient, second, out=of_first)
        torch.ops.aten.silu_backward.grad_input(of_first, first, grad_input=of_first)
        torch.ops.aten.silu.out(first, out=of_second)
        of_second.mul_(gradient)
        return result


class CrossEntropy(torch.autograd.Function):
    """Cross entropy of logits whose columns are divided over a group; the softmax is kept (Shoeybi et al. 2019, section
    3)."""

    @staticmethod
    def forward(ctx, logits, labels, group):
        largest = logits.max(-1)[0]
        dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
        softmax = logits - largest.unsqueeze(-1)
        first = group.rank() * logits.shape[-1]
        outside = (labels < first) | (labels >= first + logits.shape[-1])
        own = (labels - first).masked_fill_(outside, 0)
        chosen = softmax.gather(-1, own.unsqueeze(-1)).squeeze(-1).masked_fill_(outside, 0)
        dist.all_reduce(chosen, group=group)
        total = softmax.exp_().sum(-1)
        dist.all_reduce(total, group=group)
        softmax.div_(total.unsqueeze(-1))
        ctx.save_for_backward(softmax, outside, own)
        return total.log() - chosen

    @staticmethod
    def backward(ctx, gradient):
        softmax, outside, own = ctx.saved_tensors
        changed = softmax.scatter_add(-1, own.unsqueeze(-1), (outside.to(softmax.dtype) - 1).unsqueeze(-1))
        return changed * gradient.unsqueeze(-1), None, None


def weight(rows, columns):
    return nn.Parameter(torch.empty(rows, columns, device="cuda"))


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(HIDDEN, device="cuda"))

    def forward(self, x):
        return RootMeanSquare.apply(x, self.weight)


class Embedding(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.group, self.weight = group, weight(VOCABULARY // group.size(), HIDDEN)

    def forward(self, tokens):
        if self.group.size() == 1:
            return nn.functional.embedding(tokens, self.weight).transpose(0, 1).contiguous()
        first = self.group.rank() * len(self.weight)
        outside = (tokens < first) | (tokens >= first + len(self.weight))
        found = nn.functional.embedding((tokens - first).masked_fill_(outside, 0), self.weight)
        found = found.masked_fill(outside.unsqueeze(-1), 0)
        return ReduceScatter.apply(found.transpose(0, 1).contiguous(), self.group)


class Layer(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.group = group if group.size() > 1 else None
        size = group.size()
        self.before, self.between = Norm(), Norm()
        self.qkv, self.out = weight(3 * HIDDEN // size, HIDDEN), weight(HIDDEN, HIDDEN // size)
        self.up, self.down = weight(2 * FEED_FORWARD // size, HIDDEN), weight(HIDDEN, FEED_FORWARD // size)

    def row(self, x, matrix):
        product = Product.apply(x, matrix, None)
        return ReduceScatter.apply(product, self.group) if self.group else product

    def attention(self, x):
        qkv = Product.apply(x, self.qkv, self.group)
        if self not in buffers:
            steps = torch.arange(0, HEAD, 2, device="cuda") / HEAD
            angles = torch.outer(torch.arange(len(qkv), device="cuda").float(), 10000.0 ** -steps)
            buffers[self] = torch.cat((angles, angles), -1)[:, None, None, :]
        q, k, v = qkv.unflatten(-1, (-1, 3 * HEAD)).split(HEAD, -1)
        parts = (Rotation.apply(q, buffers[self]), Rotation.apply(k, buffers[self]), v)
        del qkv, q, k, v
        q, k, v = (part.transpose(0, 1).contiguous().transpose(1, 2) for part in parts)
        del parts
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.row(attended.permute(2, 0, 1, 3).flatten(2).contiguous(), self.out)

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.row(SwiGlu.apply(Product.apply(self.between(x), self.up, self.group)), self.down)


class Head(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.group, self.weight = group, weight(VOCABULARY // group.size(), HIDDEN)

    def forward(self, x, labels):
        logits = Product.apply(x, self.weight, self.group if self.group.size() > 1 else None)
        return CrossEntropy.apply(logits, labels.t().contiguous(), self.group).mean()


class Ranks:
    """Groups of this rank's stage. Ranks of a tensor-parallel group are consecutive; those of a data-parallel group are as far
    apart as a tensor-parallel group is large."""

    def __init__(self, stages):
        self.rank, self.size = dist.get_rank(), dist.get_world_size() // stages
        self.stage = self.rank // self.size

    def make(self, groups):
        mine = None
        for members in groups:
            group = dist.new_group(members)
            mine = group if self.rank in members else mine
        return mine

    @functools.lru_cache(None)
    def tensor(self, degree):
        return self.make([list(range(first, first + degree)) for first in range(0, dist.get_world_size(), degree)])

    @functools.lru_cache(None)
    def data(self, degree):
        return self.make([list(range(stage + first, stage + self.size, degree))
                          for stage in range(0, dist.get_world_size(), self.size) for first in range(degree)])


class Stage(nn.Module):
    """The modules of one stage, in order."""

    def __init__(self, options, ranks):
        super().__init__()
        self.first, self.last = ranks.stage == 0, ranks.stage == options.pp - 1
        self.exchange = ranks.tensor(options.tp) if options.tp > options.vocabulary_tp else None
        precision = MixedPrecision(torch.bfloat16, torch.bfloat16, torch.bfloat16, cast_root_forward_inputs=False)
        options_of = {"mixed_precision": precision, "device_id": torch.cuda.current_device()}

        def wrapped(module, degree):
            return FullyShardedDataParallel(module, process_group=ranks.data(degree), **options_of)

        other = options.vocabulary_tp
        ranks.tensor(other)
        ranks.data(other), ranks.data(options.tp)
        self.embedding = wrapped(Embedding(ranks.tensor(other)), other) if self.first else None
        layers = [Layer(ranks.tensor(options.tp)) for _ in range(options.layers // options.pp)]
        if options.checkpoint:
            layers = [checkpoint_wrapper(layer, CheckpointImpl.REENTRANT) for layer in layers]
        self.layers = nn.ModuleList(wrapped(layer, options.tp) for layer in layers)
        self.norm = wrapped(Norm(), other) if self.last else None
        self.head = wrapped(Head(ranks.tensor(other)), other) if self.last else None

    def forward(self, x, labels):
        if self.first:
            x = self.embedding(x)
            x = Exchange.apply(x, self.exchange, True) if self.exchange else x
        for layer in self.layers:
            x = layer(x)
        if not self.last:
            return x
        x = Exchange.apply(x, self.exchange, False) if self.exchange else x
        return self.head(self.norm(x), labels)


def mebibytes(count):
    return count / 2**20


def iteration(model, options, ranks, batch):
    """MiB at the points at which the profiler reads memory. model: a wrapped Stage."""
    stage = model.module
    peers = ranks.rank - ranks.size, ranks.rank + ranks.size
    torch.cuda.reset_peak_memory_stats()
    said = {"before": mebibytes(torch.cuda.memory_allocated())}
    x = batch
    if not stage.first:
        shape = options.tokens // options.tp, options.batch * options.tp // ranks.size, HIDDEN
        x = torch.empty(shape, dtype=torch.bfloat16, device="cuda", requires_grad=True)
        dist.recv(x.data, peers[0])
    result = model(x, batch)
    if not stage.last:
        dist.send(result.detach(), peers[1])
    said["forward"] = mebibytes(torch.cuda.memory_allocated())
    gradient = None
    if not stage.last:
        gradient = torch.empty_like(result)
        dist.recv(gradient, peers[1])
    result.backward(gradient)
    if not stage.first:
        dist.send(x.grad, peers[0])
    del result, x, gradient
    said["backward"], said["peak"] = map(mebibytes, (torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()))
    return said


def run(options):
    """Three iterations of a slice; memory in the last one."""
    ranks = Ranks(options.pp)
    model = FullyShardedDataParallel(Stage(options, ranks), process_group=ranks.data(options.vocabulary_tp),
                                     device_id=torch.cuda.current_device())
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    for _ in range(3):
        own = options.batch * options.vocabulary_tp // ranks.size
        batch = torch.zeros(own, options.tokens, dtype=torch.long, device="cuda")
        said = iteration(model, options, ranks, batch)
        optimizer.step()
        optimizer.zero_grad()
    for parameter in model.parameters():  # hooks of FSDP keep them alive
        parameter.untyped_storage().resize_(0)
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slices", nargs="+", help="PP,TP,VOCABULARY_TP,CHECKPOINT,LAYERS,BATCH,TOKENS")
    slices = parser.parse_args().slices
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    for name in slices:
        said = run(Slice(*map(int, name.split(","))))
        if dist.get_rank() in (0, dist.get_world_size() - 1):
            print(json.dumps({"slice": name, "rank": dist.get_rank(), **said}), flush=True)
        gc.collect()
        buffers.clear()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
