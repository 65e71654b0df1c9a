"""Tests of fetch.py: it takes files at fixed commits from repositories, checks them, and names those that it cannot
get, with the reason."""
import gzip
import hashlib
import io
import json
import lzma
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

import fetch

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMED_IN_TESTS = re.compile(r'shared_data\("([^"{]+\.[^"{]+)"\)')


def commit(repository, files):
    """Commits files (contents by path) to a repository, which is made if needed; returns the commit."""
    repository.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_bytes(content)

    def run(*words):
        author = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
        return subprocess.run(["git", "-C", repository, *author, *words], check=True, capture_output=True, text=True).stdout

    run("init", "--quiet")
    run("add", "--all")
    run("commit", "--quiet", "--message", "files")
    return run("rev-parse", "HEAD").strip()


def entry(file, path, content, **more):
    return {"file": file, "path": path, "sha256": hashlib.sha256(content).hexdigest(), **more}


class Fetch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.place = pathlib.Path(scratch.name)
        self.clones, self.folder = self.place / "clones", self.place / "data"

    def fetch(self, sources, elsewhere=()):
        (self.place / "manifest.json").write_text(json.dumps({"sources": sources, "elsewhere": list(elsewhere)}))
        ran = subprocess.run([sys.executable, fetch.__file__, "--to", self.folder, "--from", self.clones, "--manifest",
                              self.place / "manifest.json"], capture_output=True, text=True)
        self.assertEqual(ran.stderr, "")
        return ran.returncode, ran.stdout.splitlines()

    def source(self, files, entries, repository="someone/logs"):
        return {"repository": repository, "commit": commit(self.clones / repository, files), "files": entries}

    def test_a_file_is_taken_at_its_commit_and_compressed(self):
        first = self.source({"a.log": b"first"}, [entry("logs/a.log.gz", "a.log", b"first")])
        commit(self.clones / "someone/logs", {"a.log": b"second"})
        code, lines = self.fetch([first])
        self.assertEqual((code, lines), (0, ["fetched  logs/a.log.gz", f"1 of 1 public files are in {self.folder}"]))
        self.assertEqual(gzip.decompress((self.folder / "logs/a.log.gz").read_bytes()), b"first")

    def test_compression_is_changed_to_that_of_the_name(self):
        code, _ = self.fetch([self.source({"s.json.gz": gzip.compress(b"{}")}, [entry("s.json.xz", "s.json.gz", b"{}")])])
        self.assertEqual(code, 0)
        self.assertEqual(lzma.decompress((self.folder / "s.json.xz").read_bytes()), b"{}")

    def test_a_file_comes_out_of_a_zip_archive(self):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as files:
            files.writestr("logs/a.log", "line")
        source = self.source({"logs.zip": archive.getvalue()}, [entry("a.log", "logs.zip", b"line", member="a.log")])
        self.assertEqual(self.fetch([source])[0], 0)
        self.assertEqual((self.folder / "a.log").read_bytes(), b"line")

    def test_an_archive_of_several_files_stays_as_it_is(self):
        archive = gzip.compress(b"of tar")
        source = self.source({"a.tar.gz": archive}, [entry("b.tar.gz", "a.tar.gz", archive)])
        self.assertEqual(self.fetch([source])[0], 0)
        self.assertEqual((self.folder / "b.tar.gz").read_bytes(), archive)

    def test_a_file_that_is_there_is_not_fetched_again(self):
        source = self.source({"a": b"1"}, [entry("a.gz", "a", b"1")])
        self.assertEqual(self.fetch([source])[0], 0)
        before = (self.folder / "a.gz").stat().st_mtime_ns
        code, lines = self.fetch([{**source, "repository": "no/longer"}])
        self.assertEqual((code, lines[0]), (0, "there    a.gz"))
        self.assertEqual((self.folder / "a.gz").stat().st_mtime_ns, before)

    def test_a_wrong_hash_writes_nothing(self):
        source = self.source({"a": b"1"}, [{"file": "a", "path": "a", "sha256": "0" * 64}])
        code, lines = self.fetch([source])
        found = hashlib.sha256(b"1").hexdigest()
        self.assertEqual((code, lines[0]), (1, f"missing  a: someone/logs {source['commit'][:12]} a: SHA-256 {found}; "
                                               f"expected {'0' * 64}"))
        self.assertFalse(self.folder.exists())

    def test_a_file_with_other_content_is_not_replaced(self):
        self.folder.mkdir()
        (self.folder / "a").write_bytes(b"mine")
        code, lines = self.fetch([self.source({"a": b"1"}, [entry("a", "a", b"1")])])
        self.assertEqual(code, 1)
        self.assertTrue(lines[0].endswith(" a: another file is there; remove it to fetch this one"), lines[0])
        self.assertEqual((self.folder / "a").read_bytes(), b"mine")

    def test_the_other_files_are_fetched_if_one_is_missing(self):
        pointer = b"version https://git-lfs.github.com/spec/v1\n"
        source = self.source({"a": b"1", "big": pointer},
                             [entry("gone", "gone", b""), entry("big", "big", b""), entry("a", "a", b"1")])
        code, lines = self.fetch([source, {**source, "repository": "no/such"}])
        self.assertEqual(code, 1)
        self.assertEqual(lines[0], "fetched  a")
        self.assertIn("path 'gone' does not exist", lines[1])
        self.assertTrue(lines[2].endswith(" big: the repository has only a pointer of Git LFS"), lines[2])
        self.assertEqual(lines[3], "there    a")
        for line, name in zip(lines[4:6], ("gone", "big")):
            self.assertTrue(line.startswith(f"missing  {name}: no/such "), line)
            self.assertIn("repository", line)
        self.assertEqual(lines[6], f"2 of 6 public files are in {self.folder}")

    def test_a_damaged_file_does_not_keep_others_from_being_fetched(self):
        self.folder.mkdir()
        header = 10  # bytes; no block of compressed data begins with 0xff
        (self.folder / "a.gz").write_bytes(gzip.compress(b"1")[:header] + b"\xff" * 20)
        code, lines = self.fetch([self.source({"a": b"1", "b": b"2"}, [entry("a.gz", "a", b"1"), entry("b", "b", b"2")])])
        self.assertEqual((code, lines[0]), (1, "fetched  b"))
        self.assertRegex(lines[1], r"^missing  a\.gz: someone/logs \w{12} a: Error -3 while decompressing data: ")

    def test_every_file_is_missing_without_git(self):
        source = self.source({"a": b"1"}, [entry("a", "a", b"1")])
        with mock.patch.dict(os.environ, {"PATH": str(self.place)}):
            code, lines = self.fetch([source])
        self.assertEqual((code, lines), (1, [f"missing  a: someone/logs {source['commit'][:12]} a: [Errno 2] No such file or "
                                             "directory: 'git'", f"0 of 1 public files are in {self.folder}"]))

    def test_a_git_that_fails_without_a_message_is_named_with_its_exit_code(self):
        with mock.patch.object(subprocess, "run", return_value=subprocess.CompletedProcess([], 128, b"", b"\n")):
            with self.assertRaisesRegex(fetch.Missing, "^git ended with 128$"):
                fetch.git(".", "fetch")

    def test_a_file_that_cannot_be_written_leaves_nothing_behind(self):
        (self.folder / "a").mkdir(parents=True)
        with self.assertRaises(OSError):
            fetch.write(self.folder / "a", b"1")
        self.assertEqual(list(self.folder.iterdir()), [self.folder / "a"])

    def test_it_says_why_a_file_is_not_public(self):
        elsewhere = [{"files": ["table/*.csv"], "why": "computed"}]
        self.assertEqual(self.fetch([], elsewhere)[1][0], "not public  table/*.csv: computed")
        (self.folder / "table").mkdir(parents=True)
        (self.folder / "table/a.csv").write_text("")
        self.assertEqual(self.fetch([], elsewhere)[1], [f"0 of 0 public files are in {self.folder}"])

    def test_a_file_that_is_no_manifest_is_refused(self):
        (self.place / "m").write_text("{")
        ran = subprocess.run([sys.executable, fetch.__file__, "--manifest", self.place / "m"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 2)
        self.assertTrue(ran.stderr.startswith(f"fetch.py: {self.place / 'm'}: "), ran.stderr)


class Manifest(unittest.TestCase):
    manifest = json.loads((ROOT / "tests/inputs/manifest.json").read_text())

    def test_commits_and_hashes_are_whole(self):
        for source in self.manifest["sources"]:
            self.assertRegex(source["commit"], r"^[0-9a-f]{40}$")
            for file in source["files"]:
                self.assertRegex(file["sha256"], r"^[0-9a-f]{64}$")

    def test_it_has_the_origin_of_every_file_that_a_test_in_cpp_names(self):
        named = {name for path in (ROOT / "tests").rglob("*.cpp") for name in NAMED_IN_TESTS.findall(path.read_text())}
        self.assertGreater(len(named), 10)
        self.assertEqual([name for name in sorted(named) if not fetch.known(self.manifest, name)], [])

    def test_its_hashes_are_those_of_the_files_that_are_there(self):
        folder = pathlib.Path(os.environ.get("TIDEPOOL_SHARED") or ROOT / "../shared/data")
        if not folder.exists():
            self.skipTest(f"skipped: no {folder}")
        for source in self.manifest["sources"]:
            for file in source["files"]:
                if (folder / file["file"]).exists():
                    self.assertTrue(fetch.is_there(folder / file["file"], file))


if __name__ == "__main__":
    unittest.main()
