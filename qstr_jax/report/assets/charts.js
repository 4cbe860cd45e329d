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

function looksOf(models, exhibits) {
  const range = (part) => models.map((model) => DATA.looks[model][part]);
  const domain = models.map((model) => DATA.looks[model].name);
  const scale = (part) => ({ scale: { domain, range: range(part) } });
  return {
    color: { field: 'model', type: 'nominal', ...scale('colour') },
    shape: { field: 'model', type: 'nominal', ...scale('shape') },
    dash: exhibits.length > 1 ? { field: 'exhibit', type: 'nominal', scale: { domain: exhibits, range: DASHES } }
      : { field: 'model', type: 'nominal', ...scale('dash') },
  };
}

// The mean of each curve at each x: of samples and rates the geometric one, of samples of the lanes that learn.
function meansOf(points, titles) {
  const [to, from] = titles.isLog ? [Math.log, Math.exp] : [(y) => y, (y) => y];
  const groups = new Map();
  for (const point of points.filter(({ learns }) => learns)) {
    const key = JSON.stringify([point.exhibit, point.model, point.curve, point.x]);
    groups.set(key, [...(groups.get(key) ?? []), point]);
  }
  return [...groups.values()].map((same) => ({
    exhibit: same[0].exhibit, model: same[0].model, curve: same[0].curve, x: same[0].x, fit: same[0].fit,
    y: from(same.reduce((sum, { y }) => sum + to(y), 0) / same.length),
  }));
}

// The last mean of each curve that has an exponent.
function endsOf(means) {
  const last = new Map();
  for (const mean of means.filter(({ fit }) => fit)) {
    const key = JSON.stringify([mean.exhibit, mean.model, mean.curve]);
    if (!last.has(key) || last.get(key).x < mean.x) last.set(key, mean);
  }
  return [...last.values()];
}

// Every lane as a mark; a line joins the means of a curve, with its exponent at its end. Hollow marks are bounds.
function pointsSpec(points, models, titles, description) {
  const looks = looksOf(models, titles.exhibits);
  const xs = [...new Set(points.map((point) => point.x))].sort((a, b) => a - b);
  const few = xs.length <= 12 ? { values: xs } : {};
  const means = meansOf(points, titles);
  const ends = endsOf(means);
  const x = { field: 'x', type: 'quantitative', title: titles.x, scale: { ...scaleOf(xs, titles.isSamples ? 1 : 2.5, false), padding: ends.length ? 42 : 20 },
    axis: { ...few, format: xs.some((value) => value >= 10000) ? '~s' : '~g', labelOverlap: true } };
  const ys = points.map((point) => point.y);
  const y = { field: 'y', type: 'quantitative', title: titles.y, scale: { ...scaleOf(ys, titles.isLog ? 1 : 8, false), padding: 16 },
    axis: { format: titles.isSamples ? '~s' : '~g', tickCount: 6, labelOverlap: true } };
  const lanes = (values, filled) => values.length > 0 && ({
    data: { values },
    mark: { type: 'point', filled, size: 55, strokeWidth: 1.5, opacity: 0.8 },
    encoding: { x, y, color: looks.color, shape: looks.shape },
  });
  const arrow = (values, text, dy) => values.length > 0 && ({
    data: { values }, mark: { type: 'text', text, dy, fontSize: 13 }, encoding: { x, y, color: looks.color },
  });
  return {
    config: CONFIG, width: 'container', height: 320, description,
    layer: [
      means.length > 0 && { data: { values: means }, mark: { type: 'line', strokeWidth: 1.6 },
        encoding: { x, y, color: looks.color, strokeDash: looks.dash, detail: [{ field: 'curve' }, { field: 'exhibit' }] } },
      ends.length > 0 && { data: { values: ends.map((end) => ({ ...end, fit: `${titles.symbol}^${end.fit}` })) },
        mark: { type: 'text', align: 'left', dx: 8, fontSize: 11 },
        encoding: { x, y, color: looks.color, text: { field: 'fit' } } },
      lanes(points.filter((point) => !point.bound), true),
      lanes(points.filter((point) => point.bound), false),
      arrow(points.filter((point) => point.bound > 0), '↑', -12),
      arrow(points.filter((point) => point.bound < 0), '↓', 12),
    ].filter(Boolean),
  };
}

// Test loss against samples of every lane; the one under the pointer is drawn thick.
function curvesSpec(checks, models, thresholds, description) {
  const looks = looksOf(models, []);
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
