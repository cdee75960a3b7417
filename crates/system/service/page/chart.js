// Lines over time, with axes.

import { clock, el, svg } from "./dom.js";

const LEFT = 5.5, RIGHT = 0.5, TOP = 0.6, BOTTOM = 1.6;

/**
 * A chart of several lines over at most the last `seconds`. `lines` are `{ name, of }`, where `of` takes the value out of a sample, or null;
 * `format` writes values.
 */
export function chart(title, lines, format) {
  const drawing = svg("svg", { role: "img", class: "chart" });
  const values = lines.map(() => el("b", {}, "–"));
  const legend = el("p", { className: "legend" }, ...lines.map(({ name }, index) =>
    el("span", { className: `line-${index}` }, el("i", { ariaHidden: "true" }), `${name} `, values[index])));
  const figure = el("figure", {}, el("figcaption", {}, title), legend, drawing);

  function draw(samples, seconds, now = Date.now()) {
    const { width, height } = drawing.getBoundingClientRect();
    if (!width) return;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const [left, right, low, high] = [LEFT * rem, width - RIGHT * rem, height - BOTTOM * rem, TOP * rem];
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    // What was before there was anything takes no room.
    const age = samples.length ? (now - samples[0].at_ms) / 1000 : 0;
    seconds = Math.min(seconds, SPANS.find((span) => span >= age) ?? seconds);
    const from = now - 1000 * seconds;
    const seen = samples.filter((sample) => sample.at_ms >= from);
    const all = seen.flatMap((sample) => lines.map(({ of }) => of(sample)).filter((value) => value !== null));
    const step = roundStep(Math.max(0, ...all) / 4);
    const top = step * Math.max(1, Math.ceil(Math.max(0, ...all) / step));
    const x = (at) => left + (right - left) * (at - from) / (1000 * seconds);
    const y = (value) => low + (high - low) * value / top;
    const parts = [];
    for (let value = 0; value <= top * 1.001; value += step) {
      parts.push(svg("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" }),
        svg("text", { x: left - rem / 2, y: y(value) + rem / 4, class: "y" }, format(value)));
    }
    for (let part = 0; part <= 4; part += 1) {
      const ago = seconds * (1 - part / 4);
      parts.push(svg("text", { x: left + (right - left) * part / 4, y: height - rem / 4, class: part === 4 ? "x end" : "x" },
        ago === 0 ? "now" : `−${clock(ago).replace(/^0:/, "")}`));
    }
    lines.forEach(({ of }, index) => {
      for (const piece of pieces(seen, of)) {
        const points = piece.map((sample) => `${x(sample.at_ms).toFixed(1)},${y(of(sample)).toFixed(1)}`).join(" ");
        parts.push(svg("polyline", { points, class: `line line-${index}` }));
      }
      const last = samples.at(-1);
      const value = last && now - last.at_ms < GAP_MS ? of(last) : null;
      values[index].textContent = value === null ? "–" : format(value);
    });
    drawing.replaceChildren(svg("title", {}, `${title}: ${legend.textContent}`), ...parts);
  }

  return { figure, draw };
}

// A line ends where there was no run.
function pieces(samples, of) {
  const found = [];
  let before = null;
  for (const sample of samples) {
    if (of(sample) === null) continue;
    if (before === null || sample.at_ms - before.at_ms > GAP_MS || sample.run !== before.run) found.push([]);
    found.at(-1).push(sample);
    before = sample;
  }
  return found;
}

// 1, 2 or 5 times a power of ten.
function roundStep(step) {
  if (!(step > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(step));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= step * 0.999);
}

const GAP_MS = 5000;
const SPANS = [60, 120, 300, 900, 3600];
