#!/usr/bin/env python3
"""Sweeps that are killed (SIGKILL) at random moments: continued, they must give the results of an undisturbed sweep.

    kills.py --program build/tidepool [--kills 200] [--seed 1]

Each trial begins a sweep into a new database, kills it at a random moment within the time of a whole sweep, runs the
same command to its end, and compares the results with those of the undisturbed sweep. The last line is a JSON object: runs and
findings.
"""
import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "traces" / "samples"
SECONDS = 300


class Sweep:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def words(self, database):
        return [self.program, "sweep", SAMPLES / "unet.tide", SAMPLES / "vgg16.tide", "--policy", "none,lru,lru-swap,dtr-eq",
                "--capacity", "0.3x..1x/12", "--first", "-j", "2", "--no-plot", "-o", self.folder / database]

    def start(self, database):
        return subprocess.Popen(self.words(database), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def finish(self, database, which):
        """Finishes the sweep. `which` names it in messages. Returns a message about a fault, or ""."""
        process = self.start(database)
        try:
            _, said = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"{which} is not done after {SECONDS} s"
        return "" if process.returncode == 0 else f"{which} ends with {process.returncode}: {said.strip()}"

    def differs(self, database, expected):
        ran = subprocess.run([self.program, "diff", self.folder / database, self.folder / expected], text=True,
                             stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
        return "" if ran.returncode == 0 else (ran.stdout + ran.stderr).strip()


def trial(sweep, moment, number):
    """@return (whether the sweep was killed before it ended, the seconds until the kill, a message about a fault or "")"""
    database = f"{number}.sqlite"
    begin = time.monotonic()
    process = sweep.start(database)
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    after = time.monotonic() - begin
    process.communicate()
    killed = process.returncode == -signal.SIGKILL
    wrong = sweep.finish(database, "the continued sweep") or sweep.differs(database, "whole.sqlite")
    for left in sweep.folder.glob(f"{database}*"):
        if left.name == database + "-workers" and not wrong:
            wrong = f"{left.name} is left behind"
        left.unlink()
    return killed, after, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    moments = random.Random(asked.seed)
    kills, findings = 0, []
    with tempfile.TemporaryDirectory(prefix="kills-") as scratch:
        sweep = Sweep(asked.program.resolve(), pathlib.Path(scratch))
        begin = time.monotonic()
        if wrong := sweep.finish("whole.sqlite", "the undisturbed sweep"):
            raise SystemExit(wrong)
        takes = time.monotonic() - begin
        number = 0
        while kills < asked.kills:
            moment = moments.uniform(0, takes)
            killed, after, wrong = trial(sweep, moment, number)
            number, kills = number + 1, kills + killed
            if not killed:  # the undisturbed sweep took longer, as on a busy machine
                takes = min(takes, after)
            if wrong:
                findings.append(f"killed after {moment:.3f} s: {wrong}")
                print(findings[-1], file=sys.stderr, flush=True)
            if number % 20 == 0:
                print(f"{kills} of {asked.kills} kills, {len(findings)} findings", file=sys.stderr, flush=True)
    print(json.dumps({"runs": kills, "findings": findings}))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
