#!/usr/bin/env python3
"""Compares three recordings of one job: with fake tensors, by the hook on the CPU, and on the fake of a GPU.

For each model of models.py, it prints buffers and ideal peak of one step, and the number of policies under which the
recordings' overheads are at most one percentage point apart, or all three runs fail with the same outcome, at 0.6 and
0.8 of their peak. All operators are priced for one device. Needs a PyTorch for CUDA, torchvision, transformers and peft;
no GPU.

    tests/recording/recordings_table.py [--program build/tidepool] [--policies dtr,lru-swap] [MODEL...]
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from like_cpu import write_like_cpu

LIMIT_S = 3600  # of one command
HERE = pathlib.Path(__file__).resolve().parent
JOB, PACKAGES = HERE / "models.py", HERE.parent.parent / "tracer" / "torch"
MODELS = ("resnet50", "vit", "unet", "gpt2", "bert", "llama_lora")
WAYS = ("fake", "cpu", "dry")
DEVICE, MACHINE = "a100-40gb", "a100-pcie4"
# cuBLAS runs without its workspaces here, which only a GPU has, and whose sizes the other recordings cannot know.
NO_WORKSPACES = {"CUBLAS_WORKSPACE_CONFIG": ":0:0", "CUBLASLT_WORKSPACE_SIZE": "0"}


def record(program, model, folder):
    """The traces of a model, by the way in which they are recorded."""
    job = [sys.executable, str(JOB), model]
    options = ["record", "--torch", "--skip", "1", "--iterations", "1", "--times", DEVICE]
    traces = {way: f"{folder}/{model}.{way}.tide" for way in WAYS}
    fake = f"{folder}/{model}.jsonl.gz"
    runs = [[*job, "--fake", fake, "--times", DEVICE], [program, "import", fake, "-o", traces["fake"]],
            [program, *options, "--no-gpu", "-o", traces["cpu"], "--", *job],
            [program, *options, "--dry", "--device", DEVICE, "-o", traces["dry"], "--", *job, "--device", "cuda"]]
    environment = {**os.environ, **NO_WORKSPACES, "PYTHONPATH": str(PACKAGES), "OMP_NUM_THREADS": "1"}
    for command in runs:
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT_S)
        if ran.returncode != 0:
            sys.exit(f"{model}: {' '.join(command[:2])} ended with {ran.returncode}:\n{ran.stderr}")
    return traces


def answer(program, *arguments):
    ran = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True, timeout=LIMIT_S)
    return json.loads(ran.stdout) if ran.stdout.strip() else {"outcome": "error", "message": ran.stderr}


def overhead(program, trace, policy, capacity):
    """A number, or the outcome in its place."""
    found = answer(program, "simulate", trace, "--policy", policy, "--capacity", capacity, "--machine", MACHINE, "--pool",
                   "ideal", "--overhead-limit", "3")
    return found["overhead_ratio"] - 1 if found["outcome"] == "ok" else found["outcome"]


def apart(values):
    """Percentage points between the least and the greatest overhead; 0 if all values are the same outcome; else None."""
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) == len(values):
        return 100 * (max(numbers) - min(numbers))
    return 0.0 if len(set(map(str, values))) == 1 else None


def percent(value):
    return f"{100 * value:+.1f} %" if isinstance(value, float) else value


def note(program, traces, policy, capacity, values, folder):
    """A line with the overheads of one policy."""
    like_cpu = overhead(program, write_like_cpu(program, traces["cpu"], traces["dry"], folder), policy, capacity)
    return f"    {capacity} {policy}: {', '.join(map(percent, values))}; dry like cpu: {percent(like_cpu)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--policies", help="separated by commas; unless given, all that swap or recompute")
    parser.add_argument("--folder", help="where the traces are kept")
    parser.add_argument("--verbose", action="store_true", help="each overhead that is not within one point of the others, "
                        "and that of the dry recording without buffers and orders of operands that only a device has")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    program = str(pathlib.Path(asked.program).resolve())
    policies = asked.policies.split(",") if asked.policies else [
        policy["name"] for policy in answer(program, "policies") if policy["kind"] in ("swap", "remat", "hybrid")]
    print(f"{len(policies)} policies, counted bytes, {MACHINE}, operators priced for {DEVICE}\n")
    print("| model | buffers: " + ", ".join(WAYS) + " | ideal peak in MiB | peaks apart | 0.6x: within 1 point | 0.8x |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(asked.jobs) as executor:
        folder = asked.folder or temporary
        os.makedirs(folder, exist_ok=True)
        for model in asked.models or MODELS:
            traces = record(program, model, folder)
            infos = [answer(program, "info", traces[way]) for way in WAYS]
            peaks = [info["ideal_peak_bytes"] for info in infos]
            cells, notes = [], []
            for capacity in ("0.6x", "0.8x"):
                runs = {policy: [executor.submit(overhead, program, traces[way], policy, capacity) for way in WAYS]
                        for policy in policies}
                rows = {policy: [run.result() for run in results] for policy, results in runs.items()}
                close = [policy for policy, values in rows.items() if (away := apart(values)) is not None and away <= 1]
                cells.append(f"{len(close)}/{len(policies)}")
                if asked.verbose:
                    notes += [note(program, traces, policy, capacity, values, folder)
                              for policy, values in rows.items() if policy not in close]
            print(f"| {model} | {', '.join(str(info['buffers']) for info in infos)} | "
                  f"{', '.join(f'{peak / 2**20:.1f}' for peak in peaks)} | {100 * (max(peaks) / min(peaks) - 1):.2f} % | "
                  f"{cells[0]} | {cells[1]} |", flush=True)
            for line in notes:
                print(line, flush=True)


if __name__ == "__main__":
    main()
