"""Estimated times: what they are bound by, and that no device, type or shape is without one."""

import dataclasses
import unittest

from support import record, the_op, torch
from torch import nn

from tidepool_torch.devices import DEVICES, find_device
from tidepool_torch.kernel_times import LAUNCH, REACH, moving_seconds, product_seconds
from tidepool_torch.op_times import estimate_ns
from tidepool_torch.schema import OpCall


def one(name, function, **options):
    return the_op(record(lambda: (nn.ModuleList(), None, function), warmup=0, **options), name).duration_ns


def moving_ns(moved, device="a100"):
    return round((LAUNCH + moving_seconds(find_device(device), moved)) * 1e9)


def product(device, m, n, k, **options):
    device = find_device(device)
    return product_seconds(device, device.float32, 4, 1, m, n, k, **options)


class Products(unittest.TestCase):
    def test_a_large_one_reaches_most_of_the_peak(self):
        # 2 x 4096^3 operations at 19.5 TFLOP/s; an A100 reaches 0.85 to 0.97 of it (NeuSight's test rows: 17.6 TFLOP/s)
        a = lambda: torch.ones(4096, 4096) @ torch.ones(4096, 4096)
        self.assertTrue(0.85 < 2 * 4096**3 / 19.5e12 * 1e9 / one("mm", a) < 0.97)

    def test_a_thin_one_is_bound_by_its_bytes(self):
        # reads 4096 x 4096 and 4096 values, writes 4096
        a = lambda: torch.ones(4096, 4096) @ torch.ones(4096, 1)
        least = 4 * (4096**2 + 2 * 4096) / 2039e9 * 1e9
        self.assertTrue(least < one("mm", a) < 2.5 * least)

    def test_one_tile_too_many_begins_another_wave(self):
        fits = product("a100", 128 * 108, 128, 512)  # 108 multiprocessors
        self.assertGreater(product("a100", 128 * 109, 128, 512) / fits, 1.1)  # too short to be split

    def test_a_long_reduction_is_split_among_idle_multiprocessors(self):
        whole = 2 * 128 * 128 * 65536 / (19.5e12 / 108)  # one tile on one multiprocessor
        self.assertLess(product("a100", 128, 128, 65536), whole / 4)

    def test_the_power_of_the_board_bounds_them(self):
        # an L4 has 72 W: about a third of its peak rate (NeuSight: 8.8 of 30 TFLOP/s alone, and more within a step)
        operations = 2 * 8192**3
        self.assertTrue(8e12 < operations / product("l4", 8192, 8192, 8192) < 12e12)
        stronger = dataclasses.replace(find_device("l4"), watts=300)
        self.assertGreater(operations / product_seconds(stronger, stronger.float32, 4, 1, 8192, 8192, 8192), 20e12)

    def test_one_of_nothing_takes_a_launch_and_what_it_writes(self):
        def a():
            weight, kernel = (torch.ones(shape, requires_grad=True) for shape in ((64, 64), (4, 4, 3, 3)))
            made = (torch.ones(0, 64) @ weight).sum() + torch.conv2d(torch.ones(0, 4, 8, 8), kernel).sum()
            made.backward()

        self.assertEqual(one("mm", a), moving_ns(4 * 64 * 64))  # the gradient of the weight

    def test_the_type_chooses_the_units(self):
        a = lambda: torch.ones(4096, 4096, dtype=torch.bfloat16) @ torch.ones(4096, 4096, dtype=torch.bfloat16)
        b = lambda: torch.ones(4096, 4096) @ torch.ones(4096, 4096)
        self.assertTrue(0.5 < 2 * 4096**3 / 989e12 * 1e9 / one("mm", a, device="h100") < 0.9)
        self.assertGreater(one("mm", b, device="h100"), 8 * one("mm", a, device="h100"))

    def test_tensorfloat32_counts_where_the_job_allows_it(self):
        a = lambda: torch.ones(4096, 4096) @ torch.ones(4096, 4096)
        precise = {name: one("mm", a, device=name) for name in ("a100", "t4")}
        self.addCleanup(setattr, torch.backends.cuda.matmul, "allow_tf32", torch.backends.cuda.matmul.allow_tf32)
        torch.backends.cuda.matmul.allow_tf32 = True
        self.assertLess(one("mm", a), precise["a100"] / 4)
        self.assertEqual(one("mm", a, device="t4"), precise["t4"])

    def test_every_device_has_times_of_every_type(self):
        for name, device in DEVICES.items():
            for kind in ("float64", "float32", "float16", "bfloat16"):
                rate = getattr(device, kind)
                for cores in (False, True):
                    self.assertGreater(product_seconds(device, rate, 4, 1, 4096, 4096, 4096, cores), 2 * 4096**3 / rate, name)

    def test_types_without_a_rate_count_as_float32(self):
        self.assertEqual(find_device("a100").peak(torch.int64), 19.5e12)


class Bytes(unittest.TestCase):
    def test_the_device_chooses_the_bandwidth(self):
        for name in ("v100", "h200"):
            time = one("exp", lambda: torch.ones(10**8).exp(), device=name)
            self.assertEqual(time, round((LAUNCH + 8e8 / DEVICES[name].bandwidth / REACH) * 1e9))

    def test_what_fits_the_cache_comes_from_there(self):
        device = find_device("rtx-4090")  # 72 MiB
        self.assertLess(moving_seconds(device, 60e6), 60e6 / device.bandwidth / 3)
        self.assertGreater(moving_seconds(device, 120e6), 120e6 / device.bandwidth)

    def test_more_bytes_never_take_less_time(self):
        for device in DEVICES.values():
            times = [moving_seconds(device, moved) for moved in range(0, 300_000_000, 1_000_000)]
            self.assertEqual(times, sorted(times), device.name)

    def test_an_in_place_op_reads_and_writes(self):
        self.assertEqual(one("exp_", lambda: torch.ones(10**6).exp_()), moving_ns(8e6))

    def test_a_view_moves_only_what_it_shows(self):
        self.assertEqual(one("exp", lambda: torch.ones(10**6)[:1000].exp()), moving_ns(8e3))

    def test_an_expanded_dimension_is_read_once(self):
        # 40 kB and 400 MB on an A100; its 108 multiprocessors take 2.4 such elements a nanosecond
        time = one("exp", lambda: torch.ones(1, 10_000).expand(10_000, 10_000).exp())
        self.assertAlmostEqual(time, (LAUNCH + 1e8 / 2.4e9 / 108) * 1e9, delta=1)
        self.assertLess(time, moving_ns(8e8))

    def test_another_order_is_slower(self):
        plain = one("clone", lambda: torch.ones(1000, 1000).clone())
        self.assertGreater(one("clone", lambda: torch.ones(1000, 1000).t().clone(memory_format=torch.contiguous_format)),
                           1.3 * plain)

    def test_a_deterministic_job_fills_what_it_allocates(self):
        plain = one("clone", lambda: torch.ones(10**8).clone())
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.assertAlmostEqual(one("clone", lambda: torch.ones(10**8).clone()), plain + moving_ns(4e8), delta=1)

    def test_a_look_up_reads_the_rows_that_it_needs(self):
        # 10 of 100,000 rows of 4 kB, and ten indices of 8 B
        def look_up():
            return nn.functional.embedding(torch.zeros(10, dtype=torch.int64), torch.ones(100_000, 1000))

        self.assertEqual(one("embedding", look_up), moving_ns(2 * 10 * 4000 + 80))

    def test_filling_reads_nothing(self):
        self.assertEqual(one("zeros_like", lambda: torch.zeros_like(torch.ones(10**6))), moving_ns(4e6))

    def test_long_rows_are_read_again(self):
        # A softmax of the same elements: rows of 1024 stay in registers; those of 65536 fit no cache of an A100
        short = one("_softmax", lambda: torch.ones(65536, 1024).softmax(1))
        self.assertEqual(short, moving_ns(2 * 4 * 65536 * 1024))
        self.assertAlmostEqual(one("_softmax", lambda: torch.ones(1024, 65536).softmax(1)) / short, 2, places=1)


class Others(unittest.TestCase):
    def test_a_convolution_is_its_products(self):
        # 8 x 64 outputs of 54 x 54, each 64 x 3 x 3 products; float32 on the V100
        def convolve():
            return nn.functional.conv2d(torch.ones(8, 64, 56, 56), torch.ones(64, 64, 3, 3))

        least = 2 * 8 * 64 * 54 * 54 * 64 * 9 / 15.7e12 * 1e9
        self.assertTrue(least < one("convolution", convolve, device="v100") < 2 * least)

    def test_a_convolution_of_3_x_3_may_take_fewer_products(self):
        def convolve(stride):
            return nn.functional.conv2d(torch.ones(32, 256, 28, 28), torch.ones(256, 256, 3, 3), padding=1, stride=stride)

        direct = 4 * one("convolution", lambda: convolve(2), device="v100")  # of a fourth of the results
        self.assertTrue(0.3 < one("convolution", lambda: convolve(1), device="v100") / direct < 0.7)

    def test_rows_that_are_not_aligned_take_tensor_cores_longer(self):
        fits = product("a100", 4096, 4096, 4096, tensor_cores=True)
        self.assertGreater(product("a100", 4096, 4096, 4095, tensor_cores=True) / fits, 1.4)

    def test_the_gradient_of_weights_loads_tiles_as_they_lie(self):
        self.assertLess(product("h200", 3072, 768, 8192, outer=True), product("h200", 3072, 768, 8192))

    def test_few_channels_leave_a_batch_normalisation_to_few_multiprocessors(self):
        def normalise(channels):
            return nn.BatchNorm2d(channels)(torch.ones(64, channels, 112, 112))

        few, many = (one("native_batch_norm", lambda: normalise(channels), device="h200") for channels in (64, 256))
        self.assertGreater(4 * few, 1.5 * many)

    def test_the_gradient_of_a_convolution_takes_two_products(self):
        def train():
            image, filters = torch.ones(64, 64, 56, 56, requires_grad=True), torch.ones(64, 64, 3, 3, requires_grad=True)
            nn.functional.conv2d(image, filters).sum().backward()

        times = {name: one(name, train, device="v100") for name in ("convolution", "convolution_backward")}
        self.assertTrue(1.7 < times["convolution_backward"] / times["convolution"] < 2.6)

    def test_a_causal_mask_halves_attention(self):
        def attend(causal):
            def run():
                query = torch.ones(8, 16, 4096, 64, dtype=torch.bfloat16)
                return nn.functional.scaled_dot_product_attention(query, query, query, is_causal=causal)

            return run

        name = "_scaled_dot_product_flash_attention"
        self.assertAlmostEqual(one(name, attend(False)) / one(name, attend(True)), 2, places=1)

    def test_an_lstm_layer_takes_its_time_steps_one_by_one(self):
        # 100 steps, batch 512, 4 x 1024 gates by 1024 inputs and 1024 hidden values
        def run():
            return nn.LSTM(1024, 1024)(torch.ones(100, 512, 1024))

        operations = 2 * 100 * 512 * 4 * 1024 * (1024 + 1024)
        time = one("tidepool::lstm_layer", run)
        self.assertGreater(time, operations / 19.5e12 * 1e9 + 100 * LAUNCH * 1e9)
        self.assertLess(time, 2 * operations / 19.5e12 * 1e9)

    def test_an_lstm_of_cudnn_takes_all_its_layers(self):
        def price(layers):
            weights = [torch.empty(shape, device="meta") for _ in range(layers) for shape in ((4096, 1024),) * 2 + ((4096,),) * 2]
            given, state = torch.empty(100, 512, 1024, device="meta"), torch.empty(layers, 512, 1024, device="meta")
            call = OpCall(torch.ops.aten._cudnn_rnn.default, (given, weights, 4, None, state, state, 2, 1024, 0, layers, False, 0.0,
                                                              True, False, [], None), {})
            call.result = given, state, state
            return estimate_ns(find_device("v100"), call)

        operations = 2 * 100 * 512 * 4 * 1024 * (1024 + 1024)
        self.assertTrue(operations / 15.7e12 * 1e9 < price(1) < 2 * operations / 15.7e12 * 1e9)
        self.assertAlmostEqual(price(3) / price(1), 3, places=2)


if __name__ == "__main__":
    unittest.main()
