"""Files of raw captures."""

import io
import json
import os
import pathlib
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


class Guests(unittest.TestCase):
    """The job does what it likes with its descriptors and files."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = RawFile(self.folder / "raw")
        self.path, = (self.folder / "raw").iterdir()
        self.begun = self.path.read_text()

    def ends_with(self, reason):
        errors = io.StringIO()
        with mock.patch("sys.stderr", errors):
            for _ in range(2):
                self.file.write(kind="late")
                self.file.flush()
        self.assertEqual(errors.getvalue(), f"tidepool: the recording of PyTorch ends here: {reason}\n")
        self.assertFalse(self.file.is_open)

    def test_a_file_has_no_descriptor_that_the_job_could_close_or_inherit(self):
        with tempfile.TemporaryDirectory() as other:
            before = os.listdir("/proc/self/fd")
            file = RawFile(other)
            file.write(kind="one")
            file.flush()
            self.assertEqual(os.listdir("/proc/self/fd"), before)

    def test_a_recording_goes_on_after_the_job_has_left_its_folder(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        file = RawFile("here")
        os.chdir("/")
        file.write(kind="one")
        file.flush()
        path, = (self.folder / "here").iterdir()
        self.assertIn("one", path.read_text())

    def test_a_recording_goes_on_under_a_mask_that_forbids_all(self):
        self.addCleanup(os.umask, os.umask(0o777))
        file = RawFile(self.folder / "raw")
        self.assertEqual((self.folder / "raw" / f"{os.getpid()}.2.torch.jsonl").stat().st_mode & 0o777, 0o600)
        file.close()

    def test_a_file_that_the_job_removed_is_not_made_again(self):
        self.path.unlink()
        self.ends_with(f"[Errno 2] No such file or directory: '{self.path}'")
        self.assertEqual(list((self.folder / "raw").iterdir()), [])

    def test_a_file_of_the_job_in_its_place_stays_as_it_is(self):
        kept = self.path.rename(self.folder / "kept")
        self.path.write_text("the job's")
        self.ends_with(f"[Errno 2] another file has taken its place: '{self.path}'")
        self.assertEqual((self.path.read_text(), kept.read_text()), ("the job's", self.begun))


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
