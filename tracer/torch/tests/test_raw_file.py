"""Files of raw captures."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import support  # noqa: F401  finds the package

from tidepool_torch.raw_file import RawFile


class Records(unittest.TestCase):
    @mock.patch("tidepool_torch.raw_file._MOST_HELD", 100)
    def test_dropped_records_leave_the_file_even_if_they_were_written_before_flush(self):
        with tempfile.TemporaryDirectory() as folder:
            file = RawFile(folder)
            file.write(kind="kept")
            file.flush()
            for number in range(10):
                file.write(kind="dropped", number=number)
            path, = pathlib.Path(folder).iterdir()
            self.assertIn("dropped", path.read_text())
            file.drop()
            file.write(kind="later")
            file.close()
            kinds = [json.loads(line).get("kind") for line in path.read_text().splitlines()]
            self.assertEqual(kinds, [None, "kept", "later", "clock"])


class Descriptors(unittest.TestCase):
    def test_a_stream_that_the_job_closed_stays_free_for_the_job(self):
        script = ("import os, sys\n"
                  "from tidepool_torch.raw_file import RawFile\n"
                  "os.close(1)\n"
                  "RawFile(sys.argv[1])\n"
                  "os.fstat(1)\n")
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True,
                                 env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
            self.assertIn("Bad file descriptor", ran.stderr)


class Names(unittest.TestCase):
    def test_the_next_program_of_a_process_begins_a_file_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(3):
                RawFile(folder).close()
            names = sorted(path.name for path in pathlib.Path(folder).iterdir())
            self.assertEqual(names, sorted(f"{os.getpid()}{part}.torch.jsonl" for part in ("", ".2", ".3")))

    @mock.patch("tidepool_torch.raw_file._MOST_FILES", 2)
    def test_the_number_of_files_of_a_process_is_limited(self):
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                RawFile(folder).close()
            with self.assertRaisesRegex(OSError, "2 files of this process are there; expected fewer"):
                RawFile(folder)
