"""A job cannot tell that it is recorded. Each kind of job in guest_jobs.py runs alone, under `record --torch`, and in a dry
run: exit status, output, errors without Tidepool's lines, the files in its folder, the number of its live tensors and its losses are
equal. (A dry run computes nothing, so its losses are not compared.) Every commit tries a third of the kinds, and
TIDEPOOL_NIGHTLY=1 all of them. As a program, this script prints the table of all kinds, or of those that are named."""

import os
import re
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
from warm_python import Server

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.abspath(os.environ.get("TIDEPOOL_PROGRAM", os.path.join(HERE, "../../build/tidepool")))
WAYS = {"record --torch": ["--torch", "--no-gpu"], "record --dry --torch": ["--dry", "--torch"]}

# The kinds that every commit tries.
COMMIT = ("plain", "closes_all", "closes_streams", "descriptors", "umask", "environment", "order_of_output", "hard_exit",
          "between_steps", "interrupted", "at_exit", "finalizers", "forks", "own_signals", "collector", "lifetimes", "folds",
          "kept_folds", "dispatch_mode", "pickles", "failing_hook", "two_optimizers", "evaluates", "sparse")
# Kinds of which `record` says, with status 1, that there is nothing to record, or less than it was asked for.
UNRECORDED = ("only_forward", "by_hand", "sparse", "between_steps", "small_files", "daemon")


class Guests:
    """Runs kinds of jobs, with PyTorch already loaded."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._servers = {"alone": Server()}
        self._servers["record --torch"] = self._servers["alone"]
        self._alone = {}

    def stop(self):
        for server in {id(server): server for server in self._servers.values()}.values():
            server.stop()
        self._folder.cleanup()

    def _server(self, way):
        if way not in self._servers:  # the stand-in for a GPU must be in the process from its start
            trace = os.path.join(self._folder.name, "server.tide")
            self._servers[way] = Server(within=[PROGRAM, "record", "--dry", "-o", trace, "--"])
        return self._servers[way]

    def run(self, kind, way):
        """What can be seen of a job, by name; and what Tidepool said."""
        with tempfile.TemporaryDirectory() as folder:
            job, home = os.path.join(folder, "job.py"), os.path.join(folder, "home")
            os.mkdir(home)
            with open(job, "w", encoding="utf-8") as file:
                file.write(PRELUDE + KINDS[kind] + "\nend()\n")
            command = self._server(way).command(job)
            if way in WAYS:
                command = [PROGRAM, "record", *WAYS[way], "-o", os.path.join(folder, "run.tide"), "--", *command]
            result = subprocess.run(command, cwd=home, input="given\n", capture_output=True, text=True, timeout=300)
            ours, errors = [], []
            for line in result.stderr.splitlines():
                if not re.match("(USDT|ERROR):", line):  # the profiler's, with the time
                    (ours if re.match(rf"tidepool|{folder}/run", line) else errors).append(line.replace(folder, ""))
            output = result.stdout.replace(folder, "").splitlines()
            # A shell reports a signal that ended a program as 128 and its number, as `record` does.
            status = 128 - result.returncode if result.returncode < 0 else result.returncode
            return {"status": status, "output": [line for line in output if not line.startswith("loss")],
                    "losses": [line for line in output if line.startswith("loss")], "errors": errors,
                    "files": files_of(home)}, ours

    def differences(self, kind, way):
        """What of a job is not as without Tidepool, and what Tidepool said."""
        if kind not in self._alone:
            self._alone[kind], _ = self.run(kind, "alone")
        seen, ours = self.run(kind, way)
        alone = dict(self._alone[kind])
        if alone["status"] == 0 and kind in UNRECORDED and seen["status"] == 1:
            alone["status"] = 1
        if way != "record --torch":
            del alone["losses"]
        return {what: (value, seen[what]) for what, value in alone.items() if seen[what] != value}, ours


def files_of(folder):
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
            found[os.path.relpath(os.path.join(path, name), folder)] = [line for line in lines if not line.startswith("loss")]
    return found


class Jobs(unittest.TestCase):
    def test_a_job_is_the_same_as_without_a_recorder(self):
        guests = Guests()
        self.addCleanup(guests.stop)
        for kind in KINDS if "TIDEPOOL_NIGHTLY" in os.environ else COMMIT:
            for way in WAYS:
                with self.subTest(kind=kind, way=way):
                    different, ours = guests.differences(kind, way)
                    self.assertEqual(different, {}, "\n".join(ours))


def main(kinds):
    guests = Guests()
    print("| job | " + " | ".join(WAYS) + " |\n" + "|---" * (len(WAYS) + 1) + "|")
    for kind in kinds or KINDS:
        cells = []
        for way in WAYS:
            different, ours = guests.differences(kind, way)
            cells.append("equal" if not different else "; ".join(f"{what}: {a} / {b}" for what, (a, b) in different.items()))
            if kinds:
                print("\n".join(ours), file=sys.stderr)
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)
    guests.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
