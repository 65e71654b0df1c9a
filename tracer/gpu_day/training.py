"""Training a model of random weights on random data, one NVTX range for each iteration: what the captures run."""

import argparse
import contextlib
import time

import torch


def arguments(batch):
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--small", action="store_true", help="a model that a CPU trains in seconds, to try the script")
    return parser.parse_args()


@contextlib.contextmanager
def iteration(number, device):
    if device.startswith("cuda"):
        torch.cuda.nvtx.range_push(f"iteration {number}")
    yield
    if device.startswith("cuda"):
        torch.cuda.nvtx.range_pop()


def train(options, model, make_batch, make_loss):
    """make_batch(size, device) returns what make_loss(model, batch) takes."""
    torch.manual_seed(1)
    model = model.to(options.device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    batch = make_batch(options.batch, options.device)
    for number in range(options.iterations):
        start = time.perf_counter()
        with iteration(number, options.device):
            optimizer.zero_grad(set_to_none=True)
            loss = make_loss(model, batch)
            loss.backward()
            optimizer.step()
            value = loss.item()
        print(f"iteration {number}: loss {value:.6f}, {(time.perf_counter() - start) * 1e3:.1f} ms", flush=True)


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
