/** The results of statements. */

import { h } from "./dom.js";
import { cell, count, numeric } from "./format.js";

const MOST_ROWS = 1000;

/** @param {Object} result of `run` @param {number} number of its statement */
export function shown(result, number) {
  const notes = result.notes.map((one) => h("p", { class: "faint" }, one));
  const why = result.why && h("p", { class: "faint" }, `not all: ${result.why}`);
  return h("section", { class: "result", "aria-label": `result ${number}` }, body(result), notes, why);
}

function body(result) {
  if (result.kind === "done") return h("p", { class: "said" }, result.text);
  if (result.kind === "text") return h("pre", { class: "card" }, result.text);
  return [table(result.columns, result.rows.slice(0, MOST_ROWS)), h("p", { class: "faint" }, told(result))];
}

/** A SELECT over streams ends when its input is answered: over one that is idle, with nothing. */
function told({ kind, rows, ended }) {
  if (ended && kind === "changelog" && rows.length === 0) return "0 rows: it waited for changes, and none came.";
  return size(rows.length);
}

function size(rows) {
  const text = `${count(rows)} row${rows === 1 ? "" : "s"}`;
  return rows > MOST_ROWS ? `${text}, of which these are the first ${count(MOST_ROWS)}` : text;
}

/** Rows as a table. @param {Array<{name: string, type: string}>} columns @param {Array<Object>} rows */
export function table(columns, rows) {
  const line = (row) => h("tr", {}, columns.map((one) => value(one, row)));
  const head = columns.map(heading);
  return h("div", { class: "wrap" }, h("table", { class: "table" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map(line))));
}

/** The heading of a column: where its values are numbers, it stands over them. */
export function heading({ name, type }) {
  return h("th", { scope: "col", title: type, class: numeric(type) && "number" }, name);
}

/** The value of a column: NULL does not look as the text of that name. */
export function value({ name, type }, row) {
  const nothing = row[name] === null || row[name] === undefined;
  return h("td", { class: numeric(type) && "number", dir: "auto" }, nothing ? h("span", { class: "null" }, "NULL") : cell(row[name]));
}
