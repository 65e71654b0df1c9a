// One or two runs side by side, with one time window and one cursor.

class Slot {
  constructor(run, position) {
    this.run = run;
    this.position = position;
    this.readout = h('p', {class: 'readout', 'aria-live': 'off'}, '\u00a0');
    this.panes = run.data ? [new MemoryPane(this), new MapPane(this), new LanesPane(this)] : [];
    const choice = h('select', {'aria-label': 'Run shown ' + (position ? 'second' : 'first'), onchange: event => {
      state.slots[position] = Number(event.target.value);
      buildSlots();
    }}, runs.map(other => h('option', {value: other.index, selected: other === run}, other.label)));
    const row = run.row;
    const words = run.ok ? [row.overhead_ratio !== undefined && `${percentText(row.overhead_ratio - 1)} time`, `peak ${bytesText(row.peak_bytes)}`,
      row.footprint_bytes !== undefined && `footprint ${bytesText(row.footprint_bytes)}`, row.recompute_count && `${countText(row.recompute_count)} recomputations`,
      row.swap_out_bytes && `${bytesText(row.swap_out_bytes)} swapped out`, row.stall_ns?.compute && `stalled ${timeText(row.stall_ns.compute)}`]
        .filter(Boolean).join(' · ') : `${OUTCOMES[row.outcome]}${run.data ? ': shown up to there' : ''}`;
    this.element = h('div', {class: 'slot'}, h('header', {}, choice, h('p', {class: run.ok ? 'numbers-line' : 'numbers-line alarm'}, words)),
        run.data ? this.panes.map(pane => pane.figure) : h('p', {class: 'message'}, row.message ?? 'This run has nothing to show.'), this.readout);
  }
  paint() { for (const pane of this.panes) if (onScreen(pane.canvas)) pane.paint(); }
  read() {
    const time = cursorTime(this.run);
    if (time === null) { this.readout.textContent = '\u00a0'; return; }
    const op = opAt(this.run, time), held = this.panes[0].at(time);
    this.readout.textContent = momentText(time, (state.t1 - state.t0) / 2000) + (op === null ? '' : ` · ${opName(op)}`) +
        (held ? ` · ${bytesText(sumOfBytes(held))} resident` : '');
  }
}

function onScreen(element) {
  const box = element.getBoundingClientRect();
  return printing || (box.bottom > -200 && box.top < innerHeight + 200);
}
let printing = false;

let slots = [];
const slotHolder = h('div', {class: 'slots'});

function showReadouts() { for (const slot of slots) if (slot.run.data) slot.read(); }

function buildSlots() {
  slots = state.slots.map((index, position) => new Slot(runs[index], position));
  slotHolder.classList.toggle('two', slots.length > 1);
  slotHolder.replaceChildren(...slots.map(slot => slot.element));
  fitToRuns();
  showAll();
}

// A strip that shows the whole time, and the window in it.
const overview = h('canvas', {class: 'overview', tabindex: -1, 'aria-hidden': 'true'});
function paintOverview() {
  if (!slots.some(slot => slot.run.data)) return;
  const ratio = Math.min(devicePixelRatio || 1, 2), width = overview.clientWidth, height = overview.clientHeight;
  if (overview.width !== Math.round(width * ratio) || overview.height !== Math.round(height * ratio)) {
    overview.width = Math.round(width * ratio);
    overview.height = Math.round(height * ratio);
  }
  const g = overview.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  const full = state.full, x = time => GUTTER + (time - full.t0) / (full.t1 - full.t0) * (width - GUTTER - RIGHT);
  slots.forEach((slot, i) => {
    const levels = slot.run.memory;
    const points = levels?.[levels.length - 1].points.get();
    if (!points) return;
    g.beginPath();
    g.moveTo(x(full.t0), height);
    for (let row = 0; row < points.rows; row++) {
      let sum = 0;
      for (const kind of content.tables.buffer_kinds) sum += points[kind][row];
      const px = x(points.time[row]), py = height - 2 - sum / full.bytes * (height - 4);
      if (row) g.lineTo(px, overviewLast);
      g.lineTo(px, py);
      overviewLast = py;
    }
    g.lineTo(x(slot.run.data.end_ns), overviewLast);
    g.lineTo(x(slot.run.data.end_ns), height);
    g.globalAlpha = i ? 1 : 0.35;
    g.fillStyle = g.strokeStyle = theme.soft;
    if (i) g.stroke(); else g.fill();
    g.globalAlpha = 1;
  });
  const x0 = x(state.t0), x1 = Math.max(x(state.t1), x0 + 3);
  g.fillStyle = theme.accent;
  g.globalAlpha = 0.18;
  g.fillRect(x0, 0, x1 - x0, height);
  g.globalAlpha = 1;
  g.strokeStyle = theme.accent;
  g.strokeRect(x0 + 0.5, 0.5, x1 - x0 - 1, height - 1);
}
let overviewLast = 0;

function listenOverview() {
  let held = false;
  const go = event => {
    const full = state.full, share = (event.offsetX - GUTTER) / (overview.clientWidth - GUTTER - RIGHT);
    const middle = full.t0 + share * (full.t1 - full.t0), span = state.t1 - state.t0;
    setWindow(middle - span / 2, middle + span / 2);
  };
  overview.addEventListener('pointerdown', event => { held = true; overview.setPointerCapture(event.pointerId); go(event); });
  overview.addEventListener('pointermove', event => { if (held) go(event); });
  overview.addEventListener('pointerup', () => { held = false; });
}

function button(label, title, action) { return h('button', {type: 'button', title, 'aria-label': title, onclick: action}, label); }

function timelineSection() {
  if (!runs.length) {
    return content.frontiers.length ? h('section', {id: 'timeline'}, h('h2', {}, 'Where the bytes are'), h('p', {class: 'soft'},
        'No run is shown in full. Give the trace as well, with the policies to look at: ',
        h('code', {}, `${content.command.replace(/ -o .*/, '')} TRACE --policy NAME --capacity 0.6x`), '.')) : null;
  }
  const kinds = KIND_NAMES.map((name, k) => [name, k]).filter(([, k]) => content.trace.kind_bytes[content.tables?.buffer_kinds[k]]);
  const compare = h('select', {'aria-label': 'Beside it', onchange: event => {
    state.slots = event.target.value === '' ? [state.slots[0]] : [state.slots[0], Number(event.target.value)];
    buildSlots();
  }}, h('option', {value: ''}, 'nothing beside it'), runs.map(run => h('option', {value: run.index, selected: state.slots[1] === run.index}, 'beside it: ' + run.label)));
  const align = h('button', {type: 'button', 'aria-pressed': 'false', title: 'Whether the cursors share the time or the op (o)', onclick: toggleAlign}, 'cursor by time');
  alignButton = align;
  listenOverview();
  return h('section', {id: 'timeline'}, h('h2', {}, 'Where the bytes are'),
      h('p', {class: 'legend'}, kinds.map(([name, k]) => h('span', {}, swatch(KIND_COLOURS[k]), name)), h('span', {class: 'gap'}),
        LANE_LEGEND.map(([k, name]) => h('span', {}, swatch(LANE_COLOURS[k]), name))),
      h('div', {class: 'controls'}, runs.length > 1 ? compare : null, runs.length > 1 ? align : null,
        button('−', 'Zoom out (-)', () => zoomTime(1 / 0.7)), button('+', 'Zoom in (+)', () => zoomTime(0.7)), button('all', 'Show all (0)', showAll),
        h('span', {class: 'soft hint'}, matchMedia('(pointer: coarse)').matches ? 'drag to pan, part two fingers to zoom' :
            'drag to pan, Ctrl + scroll to zoom, Alt + scroll for addresses, ? for keys')),
      overview, slotHolder, inspector);
}

let alignButton = null;
function toggleAlign() {
  state.align = state.align === 'time' ? 'op' : 'time';
  if (alignButton) {
    alignButton.textContent = 'cursor by ' + state.align;
    alignButton.setAttribute('aria-pressed', String(state.align === 'op'));
  }
  redraw();
}
