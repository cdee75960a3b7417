// Lines over time, with axes, and a cursor that all charts have in common.

import { clock, el, svg, timeOfDay } from "./dom.js";

const LEFT = 5.5, RIGHT = 0.5, TOP = 0.6, BOTTOM = 1.6;
// The time that somebody points at, or null; and what is drawn again when that changes.
let pointed = null;
const redraws = [];

function pointAt(time) {
  pointed = time;
  redraws.forEach((redraw) => redraw());
}

/**
 * A chart of several lines over at most the last `seconds`. `lines` are `{ name, of }`, where `of` takes the value out of a sample, or null;
 * `format` writes values. A click on the name of a line takes it out, or brings it back. The pointer and the arrow keys move the cursor.
 */
export function chart(title, lines, format) {
  const drawing = svg("svg", { role: "img", class: "chart", tabindex: 0 });
  const values = lines.map(() => el("b", {}, "–"));
  const names = lines.map(({ name }, index) => el("button", { type: "button", className: `line-${index}`, ariaPressed: "true", onclick: () => toggle(index) },
    el("i", { ariaHidden: "true" }), `${name} `, values[index]));
  const when = el("span", { className: "when" });
  const figure = el("figure", {}, el("figcaption", {}, title), el("p", { className: "legend" }, ...names, when), drawing);
  let redraw = () => {}, seen = [], timeAt = () => null;

  function toggle(index) {
    names[index].ariaPressed = String(names[index].ariaPressed !== "true");
    redraw();
  }

  drawing.addEventListener("pointermove", (event) => pointAt(nearest(seen, timeAt(event.clientX - drawing.getBoundingClientRect().left))?.at_ms ?? null));
  drawing.addEventListener("pointerleave", () => pointAt(null));
  drawing.addEventListener("blur", () => pointAt(null));
  drawing.addEventListener("keydown", (event) => {
    const at = pointed === null ? seen.length : seen.indexOf(nearest(seen, pointed));
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: seen.length - 1, Escape: null }[event.key];
    if (next === undefined || (next !== null && !seen.length)) return;
    event.preventDefault();
    pointAt(next === null ? null : seen[Math.min(Math.max(next, 0), seen.length - 1)].at_ms);
  });

  function draw(samples, seconds, now = Date.now()) {
    redraw = () => draw(samples, seconds, now);
    const { width, height } = drawing.getBoundingClientRect();
    if (!width) return;
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const [left, right, low, high] = [LEFT * rem, width - RIGHT * rem, height - BOTTOM * rem, TOP * rem];
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    // What was before there was anything takes no room.
    const age = samples.length ? (now - samples[0].at_ms) / 1000 : 0;
    seconds = Math.min(seconds, SPANS.find((span) => span >= age) ?? seconds);
    const from = now - 1000 * seconds;
    seen = samples.filter((sample) => sample.at_ms >= from);
    const shown = lines.filter((_, index) => names[index].ariaPressed === "true");
    const all = seen.flatMap((sample) => shown.map(({ of }) => of(sample)).filter((value) => value !== null));
    const step = roundStep(Math.max(0, ...all) / 4);
    const top = step * Math.max(1, Math.ceil(Math.max(0, ...all) / step));
    const x = (at) => left + (right - left) * (at - from) / (1000 * seconds);
    timeAt = (place) => from + 1000 * seconds * (place - left) / (right - left);
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
    const chosen = pointed === null ? null : nearest(seen, pointed);
    if (chosen) parts.push(svg("line", { x1: x(chosen.at_ms), x2: x(chosen.at_ms), y1: low, y2: high, class: "cursor" }));
    const last = samples.at(-1);
    const told = chosen ?? (last && now - last.at_ms < GAP_MS ? last : null);
    lines.forEach(({ of }, index) => {
      const value = told ? of(told) : null;
      values[index].textContent = value === null ? "–" : format(value);
      if (!shown.includes(lines[index])) return;
      for (const piece of pieces(seen, of)) {
        const points = piece.map((sample) => `${x(sample.at_ms).toFixed(1)},${y(of(sample)).toFixed(1)}`).join(" ");
        parts.push(svg("polyline", { points, class: `line line-${index}` }));
      }
      if (chosen && value !== null) parts.push(svg("circle", { cx: x(chosen.at_ms), cy: y(value), r: rem / 4, class: `spot line-${index}` }));
    });
    const run = chosen?.run ? `, run ${chosen.run}` : "";
    when.textContent = chosen ? `at ${timeOfDay(chosen.at_ms)}${run}` : "";
    const said = lines.map(({ name }, index) => `${name} ${values[index].textContent}`).join(", ");
    drawing.setAttribute("aria-label", `${title}: ${said} ${when.textContent}`.trim());
    drawing.replaceChildren(...parts);
  }

  redraws.push(() => redraw());
  return { figure, draw };
}

// The sample next to a time.
function nearest(samples, time) {
  if (time === null) return undefined;
  return samples.reduce((best, sample) => (best && Math.abs(best.at_ms - time) <= Math.abs(sample.at_ms - time) ? best : sample), undefined);
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
