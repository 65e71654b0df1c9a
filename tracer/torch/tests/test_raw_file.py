"""Files of raw captures."""

import os
import pathlib
import tempfile
import unittest

import support  # noqa: F401  finds the package

from tidepool_torch.raw_file import RawFile


class Names(unittest.TestCase):
    def test_the_next_program_of_a_process_begins_a_file_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(3):
                RawFile(folder).close()
            names = sorted(path.name for path in pathlib.Path(folder).iterdir())
            self.assertEqual(names, sorted(f"{os.getpid()}{part}.torch.jsonl" for part in ("", ".2", ".3")))
