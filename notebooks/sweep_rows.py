"""Functions shared by the scripts of this folder: running a command that prints JSON lines, and naming its rows.

    python3 -m doctest notebooks/sweep_rows.py
"""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time

LIMIT_S = 3600  # of one command, by the clock


def rows_of(command):
    """The JSON lines that a command prints, one dict each. Ends the script if it prints none."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if not done.stdout:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def run_within(command, seconds=None):
    """Runs a command that prints JSON lines. Returns the lines, its CPU time in s, and its share of a core.

    seconds  a limit of its CPU time; if the limit ends the command, the lines are None
    Ends the script if the command prints no line. Kills the command after LIMIT_S + `seconds` seconds by the clock.
    """
    if seconds is not None:
        command = ["sh", "-c", f'ulimit -S -t {seconds}; exec "$@"', "sh", *command]
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors)
        hangs = threading.Timer(LIMIT_S + (seconds or 0), process.kill)
        hangs.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            hangs.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        used, wall = usage.ru_utime + usage.ru_stime, time.monotonic() - begin
        if process.returncode == -signal.SIGXCPU:
            return None, used, used / wall
        output.seek(0), errors.seek(0)
        lines = output.read().splitlines()
        if not lines:
            raise SystemExit(f"{' '.join(map(str, command))}: {errors.read().strip()}")
    return [json.loads(line) for line in lines], used, min(used / wall, 1)


def split_list(text, separator=","):
    """Splits at separators outside parentheses, as the program does.

    >>> split_list("tide(with=swap,effort=60),coop")
    ['tide(with=swap,effort=60)', 'coop']
    >>> split_list("coop")
    ['coop']
    """
    parts, depth = [""], 0
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def trace_names(paths):
    """Short names by path: the file's name, with as many folders before it as are needed to make it unique.

    >>> trace_names(["a/gpt2.tide", "a/vgg16.v2.tide"])
    {'a/gpt2.tide': 'gpt2', 'a/vgg16.v2.tide': 'vgg16.v2'}
    >>> trace_names(["run/a/gpt2.tide", "run/b/gpt2.tide", "run/c/vgg16.tide"])
    {'run/a/gpt2.tide': 'a/gpt2', 'run/b/gpt2.tide': 'b/gpt2', 'run/c/vgg16.tide': 'vgg16'}
    >>> trace_names(["gpt2.tide", "gpt2.jsonl"])
    {'gpt2.tide': 'gpt2.tide', 'gpt2.jsonl': 'gpt2.jsonl'}
    """
    paths = list(dict.fromkeys(paths))
    stems = {path: os.path.splitext(path)[0] for path in paths}
    if len(set(stems.values())) < len(paths):
        stems = {path: path for path in paths}
    parts = {path: stems[path].split(os.sep) for path in paths}
    names = {}
    for path in paths:
        count = 1
        while count < len(parts[path]) and any(
                parts[other][-count:] == parts[path][-count:] for other in paths if other != path):
            count += 1
        names[path] = os.sep.join(parts[path][-count:])
    return names


def policy_name(row):
    """A row's policy with those of its options that differ from their defaults; options of its pool are left out.

    >>> policy_name({"policy": "tide+coop", "options": "best-fit(alignment=1B) tide(with=swap,effort=60)"})
    'tide(with=swap,effort=60)+coop'
    >>> policy_name({"policy": "coop", "options": ""})
    'coop'
    """
    given = {text.split("(")[0]: text for text in split_list(row["options"], " ")}
    return "+".join(given.get(name, name) for name in row["policy"].split("+"))
