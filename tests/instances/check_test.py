"""The checker of traces/instances: times derived by hand, plans that it must refuse, and all rows."""
import contextlib
import io
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "traces" / "instances"))
sys.dont_write_bytecode = True
import check  # noqa: E402

# A weight w (version 0) of 100 B; a: x (1) = f(w) in 1 us; b: y (2) = g(x) in 2 us; c: w (3) updated by y in 3 us.
STEP = [
    {"tidepool": 1},
    {"buffer": 0, "born_before": True, "size_bytes": 100},
    {"alloc": 1, "size_bytes": 100},
    {"run": "a", "uses": [[0, "read", "schema"], [1, "write", "schema"]], "duration_ns": 1000},
    {"alloc": 2, "size_bytes": 100},
    {"run": "b", "uses": [[1, "read", "schema"], [2, "write", "schema"]], "duration_ns": 2000},
    {"free": 1},
    {"run": "c", "uses": [[2, "read", "schema"], [0, "read_write", "schema"]], "duration_ns": 3000},
    {"free": 2},
]
LINKS = {"h2d_bytes_per_second": 10**8, "h2d_latency_ns": 10, "d2h_bytes_per_second": 10**8, "d2h_latency_ns": 10,
         "device_copy_bytes_per_second": 10**9}  # a copy of 100 B takes 1,010 ns, or 100 ns on the device


def alloc(version, offset):
    return {"do": "alloc", "version": version, "offset_bytes": offset, "size_bytes": 100}


def act(verb, version, offset=None):
    return {"do": verb, "version": version, **({} if offset is None else {"offset_bytes": offset, "size_bytes": 100})}


def run(op):
    return {"do": "run", "op": op}


FREELY = [alloc(0, 0), alloc(1, 100), run(0), alloc(2, 200), run(1), act("free", 1), run(2), act("free", 2)]
# In 200 B, w goes to the host after a, and y takes its place. b waits for the copy: 1000 + 1010. The copy back begins
# when b frees x, at 4010, and c waits for it, until 5020.
SWAPPED = [alloc(0, 0), alloc(1, 100), run(0), act("swap_out", 0), act("drop", 0), alloc(2, 0), run(1), act("free", 1),
           act("swap_in", 0, 100), run(2), act("free", 2)]
# x is dropped, and recomputed for b. The recomputation adds 1 us.
REMADE = [alloc(0, 0), alloc(1, 100), run(0), act("drop", 1), alloc(1, 100), run(0), alloc(2, 200), run(1), act("free", 1),
          run(2), act("free", 2)]


def row(time, capacity=200, bound=6000, **more):
    return {"name": "tiny", "machine": LINKS, "capacity_bytes": capacity, "baseline_ns": 6000, "time_ns": time,
            "bound_ns": bound, **more}


class Check(unittest.TestCase):
    def takes(self, plan, time, capacity, **more):
        check.check(row(time, capacity, **more), check.Step(STEP), plan)

    def refused(self, plan, reason, capacity=200, time=8020):
        with self.assertRaises(check.Wrong) as raised:
            self.takes(plan, time, capacity)
        self.assertEqual(str(raised.exception), reason)

    def test_times_are_those_derived_by_hand(self):
        self.takes(FREELY, 6000, 300)
        self.takes(SWAPPED, 8020, 200)
        self.takes(REMADE, 7000, 300)

    def test_the_time_is_the_mean_of_the_last_iterations(self):
        # The second iteration finds w at 100, where the update of the first one left it.
        again = [alloc(1, 0), *SWAPPED[2:5], alloc(2, 100), *SWAPPED[6:8], act("swap_in", 0, 0), *SWAPPED[9:]]
        self.takes([*SWAPPED, {"do": "next"}, *again], 8020, 200, cycle_iterations=2)

    def test_places_do_not_overlap_and_end_within_the_capacity(self):
        self.refused([alloc(0, 0), alloc(1, 50)], 'iteration 0, action 1, {"do": "alloc", "version": 1, "offset_bytes": '
                     '50, "size_bytes": 100}: the place overlaps version 0')
        self.refused(FREELY, 'iteration 0, action 3, {"do": "alloc", "version": 2, "offset_bytes": 200, "size_bytes": '
                     '100}: the place ends at 300, beyond the capacity')

    def test_actions_that_lack_their_content_or_their_place_are_refused(self):
        self.refused([alloc(0, 0), alloc(1, 100), run(0), act("drop", 1), run(1)],
                     'iteration 0, action 4, {"do": "run", "op": 1}: its input, version 1, is not there')
        self.refused([*SWAPPED[:8], alloc(0, 100)], 'iteration 0, action 8, {"do": "alloc", "version": 0, '
                     '"offset_bytes": 100, "size_bytes": 100}: its content can only be copied to the device')
        self.refused([alloc(0, 0), act("drop", 0), act("swap_in", 0, 0)], 'iteration 0, action 2, {"do": "swap_in", '
                     '"version": 0, "offset_bytes": 0, "size_bytes": 100}: it is not on the host')
        self.refused([alloc(0, 0), run(0)], 'iteration 0, action 1, {"do": "run", "op": 0}: its output, version 1, has '
                     'no place')

    def test_all_ops_run_in_order(self):
        self.refused([alloc(0, 0), run(1)], 'iteration 0, action 1, {"do": "run", "op": 1}: op 0 is the next one')
        self.refused(FREELY[:5], 'iteration 0, action 5, {"do": "next"}: op 2 has not run', capacity=300)

    def test_an_iteration_leaves_what_the_next_one_needs(self):
        self.refused([*FREELY, act("drop", 3)], 'iteration 0, action 9, {"do": "next"}: version 3, which outlives the '
                     'step, is lost', capacity=300)
        self.refused([*FREELY, act("swap_out", 3), act("drop", 3)],
                     "the last iteration does not end in the state in which the cycle begins", capacity=300)

    def test_the_time_is_that_of_the_row_and_not_below_the_bound(self):
        self.refused(SWAPPED, "takes 8020 ns; the row says 8019 ns", time=8019)
        with self.assertRaisesRegex(check.Wrong, "^takes 6000 ns, less than the bound of 6001 ns$"):
            self.takes(FREELY, 6000, 300, bound=6001)

    def test_actions_with_unknown_verbs_or_wrong_values_are_refused(self):
        nan = {**alloc(0, 0), "offset_bytes": float("nan")}
        self.refused([nan], 'iteration 0, action 0, {"do": "alloc", "version": 0, "offset_bytes": NaN, "size_bytes": 100}: '
                     "'offset_bytes' is NaN; expected a whole number")
        self.refused([alloc(-1, 0)], 'iteration 0, action 0, {"do": "alloc", "version": -1, "offset_bytes": 0, '
                     "\"size_bytes\": 100}: 'version' is -1; expected a whole number below 4")
        self.refused([run(3)], "iteration 0, action 0, {\"do\": \"run\", \"op\": 3}: 'op' is 3; expected a whole number "
                     "below 3")
        self.refused([{"version": 0}], 'iteration 0, action 0, {"version": 0}: null is not an action of these plans')
        self.refused([{"do": "await"}], "iteration 0, action 0, {\"do\": \"await\"}: 'version' is null; expected a whole "
                     "number below 4")

    def test_rows_with_a_wrong_baseline_or_cycle_are_refused(self):
        with self.assertRaisesRegex(check.Wrong, "^the ops take 6000 ns; the row says 5999 ns$"):
            self.takes(FREELY, 6000, 300, baseline_ns=5999)
        with self.assertRaisesRegex(check.Wrong, "^'cycle_iterations' is 2; expected a whole number below 2$"):
            self.takes(FREELY, 6000, 300, cycle_iterations=2)
        with self.assertRaisesRegex(check.Wrong, "^'cycle_iterations' is 0; expected at least 1$"):
            self.takes(FREELY, 6000, 300, cycle_iterations=0)

    def test_all_rows_of_the_instances_are_valid(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = check.main([])
        self.assertEqual(code, 0, said.getvalue())


if __name__ == "__main__":
    unittest.main()
