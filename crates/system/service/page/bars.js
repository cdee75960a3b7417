// A histogram as steps, with its reference as an area behind it.

import { el, show, svg } from "./dom.js";

const LEFT = 5, RIGHT = 1, TOP = 0.6, BOTTOM = 2.6;

/** A drawing of a histogram and, where there is one, of its reference, scaled to as many entries. */
export function bars() {
  const drawing = svg("svg", { role: "img", class: "chart bars" });
  const legend = el("p", { className: "legend" });
  const caption = el("figcaption", {});
  const figure = el("figure", {}, caption, legend, drawing);

  function draw(histogram, reference) {
    const { width, height } = drawing.getBoundingClientRect();
    if (!width) return;
    const { edges, counts } = histogram;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const [left, right, low, high] = [LEFT * rem, width - RIGHT * rem, height - BOTTOM * rem, TOP * rem];
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const isBinnedAlike = reference && edges.every((edge, index) => edge === reference.edges[index]);
    const scaled = isBinnedAlike && sum(reference.counts) > 0 ? reference.counts.map((count) => count * sum(counts) / sum(reference.counts)) : null;
    const [from, to] = shownPart(edges, counts, scaled);
    const isLogarithmic = edges[from] > 0 && edges[to] / edges[from] > 50 && isGeometric(edges);
    const scale = isLogarithmic ? Math.log : (value) => value;
    const x = (value) => left + (right - left) * (scale(value) - scale(edges[from])) / (scale(edges[to]) - scale(edges[from]));
    const most = Math.max(1e-9, ...counts, ...(scaled ?? []));
    const step = roundStep(most / 4);
    const top = step * Math.ceil(most / step);
    const y = (count) => low + (high - low) * count / top;
    const parts = [];
    for (let place = 0; place * step <= top * 1.001; place += 1) {
      const value = place * step;
      parts.push(svg("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" }), label(left - rem / 2, y(value) + rem / 4, "y", short(value)));
    }
    const seen = ticks(edges[from], edges[to], isLogarithmic);
    seen.forEach((value) => parts.push(label(x(value), low + 1.1 * rem, "x", short(value))));
    parts.push(label((left + right) / 2, height - rem / 4, "x", histogram.axis));
    const steps = (values) => edges.slice(from, to).map((edge, bin) => `H${x(edge).toFixed(1)}V${y(values[from + bin]).toFixed(1)}`).join("") + `H${right}V${low}`;
    if (scaled) parts.push(svg("path", { d: `M${left},${low}${steps(scaled)}Z`, class: "area" }));
    parts.push(svg("path", { d: `M${left},${low}${steps(counts)}`, class: "line line-0" }));
    show(caption, histogram.title || histogram.name);
    const entry = (kind, words) => el("span", { className: kind }, el("i", { ariaHidden: "true" }), words);
    legend.replaceChildren(entry("line-0", "this run"), ...(scaled ? [entry("line-area", "reference, scaled to as many entries")] : []));
    drawing.replaceChildren(svg("title", {}, `${caption.textContent}: most entries between ${mode(histogram)}`), ...parts);
  }

  return { figure, draw };
}

function label(x, y, kind, text) {
  const made = svg("text", { x, y, class: kind });
  made.textContent = text;
  return made;
}

// Empty bins at both ends are left out, but for one.
function shownPart(edges, counts, reference) {
  const has = (bin) => counts[bin] > 0 || reference?.[bin] > 0;
  const bins = counts.map((_, bin) => bin).filter(has);
  if (!bins.length) return [0, counts.length];
  return [Math.max(0, bins[0] - 1), Math.min(counts.length, bins.at(-1) + 2)];
}

// The later bins are much wider than the first ones.
function isGeometric(edges) {
  const widths = [edges[1] - edges[0], edges.at(-1) - edges.at(-2)];
  return widths[1] > 10 * widths[0];
}

function ticks(from, to, isLogarithmic) {
  const found = [];
  if (isLogarithmic) {
    const factor = 10 ** Math.max(1, Math.ceil(Math.log10(to / from) / 8));
    for (let value = 10 ** Math.ceil(Math.log10(from)); value <= to; value *= factor) found.push(value);
    if (found.length > 2) return found;
    const powers = Array.from({ length: 60 }, (_, power) => 2 ** power).filter((value) => value >= from && value <= to);
    return powers.length > 1 ? powers : [from, to];
  }
  const step = roundStep((to - from) / 6);
  const first = Math.ceil(from / step);
  for (let place = 0; place < 12; place += 1) found.push((first + place) * step);
  return found.filter((value) => value <= to + step * 1e-9);
}

function mode({ edges, counts }) {
  const bin = counts.indexOf(Math.max(...counts));
  return `${short(edges[bin])} and ${short(edges[bin + 1])}`;
}

function short(value) {
  const size = Math.abs(value);
  if (size >= 1e4 || size > 0 && size < 1e-3) return value.toExponential(1).replace(/\.0e/, "e").replace("e+", "e");
  return String(Number(value.toPrecision(6)));
}

function sum(values) {
  return values.reduce((all, value) => all + value, 0);
}

// 1, 2 or 5 times a power of ten.
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= step * 0.999);
}
