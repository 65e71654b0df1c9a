"""Tests of nightly.py: each finding in the log of a part gets to the page, and a part that fails is never clean."""
import pathlib
import tempfile
import unittest

import nightly
import page


class Results(unittest.TestCase):
    def test_the_reports_of_sanitizers_are_findings(self):
        log = ("==123==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n"
               "==123==ERROR: LeakSanitizer: detected memory leaks\n"
               "WARNING: ThreadSanitizer: data race (pid=123)\n"
               "a.cpp:1:2: runtime error: signed integer overflow\n"
               "==123==ABORTING\n"
               " 3/1800 Test   #3: a test of PyTorch ....***Skipped   0.23 sec\n"
               "99% tests passed, 2 tests failed out of 1800\n"
               "The following tests did not run:\n"
               "\t  3 - a test of PyTorch (Skipped)\n"
               "The following tests FAILED:\n"
               "\t  7 - a test of lists (Subprocess aborted)\n"
               "\t 12 - another (Failed)\n")
        self.assertEqual(nightly.sanitizers_result(log, 8),
                         (1800, ["ERROR: AddressSanitizer: heap-use-after-free on address 0x1",
                                 "ERROR: LeakSanitizer: detected memory leaks",
                                 "WARNING: ThreadSanitizer: data race (pid=123)",
                                 "a.cpp:1:2: runtime error: signed integer overflow",
                                 "a test of lists (Subprocess aborted)", "another (Failed)"], "1 skipped"))

    def test_a_build_with_sanitizers_that_fails_is_a_finding(self):
        self.assertEqual(nightly.sanitizers_result("ninja: build stopped\n", 1),
                         (0, ["exit code 1: ninja: build stopped"], ""))

    def test_a_log_without_a_result_in_its_last_line_is_a_finding(self):
        for last in ("5", "[]", "{}", "null", "Killed", '{"runs": 1, "findings": 2}'):
            self.assertEqual(nightly.json_result(f"begin\n{last}\n", 1), (0, [f"exit code 1: {last}"], ""))

    def test_a_finding_of_several_lines_is_whole_after_the_next_part(self):
        runs, findings, _ = nightly.json_result('{"runs": 7, "findings": ["killed: 1 row differs\\n  a\\n  b"]}', 1)
        self.assertEqual((runs, findings), (7, ["killed: 1 row differs; a; b"]))
        row = {"what": "w", "commit": "c", "minutes": 1, "runs": runs, "said": ""}
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "page.md"
            page.put(path, {**row, "part": "kills", "findings": findings})
            page.put(path, {**row, "part": "steps", "findings": []})
            self.assertEqual(path.read_text().split(page.OPEN)[1], "- kills: killed: 1 row differs; a; b\n")


if __name__ == "__main__":
    unittest.main()
