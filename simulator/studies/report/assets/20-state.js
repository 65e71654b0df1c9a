// The state of the page. After a change, everything that depends on it is drawn again, once per frame.

const state = {
  slots: [],             // indexes of runs, one or two
  t0: 0, t1: 1,          // window in ns
  a0: 0, a1: 1,          // window in bytes of address
  cursor: null,          // {run, time, y}; y: position in the pane in pixels, undefined if a key has moved the cursor
  align: 'time',         // what the cursors of two runs share: 'time' or 'op'
  selected: null,        // {run, buffer, stay}
  full: {t0: 0, t1: 1, a1: 1, bytes: 1},
  interacting: 0,        // time (of performance.now()) until which frames must be quick
};

const painters = new Set();
let frameAsked = false;
const frames = {times: [], cost: 0, rectangles: 0};

function redraw() {
  if (frameAsked) return;
  frameAsked = true;
  requestAnimationFrame(now => {
    frameAsked = false;
    const begin = performance.now();
    frames.rectangles = 0;
    for (const paint of painters) paint();
    frames.cost = performance.now() - begin;
    frames.times.push([now, frames.cost]);
    if (frames.times.length > 600) frames.times.shift();
  });
}

let calm = 0;
function interact() {
  state.interacting = performance.now() + 150;
  clearTimeout(calm);
  calm = setTimeout(redraw, 180);
  redraw();
}

function setWindow(t0, t1) {
  const full = state.full, least = Math.max(20, (full.t1 - full.t0) * 1e-7);
  let span = Math.min(Math.max(t1 - t0, least), full.t1 - full.t0);
  if (span !== t1 - t0) { const middle = (t0 + t1) / 2; t0 = middle - span / 2; }
  state.t0 = Math.min(Math.max(t0, full.t0), full.t1 - span);
  state.t1 = state.t0 + span;
  interact();
}

function setAddresses(a0, a1) {
  const extent = state.full.a1, least = Math.min(extent, 512);
  const span = Math.min(Math.max(a1 - a0, least), extent);
  if (span !== a1 - a0) { const middle = (a0 + a1) / 2; a0 = middle - span / 2; }
  state.a0 = Math.min(Math.max(a0, 0), extent - span);
  state.a1 = state.a0 + span;
  interact();
}

function zoomTime(factor, around = (state.t0 + state.t1) / 2) {
  setWindow(around - (around - state.t0) * factor, around + (state.t1 - around) * factor);
}
function zoomAddresses(factor, around = (state.a0 + state.a1) / 2) {
  setAddresses(around - (around - state.a0) * factor, around + (state.a1 - around) * factor);
}
function showAll() {
  setAddresses(0, state.full.a1);
  setWindow(state.full.t0, state.full.t1);
}

function fitToRuns() {
  const shown = state.slots.map(index => runs[index]).filter(run => run.data);
  if (!shown.length) return;
  state.full = {
    t0: Math.min(...shown.map(run => run.data.begin_ns)),
    t1: Math.max(...shown.map(run => run.data.end_ns)) + 1,
    a1: Math.max(1, ...shown.map(run => Math.max(run.data.extent_bytes, mapLimit(run)))),
    bytes: Math.max(1, ...shown.map(run => Math.max(run.row.peak_bytes ?? 0, memoryLimit(run), run.row.footprint_bytes ?? 0))),
  };
}

// A capacity line is drawn only if it is near the bytes in use. A line far above them would flatten the curve.
function near(capacity, used) { return capacity !== undefined && capacity <= used * 1.6 ? capacity : 0; }
function memoryLimit(run) { return near(run.row.capacity_bytes, Math.max(run.row.peak_bytes ?? 0, 1)); }
function mapLimit(run) {
  return run.data.breaks.length ? 0 : near(run.row.capacity_bytes, Math.max(run.data.extent_bytes, 1));
}

// Colours that colour-blind readers can tell apart (after P. Tol's schemes): buffers by kind, then lanes.
const KIND_COLOURS = ['#a5a5a0', '#4477aa', '#cc6677', '#aa4499', '#6aa978', '#ccbb44', '#66b5d6'];
const KIND_NAMES = ['unknown', 'parameters', 'gradients', 'optimizer state', 'activations', 'workspace', 'input'];
const LANE_COLOURS = {
  0: '#8796a8', 1: '#ee8833', 2: '#009988', 3: '#0077bb', 4: '#999999',
  8: '#bbbbbb', 9: '#cc3311', 10: '#ee3377', 11: '#c9b9a6', 12: '#777777',
};
const LANE_LEGEND = [
  [0, 'runs'], [1, 'recomputes'], [2, 'copies out'], [3, 'copies in'], [9, 'waits for a copy in'],
  [10, 'waits for a place still in use'], [11, 'waits for other ops'], [12, 'waits for the allocator'],
];
const CAUSES = ['', 'a copy in', 'a place that was still in use', 'other ops', "the device's allocator"];

let theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const value = name => style.getPropertyValue(name).trim();
  theme = {ink: value('--ink'), soft: value('--soft'), line: value('--line'), paper: value('--paper'),
           pane: value('--pane'), accent: value('--accent'), alarm: value('--alarm'), font: value('--font')};
}
