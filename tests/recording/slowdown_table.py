#!/usr/bin/env python3
"""Measures how much longer a step takes while `tidepool record --torch` records it, and after that.

    PYTHON tests/recording/slowdown_table.py [--program build/tidepool]

For two loops on the CPU, one of small operators and one of convolutions, prints the median CPU time in ms of a step
without the recorder, of the five steps that are recorded by default, and of the steps after them. The last column is
the CPU time of 300 steps with the recorder, divided by the time without it.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

STEPS, RECORDED = 300, slice(2, 6)
LOOPS = ("small operators", "convolutions")


def job(loop):
    """Prints the CPU times of the steps, in ms."""
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
    times = []
    for _ in range(STEPS):
        begin = time.process_time()
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        times.append(1e3 * (time.process_time() - begin))
    print(json.dumps(times))


def times_of(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default="build/tidepool")
    parser.add_argument("--job", choices=LOOPS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.job:
        return job(asked.job)
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
