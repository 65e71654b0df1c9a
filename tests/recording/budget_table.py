#!/usr/bin/env python3
"""Compares peaks of `min-cut` under a budget with peaks of models that torch.compile partitions under the same
activation_memory_budget.

    PYTHON tests/recording/budget_table.py [--models vit,...] [--budgets 1,0.5,0.2] [--keep FOLDER]

A step of each model of advise_table.py is recorded dry; `tidepool simulate --policy min-cut(budget=B)` says its peak.
Then the model is compiled with this budget and trained in a dry run, and PyTorch's own peak is printed
(torch.cuda.max_memory_allocated). Its graphs have the operators of PyTorch's compiler, inductor, cut by inductor's
partitioner, but nothing is fused (backend aot_eager_decomp_partition): inductor's own kernels need a GPU, and have
fewer temporary tensors. A second table has the bytes after the forward pass, including those saved for backward, and
the rest of each peak, which backward adds. PYTHON has PyTorch for CUDA and the models' libraries; no GPU is needed.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from advise_table import MODELS, STEPS, mib

LIMIT_S = 3600  # of one command


def train(name, budget):
    """Runs in the dry run. Prints the peak of all steps but the first, which makes the optimizer's state, and the bytes
    after the last forward pass."""
    import torch
    import torch._functorch.config

    with torch.device("cuda"):
        model, batch, loss = MODELS[name][0](torch)
    model.train()
    if budget is not None:
        torch._functorch.config.activation_memory_budget = budget
        model.compile(backend="aot_eager_decomp_partition")
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])
    for step in range(STEPS):
        if step == 1:
            torch.cuda.reset_peak_memory_stats()
        optimizer.zero_grad()
        result = loss(batch)
        after_forward = torch.cuda.memory_allocated()
        result.backward()
        optimizer.step()
    print("peak", torch.cuda.max_memory_allocated(), after_forward)


def record(arguments, trace, name, *options):
    """Records a model. @param options  those of `tidepool record`, then "--" and those of the job
    @return PyTorch's own peak, and its bytes after a forward pass"""
    split = options.index("--")
    command = [arguments.program, "record", "--dry", *options[:split], "--device", "a100-80gb", "-o", str(trace), "--"]
    job = [sys.executable, str(pathlib.Path(__file__).resolve()), "--train", name, *options[split + 1:]]
    ran = subprocess.run(command + job, capture_output=True, text=True, cwd=trace.parent, timeout=LIMIT_S)
    peaks = [line.split()[1:] for line in ran.stdout.splitlines() if line.startswith("peak ")]
    if ran.returncode != 0 or not peaks:
        raise SystemExit(f"{name}: not recorded:\n{ran.stdout}{ran.stderr}")
    return map(int, peaks[0])


def simulated(arguments, trace, budget):
    """Peak in bytes, bytes after the forward pass, and the time divided by that without the policy."""
    plan = trace.with_suffix(".plan")
    command = [arguments.program, "simulate", str(trace), "--policy", f"min-cut(budget={budget})", "--json",
               "--plan-out", str(plan)]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout)
    return said["peak_bytes"], held_before(plan, first_backward_op(arguments, trace)), said["overhead_ratio"]


def first_backward_op(arguments, trace):
    command = [arguments.program, "export", str(trace), "--to", "jsonl"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
    lines = map(json.loads, said.splitlines())
    return [line.get("phase") for line in lines if "run" in line].index("backward")


def held_before(plan, op):
    """Bytes of the places that a plan holds when the actions for an op begin."""
    held = {}
    for line in plan.read_text().splitlines()[1:]:
        action = json.loads(line)
        if action.get("before", 0) >= op:
            break
        if action["do"] == "alloc":
            held[action["version"]] = action["size_bytes"]
        elif action["do"] in ("free", "drop"):
            del held[action["version"]]
    return sum(held.values())


def rest(peak, after_forward):
    """The memory that backward adds. It is the difference of the rounded numbers, so that the tables add up."""
    return f"{round(peak / 2**20) - round(after_forward / 2**20):,} MiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--models", default="vit,cnn,encoder,gpt2")
    parser.add_argument("--budgets", default="1,0.5,0.2")
    parser.add_argument("--keep", help="empty folder for recordings")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--budget", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        return train(arguments.train, arguments.budget)
    arguments.program = str(pathlib.Path(arguments.program).resolve())
    parts = []  # rows of the second table
    print("| model | peak | budget | min-cut's peak | compiled | difference | time |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(arguments.keep or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for name in arguments.models.split(","):
            trace = folder / f"{name}.tide"
            peak, _ = record(arguments, trace, name, "--torch", "--")
            for budget in arguments.budgets.split(","):
                said, saved, time = simulated(arguments, trace, budget)
                compiled, kept = record(arguments, folder / f"{name}-{budget}.tide", name, "--", "--budget", budget)
                print(f"| {name} | {mib(peak)} | {budget} | {mib(said)} | {mib(compiled)} | {said / compiled - 1:+.1%} | "
                      f"{time - 1:+.1%} |", flush=True)
                parts.append(f"| {name} | {budget} | {mib(saved)} | {mib(kept)} | {saved / kept - 1:+.1%} | "
                             f"{rest(said, saved)} | {rest(compiled, kept)} |")
    print("\n| model | budget | after forward: min-cut | compiled | difference | backward adds: min-cut | compiled |")
    print("|---|---|---|---|---|---|---|", *parts, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
