#!/usr/bin/env python3
"""Compares the roofline of tidepool_torch with measured times: Kineto profiles with shapes, by class of operators.

Prints, for each profile, the kernels' time of the operators that the model covers, the model's time, and its error, in
all and by class. The efficiency of each class is fitted to the first profile; the others check it. Needs PyTorch (for its
table of devices); no GPU.

    tests/recording/times_table.py CALIBRATE.json.gz:v100 CHECK.json.gz:a100-40gb ...
"""

import argparse
import bisect
import collections
import gzip
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tracer" / "torch"))

from tidepool_torch.roofline import FLOOR_NS, TWO_PASSES, find_device  # noqa: E402

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


def work(name, shapes, sizes, outputs):
    """(class, operations, bytes) of an operator; None if the table does not cover it."""
    moved = sum(elements(shape) * size for shape, size in zip(shapes, sizes))
    if name in MATRIX:
        a, b = [shape for shape in shapes if len(shape) >= 2][-2:]
        size, made = sizes[0], math.prod(a[:-1]) * b[-1]
        return "matrix products", 2 * made * a[-1], moved + made * size
    if name == "aten::cudnn_convolution":
        image, filters = shapes[0], shapes[1]
        output = outputs.get((tuple(image), filters[0]))
        if output is None:
            return None
        return "convolutions", 2 * elements(output) * elements(filters[1:]), moved + elements(output) * sizes[0]
    if name == "aten::cudnn_convolution_backward_input":
        return "convolutions", 2 * elements(shapes[1]) * elements(shapes[2][1:]), 2 * moved
    if name == "aten::cudnn_convolution_backward_weight":
        gradient, image = shapes[1], shapes[2]
        filters = [key for key in outputs if key == (tuple(image), gradient[1])]
        taps = _TAPS.get((tuple(image), gradient[1])) if filters else None
        return ("convolutions", 2 * elements(gradient) * taps, moved) if taps else None
    if name.removeprefix("aten::") in TWO_PASSES:
        return "normalisation", 0, 2 * moved + elements(shapes[0]) * sizes[0]
    if name in ELEMENTWISE and shapes and elements(shapes[0]):
        return "element by element", 0, moved + ELEMENTWISE[name] * elements(shapes[0]) * sizes[0]
    return None


_TAPS = {}  # numbers in one filter, with the keys of convolutions()


def table(path, device, efficiency):
    """Prints the rows of a profile; returns the efficiency of each class."""
    operators = read(path)
    outputs = convolutions(operators)
    for name, shapes, _, _ in operators:
        if name == "aten::cudnn_convolution":
            _TAPS[tuple(shapes[0]), shapes[1][0]] = elements(shapes[1][1:])
    sums = collections.defaultdict(lambda: [0, 0.0, 0.0, 0])
    everything = sum(duration for *_, duration in operators)
    for name, shapes, sizes, duration in operators:
        found = work(name, shapes, sizes, outputs)
        if found is None:
            continue
        kind, flops, moved = found
        seconds = max(flops / device.float32, moved / device.bandwidth)
        row = sums[kind]
        row[0] += duration
        row[1] += FLOOR_NS + seconds * 1e9
        row[2] += FLOOR_NS + seconds * 1e9 / efficiency.get(kind, 1)
        row[3] += 1
    name = pathlib.Path(path).name
    for kind, (measured, peak, calibrated, count) in sorted(sums.items()):
        print(f"| {name} | {device.name} | {kind} | {count} | {measured / 1e6:.2f} | {peak / 1e6:.2f} | "
              f"{100 * (peak / measured - 1):+.0f} % | {calibrated / 1e6:.2f} | {100 * (calibrated / measured - 1):+.0f} % |")
    measured, peak, calibrated = (sum(row[i] for row in sums.values()) for i in range(3))
    print(f"| {name} | {device.name} | all of these: {100 * measured / max(1, everything):.0f} % of the kernels' time | "
          f"{sum(row[3] for row in sums.values())} | {measured / 1e6:.2f} | {peak / 1e6:.2f} | "
          f"{100 * (peak / max(1, measured) - 1):+.0f} % | {calibrated / 1e6:.2f} | "
          f"{100 * (calibrated / max(1, measured) - 1):+.0f} % |")
    return {kind: (row[1] - row[3] * FLOOR_NS) / max(1, row[0] - row[3] * FLOOR_NS) for kind, row in sums.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles", nargs="+", metavar="PROFILE:DEVICE")
    fitted = {}
    print("| profile | device | operators | calls | measured, ms | roofline, ms | error | with efficiencies, ms | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    for index, given in enumerate(parser.parse_args().profiles):
        path, _, name = given.rpartition(":")
        found = table(path, find_device(name), fitted)
        if index == 0:
            fitted = found
    print("\nefficiencies of the first profile: " + ", ".join(f"{kind} {value:.2f}" for kind, value in sorted(fitted.items())))


if __name__ == "__main__":
    main()
