// Builds the page.

const help = h('dialog', {class: 'help', 'aria-label': 'Keys'}, h('h2', {}, 'Keys'), facts([
  ['← →', 'pan in time (with Shift: by half a window)'], ['↑ ↓', 'pan in addresses'], ['+ −', 'zoom in time'], ['] [', 'zoom in addresses'],
  ['0', 'show all'], [', .', 'previous and next op'], ['n p', 'next and previous buffer'], ['Enter', 'select what is under the cursor'],
  ['Tab', 'from pane to pane'], ['o', 'cursors share the time, or the op'], ['d', 'dark or light'], ['?', 'this'], ['Esc', 'close, deselect'],
]), h('p', {class: 'soft'}, 'Drag to pan. Ctrl + scroll zooms in time, Alt + scroll in addresses, Shift + scroll pans; a pane that was clicked zooms without Ctrl. Double click shows all.'),
    h('p', {class: 'soft'}, 'With fingers: drag to pan, part two of them to zoom; up and down, on the map, in addresses. A pane that was tapped does not scroll the page.'),
    h('form', {method: 'dialog'}, h('button', {}, 'Close')));

function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  readTheme();
  redraw();
}

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === '?') help.showModal();
  else if (event.key === 'Escape' && !help.open) { clearSelection(); tip.hidden = true; }
  else if (event.key === 'd') toggleTheme();
  else if (event.key === 'o') toggleAlign();
});

// The two runs that the page opens side by side: `none`, which keeps everything, and `tide`. Without `tide`, or in
// place of a missing `none`: the first runs that ended well, then the first that have data.
function openedRuns() {
  const others = [...runs.filter(run => run.ok && run.data), ...runs.filter(run => !run.ok && run.data), ...runs.filter(run => !run.data)];
  const shown = policy => runs.find(run => run.row.policy === policy && run.data);
  const tide = shown('tide');
  if (!tide) return others.slice(0, 2);
  return [shown('none') ?? others.find(run => run !== tide), tide].filter(Boolean);
}

function start() {
  if (!('DecompressionStream' in window)) {
    document.body.append(h('p', {}, 'This browser cannot read the data of this page; expected one of 2023 or later.'));
    return;
  }
  readTheme();
  const name = content.trace ? content.trace.name.split('/').pop() : content.job ? content.job.name.split('/').pop() : content.diff ? content.diff.names.map(path => path.split('/').pop()).join(' and ') : content.frontiers[0]?.trace ?? '';
  document.title = `${name} · Tidepool`;
  state.slots = openedRuns().map(run => run.index);
  const sections = [headline(), ranksSection(), differenceSection(), adviceSection(), runsSection(), frontierSection(), timelineSection(), decisionsSection(), autopsySection(), madeSection()].filter(Boolean);
  const links = [['ranks', 'Ranks'], ['difference', 'What differs'], ['advice', 'Advice'], ['runs', 'Runs'], ['frontiers', 'Costs'], ['timeline', 'Bytes'], ['decisions', 'Decisions'], ['autopsy', 'Out of memory'], ['made', 'How it was made']]
      .filter(([id]) => sections.some(section => section.id === id));
  document.body.append(
      h('header', {class: 'top'}, h('h1', {}, name || 'Tidepool'), h('nav', {'aria-label': 'Sections'}, links.map(([id, text]) => h('a', {href: '#' + id}, text))),
        h('div', {class: 'tools'}, button('?', 'Keys (?)', () => help.showModal()), button('◐', 'Dark or light (d)', toggleTheme), button('print', 'Print', () => print()))),
      h('main', {}, sections), tip, help);
  clearSelection();
  if (runs.length) {
    painters.add(paintOverview);
    painters.add(() => slots.forEach(slot => slot.paint()));
    painters.add(showReadouts);
    buildSlots();
  }
  if (content.diff) {
    painters.add(paintDifference);
    showAll();
  }
  addEventListener('resize', redraw);
  addEventListener('scroll', redraw, {passive: true});
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { readTheme(); redraw(); });
  addEventListener('beforeprint', () => { printing = true; document.documentElement.classList.add('printing'); readTheme(); for (const paint of painters) paint(); });
  addEventListener('afterprint', () => { printing = false; document.documentElement.classList.remove('printing'); readTheme(); redraw(); });
}

// For scripts that read the page: resolves when all requested data has been read and drawn.
async function settled() {
  do {
    await Promise.all(pending);
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  } while (pending.size || performance.now() < state.interacting);
}

start();
