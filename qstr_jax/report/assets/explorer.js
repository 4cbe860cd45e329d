// The explorer: what is chosen decides what the charts and the table show. All text reaches the page as text nodes.

const DATA = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const state = { exhibit: null, chosen: {}, sort: { name: 'id', up: true }, lane: null,
  drawn: Promise.resolve() };

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name, value);
    else if (value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// Rows as objects, made once an exhibit is looked at.
function rowsOf(exhibit) {
  exhibit.table ??= exhibit.rows.lane.map((lane, id) => {
    const row = { id };
    for (const [name, values] of Object.entries(exhibit.rows)) row[name] = values[id];
    return row;
  });
  return exhibit.table;
}

// A row without a setting, such as a baseline's learning rate, is shown whatever is chosen of it.
const shownRows = () => rowsOf(state.exhibit).filter(
  (row) => Object.entries(state.chosen).every(([name, values]) => row[name] === null || values.has(row[name])));
const nameOf = (model) => DATA.looks[model].name;
const grouped = (value) => (value === null ? '–' : value.toLocaleString('en-US'));
const samplesText = (row) => (row.samples === null ? '–'
  : `${row.bound > 0 ? '≥ ' : row.bound < 0 ? '≤ ' : ''}${grouped(row.samples)}`);

function valueText(name, value) {
  if (name === 'model') return nameOf(value);
  return value === null ? '–' : value === true ? 'yes' : value === false ? 'no' : String(value);
}

// What a lane is called: its architecture and the settings in which lanes differ.
function laneText(row) {
  const others = Object.entries(state.exhibit.settings).filter(([name]) => name !== 'model' && row[name] !== null);
  return [nameOf(row.model), ...others.map(([name, heading]) => `${heading} ${valueText(name, row[name])}`),
    `seed ${row.seed}`].join(', ');
}

function commandOf(row) {
  const { cell, cells, shared, command } = state.exhibit.lanes;
  return { cell: cells[cell[row.lane]], text: shared[cell[row.lane]] + command[row.lane] };
}

// Controls

function option([value, text], index) {
  return element('option', { value, selected: index === 0 }, text);
}

function filterControl(filter) {
  const type = filter.name === 'threshold' ? 'radio' : 'checkbox';
  const inputs = filter.values.map((value, place) => {
    const input = element('input', { type, name: filter.name, checked: state.chosen[filter.name].has(value),
      change: () => {
        const set = state.chosen[filter.name];
        if (type === 'radio') set.clear();
        if (input.checked) set.add(value); else set.delete(value);
        update();
      } });
    return element('label', {}, input, ` ${filter.texts[place]}`);
  });
  return element('fieldset', { 'data-filter': filter.name }, element('legend', {}, filter.heading), ...inputs);
}

function choose(name) {
  const exhibit = DATA.exhibits.find((one) => one.name === name);
  if (!exhibit) return;
  state.exhibit = exhibit;
  state.lane = null;
  state.sort = { name: 'id', up: true };
  state.chosen = Object.fromEntries(exhibit.filters.map((filter) => [filter.name, new Set(filter.first)]));
  byId('exhibit').value = name;
  byId('x').replaceChildren(...exhibit.axes.map(option));
  byId('y').replaceChildren(...exhibit.values.map(option));
  byId('filters').replaceChildren(...exhibit.filters.map(filterControl));
  update();
}

// Charts

let tip = null;
function showTip(event, item) {
  tip?.remove();
  const row = rowsOf(state.exhibit)[item?.datum?.id];
  if (!row) return;
  tip = element('div', { id: 'tip', role: 'tooltip' }, element('strong', {}, laneText(row)), element('br'),
    `${samplesText(row)} samples, ${row.outcome}; test loss ${grouped(row.test_loss)}`, element('br'),
    commandOf(row).cell);
  document.body.append(tip);
  const left = Math.min(event.pageX + 12, window.scrollX + document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${event.pageY + 14}px`;
}

async function draw(id, spec) {
  byId(id).parentElement.hidden = spec === null;
  if (spec === null) return;
  // Expressions are interpreted: the page's policy allows no code that is made while it runs.
  const made = await vegaEmbed(byId(id), spec, { actions: false, renderer: 'svg', ast: true, tooltip: false,
    defaultStyle: false, mode: 'vega-lite' });
  made.view.addEventListener('pointermove', showTip);
  made.view.addEventListener('pointerout', () => tip?.remove());
  made.view.addEventListener('click', (event, item) => {
    const row = rowsOf(state.exhibit)[item?.datum?.id];
    if (row) select(row, false);
  });
}

function pointsOf(rows, x, y) {
  // Where validation chose some settings at each point, these tell no curves apart.
  const { chosen } = state.chosen;
  const follow = chosen && !chosen.has(false) ? ['chosen', ...state.exhibit.over] : [];
  const others = Object.keys(state.exhibit.settings).filter((name) => name !== x && !follow.includes(name));
  return rows.filter((row) => row[x] !== null && row[y] !== null).map((row) => ({
    id: row.id, x: row[x], y: row[y], model: nameOf(row.model), bound: y === 'samples' ? row.bound : 0,
    learns: y !== 'samples' || row.outcome !== 'censored',
    curve: others.map((name) => row[name]).join('|') }));
}

// The chart in words: the means of its curves.
function inWords(points, titles) {
  const means = meansOf(points, titles).slice(0, 40);
  const some = means.map(({ model, x, y }) => `${model} at ${x}: ${grouped(Number(y.toPrecision(3)))}`);
  return `${titles.y} against ${titles.x}, means. ${some.join('; ')}`;
}

function drawCharts(rows) {
  const [x, y] = [byId('x'), byId('y')];
  const titles = { x: x.selectedOptions[0].text, y: y.selectedOptions[0].text };
  const models = state.exhibit.filters[0].values.filter((model) => rows.some((row) => row.model === model));
  const points = pointsOf(rows, x.value, y.value);
  const lanes = [...new Map(rows.map((row) => [row.lane, row])).values()];
  const checks = lanes.flatMap((row) => {
    const [samples, losses] = state.exhibit.lanes.curve[row.lane];
    return samples.length < 2 ? [] : samples.map((one, place) => (
      { id: row.id, samples: one, loss: losses[place], model: nameOf(row.model) }));
  });
  const thresholds = [...new Set(rows.map((row) => row.threshold ?? 0))].filter((value) => value > 1e-6);
  const words = `Test loss against training samples of ${lanes.length} lanes.`;
  return Promise.all([
    draw('points', points.length ? pointsSpec(points, models, titles, inWords(points, titles)) : null),
    draw('curves', checks.length ? curvesSpec(checks, models, thresholds, words) : null),
  ]);
}

// Table

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === 'number' && typeof b === 'number' ? a - b
    : String(a).localeCompare(String(b), 'en', { numeric: true });
}

function header(name, heading) {
  const { sort } = state;
  const direction = sort.name !== name ? 'none' : sort.up ? 'ascending' : 'descending';
  const arrow = { none: '', ascending: ' ▲', descending: ' ▼' }[direction];
  const click = () => {
    state.sort = { name, up: sort.name === name ? !sort.up : true };
    drawTable(shownRows());
    byId('lanes').querySelector(`[data-sort="${name}"]`)?.focus();
  };
  return element('th', { scope: 'col', 'aria-sort': direction },
    element('button', { type: 'button', 'data-sort': name, click }, heading + arrow));
}

function drawTable(rows) {
  const { name, up } = state.sort;
  const sorted = [...rows].sort((a, b) => (up ? 1 : -1) * compare(a[name], b[name]));
  const settings = Object.entries(state.exhibit.settings);
  const names = [...settings, ['samples', 'samples'], ['outcome', 'outcome'], ['test_loss', 'test loss'], ['seed', 'seed']];
  const lines = sorted.map((row) => element('tr', { 'data-id': row.id, 'aria-selected': String(row === state.lane) },
    ...names.map(([key]) => element('td', {}, key === 'samples' ? samplesText(row) : valueText(key, row[key]))),
    element('td', { class: 'screen' }, element('button', { type: 'button', click: () => select(row, true),
      'aria-label': `Copy the command of ${laneText(row)}` }, 'copy command'))));
  byId('lanes').replaceChildren(element('table', {},
    element('thead', {}, element('tr', {}, ...names.map(([key, heading]) => header(key, heading)),
      element('th', { scope: 'col' }, 'command'))),
    element('tbody', {}, ...lines)));
  byId('count').textContent = `${rows.length} of ${rowsOf(state.exhibit).length} rows`;
}

// One lane and its command

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // Some browsers have no clipboard for a page that is a file.
    getSelection().selectAllChildren(byId('command'));
    document.execCommand('copy');
  }
  byId('copied').textContent = 'Copied.';
}

function select(row, isCopied) {
  state.lane = row;
  const { cell, text } = commandOf(row);
  const none = 'No sweep of config.json has this row: the commands that were typed are in its directory’s provenance.';
  byId('lane').replaceChildren(element('h3', {}, laneText(row)),
    element('div', { class: 'note' }, `${cell}; ${samplesText(row)} samples, ${row.outcome}. `
      + `The command runs ${row.seed ? `seeds 0 to ${row.seed}` : 'seed 0'} of this point.`),
    element('pre', { class: 'command', id: 'command' }, text || none),
    element('button', { type: 'button', id: 'copy', disabled: !text, click: () => copy(text) }, 'Copy command'),
    element('span', { id: 'copied', role: 'status' }));
  for (const line of byId('lanes').querySelectorAll('tbody tr')) {
    line.setAttribute('aria-selected', String(Number(line.dataset.id) === row.id));
  }
  if (isCopied && text) copy(text);
}

function update() {
  const rows = shownRows();
  drawTable(rows);
  if (state.lane === null) byId('lane').replaceChildren('Choose a point, a curve or a row: its command appears here.');
  state.drawn = state.drawn.then(() => drawCharts(shownRows()));
}

// Start

byId('exhibit').replaceChildren(...DATA.exhibits.map(({ name, short }) => option([name, short])));
byId('exhibit').addEventListener('change', () => choose(byId('exhibit').value));
for (const id of ['x', 'y']) byId(id).addEventListener('change', update);
for (const link of document.querySelectorAll('[data-exhibit]')) {
  link.addEventListener('click', () => choose(link.dataset.exhibit));
}
for (const link of document.querySelectorAll('nav a')) {
  link.addEventListener('click', () => { byId(link.hash.slice(1)).querySelector('details').open = true; });
}
window.addEventListener('beforeprint', () => {
  for (const one of document.querySelectorAll('details.section')) one.open = true;
});
choose(DATA.first);
