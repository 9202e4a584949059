/** One view: its figures over the last hour, its last error, what it is made of. */

import { get } from "./api.js";
import { buttons } from "./actions.js";
import { badge } from "./badge.js";
import { chart } from "./chart.js";
import { h, say } from "./dom.js";
import { IDLE, byView, watermark } from "./figures.js";
import { bytes, count, duration, moment, rate, short } from "./format.js";
import { poll } from "./polling.js";
import { link } from "./views.js";

const EVERY_MS = 3000;

/** @param {HTMLElement} place @param {string} view */
export async function show(place, view, { signal, fail }) {
  const relation = await get(`/v1/relations/${encodeURIComponent(view)}`, signal);
  // A stream has a query, too, where it makes its own rows: the graph tells of it.
  if (relation.kind === "stream") return location.replace(`#/graph/${encodeURIComponent(view)}`);
  const told = h("div");
  const state = h("span", { class: "badge" });
  const acts = buttons(view, told, () => look().catch(fail));
  const error = h("section", { hidden: true, "aria-label": "last error" });
  const charts = h("div", { class: "charts" });
  const facts = h("dl", { class: "facts" });
  const definition = h("pre");
  place.append(
    h("div", { class: "bar" }, h("h1", {}, view), state, others(view), h("span", { class: "push" }), acts.elements),
    told,
    error,
    charts,
    h("section", { class: "card" }, h("h2", {}, "Now"), facts),
    h("section", { class: "card" }, h("h2", {}, "Definition"), definition),
  );
  say(definition, relation.definition);
  const parts = new Map();
  signal.addEventListener("abort", () => parts.forEach((one) => one.close()));

  const look = async () => {
    const found = await get("/v1/history", signal);
    const figures = byView(found.queries).get(view);
    if (figures === undefined) return;
    badge(state, figures);
    acts.set(figures.state);
    showError(error, figures);
    showFacts(facts, figures, relation, found.now_ms);
    for (const { name } of figures.parts) {
      if (!parts.has(name)) {
        parts.set(name, drawn(name, figures.parts.length > 1));
        charts.append(...parts.get(name).elements);
      }
      const { series } = await get(`/v1/history/${encodeURIComponent(name)}`, signal);
      if (!signal.aborted) parts.get(name).set(series);
    }
  };
  await poll(look, EVERY_MS, signal, fail);
}

/** Where else the view is shown. */
function others(view) {
  const panels = { changes: "Changes", graph: "Graph", why: "Why" };
  return Object.entries(panels).map(([path, title]) => h("a", { href: `#/${path}/${encodeURIComponent(view)}` }, title));
}

/** The charts of one query. */
function drawn(name, several) {
  const of = (title) => (several ? `${title} · ${name}` : title);
  const rates = chart(of("rows in, rows out"), ["in", "out"], rate);
  const latency = chart(of("latency, time of a batch"), ["latency", "batch"], duration);
  const lag = chart(of("records not read yet"), ["records"], short);
  const behind = chart(of("watermark behind the clock"), ["behind"], duration);
  const held = chart(of("rows in state"), ["rows"], short);
  const all = [rates, latency, lag, behind, held];
  return {
    elements: all.map((one) => one.element),
    set(series) {
      const at = series.at_ms;
      rates.set(at, series.rows_in_per_s, series.rows_out_per_s);
      latency.set(at, series.latency_ms, series.batch_ms);
      lag.set(at, series.lag);
      behind.element.hidden = series.watermark_ms.every((one) => one === null);
      behind.set(at, series.watermark_ms.map((one, place) => (one === null || series.idle[place] ? null : at[place] - one)));
      held.element.hidden = series.state_rows.every((one) => one === null);
      held.set(at, series.state_rows);
    },
    close: () => all.forEach((one) => one.close()),
  };
}

/** The last error, with its fix; one that has passed says when it was. */
function showError(place, figures) {
  place.hidden = !figures.error;
  if (place.hidden) return;
  const when = figures.failing ? "now" : `passed; seen at ${moment(figures.error_ms)} UTC`;
  const text = `${figures.error}`;
  if (place.dataset.shown === when + text) return;
  place.dataset.shown = when + text;
  place.replaceChildren(h("div", { class: figures.failing ? "error" : "card" }, h("h2", {}, `Last error (${when})`), h("pre", {}, text)));
}

function showFacts(place, figures, relation, now) {
  const names = (list) => (list.length ? list.flatMap((one) => [h("a", { href: link(one) }, one), " "]) : "–");
  const lines = [
    ["latency", figures.idle ? `– (${IDLE})` : duration(figures.latency_ms)],
    ["records not read yet", count(figures.lag)],
    ["watermark", watermark(figures, now)],
    ["state", figures.state_rows === null ? "none" : `${count(figures.state_rows)} rows, ${bytes(figures.state_bytes)}`],
    ["late, rejected, restarts", `${count(figures.late)}, ${count(figures.rejected)}, ${count(figures.restarts)}`],
    ["topic", figures.topic],
    ["engine", figures.parts.map((one) => `${one.name}: ${one.engine}`).join(", ")],
    ["reads", relation.reads.join(", ") || "–"],
    ["is read by", names(relation.read_by)],
  ];
  if (place.children.length === 0) place.append(...lines.flatMap(([title]) => [h("dt", {}, title), h("dd")]));
  lines.forEach(([, value], line) => {
    const element = place.children[2 * line + 1];
    if (typeof value === "string") say(element, value);
    else if (element.children.length !== value.length / 2) element.replaceChildren(...value);
  });
}
