#!/usr/bin/env python3
"""Measures how much longer a step takes while `tidepool record --torch` records it, and after that.

    PYTHON tests/recording/slowdown_table.py [--program build/tidepool]

For two loops on the CPU, one of small operators and one of convolutions, prints the median CPU time in ms of a step
without the recorder, of the five steps that are recorded by default, and of later steps (from the eleventh on). The
last column is the CPU time of 300 steps with the recorder, divided by the time without it.

--others prints the time of a step of small operators in other ways of recording, divided by the time without: a
dispatch mode that does nothing, and PyTorch's own profilers. Of the profilers, only the execution trace observer knows
the storages of arguments.
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LIMIT_S = 3600  # of one command
STEPS, RECORDED = 300, slice(1, 6)  # recording begins when the first step ends
LOOPS = ("small operators", "convolutions")


def step_of(loop):
    """A step of a loop, as a function."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    if loop == LOOPS[0]:
        model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64))])
        batch = torch.randn(32, 64)
    else:
        model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2),
                              nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
        batch = torch.randn(32, 3, 32, 32)
        model(batch)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step


def measured(step, count):
    """The CPU times of `count` steps, in ms."""
    times = []
    for _ in range(count):
        begin = time.process_time()
        step()
        times.append(1e3 * (time.process_time() - begin))
    return times


def others():
    import torch
    from torch.profiler import ExecutionTraceObserver, profile
    from torch.utils._python_dispatch import TorchDispatchMode

    class Nothing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    @contextlib.contextmanager
    def execution_trace():
        with tempfile.TemporaryDirectory() as folder:
            observer = ExecutionTraceObserver().register_callback(f"{folder}/trace.json")
            observer.start()
            yield
            observer.stop()
            observer.unregister_callback()

    cpu = [torch.profiler.ProfilerActivity.CPU]
    ways = {"nothing": contextlib.nullcontext, "an empty dispatch mode": Nothing,
            "torch.profiler": lambda: profile(activities=cpu),
            "torch.profiler, shapes and memory": lambda: profile(activities=cpu, record_shapes=True, profile_memory=True),
            "ExecutionTraceObserver": execution_trace}
    step = step_of(LOOPS[0])
    measured(step, 10)
    times = {name: [] for name in ways}
    for _ in range(5):  # in turn, since other programs may be running
        for name, way in ways.items():
            with way():
                times[name] += measured(step, 20)
    print("| with | a step |\n|---|---|")
    plain = statistics.median(times["nothing"])
    for name, each in times.items():
        print(f"| {name} | {statistics.median(each) / plain:.1f}x |")


def times_of(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default="build/tidepool")
    parser.add_argument("--others", action="store_true", help="print the cost of other ways to see operators")
    parser.add_argument("--job", choices=LOOPS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.job:
        return print(json.dumps(measured(step_of(asked.job), STEPS)))
    if asked.others:
        return others()
    print(f"| steps of | without | recorded | later | {STEPS} steps |\n|---|---|---|---|---|")
    for loop in LOOPS:
        command = [sys.executable, __file__, "--job", loop]
        with tempfile.TemporaryDirectory() as folder:
            alone = times_of(*command)
            beside = times_of(asked.program.resolve(), "record", "--torch", "--no-gpu", "-o", f"{folder}/run.tide", "--", *command)
        plain, recorded, later = map(statistics.median, (alone[10:], beside[RECORDED], beside[10:]))
        print(f"| {loop} | {plain:.1f} | {recorded:.1f} ({recorded / plain:.1f}x) | {later:.1f} ({later / plain:.1f}x) | "
              f"{sum(beside) / sum(alone):.2f}x |", flush=True)


if __name__ == "__main__":
    main()
