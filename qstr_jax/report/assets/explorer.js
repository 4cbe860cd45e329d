// The explorer: what is chosen decides what the charts and the table show. All text reaches the page as text nodes.

let DATA = null;
const byId = (id) => document.getElementById(id);
// `exhibit` is what is shown: one exhibit, or several as one, whose names are in `names`.
const state = { names: [], exhibit: null, chosen: {}, sort: { name: 'id', up: true }, lane: null,
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

// What axes or values are called where exhibits call them differently.
function titled(exhibits, part) {
  return exhibits[0][part].map(([name]) => {
    const titles = exhibits.flatMap((one) => one[part].filter(([other]) => other === name).map(([, title]) => title));
    return [name, [...new Set(titles)].join(' / ')];
  });
}

const sortedBy = (name, values) => (name === 'model' ? Object.keys(DATA.looks).filter((model) => values.includes(model))
  : [...values].sort(compare));

// Several exhibits as one: the axes are those of the first, settings and filters those of all.
function merged(exhibits) {
  const table = exhibits.flatMap((source) => source.rows.lane.map((_, place) => {
    const row = { source };
    for (const [name, values] of Object.entries(source.rows)) row[name] = values[place];
    return row;
  }));
  table.forEach((row, id) => { row.id = id; });
  const names = [...new Set(exhibits.flatMap((one) => one.filters.map((filter) => filter.name)))];
  const filters = names.map((name) => {
    const found = exhibits.flatMap((one) => one.filters.filter((filter) => filter.name === name));
    const texts = new Map(found.flatMap((one) => one.values.map((value, place) => [value, one.texts[place]])));
    const values = sortedBy(name, [...texts.keys()]);
    return { name, heading: found[0].heading, values, texts: values.map((value) => texts.get(value)),
      first: [...new Set(found.flatMap((one) => one.first))] };
  });
  const all = (part) => Object.assign({}, ...exhibits.map((one) => one[part]));
  return { ...exhibits[0], exhibits, table, filters, settings: all('settings'), shown: all('shown'),
    axes: titled(exhibits, 'axes'), values: titled(exhibits, 'values'), symbols: exhibits.flatMap((one) => one.symbols) };
}

const rowsOf = (exhibit) => exhibit.table;

// A row of an exhibit that has no such setting, or that no threshold judges, is shown whatever values are chosen.
const isChosen = (row, name, values) => values.has(row[name]) || row[name] === undefined
  || (row[name] === null && name === 'threshold');
const shownRows = () => rowsOf(state.exhibit).filter(
  (row) => Object.entries(state.chosen).every(([name, values]) => isChosen(row, name, values)));
const nameOf = (model) => DATA.looks[model].name;
const grouped = (value) => (value === null ? '–' : value.toLocaleString('en-US'));
const headings = () => Object.entries({ ...state.exhibit.settings, ...state.exhibit.shown });
const samplesText = (row) => (row.samples === null ? '–'
  : `${row.bound > 0 ? '≥ ' : row.bound < 0 ? '≤ ' : row.crossed ? '≈ ' : ''}${grouped(Math.round(row.samples))}`);

// The samples of a fit are given, not counted: they are part of its name.
const isFit = (exhibit) => exhibit.axes.some(([name]) => name === 'num_samples');
const outcomeText = (row) => (isFit(row.source) ? row.outcome : `${samplesText(row)} samples, ${row.outcome}`);

function valueText(name, value) {
  if (name === 'model') return nameOf(value);
  return value === null || value === undefined ? '–' : value === true ? 'yes' : value === false ? 'no' : String(value);
}

// A setting with its value, as at the end of a curve.
function settingText(name, row) {
  const value = row[name] ?? null;
  if (value === null) return '';
  const heading = state.exhibit.settings[name].replace(`${row.model.replaceAll('_', ' ')} `, '');
  if (typeof value === 'boolean') return `${value ? '' : 'not '}${heading}`;
  const filter = state.exhibit.filters.find((one) => one.name === name);
  const text = filter?.texts[filter.values.indexOf(value)] ?? valueText(name, value);
  return `${heading}${state.exhibit.symbols.includes(name) ? ' = ' : ' '}${text}`;
}

// What a lane is called: its architecture and the settings in which lanes differ.
function laneText(row) {
  const others = headings().filter(([name]) => name !== 'model' && (row[name] ?? null) !== null);
  return [nameOf(row.model), ...others.map(([name, heading]) => `${heading} ${valueText(name, row[name])}`),
    ...(isFit(row.source) ? [`n ${grouped(row.num_samples)}`] : []), `seed ${row.seed}`].join(', ');
}

function commandOf(row) {
  const { cell, cells, shared, command } = row.source.lanes;
  return { cell: cells[cell[row.lane]], text: shared[cell[row.lane]] + command[row.lane] };
}

// Controls

function option([value, text], index) {
  return element('option', { value, selected: index === 0 }, text);
}

function filterControl(filter) {
  const type = filter.name === 'threshold' && state.names.length === 1 ? 'radio' : 'checkbox';
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

// An exhibit by its name; a directory's name means the first of its exhibits.
const named = (name) => DATA.exhibits.find((one) => one.short === name || one.name === name)
  ?? DATA.exhibits.find((one) => one.directory === name || one.folder === name);

// An exhibit that is shown: a link to its page, and a button that takes it away.
function chip(exhibit) {
  const text = exhibit.page ? element('a', { href: exhibit.page }, exhibit.title) : exhibit.title;
  const close = state.names.length > 1 && element('button', { type: 'button', 'aria-label': `Without ${exhibit.title}`,
    click: () => choose(...state.names.filter((name) => name !== exhibit.short)) }, '×');
  return element('span', { class: 'chip' }, text, ...(close ? [close] : []));
}

function choose(...names) {
  const found = [...new Set(names.map(named).filter(Boolean))];
  if (!found.length) return;
  state.names = found.map((one) => one.short);
  state.exhibit = merged(found);
  state.lane = null;
  byId('gone').textContent = '';
  state.sort = { name: 'id', up: true };
  state.chosen = Object.fromEntries(state.exhibit.filters.map((filter) => [filter.name, new Set(filter.first)]));
  byId('exhibit').value = found[0].short;
  const others = DATA.exhibits.filter((one) => !found.includes(one) && one.axes.some(([x]) => x === found[0].axes[0][0]));
  byId('beside').replaceChildren(option(['', '…'], 0), ...others.map(({ short, title }) => option([short, title], 1)));
  byId('chosen').replaceChildren(...found.map(chip));
  byId('x').replaceChildren(...state.exhibit.axes.map(option));
  byId('y').replaceChildren(...state.exhibit.values.map(option));
  drawFilters();
  update();
}

const drawFilters = () => byId('filters').replaceChildren(...state.exhibit.filters.map(filterControl));

// The address

function addressOf() {
  const parts = new URLSearchParams(state.names.map((name) => ['exhibit', name]));
  for (const id of ['x', 'y']) if (byId(id).selectedIndex > 0) parts.set(id, byId(id).value);
  for (const { name, first } of state.exhibit.filters) {
    const values = [...state.chosen[name]].map(String);
    if (values.length !== first.length || !first.every((value) => state.chosen[name].has(value))) {
      parts.set(name, JSON.stringify(values));
    }
  }
  return `#${parts}`;
}

// The values that an address lists, which anyone may have typed.
function listOf(text) {
  try {
    return [JSON.parse(text)].flat().map(String);
  } catch {
    return [];
  }
}

// Shows what an address says, and says which exhibits are not here; whatever it leaves out stays as on a fresh page.
function goTo(address) {
  const parts = new URLSearchParams(address.slice(1));
  const wanted = parts.getAll('exhibit');
  const gone = wanted.filter((name) => !named(name));
  const isKnown = gone.length < wanted.length;
  if (isKnown) choose(...wanted); else if (!state.exhibit) choose(DATA.first);
  if (gone.length) byId('gone').textContent = `No exhibit ${gone.join(', ')} here.`;
  if (!isKnown) return;
  for (const id of ['x', 'y']) {
    if ([...byId(id).options].some(({ value }) => value === parts.get(id))) byId(id).value = parts.get(id);
  }
  for (const { name, values } of state.exhibit.filters) {
    if (!parts.has(name)) continue;
    const wanted = listOf(parts.get(name));
    state.chosen[name] = new Set(values.filter((value) => wanted.includes(String(value))));
  }
  drawFilters();
  update();
}

// Charts

let tip = null;
function showTip(event, item) {
  tip?.remove();
  const row = rowsOf(state.exhibit)[item?.datum?.id];
  if (!row) return;
  tip = element('div', { id: 'tip', role: 'tooltip' }, element('strong', {}, laneText(row)), element('br'),
    outcomeText(row) + (row.test_loss === null ? '' : `; test loss ${valueText('test_loss', row.test_loss)}`), element('br'),
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
  // A fit to the chosen lanes does not belong to curves that contain other lanes too.
  const isShown = (fit) => fit.x === x && (follow.length > 0 || !('chosen' in fit.where));
  const fitOf = (row) => (y !== 'samples' ? undefined : row.source.fits.find(
    (fit) => isShown(fit) && Object.entries(fit.where).every(([name, value]) => (row[name] ?? null) === value)));
  const others = Object.keys(state.exhibit.settings).filter((name) => name !== x && !follow.includes(name));
  const there = rows.filter((row) => (row[x] ?? null) !== null && (row[y] ?? null) !== null);
  const labelOf = labels(there, others);
  return there.map((row) => ({
    id: row.id, exhibit: row.source.short, fit: fitOf(row), x: row[x], y: row[y], model: nameOf(row.model),
    bound: y === 'samples' ? row.bound : 0, isShort: y === 'samples' && row.is_short, outcome: row.outcome,
    label: labelOf(row), curve: others.map((name) => row[name]).join('|') }));
}

// What tells the curves of one architecture in one exhibit apart.
function labels(rows, names) {
  const differ = new Map(grouping(rows, (row) => `${row.source.short} ${row.model}`).map((own) => [
    `${own[0].source.short} ${own[0].model}`, names.filter((name) => new Set(own.map((row) => row[name])).size > 1)]));
  return (row) => differ.get(`${row.source.short} ${row.model}`).map((name) => settingText(name, row)).filter(Boolean).join(', ');
}

// The chart in words: the means of its curves.
function inWords(points, titles) {
  const means = meansOf(points, titles).slice(0, 40);
  const some = means.map(({ model, x, y }) => `${model} at ${x}: ${grouped(Number(y.toPrecision(3)))}`);
  return `${titles.y} against ${titles.x}, means. ${some.join('; ')}`;
}

function drawFits(points, symbol) {
  const withFit = points.filter(({ fit }) => fit);
  const lines = new Set(withFit.map(({ exhibit, fit }) => (
    `${state.names.length > 1 ? `${exhibit}, ` : ''}${fit.name} ${symbol}^${fit.text}`)));
  byId('fits').replaceChildren(...(lines.size ? [
    'Exponents (95 % intervals where there are any; filters do not change them)',
    element('ul', {}, ...[...lines].map((line) => element('li', {}, line)))] : []));
}

function drawCharts(rows) {
  const [x, y] = [byId('x'), byId('y')];
  const titles = { x: x.selectedOptions[0].text, y: y.selectedOptions[0].text, isSamples: y.value === 'samples',
    isLog: y.value === 'samples' || y.value in state.exhibit.shown,
    symbol: state.exhibit.settings[x.value] ?? 'x', exhibits: state.names };
  const models = state.exhibit.filters[0].values.filter((model) => rows.some((row) => row.model === model));
  const points = pointsOf(rows, x.value, y.value);
  const lanes = [...new Map(rows.map((row) => [`${row.source.short} ${row.lane}`, row])).values()];
  const checks = lanes.flatMap((row) => {
    const [samples, losses] = row.source.lanes.curve[row.lane];
    return samples.length < 2 ? [] : samples.map((one, place) => (
      { id: row.id, samples: one, loss: losses[place], model: nameOf(row.model), exhibit: row.source.short }));
  });
  const thresholds = [...new Set(rows.map((row) => row.loss_threshold))].filter((value) => value !== null);
  drawFits(points, titles.symbol);
  const spec = points.length ? pointsSpec(points, models, titles, inWords(points, titles)) : null;
  const scale = spec?.layer.find((layer) => layer.encoding.y)?.encoding.y.scale;
  const off = points.filter((point) => isOff(scale, point.y)).length;
  byId('off').textContent = off ? `${off} far from all others at the edge.` : '';
  const words = `Test loss against training samples of ${lanes.length} lanes.`;
  return Promise.all([
    draw('points', spec),
    draw('curves', checks.length ? curvesSpec(checks, models, state.names, thresholds, words) : null),
  ]);
}

// Table

function compare(a, b) {
  if ((a ?? null) === null || (b ?? null) === null) return ((a ?? null) === null) - ((b ?? null) === null);
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
  const exhibit = state.names.length > 1 ? [['exhibit', 'exhibit']] : [];
  const sizes = [['num_samples', 'n', isFit], ['samples', 'samples', (one) => !isFit(one)]]
    .filter(([, , isOf]) => state.exhibit.exhibits.some(isOf));
  const names = [...exhibit, ...headings(), ...sizes, ['outcome', 'outcome'], ['test_loss', 'test loss'], ['seed', 'seed']];
  const lines = sorted.map((row) => element('tr', { 'data-id': row.id, 'aria-selected': String(row === state.lane) },
    ...names.map(([key]) => element('td', {}, key === 'samples' ? samplesText(row) : key === 'exhibit' ? row.source.short : valueText(key, row[key]))),
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
    element('div', { class: 'note' }, `${cell}; ${outcomeText(row)}. `
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
  history.replaceState(null, '', addressOf());
  drawTable(rows);
  if (state.lane === null) byId('lane').replaceChildren('Choose a point, a curve or a row: its command appears here.');
  state.drawn = state.drawn.then(() => drawCharts(shownRows()));
}

// Start

async function start() {
  const bytes = Uint8Array.from(atob(byId('data').textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  DATA = await new Response(stream).json();
  byId('exhibit').replaceChildren(...DATA.exhibits.map(({ short, title }) => option([short, title])));
  byId('exhibit').addEventListener('change', () => choose(byId('exhibit').value));
  byId('beside').addEventListener('change', () => choose(...state.names, byId('beside').value));
  for (const id of ['x', 'y']) byId(id).addEventListener('change', update);
  for (const link of document.querySelectorAll('[data-exhibit]')) {
    link.addEventListener('click', (event) => {
      event.preventDefault();
      choose(link.dataset.exhibit);
      byId('explore').scrollIntoView();
    });
  }
  const first = location.hash;
  window.addEventListener('hashchange', () => goTo(location.hash));
  goTo(first);
  if (byId(first.slice(1))) byId(first.slice(1)).scrollIntoView();
}

for (const link of document.querySelectorAll('nav a[href^="#"]')) {
  link.addEventListener('click', () => { byId(link.hash.slice(1)).querySelector('details').open = true; });
}
window.addEventListener('beforeprint', () => {
  for (const one of document.querySelectorAll('details.section')) one.open = true;
});
state.ready = start();
