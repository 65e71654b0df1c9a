// The runs and their outcomes, the reasons why runs were out of memory, and the origin of the report.

function runsSection() {
  if (!runs.length) return null;
  const columns = [
    ['outcome', run => h('span', {class: run.ok ? '' : 'alarm'}, OUTCOMES[run.row.outcome] ?? run.row.outcome)],
    ['time', run => run.row.makespan_ns === undefined ? '' : (run.ok ? '' : 'until ') + timeText(run.row.makespan_ns)],
    ['mean of', run => run.row.cycle_iterations === undefined ? 'one step' : `${run.row.settled ? 'cycle of' : 'last'} ${run.row.cycle_iterations}`],
    ['overhead', run => run.ok && run.row.overhead_ratio !== undefined ? percentText(run.row.overhead_ratio - 1) : ''],
    ['bound', run => run.bound ? run.bound.feasible ? percentText(run.bound.makespan_ns / run.row.baseline_ns - 1) : 'no plan' : ''],
    ['limited by', run => run.bound?.limited_by ?? ''],
    ['peak', run => run.row.peak_bytes === undefined ? '' : bytesText(run.row.peak_bytes)],
    ['footprint', run => run.row.footprint_bytes === undefined ? '' : bytesText(run.row.footprint_bytes)],
    ['recomputed', run => run.row.recompute_ns ? timeText(run.row.recompute_ns) : '—'],
    ['swapped out', run => run.row.swap_out_bytes ? bytesText(run.row.swap_out_bytes) : '—'],
    ['stalled', run => run.row.stall_ns?.compute ? timeText(run.row.stall_ns.compute) : '—'],
  ];
  return h('section', {id: 'runs'}, h('h2', {}, 'Runs'), h('div', {class: 'wide'}, h('table', {class: 'numbers'},
      h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'policy'), h('th', {scope: 'col'}, 'pool'), h('th', {scope: 'col'}, 'capacity'),
        columns.map(([name]) => h('th', {scope: 'col'}, name)))),
      h('tbody', {}, runs.map(run => h('tr', {}, h('th', {scope: 'row'}, run.row.policy), h('td', {}, run.row.pool),
        h('td', {}, run.row.capacity_bytes === undefined ? 'no limit' : bytesText(run.row.capacity_bytes)),
        columns.map(([, cell]) => h('td', {}, cell(run)))))))),
      runs.filter(run => run.row.message).map(run => h('p', {class: 'message'}, h('strong', {}, `${run.row.policy} on ${run.row.pool}: `), run.row.message)));
}

// The analysis of a run that was out of memory.
function autopsyOf(run) {
  const a = run.autopsy;
  const cheapest = a.remedies.find(r => r.outcome === 'ok');
  const head = h('p', {},
      h('strong', {}, a.op === null ? 'The end of the step' : `Op ${a.op} (${a.op_name})`),
      ` wanted ${bytesText(a.wanted_bytes)} for `, bufferLink(run, a.buffer), `. Of ${bytesText(a.capacity_bytes)}, `,
      `${bytesText(a.held_bytes)} were held and ${bytesText(a.free_bytes)} free; the largest hole had ${bytesText(a.largest_hole_bytes)}. ` +
      `What the op itself uses, ${bytesText(a.needed_by_op_bytes)}, could not go.`);
  const go = a.would_have_to_go.length ?
      h('p', {}, `The least that would have had to go: ${a.would_have_to_go.length === 1 ? 'one buffer' : countText(a.would_have_to_go.length) + ' buffers'} with ${bytesText(a.would_go_bytes)}` +
        (a.side_by_side ? ', side by side: ' : ', by size alone: '), a.would_have_to_go.slice(0, 6).flatMap((buffer, i) => [i ? ', ' : '', bufferLink(run, buffer)]),
        a.would_have_to_go.length > 6 ? ' …' : '.') :
      h('p', {}, 'No set of buffers that could go would have made enough room: what the op needs is in the way.');
  const cure = h('p', {}, cheapest ? h('span', {}, 'Cheapest of what was tried at this capacity: ', h('strong', {}, `${cheapest.policy} on ${cheapest.pool}`),
      `, ${percentText(cheapest.overhead)}. `) : a.remedies.length ? 'Nothing that was tried runs at this capacity. ' : '',
      a.least_capacity_bytes ? `With the same pool and policy the step needs ${bytesText(a.least_capacity_bytes)}.` : '');
  const tried = a.remedies.length ? h('details', {}, h('summary', {}, `What was tried (${a.remedies.length})`), h('div', {class: 'wide'}, h('table', {class: 'numbers'},
      h('thead', {}, h('tr', {}, ['policy', 'pool', 'outcome'].map(t => h('th', {scope: 'col'}, t)))),
      h('tbody', {}, a.remedies.map(r => h('tr', {}, h('th', {scope: 'row'}, r.policy), h('td', {}, r.pool), h('td', {}, r.outcome === 'ok' ? percentText(r.overhead) : OUTCOMES[r.outcome]))))))) : null;
  return h('article', {class: 'autopsy'}, h('h3', {}, run.label), head, a.side_by_side ? addressStrip(run, a) : null, go, cure, tried);
}

// All addresses at the moment of the failure, from left to right.
function addressStrip(run, a) {
  const W = 1000, scale = W / a.capacity_bytes, go = new Set(a.would_have_to_go);
  const svg = h('svg:svg', {viewBox: `0 0 ${W} 40`, role: 'img', class: 'strip', 'aria-label': 'Addresses when memory ran out', preserveAspectRatio: 'none'});
  svg.append(h('svg:rect', {x: 0, y: 0, width: W, height: 40, class: 'strip-free'}));
  readTable(a.occupants).then(table => {
    const few = table.rows <= 1000;
    const kindOf = row => table.needed[row] ? 'strip-needed' : go.has(table.buffer[row]) ? 'strip-go' : 'strip-held';
    for (let row = 0; row < table.rows;) {
      const first = row, kind = kindOf(row);
      let end = table.offset[row] + table.held[row];
      // With many buffers, neighbours that look the same become one rectangle.
      for (row++; !few && row < table.rows && kindOf(row) === kind && table.offset[row] - end < a.capacity_bytes / 4000; row++)
        end = table.offset[row] + table.held[row];
      const width = (end - table.offset[first]) * scale;
      const rect = h('svg:rect', {x: table.offset[first] * scale, y: 0, width: Math.max(0.4, width - (few ? 0.3 : 0)), height: 40, class: kind});
      if (few) rect.append(h('svg:title', {}, `buffer ${table.buffer[first]}, ${bytesText(table.held[first])}`));
      svg.append(rect);
    }
  });
  const legend = h('p', {class: 'legend'}, [['strip-free', 'free'], ['strip-held', 'held'], ['strip-needed', 'needed by the op'], ['strip-go', 'would have had to go']]
      .map(([name, text]) => h('span', {}, h('span', {class: 'swatch ' + name}), text)));
  return h('figure', {}, svg, legend);
}

function autopsySection() {
  const failed = runs.filter(run => run.autopsy);
  return failed.length ? h('section', {id: 'autopsy'}, h('h2', {}, 'Out of memory'), failed.map(autopsyOf)) : null;
}

function headline() {
  const trace = content.trace, job = content.job;
  if (job) return h('p', {class: 'lead'}, `A job of ${countText(job.ranks.length)} ranks and ${countText(job.collectives.length)} collectives, whose step takes ${timeText(job.makespan_ns)}` +
      (timeText(job.recorded_ns) === timeText(job.makespan_ns) ? ', as recorded.' : `; ${timeText(job.recorded_ns)} as recorded.`));
  if (content.diff) return h('p', {class: 'lead'}, content.diff.sentence);
  if (!trace) return h('p', {class: 'lead'}, `${countText(content.frontiers.length)} ${content.frontiers.length === 1 ? 'frontier' : 'frontiers'} of a sweep.`);
  const ok = runs.filter(run => run.ok && run.row.overhead_ratio !== undefined && run.row.capacity_bytes !== undefined);
  const best = ok.reduce((a, b) => !a || b.row.overhead_ratio < a.row.overhead_ratio ? b : a, null);
  // Overheads are relative to this time.
  const baseline = runs.find(run => run.row.baseline_ns !== undefined)?.row.baseline_ns ?? trace.duration_ns;
  const lead = h('p', {class: 'lead'}, `A step ${counted ? `of ${countText(trace.steps)} events without times` : `of ${timeText(baseline)}`} whose buffers sum up to ${bytesText(trace.ideal_peak_bytes)} at its peak. `);
  if (best) lead.append(h('strong', {}, `${best.row.policy} on ${best.row.pool}`), ` runs it in ${bytesText(best.row.capacity_bytes)} ` +
      `(${(best.row.capacity_bytes / trace.ideal_peak_bytes).toFixed(2)}x) at ${percentText(best.row.overhead_ratio - 1)}` +
      (best.bound?.feasible ? `; no plan that may do the same is below ${percentText(best.bound.makespan_ns / best.row.baseline_ns - 1)}. ` : '. '));
  const failed = runs.filter(run => run.row.outcome === 'out_of_memory' || run.row.outcome === 'infeasible').length;
  if (failed) lead.append(`${failed === 1 ? 'One run' : failed + ' runs'} did not fit`,
      ...(runs.some(run => run.autopsy) ? [': ', h('a', {href: '#autopsy'}, 'why')] : []), '.');
  return lead;
}

function madeSection() {
  const trace = content.trace;
  const parts = [facts([['tidepool', content.version], ['command', h('code', {}, content.command)]])];
  if (trace) {
    const lost = Object.entries(trace.losses).filter(([, count]) => count).map(([name, count]) => `${name.replaceAll('_', ' ')}: ${countText(count)}`);
    const total = Object.values(trace.evidence_mix).reduce((a, b) => a + b, 0);
    parts.push(h('h3', {}, 'The trace'), facts([
      ['name', trace.name], ['hash', h('code', {}, trace.hash)],
      ...Object.entries(trace.meta).map(([name, value]) => [name.replaceAll('_', ' '), value]),
      ['contains', `${countText(trace.buffers)} buffers, ${countText(trace.ops)} ops, ${countText(trace.uses)} uses, ${countText(trace.steps)} events, ` +
                   `${countText(trace.streams)} ${trace.streams === 1 ? 'stream' : 'streams'}`],
      ['duration', counted ? null : `${timeText(trace.duration_ns)}, with what passed between ops`],
      ['evidence', Object.entries(trace.evidence_mix).map(([name, count]) => `${name} ${(100 * count / total).toFixed(1)} %`).join(', ') || 'no uses'],
      ['losses', lost.length ? lost.join(', ') : 'none known'],
      ['warnings', trace.warnings.length ? trace.warnings.join('; ') : null],
    ]));
  }
  const machines = new Map(runs.map(run => [run.row.machine_hash, run]));
  for (const run of machines.values()) {
    const m = run.machine;
    parts.push(h('h3', {}, `The machine: ${run.row.machine}`), facts([
      ...Object.entries(m).filter(([name]) => name !== 'name' && name !== 'source').map(([name, value]) =>
          [name.replaceAll('_', ' '), typeof value === 'object' ? Object.entries(value).map(([k, v]) => `${k.replaceAll('_', ' ')} ${typeof v === 'object' ? JSON.stringify(v) : v}`).join(', ') : String(value)]),
      ['where from', m.source || 'not said'],
    ]));
  }
  const proofs = runs.filter(run => run.bound);
  if (proofs.length) parts.push(h('h3', {}, 'Bounds'), h('ul', {}, [...new Set(proofs.map(run =>
      `${run.label}: ${run.bound.feasible ? `${timeText(run.bound.makespan_ns)}, limited by ${run.bound.limited_by}` : 'no plan exists'} (${run.bound.name}: ${run.bound.proof})`))].map(text => h('li', {}, text))));
  const assumed = [...new Set(runs.map(run => run.row.assume).filter(Boolean))];
  parts.push(h('h3', {}, 'What is assumed'), h('ul', {},
      counted ? h('li', {}, 'The trace knows no durations: what is drawn as time counts the runs, and the places given and ended.') : null,
      h('li', {}, 'Times are simulated: ops take what the trace says, copies what the machine says. Nothing here was measured on a device by this report.'),
      h('li', {}, 'A place is held from where the program gives it to where the program or the policy takes it back; what reuses it waits for what still uses it.'),
      assumed.length ? h('li', {}, `Runs were made as ${assumed.join(', ')} assumes.`) : null));
  return h('section', {id: 'made'}, h('h2', {}, 'How this was made'), ...parts);
}
