"""Advice for a job of two models: the code that `tidepool advise` prints changes both, the job computes the same bits, and
its step has the advised peak when it is recorded again."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import torch  # noqa: F401
except ImportError:
    if "TIDEPOOL_REQUIRE_TORCH" in os.environ:
        raise
    raise unittest.SkipTest("PyTorch is not installed; the test of advice for several models needs it") from None

from early_updates_table import output, peak_of, record

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", os.path.join(HERE, "../../build/tidepool"))
JOB = [sys.executable, os.path.join(HERE, "several_models_job.py")]


class SeveralModels(unittest.TestCase):
    def test_checkpoints_in_two_models_have_the_advised_peak(self):
        with tempfile.TemporaryDirectory() as folder:
            plain, again, change = f"{folder}/plain.tide", f"{folder}/again.tide", f"{folder}/change.py"
            record(PROGRAM, JOB, plain)
            advised = json.loads(output([PROGRAM, "advise", plain, "--capacity", "0.6x", "--kinds", "checkpoint", "--json"]))
            both = [each for each in advised["changes"] if any(name.startswith("Coder.") for name in each["modules"])
                    and any(name.startswith("main.") for name in each["modules"])]
            self.assertTrue(both, [each["modules"] for each in advised["changes"]])
            pathlib.Path(change).write_text(both[0]["code"])
            full = [name if name.startswith("Coder.") else f"Decoder.{name}" for name in both[0]["modules"]]
            for name in full:
                self.assertIn(f'"{name}"', both[0]["code"])
            self.assertEqual(output([*JOB, change]), output(JOB))
            record(PROGRAM, [*JOB, change], again)
            self.assertLess(both[0]["peak_bytes"], 0.6 * advised["base_peak_bytes"])
            self.assertLess(abs(both[0]["peak_bytes"] / peak_of(PROGRAM, again) - 1), 0.01)
            lacking = subprocess.run([*JOB, change, "only"], capture_output=True, text=True)
            name = next(name for name in full if name.startswith("Decoder."))
            self.assertEqual(lacking.stderr.splitlines()[-1],
                             f"ValueError: {name}: apply() was given Coder; expected Decoder too")


if __name__ == "__main__":
    unittest.main()
