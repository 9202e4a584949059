/** Server-sent events with a token: `EventSource` sends no headers. It comes back by itself, behind the last event. */

import { credentials, pause, refusal, unreached } from "./api.js";
import { parsed } from "./exact.js";
import { texts } from "./lines.js";

const AGAIN_MS = 1000;
const GIVE_UP = new Set([400, 401, 403, 404, 406, 410]);

/**
 * Follows until the signal, or until the service says that nothing comes any more.
 * @param {string} path
 * @param {(event: {type: string, data: Object}) => void} heard
 * @param {AbortSignal} signal
 * @param {(error: Error|null) => void} fail told of what keeps it from its work, and null when that is over
 */
export async function follow(path, heard, signal, fail) {
  let last = "";
  while (!signal.aborted) {
    try {
      const resumed = last ? { "Last-Event-ID": last } : {};
      const headers = { Accept: "text/event-stream", ...resumed, ...credentials() };
      const response = await fetch(path, { headers, signal, credentials: "omit", redirect: "error" }).catch(unreached);
      if (!response.ok) throw await refusal(response);
      fail(null);
      for await (const event of events(response.body)) {
        last = event.id || last;
        if (event.type === "end") fail(event.data);
        else heard(event);
      }
    } catch (error) {
      if (signal.aborted) return;
      fail(error);
      if (GIVE_UP.has(error.status)) return;
    }
    await pause(AGAIN_MS, signal);
  }
}

/** The events of a stream of bytes. A comment keeps the connection, and is none. */
export async function* events(body) {
  let rest = "";
  for await (const text of texts(body)) {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = read(block);
      if (event.data !== undefined) yield event;
    }
  }
}

function read(block) {
  const event = { type: "message", id: "" };
  for (const line of block.split("\n")) {
    const [, field, value] = line.match(/^(\w*): ?(.*)$/) ?? [];
    if (field === "id") event.id = value;
    if (field === "event") event.type = value;
    if (field === "data") event.data = parsed(value);
  }
  return event;
}
