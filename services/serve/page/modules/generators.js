/** The streams that make their own rows: how fast, how many so far; no views, so nothing is read, late or behind. */

import { buttons } from "./actions.js";
import { badge } from "./badge.js";
import { h, say } from "./dom.js";
import { count, known, rate } from "./format.js";

const HEADINGS = ["generator", "state", "rate", "rows", "error", ""];

/** A table that is hidden while there are none. @param {HTMLElement} told where errors are shown @param {() => void} done */
export function generators(told, done) {
  const body = h("tbody");
  const headings = HEADINGS.map((title) => h("th", { scope: "col", class: (title === "rate" || title === "rows") && "number" }, title));
  const table = h("table", { class: "table cards" }, h("thead", {}, h("tr", {}, headings)), body);
  const element = h("section", { "aria-label": "generators", hidden: true }, h("h2", {}, "Generators"), h("div", { class: "wrap" }, table));
  const rows = new Map();
  return {
    element,
    /** @param {(name: string) => boolean} wanted */
    sift: (wanted) => rows.forEach((row, name) => (row.element.hidden = !wanted(name))),
    /** @param {Array<Object>} found those of the answer of `/v1/history` */
    set(found) {
      element.hidden = found.length === 0;
      for (const [name, row] of rows) if (!found.some((one) => one.name === name)) (row.element.remove(), rows.delete(name));
      for (const one of found) {
        if (!rows.has(one.name)) {
          rows.set(one.name, line(one.name, told, done));
          body.append(rows.get(one.name).element);
        }
        rows.get(one.name).set(one);
      }
    },
  };
}

function line(name, told, done) {
  const state = h("span", { class: "badge" });
  const [flow, made] = ["rate", "rows"].map((label) => h("td", { class: "number", "data-label": label }));
  const error = h("td", { "data-label": "error" });
  const acts = buttons(name, told, done, { drops: false });
  const element = h(
    "tr",
    { "data-generator": name },
    h("td", { class: "name" }, h("a", { href: `#/graph/${encodeURIComponent(name)}` }, name)),
    h("td", { "data-label": "state" }, state),
    flow,
    made,
    error,
    h("td", { class: "actions" }, acts.elements.flatMap((one) => [one, " "])),
  );
  return {
    element,
    set(figures) {
      badge(state, figures);
      say(flow, flowOf(figures, figures));
      say(made, madeOf(figures, figures));
      say(error, figures.failing ? figures.error.split("\n")[0] : "");
      acts.set(figures.state);
    },
  };
}

/** `48/s of 50/s`: what is written, of what is declared. */
export function flowOf({ rate_per_s: declared }, figures) {
  return known(figures?.rows_out_per_s) ? `${rate(figures.rows_out_per_s)} of ${rate(declared)}` : rate(declared);
}

/** `1,200`, or `1,200 of 5,000` where there is an end. */
export function madeOf({ rows_at_most: most }, figures) {
  return known(most) ? `${count(figures?.rows_out)} of ${count(most)}` : count(figures?.rows_out);
}
