"""The end of a job after a number of its steps: `tidepool record --torch --steps N`."""

import sys

from .discovery import Discovery


class StepLimit:
    """Ends the job as sys.exit() does, behind its step number `steps`. Make it behind what records the steps."""

    def __init__(self, steps):
        self._left = steps
        self._discovery = Discovery(self._stepped, lambda _error: None)

    def _stepped(self, _optimizer):
        self._left -= not self._discovery.goes_on
        if self._left == 0:
            self._discovery.stop()
            sys.exit(0)
