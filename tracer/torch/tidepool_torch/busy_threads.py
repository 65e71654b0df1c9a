"""Waits for the other threads of this process."""

import os
import threading
import time


def wait_for_threads(least, most):
    """Returns when three checks in a row, 5 ms apart, found no other thread at work, or gives up. One check is not
    enough: between two steps of its work, a thread waits for the interpreter. The first check is after `least` seconds, and
    none begins later than `most` seconds after the call."""
    end = time.monotonic() + most
    time.sleep(least)
    quiet = 0
    while quiet < 3 and time.monotonic() < end:
        quiet = 0 if _others_run() else quiet + 1
        time.sleep(0.005)


def _others_run():
    """Whether another thread runs, or waits for a free processor or a disk. False without Linux's /proc."""
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return False
    return any(_state_of(thread) in ("R", "D") for thread in threads if int(thread) != threading.get_native_id())


def _state_of(thread):
    try:
        with open(f"/proc/self/task/{thread}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]  # after the name, which may have spaces
    except OSError:
        return "ended"
