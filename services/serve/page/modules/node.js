/** What is known of one node of the graph: figures, columns, what is kept and until when, the plan. */

import { get, run } from "./api.js";
import { failure } from "./dialog.js";
import { h } from "./dom.js";
import { watermark } from "./figures.js";
import { bytes, count } from "./format.js";
import { flowOf, madeOf } from "./generators.js";
import { bounds, drawn } from "./plan.js";
import { name as quoted } from "./quote.js";

/** Fills the panel beside the graph. @param {HTMLElement} aside @param {Object} node */
export async function describe(aside, node, signal) {
  const place = h("div");
  const back = document.activeElement;
  const shut = () => ((aside.hidden = true), back?.focus());
  const close = h("button", { type: "button", class: "push", click: shut }, "Close");
  aside.onkeydown = (event) => void (event.key === "Escape" && shut());
  aside.hidden = false;
  aside.replaceChildren(h("div", { class: "bar" }, h("h2", {}, node.name), h("span", { class: "faint" }, node.kind), close), place);
  try {
    const parts = node.state === undefined || node.generates ? await ofRelation(node, signal) : await ofQuery(node, signal);
    place.replaceChildren(...parts);
  } catch (error) {
    if (!signal.aborted) place.replaceChildren(failure(error));
  }
}

async function ofRelation(node, signal) {
  if (node.kind === "topic") return [facts([["topic", node.name]])];
  const relation = await get(`/v1/relations/${encodeURIComponent(node.name)}`, signal);
  const columns = relation.columns.map((one) => h("li", { class: "mono" }, `${one.column} ${one.type}`));
  return [
    node.why && h("pre", { class: "error" }, node.why),
    facts([
      ...(node.generates ? await ofGenerator(node, signal) : []),
      ["reads", relation.reads.join(", ") || "–"],
      ["is read by", relation.read_by.join(", ") || "–"],
    ]),
    h("h2", {}, "Columns"),
    h("ul", {}, columns),
    h("h2", {}, "Definition"),
    h("pre", {}, relation.definition),
  ].filter(Boolean);
}

async function ofGenerator(node, signal) {
  const figures = (await get("/v1/history", signal)).queries.find((one) => one.name === node.name);
  return [
    ["state", node.state],
    ["generates", flowOf(node, figures)],
    ["rows so far", madeOf(node, figures)],
    ["topic", node.topic],
  ];
}

/** A view, or a fragment of one: the plan is that of the view. */
async function ofQuery(node, signal) {
  const { queries, now_ms: now } = await get("/v1/history", signal);
  const query = queries.find((one) => one.name === node.name);
  const texts = [`EXPLAIN ${quoted(node.view)}`, `EXPLAIN ANALYZE ${quoted(node.view)}`];
  const [atWork, ...told] = await Promise.all([
    get(`/v1/views/${encodeURIComponent(node.view)}/plan`, signal),
    ...texts.map(async (sql) => (await run(sql, { signal }))[0].text),
  ]);
  const plans = Object.entries(atWork.queries).map(([title, plan]) => ({ title, plan }));
  const kept = plans.flatMap(({ plan }) => bounds(plan));
  return [
    node.why && h("pre", { class: "error" }, node.why),
    facts([
      ["state", node.state],
      ["watermark", watermark(query, now)],
      ["holds", query?.state_rows ? `${count(query.state_rows)} rows, ${bytes(query.state_bytes)}` : "nothing"],
      ["state bound", kept.length ? kept.map(([operator, bound]) => `${operator}: ${bound}`).join("; ") : "nothing is kept"],
      ["topic", node.topic],
    ]),
    h("p", {}, h("a", { href: `#/views/${encodeURIComponent(node.view)}` }, "charts of the last hour")),
    h("h2", {}, "EXPLAIN"),
    drawn(plans),
    h("details", {}, h("summary", {}, "as text"), told.map((text) => h("pre", { class: "plan" }, text))),
  ].filter(Boolean);
}

function facts(lines) {
  return h("dl", { class: "facts" }, lines.flatMap(([title, value]) => [h("dt", {}, title), h("dd", {}, value)]));
}
