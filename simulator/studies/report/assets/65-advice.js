// Whether the step fits as it is, and the changes of the user's script that make it fit.

function changeText(change) {
  const several = (count, what) => `${countText(count)} ${what}${count === 1 ? '' : 's'}`;
  return change.kind + (change.modules.length ? ' of ' + several(change.modules.length, 'module') : '') +
      (change.operators ? ', keeping ' + several(change.operators.length, 'operator') : '') + (change.parts ? ` in ${change.parts} parts` : '');
}

function verdictText(advice) {
  const best = advice.changes[0], least = best?.kind === 'batch' ? 'at least ' : '';
  const way = best && `${changeText(best)}, ${bytesText(best.peak_bytes)} at the peak and ${least}${percentText(best.overhead_ratio - 1)} of time`;
  if (advice.reserved_bytes !== undefined)
    return `The step's tensors fit into ${bytesText(advice.capacity_bytes)}; PyTorch's allocator reserves ${bytesText(advice.reserved_bytes)}` +
        (best ? ', which a setting of it mends.' : ', and no setting of it that was tried mends it.');
  if (advice.base_peak_bytes <= advice.capacity_bytes) return `The step fits into ${bytesText(advice.capacity_bytes)} as it is.`;
  return `The step does not fit into ${bytesText(advice.capacity_bytes)} as it is. ` +
      (!best ? 'No change of the script that was tried lowers its peak by 1 % or more.' : best.fits ? `The fastest change of the script that makes it fit: ${way}.` :
       `No change of the script that was tried makes it fit. The nearest: ${way}.`);
}

function adviceSection() {
  const advice = content.advice;
  if (!advice) return null;
  const rows = advice.changes.map(change => h('tr', {}, h('th', {scope: 'row'}, changeText(change)),
      [change.fits ? 'yes' : 'no', bytesText(change.peak_bytes), (change.kind === 'batch' ? '≥ ' : '') + percentText(change.overhead_ratio - 1), change.gap === null ? '' : percentText(change.gap)]
          .map(cell => h('td', {}, cell)), h('td', {}, h('details', {}, h('summary', {}, 'code'), h('pre', {}, change.code)))));
  return h('section', {id: 'advice'}, h('h2', {}, 'Advice'), h('p', {class: 'verdict'}, verdictText(advice)),
      rows.length ? h('div', {class: 'wide'}, h('table', {class: 'numbers'}, h('thead', {}, h('tr', {}, ['change of the script', 'fits', 'peak', 'time', 'above its bound', '']
          .map(text => h('th', {scope: 'col'}, text)))), h('tbody', {}, rows))) : null,
      advice.notes.map(note => h('p', {class: 'soft'}, note)));
}
