#!/usr/bin/env python3
"""Predicts the time of GPT training iterations on several A100 of one node, and compares the predictions with measured
times.

    gpt_iteration.py ROWS.csv ALL_REDUCE.csv.gz [--seed N] [--check OTHER.csv] [--worst N] [--constants]

ROWS.csv has the columns of vTrain's ground_truth_single.csv: gpus, global_batch, micro_batch, hidden, heads, layers,
seq, tp, dp, pp, iter_ms. A tenth of its rows, drawn with --seed, calibrates the constants of the model; the error is
that of the other rows (and of all rows of --check, which calibrate nothing). ALL_REDUCE.csv.gz has measured
all-reduces: gpu, n_gpus, size_bytes, time_in_place_ns.

The model: Megatron's GPT in fp16 with activation checkpointing of every layer, tensor parallelism, pipeline parallelism
with the 1F1B schedule, data parallelism. The time of a layer is the host's time to launch it or the GPU's time to run
it, whichever is longer.

  host   a constant for the forward and one for the backward pass of a layer (which runs the forward pass again), a
         third one for each further rank of the tensor-parallel group, and a fourth one without Megatron's fused
         softmax. The fused softmax needs a multiple of 4 matrices (micro_batch * heads / tp); otherwise scale, mask and
         softmax are separate kernels. The GPU's time of a backward pass has a further constant: checkpointing saves random
         states, and the host waits
  GEMM   Tidepool's model of op times (tracer/torch/README.md) for an A100 with 40 GB, whose constants are from other tables, over a
         constant share
  other  bytes at a constant share of 1555 GB/s (elementwise, softmax, layer norm, optimizer); it is above 1, since fused
         kernels and the cache move less
  links  all-reduces as measured, two in a layer's forward pass and four in its backward pass (which runs the forward
         pass again); between stages the bytes at 150 GB/s
  ends   logits and loss on the last stage, gradients over the data-parallel group, the tied embedding between first and
         last stage, Adam over a GPU's parameters (40 bytes each), a constant for each micro-batch on a stage (schedule,
         embedding)

With any pp, an iteration has global_batch / (dp * micro_batch) micro-batches, whose gradients are accumulated.
"""
import argparse
import bisect
import collections
import csv
import functools
import gzip
import math
import pathlib
import random
import sys

# Not as a package, which needs PyTorch.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tracer" / "torch" / "tidepool_torch"))

import devices  # noqa: E402
import kernel_times  # noqa: E402

A100 = devices.find_device("a100-40gb")

VOCABULARY = 50257
PEAK_BYTES = 1555e9
LINK_BYTES = 150e9

# Initial constants of the search. Times in seconds.
START = {
    "gemm_share": 1.0,        # of the rate that the model of op times predicts
    "memory_share": 0.7,      # of the memory's peak rate
    "host_forward": 0.8e-3,   # to launch the forward pass of a layer
    "host_backward": 2.0e-3,  # to launch its backward pass, with the forward pass that is run again
    "host_unfused": 0.2e-3,   # more for each forward pass of a layer whose softmax is not fused
    "host_tensor": 0.02e-3,   # more for each pass of a layer and each further rank of the tensor-parallel group
    "wait": 1e-3,             # part of the GPU's time of each backward pass of a layer
    "micro_batch": 2e-3,      # for every micro-batch on a stage: schedule, loss, embedding
}


def read_rows(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as file:
        rows = list(csv.DictReader(file))
    return [{key: float(value) if key == "iter_ms" else int(value) for key, value in row.items()} for row in rows]


class AllReduce:
    """Measured times, interpolated between sizes. Below the smallest size, the time is that of this size. Above the
    largest one, time is proportional to size."""

    def __init__(self, path, gpu):
        self.tables = collections.defaultdict(lambda: ([], []))
        with gzip.open(path, "rt") as file:
            for row in csv.DictReader(file):
                if row["gpu"] == gpu:
                    sizes, times = self.tables[int(row["n_gpus"])]
                    sizes.append(int(row["size_bytes"]))
                    times.append(float(row["time_in_place_ns"]) * 1e-9)

    def __call__(self, gpus, size):
        if gpus == 1:
            return 0.0
        sizes, times = self.tables[gpus]
        at = bisect.bisect_left(sizes, size)
        if at == 0:
            return times[0]
        if at == len(sizes):
            return times[-1] * size / sizes[-1]
        share = (size - sizes[at - 1]) / (sizes[at] - sizes[at - 1])
        return times[at - 1] + share * (times[at] - times[at - 1])


@functools.cache
def gemm(rows, columns, inner, count=1):
    """Seconds of so many products of 16-bit matrices."""
    return kernel_times.LAUNCH + kernel_times.product_seconds(A100, A100.float16, 2, count, rows, columns, inner, tensor_cores=True)


class Shape:
    """The parts of a row's time that do not depend on the constants."""

    def __init__(self, row, all_reduce):
        h, s, b, t = row["hidden"], row["seq"], row["micro_batch"], row["tp"]
        heads = row["heads"] // t
        tokens = b * s
        self.stages = row["pp"]
        self.layers = row["layers"] // row["pp"]
        self.micro_batches = row["global_batch"] // (row["dp"] * b)
        self.gemm_forward = (gemm(tokens, 3 * h // t, h) + gemm(tokens, h, h // t)
                             + gemm(tokens, 4 * h // t, h) + gemm(tokens, h, 4 * h // t)
                             + gemm(s, s, h // row["heads"], b * heads)
                             + gemm(s, h // row["heads"], s, b * heads))
        self.gemm_backward = 2 * self.gemm_forward
        self.fused = b * heads % 4 == 0
        scores = b * heads * s * s
        # Bytes read and written: two layer norms, two times bias, dropout and residual, GELU, softmax and dropout.
        self.bytes_forward = tokens * h * (2 * 4 + 2 * 7 + 4 * 4 / t) + scores * (4 + 5 + (0 if self.fused else 10))
        self.bytes_backward = 2 * self.bytes_forward
        message = tokens * h * 2
        self.tensor = 2 * all_reduce(t, message)
        self.partners = t - 1
        self.logits_gemm = 3 * gemm(tokens, VOCABULARY // t, h)
        self.logits_bytes = tokens * (VOCABULARY // t) * (2 + 6 + 8 + 8 + 6)
        self.link = message / LINK_BYTES
        parameters = self.layers * 12 * h * h // t + VOCABULARY * h // t
        self.optimizer_bytes = parameters * 40
        self.gradients = all_reduce(row["dp"], parameters * 2)
        if row["pp"] > 1:
            self.gradients += all_reduce(2, VOCABULARY * h // t * 2)


def pipeline(stages, micro_batches, forward, backward, exchange):
    """End of the last backward pass under 1F1B. forward and backward: seconds by stage.

    With equal stages and no time for exchanges, this is the time of (micro-batches + stages - 1) forward and as many
    backward passes. A single micro-batch adds 2 * (stages - 1) exchanges.

    >>> pipeline(1, 4, [1], [2], 0), pipeline(4, 8, [1] * 4, [2] * 4, 0)
    (12, 33.0)
    >>> pipeline(2, 1, [1, 1], [2, 2], 0.5)
    7.0
    """
    if stages == 1:
        return micro_batches * (forward[0] + backward[0])
    done_forward = [[0.0] * micro_batches for _ in range(stages)]
    done_backward = [[0.0] * micro_batches for _ in range(stages)]
    orders = []
    for stage in range(stages):
        warm = min(stages - 1 - stage, micro_batches)
        order = [(True, i) for i in range(warm)]
        for i in range(micro_batches - warm):
            order += [(True, warm + i), (False, i)]
        order += [(False, i) for i in range(micro_batches - warm, micro_batches)]
        orders.append(order)
    clock, at = [0.0] * stages, [0] * stages
    known_forward, known_backward = [0] * stages, [0] * stages
    moved = True
    while moved:
        moved = False
        for stage in range(stages):
            while at[stage] < len(orders[stage]):
                ahead, i = orders[stage][at[stage]]
                ready = clock[stage]
                if ahead and stage > 0:
                    if known_forward[stage - 1] <= i:
                        break
                    ready = max(ready, done_forward[stage - 1][i] + exchange)
                if not ahead and stage < stages - 1:
                    if known_backward[stage + 1] <= i:
                        break
                    ready = max(ready, done_backward[stage + 1][i] + exchange)
                end = ready + (forward[stage] if ahead else backward[stage])
                clock[stage] = end
                (done_forward if ahead else done_backward)[stage][i] = end
                (known_forward if ahead else known_backward)[stage] = i + 1
                at[stage] += 1
                moved = True
    return max(clock)


def predict(shape, c):
    """Seconds of an iteration."""
    flops, memory = c["gemm_share"], PEAK_BYTES * c["memory_share"]
    unfused = 0 if shape.fused else c["host_unfused"]
    tensor = c["host_tensor"] * shape.partners
    gpu_forward = shape.gemm_forward / flops + shape.bytes_forward / memory + shape.tensor
    gpu_backward = (shape.gemm_forward + shape.gemm_backward) / flops \
        + (shape.bytes_forward + shape.bytes_backward) / memory + 2 * shape.tensor + c["wait"]
    layer_forward = max(c["host_forward"] + unfused + tensor, gpu_forward)
    layer_backward = max(c["host_backward"] + 2 * unfused + 2 * tensor, gpu_backward)
    forward = [shape.layers * layer_forward + c["micro_batch"] / 2] * shape.stages
    backward = [shape.layers * layer_backward + c["micro_batch"] / 2] * shape.stages
    logits = shape.logits_gemm / flops + shape.logits_bytes / memory
    forward[-1] += logits / 3
    backward[-1] += logits * 2 / 3
    steps = pipeline(shape.stages, shape.micro_batches, forward, backward, shape.link)
    return steps + shape.gradients + shape.optimizer_bytes / memory


def minimise(cost, start, evaluations):
    """Nelder and Mead's simplex search over the logarithms of positive constants. Returns the best point."""
    def at(point):
        return cost([math.exp(x) for x in point])
    first = [math.log(x) for x in start]
    points = [first] + [[x + (0.3 if i == j else 0) for j, x in enumerate(first)] for i in range(len(first))]
    simplex = sorted((at(point), point) for point in points)
    used = len(simplex)
    while used < evaluations:
        worst = simplex[-1]
        centre = [sum(point[j] for _, point in simplex[:-1]) / len(first) for j in range(len(first))]

        def along(factor):
            point = [m + factor * (m - w) for m, w in zip(centre, worst[1])]
            return at(point), point
        found = along(1.0)
        used += 1
        if found[0] < simplex[0][0]:
            further = along(2.0)
            used += 1
            found = min(found, further)
        elif found[0] >= simplex[-2][0]:
            found = along(-0.5)
            used += 1
        if found[0] < worst[0]:
            simplex[-1] = found
        else:
            best = simplex[0][1]
            points = [[(x + y) / 2 for x, y in zip(point, best)] for _, point in simplex[1:]]
            simplex = [simplex[0]] + [(at(point), point) for point in points]
            used += len(points)
        simplex.sort()
    return [math.exp(x) for x in simplex[0][1]]


def calibrate(rows, shapes, evaluations=1500):
    names = list(START)

    def cost(values):
        constants = dict(zip(names, values))
        return sum(math.log(predict(shape, constants) * 1e3 / row["iter_ms"]) ** 2 for row, shape in zip(rows, shapes))
    values = list(START.values())
    for _ in range(3):
        values = minimise(cost, values, evaluations)
    return dict(zip(names, values))


def errors(rows, all_reduce, constants):
    """Relative errors of the predictions, with their rows."""
    return [(predict(Shape(row, all_reduce), constants) * 1e3 / row["iter_ms"] - 1, row) for row in rows]


def report(title, found, worst):
    sizes = sorted(abs(error) for error, _ in found)
    def percentile(share):
        return sizes[min(len(sizes) - 1, int(share * len(sizes)))] * 100
    print(f"{title}: {len(sizes)} rows, mean error {sum(sizes) / len(sizes) * 100:.2f} %, median {percentile(0.5):.2f} %, "
          f"90th percentile {percentile(0.9):.2f} %, 99th {percentile(0.99):.2f} %, largest {sizes[-1] * 100:.2f} %")
    for error, row in sorted(found, key=lambda each: -abs(each[0]))[:worst]:
        print(f"  {error * 100:+6.1f} %  {row}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows")
    parser.add_argument("all_reduce")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check")
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--constants", action="store_true")
    asked = parser.parse_args()
    rows = read_rows(asked.rows)
    all_reduce = AllReduce(asked.all_reduce, "a100")
    random.Random(asked.seed).shuffle(rows)
    tenth = len(rows) // 10
    constants = calibrate(rows[:tenth], [Shape(row, all_reduce) for row in rows[:tenth]])
    if asked.constants:
        for name, value in constants.items():
            print(f"{name:<14} {value:.4g}")
    report("calibrated on", errors(rows[:tenth], all_reduce, constants), 0)
    report("the other rows", errors(rows[tenth:], all_reduce, constants), asked.worst)
    if asked.check:
        report(asked.check, errors(read_rows(asked.check), all_reduce, constants), asked.worst)


if __name__ == "__main__":
    main()
