// Decisions of the policies, one row for each answer, as `simulate --explain` prints them.

const MOST_DECISIONS = 200;  // rows shown at once

function decisionsSection() {
  const explained = runs.filter(run => run.decisions);
  if (!explained.length) return null;
  const opened = openedRuns().find(run => run.decisions && run.row.policy !== 'none') ?? explained[0];
  const shown = {run: opened, text: ''};
  const holder = h('div', {class: 'wide'}), note = h('p', {class: 'soft', 'aria-live': 'polite'});
  const fill = async () => {
    const run = shown.run;
    const all = await run.decisions.load();
    await Promise.all([tables.buffers.load(), tables.ops.load(), tables.strings.load()]);
    if (run !== shown.run) return;
    const wanted = shown.text.toLowerCase();
    const rows = all.map(decisionCells).filter(cells => cells.join(' ').toLowerCase().includes(wanted));
    note.textContent = `${countText(rows.length)} of ${countText(run.decisionCount)} decisions` +
        (all.length < run.decisionCount ? `; the page has the last ${countText(all.length)}` : '') +
        (rows.length > MOST_DECISIONS ? `; the first ${MOST_DECISIONS} are shown: filter for others` : '');
    holder.replaceChildren(h('table', {class: 'numbers decisions'}, h('thead', {}, h('tr', {}, DECISION_COLUMNS.map(name => h('th', {scope: 'col'}, name)))),
        h('tbody', {}, rows.slice(0, MOST_DECISIONS).map(cells => h('tr', {}, cells.map(cell => h('td', {}, cell)))))));
  };
  const choice = h('select', {'aria-label': 'Run whose decisions are shown', onchange: event => { shown.run = runs[Number(event.target.value)]; fill(); }},
      explained.map(run => h('option', {value: run.index, selected: run === shown.run}, run.label)));
  const filter = h('input', {type: 'search', placeholder: 'filter, as in: drops version 31', 'aria-label': 'Filter decisions',
                             oninput: event => { shown.text = event.target.value; fill(); }});
  fill();
  return h('section', {id: 'decisions'}, h('h2', {}, 'Decisions'), h('p', {}, choice, ' ', filter), note, holder);
}

const DECISION_COLUMNS = ['iteration', 'before', 'time', 'asked for', 'answered by', 'chosen', 'frees', 'candidates, first ones with scores'];

function decisionCells(decision) {
  const actions = list => (list ?? []).map(action => action.op !== undefined ? `runs op ${action.op} again` :
      `${DECISION_VERBS[action.action]} version ${action.version} of ${bufferName(action.buffer)}`).join(', ');
  const asked = {request: '', expected: 'ahead of ', before_run: 'the op that runs next', plan: 'as planned', rules: 'without asking'}[decision.occasion];
  const freed = [decision.freed_bytes && bytesText(decision.freed_bytes), decision.leaving_bytes && `${bytesText(decision.leaving_bytes)} once copied`];
  const first = (decision.first ?? []).map(one => one.versions.join('+') + (one.score === undefined ? '' : ` at ${one.at_least ? 'least ' : ''}${Number.isInteger(one.score) ? one.score : fixed(one.score, 6)}`));
  return [String(decision.iteration), decision.op === undefined ? 'end of the step' : opName(decision.op), atText(decision.time_ns),
          decision.request && ['request', 'expected'].includes(decision.occasion) ? `${asked}${bytesText(decision.request.bytes)} for ${bufferName(decision.request.buffer)}` : asked,
          decision.policy, [actions(decision.chosen), decision.in_vain && `in vain: ${actions(decision.in_vain)}`].filter(Boolean).join('; '),
          freed.filter(Boolean).join(', '),
          decision.candidates === undefined ? '' : `${countText(decision.candidates)}${decision.score ? ` by ${decision.score}` : ''}: ${first.join(', ')}`];
}

const DECISION_VERBS = {'drop': 'drops', 'swap out': 'swaps out', 'swap in': 'swaps in', 'await': 'awaits the copies of'};
