// The page of a partition: shows its status as it changes, and sends orders. Buttons are the verbs of the state table.

const $ = (id) => document.getElementById(id);
const key = keptKey();
const client = crypto.randomUUID();
const trend = [];
let shownRun = null;

listen();
showView();
addEventListener("hashchange", showView);
$("name").value = localStorage.getItem("name") ?? "";
$("name").addEventListener("change", () => localStorage.setItem("name", $("name").value));
$("settings").addEventListener("submit", (event) => event.preventDefault());
$("remark").addEventListener("submit", addRemark);

// The key stands behind the # of the address that `weir serve` printed, which no server sees.
function keptKey() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (given) {
    sessionStorage.setItem("key", given);
    history.replaceState(null, "", "#shift");
  }
  return sessionStorage.getItem("key");
}

function listen() {
  const events = new EventSource("api/events");
  events.addEventListener("status", (event) => showStatus(JSON.parse(event.data)));
  events.addEventListener("message", (event) => addMessage(JSON.parse(event.data)));
  events.addEventListener("open", showMessages);
  events.onerror = () => { $("lost").hidden = false; };
  events.onopen = () => { $("lost").hidden = true; };
}

function showView() {
  const views = ["shift", "runs", "messages", "configuration"];
  const name = views.find((view) => location.hash === `#${view}`) ?? "shift";
  for (const view of views) $(view).hidden = view !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (name === "runs") showRuns();
  if (name === "configuration") showConfiguration();
}

function showStatus(status) {
  $("partition").textContent = status.partition;
  document.title = `${status.state} · ${status.partition}`;
  $("state").textContent = status.state;
  $("state").className = `state ${status.state}`;
  $("operator").textContent = status.operator ? `${status.operator.name} commands` : "nobody commands";
  $("sentence").textContent = status.sentence;
  showOrders(status.verbs);
  showFigures(status);
  $("troubles").replaceChildren(...(status.run?.troubles ?? []).map((text) => element("li", text)));
  const run = status.run?.number ?? null;
  if (run !== shownRun && !$("runs").hidden) showRuns();
  shownRun = run;
}

function showOrders(verbs) {
  const shown = [...$("orders").children].map((button) => button.dataset.verb).join();
  if (shown === verbs.join()) return;
  $("orders").replaceChildren(...verbs.map((verb) => {
    const button = element("button", verb[0].toUpperCase() + verb.slice(1));
    button.type = "button";
    button.dataset.verb = verb;
    button.disabled = !key;
    button.addEventListener("click", () => order(verb, button));
    return button;
  }));
  if (!key) say("Only those who open the address that `weir serve` printed may command.", false);
}

function showFigures({ run, last }) {
  const entries = run
    ? [["Run", run.number ?? "…"], ["Time", clock(run.elapsed_s)], ["Level 1", si(run.rates.level1_hz, "Hz")],
       ["Built", si(run.rates.built_hz, "Hz")], ["Recorded", si(run.rates.recorded_hz, "Hz")],
       ["To disk", si(run.rates.bytes_per_s, "B/s")], ["Events recorded", grouped(run.recorded)]]
    : last ? [["Last run", last.number ?? "none"], ["Ended", last.state], ["Events recorded", grouped(last.recorded)]] : [];
  $("figures").replaceChildren(...entries.map(([name, value]) => {
    const box = document.createElement("div");
    box.append(element("dt", name), element("dd", value));
    return box;
  }));
  const now = Date.now();
  if (run) trend.push([now, run.rates.recorded_hz]);
  while (trend.length && trend[0][0] < now - 120_000) trend.shift();
  const top = Math.max(1, ...trend.map(([, rate]) => rate));
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", trend.map(([at, rate]) => `${600 - (now - at) / 200},${115 - 110 * rate / top}`).join(" "));
  $("trend").replaceChildren(line);
}

async function order(verb, button) {
  if (!$("name").reportValidity()) return;
  button.disabled = true;
  const run = {};
  if (verb === "start" && $("events").value) run.events = Number($("events").value);
  if (verb === "start" && $("duration").value) run.duration = $("duration").value;
  if ($("take-over").checked) await send("api/command", { take_over: true });
  const answer = await send(`api/orders/${verb}`, { run });
  say(answer.said ?? answer.error, "error" in answer);
  button.disabled = false;
}

async function send(path, content) {
  const body = JSON.stringify({ name: $("name").value, client, ...content });
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${key}` };
  try {
    return await (await fetch(path, { method: "POST", headers, body })).json();
  } catch (error) {
    return { error: `run control does not answer: ${error.message}` };
  }
}

function say(text, isBad) {
  $("answer").textContent = text;
  $("answer").className = isBad ? "bad" : "";
}

async function showRuns() {
  const runs = await (await fetch("api/runs")).json();
  $("run-rows").replaceChildren(...runs.map((run) => {
    const row = document.createElement("tr");
    const quality = element("td", run.quality ?? "goes on");
    quality.className = run.quality ?? "";
    row.append(element("td", run.run_number ?? "–"), element("td", new Date(run.began).toLocaleString()), quality,
      element("td", grouped(run.recorded)), element("td", si(run.bytes, "B")), element("td", run.operator),
      element("td", run.remark_count));
    row.tabIndex = 0;
    row.addEventListener("click", () => showRun(run.run_number));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") showRun(run.run_number); });
    return row;
  }));
}

async function showRun(number) {
  if (number === null) return;
  const run = await (await fetch(`api/runs/${number}`)).json();
  $("run").hidden = false;
  $("run").dataset.number = number;
  $("run-title").textContent = `Run ${number}`;
  const lines = [`began    ${new Date(run.began).toLocaleString()}`];
  if (run.ended) lines.push(`ended    ${new Date(run.ended).toLocaleString()}`);
  lines.push(`quality  ${run.quality ?? "goes on"}`);
  if (run.reason) lines.push(`reason   ${run.reason}`);
  for (const [name, count] of Object.entries(run.summary?.accounting ?? {})) {
    if (count) lines.push(`${name.padEnd(20)} ${grouped(count).padStart(16)}`);
  }
  for (const file of run.files) lines.push(`${file.path}  ${grouped(file.events)} events, ${si(file.bytes, "B")}, adler32 ${file.adler32}`);
  for (const remark of run.remarks) lines.push(`${new Date(remark.at).toLocaleString()} ${remark.author}${remark.quality ? ` [${remark.quality}]` : ""}: ${remark.text}`);
  $("run-text").textContent = lines.join("\n");
}

async function addRemark(event) {
  event.preventDefault();
  const quality = $("remark-quality").value || null;
  const answer = await send(`api/runs/${$("run").dataset.number}/remarks`, { text: $("remark-text").value, quality });
  if ("error" in answer) return say(answer.error, true);
  $("remark").reset();
  await showRuns();
  await showRun(answer.run_number);
}

async function showMessages() {
  const messages = await (await fetch("api/messages")).json();
  $("message-rows").replaceChildren();
  messages.forEach(addMessage);
}

function addMessage(message) {
  const row = document.createElement("li");
  const run = message.run ? `run ${message.run}: ` : "";
  row.append(element("time", new Date(message.at_ms).toLocaleTimeString()), `${run}${message.text}`);
  $("message-rows").prepend(row);
  while ($("message-rows").children.length > 1000) $("message-rows").lastChild.remove();
}

async function showConfiguration() {
  $("toml").textContent = (await (await fetch("api/configuration")).json()).toml;
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function clock(seconds) {
  const whole = Math.floor(seconds);
  const two = (number) => String(number).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function si(value, unit) {
  const prefixes = ["", "k", "M", "G", "T"];
  let index = 0;
  while (value >= 999.5 && index < prefixes.length - 1) { value /= 1000; index += 1; }
  const digits = value >= 99.95 || value === 0 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${prefixes[index]}${unit}`;
}
