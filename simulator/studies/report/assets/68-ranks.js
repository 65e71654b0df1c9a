// The ranks of a job: a lane for each, the critical path over them, and the rank that runs out of memory first.

function memoryVerdict(job) {
  const most = job.ranks.reduce((best, rank, i) => rank.peak_bytes > job.ranks[best].peak_bytes ? i : best, 0);
  if (!job.ranks[most].peak_bytes) return 'The traces have no buffers.';
  if (job.first_out === null)
    return `All ranks' tensors fit. Rank ${most} takes most: ${bytesText(job.ranks[most].peak_bytes)} of ${bytesText(job.ranks[most].capacity_bytes)}.`;
  const first = job.ranks[job.first_out], also = job.ranks.filter(rank => rank.exceeds_ns === first.exceeds_ns).length - 1;
  return `Rank ${job.first_out} runs out of memory first${also ? ` (${countText(also)} ${also === 1 ? 'other' : 'others'} at the same time)` : ''}: at ${timeText(first.exceeds_ns)} its tensors exceed ${bytesText(first.capacity_bytes)}. ` +
      `At its peak they take ${bytesText(first.peak_bytes)}.`;
}

// One path of rectangles for all spans of a kind: begin, end, begin, end, ...
function spansPath(spans, x, top, height) {
  let d = '';
  for (let i = 0; i < spans.length; i += 2) {
    const left = x(spans[i]);
    d += `M${left.toFixed(2)} ${top}h${Math.max(0.2, x(spans[i + 1]) - left).toFixed(2)}v${height}H${left.toFixed(2)}z`;
  }
  return d;
}

// Kinds of work with their place in a lane: computation above, communication below.
const RANK_WORK = [['computes', 'computes', 0, 10], ['moves', 'moves data in a collective', 10, 7], ['waits', 'waits for other ranks', 10, 7]];

function ranksFigure(job) {
  const W = 1200, left = 60, right = 12, lane = 30, bar = 17, top = 8;
  const H = top + job.ranks.length * lane + 26;
  const x = time => left + time / job.makespan_ns * (W - left - right);
  const svg = h('svg:svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': 'What each rank does over time', class: 'ranks'});
  job.ranks.forEach((rank, i) => {
    const y = top + i * lane;
    svg.append(h('svg:text', {x: left - 8, y: y + 12, class: 'tick end'}, `rank ${i}`));
    for (const [kind, text, below, height] of RANK_WORK)
      svg.append(h('svg:path', {d: spansPath(rank[kind], x, y + below, height), class: 'rank-' + kind}, h('svg:title', {}, `rank ${i} ${text}`)));
    if (rank.exceeds_ns !== null)
      svg.append(h('svg:line', {x1: x(rank.exceeds_ns), x2: x(rank.exceeds_ns), y1: y - 3, y2: y + bar + 3, class: 'rank-out'},
          h('svg:title', {}, `rank ${i} exceeds ${bytesText(rank.capacity_bytes)} at ${timeText(rank.exceeds_ns)}`)));
  });
  const height = rank => top + rank * lane + bar + 4;
  svg.append(h('svg:path', {class: 'rank-path', d: job.path.map((part, i) =>
      `${i ? 'L' : 'M'}${x(part.begin_ns).toFixed(2)} ${height(part.rank)}L${x(part.end_ns).toFixed(2)} ${height(part.rank)}`).join('')},
      h('svg:title', {}, 'critical path')));
  for (let i = 0; i <= 4; i++)
    svg.append(h('svg:text', {x: x(job.makespan_ns * i / 4), y: H - 6, class: 'tick ' + (i === 4 ? 'end' : i ? 'middle' : '')}, timeText(job.makespan_ns * i / 4)));
  const legend = h('p', {class: 'legend'}, [...RANK_WORK, ['path', 'critical path'], ['out', 'memory is exceeded']]
      .map(([kind, text]) => h('span', {}, h('span', {class: 'swatch rank-' + kind}), text)));
  return h('figure', {}, h('div', {class: 'wide'}, svg), legend);
}

function rankTable(head, rows) {
  return h('div', {class: 'wide'}, h('table', {class: 'numbers'}, h('thead', {}, h('tr', {}, head.map(text => h('th', {scope: 'col'}, text)))),
      h('tbody', {}, rows.map(([first, ...cells]) => h('tr', {}, h('th', {scope: 'row'}, first), cells.map(cell => h('td', {}, cell)))))));
}

function ranksSection() {
  const job = content.job;
  if (!job) return null;
  return h('section', {id: 'ranks'}, h('h2', {}, 'Ranks'), h('p', {class: 'verdict'}, memoryVerdict(job)), ranksFigure(job),
      rankTable(['rank', 'begins', 'ends', 'waits for others', 'others wait for it', 'peak', 'capacity', 'exceeded at'], job.ranks.map((rank, i) =>
          [String(i), timeText(rank.begin_ns), timeText(rank.end_ns), timeText(rank.waited_ns), timeText(rank.others_waited_ns), bytesText(rank.peak_bytes),
           rank.capacity_bytes >= 2 ** 62 ? 'no limit' : bytesText(rank.capacity_bytes), rank.exceeds_ns === null ? '—' : timeText(rank.exceeds_ns)])),
      h('h3', {}, 'Critical path'),
      rankTable(['on', 'from', 'to', 'host', 'ops', 'starting', 'moving data', 'before its trace', 'then'], job.path.map(part =>
          [`rank ${part.rank}`, ...['begin_ns', 'end_ns', 'host_ns', 'ops_ns', 'start_ns', 'collective_ns', 'before_ns'].map(key => timeText(part[key])),
           part.left_at === null ? 'the step ends' : `${job.collectives[part.left_at]} (${part.left_at})`])));
}
