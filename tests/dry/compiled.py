"""Runs three steps of a compiled network on "cuda", with a kernel of its own in Triton that tunes itself. Prints the allocator's
peak, in bytes."""

import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"block": block}) for block in (128, 256, 512)], key=["count"])
@triton.jit
def doubled(source, target, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(target + at, tl.load(source + at, mask=at < count) * 2, mask=at < count)


model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.LayerNorm(1024),
                            torch.nn.Linear(1024, 250)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
compiled = torch.compile(model)
batch = torch.randn(512, 256, device="cuda")
twice = torch.empty_like(batch)
for _ in range(3):
    doubled[lambda meta: (triton.cdiv(batch.numel(), meta["block"]),)](batch, twice, batch.numel())
    compiled(twice).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
assert doubled.best_config.kwargs == {"block": 128}
print(torch.cuda.max_memory_allocated())
