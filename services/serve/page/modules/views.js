/** All views: how each is, and has been. */

import { get } from "./api.js";
import { buttons } from "./actions.js";
import { badge } from "./badge.js";
import { h, say } from "./dom.js";
import { IDLE, byView } from "./figures.js";
import { count, duration, known, rate } from "./format.js";
import { generators } from "./generators.js";
import { poll } from "./polling.js";
import { spark } from "./spark.js";

const EVERY_MS = 2000;
const MOST_LETTERS = 80;
const HEADINGS = ["view", "state", "out", "latency", "batch", "watermark", "late", "rejected", "restarts", "last error", ""];
const MEANINGS = {
  latency: "how long the first unanswered record has waited, and the time of a batch; – while it is idle",
  batch: "time of the last batch; – while it is idle",
  watermark: "how far its event time is behind the clock; – while it is idle: no input comes that could move it",
};
const NUMBERS = new Set(["out", "latency", "batch", "watermark", "late", "rejected", "restarts"]);

/** @param {HTMLElement} place */
export async function show(place, _name, { signal, fail }) {
  const told = h("div");
  const filter = h("input", { type: "search", placeholder: "filter by name", "aria-label": "filter by name", input: () => sift() });
  const body = h("tbody");
  const headings = HEADINGS.map((title) => h("th", { scope: "col", class: NUMBERS.has(title) && "number", title: MEANINGS[title] }, title));
  const table = h("div", { class: "wrap" }, h("table", { class: "table cards" }, h("thead", {}, h("tr", {}, headings)), body));
  const empty = h("p", { class: "empty", hidden: true }, "There is no materialized view yet. CREATE MATERIALIZED VIEW makes one.");
  const counted = h("span", { class: "faint" });
  const made = generators(told, () => look().catch(fail));
  const bar = h("div", { class: "bar" }, h("h1", {}, "Views"), counted, h("span", { class: "push" }), filter);
  place.append(bar, told, table, empty, made.element);
  const rows = new Map();
  const wanted = (name) => name.toLowerCase().includes(filter.value.toLowerCase());
  const sift = () => {
    for (const [view, row] of rows) row.element.hidden = !wanted(view);
    made.sift(wanted);
  };

  const look = async () => {
    const found = await get("/v1/history", signal);
    const views = byView(found.queries);
    for (const [view, row] of rows) {
      if (views.has(view)) continue;
      row.element.remove();
      rows.delete(view);
    }
    for (const [view, figures] of views) {
      if (!rows.has(view)) {
        rows.set(view, line(view, told, () => look().catch(fail)));
        body.append(rows.get(view).element);
      }
      rows.get(view).set(figures, found.now_ms);
    }
    empty.hidden = views.size > 0;
    table.hidden = views.size === 0;
    const ill = [...views.values()].filter((one) => !one.well).length;
    say(counted, `${views.size}${ill ? `, ${ill} not well` : ""}`);
    made.set(found.queries.filter((one) => one.generates));
    sift();
    if (found.trouble) throw Object.assign(new Error(found.trouble), { what: found.trouble });
  };
  await poll(look, EVERY_MS, signal, fail);
}

/** A row of the table, whose cells are set again and again. */
function line(view, told, done) {
  const state = h("span", { class: "badge" });
  const chart = spark(`rows per second of ${view} over the last hour`);
  const out = h("span");
  const error = h("a", { href: link(view), class: "faint" });
  const acts = buttons(view, told, done);
  const cells = Object.fromEntries(["latency", "batch", "watermark", "late", "rejected", "restarts"].map((one) => [one, number(one)]));
  const element = h(
    "tr",
    { "data-view": view },
    h("td", { class: "name" }, h("a", { href: link(view) }, view)),
    h("td", { "data-label": "state" }, state),
    h("td", { class: "number", "data-label": "out" }, h("span", { class: "rate" }, chart.element, out)),
    Object.values(cells),
    h("td", { "data-label": "last error" }, error),
    h("td", { class: "actions" }, acts.elements.flatMap((one) => [one, " "])),
  );
  return {
    element,
    set(figures, now) {
      badge(state, figures);
      chart.set(figures.recent);
      say(out, rate(figures.rows_out_per_s));
      say(cells.latency, duration(figures.latency_ms));
      say(cells.batch, figures.idle ? "–" : duration(figures.batch_ms));
      say(cells.watermark, !figures.idle && known(figures.watermark_ms) ? `${duration(now - figures.watermark_ms)} ago` : "–");
      for (const [one, meaning] of Object.entries(MEANINGS)) cells[one].title = figures.idle ? IDLE : meaning;
      for (const one of ["late", "rejected", "restarts"]) say(cells[one], count(figures[one]));
      say(error, clipped(figures.error.split("\n")[0]));
      error.parentElement.classList.toggle("nothing", !figures.error);
      acts.set(figures.state);
    },
  };
}

/** The beginning of a text that is long. */
function clipped(text) {
  return text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text;
}

/** Where a view is shown. */
export function link(view) {
  return `#/views/${encodeURIComponent(view)}`;
}

function number(label) {
  return h("td", { class: "number", "data-label": label });
}
