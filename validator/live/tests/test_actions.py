"""Actions of a plan on memory that the job cannot see."""

import types
import unittest
from unittest import mock

from support import torch  # noqa: F401  # skips without it
from tidepool_live.actions import Actions
from tidepool_live.program import LiveProgram


class Hidden(unittest.TestCase):
    def test_actions_on_memory_that_the_job_cannot_see_do_nothing_and_are_not_counted_as_left_out(self):
        plan = types.SimpleNamespace(hidden={0}, buffer_of=[0], sizes=[512])
        report, contents = mock.Mock(), mock.Mock()
        actions = Actions(plan, None, contents, report, mock.Mock())
        for verb in ("swap_out", "drop", "swap_in", "free"):
            actions.do(verb, 0)
        self.assertEqual(report.mock_calls, [mock.call.stays(0, 512)])
        self.assertEqual(contents.mock_calls, [])

    def test_only_what_its_producer_makes_again_next_may_leave_without_a_copy_on_the_host(self):
        made = {"name": "aten::mm", "uses": [[0, -1, 0, "write"]], "recipe": True}
        read = {"name": "aten::sum", "uses": [[0, 0, -1, "read"]]}
        program = LiveProgram({
            "tidepool_live": 1, "trace_hash": "", "native": False, "predicted": {}, "limit_bytes": 0,
            "buffers": [[512, 0]], "versions": [[0, 0, -1]], "parked": [], "hidden": [], "unused": [],
            "ops": [made, read, read, read],
            "actions": [[1, "swap_out", 0], [1, "drop", 0], [2, "run", 0], [2, "drop", 0], [3, "swap_in", 0], [4, "drop", 0]]})
        self.assertEqual([verb for actions in program.actions for verb, _ in actions],
                         ["swap_out", "drop", "run", "discard", "swap_in", "discard"])


if __name__ == "__main__":
    unittest.main()
