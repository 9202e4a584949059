/** Questions to the service: who asks, errors as it tells them, and statements. */

import { parsed } from "./exact.js";
import { lines } from "./lines.js";

const KEY = "dovetail-token";
const MOST_AT_ONCE = 2;
const TRIES = 4;
const BUSY = "statements at work";
const OWN = { "X-Dovetail-Page": "1" }; // that no form can send, and no page of another site unasked

let working = 0;
const waiting = [];

/** What the service refused: what, where and how to fix it. */
export class Refused extends Error {
  /** @param {{kind: string, what: string, where: string, fix: string, offset?: number}} told @param {number} status */
  constructor(told, status) {
    super(told.what);
    Object.assign(this, told);
    this.status = status;
  }
}

/** The token lives as long as the tab does. */
export function token() {
  return sessionStorage.getItem(KEY) ?? "";
}

/** @param {string} given `""` forgets it */
export function remember(given) {
  if (given) sessionStorage.setItem(KEY, given);
  else sessionStorage.removeItem(KEY);
}

/** The header that says who asks. */
export function credentials() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

/** The JSON answer to a GET. Raises Refused. */
export function get(path, signal) {
  return ask(path, { signal }, (response) => response.json());
}

/** The JSON answer to an object that is sent. Raises Refused. */
export function send(path, members, signal) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", body: JSON.stringify(members), headers, signal }, (response) => response.json());
}

/**
 * What a statement gives, or several: a result each, up to the first that fails. Raises what ends them before, with the
 * results that there are as `results`.
 * @param {string} sql
 * @param {{single?: boolean, agree?: boolean, untilIdle?: boolean, signal?: AbortSignal, heard?: (results: Array) => void}} [how]
 *   `single`: the service refuses more than one statement, whatever a text that was filled in has made of it; `heard` is
 *   told of the results so far with each line that comes
 * @returns {Promise<Array<{kind: string, text?: string, columns?: Array, rows: Array, notes: Array<string>, why?: string}>>}
 */
export function run(sql, { single = true, agree = false, untilIdle = true, signal, heard = () => {} } = {}) {
  const body = JSON.stringify({ sql, single, agree, until_idle: untilIdle });
  const headers = { "Content-Type": "application/json" };
  return ask("/v1/sql", { method: "POST", body, headers, signal }, (response) => results(response, heard));
}

async function results(response, heard) {
  const found = [];
  try {
    for await (const text of lines(response.body)) {
      const line = parsed(text);
      if (line.result) found.push({ ...line.result, rows: [], notes: line.result.notes ?? [], ended: false });
      if (line.row) found.at(-1).rows.push(line.row);
      if (line.end) {
        found.at(-1).notes.push(...(line.end.notes ?? []));
        Object.assign(found.at(-1), { why: line.end.why, ended: true });
      }
      if (line.error) throw new Refused(line.error, 200);
      heard(found);
    }
  } catch (error) {
    throw Object.assign(await unreached(error).catch((known) => known), { results: found });
  }
  return found;
}

/** Raises what a browser says of a connection that is lost in words of what to do; any other error as it is. */
export async function unreached(error) {
  if (!(error instanceof TypeError)) throw error;
  const fix = "dovetail status tells whether it runs; the page asks again by itself, and what was sent to it may have been done";
  throw new Refused({ kind: "Unreached", what: "the server does not answer", where: location.host, fix }, 0);
}

/** A few requests at once; what is busy is asked again, as its answer says. */
async function ask(path, options, read) {
  if (working >= MOST_AT_ONCE) await new Promise((resolve) => waiting.push(resolve));
  working += 1;
  try {
    for (let tried = 1; ; tried += 1) {
      const headers = { ...options.headers, ...OWN, ...credentials() };
      const response = await fetch(path, { ...options, headers, credentials: "omit", redirect: "error" }).catch(unreached);
      if (response.ok) return await read(response);
      const again = response.headers.get("Retry-After");
      const error = await refusal(response);
      // What was begun may have been done: only what found no place is sent again.
      const unbegun = options.method !== "POST" || error.where === BUSY;
      if (again === null || !unbegun || tried === TRIES || options.signal?.aborted) throw error;
      await pause(Number(again) * 1000, options.signal);
    }
  } finally {
    working -= 1;
    waiting.shift()?.();
  }
}

/** The error of an answer that is none of ours has its status. */
export async function refusal(response) {
  const told = await response.json().catch(() => null);
  return new Refused(
    told?.error ?? { kind: "", what: `the server answered ${response.status}`, where: response.url, fix: "see its log" },
    response.status,
  );
}

/** Wait so long, or until the signal. */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
