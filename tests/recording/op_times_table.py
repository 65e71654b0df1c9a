#!/usr/bin/env python3
"""Compares the model of op times (tidepool_torch) with measured times of other people, and fits its constants.

DATA is a folder of NeuSight's tables (sitar-lab/NeuSight, MIT): ops_train/OP_DEVICE.csv.xz and ops_test/OP.csv.xz with the
time of single operators, steps/DEVICE__MODEL-train-LENGTH-BATCH.{json,csv.xz} with training steps and their operators, and
neusight_nvidia_train.csv with the error of its own prediction. Prints the error by class of operator and device, then that
of each step. All ops are made anew of meta tensors and priced as those of a recording are. Needs PyTorch; no GPU.

    tests/recording/op_times_table.py DATA
    tests/recording/op_times_table.py DATA --fit                                the constants of float32 products
    tests/recording/op_times_table.py --tensor-cores gemm_perf.parquet:a100 ... [--fit]

The last form takes tables of ai-dynamo/aiconfigurator (Apache-2.0; systems/data/*/gemm); its 16-bit rows count. Needs pyarrow.
Only ops_train is fitted to, and of it the rows whose matrices are aligned.
"""

import argparse
import collections
import csv
import dataclasses
import json
import lzma
import math
import pathlib
import random
import statistics
import sys
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tracer" / "torch"))

from tidepool_torch import kernel_times, op_times  # noqa: E402
from tidepool_torch.devices import find_device  # noqa: E402
from tidepool_torch.op_times import estimate_ns  # noqa: E402
from tidepool_torch.schema import OpCall, signature_of  # noqa: E402


def board(name, **facts):
    return dataclasses.replace(find_device(name), **facts)


# NeuSight's devices. Facts that differ from those of the product's devices: data sheets of the PCIe boards, P4 and P100.
BOARDS = {
    "Tesla P4": board("titan-x", processors=20, watts=75, float32=5.5e12, bandwidth=192e9, cache=2e6),
    "Tesla P100-PCIE-16GB": board("titan-x", processors=56, lanes=64, float32=9.5e12, bandwidth=732e9, cache=4e6),
    "Tesla T4": find_device("t4"),
    "Tesla V100-PCIE-32GB": board("v100", watts=250, float32=14.1e12),
    "NVIDIA A100-PCIE-40GB": board("a100-40gb", watts=250),
    "NVIDIA A100 80GB PCIe": board("a100", watts=300, bandwidth=1935e9),
    "NVIDIA H100 80GB HBM3": find_device("h100"),
    "NVIDIA L4": find_device("l4"),
}
# The time in which the host issues an op, which these measurements contain: at least this much, if no row says so.
ISSUE_NS = {"linear": 55_000, "bmm": 33_000, "softmax": 33_000, "ln": 46_000}
ISSUE_OTHERS_NS = 27_000


class Calls(TorchDispatchMode):
    """Collects the ops that run, without views."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        signature = signature_of(func)
        call = OpCall(func, args, kwargs or {}, signature)
        call.run()
        if signature.records and not signature.views:
            self.found.append(call)
        return call.result


def calls_of(function):
    with Calls() as calls:
        function()
    return [call for call in calls.found if not call.short_name.startswith(("empty", "detach", "_local"))]


def empty(*shape, grad=False, dtype=torch.float32):
    return torch.empty(shape, device="meta", dtype=dtype, requires_grad=grad)


def price(device, calls):
    return sum(estimate_ns(device, call) for call in calls)


# ---------------------------------------------------------------------------------------------------- single operators

UNARY = {"relu": torch.relu, "gelu": torch.nn.functional.gelu, "tanh": torch.tanh,
         "softmax": lambda x: torch.softmax(x, 1), "ln": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:],
                                                                                             empty(x.shape[-1]),
                                                                                             empty(x.shape[-1])),
         "addu": lambda x: x + 0.5, "mulu": lambda x: x * 0.5, "divu": lambda x: x / 0.5, "powu": lambda x: x ** 0.3}
BINARY = {"add": torch.add, "mul": torch.mul, "div": torch.div, "pow": torch.pow}


def operator(row):
    """The op of a row, or None."""
    name = row["OPName"]
    b = int(row["B"])
    if name in ("bmm", "linear"):
        m, k, n = int(row["M"]), int(row["N"]), int(row["K"])
        if name == "bmm":
            return lambda: torch.bmm(empty(b, m, k), empty(b, k, n))
        return lambda: torch.nn.functional.linear(empty(b * m, k), empty(n, k), empty(n))
    if name == "conv":
        size, kernel, channels, filters = (int(row[key]) for key in ("Input_Size", "Kernel_Szie", "Input_Channel", "Output_Channel"))
        return lambda: torch.conv2d(empty(b, channels, size, size), empty(filters, channels, kernel, kernel), None,
                                    int(row["Stride"]), int(row["Padding"]))
    if name in UNARY:
        return lambda: UNARY[name](empty(b, int(row["H"])))
    return (lambda: BINARY[name](empty(b, int(row["H"])), empty(b, int(row["H"])))) if name in BINARY else None


def rows_of(path):
    with lzma.open(path, "rt") as file:
        return list(csv.DictReader(file))


def kind_of(name):
    return {"bmm": "BMM", "linear": "FC", "softmax": "Softmax", "ln": "LN", "conv": "Conv"}.get(name, "EW")


def operator_table(data, most):
    """Prints the mean error of each class of operators on each device, for at most so many rows of each, at random."""
    set_budget(1.0)  # these measurements repeat one operator
    issue, fitted = {}, set()
    for folder in ("ops_train", "ops_test"):
        errors = collections.defaultdict(list)
        for path in sorted((data / folder).glob("*.csv.xz")):
            if path.name.startswith("vec."):  # rows of the others
                continue
            by_device = collections.defaultdict(list)
            for row in rows_of(path):
                by_device[row["Device"], row["OPName"]].append(row)
            for (name, op), rows in sorted(by_device.items()):
                if name not in BOARDS:
                    continue
                if folder == "ops_train":
                    fitted |= {name} if op in ("linear", "bmm") else set()
                    issue[name, op] = 1e6 * statistics.quantiles((float(row["Latency"]) for row in rows), n=100)[0]
                issued = issue.get((name, op), ISSUE_NS.get(op, ISSUE_OTHERS_NS))
                for row in random.Random(1).sample(rows, min(most, len(rows))):
                    make = operator(row)
                    if make is not None:
                        predicted = issued + price(BOARDS[name], calls_of(make)) - kernel_times.LAUNCH * 1e9
                        errors[kind_of(op), name].append(abs(predicted / (1e6 * float(row["Latency"])) - 1))
        print(f"\n{folder}: mean error in %, and the median\n\n| device | " + " | ".join(KINDS) + " |\n|---|" + "---|" * len(KINDS))
        for name in BOARDS:
            if any((kind, name) in errors for kind in KINDS):
                print(f"| {name} | " + " | ".join(mean_and_median(errors[kind, name]) for kind in KINDS) + " |")
    for title, names in (("devices with fitted products", fitted), ("other devices", set(BOARDS) - fitted)):
        pooled = [sum((errors[kind, name] for name in sorted(names)), []) for kind in KINDS[:-1]]
        print(f"| {title} | " + " | ".join(map(mean_and_median, pooled)) + " | |")
    own = list(csv.reader((data / "neusight_perop.csv").read_text().splitlines()))[-1][1:]
    for title, found in (("NeuSight, in distribution", own[:5]), ("NeuSight, out of distribution", own[5:10])):
        print(f"| {title} | " + " | ".join(f"{float(each):.1f}" for each in found) + " | |")


BUDGET = kernel_times.BUDGET


def set_budget(share):
    """Sets the share of a board's power that products have, and forgets the times of other shares."""
    kernel_times.BUDGET = share
    op_times._product.cache_clear()
    op_times._known.clear()


KINDS = ("BMM", "FC", "EW", "Softmax", "LN", "Conv")


def mean_and_median(errors):
    return f"{100 * statistics.mean(errors):.1f} ({100 * statistics.median(errors):.1f})" if errors else ""


# --------------------------------------------------------------------------------------------------------------- steps


def is_table(name):
    """Whether a module of this name looks rows up."""
    last = name.rsplit(".", 1)[-1].lower()
    return "embed" in last or last in ("wte", "wpe", "shared", "relative_attention_bias")


def module(name, given, shape):
    """The function of a module of the traced models, told by its name, and its parameters."""
    last = name.rsplit(".", 1)[-1].lower()
    if "layernorm" in last or "layer_norm" in last or last.startswith("ln_"):
        weights = [empty(given[-1], grad=True), empty(given[-1], grad=True)]
        return lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], *weights), weights
    if "drop" in last:
        return Dropout.apply, []
    if is_table(name):
        rows = {"token_type_embeddings": 2}.get(last, _ROWS_OF.get(last, given[-1]))
        weights = [empty(rows, shape[-1], grad=True)]
        return lambda x: torch.nn.functional.embedding(x, weights[0]), weights
    if "activation" in last:
        return (torch.tanh if "pooler" in name else torch.relu), []
    weights = [empty(shape[-1], given[-1], grad=True)]
    if last != "lm_head" and ".block." not in name:  # T5's layers have no bias
        weights.append(empty(shape[-1], grad=True))
    return lambda x: torch.nn.functional.linear(x, *weights), weights


class Dropout(torch.autograd.Function):
    """As PyTorch 2.1 has it: backward is three operators."""

    @staticmethod
    def forward(context, x):
        result, mask = torch.native_dropout(x, 0.1, True)
        context.save_for_backward(mask)
        return result

    @staticmethod
    def backward(context, gradient):
        (mask,) = context.saved_tensors
        return gradient * (mask.to(gradient.dtype) * 1.1)


_ROWS_OF = {}  # of a table, by the name of its module; set for each model
FUNCTIONS = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "truediv": torch.div, "gelu": torch.nn.functional.gelu,
             "tanh": torch.tanh, "relu": torch.relu, "softmax": lambda x: torch.softmax(x, -1), "matmul": torch.matmul,
             "mean": lambda x: x.mean(-1, keepdim=True), "rsqrt": torch.rsqrt,
             "bmm": torch.bmm, "addmm": torch.addmm, "pow": lambda x: x**3.0, "max": lambda x: torch.maximum(x, empty()),
             "where": lambda mask, x: torch.where(mask, x, 0.0), "contiguous": lambda x: x.contiguous(),
             "dropout": Dropout.apply, "embedding": torch.nn.functional.embedding, "reshape": torch.clone}


def node(row, config):
    """(forward, backward): the ops of a node of the traced graph."""
    target = row["target"]
    shapes = [tuple(shape) for shape in json.loads(row["input_shapes"])]
    shape = tuple(int(size) for size in row["output_shape"].strip("()").split(",") if size.strip())
    floats = row["dtype"] == "torch.float32"
    parameters = []
    if row["op"] == "call_module":
        function, parameters = module(target, shapes[0], shape)
        integers = is_table(target)
        tensors = [empty(*shapes[0], dtype=torch.int64 if integers else torch.float32, grad=not integers)]
    else:
        name = target.removeprefix("<").replace("built-in ", "").replace("function ", "").replace("method ", "").split(" ")[0]
        name = name.rstrip(">")
        function = FUNCTIONS.get(name)
        if not floats or function is None or max(map(math.prod, [shape, *shapes])) < 1000:
            return [], []
        if name in ("contiguous", "reshape"):  # copies of tensors whose heads and positions were exchanged
            if len(shapes[0]) != 4:
                return [], []
            b, l, h, w = shapes[0]
            tensors = [empty(b, h, l, w, grad=True)]
            function = lambda x: x.permute(0, 2, 1, 3).contiguous()
        elif name == "dropout" and shape[0] % config["num_attention_heads"] == 0 and config["attention_dropout"] == 0:
            return [], []
        elif name == "embedding":
            tensors, parameters = [empty(*shapes[0], dtype=torch.int64)], [empty(*shapes[1], grad=True)]
            function = lambda x: torch.nn.functional.embedding(x, parameters[0])
        elif name == "where":
            tensors = [empty(*shapes[0], dtype=torch.bool), empty(*shapes[1], grad=True)]
        elif name == "addmm":
            tensors = [empty(*shapes[1], grad=True)]
            parameters = [empty(*shapes[0], grad=True), empty(*shapes[2], grad=True)]
            function = lambda x: torch.addmm(parameters[0], x, parameters[1])
        else:
            # An operand that is repeated is a mask or a table of positions: nothing is summed for it.
            whole = name in ("matmul", "bmm", "mean")
            tensors = [empty(*each, grad=whole or math.prod(each) == math.prod(shape)) for each in shapes if math.prod(each) > 1]
            if name in ("matmul", "bmm") and shape[-1] == shape[-2]:  # queries by keys
                tensors[1] = empty(*shapes[1][:-2], *shapes[1][:-3:-1], grad=True)
                function = lambda a, b: a @ b.transpose(-1, -2)
            if not tensors:
                return [], []
            if name in ("add", "sub", "mul", "truediv") and len(tensors) == 1:
                number = empty() if len(shapes) > 1 else 0.5  # [1] is a tensor of one value
                function = lambda x, f=function: f(x, number)
    for parameter in parameters:
        parameter.grad = empty(*parameter.shape)  # gradients of these steps are added to those of the step before
    out = []
    forward = calls_of(lambda: out.append(function(*tensors)))
    if not out[0].requires_grad:
        return forward, []
    if parameters:
        return forward, calls_of(lambda: out[0].backward(empty(*out[0].shape)))
    gradients = [tensor for tensor in tensors if tensor.requires_grad]
    return forward, calls_of(lambda: torch.autograd.grad(out, gradients, empty(*out[0].shape)))


def layer_of(names):
    """The nodes of the one traced layer, which stands for all."""
    def first(text):
        return next((at for at, name in enumerate(names) if text in name), None)

    for begin, end in (("transformer_h_0_ln_1", "transformer_ln_f"), ("layers_0_self_attn_layer_norm", "final_layer_norm"),
                       ("layer_0_attention_self_query", None)):
        at = first(begin)
        if at is None:
            continue
        if end is None:
            return at, first("layer_0_output_layer_norm") + 1
        return at, [i for i, name in enumerate(names) if name.endswith(end) and "layers_0" not in name][0]
    return 0, 0


def step_times(data, name, model, device):
    """ms of the forward and of the backward pass, the sum of the measured times of the forward pass's operators, and the CPU time
    in us in which an operator is priced whose shapes were priced before."""
    rows = rows_of(data / "steps" / f"{name}.csv.xz")
    config = json.loads((data / "configs" / f"{model}.json").read_text())
    _ROWS_OF.update(word_embeddings=config["vocab_size"], wte=config["vocab_size"], embed_tokens=config["vocab_size"])
    begin, end = layer_of([row["Name"] for row in rows])
    layers = json.loads((data / "steps" / f"{name}.json").read_text())["num_layer"]
    forward = backward = one_by_one = 0
    calls = []
    for at, row in enumerate(rows):
        times = layers if begin <= at < end else 1
        ahead, back = node(row, config)
        forward += times * price(device, ahead)
        backward += times * price(device, back)
        one_by_one += times * float(row["fw_latency"] or 0)
        calls += ahead + back
    begin = time.process_time()
    price(device, calls)
    return forward / 1e6, backward / 1e6, one_by_one, (time.process_time() - begin) / len(calls) * 1e6


def neusight(data):
    """NeuSight's own errors in %: (device, model, batch) -> error."""
    with open(data / "neusight_nvidia_train.csv", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    names = {"BERT-Large": "bert_large", "GPT2-Large": "gpt2_large", "GPT3-XL": "gpt3_xl", "OPT-1.3B": "opt_13",
             "GPT3-2.7B": "gpt3_27", "SwitchTrans": "switchxl4"}
    found, device, model, models, batches = {}, "", "", [], []
    for line in lines:
        if len(line) == 1:
            device = line[0]
        elif line and line[0] == "Model":
            models = []
            for each in line[1:]:
                model = names.get(each, model)
                models.append(model)
        elif line and line[0] == "Batch":
            batches = line[1:]
        elif line and line[0] == "NeuSight":
            found.update({(device, m, b): float(e) for m, b, e in zip(models, batches, line[1:]) if e})
    return found


def step_table(data):
    set_budget(BUDGET)
    own, found, costs = neusight(data), [], []
    print("\n| device | step | measured, ms | predicted | error, % | NeuSight's, % | forward | predicted | backward | predicted |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for path in sorted((data / "steps").glob("*-train-*.csv.xz")):
        name = path.name.removesuffix(".csv.xz")
        folder, _, step = name.partition("__")
        board_name = next((board for board in BOARDS if board.replace(" ", "_") == folder), None)
        if board_name is None:
            continue
        model, _, rest = step.partition("-train-")
        measured = json.loads((data / "steps" / f"{name}.json").read_text())
        forward, backward, one_by_one, cost = step_times(data, name, model, BOARDS[board_name])
        error = 100 * ((forward + backward) / measured["e2e_latency"] - 1)
        of_others = own.get((folder, model, rest.split("-")[1]))
        found.append((abs(error), of_others, abs(100 * (backward / measured["bwall_latency"] - 1)),
                      measured["fw_latency"] > 1.1 * one_by_one))
        costs.append(cost)
        print(f"| {board_name} | {step} | {measured['e2e_latency']:.1f} | {forward + backward:.1f} | {error:+.1f} | "
              f"{'' if of_others is None else of_others} | {measured['fw_latency']:.1f} | {forward:.1f} | "
              f"{measured['bwall_latency']:.1f} | {backward:.1f} |")
    print(f"\nmean error of {sum_up(found)}; of backward passes: {statistics.mean(step[2] for step in found):.1f} %")
    # Each of these steps began without any memory of PyTorch's allocator (NeuSight's measure_e2e empties its cache).
    print(f"mean error where the forward pass takes less than 1.1 of its operators, measured one by one: "
          f"{sum_up([step for step in found if not step[3]])}")
    print(f"an operator whose shapes are known is priced in {statistics.median(costs):.1f} us of CPU time")


def sum_up(steps):
    mean, median = (function(step[0] for step in steps) for function in (statistics.mean, statistics.median))
    others = [step[1] for step in steps if step[1] is not None]
    return (f"{len(steps)} steps: {mean:.1f} %, median {median:.1f} %; NeuSight's on the same: {statistics.mean(others):.1f} %, "
            f"{statistics.median(others):.1f} %")


# ----------------------------------------------------------------------------------------------------------------- fit


def descend(loss, values, rounds):
    """Changes one value after the other as long as the loss falls."""
    steps, best = dict.fromkeys(values, 1.3), loss(values)
    for _ in range(rounds):
        for key in values:
            for factor in (steps[key], 1 / steps[key]):
                changed = {**values, key: values[key] * factor}
                found = loss(changed)
                if found < best - 1e-5:
                    best, values = found, changed
                    break
            else:
                steps[key] **= 0.5
    return best, values


# Of the rows of a generation: those of P4, P100 and T4 differ from their test rows by up to a half.
_WEIGHT = {"pascal": 0.3, "turing": 0.3}


def fit_cores(data, most):
    kernel_times.BUDGET = 1.0
    rows = []
    for op in ("linear", "bmm"):
        for path in sorted((data / "ops_train").glob(f"{op}_*.csv.xz")):
            all_rows = rows_of(path)
            issued = statistics.quantiles((float(row["Latency"]) for row in all_rows), n=100)[0] / 1e3
            aligned = [row for row in all_rows
                       if int(row["N"]) % 8 == 0 and int(row["K"]) % 8 == 0 and float(row["Latency"]) > 0.3]
            for row in random.Random(1).sample(aligned, min(most, len(aligned))):
                sizes = int(row["B"]), int(row["M"]), int(row["K"]), int(row["N"])
                rows.append((BOARDS[row["Device"]], sizes, issued, float(row["Latency"]) / 1e3))
    units = dataclasses.asdict(kernel_times.CORES)
    known = {key: units.pop(key) for key in ("pieces", "split", "outer")}  # of what these rows have too little
    energies = {"ampere": kernel_times.ENERGY["ampere"]}

    def apply(values):
        kernel_times.CORES = kernel_times.Units(**known, **{key: values[key] for key in units})
        kernel_times.ENERGY.update({key: values[key] for key in energies})

    def loss(values):
        if not 0 < values["round_up"] <= 1 or not 0 < values["share"] <= 1.03:
            return math.inf
        apply(values)
        errors = [(_WEIGHT.get(device.generation, 1.0), abs(math.log(
            (issued + kernel_times.product_seconds(device, device.float32, 4, *sizes)) / measured)))
            for device, sizes, issued, measured in rows]
        return sum(weight * min(0.5, error) for weight, error in errors) / sum(weight for weight, _ in errors)

    best, values = descend(loss, {**units, **energies}, 10)
    print(f"float32 products: {len(rows)} rows, mean |log| {best:.3f}: " + ", ".join(f"{k} {v:.4g}" for k, v in values.items()))
    apply(values)


def tensor_cores(tables, most, fit):
    import pyarrow.parquet

    kernel_times.BUDGET = 1.0
    rows = []
    for table in tables:
        path, _, name = table.rpartition(":")
        device = find_device(name)
        found = [row for row in pyarrow.parquet.read_table(path).to_pylist() if row["gemm_dtype"] in ("bfloat16", "float16")]
        rows += [(device, (1, row["m"], row["n"], row["k"]), row["latency"] / 1e3)
                 for row in random.Random(1).sample(found, min(most, len(found)))]
    units = dataclasses.asdict(kernel_times.TENSOR_CORES)
    def errors():
        return [(device, math.log((kernel_times.LAUNCH + kernel_times.product_seconds(
            device, device.bfloat16, 2, *sizes, tensor_cores=True)) / measured)) for device, sizes, measured in rows]

    def loss(values):
        if not 0 < values["round_up"] <= 1 or not 0 < values["share"] <= 1.03:
            return math.inf
        kernel_times.TENSOR_CORES = kernel_times.Units(**{key: values[key] for key in units})
        return statistics.mean(min(1.0, abs(error)) for _, error in errors())

    if fit:
        best, values = descend(loss, units, 8)
        print(f"16-bit products: {len(rows)} rows, mean |log| {best:.3f}: " + ", ".join(f"{k} {v:.4g}" for k, v in values.items()))
    of_device = collections.defaultdict(list)
    for device, error in errors():
        of_device[device.name].append(abs(math.exp(error) - 1))
    print("\n16-bit products: mean error in %, and the median\n")
    for name, found in of_device.items():
        print(f"| {name} | {mean_and_median(found)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=pathlib.Path, metavar="DATA")
    parser.add_argument("--tensor-cores", nargs="+", default=[], metavar="TABLE:DEVICE")
    parser.add_argument("--fit", action="store_true", help="fit constants first, and print them")
    parser.add_argument("--rows", type=int, default=300, help="most rows of each table that count, chosen at random")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = True, False  # as in these measurements
    if options.tensor_cores:
        tensor_cores(options.tensor_cores, options.rows, options.fit)
    if options.data:
        if options.fit:
            fit_cores(options.data, options.rows)
        operator_table(options.data, options.rows)
        step_table(options.data)


if __name__ == "__main__":
    main()
