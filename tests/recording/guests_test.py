"""A job cannot tell that it is recorded, or that it follows a plan. Each kind of job in guest_jobs.py runs alone, and in all WAYS:
exit status, output, errors without Tidepool's lines, the files in its folder, the number of its live tensors and its losses are
equal. (A dry run computes nothing, so its losses are not compared.) Every commit tries a third of the kinds, and
TIDEPOOL_NIGHTLY=1 all of them. As a program, this script prints the table of all kinds, or of those that are named."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

try:
    import torch  # noqa: F401
except ImportError:
    if "TIDEPOOL_REQUIRE_TORCH" in os.environ:
        raise
    raise unittest.SkipTest("PyTorch is not installed; the tests of whole jobs need it") from None

from guest_jobs import KINDS, PRELUDE
from guest_library_jobs import KINDS as LIBRARY_KINDS, missing
from warm_python import Server

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.abspath(os.environ.get("TIDEPOOL_PROGRAM", os.path.join(HERE, "../../build/tidepool")))
RECORDED = "record --torch"
WAYS = {RECORDED: ["record", "--torch", "--no-gpu", "-o", "{folder}/run.tide", "--"],
        "record --dry --torch": ["record", "--dry", "--torch", "-o", "{folder}/run.tide", "--"],
        "run, empty plan": ["run", "--plan", "{recorded}.empty", "--trace", "{recorded}", "--"],
        "run, plan": ["run", "--plan", "{recorded}.plan", "--trace", "{recorded}", "--"],
        # The output of `fit` is its answer; that of the job goes elsewhere.
        "fit": ["fit", "--device", "t4", "--", "bash", "-c", 'exec "$@" >&{out} 2>&{err} {out}>&- {err}>&-', "bash"]}
DRY = ("record --dry --torch", "fit")
PLANS = {"empty": ["100x"], "plan": ["0.7x", "0.8x", "0.9x", "1x", "100x"]}  # capacities; the least for which there is a plan

# The kinds that every commit tries.
COMMIT = ("plain", "closes_all", "closes_streams", "descriptors", "umask", "environment", "order_of_output", "hard_exit",
          "between_steps", "interrupted", "at_exit", "finalizers", "forks", "own_signals", "collector", "lifetimes", "folds",
          "kept_folds", "dispatch_mode", "pickles", "failing_hook", "two_optimizers", "evaluates", "sparse")
# Kinds of which `record` says, with status 1, that there is nothing to record, or less than it was asked for.
UNRECORDED = ("only_forward", "by_hand", "sparse", "between_steps", "small_files", "daemon")
# What `run` says, with status 1, of jobs that are too short or too small for a plan, or do more than one kind of step.
BROKEN = "tidepool: (not carried out|nothing measured|the step used|between its steps|in a step unlike)"
# Without an optimizer's step, a dry run is recorded by a dispatch mode, which leaves objects of Python to tensors of autograd.
OBJECTS = ("by_hand",)


class Guests:
    """Runs kinds of jobs, with PyTorch already loaded unless they begin with another library."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._servers = {False: Server()}
        self._alone, self._traces = {}, {}

    def stop(self):
        for server in self._servers.values():
            server.stop()
        self._folder.cleanup()

    def run(self, kind, way=None):
        """What can be seen of a job, by name; and what Tidepool said."""
        with tempfile.TemporaryDirectory() as folder:
            job, home, trace = (os.path.join(folder, name) for name in ("job.py", "home", "run.tide"))
            os.mkdir(home)
            with open(job, "w", encoding="utf-8") as file:
                file.write(LIBRARY_KINDS.get(kind) or PRELUDE + KINDS[kind] + "\nend()\n")
            command = self._command(kind, way, job)
            with Pipe() as out, Pipe() as err:
                if way:
                    places = {"folder": folder, "recorded": self._recorded(kind) if way.startswith("run") else "",
                              "out": out.end, "err": err.end}
                    command = [PROGRAM, *(word.format(**places) for word in WAYS[way]), *command]
                result = subprocess.run(command, cwd=home, input="given\n", capture_output=True, text=True, timeout=600,
                                        pass_fds=[out.end, err.end] if way == "fit" else [])
                if way == RECORDED and os.path.exists(trace):
                    os.replace(trace, self._trace(kind))
                status, output, said = result.returncode, result.stdout, result.stderr.replace(folder, "")
                errors, ours = parted(said)
                if way == "fit":
                    status, output = status_in(said), out.content()
                    errors, more = parted(err.content().replace(folder, ""))
                    ours += more
            lines = output.replace(folder, "").splitlines()
            # A shell reports a signal that ended a program as 128 and its number, as `record` does.
            return {"status": 128 - status if status < 0 else status,
                    "output": [line for line in lines if not line.startswith("loss")],
                    "losses": [line for line in lines if line.startswith("loss")], "errors": errors, "files": files_of(home)}, ours

    def _command(self, kind, way, job):
        if kind in LIBRARY_KINDS:
            return [sys.executable, job]
        if way in DRY and True not in self._servers:  # the stand-in for a GPU must be in the process from its start
            trace = os.path.join(self._folder.name, "server.tide")
            self._servers[True] = Server(within=[PROGRAM, "record", "--dry", "-o", trace, "--"])
        return self._servers[way in DRY].command(job)

    def _trace(self, kind):
        return os.path.join(self._folder.name, f"{kind}.tide")

    def _recorded(self, kind):
        """A trace of this kind, with its plans beside it. A job that cannot be recorded gets that of another."""
        if kind not in self._traces:
            if not os.path.exists(self._trace(kind)):
                self.run(kind, RECORDED)
            trace = self._traces[kind] = self._trace(kind)
            if not os.path.exists(trace):
                self._traces[kind] = self._recorded("plain")
            for name, capacities in PLANS.items():
                for capacity in capacities:
                    if not os.path.exists(f"{self._traces[kind]}.{name}"):
                        subprocess.run([PROGRAM, "simulate", trace, "--first", "--policy", "tide", "--pool", "ideal", "--capacity",
                                        capacity, "--overhead-limit", "none", "--plan-out", f"{trace}.{name}"], capture_output=True)
        return self._traces[kind]

    def differences(self, kind, way):
        """What of a job is not as without Tidepool, and what Tidepool said."""
        if kind not in self._alone:
            self._alone[kind], _ = self.run(kind)
            if kind in LIBRARY_KINDS and self._alone[kind]["status"] != 0:
                raise RuntimeError(f"{kind} fails alone: {self._alone[kind]}")
        seen, ours = self.run(kind, way)
        alone = dict(self._alone[kind])
        may_say = kind in UNRECORDED or (way.startswith("run") and any(re.match(BROKEN, line) for line in ours))
        if (alone["status"], seen["status"]) == (0, 1) and may_say:
            alone["status"] = 1
        if way in DRY:
            del alone["losses"]
            if kind in OBJECTS:
                del alone["output"]
        return {what: (value, seen[what]) for what, value in alone.items() if seen[what] != value}, ours


class Pipe:
    """Takes what a job writes to the descriptor `end`."""

    def __enter__(self):
        self._begin, self.end = os.pipe()
        os.set_blocking(self._begin, False)
        return self

    def content(self):
        with contextlib.suppress(BlockingIOError):
            return os.read(self._begin, 1 << 16).decode(errors="replace")
        return ""

    def __exit__(self, *_):
        os.close(self._begin)
        os.close(self.end)


def parted(said):
    """The lines of a job, and those of Tidepool."""
    lines = [line for line in said.splitlines() if not re.match("(USDT|ERROR):", line)]  # the profiler's, with the time
    rows = next((i for i, line in enumerate(lines) if re.match("(steps|predicted time) {2,}", line)), len(lines))  # of `run`
    own = [bool(re.match("tidepool|/run|/seen", line)) for line in lines[:rows]]
    return ([line for line, is_own in zip(lines, own) if not is_own],
            [line for line, is_own in zip(lines, own) if is_own] + lines[rows:])


def status_in(said):
    """The exit status of the job that `fit` names."""
    ended = re.search(r"tidepool: the job (?:ended with exit status (\d+)|was killed by (\w+))", said)
    return 0 if not ended else int(ended[1]) if ended[1] else 128 + signal.Signals[ended[2]]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def files_of(folder):
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            lines = read(os.path.join(path, name)).splitlines()
            found[os.path.relpath(os.path.join(path, name), folder)] = [line for line in lines if not line.startswith("loss")]
    return found


class Jobs(unittest.TestCase):
    def test_a_job_is_the_same_as_without_tidepool(self):
        guests = Guests()
        self.addCleanup(guests.stop)
        for kind in [*KINDS, *LIBRARY_KINDS] if "TIDEPOOL_NIGHTLY" in os.environ else COMMIT:
            for way in WAYS:
                with self.subTest(kind=kind, way=way):
                    if kind in LIBRARY_KINDS and missing(kind):
                        self.skipTest(f"{missing(kind)} is not installed")
                    different, ours = guests.differences(kind, way)
                    self.assertEqual(different, {}, "\n".join(ours))


def main(kinds):
    guests = Guests()
    print("| job | " + " | ".join(WAYS) + " |\n" + "|---" * (len(WAYS) + 1) + "|")
    for kind in kinds or [*KINDS, *LIBRARY_KINDS]:
        cells = []
        if kind in LIBRARY_KINDS and missing(kind):
            print(f"| {kind} | skipped: {missing(kind)} is not installed |" + " |" * (len(WAYS) - 1))
            continue
        for way in WAYS:
            different, ours = guests.differences(kind, way)
            cells.append("equal" if not different else "; ".join(f"{what}: {a} / {b}" for what, (a, b) in different.items()))
            if kinds:
                print("\n".join(ours), file=sys.stderr)
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)
    guests.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
