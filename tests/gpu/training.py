"""The job that the captures record: trains a model with random weights on random data, one NVTX range per iteration."""

import argparse
import collections
import contextlib
import json
import os
import statistics
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # makes cuBLAS deterministic

import torch

SETTLED = 4  # iterations until the optimizer has its state and a plan is executed completely


def arguments(batch):
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--small", action="store_true", help="a model that a CPU trains in seconds, to try the script")
    parser.add_argument("--deterministic", action="store_true", help="the same losses each time, to the bit")
    parser.add_argument("--memory-limit", type=int, metavar="BYTES",
                        help=f"of the device, for PyTorch, from iteration {SETTLED} on")
    parser.add_argument("--offload", action="store_true", help="PyTorch keeps what the backward pass needs on the host")
    parser.add_argument("--events", metavar="FILE", help="write what PyTorch's allocator did, as JSON")
    torch.manual_seed(1)  # also seeds the weights of the model, which is made next
    return parser.parse_args()


@contextlib.contextmanager
def iteration(number, device):
    if device.startswith("cuda"):
        torch.cuda.nvtx.range_push(f"iteration {number}")
    yield
    if device.startswith("cuda"):
        torch.cuda.nvtx.range_pop()


def train(options, model, make_batch, make_loss):
    """make_batch(size, device) returns the batch that make_loss(model, batch) takes. The last line printed is JSON: the
    median time in ms of the iterations after the first SETTLED and, on a GPU, the peaks of PyTorch's allocator in them, in
    bytes. If there are no more iterations than that, all count."""
    on_gpu = options.device.startswith("cuda")
    if options.deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.deterministic = True
        for fused in ("cudnn", "flash", "mem_efficient"):  # kernels of attention whose sums have no fixed order
            getattr(torch.backends.cuda, f"enable_{fused}_sdp")(False)
    if options.events:
        torch.cuda.memory._record_memory_history(context=None, max_entries=1_000_000)
    model = model.to(options.device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    batch = make_batch(options.batch, options.device)
    times = []
    for number in range(options.iterations):
        if on_gpu and number == SETTLED:
            torch.cuda.reset_peak_memory_stats()
            if options.memory_limit:
                torch.cuda.empty_cache()
                total = torch.cuda.get_device_properties(0).total_memory
                torch.cuda.set_per_process_memory_fraction(min(1.0, options.memory_limit / total))
        start = time.perf_counter()
        with iteration(number, options.device):
            optimizer.zero_grad(set_to_none=True)
            with torch.autograd.graph.save_on_cpu(pin_memory=on_gpu) if options.offload else contextlib.nullcontext():
                loss = make_loss(model, batch)
            loss.backward()
            optimizer.step()
            value = loss.item()
        times.append((time.perf_counter() - start) * 1e3)
        print(f"iteration {number}: loss {value:.6f} {value.hex()}, {times[-1]:.1f} ms", flush=True)
    result = {"median_ms": statistics.median(times[SETTLED:] or times)}
    if on_gpu:
        result["allocated_peak_bytes"] = torch.cuda.max_memory_allocated()
        result["reserved_peak_bytes"] = torch.cuda.max_memory_reserved()
    print(json.dumps(result), flush=True)
    if options.events:
        write_events(options.events, result)


def write_events(path, result):
    """Writes each event of PyTorch's allocator as [action, size], the sizes of its segments, and the peaks."""
    snapshot = torch.cuda.memory._snapshot()
    events = [[event["action"], event["size"]] for events in snapshot["device_traces"] for event in events]
    segments = sorted(segment["total_size"] for segment in snapshot["segments"])
    counts = collections.Counter(action for action, _ in events)
    print(f"{len(events)} events: {dict(counts)}; {len(segments)} segments of {sum(segments)} bytes")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"events": events, "segments": segments} | result, file)


def images(classes, side):
    def make(size, device):
        return torch.randn(size, 3, side, side, device=device), torch.randint(classes, (size,), device=device)

    return make


def classify(model, batch):
    return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])


def tokens(vocabulary, length):
    def make(size, device):
        return torch.randint(vocabulary, (size, length), device=device)

    return make
