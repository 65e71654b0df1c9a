"""Actions of a plan on memory that the job cannot see."""

import types
import unittest
from unittest import mock

from support import torch  # noqa: F401  # skips without it
from tidepool_live.actions import Actions


class Hidden(unittest.TestCase):
    def test_actions_on_memory_that_the_job_cannot_see_do_nothing_and_are_not_counted_as_left_out(self):
        plan = types.SimpleNamespace(hidden={0}, buffer_of=[0], sizes=[512])
        report, contents = mock.Mock(), mock.Mock()
        actions = Actions(plan, None, contents, report, mock.Mock())
        for verb in ("swap_out", "drop", "swap_in", "free"):
            actions.do(verb, 0)
        self.assertEqual(report.mock_calls, [mock.call.stays(0, 512)])
        self.assertEqual(contents.mock_calls, [])


if __name__ == "__main__":
    unittest.main()
