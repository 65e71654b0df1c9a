"""A backward pass whose thread releases a Python object while Python ends, as on a busy machine."""
import time

import torch


class Slow:
    """A callback at the end of a backward pass. The pass releases it in its own thread, after backward() has returned."""

    def __call__(self):
        pass

    def __del__(self):
        for _ in range(1000):
            time.sleep(0.001)


class QueueSlow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        torch.autograd.Variable._execution_engine.queue_callback(Slow())
        return gradient * 2


x = torch.zeros(1000, device="cuda", requires_grad=True)
for _ in range(3):  # in most of these passes, backward() returns before the release
    QueueSlow.apply(x).sum().backward()
print("done", flush=True)
