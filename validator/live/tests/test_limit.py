"""What --enforce does: a job that uses more than its plan's capacity is out of memory."""

import types
import unittest
from unittest import mock

from support import Follower, HostDevice, Planned, models, torch

from tidepool_live.device import CudaDevice


class Limit(unittest.TestCase):
    def follower(self, limit):
        """A job under a plan that recomputes, after its first step, and what steps it."""
        planned = Planned("mlp", "dtr", "0.6x")
        self.addCleanup(planned.close)
        network, optimizer, step = models.make("mlp")
        step()
        limit = limit(planned.program.predicted["peak_bytes"])
        return Follower(planned.program, network, optimizer, HostDevice(), limit=limit), step, limit

    def test_a_job_that_keeps_to_the_plans_peak_is_not_limited(self):
        follower, step, _ = self.follower(lambda peak: peak)
        with follower:
            for _ in range(5):
                step()
        self.assertEqual(follower.report.content()["measured"], 3)
        self.assertNotIn("out_of_memory_bytes", follower.report.content())

    def test_a_job_that_uses_one_byte_more_is_out_of_memory_once_the_whole_plan_is_carried_out(self):
        follower, step, limit = self.follower(lambda peak: peak - 1)
        with follower:
            step()
            step()
            with self.assertRaisesRegex(torch.cuda.OutOfMemoryError,
                                        rf"^tidepool run --enforce: \d+ bytes are in use; the plan's limit is {limit}$"):
                step()
        self.assertGreater(follower.report.content()["out_of_memory_bytes"], limit)

    def test_on_a_gpu_pytorchs_allocator_is_limited_to_a_fraction_of_the_memory(self):
        gpu = object.__new__(CudaDevice)
        gpu.where = torch.device("cuda", 0)
        properties = types.SimpleNamespace(total_memory=8 << 30)
        with mock.patch("torch.cuda.get_device_properties", return_value=properties), \
                mock.patch("torch.cuda.set_per_process_memory_fraction") as fraction:
            self.assertTrue(gpu.limit(2 << 30))
            self.assertTrue(gpu.limit(9 << 30))
        self.assertEqual([call.args[0] for call in fraction.call_args_list], [0.25, 1.0])


if __name__ == "__main__":
    unittest.main()
