// Mouse, touch and keys on a pane, and the text about the point under the cursor.

const tip = h('div', {class: 'tip', role: 'status', hidden: true});

function listen(pane) {
  const canvas = pane.canvas;
  const held = new Map();  // positions of the mouse, or of up to two fingers, while they are down
  let grip = null;         // their positions and the window, at the time when the last pointer came or left
  let moved = false;
  const regrip = () => {
    grip = held.size ? {...placeOf([...held.values()]), t0: state.t0, t1: state.t1, a0: state.a0, a1: state.a1} : null;
    if (!grip) canvas.classList.remove('dragging');
  };
  canvas.addEventListener('pointerdown', event => {
    if (event.button !== 0 || held.size === 2) return;
    if (event.pointerType !== 'touch') canvas.focus({preventScroll: true});
    canvas.setPointerCapture(event.pointerId);
    moved = held.size > 0;
    held.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
    regrip();
  });
  canvas.addEventListener('pointermove', event => {
    if (!grip) return hover(pane, event);
    if (!held.has(event.pointerId)) return;
    held.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
    const place = placeOf([...held.values()]);
    if (!moved && Math.abs(place.x - grip.x) + Math.abs(place.y - grip.y) < 4) return;
    moved = true;
    tip.hidden = true;
    canvas.classList.add('dragging');
    drag(pane, grip, place);
  });
  canvas.addEventListener('pointerup', event => {
    if (!held.delete(event.pointerId)) return;
    regrip();
    if (moved) return;
    canvas.focus({preventScroll: true});
    choose(pane, event.offsetX, event.offsetY);
  });
  canvas.addEventListener('pointercancel', event => { if (held.delete(event.pointerId)) regrip(); });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('dblclick', showAll);
  canvas.addEventListener('wheel', event => {
    // Without a modifier key the page scrolls, unless the pane has been clicked.
    if (!event.ctrlKey && !event.metaKey && !event.altKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const factor = Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * 0.0022);
    tip.hidden = true;
    if (event.shiftKey && !event.altKey) {
      const span = state.t1 - state.t0;
      setWindow(state.t0 + event.deltaY / 800 * span, state.t1 + event.deltaY / 800 * span);
    } else if (event.altKey && pane.name === 'map') {
      zoomAddresses(factor, pane.addressAt(event.offsetY));
    } else {
      zoomTime(factor, pane.timeAt(event.offsetX));
    }
  }, {passive: false});
  canvas.addEventListener('keydown', event => { if (key(pane, event)) { event.preventDefault(); tip.hidden = true; } });
}

// The position of one or two pointers: their middle, and their distance along each axis.
function placeOf([first, last = first]) {
  return {x: (first.x + last.x) / 2, y: (first.y + last.y) / 2, dx: Math.abs(first.x - last.x), dy: Math.abs(first.y - last.y)};
}

// Moves the window so that the points that were touched stay under the pointers. Two fingers that move apart zoom in
// time. The map has two axes: there, they zoom along the axes on which the fingers were apart at first.
function drag(pane, grip, place) {
  const map = pane.name === 'map', apart = at => map ? at.dx : Math.hypot(at.dx, at.dy);
  const factor = (before, now, across) => before * 3 > across ? before / Math.max(now, 12) : 1;
  const span = (grip.t1 - grip.t0) * factor(apart(grip), apart(place), grip.dy);
  const right = at => (at.x - pane.left) / pane.plotWidth, up = at => (pane.bottom - at.y) / (pane.bottom - pane.top);
  const t0 = grip.t0 + right(grip) * (grip.t1 - grip.t0) - right(place) * span;
  setWindow(t0, t0 + span);
  if (!map) return;
  const height = (grip.a1 - grip.a0) * factor(grip.dy, place.dy, grip.dx);
  const a0 = grip.a0 + up(grip) * (grip.a1 - grip.a0) - up(place) * height;
  setAddresses(a0, a0 + height);
}

// Handles keys of a focused pane. Returns true if the key was one of them.
function key(pane, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const span = state.t1 - state.t0, height = state.a1 - state.a0, step = event.shiftKey ? 0.5 : 0.1;
  switch (event.key) {
    case 'ArrowLeft': setWindow(state.t0 - span * step, state.t1 - span * step); return true;
    case 'ArrowRight': setWindow(state.t0 + span * step, state.t1 + span * step); return true;
    case 'ArrowUp': setAddresses(state.a0 + height * step, state.a1 + height * step); return true;
    case 'ArrowDown': setAddresses(state.a0 - height * step, state.a1 - height * step); return true;
    case '+': case '=': zoomTime(0.7); return true;
    case '-': case '_': zoomTime(1 / 0.7); return true;
    case ']': zoomAddresses(0.7); return true;
    case '[': zoomAddresses(1 / 0.7); return true;
    case '0': case 'Home': showAll(); return true;
    case ',': case '.': stepCursor(pane, event.key === '.' ? 1 : -1); return true;
    case 'n': case 'p': stepStay(pane, event.key === 'n' ? 1 : -1); return true;
    case 'Enter': if (state.cursor) choose(pane, pane.x(state.cursor.time), state.cursor.y ?? pane.height / 2); return true;
    default: return false;
  }
}

// Moves the cursor from op to op, in the order in which they begin.
function stepCursor(pane, by) {
  const order = pane.run.opOrder.get();
  if (!order?.ops.length) return;
  const {begins} = order, begun = begunAt(order, state.cursor ? cursorTime(pane.run) ?? state.t0 : state.t0);
  const index = by > 0 ? begun : lowerBound(begins, begins[begun - 1]) - 1;
  const time = begins[Math.max(0, Math.min(begins.length - 1, index))];
  state.cursor = {run: pane.run, time: Math.max(time, pane.run.data.begin_ns)};
  const span = state.t1 - state.t0;
  if (time < state.t0 || time > state.t1) setWindow(time - span / 2, time + span / 2);
  redraw();
}

// Selects the next or the previous stay, in the order in which stays begin.
function stepStay(pane, by) {
  const stays = pane.run.stays.get();
  if (!stays || !stays.rows) return;
  const last = state.selected && state.selected.run === pane.run ? state.selected.stay : lowerBound(stays.begin, state.t0) - by;
  select(pane.run, Math.max(0, Math.min(stays.rows - 1, last + by)));
}

function hover(pane, event) {
  const {offsetX: x, offsetY: y} = event;
  if (x < pane.left || x > pane.left + pane.plotWidth) { tip.hidden = true; return; }
  state.cursor = {run: pane.run, time: pane.timeAt(x), y};
  redraw();
  const lines = tellAt(pane, x, y);
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.map((line, i) => h(i ? 'div' : 'strong', {}, line)));
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + 'px';
  tip.style.top = (event.clientY + height + 24 > innerHeight ? event.clientY - height - 10 : event.clientY + 16) + 'px';
}

function sumOfBytes(bands) { return bands.reduce((sum, band) => sum + band.bytes, 0); }

function tellAt(pane, x, y) {
  const time = pane.timeAt(x), when = momentText(time, (state.t1 - state.t0) / pane.plotWidth);
  if (pane.name === 'memory') {
    const held = pane.at(time);
    if (!held) return null;
    return [`${bytesText(sumOfBytes(held))} at ${when}`,
            ...held.filter(band => band.bytes > 0).sort((a, b) => b.bytes - a.bytes).map(band => `${bytesText(band.bytes)} ${band.name}`)];
  }
  const row = pane.hit(x, y);
  if (row === null) return null;
  return pane.name === 'map' ? tellStay(pane.run, row) : tellSpan(pane.run, row);
}

function tellStay(run, row) {
  const stays = run.stays.get(), buffers = tables.buffers.get();
  if (!stays || !buffers) return null;
  const buffer = stays.buffer[row];
  return [bufferName(buffer), `${bytesText(buffers.size[buffer])}, ${KIND_NAMES[buffers.kind[buffer]]}`,
          `${arrivalText(run, row)} at ${atText(stays.begin[row])}`,
          `${leavingText(run, row)}${stays.leaving[row] === 2 ? '' : ' at ' + atText(stays.begin[row] + stays.length[row])}`];
}

function tellSpan(run, {row, waits}) {
  const spans = run.spans.get();
  const kind = spans.kind[row], subject = spans.subject[row] - 1;
  const begin = spans.begin[row], length = spans.length[row];
  if (kind === SPAN.allocator) return [`Waits ${timeText(spans.waited[row])} for ${CAUSES[4]}`];
  if (waits) return [`Waits ${timeText(spans.waited[row])} for ${CAUSES[spans.cause[row]]}`, `before ${opName(subject)}`];
  if (kind === SPAN.run || kind === SPAN.again)
    return [opName(subject), `${kind === SPAN.again ? 'recomputed' : 'runs'} ${counted ? 'at' : timeText(length) + ' from'} ${atText(begin)}`];
  return [bufferName(subject),
          `copied ${copyWay(run, spans.lane[row])} ${counted ? 'at' : `in ${timeText(length)} from`} ${atText(begin)}`,
          exposedText(spans.exposed[row])];
}

// Where a copy on this lane goes to or comes from, as in "to the host" or "from storage".
function copyWay(run, lane) { return run.data.lanes.names[lane].replace('host', 'the host'); }

function exposedText(exposed) { return exposed > 0 ? `compute waited ${timeText(exposed)} for it` : 'hidden behind compute'; }

const ARRIVALS = ['existed before the step', 'allocated', 'brought back by a copy', 'place made for its recomputation',
                  'second copy for one run'];
function arrivalText(run, row) { return ARRIVALS[run.stays.get().arrival[row]]; }
function leavingText(run, row) { return ['freed by the program', 'evicted by the policy', 'stays to the end'][run.stays.get().leaving[row]]; }

// Handles a click: selects the buffer or op under the pointer; if there is none, clears the selection.
function choose(pane, x, y) {
  if (pane.name === 'map') {
    const row = pane.hit(x, y);
    if (row !== null) return select(pane.run, row);
  } else if (pane.name === 'lanes') {
    const hit = pane.hit(x, y);
    if (hit) return selectSpan(pane.run, hit.row);
  }
  clearSelection();
}
