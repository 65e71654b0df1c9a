"""Waits for the other threads of this process."""

import os
import threading
import time


def wait_for_threads(least, most):
    """Returns when no other thread has had anything to do at three looks in a row, 5 ms apart: between two steps of its
    work, a thread waits for the interpreter. Takes `least` to `most` seconds, and a look."""
    end = time.monotonic() + most
    time.sleep(least)
    quiet = 0
    while quiet < 3 and time.monotonic() < end:
        quiet = 0 if _others_run() else quiet + 1
        time.sleep(0.005)


def _others_run():
    """Whether another thread runs, or would if there were a free processor. False where Linux's /proc is not."""
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return False
    return any(_state_of(thread) in ("R", "D") for thread in threads if int(thread) != threading.get_native_id())


def _state_of(thread):
    try:
        with open(f"/proc/self/task/{thread}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]  # behind the name, which may have spaces
    except OSError:
        return "ended"
