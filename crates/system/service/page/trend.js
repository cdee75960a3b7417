// The rates of the last hour: what the service has kept, and what comes.

import { get } from "./api.js";

const KEPT_MS = 3_600_000;

/** Samples `{ at_ms, run, rates }`, the oldest first. */
export const samples = [];

/** Fetches what was before this page was opened, or while it had no connection. */
export async function fetchTrend() {
  const before = await get("trend");
  samples.splice(0, samples.length, ...before);
}

/** Adds what a status says. */
export function note(status) {
  if (!status.run) return;
  const last = samples.at(-1);
  const now = Date.now();
  if (last && last.elapsed_s === status.run.elapsed_s && last.run === status.run.number) return;
  samples.push({ at_ms: now, run: status.run.number, elapsed_s: status.run.elapsed_s, rates: status.run.rates });
  while (samples.length && samples[0].at_ms < now - KEPT_MS) samples.shift();
}
