// What the service says, and what is said to it.

const key = keptKey();
const client = kept("client", () => crypto.randomUUID());

/** Whether this page may command: it was opened at the address that `weir serve` printed. */
export const mayCommand = key !== null;

/** Who sits here; kept for the next time. */
export const person = {
  get name() { return localStorage.getItem("name") ?? ""; },
  set name(name) { localStorage.setItem("name", name); },
};

/** What stands below `api/`. */
export async function get(path) {
  const answer = await fetch(`api/${path}`);
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error);
  return value;
}

/** The bytes of what stands below `api/`. */
export async function raw(path) {
  const answer = await fetch(`api/${path}`);
  if (!answer.ok) throw new Error((await answer.json()).error);
  return new Uint8Array(await answer.arrayBuffer());
}

/** Sends something that needs the key; an error that the service says comes back as `error`. */
export async function send(path, content = {}, method = "POST") {
  const body = JSON.stringify({ name: person.name, client, ...content });
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${key}` };
  try {
    return await (await fetch(`api/${path}`, { method, headers, body })).json();
  } catch (error) {
    return { error: `run control does not answer: ${error.message}` };
  }
}

/** Tells each status, each message, and whether there is a connection. */
export function listen({ status, message, connected }) {
  const events = new EventSource("api/events");
  events.addEventListener("status", (event) => status(JSON.parse(event.data)));
  events.addEventListener("message", (event) => message(JSON.parse(event.data)));
  events.onopen = () => connected(true);
  events.onerror = () => connected(false);
  // A page that is left does not count as one that watches.
  addEventListener("pagehide", () => events.close());
}

// The key stands behind the # of the address, which no server sees. It is taken away there, so that nobody reads it off a wall.
function keptKey() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (given) {
    sessionStorage.setItem("key", given);
    history.replaceState(null, "", "#shift");
  }
  return sessionStorage.getItem("key");
}

function kept(name, make) {
  if (sessionStorage.getItem(name) === null) sessionStorage.setItem(name, make());
  return sessionStorage.getItem(name);
}
