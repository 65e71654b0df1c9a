"""Tests of real jobs under the recorder, on the fake of a GPU, and under a plan. Under the recorder and under a plan,
a job computes the same bits as when it runs alone. In all cases it ends as when it runs alone, and its recording can be
read. Tests name the exceptions, such as jobs that use torch.compile.

TIDEPOOL_NIGHTLY=1 tries all kinds of jobs in all ways, and not only those of COMMIT."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    if "TIDEPOOL_REQUIRE_TORCH" in os.environ:
        raise
    raise unittest.SkipTest("PyTorch is not installed; the tests of whole jobs need it") from None

from warm_python import Server

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", os.path.join(HERE, "../../build/tidepool"))
JOB = os.path.join(HERE, "job.py")

# What a trace says of its ops.
NATIVE = "native" if shutil.which("g++") and os.environ.get("TIDEPOOL_NATIVE") != "off" else None

# Variants of job.py, with the exit status of each.
WHOLE = {variant: 0 for variant in (
    "plain", "workers", "workers-persistent", "workers-spawn-persistent", "accumulate", "amp", "checkpointing", "compile",
    "late-compile", "ddp", "disk-full")}
BROKEN = {"crash": 1, "out-of-memory": 1, "missing-module": 1, "exit": 3, "sigkill": 137, "sigterm": 143}

# The variants that every commit tests.
COMMIT = {
    "record": {"workers", "workers-spawn-persistent", "accumulate", "amp", "checkpointing", "ddp", "disk-full", "crash",
               "exit", "sigkill"},
    "run": {"workers", "amp", "accumulate", "compile", "ddp", "disk-full", "crash", "sigkill"},
    "dry": {"workers", "crash", "sigkill"},
}


def chosen(way, variants):
    """The variants that this run tests."""
    return [variant for variant in variants if "TIDEPOOL_NIGHTLY" in os.environ or variant in COMMIT[way]]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def ends(variant):
    return {**WHOLE, **BROKEN}[variant]


class Jobs(unittest.TestCase):
    """Helpers of the classes of tests."""

    server = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.plain = {}

    def file(self, name):
        return os.path.join(self.folder.name, name)

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=900)

    def job(self, variant):
        arguments = [JOB, variant] + ([free_port()] if variant == "ddp" else [])
        return self.server.command(*arguments) if self.server else [sys.executable, *arguments]

    def unrecorded(self, variant):
        """The output of a job without Tidepool."""
        if variant not in self.plain:
            result = subprocess.run(self.job(variant), capture_output=True, text=True, timeout=900)
            self.assertIn(result.returncode, (ends(variant), 128 - ends(variant)), result.stderr)
            self.assertGreaterEqual(len(result.stdout.splitlines()), 6, result.stderr)
            self.plain[variant] = result.stdout
        return self.plain[variant]

    def facts(self, path):
        """The answer of `tidepool info` for a trace, which it reads and checks."""
        result = self.run_program("info", "--json", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(os.path.exists(os.path.splitext(path)[0] + ".raw"))
        return json.loads(result.stdout)


class Warm(Jobs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)


class Record(Warm):
    """tidepool record --torch"""

    def record(self, variant, *options):
        """Records all iterations unless the options say how many."""
        options = options or ("--iterations", "0")
        trace = self.file("-".join([variant, *options]) + ".tide")
        result = self.run_program("record", "--torch", "--no-gpu", *options, "-o", trace, "--", *self.job(variant))
        self.assertEqual(result.stdout, self.unrecorded(variant), result.stderr)
        return trace, result

    def test_a_job_computes_the_same_and_its_complete_steps_are_recorded(self):
        steps = {"accumulate": 3, "disk-full": 2}  # recorded ones: without the first step of the job
        for variant in chosen("record", WHOLE):
            if "compile" in variant:
                continue
            with self.subTest(variant):
                trace, result = self.record(variant)
                self.assertEqual(result.returncode, 0, result.stderr)
                facts = self.facts(trace)
                self.assertEqual(facts["iterations"], steps.get(variant, 7))
                self.assertEqual(facts["meta"].get("ops"), NATIVE)
                self.assertGreater(facts["ops"], 40 * facts["iterations"])
                said = "2 processes trained; this trace has the ops and the memory of all of them as one step\n"
                self.assertEqual(said in result.stderr, variant == "ddp", result.stderr)

    def test_a_job_that_fails_or_is_killed_leaves_a_trace_of_its_steps(self):
        said = {"crash": "ended with exit status 1 (ValueError: the data of step 6 is bad)",
                "missing-module": "ended with exit status 1 (ModuleNotFoundError: No module named 'no_such_module')",
                "exit": "ended with exit status 3", "sigkill": "was killed by SIGKILL", "sigterm": "was killed by SIGTERM"}
        for variant in chosen("record", BROKEN):
            with self.subTest(variant):
                trace, result = self.record(variant)
                self.assertEqual(result.returncode, ends(variant), result.stderr)
                self.assertIn(f"tidepool: the job {said.get(variant, 'ended with exit status 1 (RuntimeError: ')}",
                              result.stderr)
                self.assertEqual(self.facts(trace)["iterations"], 5)

    def test_a_full_disk_is_said_once(self):
        _, result = self.record("disk-full")
        self.assertEqual(result.stderr.count("the recording of PyTorch ends here: [Errno 27] File too large"), 1)

    def test_a_compiled_job_is_recorded_by_the_operators_of_its_graphs(self):
        trace, result = self.record("compile")
        self.assertEqual(result.returncode, 0, result.stderr)
        facts = self.facts(trace)
        self.assertEqual((facts["iterations"], facts["meta"]["ops"]), (7, "graphs"))

    def test_what_is_compiled_behind_the_first_step_is_not_recorded_and_this_is_said_once(self):
        reason = "RuntimeError: torch.compile replaces the ops that would be recorded"
        trace, result = self.record("late-compile")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count(f"tidepool: the recording of PyTorch ends here: {reason}; the job goes on\n"),
                         1)
        self.assertEqual(self.facts(trace)["iterations"], 3)

    def test_incomplete_steps_are_not_recorded(self):
        trace, result = self.record("plain", "--skip", "7", "--iterations", "1")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "tidepool: nothing recorded: the job ended before a recorded step was complete; "
                                        "expected more steps of its optimizer, or a smaller --skip\n")
        self.assertFalse(os.path.exists(trace))
        trace, result = self.record("plain", "--skip", "5", "--iterations", "4")
        self.assertEqual(result.returncode, 1)
        self.assertIn("tidepool: 2 of 4 iterations are recorded: the job had no more\n", result.stderr)
        self.assertEqual(self.facts(trace)["iterations"], 2)

    def test_an_error_without_a_message_is_named_by_its_type(self):
        job = [sys.executable, "-c", "import torch; raise AssertionError"]
        result = self.run_program("record", "--torch", "--no-gpu", "-o", self.file("silent.tide"), "--", *job)
        self.assertEqual(result.returncode, 1)
        self.assertIn("tidepool: the job ended with exit status 1 (AssertionError)\n", result.stderr)

    def test_a_job_without_the_hook_is_not_recorded_and_the_reason_is_said(self):
        trace = self.file("isolated.tide")
        result = self.run_program("record", "--torch", "--no-gpu", "-o", trace, "--", sys.executable, "-I", "-c", "pass")
        self.assertEqual(result.returncode, 1)
        self.assertIn("tidepool: nothing recorded: PyTorch's hook was not loaded: ", result.stderr)


class Run(Warm):
    """tidepool run"""

    def plan(self, variant):
        trace, plan = self.file(f"{variant}.tide"), self.file(f"{variant}.plan")
        if not os.path.exists(plan):
            result = self.run_program("record", "--torch", "--no-gpu", "--skip", "0" if variant == "accumulate" else "1",
                                      "--iterations", "1", "-o", trace, "--", *self.job(variant))
            self.assertEqual(result.returncode, 0, result.stderr)
            result = self.run_program("simulate", trace, "--first", "--policy", "tide", "--capacity", "0.7x",
                                      "--overhead-limit", "none", "--plan-out", plan)
            self.assertEqual(result.returncode, 0, result.stderr)
        return ["--plan", plan, "--trace", trace]

    def carry_out(self, variant, plan, *options):
        result = self.run_program("run", "--json", *options, *plan, "--", *self.job(variant))
        out = result.stderr[:len(self.unrecorded(variant))] if variant in WHOLE else ""
        said = [line for line in result.stderr.splitlines() if line.startswith("tidepool: ")]
        printed = [line for line in result.stderr.splitlines(keepends=True) if line[0].isdigit() or line[:5] == "test "]
        self.assertEqual("".join(printed), self.unrecorded(variant), out)
        return result.returncode, json.loads(result.stdout), said

    def test_a_plan_is_carried_out_in_every_step_but_the_first(self):
        for variant in chosen("run", ("workers", "workers-persistent", "workers-spawn-persistent", "amp", "checkpointing",
                                      "plain")):
            plan = self.plan(variant if variant in ("amp", "checkpointing") else "plain")
            with self.subTest(variant):
                status, report, said = self.carry_out(variant, plan)
                self.assertEqual((report["iterations"], report["measured"]), (7, 5))
                self.assertEqual(report["left_out"], {})
                self.assertLessEqual(report["measured_peak_bytes"], report["limit_bytes"])
                above = report.get("between_peak_bytes", 0) > report["limit_bytes"]
                self.assertEqual((status, len(said)), (1, 1) if above else (0, 0), said)

    def test_a_plan_of_a_step_without_accumulation_keeps_the_memory_of_one_with_it(self):
        for variant in chosen("run", ["accumulate"]):
            status, report, said = self.carry_out(variant, self.plan("plain"))
            self.assertEqual((status, report["iterations"], len(report["lost"])), (0, 3, 3), said)
            self.assertLessEqual(max(report["measured_peak_bytes"], report["between_peak_bytes"]), report["limit_bytes"])

    def test_a_plan_that_cannot_be_followed_is_said_in_one_sentence(self):
        plan = self.plan("plain")
        replaced = "tidepool: not carried out: torch.compile replaces the ops that the plan is about"
        sentences = {
            "compile": replaced,
            "late-compile": replaced,
            "disk-full": "tidepool: not carried out: no process of the command stepped a PyTorch optimizer as in the trace and "
                         "ended normally",
        }
        for variant in chosen("run", sentences):
            with self.subTest(variant):
                status, _, said = self.carry_out(variant, plan)
                said = [line for line in said if not line.endswith("; the job goes on")]
                self.assertEqual((status, len(said)), (1, 1), said)
                self.assertTrue(said[0].startswith(sentences[variant]), said)

    def test_a_job_that_fails_or_is_killed_ends_in_the_same_way_under_a_plan(self):
        plan = self.plan("plain")
        for variant in chosen("run", [*BROKEN, "ddp"]):
            with self.subTest(variant):
                ended, _, said = self.carry_out(variant, plan)
                self.assertEqual(ended, 1 if variant == "ddp" else ends(variant), said)  # tidepool run follows only one process


class Dry(Jobs):
    """tidepool record --dry. Such a job prints other numbers than usual, since kernels compute nothing."""

    def test_a_job_ends_as_it_does_alone_and_leaves_a_trace(self):
        printed = None
        for variant in chosen("dry", ("workers", "workers-persistent", "workers-spawn-persistent", "accumulate", "amp",
                                      "checkpointing", "compile", "ddp", "crash", "exit", "sigkill", "disk-full")):
            with self.subTest(variant):
                trace = self.file(f"{variant}.tide")
                result = self.run_program("record", "--dry", "--torch", "-o", trace, "--", *self.job(variant))
                self.assertEqual(result.returncode, ends(variant), result.stderr)
                printed = printed or result.stdout
                self.assertEqual(result.stdout, "".join(printed.splitlines(keepends=True)[:result.stdout.count("\n")]))
                facts = self.facts(trace)
                self.assertEqual(facts["iterations"], 1)
                self.assertEqual(facts["meta"].get("ops"), "compiled" if variant == "compile" else NATIVE)
                if variant != "compile":  # the trace has the step by operators
                    self.assertEqual(facts["evidence"]["parameter"], 0)
                    self.assertGreater(facts["kind_bytes"]["activation"], 0)
                self.assertGreater(facts["kernels"], 10)

    def test_a_step_has_the_same_peak_and_overhead_on_the_cpu_and_in_a_dry_run(self):
        job = [sys.executable, os.path.join(HERE, "models.py"), "unet", "--device"]
        ways = {"cpu": ["--no-gpu", "--times", "a100-40gb"], "cuda": ["--dry", "--device", "a100-40gb"]}
        peaks, overheads = {}, {}
        for device, options in ways.items():
            trace = self.file(device + ".tide")
            result = self.run_program("record", "--torch", *options, "--skip", "1", "--iterations", "1", "-o", trace, "--", *job,
                                      device)
            self.assertEqual(result.returncode, 0, result.stderr)
            peaks[device] = self.facts(trace)["ideal_peak_bytes"]
            result = self.run_program("simulate", trace, "--json", "--policy", "dtr", "--pool", "ideal", "--capacity", "0.8x")
            overheads[device] = json.loads(result.stdout)["overhead_ratio"]
        self.assertAlmostEqual(peaks["cuda"] / peaks["cpu"], 1, delta=0.005)
        self.assertAlmostEqual(overheads["cuda"], overheads["cpu"], delta=0.01)

    def test_a_plan_for_recorded_operators_is_carried_out_on_the_stand_in(self):
        trace, plan = self.file("gpu.tide"), self.file("gpu.plan")
        job = [sys.executable, os.path.join(HERE, "../../tests/gpu/unet.py"), "--small", "--device", "cuda"]
        for arguments in (
                ["record", "--dry", "--torch", "--skip", "3", "-o", trace, "--", *job],
                ["simulate", trace, "--first", "--policy", "tide", "--capacity", "0.8x", "--overhead-limit",
                 "none", "--plan-out", plan]):
            result = self.run_program(*arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_program("record", "--dry", "-o", self.file("live.tide"), "--", PROGRAM, "run", "--json", "--plan", plan,
                                  "--trace", trace, "--", *job)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout.splitlines()[-1])
        self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (7, 0, {}))
        self.assertLessEqual(report["measured_peak_bytes"], report["limit_bytes"])
        printed = json.loads([line for line in result.stderr.splitlines() if line.startswith('{"median_ms"')][0])
        self.assertLessEqual(printed["allocated_peak_bytes"], report["limit_bytes"])


if __name__ == "__main__":
    unittest.main()
