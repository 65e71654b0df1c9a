#!/usr/bin/env python3
"""The eight ranks of a DLRM step: ends of collectives, simulated against recorded, and the step with a faster rank.

    tests/recording/dlrm_table.py DLRM [--rank 7] [--scale 0.5] [--program PROGRAM]

DLRM has dlrm_kineto.tar.gz (PARAM, et_replay/tests/inputs: eight ranks on V100) and collectives.csv, the kernels of its collectives as
read without this program: rank, seq (number of the collective), collective, end_us (from the earliest kernel of any rank). Both
clocks are aligned at the recorded end of the last collective. The table has a row for each collective, with the largest difference of
its ends on all ranks. The last line has a what-if: the time of one rank is scaled.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

LIMIT_S = 600  # of one command


def run(*command):
    ended = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           check=False, timeout=LIMIT_S)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} exited with {ended.returncode}:\n{ended.stderr[-4000:]}")
    return ended.stdout


def waited_for_most(said):
    return max(range(len(said["ranks"])), key=lambda rank: said["ranks"][rank]["others_waited_ns"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dlrm", type=pathlib.Path)
    parser.add_argument("--rank", type=int, default=7)
    parser.add_argument("--scale", type=float, default=0.5)
    parser.add_argument("--program", default="build/tidepool")
    arguments = parser.parse_args()
    with (arguments.dlrm / "collectives.csv").open() as file:
        recorded = list(csv.DictReader(file))
    with tempfile.TemporaryDirectory() as scratch:
        job = pathlib.Path(scratch) / "dlrm.json"
        run(arguments.program, "import", arguments.dlrm / "dlrm_kineto.tar.gz", "--format", "kineto", "-o", job)
        said = json.loads(run(arguments.program, "simulate", job, "--json"))
        changed = json.loads(run(arguments.program, "simulate", job, "--rank", arguments.rank, "--scale",
                                 arguments.scale, "--json"))
    ends = [collective["end_ns"] / 1e3 for collective in said["collectives"]]
    if {int(each["seq"]) for each in recorded} != set(range(len(ends))):
        sys.exit(f"{arguments.dlrm / 'collectives.csv'}: other collectives than the {len(ends)} of the job")
    shift = ends[-1] - max(float(each["end_us"]) for each in recorded)
    step = said["makespan_ns"] / 1e3
    print(f"{'':>3} {'collective':<12} {'ranks':>5} {'simulated us':>12} {'off by us':>9} {'of step':>8}")
    worst = 0
    for number, end in enumerate(ends):
        rows = [each for each in recorded if int(each["seq"]) == number]
        off = max(abs(end - float(each["end_us"]) - shift) for each in rows)
        worst = max(worst, off)
        print(f"{number:>3} {rows[0]['collective']:<12} {len(rows):>5} {end:>12.0f} {off:>9.0f} {off / step:>8.3%}")
    print(f"{len(recorded)} ends: the largest difference is {worst:.0f} us, {worst / step:.3%} of the step of "
          f"{step / 1e3:.2f} ms")
    after = changed["makespan_ns"] / 1e3
    print(f"rank {arguments.rank} in {arguments.scale:g} of its time: {after / 1e3:.2f} ms, {after / step - 1:+.2%}; the ranks "
          f"wait most for rank {waited_for_most(changed)}; without the change, for rank {waited_for_most(said)}")


if __name__ == "__main__":
    main()
