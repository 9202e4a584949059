/** A plan, drawn: a box for each node, the one whose rows leave on top, its inputs below it, a line from each. */

import { h } from "./dom.js";
import { bytes, count, known } from "./format.js";

const PARTS = /\s{2,}/;
const STATE = "state: ";
const NO_STATE = "state: none";

/**
 * The boxes of some plans, each above those whose rows it reads: of the fragments of a view, or of its queries at work.
 * @param {Array<{title?: string, plan: Object}>} plans upstream first; `plan`: a node by its line in EXPLAIN, its
 *   figures if there are some, its inputs
 * @returns {HTMLElement}
 */
export function drawn(plans) {
  return h(
    "div",
    { class: "drawn" },
    plans.toReversed().map(({ title, plan }) => [plans.length > 1 && title && h("h3", {}, title), h("ul", {}, branch(plan))]),
  );
}

/** What is kept by which node, and until when; nodes that keep nothing are left out. @returns {Array<[string, string]>} */
export function bounds(plan) {
  const [operator, ...members] = plan.node.split(PARTS);
  const own = members.filter((one) => one.startsWith(STATE) && one !== NO_STATE).map((one) => [operator, one.slice(STATE.length)]);
  return [...own, ...plan.inputs.flatMap(bounds)];
}

function branch(node) {
  const [operator, ...members] = node.node.split(PARTS);
  const told = figures(node);
  return h(
    "li",
    {},
    h(
      "div",
      { class: "step" },
      h("strong", {}, operator),
      members.map((one) => h("span", { class: one.startsWith(STATE) ? "kept" : "" }, one)),
      told.length > 0 && h("span", { class: "told" }, told.join(" · ")),
    ),
    node.inputs.length > 0 && h("ul", {}, node.inputs.map(branch)),
  );
}

function figures(node) {
  const held = Object.values(node.state ?? {});
  const sum = (of) => held.reduce((all, one) => all + one[of], 0);
  return [
    node.rows_in && `${node.rows_in.map(count).join(" + ")} in`,
    known(node.rows_out) && `${count(node.rows_out)} out`,
    held.length > 0 && `${count(sum("rows"))} kept, ${bytes(sum("bytes"))}`,
    node.cache && `${count(node.cache.rows)} cached`,
    known(node.busy_ms) && `${node.busy_ms < 10 ? node.busy_ms.toFixed(1) : count(Math.round(node.busy_ms))} ms`,
    known(node.batches) && `${count(node.batches)} batches`,
  ].filter(Boolean);
}
