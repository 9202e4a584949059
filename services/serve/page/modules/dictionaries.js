/** Dictionaries: where their rows come from, how lookups fare, and rows that are to be asked for again. */

import { run, send } from "./api.js";
import { failure } from "./dialog.js";
import { h, say } from "./dom.js";
import { bytes, count, moment } from "./format.js";
import { poll } from "./polling.js";
import { may } from "./user.js";

const EVERY_MS = 5000;
const ASKED = "SELECT * FROM system.dictionaries";
const HEADINGS = ["dictionary", "status", "source", "layout", "lookups", "found in cache", "rows", "size", "last refresh", ""];
const NUMBERS = new Set(["lookups", "found in cache", "rows", "size"]);

/** @param {HTMLElement} place */
export async function show(place, _name, { signal, fail }) {
  const told = h("div", { "aria-live": "polite" });
  const body = h("tbody");
  const heads = HEADINGS.map((title) => h("th", { scope: "col", class: NUMBERS.has(title) && "number" }, title));
  const table = h("div", { class: "wrap" }, h("table", { class: "table cards" }, h("thead", {}, h("tr", {}, heads)), body));
  const empty = h("p", { class: "empty", hidden: true }, "There is no dictionary yet. CREATE DICTIONARY makes one.");
  place.append(h("div", { class: "bar" }, h("h1", {}, "Dictionaries")), told, table, empty);
  const lines = new Map();
  const look = async () => {
    const [{ rows }] = await run(ASKED, { signal });
    const names = new Set(rows.map((one) => one.name));
    for (const [name, line] of lines) if (!names.has(name)) lines.delete(name) && line.element.remove();
    for (const row of rows) {
      if (!lines.has(row.name)) {
        lines.set(row.name, made(row.name, told, () => look().catch(fail)));
        body.append(lines.get(row.name).element);
      }
      lines.get(row.name).set(row);
    }
    empty.hidden = rows.length > 0;
    table.hidden = rows.length === 0;
  };
  await poll(look, EVERY_MS, signal, fail);
}

function made(name, told, done) {
  const cells = HEADINGS.slice(1, -1).map((title) => h("td", { class: NUMBERS.has(title) && "number", "data-label": title }));
  const buttons = h("td", { class: "actions" }, acts(name, told, done));
  const element = h("tr", { "data-dictionary": name }, h("td", { class: "name" }, name), cells, buttons);
  return {
    element,
    set(row) {
      const failed = row.last_exception ? ` · ${row.last_exception}` : "";
      const values = [
        `${row.status.toLowerCase().replaceAll("_", " ")}${failed}`,
        row.source,
        row.type,
        count(row.query_count),
        row.query_count ? `${(100 * row.hit_rate).toFixed(0)} %` : "–",
        count(row.element_count),
        bytes(row.bytes_allocated),
        row.last_successful_update_time ? `${moment(Date.parse(utc(row.last_successful_update_time)))} UTC` : "–",
      ];
      values.forEach((value, at) => say(cells[at], value));
    },
  };
}

/** Times come as `2026-01-31 12:00:00.000`, in UTC. */
function utc(text) {
  return `${text.replace(" ", "T").replace(/Z$/, "")}Z`;
}

/** Buttons for who may change rows. */
function acts(name, told, done) {
  if (!may("writer")) return [];
  const key = h("input", { "aria-label": `key of ${name}`, placeholder: "key", size: 10 });
  const act = async (keys) => {
    try {
      const { workers } = await send(`/v1/dictionaries/${encodeURIComponent(name)}/refresh`, keys ? { keys } : {});
      const what = keys ? `the key ${keys[0]} of ${name}` : name;
      const by = `${count(workers)} worker${workers === 1 ? "" : "s"}`;
      told.replaceChildren(h("p", { class: "said" }, `${what} was forgotten by ${by}: the next lookup asks its source`));
      done();
    } catch (error) {
      told.replaceChildren(failure(error));
    }
  };
  const one = (event) => (event.preventDefault(), key.value && act([key.value]));
  return h(
    "form",
    { class: "inline", submit: one },
    key,
    h("button", { type: "submit", "aria-label": `Forget key of ${name}` }, "Forget key"),
    h("button", { type: "button", "aria-label": `Refresh ${name}`, click: () => act(null) }, "Refresh"),
  );
}
