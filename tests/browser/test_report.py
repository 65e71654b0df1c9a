"""Opens reports in a headless Chromium: they render, zoom, select, and show the numbers that the program prints.

  python3 -m unittest discover -s tests/browser

TIDEPOOL_PROGRAM names the program (default: build/tidepool). SCREENSHOTS=FOLDER keeps pictures of the pages.
"""

import json
import os
import subprocess
import tempfile
import unittest

import chromium

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", os.path.join(ROOT, "build", "tidepool"))
SAMPLE = os.path.join(ROOT, "traces", "samples", "resnet50.tide")
GRID = ["--policy", "none,dtr-eq,lru-swap", "--capacity", "0.6x"]

# Moves the window in every frame. Returns the median time between frames and that of the script in a frame, in ms, and
# the number of rectangles in the last frame.
FRAMES = """(async (count, move) => {
  await settled();
  frames.times.length = 0;
  const gaps = [];
  let last = await new Promise(requestAnimationFrame);
  for (let i = 0; i < count; i++) {
    move(i);
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  const median = values => values.sort((a, b) => a - b)[values.length >> 1];
  return {gap: median(gaps), script: median(frames.times.map(time => time[1])), rectangles: frames.rectangles};
})"""

# The page keeps scrolling after a swipe. Waits until it has left the position `from` and stands still, at most 60 s.
GLIDED = """(async from => {
  const deadline = performance.now() + 60_000;
  for (let last = from, still = 0; still < 5 && performance.now() < deadline;) {
    await settled();
    still = scrollY !== from && scrollY === last ? still + 1 : 0;
    last = scrollY;
  }
})"""


def tidepool(*arguments):
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


def open_report(case, step, *options):
    """Writes the text of a step to a file, and opens its report as `case.page` for the tests of the class `case`."""
    folder = tempfile.TemporaryDirectory()
    case.addClassCleanup(folder.cleanup)
    trace, path = (os.path.join(folder.name, name) for name in ("step.jsonl", "r.html"))
    with open(trace, "w", encoding="utf-8") as file:
        file.write(step)
    tidepool("report", trace, *options, "-o", path)
    case.page = chromium.Page()
    case.addClassCleanup(case.page.__exit__)
    case.page.open(path)


def bytes_text(count):
    """A size as the page writes it: four digits, without zeros at the end."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.4g} {unit}"
        count /= 1024


@unittest.skipUnless(chromium.find(), "no Chromium is installed")
class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        database, cls.path = (os.path.join(cls.folder.name, name) for name in ("r.sqlite", "r.html"))
        tidepool("sweep", SAMPLE, "--pool", "best-fit", "--policy", "dtr-eq,lru-swap", "--capacity", "0.5x..1.0x/4",
                 "-o", database)
        tidepool("report", database, SAMPLE, *GRID, "-o", cls.path)
        cls.rows = [json.loads(line) for line in tidepool("simulate", SAMPLE, *GRID, "--json").splitlines()]
        cls.page = chromium.Page()
        cls.addClassCleanup(cls.page.__exit__)
        cls.page.open(cls.path)

    def tearDown(self):
        self.assertEqual(self.page.errors, [])

    def keep(self, name):
        """Saves a picture of the page, if SCREENSHOTS is set."""
        if folder := os.environ.get("SCREENSHOTS"):
            os.makedirs(folder, exist_ok=True)
            self.page.screenshot(os.path.join(folder, name + ".png"))

    def box(self, selector):
        self.page.run(f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
        self.page.run("settled().then(() => true)")
        return self.page.run(f"(box => [box.x, box.y, box.width, box.height])"
                             f"(document.querySelector('{selector}').getBoundingClientRect())")

    def text(self, selector):
        return self.page.run(f"document.querySelector('{selector}').innerText")

    def test_shows_the_numbers_that_simulate_prints(self):
        told = self.text("#runs")
        for row in self.rows:
            self.assertIn(bytes_text(row["peak_bytes"]), told)
            if row["outcome"] == "ok":
                percent = (row["overhead_ratio"] - 1) * 100
                self.assertIn(f"{percent:+.1f} %" if percent < 100 else f"{percent:+.0f} %", told)
        self.assertIn("out of memory", told)
        self.assertIn(self.rows[0]["message"], told)

    def test_opens_on_the_verdict_and_the_advice(self):
        sections = self.page.run("[...document.querySelectorAll('main > section')].map(section => section.id)")
        self.assertEqual(sections[0], "advice")
        first = json.loads(tidepool("advise", SAMPLE, "--capacity", f"{self.rows[0]['capacity_bytes']}B", "--plans", "none",
                                    "--json"))["changes"][0]
        told = self.text("#advice")
        self.assertIn(f"The step does not fit into {bytes_text(self.rows[0]['capacity_bytes'])} as it is. ", told)
        self.assertIn(f"{bytes_text(first['peak_bytes'])} at the peak", told)
        self.assertIn(first["code"].splitlines()[0], self.page.run("document.querySelector('#advice pre').textContent"))

    def test_begins_with_the_time_that_overheads_are_relative_to(self):
        # Overheads are relative to baseline_ns, the time of the run without policy and limit.
        lead = self.page.run("""(() => {
          const recorded = content.trace.duration_ns;
          content.trace.duration_ns = 2 * recorded;  // as if much time had passed between the ops
          const text = headline().innerText;
          content.trace.duration_ns = recorded;
          return text;
        })()""")
        self.assertTrue(lead.startswith(f"A step of {self.rows[0]['baseline_ns'] / 1e6:.4g} ms "), lead)

    def test_memory_peaks_as_high_as_the_run_says(self):
        for index, row in enumerate(self.rows):
            peak = self.page.run(f"""(async () => {{
              const points = await runs[{index}].memory[0].points.load();
              let peak = 0;
              for (let i = 0; i < points.rows; i++)
                peak = Math.max(peak, content.tables.buffer_kinds.reduce((sum, kind) => sum + points[kind][i], 0));
              return peak;
            }})()""")
            if row.get("lead_in_iterations", 0) == 0:
                self.assertEqual(peak, row["peak_bytes"])
            else:  # the page shows the cycle; the peak may have been before it
                self.assertLessEqual(peak, row["peak_bytes"])
                self.assertGreater(peak, 0.9 * row["peak_bytes"])
        self.assertIn(0, [row.get("lead_in_iterations") for row in self.rows])

    def test_draws_every_pane(self):
        self.page.run("document.querySelector('#timeline').scrollIntoView()")
        self.page.run("settled().then(() => true)")
        for pane in ("memory", "map", "lanes"):
            colours = self.page.run(f"""(() => {{
              const canvas = document.querySelector('.pane-{pane}');
              const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
              const seen = new Set();
              for (let i = 0; i < data.length; i += 4) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
              return [...seen];
            }})()""")
            for wanted in {"memory": (0x6aa978, 0x4477aa), "map": (0x6aa978, 0xcc6677), "lanes": (0x8796a8,)}[pane]:
                self.assertIn(wanted, colours, pane)
        self.keep("timeline")

    def test_zooms_pans_and_shows_all_by_keys_and_wheel(self):
        x, y, width, height = self.box(".pane-map")
        window = "[state.t0, state.t1, state.a0, state.a1]"
        full = self.page.run(window)
        self.page.wheel(x + width / 2, y + height / 2, -200, modifiers=2)
        self.page.run("settled().then(() => true)")
        zoomed = self.page.run(window)
        self.assertLess(zoomed[1] - zoomed[0], 0.8 * (full[1] - full[0]))
        self.page.run("document.querySelector('.pane-map').focus()")
        self.page.key("ArrowRight")
        panned = self.page.run(window)
        self.assertGreater(panned[0], zoomed[0])
        self.assertAlmostEqual(panned[1] - panned[0], zoomed[1] - zoomed[0], places=3)
        self.page.key("]")
        self.assertLess(self.page.run("state.a1 - state.a0"), full[3] - full[2])
        self.keep("zoomed")
        self.page.key("0")
        self.assertEqual(self.page.run(window), full)

    def test_fingers_pan_and_zoom(self):
        window = "[state.t0, state.t1, state.a0, state.a1]"
        full = self.page.run("(showAll(), [state.full.t0, state.full.t1, 0, state.full.a1])")
        for pane in ("memory", "map", "lanes"):
            x, y, width, height = self.box(f".pane-{pane}")
            middle = x + width / 2, y + height / 2
            at = f"(pane => pane.timeAt({middle[0] - x}))(slots[0].panes.find(pane => pane.name === '{pane}'))"
            between = self.page.run(at)
            # The fingers end twice as far apart, so the window is half as long, around the point between the fingers.
            self.page.touch(*(((middle[0] + side * 60, middle[1]), (middle[0] + side * 120, middle[1])) for side in (-1, 1)))
            zoomed = self.page.run(window)
            self.assertAlmostEqual((zoomed[1] - zoomed[0]) / (full[1] - full[0]), 0.5, places=3)
            self.assertAlmostEqual((self.page.run(at) - between) / full[1], 0, places=3)
            self.assertEqual(zoomed[2:], full[2:])
            # One finger pans: the point under it stays under it.
            self.page.touch((middle, (middle[0] + 50, middle[1])))
            dragged = self.page.run(window)
            self.assertAlmostEqual(dragged[1] - dragged[0], zoomed[1] - zoomed[0], delta=2)
            self.assertLess(dragged[0], zoomed[0])
            # A larger movement the other way shows everything again.
            self.page.touch(*(((middle[0] + side * 120, middle[1]), (middle[0] + side * 50, middle[1])) for side in (-1, 1)))
            self.assertEqual(self.page.run(window), full)

    def test_fingers_zoom_addresses_and_leave_scrolling_to_the_page_until_a_tap(self):
        self.page.run("(showAll(), document.activeElement.blur())")
        x, y, width, height = self.box(".pane-map")
        middle = x + width / 2, y + height / 2
        before = self.page.run("[scrollY, state.a0, state.a1, state.t1 - state.t0]")
        self.page.touch((middle, (middle[0], middle[1] - 80)))
        after = self.page.run(GLIDED + f"({before[0]}).then(() => [scrollY, state.a0, state.a1, state.t1 - state.t0])")
        self.assertGreater(after[0], before[0])
        self.assertEqual(after[1:], before[1:])
        x, y, width, height = self.box(".pane-map")
        middle = x + width / 2, y + height / 2
        for _ in range(5):  # on a busy machine, a tap may take as long as a press
            self.page.touch((middle, middle), steps=1)
            if tapped := self.page.run("document.activeElement.classList.contains('pane-map')"):
                break
        self.assertTrue(tapped)
        self.page.touch(*(((middle[0], middle[1] + side * 40), (middle[0], middle[1] + side * 80)) for side in (-1, 1)))
        zoomed = self.page.run("[scrollY, state.a0, state.a1, state.t1 - state.t0]")
        self.assertAlmostEqual((zoomed[2] - zoomed[1]) / (before[2] - before[1]), 0.5, places=3)
        self.assertEqual(zoomed[3], before[3])
        place = self.page.run("scrollY")
        self.page.touch((middle, (middle[0], middle[1] + 30)))
        self.assertGreater(self.page.run("state.a0"), zoomed[1])
        self.assertEqual(self.page.run("scrollY"), place)
        self.page.run("(showAll(), clearSelection(), document.activeElement.blur())")

    def test_a_click_tells_the_life_of_a_buffer(self):
        x, y, _, _ = self.box(".pane-map")
        # The middle of the first rectangle of the map that begins with an allocation.
        buffer, dx, dy = self.page.run("""(async () => {
          const pane = slots[0].panes[1], stays = await pane.run.stays.load();
          const i = stays.arrival.indexOf(1);
          return [stays.buffer[i], pane.x(stays.begin[i] + stays.length[i] / 2), pane.y(stays.first[i] + stays.height[i] / 2)];
        })()""")
        self.page.click(x + dx, y + dy)
        self.page.run("settled().then(() => true)")
        self.assertEqual(self.page.run("state.selected.buffer"), buffer)
        told = self.text(".inspector")
        self.assertTrue(told.startswith(f"buffer {buffer}"))
        for part in ("size", "lifetime", "what happened", "how we know"):
            self.assertIn(part, told)
        self.keep("selected")
        self.page.run("document.querySelector('.pane-map').focus()")
        self.page.key("Escape")
        self.assertIsNone(self.page.run("state.selected"))

    def test_says_for_what_the_policy_evicted_a_buffer(self):
        self.page.run("""(async () => {
          const run = runs.find(run => run.row.policy === 'lru-swap'), stays = await run.stays.load();
          await select(run, stays.leaving.findIndex((how, i) => how === 1 && stays.room_for[i] > 0));
        })()""")
        told = self.text(".inspector")
        self.assertRegex(told, r"evicted before op \d+.*; .* were wanted next, for buffer \d+")
        self.assertRegex(told, r"copied to the host in .*; (hidden behind compute|compute waited .* for it)")

    def test_explains_a_run_that_was_out_of_memory(self):
        told = self.text("#autopsy")
        for part in ("wanted", "the largest hole had", "The least that would have had to go", "Cheapest of what was tried",
                     "With the same pool and policy the step needs"):
            self.assertIn(part, told)
        self.box("#autopsy")
        self.keep("autopsy")

    def test_draws_the_frontier_with_its_bound(self):
        self.box("#frontiers")
        self.assertEqual(self.page.run("document.querySelectorAll('.frontier .policy').length"), 2)
        self.assertEqual(self.page.run("document.querySelectorAll('.frontier path.bound-area').length"), 1)
        self.assertEqual(self.page.run("document.querySelectorAll('.frontier path.bound-line').length"), 2)
        self.keep("frontier")

    def test_a_frontier_of_many_policies_has_a_legend_that_covers_nothing(self):
        self.box("#frontiers")
        covered = self.page.run("""(() => {
          const frontier = content.frontiers[0], [line] = frontier.best_pools;
          const figure = frontierFigure({...frontier, bounds: ['remat', 'swap', 'swap,remat'].map(
              with_ => ({...frontier.bounds[0], with: with_})),
              best_pools: Array.from({length: 40}, (_, i) => ({...line, policy: 'policy-' + i}))});
          document.querySelector('.frontiers').append(figure);
          const frame = figure.querySelector('svg').getBoundingClientRect();
          const boxes = [...figure.querySelectorAll('svg text')].map(text => [text.textContent, text.getBoundingClientRect()]);
          figure.remove();
          const wrong = boxes.filter(([, box]) => box.bottom > frame.bottom || box.right > frame.right).map(([text]) => text);
          boxes.forEach(([a, one], i) => boxes.slice(i + 1).forEach(([b, other]) => {
            if (one.left < other.right && other.left < one.right && one.top + 3 < other.bottom && other.top + 3 < one.bottom)
              wrong.push(`${a} on ${b}`);
          }));
          return boxes.length > 20 ? wrong : ['too little text'];
        })()""")
        self.assertEqual(covered, [])

    def test_policies_that_are_nowhere_best_are_thin_each_has_its_colour_and_the_pointer_shows_its_name(self):
        self.box("#frontiers")
        told = self.page.run("""(async () => {
          const frontier = content.frontiers[0], [line] = frontier.best_pools;
          const columns = frontier.capacities.map((_, i) => i);
          // The first half of the capacities is best under `low`, the rest under `high`; `never` is behind both.
          const half = columns.length >> 1;
          const cells = overheadAt => columns.map(overheadAt);
          const policies = [['never', cells(() => 0.5)], ['low', cells(i => i < half ? 0.1 : 0.4)], ['high', cells(i => i < half ? 0.4 : 0.1)]];
          const figure = frontierFigure({...frontier, best_pools: policies.map(([policy, cells]) => ({...line, policy, cells}))});
          document.querySelector('.frontiers').append(figure);
          const thin = [...figure.querySelectorAll('.policy.minor')].map(group => group.getAttribute('aria-label'));
          const group = figure.querySelector('.policy.minor');
          group.dispatchEvent(new PointerEvent('pointerenter'));
          const name = figure.querySelector('.pointed-name').textContent, title = group.querySelector('title').textContent;
          group.dispatchEvent(new PointerEvent('pointerleave'));
          const after = figure.querySelector('.pointed-name').textContent;
          const colours = new Set([...Array(60).keys()].map(colourOf)).size;
          figure.remove();
          return {thin, name, title, after, colours, pool: line.pool};
        })()""")
        self.assertEqual(told, {"thin": ["never"], "name": "never", "title": f"never on {told['pool']}", "after": "",
                                "colours": 60, "pool": told["pool"]})

    def test_lists_the_decisions_and_filters_them(self):
        self.box("#decisions")
        explained = [json.loads(line) for line in tidepool("simulate", SAMPLE, *GRID, "--decisions", "--json").splitlines()]
        run = next(each for each in explained if each["policy"] == "dtr-eq")
        shown = [each for each in run["decisions"] if each["iteration"] >= run.get("lead_in_iterations", 0)]
        self.page.run("settled().then(() => true)")
        self.assertIn(f"{len(shown):,} of {len(shown):,} decisions", self.text("#decisions"))
        self.assertEqual(self.page.run("document.querySelectorAll('#decisions tbody tr').length"), min(len(shown), 200))
        version = shown[-1]["chosen"][0]["version"]
        of_version = [each for each in shown if any(action["version"] == version for action in each["chosen"])]
        self.page.run(f"""(async () => {{
          const input = document.querySelector('#decisions input');
          input.value = 'drops version {version} of ';
          input.dispatchEvent(new Event('input'));
          await settled();
        }})()""")
        rows = self.page.run("[...document.querySelectorAll('#decisions tbody tr')].map(row => row.innerText)")
        self.assertEqual(len(rows), len(of_version))
        self.assertTrue(all(f"drops version {version} of" in row for row in rows))
        self.keep("decisions")

    def test_opens_with_the_policy_none_on_the_left_and_tide_on_the_right(self):
        with tempfile.TemporaryDirectory() as folder, chromium.Page() as page:
            path = os.path.join(folder, "r.html")
            tidepool("report", SAMPLE.replace("resnet50", "vgg16"), "--policy", "lru-swap,tide(effort=1),none", "--capacity",
                     "0.8x", "-o", path)
            page.open(path)
            self.assertEqual(page.run("state.slots.map(index => runs[index].row.policy)"), ["none", "tide"])

    def test_two_runs_share_the_cursor(self):
        x, y, width, height = self.box(".pane-map")
        self.page.mouse("Moved", x + width * 0.6, y + height * 0.5)
        self.page.run("settled().then(() => true)")
        readouts = self.page.run("[...document.querySelectorAll('.readout')].map(line => line.innerText)")
        self.assertEqual(len(readouts), 2)
        times = [line.split(" · ")[0] for line in readouts]
        self.assertEqual(times[0], times[1])
        self.page.key("o")
        self.page.run("settled().then(() => true)")
        readouts = self.page.run("[...document.querySelectorAll('.readout')].map(line => line.innerText)")
        ops = [line.split(" · ")[1] for line in readouts]
        self.assertEqual(ops[0], ops[1])
        self.page.key("o")

    def test_is_dark_narrow_and_printable(self):
        self.page.dark(True)
        self.assertEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), "rgb(20, 24, 28)")
        self.keep("dark")
        self.page.dark(False)
        self.page.size(420, 900)
        self.page.run("""(async () => {
          await select(runs[1], 300);
          for (const folded of document.querySelectorAll('details')) folded.open = true;
          await settled();
        })()""")
        self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), 420)
        self.keep("narrow")
        self.page.run("(clearSelection(), document.querySelectorAll('details').forEach(each => { each.open = false; }))")
        self.page.size(1440, 1000)
        printed = os.path.join(self.folder.name, "r.pdf")
        self.page.print(printed)
        self.assertGreater(os.path.getsize(printed), 20_000)


# An op of the module fc1, and an op without module that reads its product.
STEP = """{"tidepool":1}
{"buffer":0,"born_before":true,"size_bytes":3145728,"kind":"parameter","name":"fc1.weight"}
{"alloc":1,"size_bytes":2097152,"kind":"activation"}
{"run":"aten::mm","uses":[[0,"read","schema"],[1,"write","schema"]],"duration_ns":1000000,"module":"fc1","line":"model.py:88"}
{"alloc":2,"size_bytes":1048576,"kind":"workspace","line":"train.py:7"}
{"run":"aten::sum","uses":[[1,"read","schema"],[2,"write","schema"]],"duration_ns":1000000}
"""


@unittest.skipUnless(chromium.find(), "no Chromium is installed")
class Names(unittest.TestCase):
    """Buffers and ops are named as in the user's program, wherever the page shows one."""

    @classmethod
    def setUpClass(cls):
        open_report(cls, STEP)

    def selection(self, call):
        return self.page.run(f"{call}.then(() => document.querySelector('.inspector').innerText)")

    def test_a_selected_buffer_has_its_parameter_or_its_module_and_line(self):
        self.assertIn("buffer 0 (fc1.weight)\n", self.selection("selectBuffer(runs[0], 0)"))
        told = self.selection("selectBuffer(runs[0], 1)")
        self.assertIn("buffer 1 (fc1, model.py:88)\n", told)
        self.assertIn("allocated by\nmodel.py:88\n", told)
        self.assertIn("op 0 (aten::mm in fc1, model.py:88)\twrite\t", told)
        self.assertIn("buffer 2 (aten::sum, train.py:7)\n", self.selection("selectBuffer(runs[0], 2)"))

    def test_a_selected_op_has_its_module_and_line_and_those_of_its_buffers(self):
        told = self.selection("showOp(runs[0], 0)")
        self.assertIn("op 0 (aten::mm in fc1, model.py:88)\n", told)
        self.assertIn("module\nfc1\nline\nmodel.py:88\n", told)
        self.assertIn("buffer 0 (fc1.weight)\t3 MiB\tread\t", told)
        self.assertIn("buffer 1 (fc1, model.py:88)\t2 MiB\twrite\t", told)

    def test_the_pointer_tells_the_names_in_the_map_and_in_the_lanes(self):
        told = self.page.run("""(async () => {
          const [stays, spans] = await Promise.all([runs[0].stays.load(), runs[0].spans.load()]);
          return [tellStay(runs[0], stays.buffer.indexOf(1))[0], tellSpan(runs[0], {row: 0, waits: false})[0],
                  tellSpan(runs[0], {row: 1, waits: false})[0]];
        })()""")
        self.assertEqual(told, ["buffer 1 (fc1, model.py:88)", "op 0 (aten::mm in fc1, model.py:88)", "op 1 (aten::sum)"])


def rank_profile(rank, arrival):
    """A Kineto profile: a kernel from 20 to 50 us, and an all-reduce from the rank's `arrival` to 1000 us."""
    def span(category, name, thread, begin, duration, **args):
        return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": begin, "dur": duration, "args": args}

    events = []
    for name, launch, start, end, stream in (("gemm", 10, 20, 50, 7), ("ncclKernel_AllReduce", 100, arrival, 1000, 8)):
        events += [span("cuda_runtime", "cudaLaunchKernel", 1, launch, 5, correlation=launch),
                   span("kernel", name, 7, start, end - start, device=0, stream=stream, correlation=launch)]
    events.append(span("user_annotation", "nccl:all_reduce", 1, 90, 20))
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "V100"}], "distributedInfo": {"rank": rank},
            "traceEvents": events}


@unittest.skipUnless(chromium.find(), "no Chromium is installed")
class JobReport(unittest.TestCase):
    """The lanes of a job of two ranks, of which the first waits for the second."""

    def test_draws_a_lane_for_each_rank(self):
        with tempfile.TemporaryDirectory() as folder, chromium.Page() as page:
            profiles, job, path = (os.path.join(folder, name) for name in ("profiles", "job.json", "job.html"))
            os.mkdir(profiles)
            for rank, arrival in ((0, 200), (1, 940)):
                with open(os.path.join(profiles, f"r{rank}.json"), "w") as file:
                    json.dump(rank_profile(rank, arrival), file)
            tidepool("import", profiles, "--format", "kineto", "-o", job)
            tidepool("report", job, "-o", path)
            page.open(path)
            said = json.loads(tidepool("simulate", job, "--json"))
            self.assertEqual(page.run("document.querySelectorAll('#ranks .rank-computes[d]').length"), 2)
            widths = page.run("[...document.querySelectorAll('#ranks path.rank-waits')].map(path => path.getBBox().width)")
            self.assertGreater(widths[0], 0.7 * 1128)  # 740 of about 1000 us; a lane is 1128 wide
            self.assertEqual(widths[1], 0)
            rows = page.run("[...document.querySelectorAll('#ranks table')].map(table => table.tBodies[0].rows.length)")
            self.assertEqual(rows, [2, len(said["critical_path"])])
            self.assertEqual(page.run("document.querySelector('#ranks .verdict').textContent"), "The traces have no buffers.")
            self.assertEqual(page.errors, [])


@unittest.skipUnless(chromium.find(), "no Chromium is installed")
@unittest.skipUnless(os.environ.get("TIDEPOOL_SLOW_TESTS"), "slow: TIDEPOOL_SLOW_TESTS=1 runs it")
class LargeReport(unittest.TestCase):
    """A step of a million events. The limits hold on an idle machine."""

    def test_opens_and_moves_quickly(self):
        with tempfile.TemporaryDirectory() as folder, chromium.Page() as page:
            trace, path = (os.path.join(folder, name) for name in ("big.tide", "big.html"))
            tidepool("make", "gpt", "--layers", "200", "--micro-batches", "80", "--batch", "1", "--hidden", "512",
                     "--vocabulary", "5000", "-o", trace)
            self.assertGreater(json.loads(tidepool("info", trace, "--json"))["steps"], 1_000_000)
            tidepool("report", trace, "--policy", "none,lru-swap", "--capacity", "0.8x", "-o", path)
            size, opened = os.path.getsize(path), page.open(path)
            page.run("document.querySelector('#timeline').scrollIntoView()")
            zoom = page.run(FRAMES + "(120, () => zoomTime(0.92, state.full.t1 * 0.4))")
            page.run("setWindow(state.full.t1 * 0.4, state.full.t1 * 0.5)")
            pan = page.run(FRAMES + "(120, () => { const step = (state.t1 - state.t0) / 60;"
                                    " setWindow(state.t0 + step, state.t1 + step); })")
            print(f"{size / 2**20:.2f} MiB, opened in {opened:.2f} s, zoom {zoom}, pan {pan}")
            self.assertLess(size, 25e6)
            self.assertLess(opened, 3)
            self.assertLess(zoom["gap"], 1000 / 30)
            self.assertLess(pan["gap"], 1000 / 30)
            self.assertEqual(page.errors, [])


if __name__ == "__main__":
    unittest.main()
