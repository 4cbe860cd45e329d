'use strict';
// Specifications for Vega-Lite. What comes from result files is data and titles here, never a field or an expression.

const AXIS = { labelColor: 'currentColor', titleColor: 'currentColor', tickColor: 'currentColor',
  domainColor: 'currentColor', gridColor: 'currentColor', gridOpacity: 0.13, titleFontWeight: 'normal' };
const CONFIG = { background: null, font: 'system-ui, sans-serif', axis: AXIS, view: { stroke: null },
  legend: { labelColor: 'currentColor', titleColor: 'currentColor', orient: 'top', title: null, columns: 3,
    symbolStrokeWidth: 1.5, labelLimit: 400 } };

// A logarithmic axis where the values span much.
function scaleOf(values, span, nice = true) {
  const [least, most] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [1e99, 0]);
  return least > 0 && most / least > span ? { type: 'log', nice } : { type: 'linear', zero: false, nice };
}

function looksOf(models) {
  const range = (part) => models.map((model) => DATA.looks[model][part]);
  const domain = models.map((model) => DATA.looks[model].name);
  const scale = (part) => ({ scale: { domain, range: range(part) } });
  return {
    color: { field: 'model', type: 'nominal', ...scale('colour') },
    shape: { field: 'model', type: 'nominal', ...scale('shape') },
    dash: { field: 'model', type: 'nominal', ...scale('dash') },
  };
}

// The mean of each curve at each x: of samples the geometric one of the lanes that learn.
function meansOf(points, titles) {
  const [to, from] = titles.y.startsWith('samples') ? [Math.log, Math.exp] : [(y) => y, (y) => y];
  const groups = new Map();
  for (const point of points.filter(({ learns }) => learns)) {
    const key = JSON.stringify([point.model, point.curve, point.x]);
    groups.set(key, [...(groups.get(key) ?? []), point]);
  }
  return [...groups.values()].map((same) => ({
    model: same[0].model, curve: same[0].curve, x: same[0].x,
    y: from(same.reduce((sum, { y }) => sum + to(y), 0) / same.length),
  }));
}

// Every lane as a mark; a line joins the means of a curve. Hollow marks are bounds.
function pointsSpec(points, models, titles, description) {
  const looks = looksOf(models);
  const xs = [...new Set(points.map((point) => point.x))].sort((a, b) => a - b);
  const few = xs.length <= 12 ? { values: xs } : {};
  const x = { field: 'x', type: 'quantitative', title: titles.x, scale: { ...scaleOf(xs, 2.5, false), padding: 20 },
    axis: { ...few, format: xs.some((value) => value >= 10000) ? '~s' : '~g', labelOverlap: true } };
  const ys = points.map((point) => point.y);
  const means = meansOf(points, titles);
  const y = { field: 'y', type: 'quantitative', title: titles.y, scale: scaleOf(ys, 8),
    axis: { format: titles.y.startsWith('samples') ? '~s' : '~g', tickCount: 6, labelOverlap: true } };
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
        encoding: { x, y, color: looks.color, strokeDash: looks.dash, detail: { field: 'curve' } } },
      lanes(points.filter((point) => !point.bound), true),
      lanes(points.filter((point) => point.bound), false),
      arrow(points.filter((point) => point.bound > 0), '↑', -12),
      arrow(points.filter((point) => point.bound < 0), '↓', 12),
    ].filter(Boolean),
  };
}

// Test loss against samples of every lane; the one under the pointer is drawn thick.
function curvesSpec(checks, models, thresholds, description) {
  const looks = looksOf(models);
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
