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

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", str(ROOT / "build" / "tidepool"))
sys.path.insert(0, str(ROOT / "tracer" / "torch"))

from tidepool_torch.devices import find_device  # noqa: E402
from tidepool_torch.kernel_times import LAUNCH, moving_seconds, product_seconds  # noqa: E402
from tidepool_torch.op_times import BATCH_NORMALISATION, CONVOLUTION  # noqa: E402

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
    """(operator, shapes, element sizes, ns of its kernels) of each operator that launched kernels."""
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
    """Shapes of outputs by (shape of the input, number of filters), from backward ops. Forward ops do not record them."""
    return {(tuple(shapes[2]), shapes[1][1]): shapes[1] for name, shapes, _, _ in operators
            if name == "aten::cudnn_convolution_backward_weight"}


def price(device, name, shapes, sizes, outputs):
    """(class, seconds) of an operator; None if the table does not cover it."""
    moved = sum(elements(shape) * size for shape, size in zip(shapes, sizes))

    def product(batch, m, n, k):
        return product_seconds(device, device.float32, sizes[0], batch, m, n, k)

    if name in MATRIX:
        a, b = [shape for shape in shapes if len(shape) >= 2][-2:]
        return "matrix products", product(math.prod(a[:-2]), a[-2], b[-1], a[-1])
    if name == "aten::cudnn_convolution":
        image, filters = shapes[0], shapes[1]
        output = outputs.get((tuple(image), filters[0]))
        if output is None:
            return None
        places = output[0] * math.prod(output[2:])
        return "convolutions", CONVOLUTION[False] * product(1, places, filters[0], elements(filters[1:]))
    if name == "aten::cudnn_convolution_backward_input":
        gradient, filters = shapes[1], shapes[2]
        places = gradient[0] * math.prod(gradient[2:])
        return "convolutions", CONVOLUTION[False] * product(1, places, elements(filters[1:]), filters[0])
    if name == "aten::cudnn_convolution_backward_weight":
        gradient, image = shapes[1], shapes[2]
        taps = _TAPS.get((tuple(image), gradient[1]))
        places = gradient[0] * math.prod(gradient[2:])
        return ("convolutions", CONVOLUTION[False] * product(1, gradient[1], taps, places)) if taps else None
    if "batch_norm" in name:
        return "normalisation", BATCH_NORMALISATION * moving_seconds(device, 2 * moved + elements(shapes[0]) * sizes[0])
    if name in ELEMENTWISE and shapes and elements(shapes[0]):
        return "element by element", moving_seconds(device, moved + ELEMENTWISE[name] * elements(shapes[0]) * sizes[0])
    return None


_TAPS = {}  # numbers in one filter, with the keys of convolutions()


def table(path, device):
    """Prints the rows of a profile."""
    operators = read(path)
    outputs = convolutions(operators)
    for name, shapes, _, _ in operators:
        if name == "aten::cudnn_convolution":
            _TAPS[tuple(shapes[0]), shapes[1][0]] = elements(shapes[1][1:])
    sums = collections.defaultdict(lambda: [0, 0.0, 0])
    everything = sum(duration for *_, duration in operators)
    for name, shapes, sizes, duration in operators:
        found = price(device, name, shapes, sizes, outputs)
        if found is None:
            continue
        kind, seconds = found
        row = sums[kind]
        row[0] += duration
        row[1] += (LAUNCH + seconds) * 1e9
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
