"""The points of notebooks/optimum.py: finished runs are kept, and a search ends at its limit. Runs that fail have rows
there."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TIDEPOOL"]
sys.path.append(str(ROOT / "notebooks"))  # last: the folder also has the sources of the package tidepool

from optimum import by_policy, print_table  # noqa: E402
from optimum_points import INSTANCES, Rows, bound_of, measured, points_of_instances, points_of_traces, run_of  # noqa: E402
import sweep_rows  # noqa: E402
from sweep_rows import run_within  # noqa: E402


class Optimum(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.rows = pathlib.Path(self.folder.name) / "rows.jsonl"
        self.points = points_of_traces([ROOT / "traces" / "samples" / "bilstm.tide"], ["0.8x"], ["a100-pcie4"], "best-fit")

    def measure(self, program=PROGRAM):
        return measured(self.points, [("none", "none"), ("coop", "remat")], program, Rows(self.rows, "here"), 60, 2)

    def test_runs_are_kept_and_not_repeated(self):
        first = self.measure()
        self.assertEqual(first, self.measure(program="no such program"))
        bound, runs = first[self.points[0]]
        self.assertEqual(runs["none"]["outcome"], "out_of_memory")
        self.assertEqual(runs["coop"]["outcome"], "ok")
        self.assertLessEqual(bound["bound_ns"], runs["coop"]["makespan_ns"])

    def test_a_row_that_was_cut_is_measured_again(self):
        self.measure()
        whole = self.rows.read_text()
        self.rows.write_text(whole[:-20])
        self.measure()
        self.assertEqual(sorted(json.loads(line)["asked"] for line in self.rows.read_text().splitlines()),
                         sorted(json.loads(line)["asked"] for line in whole.splitlines()))

    def test_runs_of_another_version_are_repeated(self):
        self.measure()
        self.assertEqual(len(Rows(self.rows, "here").kept), 3)
        self.assertEqual(Rows(self.rows, "another").kept, {})

    def test_a_search_ends_at_its_limit_of_cpu_time(self):
        rows, used, _ = run_within([sys.executable, "-c", "while True: pass"], 1)
        self.assertIsNone(rows)
        self.assertGreaterEqual(used, 0.5)  # the kernel counts the limit in whole ticks
        self.assertLess(used, 3)

    def test_a_search_that_hangs_without_cpu_time_ends_the_script(self):
        with mock.patch.object(sweep_rows, "LIMIT_S", 1), self.assertRaisesRegex(SystemExit, "sleep 60"):
            run_within(["sleep", "60"])

    def test_an_error_of_the_program_ends_the_script(self):
        with self.assertRaisesRegex(SystemExit, "no policy"):
            run_of(PROGRAM, self.points[0], "no-such-policy", 60)

    def test_a_policy_without_a_point_that_has_a_plan_is_a_row_without_times(self):
        rows = by_policy({self.points[0]: ({"feasible": False}, {"dtr": {"outcome": "infeasible", "search_s": 0.1}})})
        self.assertEqual([(row["policy"], row["points"], row["median search s"], row["longest"]) for row in rows],
                         [("dtr", 0, None, None)])
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            print_table(rows)
        self.assertEqual(printed.getvalue().splitlines()[1].split(), ["dtr", "0", "0", "0", "-", "0", "-", "-"])

    def test_instances_have_the_time_of_the_published_plan_on_their_link(self):
        points = points_of_instances(self.folder.name)
        rows = json.loads((INSTANCES / "instances.json").read_text())
        self.assertEqual(len(points), len(rows))
        row, point = next((row, point) for row, point in zip(rows, points) if row["name"] == "bilstm-60-12GB")
        self.assertEqual((point.name, point.best_ns), ("bilstm 60% 12GB", row["time_ns"]))
        run = run_of(PROGRAM, point, "lru-swap", 60)
        self.assertEqual(run["baseline_ns"], row["baseline_ns"])
        self.assertGreaterEqual(bound_of(PROGRAM, point)["bound_ns"], row["bound_ns"])


if __name__ == "__main__":
    unittest.main()
