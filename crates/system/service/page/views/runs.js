// Runs: the catalogue, and one run with its account, files, remarks and what differs from another.

import { get, mayCommand, send } from "../api.js";
import { clock, el, grouped, moment, show, si, table } from "../dom.js";

const QUALITIES = ["good", "tainted", "incomplete", "interrupted", "aborted"];
const list = el("div", { className: "panel scroll" });
const sheet = el("div", { className: "sheet" });
const quality = el("select", { onchange: drawList }, el("option", { value: "" }, "all"), ...QUALITIES.map((name) => el("option", {}, name)));
let runs = [];
let shown = null;
let wasRun;

export const id = "runs";
export const title = "Runs";

export function build(root) {
  root.append(el("form", { onsubmit: (event) => event.preventDefault() }, el("label", {}, "Quality", quality)),
    el("div", { className: "two" }, list, sheet));
}

export async function onShown(argument) {
  runs = await get("runs");
  shown = argument ? Number(argument) : null;
  drawList();
  if (shown !== null) await drawSheet();
  else sheet.replaceChildren(el("p", { className: "soft" }, runs.length ? "Choose a run." : ""));
}

// A run that begins or ends changes the list.
export function onStatus(status, isShown) {
  const run = `${status.run?.number} ${status.last?.number}`;
  if (isShown && wasRun !== undefined && run !== wasRun) onShown(shown);
  wasRun = run;
}

function drawList() {
  const found = runs.filter((run) => !quality.value || run.quality === quality.value);
  if (!found.length) return list.replaceChildren(el("p", { className: "soft" }, runs.length ? "No run is of this quality." : "No run was taken yet."));
  list.replaceChildren(table(["#run", "began", "#took", "quality", "#recorded", "#size", "operator", "#remarks"], found.map((run) => [
    run.run_number === null ? "–" : el("a", { href: `#runs/${run.run_number}`, ariaCurrent: run.run_number === shown ? "true" : null }, String(run.run_number)),
    el("time", {}, moment(run.began)), took(run), badge(run.quality), grouped(run.recorded), si(run.bytes, "B"), run.operator, run.remark_count || "",
  ]), "Runs, the newest first"));
}

async function drawSheet() {
  let run;
  try {
    run = await get(`runs/${shown}`);
  } catch (error) {
    return sheet.replaceChildren(el("p", { className: "bad" }, error.message));
  }
  const account = Object.entries(run.summary?.accounting ?? {}).filter(([, count]) => count);
  sheet.replaceChildren(
    el("section", { className: "panel", ariaLabel: `Run ${shown}` },
      el("h2", {}, `Run ${shown} `, badge(run.quality)),
      run.reason ? el("p", { className: "bad" }, run.reason) : "",
      el("p", { className: "soft" }, `${moment(run.began)}${run.ended ? ` – ${moment(run.ended)}, ${took(run)}` : ""}, by ${run.operator}`)),
    el("section", { className: "panel", ariaLabel: "Account" }, el("h2", {}, "Account"),
      account.length ? table(["what", "#events"], account.map(([key, count]) => [key.replaceAll("_", " "), grouped(count)]), "Account of the run")
        : el("p", { className: "soft" }, "There is none before the end of the run.")),
    el("section", { className: "panel", ariaLabel: "Files" }, el("h2", {}, "Files"),
      run.files.length ? table(["file", "stream", "#events", "#size", "adler32"], run.files.map((file) => [
        el("span", { title: file.path, className: "path" }, file.path.split("/").at(-1)), file.stream, grouped(file.events), si(file.bytes, "B"), el("code", {}, file.adler32)]), "Files of the run")
        : el("p", { className: "soft" }, "No file is finished.")),
    remarks(run), difference(),
    el("details", {}, el("summary", {}, "Configuration of the run, as `weir run` takes it"), el("pre", { tabIndex: 0, ariaLabel: "Configuration of the run" }, run.configuration)));
}

function remarks(run) {
  const text = el("input", { maxLength: 1000, className: "wide" });
  const worth = el("select", {}, el("option", { value: "" }, "unchanged"), ...QUALITIES.map((name) => el("option", {}, name)));
  const answer = el("p", { role: "status", className: "answer bad" });
  const form = el("form", { ariaLabel: "Remark" }, el("label", { className: "wide" }, "Remark", text), el("label", {}, "Quality", worth), el("button", {}, "Add"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = await send(`runs/${shown}/remarks`, { text: text.value, quality: worth.value || null });
    if ("error" in said) show(answer, said.error);
    else await onShown(shown);
  });
  return el("section", { className: "panel", ariaLabel: "Remarks" }, el("h2", {}, "Remarks"),
    el("ol", { className: "lines" }, ...run.remarks.map((remark) => el("li", {}, el("time", {}, moment(remark.at)),
      el("b", {}, remark.author), remark.quality ? badge(remark.quality) : null, el("span", {}, remark.text)))),
    mayCommand ? form : null, answer);
}

function difference() {
  const others = runs.filter((run) => run.run_number !== null && run.run_number !== shown);
  const place = el("div", { role: "status" });
  const other = el("select", { onchange: compare }, el("option", { value: "" }, "–"), ...others.map((run) => el("option", {}, String(run.run_number))));
  async function compare() {
    if (!other.value) return place.replaceChildren();
    const found = await get(`runs/${other.value}/difference/${shown}`);
    place.replaceChildren(found.length
      ? table(["key", `run ${other.value}`, `run ${shown}`], found.map(({ key, first, second }) => [el("code", {}, key), el("code", {}, first ?? "–"), el("code", {}, second ?? "–")]), "What differs")
      : el("p", { className: "soft" }, "The configurations are the same."));
  }
  return el("section", { className: "panel", ariaLabel: "Difference" }, el("h2", {}, "What differs from another run"), el("label", {}, "Run", other), place);
}

function took(run) {
  return run.ended ? clock((new Date(run.ended) - new Date(run.began)) / 1000) : "";
}

function badge(quality) {
  return el("span", { className: `badge ${quality ?? "running"}` }, quality ?? "goes on");
}
