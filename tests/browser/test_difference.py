"""Opens the report of two traces in a headless Chromium: both memory curves over the ops of both, and what differs."""

import json
import os
import subprocess
import tempfile
import unittest

import chromium
from test_report import PROGRAM, tidepool


@unittest.skipUnless(chromium.find(), "no Chromium is installed")
class Difference(unittest.TestCase):
    """A model of four layers, and the same with a layer more."""

    def test_shows_what_diff_tells(self):
        with tempfile.TemporaryDirectory() as folder, chromium.Page() as page:
            before, after, path = (os.path.join(folder, name) for name in ("before.tide", "after.tide", "d.html"))
            for layers, trace in (("4", before), ("5", after)):
                tidepool("make", "gpt", "--layers", layers, "-o", trace)
            tidepool("report", before, after, "-o", path)
            told = json.loads(subprocess.run([PROGRAM, "diff", before, after, "--json"], capture_output=True, text=True).stdout)
            page.open(path)
            self.assertEqual(page.run("document.querySelector('p.lead').innerText"), told["sentence"])
            self.assertEqual(page.run("document.querySelectorAll('#difference canvas').length"), 2)
            self.assertEqual(page.run("document.querySelectorAll('#difference tbody tr').length"), len(told["rows"]))
            # The most bytes of both curves are the peaks, of which the first row has its share in its band.
            most = page.run("""Promise.all(comparedPanes.map(async pane => {
              const points = await pane.run.memory[0].points.load();
              let best = [0, 0];
              for (let row = 0; row < points.rows; row++) {
                const held = pane.bands().map(({column}) => points[column][row]), sum = held.reduce((a, b) => a + b);
                if (sum > best[0]) best = [sum, held[1]];
              }
              return best;
            }))""")
            self.assertEqual([sum for sum, _ in most], [told["peak_a_bytes"], told["peak_b_bytes"]])
            self.assertEqual([first for _, first in most], [0, told["rows"][0]["at_peak_bytes"]])
            page.run("state.cursor = {run: comparedPanes[1].run, time: 45}; redraw(); settled().then(() => true)")
            self.assertIn("after.tide only", page.run("placeReadout.textContent"))
            self.assertEqual(page.errors, [])


if __name__ == "__main__":
    unittest.main()
