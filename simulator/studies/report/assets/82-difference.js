// What differs between two traces: the memory of both over the same places of the program, and the differences.

const DIFFERENCE_COLOURS = ['#c9ccd1', '#cc3311', '#0077bb', '#ee8833', '#009988', '#aa4499', '#7a7a7a'];

class DifferencePane extends MemoryPane {
  constructor(slot, name) { super(slot, `Memory of ${name} over the ops of both`, name); }
  bands() {
    const {bands, columns} = content.diff;
    return bands.map((name, k) => ({column: columns[k], name, colour: DIFFERENCE_COLOURS[k]}));
  }
}

// One of the two traces, in the form that the pane of memory needs.
function comparedTrace(diff, i) {
  const peak = [diff.peak_a_bytes, diff.peak_b_bytes][i];
  return {row: {peak_bytes: peak, ideal_peak_bytes: peak}, data: {begin_ns: 0, end_ns: diff.end, phases: [], iterations_ns: []},
          opOrder: {get: () => undefined}, stays: {get: () => undefined}, memory: lazyMemory(diff.curves[i])};
}

const comparedPanes = [];
const placeTable = content.diff && new Lazy(() => readTable(content.diff.places.table));
const placeNames = content.diff && new Lazy(async () => JSON.parse(await readText(content.diff.places.names)));
const placeReadout = h('p', {class: 'readout', 'aria-live': 'off'}, '\u00a0');

function paintDifference() {
  for (const pane of comparedPanes) if (onScreen(pane.canvas)) pane.paint();
  const table = placeTable.get(), names = placeNames.get(), time = state.cursor?.time;
  if (!table || !names || time === undefined) return;
  const place = Math.floor(time), held = comparedPanes.map(pane => pane.at(time));
  const where = place < table.rows ? `${names[table.name[place]]}${table.only[place] ? ` (in ${content.diff.names[table.only[place] - 1]} only)` : ''}` : 'the end';
  placeReadout.textContent = [where, ...held.map((bands, i) => bands && `${content.diff.names[i]} ${bytesText(sumOfBytes(bands))}`).filter(Boolean)].join(' · ');
}

function differenceSection() {
  const diff = content.diff;
  if (!diff) return null;
  diff.names.forEach((name, i) => comparedPanes.push(new DifferencePane({run: comparedTrace(diff, i)}, name)));
  state.full = {t0: 0, t1: diff.end, a1: 1, bytes: Math.max(1, diff.peak_a_bytes, diff.peak_b_bytes)};
  const colour = row => DIFFERENCE_COLOURS[Math.min(row + 1, DIFFERENCE_COLOURS.length - 1)];
  const rows = diff.rows.slice(0, 200);
  return h('section', {id: 'difference'}, h('h2', {}, 'What differs'),
      h('p', {class: 'legend'}, comparedPanes[0].bands().map(band => h('span', {}, swatch(band.colour), band.name))),
      h('div', {class: 'controls'}, button('−', 'Zoom out (-)', () => zoomTime(1 / 0.7)), button('+', 'Zoom in (+)', () => zoomTime(0.7)),
        button('all', 'Show all (0)', showAll)),
      comparedPanes.map(pane => pane.figure), placeReadout,
      h('div', {class: 'wide'}, h('table', {class: 'numbers'},
        h('thead', {}, h('tr', {}, ['change', 'cause', 'kind', 'at the peak', 'in all', 'buffers', 'ends'].map(text => h('th', {scope: 'col'}, text)))),
        h('tbody', {}, rows.map((row, i) => h('tr', {}, h('th', {scope: 'row'}, swatch(colour(i)), row.change), h('td', {}, row.cause || 'from before'),
          h('td', {}, row.kind), h('td', {}, bytesText(row.at_peak_bytes)), h('td', {}, bytesText(row.bytes)), h('td', {}, countText(row.buffers)),
          h('td', {}, row.ends ?? '')))))),
      diff.rows.length > rows.length ? h('p', {class: 'soft'}, `${countText(diff.rows.length - rows.length)} others: tidepool diff --json`) : null);
}
