"""Small jobs that questions.py records: probe.py plain | graph | workers | launches. Prints JSON."""

import json
import sys
import time

import torch


def step(model, batch):
    loss = model(batch).square().mean()
    loss.backward()
    return loss


def plain():
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
    batch = torch.randn(256, 1024, device="cuda")
    for _ in range(5):
        step(model, batch)
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return {"used_bytes": total - free, "reserved_bytes": torch.cuda.memory_reserved()}


def graph():
    model = torch.nn.Linear(1024, 1024).cuda()
    batch = torch.randn(256, 1024, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        model(batch)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(captured):
        model(batch).relu_()
    for _ in range(10):
        captured.replay()
    torch.cuda.synchronize()
    return {}


def workers():
    data = torch.utils.data.TensorDataset(torch.randn(64, 16))
    total = torch.zeros(16, device="cuda")
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2):
        total += batch.cuda().sum(0)
    torch.cuda.synchronize()
    return {"sum": float(total.sum())}


def launches(count=10000):
    x = torch.zeros(1024, device="cuda")
    for _ in range(100):
        x.add_(1)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        x.add_(1)
    host = time.perf_counter() - start
    torch.cuda.synchronize()
    return {"us_per_launch": host / count * 1e6, "us_per_launch_with_device": (time.perf_counter() - start) / count * 1e6}


if __name__ == "__main__":
    result = {"plain": plain, "graph": graph, "workers": workers, "launches": launches}[sys.argv[1]]()
    print(json.dumps(result | {"end": time.time()}), flush=True)
