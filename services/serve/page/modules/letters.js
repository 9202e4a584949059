/** Dead letters: records that queries could not use, by reason; a few of them, and putting them back. */

import { get, run } from "./api.js";
import { agreed, failure } from "./dialog.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { literal, name as quoted } from "./quote.js";
import { table } from "./results.js";
import { may } from "./user.js";

const SUFFIX = ".dead_letter";
const MOST = 20;
const SHOWN = ["source_topic", "source_partition", "source_offset", "rejected_at", "replayed_at", "key", "value"];

/** @param {HTMLElement} place */
export async function show(place, _name, { signal }) {
  const told = h("div", { "aria-live": "polite" });
  const list = h("div");
  const some = h("div");
  const again = () => look().catch((error) => signal.aborted || told.replaceChildren(failure(error)));
  const reload = h("button", { type: "button", class: "push", click: again }, "Look again");
  place.append(h("div", { class: "bar" }, h("h1", {}, "Dead letters"), reload), told, list, some);

  async function look() {
    const { rows } = await get("/v1/dead-letters", signal);
    if (rows.length === 0) return list.replaceChildren(h("p", { class: "empty" }, "There are none."));
    const heads = ["topic", "reason", "letters", "put back", "first", "last", ""];
    const cell = (label, value, kind = "") => h("td", { "data-label": label, class: kind }, value);
    const line = (row) =>
      h(
        "tr",
        {},
        cell("topic", row.topic, "name"),
        cell("reason", row.reason ?? "–"),
        cell("letters", count(row.letters), "number"),
        cell("put back", count(row.replayed), "number"),
        cell("first", row.first),
        cell("last", row.last),
        h("td", { class: "actions" }, buttons(row)),
      );
    const head = h("thead", {}, h("tr", {}, heads.map((one) => h("th", { scope: "col" }, one))));
    list.replaceChildren(h("div", { class: "wrap" }, h("table", { class: "table cards" }, head, h("tbody", {}, rows.map(line)))));
  }

  function buttons(row) {
    const attempt = (act) => () => act(row).catch((error) => told.replaceChildren(failure(error)));
    const open = h("button", { type: "button", click: attempt(sample) }, "Show");
    const replay = may("writer") && h("button", { type: "button", click: attempt(replayed) }, "Replay");
    return [open, " ", replay];
  }

  async function sample(row) {
    const asked = row.reason === null ? "reason IS NULL" : `reason = ${literal(row.reason)}`;
    const [found] = await run(`SELECT ${SHOWN.join(", ")} FROM table(${letters(row.topic)}) WHERE ${asked} LIMIT ${MOST}`, { signal });
    some.replaceChildren(h("h2", {}, `${row.topic}: ${row.reason ?? "no reason"}`), table(found.columns, found.rows));
  }

  /** What would be put back is told before it is. */
  async function replayed(row) {
    const statement = `REPLAY ${letters(row.topic)}${row.reason === null ? "" : ` LIKE ${literal(row.reason)}`}`;
    const [plan] = await run(`${statement} DRY RUN`, { signal });
    if (!(await agreed("Put them back?", [h("pre", {}, plan.text), ...notes(plan)], "Replay"))) return;
    const [done] = await run(statement, { signal });
    told.replaceChildren(h("p", { class: "said" }, done.text), ...notes(done));
    await look();
  }

  await look();
}

function notes(result) {
  return result.notes.map((one) => h("p", { class: "faint" }, one));
}

/** The topic of letters as statements name it: that of a view, with the suffix after it. */
function letters(topic) {
  return `${quoted(topic.slice(0, -SUFFIX.length))}${SUFFIX}`;
}
