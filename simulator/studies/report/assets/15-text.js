// Numbers and names as texts for the reader.

function fixed(value, digits) {
  return String(Number(value.toPrecision(digits)));
}

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0, value = bytes;
  while (Math.abs(value) >= 1024 && unit + 1 < units.length) value /= 1024, unit++;
  return (unit === 0 ? String(value) : fixed(value, 4)) + ' ' + units[unit];
}

function timeText(ns, digits = 4) {
  const size = Math.abs(ns);
  if (size >= 1e9) return fixed(ns / 1e9, digits) + ' s';
  if (size >= 1e6) return fixed(ns / 1e6, digits) + ' ms';
  if (size >= 1e3) return fixed(ns / 1e3, digits) + ' µs';
  return Math.round(ns) + ' ns';
}

// A time of a run as text; for a run without durations, the number of events until then.
function atText(time) { return counted ? `${content.diff?.by_op ? 'op' : 'event'} ${countText(Math.round(time))}` : timeText(time); }
const counted = Boolean(content.diff) || runs.some(run => run.data?.counted);

// A time as text, with enough digits to tell apart points that are `step` apart.
function momentText(ns, step) {
  if (counted) return atText(ns);
  const [unit, name] = state.full.t1 >= 1e10 ? [1e9, 's'] : state.full.t1 >= 1e6 ? [1e6, 'ms'] : [1e3, 'µs'];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  return (ns / unit).toFixed(digits) + ' ' + name;
}

function percentText(ratio) {
  const percent = ratio * 100;
  const size = Math.abs(percent);
  return (percent > 0 ? '+' : '') + (size < 0.005 ? '0' : size < 1 ? percent.toFixed(2) : size < 100 ? percent.toFixed(1) :
      Math.round(percent).toLocaleString('en')) + ' %';
}

function countText(count) { return count.toLocaleString('en'); }

const OUTCOMES = {
  ok: 'ok', out_of_memory: 'out of memory', infeasible: 'infeasible', time_limit: 'time limit', error: 'error',
};

// An element with attributes and children; text children are text, never markup.
function h(name, attributes = {}, ...children) {
  const element = name.startsWith('svg:') ? document.createElementNS('http://www.w3.org/2000/svg', name.slice(4)) :
                                            document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) element.append(child);
  return element;
}

function stringAt(id) {
  const strings = tables.strings.get();
  return strings && strings[id] ? strings[id] : '';
}

// The name of a buffer; without one, the module of the op that it is for; without a module, the name of that op.
function bufferLabel(buffer) {
  const buffers = tables.buffers.get(), ops = tables.ops.get();
  if (!buffers || !ops) return '';
  const maker = buffers.maker[buffer] - 1;
  return stringAt(buffers.name[buffer]) || (maker >= 0 ? stringAt(ops.module[maker]) || stringAt(ops.name[maker]) : '');
}

// The line of the user's code that allocated a buffer. If it is not recorded: the line of the op that the buffer is
// for, or '' if there is none.
function bufferLine(buffer) {
  const buffers = tables.buffers.get(), ops = tables.ops.get();
  if (!buffers || !ops) return '';
  const maker = buffers.before[buffer] ? -1 : buffers.maker[buffer] - 1;
  return stringAt(buffers.line[buffer]) || (maker >= 0 ? stringAt(ops.line[maker]) : '');
}

// "blocks.0.mlp.fc1, model.py:88", without the parts that are not recorded.
function joined(...texts) { return texts.filter(text => text).join(', '); }

function bufferName(buffer) {
  const name = joined(bufferLabel(buffer), bufferLine(buffer));
  return name ? `buffer ${buffer} (${name})` : `buffer ${buffer}`;
}

function opName(op) {
  const ops = tables.ops.get();
  if (!ops) return `op ${op}`;
  const module = stringAt(ops.module[op]);
  const name = joined(stringAt(ops.name[op]) + (module ? ` in ${module}` : ''), stringAt(ops.line[op]));
  return name ? `op ${op} (${name})` : `op ${op}`;
}

// Tables hold ids plus one; 0 stands for the end of the step.
function beforeText(plusOne) { return plusOne ? `before ${opName(plusOne - 1)}` : 'at the end of the step'; }
