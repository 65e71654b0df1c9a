"""The error of the model of op times on operators and steps that NeuSight measured."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("TIDEPOOL_SHARED", ROOT.parent / "shared" / "data")) / "times"


class OpTimes(unittest.TestCase):
    def test_the_mean_error_of_training_steps_is_at_most_7_percent_and_at_most_3_5_where_they_wait_for_operators_alone(self):
        if not DATA.exists():
            self.skipTest(f"{DATA} is not there: it has measured times of operators and steps")
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("PyTorch is not installed; the model of op times needs it")
        command = [sys.executable, ROOT / "tests" / "recording" / "op_times_table.py", DATA, "--rows", "40"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = re.search(r"mean error of 14 steps: ([\d.]+) %.*on the same: ([\d.]+) %.*passes: ([\d.]+) %", said)
        ours, theirs, backward = found.groups()
        self.assertLessEqual(float(ours), 7)  # the goal is 5 %
        self.assertLessEqual(float(backward), 3.5)
        self.assertLessEqual(float(re.search(r"one by one: 10 steps: ([\d.]+) %", said).group(1)), 3.5)
        self.assertLess(float(ours), float(theirs))
        errors = [abs(float(error)) for error in re.findall(r"NVIDIA H100[^|]*\|[^|]*\|[^|]*\|[^|]*\| ([+-][\d.]+) \|", said)]
        self.assertEqual(len(errors), 4)
        self.assertLessEqual(sum(errors) / 4, 5)


if __name__ == "__main__":
    unittest.main()
