"""Estimated times against numbers computed by hand."""

import unittest

from support import record, the_op, torch
from torch import nn

from tidepool_torch.roofline import DEVICES, FLOOR_NS, find_device


def one(name, function, **options):
    return the_op(record(lambda: (nn.ModuleList(), None, function), warmup=0, **options), name).duration_ns


class Roofline(unittest.TestCase):
    def test_a_large_matrix_product_is_bound_by_its_operations(self):
        # 2 x 4096^3 operations at 19.5 TFLOP/s; to move the 201 MB of the matrices would take 0.1 ms
        a = lambda: torch.ones(4096, 4096) @ torch.ones(4096, 4096)
        self.assertEqual(one("mm", a), FLOOR_NS + round(2 * 4096**3 / 19.5e12 * 1e9))

    def test_a_thin_matrix_product_is_bound_by_its_bytes(self):
        # reads 4096 x 4096 and 4096 values, writes 4096
        a = lambda: torch.ones(4096, 4096) @ torch.ones(4096, 1)
        self.assertEqual(one("mm", a), FLOOR_NS + round(4 * (4096**2 + 2 * 4096) / 2039e9 * 1e9))

    def test_the_type_chooses_the_peak(self):
        a = lambda: torch.ones(4096, 4096, dtype=torch.bfloat16) @ torch.ones(4096, 4096, dtype=torch.bfloat16)
        self.assertEqual(one("mm", a, device="h100"), FLOOR_NS + round(2 * 4096**3 / 989e12 * 1e9))

    def test_the_device_chooses_the_bandwidth(self):
        for name in ("v100", "h200"):
            time = one("exp", lambda: torch.ones(10**6).exp(), device=name)
            self.assertEqual(time, FLOOR_NS + round(8e6 / DEVICES[name].bandwidth * 1e9))

    def test_an_in_place_op_reads_and_writes(self):
        self.assertEqual(one("exp_", lambda: torch.ones(10**6).exp_()), FLOOR_NS + round(8e6 / 2039e9 * 1e9))

    def test_a_view_moves_only_what_it_shows(self):
        time = one("exp", lambda: torch.ones(10**6)[:1000].exp())
        self.assertEqual(time, FLOOR_NS + round(8e3 / 2039e9 * 1e9))

    def test_an_expanded_dimension_is_read_once(self):
        time = one("exp", lambda: torch.ones(1, 1000).expand(1000, 1000).exp())
        self.assertEqual(time, FLOOR_NS + round((4e3 + 4e6) / 2039e9 * 1e9))

    def test_a_look_up_reads_the_rows_that_it_needs(self):
        # 10 of 100,000 rows of 4 kB, and ten indices of 8 B
        def look_up():
            return nn.functional.embedding(torch.zeros(10, dtype=torch.int64), torch.ones(100_000, 1000))

        self.assertEqual(one("embedding", look_up), FLOOR_NS + round((2 * 10 * 4000 + 80) / 2039e9 * 1e9))

    def test_filling_reads_nothing(self):
        time = one("zeros_like", lambda: torch.zeros_like(torch.ones(10**6)))
        self.assertEqual(time, FLOOR_NS + round(4e6 / 2039e9 * 1e9))

    def test_a_convolution_counts_its_products(self):
        # 8 x 64 outputs of 54 x 54, each 64 x 3 x 3 products; float32 on the V100
        def convolve():
            return nn.functional.conv2d(torch.ones(8, 64, 56, 56), torch.ones(64, 64, 3, 3))

        operations = 2 * 8 * 64 * 54 * 54 * 64 * 9
        self.assertEqual(one("convolution", convolve, device="v100"), FLOOR_NS + round(operations / 15.7e12 * 1e9))

    def test_an_lstm_layer_counts_both_products_of_every_time_step(self):
        # 100 steps, batch 512, 4 x 1024 gates by 1024 inputs and 1024 hidden values
        def run():
            lstm = nn.LSTM(1024, 1024)
            return lstm(torch.ones(100, 512, 1024))

        operations = 2 * 100 * 512 * 4 * 1024 * (1024 + 1024)
        self.assertEqual(one("tidepool::lstm_layer", run), FLOOR_NS + round(operations / 19.5e12 * 1e9))

    def test_types_without_a_rate_count_as_float32(self):
        self.assertEqual(find_device("a100").peak(torch.int64), 19.5e12)


if __name__ == "__main__":
    unittest.main()
