"""Tests of --enforce: a job that uses more than its plan's capacity is out of memory."""

import types
import unittest
from unittest import mock

from support import Follower, HostDevice, Planned, models, torch

from tidepool_live.device import CudaDevice


class Limit(unittest.TestCase):
    def follower(self, limit):
        """Trains one step and returns a follower of a plan that recomputes, the function that trains the next step, and
        the limit."""
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
                mock.patch("torch.cuda.set_per_process_memory_fraction") as fraction, \
                mock.patch("torch.cuda.empty_cache") as empty:
            self.assertTrue(gpu.limit(2 << 30))
            self.assertTrue(gpu.limit(9 << 30))
        self.assertEqual([call.args[0] for call in fraction.call_args_list], [0.25, 1.0])
        self.assertEqual(empty.call_count, 2)  # memory that is reserved already may exceed the limit


class AllocatorsDevice(HostDevice):
    """The CPU with an allocator whose peaks the test gives: the next one at each reading."""

    def __init__(self, peaks):
        super().__init__()
        self.scripted, self.started = list(peaks), 0

    def start_peaks(self):
        self.started += 1

    def peaks(self):
        return {"allocated_peak_bytes": self.scripted.pop(0), "reserved_peak_bytes": 1 << 20}


class Peaks(unittest.TestCase):
    def report(self, device, steps):
        planned = Planned("mlp", "dtr", "0.6x")
        self.addCleanup(planned.close)
        network, optimizer, step = models.make("mlp")
        step()
        follower = Follower(planned.program, network, optimizer, device)
        with follower:
            for _ in range(steps):
                step()
        return follower.report.content()

    def test_the_peaks_of_the_allocator_are_those_of_the_measured_iterations(self):
        device = AllocatorsDevice([700, 900, 800])
        report = self.report(device, 5)
        self.assertEqual(device.started, 1)  # after the second iteration, which shows the tensors that outlive a step
        self.assertEqual(report["measured"], 3)
        self.assertEqual((report["allocated_peak_bytes"], report["reserved_peak_bytes"]), (900, 1 << 20))

    def test_a_device_whose_allocator_keeps_no_peaks_reports_none(self):
        self.assertNotIn("allocated_peak_bytes", self.report(HostDevice(), 5))

    def test_on_a_gpu_the_peaks_are_pytorchs_and_count_from_an_empty_cache(self):
        gpu = object.__new__(CudaDevice)
        gpu.where = torch.device("cuda", 0)
        stats = {"allocated_bytes": {"all": {"peak": 5}}, "reserved_bytes": {"all": {"peak": 7}}}
        with mock.patch("torch.cuda.memory.memory_stats_as_nested_dict", return_value=stats), \
                mock.patch("torch.cuda.reset_peak_memory_stats") as reset, mock.patch("torch.cuda.empty_cache") as empty:
            gpu.start_peaks()
            self.assertEqual(gpu.peaks(), {"allocated_peak_bytes": 5, "reserved_peak_bytes": 7})
        self.assertEqual((reset.call_count, empty.call_count), (1, 1))

    def test_a_pluggable_allocator_has_no_peaks(self):
        gpu = object.__new__(CudaDevice)
        gpu.where = torch.device("cuda", 0)
        error = RuntimeError("CUDAPluggableAllocator does not yet support getDeviceStats")
        with mock.patch("torch.cuda.memory.memory_stats_as_nested_dict", side_effect=error), \
                mock.patch("torch.cuda.reset_peak_memory_stats", side_effect=error):
            gpu.start_peaks()
            self.assertEqual(gpu.peaks(), {})


if __name__ == "__main__":
    unittest.main()
