// The panes of one run: memory over time, addresses over time, lanes. All share the window in time.

const GUTTER = 74, RIGHT = 10;

class Pane {
  constructor(slot, name, height, label) {
    this.slot = slot;
    this.name = name;
    this.height = height;
    this.canvas = h('canvas', {tabindex: 0, role: 'img', 'aria-label': label, class: 'pane pane-' + name,
                               style: `height:${height}px`, 'data-pane': name});
    this.figure = h('figure', {}, this.canvas);
    listen(this);
  }
  get run() { return this.slot.run; }
  begin() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.width = width;
    this.height = height;
    this.left = GUTTER;
    this.plotWidth = Math.max(10, width - GUTTER - RIGHT);
    const g = this.g = this.canvas.getContext('2d', {alpha: false});
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = theme.pane;
    g.fillRect(0, 0, width, height);
    g.font = '12px ' + theme.font;
    g.textBaseline = 'middle';
    return g;
  }
  x(time) { return this.left + (time - state.t0) / (state.t1 - state.t0) * this.plotWidth; }
  timeAt(x) { return state.t0 + (x - this.left) / this.plotWidth * (state.t1 - state.t0); }
  clip(top, bottom, width = this.plotWidth) {
    this.g.save();
    this.g.beginPath();
    this.g.rect(this.left, top, Math.max(0, width), bottom - top);
    this.g.clip();
  }
  // Draws ticks at round values between two ends, with labels to the left.
  byteAxis(low, high, top, bottom) {
    const g = this.g, step = niceBytes((high - low) / Math.max(2, (bottom - top) / 44));
    g.textAlign = 'right';
    g.lineWidth = 1;
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) {
      const y = Math.round(bottom - (at - low) / (high - low) * (bottom - top)) + 0.5;
      g.strokeStyle = theme.line;
      g.beginPath(); g.moveTo(this.left, y); g.lineTo(this.left + this.plotWidth, y); g.stroke();
      g.fillStyle = theme.soft;
      if (y > top + 4) g.fillText(bytesText(at), this.left - 6, y);
    }
  }
  timeAxis(y, labels) {
    const g = this.g, step = niceTime((state.t1 - state.t0) / Math.max(2, this.plotWidth / 110));
    g.textAlign = 'center';
    for (let at = Math.ceil(state.t0 / step) * step; at <= state.t1; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      g.strokeStyle = theme.line;
      g.beginPath(); g.moveTo(x, y); g.lineTo(x, y + 4); g.stroke();
      g.fillStyle = theme.soft;
      if (labels && x > this.left + 18 && x < this.width - 34) g.fillText(momentText(at, step), x, y + 12);
    }
  }
  cursorLine(top, bottom) {
    const time = cursorTime(this.run);
    if (time === null || time < state.t0 || time > state.t1) return;
    const g = this.g, x = Math.round(this.x(time)) + 0.5;
    g.strokeStyle = theme.ink;
    g.globalAlpha = 0.65;
    g.lineWidth = 1;
    g.beginPath(); g.moveTo(x, top); g.lineTo(x, bottom); g.stroke();
    g.globalAlpha = 1;
  }
  message(text) {
    this.g.fillStyle = theme.soft;
    this.g.textAlign = 'center';
    this.g.fillText(text, this.left + this.plotWidth / 2, this.height / 2);
  }
}

function niceBytes(raw) { return 2 ** Math.ceil(Math.log2(Math.max(1, raw))); }
function niceTime(raw) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, raw)));
  return [1, 2, 5, 10].map(m => m * power).find(step => step >= raw) ?? 10 * power;
}

// The time of a run that corresponds to the cursor: the same time, or the time of the same op.
function cursorTime(run) {
  const cursor = state.cursor;
  if (!cursor || !run.data) return null;
  if (cursor.run === run || state.align === 'time') return cursor.time;
  const op = opAt(cursor.run, cursor.time), begins = run.opBegins.get();
  return op !== null && begins && begins[op] >= 0 ? begins[op] : null;
}

// The op that has begun last at a time; null if there is none.
function opAt(run, time) {
  const order = run.opOrder.get();
  return order?.ops[begunAt(order, time) - 1] ?? null;
}

// The number of ops that have begun at a time.
function begunAt({begins}, time) {
  let low = 0, high = begins.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begins[middle] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

// The coarsest level that looks like the finest at this scale. While the user moves the window and frames are slow,
// cells may be two pixels wide.
function levelFor(levels, finest, timePerPixel, share) {
  const quick = performance.now() < state.interacting && frames.cost > 22 ? 2 : 1;
  let chosen = finest;
  for (const level of levels)
    if (level.cell <= timePerPixel * quick && level.cell / share <= quick) chosen = level.tiles;
  let tiles = chosen.get();
  if (tiles) return {tiles, exact: chosen === finest};
  for (const level of [...levels].reverse()) if (level.tiles.value) return {tiles: level.tiles.value, exact: false};
  if (levels.length) levels[levels.length - 1].tiles.load();
  return null;
}

class MemoryPane extends Pane {
  constructor(slot, label = 'Memory over time by kind of buffer', title = 'Memory, by kind of buffer') {
    super(slot, 'memory', 168, label);
    this.title = title;
  }
  // What is drawn one on the other: the column of the points, its name and its colour.
  bands() {
    return content.tables.buffer_kinds.map((column, k) => ({column, name: KIND_NAMES[k], colour: KIND_COLOURS[k]}))
        .filter(band => content.trace.kind_bytes[band.column]);
  }
  points() {
    const perPixel = (state.t1 - state.t0) / this.plotWidth;
    const levels = this.run.memory;
    let chosen = 0;
    for (let i = 1; i < levels.length; i++) if (levels[i].cell <= perPixel) chosen = i;
    const points = levels[chosen].points.get();
    if (points) return points;
    for (const level of levels) if (level.points.value) return level.points.value;
    return levels[levels.length - 1].points.get();
  }
  paint() {
    const g = this.begin(), run = this.run, top = 22, bottom = this.height - 22;
    const high = state.full.bytes * 1.04;
    const y = bytes => bottom - bytes / high * (bottom - top);
    this.byteAxis(0, high, top, bottom);
    this.timeAxis(bottom, true);
    const points = this.points();
    if (!points || !points.rows) return this.message(points ? 'nothing is ever in memory' : 'reading…');
    const bands = this.bands();
    const from = Math.max(0, lowerBound(points.time, state.t0) - 1);
    const to = Math.min(points.rows, lowerBound(points.time, state.t1) + 1);
    // For each pixel column, the row with the largest sum: of the changes in the column, or of the state at its start.
    const columns = Math.ceil(this.plotWidth), rows = new Int32Array(columns + 1);
    const sumAt = row => { let sum = 0; for (const {column} of bands) sum += points[column][row]; return sum; };
    for (let c = 0, row = from; c <= columns; c++) {
      rows[c] = row;
      let largest = sumAt(row);
      for (const end = this.timeAt(this.left + c + 1); row + 1 < to && points.time[row + 1] < end;) {
        const sum = sumAt(++row);
        if (sum > largest) largest = sum, rows[c] = row;
      }
    }
    this.clip(top, bottom, Math.min(this.plotWidth, this.x(run.data.end_ns) - this.left));
    const level = new Float64Array(columns + 1);
    bands.forEach(({column, colour}) => {
      const values = points[column];
      g.fillStyle = colour;
      g.beginPath();
      g.moveTo(this.left, y(level[0]));
      for (let c = 0; c <= columns; c++) {
        const upper = y(level[c] + values[rows[c]]);
        g.lineTo(this.left + c, upper);
        g.lineTo(this.left + c + 1, upper);
      }
      for (let c = columns; c >= 0; c--) {
        g.lineTo(this.left + c + 1, y(level[c]));
        g.lineTo(this.left + c, y(level[c]));
        level[c] += values[rows[c]];
      }
      g.fill();
    });
    this.phases(top, bottom);
    g.restore();
    const inset = this.rule(run.row.ideal_peak_bytes, y, 'ideal peak', theme.soft, [2, 3], top, 0);
    this.rule(memoryLimit(run) || undefined, y, 'capacity', theme.alarm, [], top, inset);
    this.cursorLine(top, bottom);
    g.fillStyle = theme.soft;
    g.textAlign = 'left';
    g.fillText(this.title, this.left, 10);
  }
  // Draws a horizontal line at a number of bytes. Returns the width of its label at the right.
  rule(bytes, y, label, colour, dash, top, inset) {
    if (bytes === undefined || y(bytes) < top - 2) return 0;
    const g = this.g, at = Math.round(y(bytes)) + 0.5;
    g.strokeStyle = colour;
    g.setLineDash(dash);
    g.lineWidth = 1.25;
    g.beginPath(); g.moveTo(this.left, at); g.lineTo(this.left + this.plotWidth, at); g.stroke();
    g.setLineDash([]);
    g.lineWidth = 1;
    const text = `${label} ${bytesText(bytes)}`, width = g.measureText(text).width;
    const right = this.left + this.plotWidth - 4 - inset;
    g.fillStyle = theme.pane;
    g.globalAlpha = 0.8;
    g.fillRect(right - width - 3, at - 15, width + 6, 13);
    g.globalAlpha = 1;
    g.fillStyle = colour;
    g.textAlign = 'right';
    g.fillText(text, right, at - 8);
    return width + 16;
  }
  // Marks the begins of forward, backward and optimizer, and of iterations.
  phases(top, bottom) {
    const g = this.g;
    g.textAlign = 'left';
    let drawn = -Infinity;
    for (const phase of this.run.data.phases) {
      const x0 = this.x(phase.begin_ns), x1 = this.x(phase.end_ns);
      if (x1 < this.left || x0 > this.left + this.plotWidth || x0 < drawn + 24) continue;
      drawn = x0;
      g.strokeStyle = theme.ink;
      g.globalAlpha = 0.25;
      g.beginPath(); g.moveTo(Math.round(x0) + 0.5, top); g.lineTo(Math.round(x0) + 0.5, bottom); g.stroke();
      g.globalAlpha = 1;
      const width = g.measureText(phase.phase).width;
      const shown = Math.max(x0, this.left) + 4;
      if (Math.min(x1, this.left + this.plotWidth) - shown < width + 2) continue;
      g.fillStyle = theme.pane;
      g.globalAlpha = 0.7;
      g.fillRect(shown - 2, bottom - 16, width + 4, 14);
      g.globalAlpha = 1;
      g.fillStyle = theme.ink;
      g.fillText(phase.phase, shown, bottom - 9);
    }
    g.strokeStyle = theme.ink;
    for (const time of this.run.data.iterations_ns) {
      const x = Math.round(this.x(time)) + 0.5;
      g.setLineDash([4, 3]);
      g.beginPath(); g.moveTo(x, top); g.lineTo(x, bottom); g.stroke();
      g.setLineDash([]);
    }
  }
  // The bands with their bytes at a time: the state after the last change.
  at(time) {
    const level = this.run.memory.find(l => l.points.value) ?? this.run.memory[0];
    const points = level.points.get();
    if (!points || !points.rows) return null;
    const row = Math.max(0, lowerBound(points.time, time + 1) - 1);
    return this.bands().map(band => ({...band, bytes: points[band.column][row]}));
  }
}

class MapPane extends Pane {
  constructor(slot) { super(slot, 'map', 380, 'Address map: addresses over time, every buffer a rectangle'); }
  y(address) { return this.bottom - (address - state.a0) / (state.a1 - state.a0) * (this.bottom - this.top); }
  addressAt(y) { return state.a0 + (this.bottom - y) / (this.bottom - this.top) * (state.a1 - state.a0); }
  paint() {
    const g = this.begin(), run = this.run;
    this.top = 22;
    this.bottom = this.height - 6;
    g.fillStyle = theme.soft;
    g.textAlign = 'left';
    g.fillText(run.data.breaks.length ? 'Addresses, without gaps that nothing ever uses' : 'Addresses', this.left, 10);
    if (!run.data.addresses) return this.message('this pool counts bytes and knows no addresses');
    this.byteAxis(state.a0, state.a1, this.top, this.bottom);
    this.clip(this.top, this.bottom);
    this.paintSegments();
    const perPixel = (state.t1 - state.t0) / this.plotWidth;
    const duration = run.data.end_ns - run.data.begin_ns;
    const share = (state.a1 - state.a0) / (this.bottom - this.top) / Math.max(1, run.data.extent_bytes) * duration;
    const level = levelFor(run.mapLevels, run.finestMap, perPixel, share);
    if (level) this.paintTiles(level.tiles, level.exact);
    if (state.selected) this.outline(state.selected.buffer);
    g.restore();
    if (!level) this.message('reading…');
    const capacity = mapLimit(run);
    if (capacity && capacity <= state.a1) {
      const y = Math.round(this.y(capacity)) + 0.5;
      g.strokeStyle = theme.alarm;
      g.beginPath(); g.moveTo(this.left, y); g.lineTo(this.left + this.plotWidth, y); g.stroke();
    }
    this.cursorLine(this.top, this.bottom);
  }
  paintSegments() {
    const segments = this.run.segments.get(), g = this.g;
    if (!segments) return;
    g.strokeStyle = theme.soft;
    g.fillStyle = theme.line;
    segments.visit(state.t0, state.t1, i => {
      const x0 = Math.max(this.left - 2, this.x(segments.begin[i]));
      const x1 = Math.min(this.left + this.plotWidth + 2, this.x(segments.end[i]));
      const y1 = this.y(segments.first[i]), y0 = this.y(segments.last[i]);
      if (y0 > this.bottom || y1 < this.top) return;
      g.fillRect(x0, y0, x1 - x0, y1 - y0);
      if (y1 - y0 > 4) g.strokeRect(x0 + 0.5, y0 + 0.5, x1 - x0, y1 - y0);
    });
  }
  paintTiles(tiles, exact) {
    const g = this.g, lists = KIND_COLOURS.map(() => []);
    const {begin, end, first, last, kind} = tiles, a0 = state.a0, a1 = state.a1;
    tiles.visit(state.t0, state.t1, i => { if (last[i] > a0 && first[i] < a1) lists[kind[i]].push(i); });
    const right = this.left + this.plotWidth + 2, left = this.left - 2;
    const scaleX = this.plotWidth / (state.t1 - state.t0), scaleY = (this.bottom - this.top) / (a1 - a0);
    const top = this.top - 2, bottom = this.bottom + 2;
    const labelled = [];
    lists.forEach((list, k) => {
      g.fillStyle = KIND_COLOURS[k];
      // A rectangle is not drawn if the rectangle of its kind that was drawn last covers it.
      let drawnX0 = 0, drawnY0 = 0, drawnX1 = 0, drawnY1 = 0;
      for (const i of list) {
        // Whole pixels: quick to fill, and without seams between neighbours.
        const x0 = Math.round(Math.max(left, this.left + (begin[i] - state.t0) * scaleX));
        const y0 = Math.round(Math.max(top, this.bottom - (last[i] - a0) * scaleY));
        const x1 = Math.max(x0 + 1, Math.round(Math.min(right, this.left + (end[i] - state.t0) * scaleX)));
        const y1 = Math.max(y0 + 1, Math.round(Math.min(bottom, this.bottom - (first[i] - a0) * scaleY)));
        if (x0 >= drawnX0 && y0 >= drawnY0 && x1 <= drawnX1 && y1 <= drawnY1) continue;
        drawnX0 = x0; drawnY0 = y0; drawnX1 = x1; drawnY1 = y1;
        const width = x1 - x0, height = y1 - y0;
        // Neighbours get a line between them if there is room for it.
        g.fillRect(x0, y0, width > 4 ? width - 1 : width, height > 4 ? height - 1 : height);
        if (exact && width > 56 && height > 13) labelled.push([i, x0, y0, width, height]);
        frames.rectangles++;
      }
    });
    if (!exact || !labelled.length || labelled.length > 400) return;
    const stays = this.run.stays.get(), buffers = tables.buffers.get();
    if (!stays || !buffers) return;
    g.textAlign = 'left';
    g.fillStyle = '#101418';
    g.font = '11px ' + theme.font;
    for (const [i, x0, y0, width, height] of labelled) {
      const room = Math.floor((width - 8) / 6.2);
      let text = bufferLabel(stays.buffer[i]) || 'buffer ' + stays.buffer[i];
      if (text.length > room) text = '…' + text.slice(-Math.max(1, room - 1));
      g.fillText(text, Math.max(x0, this.left) + 4, Math.min(Math.max(y0, this.top), this.bottom) + Math.min(height, this.bottom - Math.max(y0, this.top)) / 2);
    }
  }
  outline(buffer) {
    const stays = this.run.stays.get(), g = this.g;
    if (!stays) return;
    for (let i = 0; i < stays.rows; i++) {
      if (stays.buffer[i] !== buffer) continue;
      const x0 = this.x(stays.begin[i]), x1 = this.x(stays.begin[i] + stays.length[i]);
      const y1 = this.y(stays.first[i]), y0 = this.y(stays.first[i] + stays.height[i]);
      const box = [x0 - 1, y0 - 1, Math.max(3, x1 - x0 + 2), Math.max(3, y1 - y0 + 2)];
      g.lineWidth = 3; g.strokeStyle = theme.pane; g.strokeRect(...box);
      g.lineWidth = 1.5; g.strokeStyle = theme.ink; g.strokeRect(...box);
    }
    g.lineWidth = 1;
  }
  // The stay at a point of the picture, or null.
  hit(x, y) {
    const tiles = this.run.finestMap.get();
    if (!tiles || !this.run.data.addresses) return null;
    const slack = (state.t1 - state.t0) / this.plotWidth / 2;
    const time = this.timeAt(x), address = this.addressAt(y);
    let found = null;
    tiles.visit(time - slack, time + slack, i => {
      if (tiles.first[i] <= address && address < tiles.last[i] && (found === null || tiles.begin[i] <= time)) found = i;
    });
    return found;
  }
}

const LANE_HEIGHT = 24;

class LanesPane extends Pane {
  constructor(slot) {
    super(slot, 'lanes', 30 + LANE_HEIGHT * (slot.run.data?.lanes.names.length ?? 1), 'Lanes: compute and copies, with stalls');
  }
  paint() {
    const g = this.begin(), run = this.run, names = run.data.lanes.names, top = 22;
    g.fillStyle = theme.soft;
    g.textAlign = 'left';
    g.fillText('Lanes', this.left, 10);
    g.textAlign = 'right';
    names.forEach((name, lane) => {
      const y = top + lane * LANE_HEIGHT;
      g.fillStyle = theme.line;
      g.globalAlpha = 0.5;
      g.fillRect(this.left, y + 2, this.plotWidth, LANE_HEIGHT - 4);
      g.globalAlpha = 1;
      g.fillStyle = theme.soft;
      g.fillText(name, this.left - 6, y + LANE_HEIGHT / 2);
    });
    const perPixel = (state.t1 - state.t0) / this.plotWidth;
    const level = levelFor(run.laneLevels, run.finestLanes, perPixel, Infinity);
    if (!level) return this.message('reading…');
    this.clip(top, this.height);
    if (level.exact) this.paintSpans(level.tiles, top); else this.paintTiles(level.tiles, top);
    g.restore();
    this.cursorLine(top, this.height - 6);
  }
  bar(colour, t0, t1, lane, top) {
    const x0 = Math.round(Math.max(this.left - 2, this.x(t0)));
    const x1 = Math.round(Math.min(this.left + this.plotWidth + 2, this.x(t1)));
    if (x1 < x0) return 0;
    this.g.fillStyle = colour;
    const width = x1 - x0 > 3 ? x1 - x0 - 1 : Math.max(1, x1 - x0);
    this.g.fillRect(x0, top + lane * LANE_HEIGHT + 2, width, LANE_HEIGHT - 4);
    frames.rectangles++;
    return width;
  }
  paintTiles(tiles, top) {
    tiles.visit(state.t0, state.t1, i => this.bar(LANE_COLOURS[tiles.kind[i]], tiles.begin[i], tiles.end[i], tiles.first[i], top));
  }
  paintSpans(tiles, top) {
    const spans = this.run.spans.get(), ops = tables.ops.get(), g = this.g;
    if (!spans) return;
    g.textAlign = 'left';
    g.font = '11px ' + theme.font;
    tiles.visit(state.t0, state.t1, i => {
      const begin = spans.begin[i], end = begin + spans.length[i], lane = spans.lane[i];
      if (spans.waited[i] > 0) this.bar(LANE_COLOURS[8 + spans.cause[i]], begin - spans.waited[i], begin, lane, top);
      if (end <= begin || end < state.t0) return;
      const width = this.bar(LANE_COLOURS[spans.kind[i]], begin, end, lane, top);
      if (width < 46 || !ops) return;
      const subject = spans.subject[i] - 1;
      let text = spans.kind[i] <= SPAN.again ? stringAt(ops.name[subject]) || 'op ' + subject :
          bufferLabel(subject) || 'buffer ' + subject;
      const room = Math.floor((width - 6) / 6.2);
      if (text.length > room) text = text.slice(0, Math.max(1, room - 1)) + '…';
      g.fillStyle = spans.kind[i] === SPAN.run || spans.kind[i] === SPAN.again ? '#101418' : '#fff';
      g.fillText(text, Math.max(this.x(begin), this.left) + 3, top + lane * LANE_HEIGHT + LANE_HEIGHT / 2);
    });
  }
  // The span at a point of the picture, and whether the point is in the span's waiting time; null if there is no span.
  hit(x, y) {
    const tiles = this.run.finestLanes.get(), spans = this.run.spans.get();
    if (!tiles || !spans) return null;
    const lane = Math.floor((y - 22) / LANE_HEIGHT), time = this.timeAt(x);
    const slack = (state.t1 - state.t0) / this.plotWidth / 2;
    let found = null;
    tiles.visit(time - slack, time + slack, i => {
      if (spans.lane[i] !== lane) return;
      const waits = spans.begin[i] - spans.waited[i] <= time && time < spans.begin[i];
      const runs = spans.begin[i] - slack <= time && time < spans.begin[i] + spans.length[i] + slack;
      if (waits || runs) found = {row: i, waits: waits && !runs || (waits && spans.waited[i] > 0)};
    });
    return found;
  }
}
