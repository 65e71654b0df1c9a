#!/usr/bin/env python3
"""Lets calls of the C library fail, one in each run of a command. No failure may crash the command or leave half a
file.

Every run ends with the result that it has without a fault, or with exit code 1 or 2 and a message that names a file of
the command, stdout if that could not be written, or the program that could not be run. A recording of a job that failed
ends with the job's exit code once the job has run. After a failure, the file that the command writes is complete or
missing. A database of results has whole runs, and the same command continues from them to the same results.

    faults.py --program build/tidepool --library build/libtidepool_faults.so [--points 200] [--last 0] [COMMAND...]

--points N: at most N calls of each kind and command fail, spread evenly over all of them. --last N: the last N calls
fail as well. The last line is a JSON object with the number of runs and the findings.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

KINDS = ("memory", "write", "full", "sync", "read", "short_read", "remove")
SECONDS = 300
SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "traces" / "samples" / "unet.tide"
RAW_LOG = """{"tidepool_raw":1,"process":1,"source":"torch","clock":"monotonic_raw","time":1,"monotonic_raw":1}
{"kind":"framework_memory","time":2,"action":"existing","address":4096,"size":64}
{"kind":"range","time":10,"action":"begin","id":1,"meaning":"iteration","name":"0"}
{"kind":"framework_op","start":11,"end":12,"name":"aten::relu_","uses":[["read_write",4096]]}
{"kind":"range","time":13,"action":"end","id":1}
"""
SWEEP = ("--policy", "none,lru,lru-swap", "--capacity", "0.6x,1x", "--first", "-j", "1")


class Command:
    """A command that runs in a separate folder. It writes the file `output`; the commands `before` make its inputs.
    `code` is the exit code of the job that it records."""

    def __init__(self, name, words, output, before=(), code=0):
        self.name, self.words, self.output, self.before, self.code = name, words, output, before, code

    def database(self):
        return self.output.endswith(".sqlite")


COMMANDS = (
    Command("import", ("import", "trace.jsonl.gz", "-o", "out.tide"), "out.tide"),
    Command("record", ("record", "--torch", "--no-gpu", "--iterations", "1", "-o", "out.tide", "--", "sh", "job.sh"), "out.tide"),
    Command("record-failed", ("record", "--torch", "--no-gpu", "-o", "out.tide", "--", "sh", "fails.sh"), "out.tide", code=3),
    Command("sweep", ("sweep", "trace.tide", *SWEEP, "-o", "out.sqlite"), "out.sqlite"),
    Command("merge", ("sweep", "1.sqlite", "2.sqlite", "-o", "out.sqlite"), "out.sqlite",
            before=(("sweep", "trace.tide", *SWEEP, "--shard", "1/2", "-o", "1.sqlite"),
                    ("sweep", "trace.tide", *SWEEP, "--shard", "2/2", "-o", "2.sqlite"))),
    Command("report", ("report", "results.sqlite", "-o", "out.html"), "out.html",
            before=(("sweep", "trace.tide", *SWEEP, "-o", "results.sqlite"),)),
)


class Runner:
    def __init__(self, program, library):
        self.program, self.library = program, library

    def run(self, folder, words, fault="", counts=""):
        environment = {**os.environ, "NO_COLOR": "1"}
        if fault:
            environment |= {"LD_PRELOAD": str(self.library), "TIDEPOOL_FAULT": fault, "TIDEPOOL_FAULT_COUNTS": counts}
        return subprocess.run([self.program, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=SECONDS)

    def must(self, folder, words):
        ran = self.run(folder, words)
        if ran.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: exit code {ran.returncode}; expected 0 without a fault\n{ran.stderr}")

    def prepare(self, command, folder):
        """Makes the command's inputs in `folder`."""
        shutil.copy(SAMPLE, folder / "trace.tide")
        self.must(folder, ("export", "trace.tide", "--to", "jsonl", "-o", "trace.jsonl"))
        subprocess.run(["gzip", "trace.jsonl"], cwd=folder, check=True)
        (folder / "records").write_text(RAW_LOG)
        job = "mkdir -p $TIDEPOOL_RAW && cp records $TIDEPOOL_RAW/1.torch.jsonl\n"
        (folder / "job.sh").write_text(job)
        (folder / "fails.sh").write_text(job + "exit 3\n")
        for words in command.before:
            self.must(folder, words)

    def same(self, command, folder, expected):
        """Whether the command's output equals that without a fault; wall times may differ."""
        if command.database():
            return self.run(folder, ("diff", command.output, str(expected))).returncode == 0
        return without_times((folder / command.output).read_bytes()) == without_times(expected.read_bytes())


def without_times(content):
    """A report without the time at which it was made and the wall times of runs, which differ between equal runs."""
    return re.sub(rb'"(plan_ns|actions_per_second|made)":[^,}]+', b"", content)


def points(count, most, last):
    """At most `most` numbers of 1..count, spread evenly, and the last ones."""
    spread = {1 + round(i * (count - 1) / max(1, min(count, most) - 1)) for i in range(min(count, most))}
    return sorted(spread | set(range(max(1, count - last + 1), count + 1)))


def wrong_end(runner, command, folder, ran, before, expected):
    """The mistake in the outcome of a run with a fault; "" if there is none."""
    if ran.returncode not in (0, 1, 2, command.code):
        return f"exit code {ran.returncode}"
    if "the job ended with exit status" in ran.stderr and ran.returncode != command.code:
        return f"exit code {ran.returncode} of a job that ended with {command.code}"
    if "bad_alloc" in ran.stderr:
        return f"a message for programmers: {ran.stderr.strip()}"
    left = {path.name for path in folder.iterdir()}
    if ran.returncode == 0:
        if not runner.same(command, folder, expected):
            return "exit code 0 with another result"
    else:
        message = ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else ""
        not_run = [f"{word}: cannot be run" for word in command.words]
        if not any(name in ran.stderr for name in (*before, command.output, "out.raw", "stdout", *not_run)):
            return f"a message that names no file: {message}"
        if not command.database() and command.output in left and not runner.same(command, folder, expected):
            return f"exit code {ran.returncode}, and half of {command.output} is there"
    # SQLite's files beside a database may stay, and so may the folder with the raw files of a recording.
    databases = [name for name in (*before, command.output) if name.endswith(".sqlite")]
    allowed = {*before, command.output, "out.raw", *(name + end for name in databases for end in ("-wal", "-shm", "-journal"))}
    if ran.returncode != 0:  # an exception at a place that allows none ends the program at once, like a kill
        allowed |= {name + "-workers" for name in databases}
    if left - allowed:
        return f"left behind: {', '.join(sorted(left - allowed))}"
    if command.database() and ran.returncode != 0:
        again = runner.run(folder, command.words)
        if again.returncode != 0 or not runner.same(command, folder, expected):
            return f"the same command does not go on from it: {again.stderr.strip()}"
        if (folder / f"{command.output}-workers").exists():
            return "the same command leaves the lock of its workers behind"
    return ""


def try_command(runner, command, most, last, report):
    """Every fault of one command. @return (runs, findings)"""
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        whole = pathlib.Path(scratch) / "whole"
        whole.mkdir()
        runner.prepare(command, whole)
        before = {path.name for path in whole.iterdir()}
        clean = pathlib.Path(scratch) / "clean"
        shutil.copytree(whole, clean)
        counts = pathlib.Path(scratch) / "counts"
        ran = runner.run(whole, command.words, "memory:0", str(counts))
        if ran.returncode != command.code:
            raise SystemExit(f"{command.name}: exit code {ran.returncode}; expected {command.code} without a fault\n{ran.stderr}")
        calls = {kind: int(count) for kind, count in (line.split() for line in counts.read_text().splitlines())}
        runs, findings = 0, []
        for kind in KINDS:
            chosen = points(calls[kind], most, last)
            for call in chosen:
                folder = pathlib.Path(scratch) / "run"
                shutil.copytree(clean, folder)
                try:
                    ended = runner.run(folder, command.words, f"{kind}:{call}")
                    wrong = wrong_end(runner, command, folder, ended, before, whole / command.output)
                except subprocess.TimeoutExpired:
                    wrong = f"not done after {SECONDS} s"
                if wrong:
                    findings.append(f"{command.name}, {kind} {call} of {calls[kind]}: {wrong}")
                    print(findings[-1], file=sys.stderr, flush=True)
                shutil.rmtree(folder)
                runs += 1
            report(f"{command.name}, {kind}: {len(chosen)} of {calls[kind]} calls failed, {len(findings)} findings")
        return runs, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--points", type=int, default=200, help="calls of each kind that fail, spread evenly")
    parser.add_argument("--last", type=int, default=0, help="how many of the last calls of each kind fail besides")
    parser.add_argument("commands", nargs="*", help=", ".join(command.name for command in COMMANDS))
    asked = parser.parse_args()
    runner = Runner(asked.program.resolve(), asked.library.resolve())
    runs, findings = 0, []
    for command in COMMANDS:
        if asked.commands and command.name not in asked.commands:
            continue
        more, found = try_command(runner, command, asked.points, asked.last, lambda line: print(line, file=sys.stderr, flush=True))
        runs, findings = runs + more, findings + found
    print(json.dumps({"runs": runs, "findings": findings}))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
