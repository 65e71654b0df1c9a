#!/usr/bin/env python3
"""Compares the model of op times (tidepool_torch) with measured times, by class of operators. No GPU.

    tests/recording/times_table.py PROFILE.json.gz:v100 PROFILE.json.gz:a100-40gb ...
    tests/recording/times_table.py MEASURED.tide=DRY.tide ...

A Kineto profile with shapes says neither strides nor layouts, so its operators are priced by their shapes alone; those that
the table does not cover are left out. Two traces, one of a GPU and one of a dry run of the same job (record --dry --torch), are
compared in their last iterations, by operator; operators that take less than 1 % are added up.
"""

import argparse
import bisect
import collections
import gzip
import json
import math
import os
import pathlib
import subprocess
import sys

import torch
from op_times_table import calls_of, empty, price as model

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", str(ROOT / "build" / "tidepool"))
sys.path.insert(0, str(ROOT / "tracer" / "torch"))

from tidepool_torch.devices import find_device  # noqa: E402
from tidepool_torch.kernel_times import LAUNCH, moving_seconds  # noqa: E402
from tidepool_torch.op_times import BATCH_NORMALISATION  # noqa: E402

CONVOLUTION = "aten::cudnn_convolution"
TF32 = ("tensorop_s1688gemm", "tf32")  # in names of kernels
MATRIX = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}
# The number of tensors, each of the size of the first input, whose bytes an operator moves besides those of its inputs.
ELEMENTWISE = {"aten::add": 1, "aten::mul": 1, "aten::div": 1, "aten::sub": 1, "aten::relu": 1, "aten::clamp_min": 1,
               "aten::threshold_backward": 1, "aten::sigmoid": 1, "aten::sigmoid_backward": 1, "aten::add_": 1,
               "aten::mul_": 1, "aten::div_": 1, "aten::fill_": 0, "aten::copy_": 0, "aten::zero_": 0, "aten::relu_": 1,
               "aten::addcmul_": 1, "aten::addcdiv_": 1, "aten::sqrt": 1}
BYTES = {"float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "long": 8, "int": 4, "bool": 1,
         "unsigned char": 1}


def elements(shape):
    return math.prod(shape) if shape else 0


def read(path):
    """(operator, shapes, element sizes, ns of its kernels) of each operator that launched kernels. Sets whether products take
    TF32, as the names of kernels say."""
    torch.backends.cuda.matmul.allow_tf32 = False
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    operators = [event for event in events if event.get("cat") in ("cpu_op", "Operator") and "dur" in event]
    of_thread = collections.defaultdict(list)
    for operator in operators:
        of_thread[operator["tid"]].append(operator)
    for listed in of_thread.values():
        listed.sort(key=lambda event: (event["ts"], -event["dur"]))
    starts = {thread: [event["ts"] for event in listed] for thread, listed in of_thread.items()}
    launches = {event["args"]["correlation"]: event for event in events
                if event.get("cat", "").lower() in ("runtime", "cuda_runtime") and "correlation" in event.get("args", {})}
    times = collections.defaultdict(int)
    for event in events:
        if event.get("cat", "").lower() != "kernel":
            continue
        if any(mark in event["name"] for mark in TF32):
            torch.backends.cuda.matmul.allow_tf32 = True
        launch = launches.get(event["args"]["correlation"])
        thread = launch["tid"] if launch else None
        if thread not in of_thread:
            continue
        at = bisect.bisect_right(starts[thread], launch["ts"]) - 1
        while at >= 0 and launch["ts"] > of_thread[thread][at]["ts"] + of_thread[thread][at]["dur"]:
            at -= 1
        if at >= 0:
            times[thread, at] += event["dur"] * 1000
    found = []
    for (thread, at), duration in times.items():
        operator = of_thread[thread][at]
        types = operator["args"].get("Input type", [])
        shapes = operator["args"].get("Input Dims", operator["args"].get("Input dims", []))
        found.append((operator["name"], shapes, [BYTES.get(name, 0) for name in types], duration))
    return found


def convolutions(operators):
    """Shapes of (image, filters, result) of all convolutions. Those of results are in backward ops alone."""
    results = {(tuple(shapes[2]), shapes[1][1]): shapes[1] for name, shapes, _, _ in operators
               if name == CONVOLUTION + "_backward_weight"}
    found = []
    for name, shapes, _, _ in operators:
        if name == CONVOLUTION and len(shapes) > 1 and shapes[1] and (tuple(shapes[0]), shapes[1][0]) in results:
            found.append((shapes[0], shapes[1], results[tuple(shapes[0]), shapes[1][0]]))
    return found


def price_convolution(device, kind, shapes, known):
    """Nanoseconds of a convolution (kind ""), or of its gradient; None if not all of its shapes are known."""
    given = {"": lambda image, filters, result: [image, filters] == shapes[:2],
             "_backward_input": lambda image, filters, result: [result, filters] == shapes[1:3],
             "_backward_weight": lambda image, filters, result: [result, image] == shapes[1:3]}[kind]
    matches = [each for each in known if given(*each)]
    if not matches:
        return None
    image, filters, result = max(matches, key=matches.count)  # a profile does not say the stride
    shape = [[image[2] // result[2]] * 2, [filters[2] // 2] * 2, [1, 1], False, [0, 0], 1]
    if not kind:
        return model(device, calls_of(lambda: torch.convolution(empty(*image), empty(*filters), None, *shape)))
    mask = [kind == "_backward_input", kind == "_backward_weight", False]
    return model(device, calls_of(lambda: torch.ops.aten.convolution_backward(
        empty(*result), empty(*image), empty(*filters), None, *shape, mask)))


def price(device, name, shapes, sizes, known):
    """(class, seconds) of an operator; None if the table does not cover it."""
    moved = sum(elements(shape) * size for shape, size in zip(shapes, sizes))

    if name in MATRIX:
        matrices = [shape for shape in shapes if len(shape) >= 2][-2:]
        if len(matrices) < 2:
            return None
        kind = {2: torch.float16, 8: torch.float64}.get(sizes[0], torch.float32)
        a, b = (empty(*shape, dtype=kind) for shape in matrices)
        return "matrix products", model(device, calls_of(lambda: a @ b)) / 1e9
    if name.startswith(CONVOLUTION):
        ns = price_convolution(device, name.removeprefix(CONVOLUTION), shapes, known)
        return None if ns is None else ("convolutions", ns / 1e9)
    if "batch_norm" in name:
        seconds = moving_seconds(device, 2 * moved + elements(shapes[0]) * sizes[0])
        return "normalisation", LAUNCH + BATCH_NORMALISATION * seconds
    if name in ELEMENTWISE and shapes and elements(shapes[0]):
        made = 0 if name == "aten::clamp_min" and len(shapes) > 2 else ELEMENTWISE[name]  # its result may be an argument
        return "element by element", LAUNCH + moving_seconds(device, moved + made * elements(shapes[0]) * sizes[0])
    return None


def table(path, device):
    """Prints the rows of a profile."""
    operators = read(path)
    known = convolutions(operators)
    sums = collections.defaultdict(lambda: [0, 0.0, 0])
    everything = sum(duration for *_, duration in operators)
    for name, shapes, sizes, duration in operators:
        found = price(device, name, shapes, sizes, known)
        if found is None:
            continue
        kind, seconds = found
        row = sums[kind]
        row[0] += duration
        row[1] += seconds * 1e9
        row[2] += 1
    name = pathlib.Path(path).name
    measured, predicted, count = (sum(row[i] for row in sums.values()) for i in range(3))
    share = f"all of these: {100 * measured / max(1, everything):.0f} % of the kernels' time"
    for kind, (of_kind, model, calls) in [*sorted(sums.items()), (share, (measured, predicted, count))]:
        print(f"| {name} | {device.name} | {kind} | {calls} | {of_kind / 1e6:.2f} | {model / 1e6:.2f} | "
              f"{100 * (model / max(1, of_kind) - 1):+.0f} % |")


def of_last_iteration(trace):
    """operator -> [calls, ns] of the last iteration of a trace."""
    printed = subprocess.run([PROGRAM, "export", "--to", "jsonl", trace], check=True, capture_output=True, text=True).stdout
    sums = {}
    for line in printed.splitlines():
        record = json.loads(line)
        if record.get("mark") == "iteration":
            sums = {}
        elif "run" in record:
            row = sums.setdefault(record["run"], [0, 0])
            row[0] += 1
            row[1] += record["duration_ns"]
    return sums


def compare(measured, predicted):
    """Prints the rows of two traces."""
    one, other = of_last_iteration(measured), of_last_iteration(predicted)
    total = sum(ns for _, ns in one.values())
    rows = sorted({*one, *other}, key=lambda name: -one.get(name, (0, 0))[1])
    large = [name for name in rows if one.get(name, (0, 0))[1] >= total / 100]
    groups = [(name, [name]) for name in large] + [("others", [name for name in rows if name not in large]), ("all", rows)]
    for kind, names in groups:
        (calls, ns), (_, model) = ([sum(of.get(name, (0, 0))[i] for name in names) for i in range(2)] for of in (one, other))
        print(f"| {pathlib.Path(measured).name} | | {kind} | {calls} | {ns / 1e6:.2f} | {model / 1e6:.2f} | "
              f"{100 * (model / max(1, ns) - 1):+.0f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="+", metavar="PROFILE:DEVICE or MEASURED=DRY")
    print("| profile | device | operators | calls | measured, ms | predicted, ms | error |")
    print("|---|---|---|---|---|---|---|")
    for given in parser.parse_args().profiles:
        if "=" in given:
            compare(*given.split("="))
            continue
        path, _, name = given.rpartition(":")
        table(path, find_device(name))


if __name__ == "__main__":
    main()
