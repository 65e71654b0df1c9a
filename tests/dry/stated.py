"""Jobs on "cuda" whose memory a replay of one step does not show. Prints the most bytes that PyTorch reserved.

graphs  a CUDA graph, and so a private pool, for each input size, largest first
leak    outputs of a loop without torch.no_grad() are kept after training
side    the model is built on a stream that is used once
pool    an evaluation in a MemPool that stays, and one in a pool that is used when memory runs out
splits  a setting of the allocator decides
infer   inference only
decode  inference with a cache that grows with each token
pinned  training with 48 MiB of pinned memory, for which PyTorch pins 64
graphed training whose forward and backward passes are CUDA graphs
empty   nothing runs on the device
told    a tensor of half of the memory that the device says it has
share   the job sets its share of the device's memory, and the allocator's settings
"""

import sys

import torch

kind = sys.argv[1]


def layers(count, width):
    return torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(count)]).cuda()


def train(model, rows, width, steps=3):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(rows, width, device="cuda")).sum().backward()
        optimizer.step()


if kind == "graphs":
    model = layers(4, 1024).requires_grad_(False)
    model(torch.zeros(8192, 1024, device="cuda"))
    kept = []
    for rows in (8192, 4096, 2048, 1024):
        x, graph = torch.zeros(rows, 1024, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept.append((graph, x, model(x)))
elif kind == "leak":
    model = layers(8, 1024)
    train(model, 1024, 1024)
    kept = [model(torch.randn(4096, 1024, device="cuda")) for _ in range(4)]
elif kind == "side":
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        model = layers(4, 1024)
        flat = [torch.empty(16 << 20, device="cuda") for _ in range(3)]
        del flat
    torch.cuda.current_stream().wait_stream(stream)
    train(model, 8192, 1024)
elif kind == "pool":
    model = layers(4, 1024)
    pools = torch.cuda.MemPool(), torch.cuda.MemPool(use_on_oom=True)
    for pool, rows in zip(pools, (8192, 4096)):
        with torch.cuda.use_mem_pool(pool), torch.no_grad():
            model(torch.randn(rows, 1024, device="cuda"))
    train(model, 8192, 1024)
elif kind == "splits":
    keep = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda")]
    for _ in range(21):
        a = torch.zeros(91 << 20, dtype=torch.uint8, device="cuda")
        b = torch.zeros(91 << 19, dtype=torch.uint8, device="cuda")
        keep.append(torch.zeros(2 << 20, dtype=torch.uint8, device="cuda"))
        del a, b
elif kind == "infer":
    with torch.inference_mode():
        model = layers(4, 1024)
        for _ in range(3):
            model(torch.randn(1024, 1024, device="cuda"))
elif kind == "decode":
    with torch.inference_mode():
        model, cache = layers(4, 1024), torch.zeros(64, 0, 1024, device="cuda")
        for _ in range(64):
            cache = torch.cat([cache, model(torch.randn(64, 1, 1024, device="cuda"))], 1)
elif kind == "graphed":
    model = layers(4, 1024)
    train(torch.cuda.make_graphed_callables(model, (torch.randn(4096, 1024, device="cuda"),)), 4096, 1024)
elif kind == "pinned":
    host = torch.empty(48 << 20, dtype=torch.uint8, pin_memory=True)
    train(layers(1, 256), 256, 256)
elif kind == "share":
    torch.cuda.memory._set_allocator_settings("garbage_collection_threshold:0.99")
    torch.cuda.set_per_process_memory_fraction(0.5)
    kept = [torch.zeros(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(6)]
elif kind == "told":
    free, total = torch.cuda.mem_get_info()
    assert total == torch.cuda.get_device_properties(0).total_memory and 0 < total - free < 1 << 30
    kept = torch.empty(total // 2, dtype=torch.uint8, device="cuda")
elif kind == "empty":
    kept = [torch.empty(rows << 20, dtype=torch.uint8, device="cuda") for rows in (64, 91, 3)]
print(torch.cuda.max_memory_reserved())
