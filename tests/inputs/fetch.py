#!/usr/bin/env python3
"""Fetches the public real inputs of the tests: files of other people's repositories, each at a fixed commit.

    tests/inputs/fetch.py                         into the tests' folder: $TIDEPOOL_SHARED or ../shared/data
    tests/inputs/fetch.py --to FOLDER             into another folder
    tests/inputs/fetch.py --from FOLDER           from clones in FOLDER/OWNER/NAME instead of GitHub

The manifest names repository, commit, path and the SHA-256 of the content without compression (of a .tar.gz: of the
archive as it is). A file is written only if its hash is right. Needs git. Several of the repositories have no licence
file: use the files for tests only, and do not distribute them. Exit code 0: every public file is there; 1: some could
not be fetched; 2: wrong input.
"""
import argparse
import fnmatch
import gzip
import hashlib
import io
import json
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
GIT_LFS = b"version https://git-lfs"


class Missing(Exception):
    """A file that could not be fetched; the text says why."""


FAILURES = (Missing, OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)


def decompressed(name, content):
    """The content of a .gz or .xz file; of any other file, and of a .tar.gz, its bytes as they are."""
    if name.endswith(".tar.gz"):
        return content
    if name.endswith(".gz"):
        return gzip.decompress(content)
    return lzma.decompress(content) if name.endswith(".xz") else content


def compressed(name, content):
    """The inverse of `decompressed`; equal contents give equal files."""
    if name.endswith(".tar.gz"):
        return content
    if name.endswith(".gz"):
        return gzip.compress(content, mtime=0)
    return lzma.compress(content) if name.endswith(".xz") else content


def member_of(archive, name):
    """The one file with this name in a zip archive, in any of its folders."""
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        paths = [path for path in files.namelist() if path.rsplit("/", 1)[-1] == name]
        if len(paths) != 1:
            raise Missing(f"{len(paths)} files in the archive have the name {name}; expected one")
        return files.read(paths[0])


def git(clone, *arguments):
    """The output of git. Git must not ask for a password, as it would for a repository that does not exist."""
    ran = subprocess.run(["git", "-C", clone, *arguments], capture_output=True,
                         env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
    if ran.returncode != 0:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        raise Missing(said[-1] if said else f"git ended with {ran.returncode}")
    return ran.stdout


def fetch_commit(origin, commit, clone):
    """Fetches one commit without its files, which git fetches when they are read."""
    git(".", "init", "--quiet", "--bare", clone)
    git(clone, "remote", "add", "origin", origin)
    git(clone, "fetch", "--quiet", "--depth=1", "--filter=blob:none", "origin", commit)


def content_of(clone, commit, entry):
    """The content of one file of the manifest, without compression and checked."""
    content = git(clone, "cat-file", "blob", f"{commit}:{entry['path']}")
    if content.startswith(GIT_LFS):
        raise Missing("the repository has only a pointer of Git LFS")
    if "member" in entry:
        content = member_of(content, entry["member"])
    elif not entry["file"].endswith(".tar.gz"):
        content = decompressed(entry["path"], content)
    found = hashlib.sha256(content).hexdigest()
    if found != entry["sha256"]:
        raise Missing(f"SHA-256 {found}; expected {entry['sha256']}")
    return content


def write(path, content):
    """Writes the whole file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        whole = pathlib.Path(scratch) / path.name
        whole.write_bytes(content)
        os.replace(whole, path)


def is_there(path, entry):
    """Whether a file is there with the right content. Raises Missing for a file with other content."""
    if not path.exists():
        return False
    if hashlib.sha256(decompressed(path.name, path.read_bytes())).hexdigest() != entry["sha256"]:
        raise Missing("another file is there; remove it to fetch this one")
    return True


def fetch_source(source, base, folder):
    """Fetches the files of one commit that are not there yet; returns how many are missing afterwards."""
    repository, commit = source["repository"], source["commit"]
    wanted, missing = [], []
    for entry in source["files"]:
        try:
            if is_there(folder / entry["file"], entry):
                print(f"there    {entry['file']}")
            else:
                wanted.append(entry)
        except FAILURES as error:
            missing.append((entry, error))
    with tempfile.TemporaryDirectory() as clone:
        try:
            if wanted:
                fetch_commit(f"{base}/{repository}", commit, clone)
        except FAILURES as error:
            missing += [(entry, error) for entry in wanted]
            wanted = []
        for entry in wanted:
            try:
                write(folder / entry["file"], compressed(entry["file"], content_of(clone, commit, entry)))
                print(f"fetched  {entry['file']}")
            except FAILURES as error:
                missing.append((entry, error))
    for entry, error in missing:
        print(f"missing  {entry['file']}: {repository} {commit[:12]} {entry['path']}: {error}")
    return len(missing)


def say_elsewhere(elsewhere, folder):
    """Prints the missing inputs that no public repository has in the form in which tests read them."""
    for entry in elsewhere:
        for pattern in entry["files"]:
            if not any(folder.glob(pattern)):
                print(f"not public  {pattern}: {entry['why']}")


def known(manifest, file):
    """Whether the manifest says where a file comes from."""
    public = (entry["file"] for source in manifest["sources"] for entry in source["files"])
    patterns = (pattern for entry in manifest["elsewhere"] for pattern in entry["files"])
    return file in public or any(fnmatch.fnmatchcase(file, pattern) for pattern in patterns)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=pathlib.Path, metavar="FOLDER", help="default: $TIDEPOOL_SHARED or ../shared/data",
                        default=os.environ.get("TIDEPOOL_SHARED") or HERE.parents[1] / ".." / "shared" / "data")
    parser.add_argument("--from", dest="base", metavar="BASE", default="https://github.com",
                        help="an address or a folder with OWNER/NAME below it (default: %(default)s)")
    parser.add_argument("--manifest", type=pathlib.Path, default=HERE / "manifest.json")
    asked = parser.parse_args()
    try:
        manifest = json.loads(asked.manifest.read_text())
    except (OSError, ValueError) as error:
        print(f"fetch.py: {asked.manifest}: {error}; expected the manifest of the inputs", file=sys.stderr)
        return 2
    base = asked.base if "://" in asked.base else pathlib.Path(asked.base).resolve()
    folder = pathlib.Path(asked.to).resolve()
    missing = sum(fetch_source(source, base, folder) for source in manifest["sources"])
    say_elsewhere(manifest["elsewhere"], folder)
    files = sum(len(source["files"]) for source in manifest["sources"])
    print(f"{files - missing} of {files} public files are in {folder}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
