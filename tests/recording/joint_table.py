#!/usr/bin/env python3
"""Prints what plans of all ranks of ten jobs cost, beside a bound, and the fastest of the policies that follow rules.

    PYTHON tests/recording/joint_table.py [--deepspeed PYTHON] [--capacity 0.9x] [--pool best-fit] [--keep FOLDER] [JOB ...]

joint_jobs.py is recorded dry for an A100, once for each job. Its ranks follow a plan of tide at a share of each rank's
own peak, without the host's time. A row has the number of ranks, of different plans, and of ops; the time of the step
without limits, that with plans, and how far it is above the bound that no such plans beat; the bytes copied by all
ranks, and the share of the copies' time that is hidden; the CPU time of the command; the fastest rival and its
time. The rivals are all policies that swap or recompute and come from others; each may take --rival-limit seconds. At
last, the host's validator executes the plan of each different kind of rank in an arena of its own: the bytes that it
compared, and those that differed. No GPU is needed. PYTHON has PyTorch for CUDA, that of --deepspeed also DeepSpeed.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests/recording/joint_jobs.py"
JOBS = {"ddp": 2, "accumulation": 2, "fsdp2": 8, "uneven": 4, "tensor": 4, "mesh": 8, "1f1b": 4, "interleaved": 4, "zero3": 4,
        "experts": 4}
OWN = ("tide", "tide-remat")  # not rivals
LIMIT_S = 3600  # of one command


def run(*command, limit=LIMIT_S):
    """The ended command, and its CPU time in s; none if it took too long."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        ended = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, limit
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def answer(*command):
    ended, cpu = run(*command)
    if ended is None or ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n" + (f"{ended.stdout[-2000:]}{ended.stderr[-4000:]}" if ended else ""))
    return ended.stdout, cpu


def record(arguments, kind, folder):
    job = folder / f"{kind}.json"
    if job.exists():
        return job
    python = arguments.deepspeed if kind == "zero3" else sys.executable
    answer(arguments.program, "record", "--dry", "--torch", "--device", "a100-80gb",
           *(["--routing", "zipf"] if kind == "experts" else []), "-o", job, "--", python, "-m", "torch.distributed.run",
           "--standalone", "--nproc-per-node", JOBS[kind], SCRIPT, kind)
    return job


def simulate(arguments, job, policy, *options):
    return [arguments.program, "simulate", job, "--of", "host", "--scale", "0", "--machine", "a100-pcie4", "--pool", arguments.pool,
            "--capacity", arguments.capacity, "--policy", policy, "--json", *options]


def rivals(arguments, job):
    """The fastest policy of others with its time in ns, and the names of those that took too long."""
    known = json.loads(answer(arguments.program, "policies", "--json")[0])
    fastest, late = (None, None), []
    for policy in known:
        if policy["kind"] not in ("swap", "remat", "hybrid") or policy["name"] in OWN:
            continue
        ended, _ = run(*simulate(arguments, job, policy["name"]), limit=arguments.rival_limit)
        if ended is None:
            late.append(policy["name"])
        elif ended.returncode == 0 and (time := json.loads(ended.stdout)["makespan_ns"]) is not None:
            fastest = min(fastest, (time, policy["name"]), key=lambda each: each[0] or float("inf"))
    return fastest, late


def validated(arguments, job, plan, plans):
    """Bytes that executed plans compared, and how many of them differed."""
    compared = corrupt = 0
    for rank in sorted({each["like_rank"] for each in plans["ranks"]}):
        result = json.loads(answer(arguments.program, "validate", plan.with_suffix(f".rank{rank}.plan"), "--trace",
                                   job.with_suffix(f".rank{rank}.tide"), "--backend", "host", "--json")[0])
        compared += result["read_bytes"]
        corrupt += result["corrupt_bytes"]
    return compared, corrupt


def row(arguments, kind, folder):
    """Prints the row of a job; the names of the rivals that took too long."""
    job, plan = record(arguments, kind, folder), folder / f"{kind}.plan"
    text, cpu = answer(*simulate(arguments, job, "tide", "--plan-out", plan))
    plans = json.loads(text)
    ranks, without, bound = plans["ranks"], plans["baseline_ns"], plans["bound_ns"]
    planned = plans["makespan_ns"]
    if planned is None:
        print(f"{kind:<13} no plan: {[rank['message'] for rank in ranks]}", flush=True)
        return []
    copied = sum(rank["swap_out_bytes"] + rank["swap_in_bytes"] for rank in ranks)
    time, shown = (sum(rank[key] for rank in ranks) for key in ("copy_ns", "exposed_copy_ns"))
    ops = sum(each["info"]["ops"] for each in json.loads(answer(arguments.program, "info", job, "--json")[0])["ranks"])
    (rival, name), late = rivals(arguments, job)
    compared, corrupt = validated(arguments, job, plan, plans)
    print(f"{kind:<13} {len(ranks):>5} {len({rank['like_rank'] for rank in ranks}):>5} {ops:>6,} {without / 1e6:>8.2f} "
          f"{planned / 1e6:>8.2f} {planned / bound - 1:>7.2%} {copied / 2**20:>9.1f} "
          f"{f'{1 - shown / time:.1%}' if time else '-':>7} {cpu:>6.2f} "
          f"{f'{rival / 1e6:.2f}' if rival else '-':>8} {name or '-':<16} {compared / 2**30:>6.1f} {corrupt:>7}", flush=True)
    return late


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="default: " + " ".join(JOBS))
    parser.add_argument("--deepspeed", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--capacity", default="0.9x")
    parser.add_argument("--pool", default="best-fit")
    parser.add_argument("--rival-limit", type=int, default=60, metavar="SECONDS")
    parser.add_argument("--program", default=ROOT / "build/tidepool")
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).resolve(),
                        help="folder for the recordings; those that are there are not made again")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        print(f"{'job':<13} {'ranks':>5} {'plans':>5} {'ops':>6} {'ms':>8} {'planned':>8} {'gap':>7} {'MiB':>9} "
              f"{'hidden':>7} {'CPU s':>6} {'rival ms':>8} {'':<16} {'GiB':>6} {'corrupt':>7}")
        late = {}
        for kind in arguments.jobs or JOBS:
            for name in row(arguments, kind, folder):
                late.setdefault(name, []).append(kind)
        for name, kinds in late.items():
            print(f"{name} took longer than {arguments.rival_limit} s: {', '.join(kinds)}")


if __name__ == "__main__":
    main()
