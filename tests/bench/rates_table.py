#!/usr/bin/env python3
"""Prints the rates of runs beside those of libCacheSim, which this script fetches and builds, in the same minutes.

    tests/bench/rates_table.py [--program build/tidepool] [--folder FOLDER] [--ops 100000,1000000] [--rounds 3]

Needs git, CMake and the headers of GLib and zstd (libglib2.0-dev, libzstd-dev). A rate of libCacheSim is in requests a
second, over its sample of CloudPhysics repeated to eleven million requests, with a cache of a tenth of what it touches. A
rate of Tidepool is in actions a second, over the chain of sizes_table.py. Each rate is the best of the rounds, in which
all programs take turns.
"""

import argparse
import json
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "sizes"))
from sizes_table import chain, make_step

SOURCE = "https://github.com/1a1a11a/libCacheSim"
COMMIT = "aa0fc40"
REQUESTS = 11_000_000
RECORD = 24  # bytes of a request in the form oracleGeneral
RUNS = {"none": ["--policy", "none", "--capacity", "2x"], "best-fit": ["--pool", "best-fit", "--capacity", "2x"],
        "lru-swap": ["--policy", "lru-swap", "--capacity", "0.8x"], "dtr-eq": ["--policy", "dtr-eq", "--capacity", "0.8x"]}
SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "traces/samples/vgg16.tide"
SWEEP = ["--policy", "none,lru-swap,dtr-eq,capuchin,next-use", "--pool", "best-fit,first-fit,ideal,pytorch",
         "--capacity", "0.5x..1.0x/50"]
WANTED = {"none": ("FIFO", 3), "best-fit": ("FIFO", 3), "lru-swap": ("LRU", 1.5), "dtr-eq": ("LRU", 0.8)}


def built(folder, source):
    """The path of libCacheSim's simulator, and that of its sample."""
    code, build = folder / "libCacheSim", folder / "libCacheSim-build"
    if not code.exists():
        subprocess.run(["git", "clone", "--quiet", source, code], check=True)
        subprocess.run(["git", "-C", code, "checkout", "--quiet", COMMIT], check=True)
    if not (build / "bin/cachesim").exists():
        quiet = {"check": True, "stdout": subprocess.DEVNULL}
        subprocess.run(["cmake", "-S", code, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DENABLE_TESTS=OFF"], **quiet)
        subprocess.run(["cmake", "--build", build, "--target", "cachesim", "-j", str(os.cpu_count())], **quiet)
    return build / "bin/cachesim", code / "data/cloudPhysicsIO.oracleGeneral.bin"


def repeated(sample, path):
    requests = sample.read_bytes()
    with open(path, "wb") as out:
        for _ in range(math.ceil(REQUESTS * RECORD / len(requests))):
            out.write(requests)
    return path


def rate_of_cache(cachesim, requests, policy, folder):
    """Requests a second."""
    said = subprocess.run([cachesim, requests, "oracleGeneral", policy, "0.1", "--num-thread", "1"], cwd=folder, check=True,
                          capture_output=True, text=True)
    found = re.findall(r"([0-9.]+) MQPS", said.stdout + said.stderr)
    if not found:
        raise RuntimeError(f"cachesim printed no rate: {said.stdout}{said.stderr}")
    return float(found[-1]) * 1e6


def rate_of_run(program, step, run):
    """Actions a second."""
    said = subprocess.run([program, "simulate", step, *RUNS[run], "--first", "--json"], check=True, capture_output=True, text=True)
    return json.loads(said.stdout)["actions_per_second"]


def rate_of_sweep(program, folder):
    """Runs a second, and seconds of CPU time."""
    results = folder / "sweep.db"
    results.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run([program, "sweep", SAMPLE, *SWEEP, "-o", results], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rate = re.search(r"1,000 runs in .*: ([0-9.,]+) runs/s", said.stdout + said.stderr)
    return float(rate[1].replace(",", "")), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--folder", help="keep libCacheSim there")
    parser.add_argument("--source", default=SOURCE, help="where git finds libCacheSim (default: %(default)s)")
    parser.add_argument("--ops", default="100000,1000000", metavar="N,...")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sizes = [int(text) for text in options.ops.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(options.folder or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        cachesim, sample = built(folder, options.source)
        requests = repeated(sample, pathlib.Path(scratch) / "requests.bin")
        steps = {ops: make_step(options.program, pathlib.Path(scratch), f"chain{ops}", chain(ops)) for ops in sizes}
        best, sweeps = {}, []
        for _ in range(options.rounds):
            rates = {(policy, None): rate_of_cache(cachesim, requests, policy, scratch) for policy in ("FIFO", "LRU", "Sieve")}
            rates |= {(run, ops): rate_of_run(options.program, step, run) for ops, step in steps.items() for run in RUNS}
            sweeps.append(rate_of_sweep(options.program, pathlib.Path(scratch)))
            best = {key: max(rate, best.get(key, 0)) for key, rate in rates.items()}
        for policy in ("FIFO", "LRU", "Sieve"):
            print(f"libCacheSim, {policy}: {best[policy, None] / 1e6:.2f} M requests a second")
        print(f"\n| M actions a second | {' | '.join(f'{ops:,} ops' for ops in sizes)} | wanted |\n|---|{'---|' * (len(sizes) + 1)}")
        for run, (rival, factor) in WANTED.items():
            cells = " | ".join(f"{best[run, ops] / 1e6:.2f}" for ops in sizes)
            print(f"| {run} | {cells} | {factor * best[rival, None] / 1e6:.2f} ({factor} times {rival}) |")
        print(f"\nSweep: {max(rate for rate, _ in sweeps):.0f} runs a second, {min(cpu for _, cpu in sweeps):.2f} s of CPU time")


if __name__ == "__main__":
    sys.exit(main())
