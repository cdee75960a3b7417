// Trends: the rates of the last hour.

import { chart } from "../chart.js";
import { el, percent, si } from "../dom.js";
import { samples } from "../trend.js";

const charts = [
  chart("Events per second", [
    { name: "level 1", of: (sample) => sample.rates.level1_hz },
    { name: "built", of: (sample) => sample.rates.built_hz },
    { name: "recorded", of: (sample) => sample.rates.recorded_hz },
  ], (value) => si(value, "Hz")),
  chart("To disk", [{ name: "bytes per second", of: (sample) => sample.rates.bytes_per_s }], (value) => si(value, "B/s")),
  chart("Dead time of level 1", [{ name: "share", of: (sample) => sample.rates.dead_time }], percent),
];
const range = el("select", { onchange: draw },
  ...[[300, "5 minutes"], [900, "15 minutes"], [3600, "1 hour"]].map(([value, text]) => el("option", { value }, text)));

export const id = "trends";
export const title = "Trends";

export function build(root) {
  root.append(el("form", { onsubmit: (event) => event.preventDefault() }, el("label", {}, "Range", range)),
    ...charts.map(({ figure }) => el("div", { className: "panel" }, figure)));
}

export function onStatus() { draw(); }
export function onShown() { draw(); }
export function onTrend() { draw(); }

function draw() {
  charts.forEach((one) => one.draw(samples, Number(range.value)));
}
