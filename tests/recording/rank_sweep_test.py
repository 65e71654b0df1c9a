"""notebooks/rank_sweep.py: a row for each point, recorded dry."""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", os.path.join(ROOT, "build/tidepool"))


def sweep(*arguments):
    return subprocess.run([sys.executable, os.path.join(ROOT, "notebooks/rank_sweep.py"), "--program", PROGRAM, *arguments],
                          capture_output=True, text=True, check=False, timeout=600)


class RankSweep(unittest.TestCase):
    def test_each_point_is_a_row_and_a_job_that_fails_says_why(self):
        shape = ("--width", "256", "--heads", "4", "--vocabulary", "1024", "--tokens", "128")
        ran = sweep("--ranks", "2", "--set", "layers=2,4,x", "--", os.path.join(ROOT, "tests/dry/fsdp2.py"), *shape)
        head, *rows = ran.stdout.splitlines()
        self.assertEqual(head.split(), "ranks layers tensors GiB memory GiB of rank fits step ms".split(), ran.stderr)
        self.assertEqual([row.split()[:2] for row in rows], [["2", "2"], ["2", "4"], ["2", "x"]])
        for row in rows[:2]:
            self.assertRegex(row, r"^ *2 +[24]( +[0-9.]+){2} +[01] +(yes|no) +[0-9.]+$")
        two, four = ([float(number) for number in row.split()[2:4]] for row in rows[:2])
        # A block has 12 * 256^2 + 13 * 256 parameters; each rank has half of them, their gradients, and the optimizer's two
        # numbers for each, in 32 bits: 6 MiB for a block.
        self.assertGreater(four[0] - two[0], 2 * 6 / 1024)
        self.assertGreater(two[1], two[0])
        self.assertEqual([row.split()[5] for row in rows[:2]], ["yes", "yes"])
        self.assertGreater(float(rows[1].split()[6]), float(rows[0].split()[6]))
        self.assertIn("error: argument --layers: invalid int value: 'x'", rows[2])
        self.assertEqual(ran.returncode, 1)

    def test_settings_without_values_and_single_ranks_are_refused(self):
        refused = sweep("--ranks", "2", "--set", "layers", "--", "train.py")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("'layers' is no setting; expected an option and its values, as in batch=1,2", refused.stderr)
        refused = sweep("--ranks", "1,2", "--", "train.py")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("'1,2': expected whole numbers of ranks from 2, as in 2,4", refused.stderr)


if __name__ == "__main__":
    unittest.main()
