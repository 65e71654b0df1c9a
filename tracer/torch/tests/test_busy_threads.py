"""The wait for other threads at the end of a job."""

import hashlib
import threading
import time
import unittest

import support  # noqa: F401  adds the package to the path

from tidepool_torch.busy_threads import wait_for_threads


class Waits(unittest.TestCase):
    def seconds(self, least, most):
        begin = time.monotonic()
        wait_for_threads(least, most)
        return time.monotonic() - begin

    def busy(self, stop):
        """Starts a thread that runs without the interpreter's lock until `stop`, and then waits."""
        data, ended = bytes(1 << 20), threading.Event()
        self.addCleanup(ended.set)

        def work():
            while time.monotonic() < stop and not ended.is_set():
                hashlib.sha256(data).digest()
            ended.wait()
        threading.Thread(target=work, daemon=True).start()

    def test_the_wait_ends_when_the_other_threads_wait(self):
        stop = time.monotonic() + 0.5
        self.busy(stop)
        wait_for_threads(0, 240)
        self.assertTrue(stop <= time.monotonic() < stop + 180)

    def test_the_wait_has_a_least_and_a_largest_time(self):
        self.assertGreaterEqual(self.seconds(0.2, 0.2), 0.2)
        self.busy(time.monotonic() + 240)
        self.assertTrue(0.3 <= self.seconds(0, 0.3) < 180)


if __name__ == "__main__":
    unittest.main()
