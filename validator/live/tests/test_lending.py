"""What leaves for other memory beside the plan's actions."""

import types
import unittest
from unittest import mock

from support import torch

from tidepool_live.contents import Tensors
from tidepool_live.lending import Lender
from tidepool_torch.program import Buffer


class Evictions(unittest.TestCase):
    """A version that outlives steps is evicted between two of them. The plan swaps it out before their first op."""

    def setUp(self):
        self.storage, self.buffer = torch.zeros(64).untyped_storage(), Buffer(256, "parameter", "", 0)
        self.contents = mock.Mock(tensors={7: Tensors(self.storage, 9)}, of=lambda version: None)
        self.lender = Lender.__new__(Lender)
        vars(self.lender).update(
            lost=False, _needed=set(), _numbers={self.buffer: 7}, _contents=self.contents, _demand=mock.Mock(), _whole=False,
            _follows=True, _matcher=types.SimpleNamespace(expected=lambda: 0), _actions=mock.Mock(pinned=(), lend=list))

    def evict(self):
        self.lender._evict(self.buffer, self.storage)
        return self.contents.swap_out.call_count, self.lender._demand.put_away.call_count

    def test_the_plans_actions_find_what_leaves_while_they_are_executed(self):
        self.assertEqual(self.evict(), (0, 1))
        self.lender._issuing = True
        self.assertEqual(self.evict(), (1, 1))
        self.contents.drop.assert_called_once_with(9, 7)

    def test_nothing_leaves_while_all_content_is_lent(self):
        with self.lender.lent():
            self.assertEqual(self.evict(), (0, 0))
        self.assertEqual(self.evict(), (0, 1))


if __name__ == "__main__":
    unittest.main()
