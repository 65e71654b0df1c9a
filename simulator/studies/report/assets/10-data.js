// The data of the page: one JSON object, and compressed tables that are read at their first use.

const content = JSON.parse(document.getElementById('content').textContent);

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(block) {
  const element = document.getElementById('block-' + block);
  const stream = new Blob([bytesOfBase64(element.textContent)]).stream();
  const bytes = new Uint8Array(
      await new Response(stream.pipeThrough(new DecompressionStream('deflate'))).arrayBuffer());
  element.remove();
  return bytes;
}

// Decodes one column: differences with the sign in the lowest bit, all lowest bytes first.
function column(bytes, at, rows, width) {
  const values = new Float64Array(rows);
  let scale = 1;
  for (let plane = 0; plane < width; plane++, scale *= 256) {
    const from = at + plane * rows;
    for (let i = 0; i < rows; i++) values[i] += bytes[from + i] * scale;
  }
  let sum = 0;
  for (let i = 0; i < rows; i++) {
    const coded = values[i];
    sum += coded % 2 ? -(coded + 1) / 2 : coded / 2;
    values[i] = sum;
  }
  return values;
}

async function readTable(description) {
  const bytes = await inflate(description.block);
  const table = {rows: description.rows};
  let at = 0;
  for (const [name, width] of description.columns) {
    table[name] = column(bytes, at, description.rows, width);
    at += width * description.rows;
  }
  return table;
}

async function readText(description) {
  return new TextDecoder().decode(await inflate(description.block));
}

// A value that is read at its first use. Until it is there, get() is undefined; then the page is drawn again.
class Lazy {
  constructor(read) {
    this.read = read;
    this.value = undefined;
    this.promise = undefined;
  }
  load() {
    this.promise ??= this.read().then(value => {
      this.value = value;
      pending.delete(this.promise);
      redraw();
      return value;
    });
    if (this.value === undefined) pending.add(this.promise);
    return this.promise;
  }
  get() {
    if (this.value === undefined) this.load();
    return this.value;
  }
}
const pending = new Set();

const tables = content.tables && {
  buffers: new Lazy(() => readTable(content.tables.buffers)),
  ops: new Lazy(() => readTable(content.tables.ops)),
  uses: new Lazy(() => readTable(content.tables.uses)),
  strings: new Lazy(async () => JSON.parse(await readText(content.tables.strings))),
};

// Rows of `uses` by buffer: buffer b has the rows order[first[b]] to order[first[b + 1] - 1]; op[row] is a row's op.
const usesByBuffer = tables && new Lazy(async () => {
  const [buffers, ops, uses] = await Promise.all([tables.buffers.load(), tables.ops.load(), tables.uses.load()]);
  const first = new Uint32Array(buffers.rows + 1), op = new Uint32Array(uses.rows), order = new Uint32Array(uses.rows);
  for (let i = 0; i < uses.rows; i++) first[uses.buffer[i] + 1]++;
  for (let i = 0; i < buffers.rows; i++) first[i + 1] += first[i];
  const next = first.slice();
  for (let o = 0, row = 0; o < ops.rows; o++)
    for (let i = 0; i < ops.uses[o]; i++, row++) {
      op[row] = o;
      order[next[uses.buffer[row]]++] = row;
    }
  return {first, op, order};
});

// Rectangles ordered by begin. The latest end of every 128 is stored, so that those in a time window are found quickly.
class Tiles {
  constructor(begin, end, first, last, kind) {
    Object.assign(this, {begin, end, first, last, kind, rows: begin.length});
    this.latest = new Float64Array(Math.ceil(this.rows / 128)).fill(-Infinity);
    for (let i = 0; i < this.rows; i++)
      if (end[i] > this.latest[i >> 7]) this.latest[i >> 7] = end[i];
  }
  // Calls visit(row) for all rectangles that overlap [t0, t1).
  visit(t0, t1, visit) {
    const stop = lowerBound(this.begin, t1);
    for (let block = 0; block << 7 < stop; block++) {
      if (this.latest[block] <= t0) continue;
      const last = Math.min(stop, (block + 1) << 7);
      for (let i = block << 7; i < last; i++)
        if (this.end[i] > t0) visit(i);
    }
  }
}

function sumOf(a, b) {
  const sum = new Float64Array(a.length);
  for (let i = 0; i < sum.length; i++) sum[i] = a[i] + b[i];
  return sum;
}

function scaled(values, factor) {
  const result = new Float64Array(values.length);
  for (let i = 0; i < result.length; i++) result[i] = values[i] * factor;
  return result;
}

// The first index whose value is at least the given one.
function lowerBound(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

function lazyLevels(levels) {
  return levels.map(level => ({
    cell: level.cell_ns,
    tiles: new Lazy(async () => {
      const table = await readTable(level.tiles);
      const begin = scaled(table.begin, level.cell_ns), length = scaled(table.length, level.cell_ns);
      return new Tiles(begin, sumOf(begin, length), table.first, sumOf(table.first, table.height), table.kind);
    }),
  }));
}

function lazyMemory(levels) {
  return levels.map(level => ({cell: level.cell_ns, points: new Lazy(() => readTable(level.points))}));
}

// One run in the form that the panes need.
class Run {
  constructor(description, index) {
    this.index = index;
    this.row = description.row;
    this.machine = description.machine;
    this.bound = description.bound;
    this.autopsy = description.autopsy;
    this.decisionCount = description.decision_count;
    this.decisions = description.decisions && new Lazy(async () => JSON.parse(await readText(description.decisions)));
    this.data = description.data;
    if (!this.data) return;
    const data = this.data;
    this.stays = new Lazy(() => readTable(data.stays));
    this.segments = new Lazy(async () => {
      const table = await readTable(data.segments);
      return new Tiles(table.begin, sumOf(table.begin, table.length), table.first, sumOf(table.first, table.height),
                       new Float64Array(table.rows));
    });
    this.finestMap = new Lazy(async () => {
      const [stays, buffers] = await Promise.all([this.stays.load(), tables.buffers.load()]);
      const kind = new Float64Array(stays.rows);
      for (let i = 0; i < stays.rows; i++) kind[i] = buffers.kind[stays.buffer[i]];
      return new Tiles(stays.begin, sumOf(stays.begin, stays.length), stays.first, sumOf(stays.first, stays.height),
                       kind);
    });
    this.mapLevels = lazyLevels(data.map);
    this.spans = new Lazy(() => readTable(data.lanes.spans));
    this.finestLanes = new Lazy(async () => {
      const spans = await this.spans.load();
      const first = new Float64Array(spans.rows);
      for (let i = 0; i < spans.rows; i++) first[i] = spans.begin[i] - spans.waited[i];
      return new Tiles(first, sumOf(spans.begin, spans.length), spans.lane, spans.lane, spans.kind);
    });
    this.laneLevels = lazyLevels(data.lanes.levels);
    this.memory = lazyMemory(data.memory);
    // By op: the time of its first run; -1: it did not run.
    this.opBegins = new Lazy(async () => {
      const [spans, ops] = await Promise.all([this.spans.load(), tables.ops.load()]);
      const begins = new Float64Array(ops.rows).fill(-1);
      for (let i = spans.rows; i-- > 0;)
        if (spans.kind[i] === SPAN.run) begins[spans.subject[i] - 1] = spans.begin[i];
      return begins;
    });
    // The ops that ran, in the order in which they begin, and the times at which they begin. Streams mix the order.
    this.opOrder = new Lazy(async () => {
      const begins = await this.opBegins.load();
      const ops = [...begins.keys()].filter(op => begins[op] >= 0).sort((a, b) => begins[a] - begins[b] || a - b);
      return {ops, begins: Float64Array.from(ops, op => begins[op])};
    });
  }
  get label() {
    const row = this.row;
    const options = row.options ? ', ' + row.options : '';
    return `${row.policy} on ${row.pool}${options}` +
        (row.capacity_bytes === undefined ? ', no limit' : ', ' + bytesText(row.capacity_bytes));
  }
  get ok() { return this.row.outcome === 'ok'; }
}

const SPAN = {run: 0, again: 1, copyOut: 2, copyIn: 3, allocator: 4};
const runs = content.runs.map((description, index) => new Run(description, index));
