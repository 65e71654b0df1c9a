"""Tests of pieces.py and of the scripts on it: nothing is lost when a piece fails, or when the whole is interrupted."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

import pieces
import samples
import steps


def says(text, code=0, name="one"):
    return pieces.Piece(name, [sys.executable, "-c", f"print({text!r}); raise SystemExit({code})"], steps.result)


def ran(these, kept=None):
    """@return (exit code, last line as JSON)"""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        code = pieces.run_all(these, kept)
    return code, json.loads(printed.getvalue().splitlines()[-1])


class Pieces(unittest.TestCase):
    def test_runs_and_counts_are_summed(self):
        self.assertEqual(ran([says("tiny steps 1 to 1000: 950 solved, 0 findings"),
                              says("tiny steps of several streams 1 to 200: 190 solved, 0 findings")]),
                         (0, {"runs": 1200, "findings": [], "took": ["1140 solved exactly"]}))

    def test_a_crash_before_or_after_the_result_is_a_finding(self):
        ended = "tiny steps 1 to 1000: 950 solved, 0 findings\nSegmentation fault"
        self.assertEqual(ran([says(ended, 139)])[1]["findings"], ["one: exit code 139: Segmentation fault"])
        self.assertEqual(ran([says("Segmentation fault", 139), says(ended)]),
                         (1, {"runs": 1000, "findings": ["one: exit code 139: Segmentation fault"],
                              "took": ["950 solved exactly"]}))

    def test_each_finding_of_a_piece_is_reported(self):
        code, whole = ran([says("seed 7: a bound above the optimum: lp says 9 ns\nseed 9: an error: lru\n"
                                "tiny steps 1 to 10: 10 solved, 2 findings", 1)])
        self.assertEqual((code, whole["runs"], whole["findings"]),
                         (1, 10, ["one: seed 7: a bound above the optimum: lp says 9 ns", "one: seed 9: an error: lru"]))

    def test_a_kept_result_is_not_computed_again_but_an_interrupted_piece_is(self):
        with tempfile.TemporaryDirectory() as scratch:
            kept = pathlib.Path(scratch) / "steps"
            ran([says("tiny steps 1 to 10: 9 solved, 0 findings"), says("interrupted", 2, name="two")], kept)
            self.assertEqual([path.name for path in kept.iterdir()], ["one.json"])
            self.assertEqual(ran([says("another", 1), says("tiny steps 1 to 5: 5 solved, 0 findings", name="two")], kept),
                             (0, {"runs": 15, "findings": [], "took": ["14 solved exactly"]}))

    def test_ranges_cover_each_seed_once(self):
        found = steps.ranges("program", 7500)
        for test, last in ((steps.ONE, 6000), (steps.SEVERAL, 1500)):
            seeds = []
            for piece in found:
                if piece.command[1] == test:
                    first = int(piece.environment["TIDEPOOL_TINY_FIRST"])
                    seeds += range(first, first + int(piece.environment["TIDEPOOL_TINY_STEPS"]))
            self.assertEqual(seeds, list(range(1, last + 1)))

    def test_a_failed_sample_says_which_run(self):
        self.assertEqual(samples.result("vgg16: 1208 plans\n"), (1208, [], {}))
        self.assertIsNone(samples.result("Killed\n"))
        said = "tests/a.cpp:17: FAILED:\n  REQUIRE( a == b )\nwith message:\n  unet pool pytorch policy lru capacity 0.5x\n"
        self.assertEqual(samples.result(said)[1], ["tests/a.cpp:17: FAILED:; REQUIRE( a == b ); with message:; "
                                                   "unet pool pytorch policy lru capacity 0.5x"])


if __name__ == "__main__":
    unittest.main()
