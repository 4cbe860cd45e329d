'use strict';
// Specifications for Vega-Lite. What comes from result files is data and titles here, never a field or an expression.

const AXIS = { labelColor: 'currentColor', titleColor: 'currentColor', tickColor: 'currentColor',
  domainColor: 'currentColor', gridColor: 'currentColor', gridOpacity: 0.13, titleFontWeight: 'normal' };
const CONFIG = { background: null, font: 'system-ui, sans-serif', axis: AXIS, view: { stroke: null },
  legend: { labelColor: 'currentColor', titleColor: 'currentColor', orient: 'top', title: null, columns: 3,
    symbolStrokeWidth: 1.5, labelLimit: 400 } };

// A logarithmic axis where the values span much. Few values far from all others stand at its edge.
function scaleOf(values, span, nice = true) {
  const [least, most] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [1e99, 0]);
  const isLog = least > 0 && most / least > span;
  const [to, from] = isLog ? [Math.log, Math.exp] : [(value) => value, (value) => value];
  const sorted = values.map(to).sort((a, b) => a - b);
  const few = Math.max(1, Math.floor(0.02 * sorted.length));
  const [low, high] = [sorted[few], sorted[sorted.length - 1 - few]];
  const far = 1.5 * (high - low);
  const scale = isLog ? { type: 'log', nice } : { type: 'linear', zero: false, nice };
  if (!(far > 0) || (sorted[0] >= low - far && sorted.at(-1) <= high + far)) return scale;
  const ends = [sorted[0] < low - far ? low - far / 6 : sorted[0], sorted.at(-1) > high + far ? high + far / 6 : sorted.at(-1)];
  return { ...scale, nice: false, clamp: true, domain: ends.map(from) };
}

const isOff = (scale, value) => scale.domain !== undefined && (value < scale.domain[0] || value > scale.domain[1]);

const DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [1, 3]];
const SHAPES = ['circle', 'square', 'triangle-up', 'diamond', 'cross'];

// Colours say the architecture. So do marks and dashes, or where several exhibits lie over each other, the exhibit.
function looksOf(models, exhibits) {
  const range = (part) => models.map((model) => DATA.looks[model][part]);
  const domain = models.map((model) => DATA.looks[model].name);
  const ofModel = (part) => ({ field: 'model', type: 'nominal', scale: { domain, range: range(part) } });
  const ofExhibit = (looks) => ({ field: 'exhibit', type: 'nominal', scale: { domain: exhibits, range: looks } });
  const [shape, dash] = exhibits.length > 1 ? [ofExhibit(SHAPES), ofExhibit(DASHES)] : [ofModel('shape'), ofModel('dash')];
  return { color: ofModel('colour'), shape, dash };
}

const curveOf = ({ exhibit, model, curve }) => JSON.stringify([exhibit, model, curve]);

// Points or means by a key, in their order.
function grouping(points, keyOf) {
  const groups = new Map();
  for (const point of points) groups.set(keyOf(point), [...(groups.get(keyOf(point)) ?? []), point]);
  return [...groups.values()];
}

const LEARNED = ['reached', 'censored_below', 'at_most', 'outraced'];

// The lanes of a point that its mean is of, as in tables: those that learn, or all budgets where none does.
function countedOf(lanes) {
  const learned = lanes.filter(({ outcome }) => LEARNED.includes(outcome));
  const counted = learned.length ? learned : lanes.filter(({ outcome }) => outcome === 'censored');
  return counted.filter(({ isShort }) => !isShort);
}

// The mean of each curve at each x: of samples and rates the geometric one. Open means are bounds or in no exponent.
function meansOf(points, titles) {
  const [to, from] = titles.isLog ? [Math.log, Math.exp] : [(y) => y, (y) => y];
  const groups = grouping(points, (point) => `${curveOf(point)} ${point.x}`)
    .map((lanes) => (titles.isSamples ? countedOf(lanes) : lanes)).filter(({ length }) => length);
  return groups.map((same) => {
    const { exhibit, model, curve, label, x, fit } = same[0];
    return { exhibit, model, curve, label, x, fit: fit?.value, y: from(same.reduce((sum, { y }) => sum + to(y), 0) / same.length),
      isOpen: titles.isSamples && (same.some(({ bound }) => bound) || (fit?.left_out ?? []).includes(x)) };
  });
}

// Lines through the means of each curve, in pieces that are dotted where one of their ends is open.
function piecesOf(means) {
  const pieces = [];
  for (const curve of grouping(means, curveOf)) {
    curve.sort((a, b) => a.x - b.x);
    curve.slice(1).forEach((mean, place) => {
      const isDotted = mean.isOpen || curve[place].isOpen;
      const isNew = place === 0 || pieces.at(-1)[0].isDotted !== isDotted;
      const [piece, ends] = isNew ? [[], [curve[place], mean]] : [pieces.pop(), [mean]];
      pieces.push([...piece, ...ends.map((end) => ({ ...end, isDotted }))]);
    });
  }
  return pieces.flatMap((piece, place) => piece.map((mean) => ({ ...mean, piece: place })));
}

const HEIGHT = 320;
const MARGIN = 16;
const LINE = 12;

// The last mean of each curve with what is written at it: the settings that tell it apart, and its exponent.
function endsOf(means, symbol) {
  const last = grouping(means, curveOf).map((curve) => curve.reduce((one, other) => (other.x > one.x ? other : one)));
  return last.map((end) => ({ ...end, text: [end.label, end.fit && `${symbol}^${end.fit}`].filter(Boolean).join(': ') }))
    .filter(({ text }) => text);
}

// Texts a line apart; none where there are more than lines.
function apart(ends, { type, domain }) {
  if (ends.length > HEIGHT / LINE) return [];
  const to = type === 'log' ? Math.log : (y) => y;
  const [low, high] = domain.map(to);
  const heightOf = (y) => MARGIN + (HEIGHT - 2 * MARGIN) * Math.min(1, Math.max(0, (high - to(y)) / (high - low || 1)));
  const sorted = ends.map((end) => ({ ...end, at: heightOf(end.y) })).sort((a, b) => a.at - b.at);
  const at = sorted.map((end) => end.at);
  for (let i = 1; i < at.length; i += 1) at[i] = Math.max(at[i], at[i - 1] + LINE);
  for (let i = at.length - 1, most = HEIGHT; i >= 0; i -= 1, most = at[i + 1] - LINE) at[i] = Math.min(at[i], most);
  return sorted.map((end, i) => ({ ...end, dy: at[i] - end.at }));
}

// A scale with its domain, and room behind its end for texts.
function withDomain(scale, values, room = 0) {
  if (scale.domain) return scale;
  const [to, from] = scale.type === 'log' ? [Math.log, Math.exp] : [(value) => value, (value) => value];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return { ...scale, domain: [low, room && high > low ? from(to(high) + room * (to(high) - to(low))) : high] };
}

// Every lane as a mark; a line joins the means of a curve, with its name and exponent at its end.
// Hollow marks are bounds, or fits that are no ERMs.
function pointsSpec(points, models, titles, description) {
  const looks = looksOf(models, titles.exhibits);
  const xs = [...new Set(points.map((point) => point.x))].sort((a, b) => a - b);
  const few = xs.length <= 12 ? { values: xs } : {};
  const pieces = piecesOf(meansOf(points, titles));
  const ys = points.map((point) => point.y);
  const yScale = withDomain(scaleOf(ys, titles.isLog ? 1 : 8, false), ys);
  const ends = apart(endsOf(meansOf(points, titles), titles.symbol), yScale);
  const share = Math.min(0.45, 0.0125 * Math.max(0, ...ends.map(({ text }) => text.length)));  // of the width
  const x = { field: 'x', type: 'quantitative', title: titles.x,
    scale: { ...withDomain(scaleOf(xs, titles.isSamples ? 1 : 2.5, false), xs, share / (1 - share)), padding: 20 },
    axis: { ...few, format: xs.some((value) => value >= 10000) ? '~s' : '~g', labelOverlap: true } };
  const y = { field: 'y', type: 'quantitative', title: titles.y, scale: { ...yScale, padding: MARGIN },
    axis: { format: titles.isSamples ? '~s' : '~g', tickCount: 6, labelOverlap: true } };
  const lanes = (values, filled) => values.length > 0 && ({
    data: { values },
    mark: { type: 'point', filled, size: 55, strokeWidth: 1.5, opacity: 0.8 },
    encoding: { x, y, color: looks.color, shape: looks.shape },
  });
  const line = (values, strokeDash) => values.length > 0 && ({
    data: { values }, mark: { type: 'line', strokeWidth: 1.6 },
    encoding: { x, y, color: looks.color, strokeDash, detail: [{ field: 'piece' }] },
  });
  const arrow = (values, text, dy) => values.length > 0 && ({
    data: { values }, mark: { type: 'text', text, dy, fontSize: 13 }, encoding: { x, y, color: looks.color },
  });
  const isHollow = ({ bound, isShort }) => Boolean(bound) || isShort;
  return {
    config: CONFIG, width: 'container', height: HEIGHT, description,
    layer: [
      line(pieces.filter(({ isDotted }) => !isDotted), looks.dash),
      line(pieces.filter(({ isDotted }) => isDotted), { value: [1.5, 3] }),
      ends.length > 0 && { data: { values: ends },
        mark: { type: 'text', align: 'left', dx: 8, dy: { expr: 'datum.dy' }, fontSize: 11 },
        encoding: { x, y, color: looks.color, text: { field: 'text' } } },
      lanes(points.filter((point) => !isHollow(point)), true),
      lanes(points.filter(isHollow), false),
      arrow(points.filter((point) => point.bound > 0), '↑', -12),
      arrow(points.filter((point) => point.bound < 0), '↓', 12),
    ].filter(Boolean),
  };
}

// Test loss against samples of every lane; the one under the pointer is drawn thick.
function curvesSpec(checks, models, exhibits, thresholds, description) {
  const looks = looksOf(models, exhibits);
  const samples = checks.map((check) => check.samples);
  const encoding = {
    x: { field: 'samples', type: 'quantitative', title: 'training samples', scale: scaleOf(samples, 8, false),
      axis: { format: '~s', labelOverlap: true } },
    y: { field: 'loss', type: 'quantitative', title: 'test loss',
      scale: scaleOf(checks.map((check) => check.loss), 20), axis: { format: '~g', tickCount: 6 } },
    detail: { field: 'id' },
  };
  const thick = { condition: { param: 'hover', empty: false, value: 4 }, value: 1.2 };
  return {
    config: CONFIG, width: 'container', height: 320, description,
    layer: [
      thresholds.length > 0 && { data: { values: thresholds.map((loss) => ({ loss })) }, mark: { type: 'rule', strokeDash: [2, 3] },
        encoding: { y: { field: 'loss', type: 'quantitative' }, color: { value: 'currentColor' } } },
      { data: { values: checks }, mark: { type: 'line', opacity: 0.65 },
        encoding: { ...encoding, color: looks.color, strokeDash: looks.dash, strokeWidth: thick } },
      { data: { values: checks }, mark: { type: 'line', strokeWidth: 9, opacity: 0 },
        params: [{ name: 'hover', select: { type: 'point', on: 'pointerover', clear: 'pointerout', fields: ['id'] } }],
        encoding },
    ].filter(Boolean),
  };
}
