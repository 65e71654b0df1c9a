// Frontiers: overhead against capacity for every policy, with the bounds that no plan can beat.

const LINE_COLOURS = ['#0077bb', '#cc3311', '#009988', '#ee8833', '#aa3377', '#6a7f2a', '#33aadd', '#885522'];
// Each line its own: hues of a golden angle are far from those shortly before.
const colourOf = rank => LINE_COLOURS[rank] ?? `hsl(${Math.round(rank * 137.508) % 360} 55% ${rank % 2 ? 38 : 52}%)`;
const HIGHEST = 10;  // larger overheads are not drawn: they would flatten all other lines

// The height of an overhead: 0 for 0 %, 1 for 9 %, 2 for 99 %.
function heightOf(overhead) { return Math.log10(1 + 100 * Math.max(0, overhead)); }

// The lines in the order of the legend. At each capacity, one of the lines with the least overhead gets `best`: the
// line that is best at the most capacities; among equals, the line that ended well at the most capacities. Lines with
// `best` come first; the others are thinner until the pointer is on them.
function rankLines(lines, columns, good) {
  const leads = (line, i) => good(line.cells[i]) && lines.every(other => !good(other.cells[i]) || other.cells[i] >= line.cells[i] - 1e-12);
  const ranked = lines.map(line => ({line, best: false, score: columns.filter(i => leads(line, i)).length,
                                     reach: columns.filter(i => good(line.cells[i])).length}))
      .sort((a, b) => b.score - a.score || b.reach - a.reach || (a.line.name < b.line.name ? -1 : 1));
  for (const i of columns) {
    const first = ranked.find(({line}) => leads(line, i));
    if (first) first.best = true;
  }
  return ranked.sort((a, b) => b.best - a.best);
}

function frontierFigure(frontier, allPools) {
  const lines = allPools ? frontier.lines.map(line => ({...line, name: `${line.policy} on ${line.pool}`, pools: line.cells.map(() => line.pool)}))
      : frontier.best_pools.map(line => ({...line, name: line.policy}));
  const limited = frontier.capacities.map((c, i) => [c, i]).filter(([c]) => c !== null);
  const good = cell => typeof cell === 'number' && cell <= HIGHEST;
  const figure = h('figure', {class: 'frontier'});
  const title = `${frontier.trace} on ${frontier.machine}${frontier.setting && `, ${frontier.setting}`}`;
  if (!limited.length || !lines.some(line => limited.some(([, i]) => good(line.cells[i])))) {
    figure.append(h('figcaption', {}, h('strong', {}, title)), h('p', {class: 'soft'},
        limited.length ? 'No run with a limit ended well with at most 1000 % overhead, so there is nothing to draw.' :
            'No run had a limit, so there is nothing to draw.'));
    return figure;
  }
  const W = 760, H = 400, left = 64, right = 190, top = 34, bottom = 54;
  const low = limited[0][0], high = limited[limited.length - 1][0];
  const x = capacity => left + (high === low ? 0.5 : (capacity - low) / (high - low)) * (W - left - right);
  const tallest = Math.max(heightOf(0.01), ...lines.flatMap(line => limited.map(([, i]) => good(line.cells[i]) ? heightOf(line.cells[i]) : 0))) * 1.05;
  const y = overhead => H - bottom - heightOf(overhead) / tallest * (H - top - bottom);
  const svg = h('svg:svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `Overhead against memory, ${title}`});

  // Bounds first. Below the lowest bound there is no plan of any kind.
  const boundHeight = cell => typeof cell === 'number' && isFinite(cell) ? y(Math.min(cell, HIGHEST)) : top;
  const pathOf = points => points.map(([px, py], i) => `${i ? 'L' : 'M'}${px.toFixed(1)} ${py.toFixed(1)}`).join(' ');
  const lowest = limited.map(([capacity, i]) => [x(capacity), frontier.bounds.map(bound => bound.cells[i]).filter(cell => cell !== null)])
      .filter(([, cells]) => cells.length).map(([px, cells]) => [px, Math.max(...cells.map(boundHeight))]);
  if (lowest.length) svg.append(h('svg:path', {class: 'bound-area',
      d: `${pathOf(lowest)} L${lowest[lowest.length - 1][0]} ${H - bottom} L${lowest[0][0]} ${H - bottom} Z`}));
  frontier.bounds.forEach((bound, rank) => svg.append(h('svg:path', {class: 'bound-line bound-' + rank,
      d: pathOf(limited.filter(([, i]) => bound.cells[i] !== null).map(([capacity, i]) => [x(capacity), boundHeight(bound.cells[i])]))})));
  for (const percent of [0, 1, 3, 10, 30, 100, 300, 1000]) {
    if (heightOf(percent / 100) > tallest) break;
    const py = y(percent / 100);
    svg.append(h('svg:line', {x1: left, x2: W - right, y1: py, y2: py, class: 'grid'}),
               h('svg:text', {x: left - 8, y: py + 4, class: 'tick end'}, percent + ' %'));
  }
  const ticks = [];
  for (const [capacity] of limited) {
    const px = x(capacity);
    svg.append(h('svg:line', {x1: px, x2: px, y1: H - bottom, y2: H - bottom + 5, class: 'axis'}));
    if (ticks.length && px - ticks[ticks.length - 1] < 62) continue;
    ticks.push(px);
    svg.append(h('svg:text', {x: px, y: H - bottom + 18, class: 'tick middle'}, bytesText(capacity)),
               h('svg:text', {x: px, y: H - bottom + 32, class: 'tick middle soft'}, (capacity / frontier.ideal_peak_bytes).toFixed(2) + 'x'));
  }
  svg.append(h('svg:line', {x1: left, x2: W - right, y1: H - bottom, y2: H - bottom, class: 'axis'}),
             h('svg:text', {x: left + (W - left - right) / 2, y: H - 6, class: 'tick middle'}, 'device memory (and as a share of the ideal peak)'),
             h('svg:text', {x: 6, y: 16, class: 'tick'}, 'overhead: time over the step without limit'));

  const ranked = rankLines(lines, limited.map(([, i]) => i), good);
  const labels = [];
  // The name of the line under the pointer, above the line's point at the least capacity, towards the middle.
  const pointedName = h('svg:text', {class: 'label pointed-name end'});
  ranked.forEach(({line, best}, rank) => {
    const colour = colourOf(rank);
    const group = h('svg:g', {class: 'policy' + (best ? '' : ' minor'), style: `--colour:${colour}`, tabindex: 0, 'aria-label': line.name},
                    h('svg:title', {}, `${line.name} on ${line.pool}`));
    let d = '', pen = false, last = null;
    for (const [capacity, i] of limited) {
      const cell = line.cells[i];
      if (!good(cell)) { pen = false; continue; }
      const px = x(capacity), py = y(cell);
      d += `${pen ? 'L' : 'M'}${px.toFixed(1)} ${py.toFixed(1)} `;
      pen = true;
      last ??= [px, py];
    }
    group.append(h('svg:path', {d, class: 'halo'}), h('svg:path', {d, class: 'curve'}));
    for (const [capacity, i] of limited) {
      const cell = line.cells[i];
      if (!good(cell)) continue;
      const dot = h('svg:circle', {cx: x(capacity), cy: y(cell), r: 3.2});
      dot.append(h('svg:title', {}, `${line.name}, ${line.pools[i]}: ${percentText(cell)} at ${bytesText(capacity)}`));
      group.append(dot);
    }
    svg.append(group);
    labels.push({line, colour, rank, last, group});
  });
  // The legend at the right. The best line comes first. The title of an entry has the number of runs that did not end
  // well, and their outcomes.
  const room = Math.floor((H - bottom - top) / 16) - 1 - (lowest.length ? 1 : 0) - frontier.bounds.length;
  const shown = labels.length > room ? labels.slice(0, room - 1) : labels;
  shown.forEach(({line, colour, rank, last, group}, i) => {
    const ly = top + 6 + i * 16;
    const failed = limited.map(([, j]) => line.cells[j]).filter(cell => typeof cell === 'string' && cell !== 'ok');
    const text = h('svg:text', {x: W - right + 28, y: ly + 4, class: 'label' + (last ? '' : ' soft')}, line.name.length > 22 ? line.name.slice(0, 21) + '…' : line.name);
    text.append(h('svg:title', {}, `${line.name} on ${line.pool}` + (failed.length ? `; ${failed.length} of ${limited.length} runs ended otherwise: ${[...new Set(failed.map(f => OUTCOMES[f]))].join(', ')}` : '')));
    const entry = h('svg:g', {class: 'entry', style: `--colour:${colour}`}, h('svg:line', {x1: W - right + 10, x2: W - right + 24, y1: ly, y2: ly, class: 'curve'}), text);
    const point = on => () => {
      pointedName.textContent = on ? line.name : '';
      pointedName.classList.toggle('end', last !== null && last[0] > (left + W - right) / 2);
      if (last) [['x', Math.min(last[0] + 4, W - right)], ['y', Math.max(last[1] - 7, top - 4)]].forEach(([name, value]) => pointedName.setAttribute(name, value));
      svg.classList.toggle('pointing', on); group.classList.toggle('pointed', on); entry.classList.toggle('pointed', on); if (on) svg.append(group, pointedName);
    };
    for (const element of [group, entry]) {
      element.addEventListener('pointerenter', point(true));
      element.addEventListener('pointerleave', point(false));
      element.addEventListener('focus', point(true));
      element.addEventListener('blur', point(false));
    }
    svg.append(entry);
  });
  if (labels.length > shown.length) svg.append(h('svg:text', {x: W - right + 10, y: top + 10 + shown.length * 16, class: 'tick'}, `… ${labels.length - shown.length} more, see the table`));
  let below = top + 22 + (shown.length + (labels.length > shown.length)) * 16;
  if (lowest.length) svg.append(h('svg:rect', {x: W - right + 10, y: below - 6, width: 14, height: 12, class: 'bound-area'}),
      h('svg:text', {x: W - right + 28, y: below + 4, class: 'label'}, 'no plan can be here'));
  frontier.bounds.forEach((bound, rank) => {
    below += 16;
    svg.append(h('svg:line', {x1: W - right + 10, x2: W - right + 24, y1: below, y2: below, class: 'bound-line bound-' + rank}),
        h('svg:text', {x: W - right + 28, y: below + 4, class: 'tick'}, `bound: ${bound.with.replace('remat', 'recompute').replace(',', ', ')}`));
  });
  figure.append(h('figcaption', {}, h('strong', {}, title), `: ${timeText(frontier.baseline_ns)} without limit, ideal peak ${bytesText(frontier.ideal_peak_bytes)}`),
      h('div', {class: 'wide'}, svg), frontierTable(frontier, lines, limited));
  return figure;
}

function frontierTable(frontier, lines, limited) {
  const cellText = cell => cell === null ? '' : typeof cell === 'number' ? percentText(cell) : OUTCOMES[cell] ?? cell;
  const boundText = cell => typeof cell === 'string' ? 'no plan' : cellText(cell);
  const head = h('tr', {}, h('th', {scope: 'col'}, 'policy'), h('th', {scope: 'col'}, 'pool'),
      limited.map(([capacity]) => h('th', {scope: 'col'}, bytesText(capacity))));
  const policies = lines.map(line => h('tr', {}, h('th', {scope: 'row'}, line.policy),
      h('td', {}, line.pool + (line.addresses ? '' : ' (counts bytes)')),
      limited.map(([, i]) => h('td', {class: typeof line.cells[i] === 'number' ? '' : 'soft', title: line.pools[i]}, cellText(line.cells[i])))));
  const bounds = frontier.bounds.map(bound => h('tr', {class: 'bound'}, h('th', {scope: 'row'}, 'bound'),
      h('td', {}, bound.with.replace(',', ', ')), limited.map(([, i]) => h('td', {}, boundText(bound.cells[i])))));
  return h('details', {}, h('summary', {}, 'The numbers'), h('div', {class: 'wide'},
      h('table', {class: 'numbers'}, h('thead', {}, head), h('tbody', {}, policies, bounds))));
}

function frontierSection() {
  if (!content.frontiers.length) return null;
  const holder = h('div', {class: 'frontiers'});
  const fill = all => holder.replaceChildren(...content.frontiers.map(frontier => frontierFigure(frontier, all)));
  fill(false);
  return h('section', {id: 'frontiers'}, h('h2', {}, 'What memory costs'),
      h('p', {class: 'soft'}, 'Each policy with the best of its pools. Coloured: the best at some capacity. The vertical axis is about linear up to 1 % and logarithmic above. Point at a name to see its line, or at a line to see its name.',
        ' ', h('label', {}, h('input', {type: 'checkbox', onchange: event => fill(event.target.checked)}), ' every pool')), holder);
}
