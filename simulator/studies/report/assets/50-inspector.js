// The history of the selected buffer or op: its places, its users with the evidence, and the policy's actions with
// their reasons.

const inspector = h('aside', {class: 'inspector', 'aria-live': 'polite', 'aria-label': 'Selection'});
const MOST_ROWS = 120;

function clearSelection() {
  state.selected = null;
  inspector.replaceChildren(h('h3', {}, 'Selection'),
      h('p', {class: 'soft'}, 'Click a rectangle in the address map, or a bar in the lanes, for its life: uses with evidence, ' +
        'what the policy did with it and why.'));
  redraw();
}

async function select(run, stay) {
  const stays = await run.stays.load();
  state.selected = {run, stay, buffer: stays.buffer[stay]};
  redraw();
  await showBuffer(run, stays.buffer[stay]);
}

async function selectBuffer(run, buffer) {
  const stays = await run.stays.load();
  state.selected = {run, buffer, stay: Math.max(0, stays.buffer.indexOf(buffer))};
  redraw();
  await showBuffer(run, buffer);
}

async function selectSpan(run, row) {
  const spans = await run.spans.load();
  if (spans.kind[row] === SPAN.copyOut || spans.kind[row] === SPAN.copyIn) return selectBuffer(run, spans.subject[row] - 1);
  state.selected = null;
  redraw();
  if (spans.kind[row] !== SPAN.allocator) await showOp(run, spans.subject[row] - 1);
}

function bufferLink(run, buffer) {
  const link = h('button', {class: 'link', type: 'button', onclick: () => selectBuffer(run, buffer)}, bufferName(buffer));
  Promise.all([tables.buffers.load(), tables.ops.load(), tables.strings.load()]).then(() => { link.textContent = bufferName(buffer); });
  return link;
}

function facts(pairs) {
  return h('dl', {}, pairs.filter(pair => pair[1] !== null).map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
}

function rowsTable(head, rows) {
  const shown = rows.slice(0, MOST_ROWS);
  return h('div', {class: 'wide'}, h('table', {}, h('thead', {}, h('tr', {}, head.map(text => h('th', {scope: 'col'}, text)))),
             h('tbody', {}, shown.map(cells => h('tr', {}, cells.map(cell => h('td', {}, cell)))))),
           rows.length > shown.length ? h('p', {class: 'soft'}, `… and ${countText(rows.length - shown.length)} more`) : null);
}

// Events of a buffer in one run in order of time: [ns, place among events of the same time, element].
function eventsOf(run, buffer, stays, spans) {
  const events = [];
  for (let i = 0; i < stays.rows; i++) {
    if (stays.buffer[i] !== buffer) continue;
    const where = run.data.addresses ? ` at ${addressText(run, stays.first[i])}` : '';
    const what = [
      'existed before the step', 'allocated', 'given a place to be copied back to', 'given a place to be computed again',
      'given a second place for one run',
    ][stays.arrival[i]];
    events.push([stays.begin[i], 0, h('span', {}, what + where + (stays.arrival[i] ? `, ${beforeText(stays.arrived[i])}` : ''))]);
    const end = stays.begin[i] + stays.length[i];
    if (stays.leaving[i] === 0) events.push([end, 2, h('span', {}, `freed ${beforeText(stays.left[i])}`)]);
    if (stays.leaving[i] === 2) events.push([end, 2, h('span', {}, 'still there at the end')]);
    if (stays.leaving[i] !== 1) continue;
    const next = stays.room_for[i] - 1;
    const size = next >= 0 ? bytesText(tables.buffers.value.size[next]) : '';
    events.push([end, 2, h('span', {}, `evicted ${beforeText(stays.left[i])}` + (next >= 0 ? `; ${size} were wanted next, for ` : ''),
                           next >= 0 ? bufferLink(run, next) : null)]);
  }
  for (let i = 0; i < spans.rows; i++) {
    if (spans.subject[i] - 1 !== buffer || (spans.kind[i] !== SPAN.copyOut && spans.kind[i] !== SPAN.copyIn)) continue;
    events.push([spans.begin[i], 1, h('span', {}, `copied ${copyWay(run, spans.lane[i])} in ${timeText(spans.length[i])}, issued ` +
                 `${beforeText(spans.before[i])}; ${exposedText(spans.exposed[i])}`)]);
  }
  return events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

function addressText(run, shown) {
  let address = shown;
  for (const [from, to] of run.data.breaks) if (shown >= from) address = to + (shown - from);
  return '0x' + address.toString(16);
}

async function showBuffer(run, buffer) {
  const [buffers, , index, uses, , stays, spans] = await Promise.all(
      [tables.buffers.load(), tables.strings.load(), usesByBuffer.load(), tables.uses.load(), tables.ops.load(), run.stays.load(),
       run.spans.load()]);
  const begins = await run.opBegins.load();
  const useRows = [...index.order.subarray(index.first[buffer], index.first[buffer + 1])].map(row => {
    const op = index.op[row];
    return [opName(op), content.tables.accesses[uses.access[row]], content.tables.evidence[uses.evidence[row]],
            begins[op] >= 0 ? atText(begins[op]) : 'not reached'];
  });
  const sections = [];
  for (const other of [run, ...state.slots.map(i => runs[i]).filter(r => r !== run && r.data)]) {
    const events = other === run ? eventsOf(run, buffer, stays, spans) :
        eventsOf(other, buffer, await other.stays.load(), await other.spans.load());
    sections.push(h('h4', {}, `Under ${other.label}`), rowsTable(['time', 'what happened'], events.map(([at, , text]) => [atText(at), text])));
  }
  inspector.replaceChildren(
      h('h3', {}, bufferName(buffer)),
      facts([
        ['kind', h('span', {}, swatch(KIND_COLOURS[buffers.kind[buffer]]), content.tables.buffer_kinds[buffers.kind[buffer]].replace('_', ' '))],
        ['size', `${bytesText(buffers.size[buffer])} (${countText(buffers.size[buffer])} bytes)`],
        ['allocated by', bufferLine(buffer) || null],
        ['lifetime', (buffers.before[buffer] ? 'from before the step' : 'allocated in the step') +
                     (buffers.outlives[buffer] ? ', outlives it' : ', freed in it')],
      ]),
      ...sections,
      h('h4', {}, `Uses (${countText(useRows.length)})`),
      rowsTable(['op', 'access', 'how we know', 'first runs at'], useRows));
  inspector.dataset.buffer = buffer;
}

async function showOp(run, op) {
  const [ops, index, uses, buffers] = await Promise.all(
      [tables.ops.load(), usesByBuffer.load(), tables.uses.load(), tables.buffers.load(), tables.strings.load()]);
  const spans = await run.spans.load();
  let row = 0;
  for (let o = 0; o < op; o++) row += ops.uses[o];
  const useRows = [];
  for (let i = row; i < row + ops.uses[op]; i++)
    useRows.push([bufferLink(run, uses.buffer[i]), bytesText(buffers.size[uses.buffer[i]]), content.tables.accesses[uses.access[i]],
                  content.tables.evidence[uses.evidence[i]]]);
  const times = [];
  for (let i = 0; i < spans.rows; i++)
    if (spans.kind[i] <= SPAN.again && spans.subject[i] - 1 === op)
      times.push([atText(spans.begin[i]), spans.kind[i] === SPAN.again ? 'recomputed' : 'run', timeText(spans.length[i]),
                  spans.waited[i] > 0 ? `${timeText(spans.waited[i])} for ${CAUSES[spans.cause[i]]}` : '—']);
  const module = stringAt(ops.module[op]);
  inspector.replaceChildren(
      h('h3', {}, opName(op)),
      facts([['kind', content.tables.op_kinds[ops.kind[op]]], ['module', module || null], ['line', stringAt(ops.line[op]) || null],
             ['phase', ops.phase[op] ? content.tables.phases[ops.phase[op]] : null], ['takes', timeText(ops.duration[op])]]),
      h('h4', {}, `Under ${run.label}`), rowsTable(['time', 'what', 'took', 'waited'], times),
      h('h4', {}, 'Buffers that it uses'), rowsTable(['buffer', 'size', 'access', 'how we know'], useRows));
}

function swatch(colour) { return h('span', {class: 'swatch', style: 'background:' + colour}); }
