#!/usr/bin/env python3
"""Memory and time of a job of several ranks at many settings, each recorded dry: without a GPU.

    PYTHON notebooks/rank_sweep.py --ranks 2,4 --set batch=1,2,4 [--device h100-80gb] -- train.py [OPTIONS]

Each point is a number of ranks and a value of each --set, which train.py gets as an option (--batch 2); an empty
value leaves the option out, and `on` gives it without a value. torchrun starts the job. The table has, for each
point, the largest peak of tensors of a rank, the most memory that the process of a rank takes on the device (tidepool
fit) and the number of that rank, whether all ranks fit ("unknown" if tidepool fit cannot tell), and the time of the
job's device work, without the host, divided by --steps. Memory is PyTorch's own; times are estimates of kernels and links. A job that ends with an
error is a row that says so, and the exit code is then 1. PYTHON has PyTorch for CUDA.
"""
import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def setting(text):
    """"batch=1,2" as ("batch", ["1", "2"])."""
    name, equals, values = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is no setting; expected an option and its values, as in batch=1,2")
    return name, values.split(",")


def numbers(text):
    try:
        found = [int(each) for each in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 2:
        raise argparse.ArgumentTypeError(f"'{text}': expected whole numbers of ranks from 2, as in 2,4")
    return found


def options_of(point):
    """The options of the job at a point. >>> options_of({"batch": "2", "compile": "on", "shard": ""})
    ['--batch', '2', '--compile']
    """
    return [part for name, value in point.items() if value
            for part in (["--" + name] if value == "on" else ["--" + name, value])]


class Failed(Exception):
    """A failed command. The text is the last line of its errors, or the reason."""


def run(command, limit_s):
    try:
        ended = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               check=False, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise Failed(f"took more than {limit_s} s") from None
    if ended.returncode not in (0, 1):  # fit exits with 1 if it cannot tell whether the job fits
        raise Failed((ended.stderr.splitlines() or ["exit code " + str(ended.returncode)])[-1])
    return ended.stdout


def measure(arguments, folder, ranks, point):
    """The values of a point's row in the table."""
    job = pathlib.Path(folder) / "job.json"
    recorded = subprocess.run([arguments.program, "record", "--dry", "--device", arguments.device, "-o", str(job), "--",
                               sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                               str(ranks), *arguments.job, *options_of(point)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=arguments.limit_s)
    if recorded.returncode != 0 or not job.exists():
        said = [line.strip() for line in recorded.stderr.splitlines() if line.strip()] or ["nothing said"]
        raise Failed(next((line for line in said if re.search(r"[Ee]rror: \S|was killed by", line)), said[-1]))
    fits = json.loads(run([arguments.program, "fit", job, "--device", arguments.device, "--json"], arguments.limit_s))
    ran = json.loads(run([arguments.program, "simulate", job, "--of", "host", "--scale", "0", "--json"],
                         arguments.limit_s))
    most = max(fits["ranks"], key=lambda rank: rank["predicted_bytes"])
    return {"tensors_bytes": max(rank["live_bytes"] for rank in fits["ranks"]), "memory_bytes": most["predicted_bytes"],
            "rank": fits["ranks"].index(most), "fits": fits["fits"], "step_ns": ran["makespan_ns"] / arguments.steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=numbers, required=True, help="numbers of ranks, as in 2,4,8")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="OPTION=VALUES", dest="settings",
                        help="an option of the job with its values; several --set make all combinations")
    parser.add_argument("--device", default="h100-80gb")
    parser.add_argument("--steps", type=int, default=1, help="steps that the job makes: times are divided by it")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--limit-s", type=int, default=1800, metavar="SECONDS", help="of one command")
    parser.add_argument("job", nargs="+", help="the script and its options, after --")
    arguments = parser.parse_args()
    if arguments.steps < 1:
        parser.error(f"--steps: {arguments.steps}; expected at least 1")
    names = [name for name, _ in arguments.settings]
    widths = [max(len(text) for text in (name, *values)) for name, values in arguments.settings]
    print(" ".join(["ranks", *(f"{name:>{width}}" for name, width in zip(names, widths)), f"{'tensors GiB':>11}",
                    f"{'memory GiB':>10}", f"{'of rank':>7}", f"{'fits':>7}", f"{'step ms':>9}"]))
    failed = False
    for ranks in arguments.ranks:
        for values in itertools.product(*(values for _, values in arguments.settings)):
            row = " ".join([f"{ranks:>5}", *(f"{value or '-':>{width}}" for value, width in zip(values, widths))])
            with tempfile.TemporaryDirectory() as folder:
                try:
                    found = measure(arguments, folder, ranks, dict(zip(names, values)))
                except (Failed, subprocess.TimeoutExpired) as error:
                    failed = True
                    print(f"{row}  {error}", flush=True)
                    continue
            fits = {True: "yes", False: "no", None: "unknown"}[found["fits"]]
            print(f"{row} {found['tensors_bytes'] / 2**30:>11.3f} {found['memory_bytes'] / 2**30:>10.3f} "
                  f"{found['rank']:>7} {fits:>7} {found['step_ns'] / 1e6:>9.2f}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
