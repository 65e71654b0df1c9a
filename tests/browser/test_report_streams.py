"""Opens the report of a step on two streams, whose ops do not begin in their order, in a headless Chromium.

  python3 -m unittest discover -s tests/browser
"""

import json
import unittest

import chromium
from test_report import open_report

# Ops 0 to 4 begin at 0, 0, 10, 100 and 20 us: ops 1 and 4 are on a stream of their own.
STEP = """{"tidepool":1}
{"buffer":0,"born_before":true,"size_bytes":1048576,"kind":"parameter"}
{"run":"a","uses":[[0,"read","schema"]],"duration_ns":10000}
{"run":"b","uses":[[0,"read","schema"]],"duration_ns":20000,"stream":"side"}
{"run":"c","uses":[[0,"read","schema"]],"duration_ns":90000}
{"run":"d","uses":[[0,"read","schema"]],"duration_ns":10000}
{"run":"e","uses":[[0,"read","schema"]],"duration_ns":10000,"stream":"side"}
"""


@unittest.skipUnless(chromium.find(), "no Chromium is installed")
class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        open_report(cls, STEP, "--first")
        cls.page.run("runs[0].opOrder.load().then(() => true)")

    def test_the_op_at_a_time_is_the_one_that_began_last(self):
        self.assertEqual(self.page.run("[...runs[0].opBegins.value]"), [0, 0, 10_000, 100_000, 20_000])
        ops = self.page.run(f"{json.dumps([-1, 0, 10_000, 19_999, 50_000, 100_000, 200_000])}.map(time => opAt(runs[0], time))")
        self.assertEqual(ops, [None, 1, 2, 2, 4, 3, 3])

    def test_keys_step_through_the_ops_in_the_order_in_which_they_begin(self):
        visited = self.page.run("""(() => {
          const pane = slots[0].panes[0];
          state.cursor = {run: runs[0], time: 0};
          return [1, 1, 1, 1, -1, -1, -1, -1].map(by => (stepCursor(pane, by), state.cursor.time));
        })()""")
        self.assertEqual(visited, [10_000, 20_000, 100_000, 100_000, 20_000, 10_000, 0, 0])


if __name__ == "__main__":
    unittest.main()
