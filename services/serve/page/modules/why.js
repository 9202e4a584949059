/** WHY: the records that rows of a view were made of, or what became of those that made none. */

import { get, run } from "./api.js";
import { failure } from "./dialog.js";
import { h } from "./dom.js";
import { literal, name as quoted } from "./quote.js";
import { table } from "./results.js";

let pressed = ""; // the address of the question that was pressed on this page

/**
 * An address may come from anybody: what it says fills the field, and is asked when the user presses the button.
 * @param {HTMLElement} place @param {string} view @param {{rest: string}} frame `rest`: a condition to begin with
 */
export async function show(place, view, { signal, rest }) {
  const { rows } = await get("/v1/views", signal);
  const names = rows.map((one) => one.name);
  const options = [...new Set(view ? [...names, view] : names)].map((one) => h("option", { selected: one === view }, one));
  const chosen = h("select", { "aria-label": "view" }, options);
  const questions = [h("option", { value: "WHY" }, "why is there"), h("option", { value: "WHY NOT" }, "why is there no")];
  const kind = h("select", { "aria-label": "question" }, questions);
  const where = h("input", { "aria-label": "condition", placeholder: "id = 5 AND item = 'tea'", size: 44, required: true, value: rest });
  const since = h("input", { "aria-label": "since", placeholder: "since: -2h, or a time", size: 16 });
  const found = h("div", { "aria-live": "polite" });
  const ask = async (event) => {
    event?.preventDefault();
    found.replaceChildren(h("p", { class: "faint" }, "It reads the records."));
    const moment = since.value ? ` SINCE ${literal(since.value)}` : "";
    try {
      const [answer] = await run(`${kind.value} ${quoted(chosen.value)}${moment} WHERE ${where.value}`, { signal });
      const notes = answer.notes.map((one) => h("p", { class: "faint" }, one));
      const none = answer.rows.length === 0 && h("p", { class: "empty" }, "No record is behind it.");
      found.replaceChildren(...[none || table(answer.columns, answer.rows), ...notes]);
    } catch (error) {
      if (!signal.aborted) found.replaceChildren(failure(error));
    }
  };
  const words = [kind, "row of", chosen, "where", where, since, h("button", { class: "main", type: "submit" }, "Ask")];
  place.append(h("div", { class: "bar" }, h("h1", {}, "Why")), h("form", { class: "bar", submit: ask }, words), found);
  const wasPressed = pressed === location.hash;
  pressed = "";
  if (wasPressed) await ask();
}

/** The question why a row of a view is there: pressed, it is asked. */
export function question(view, columns, row, dialect) {
  const address = `#/why/${encodeURIComponent(view)}/${encodeURIComponent(condition(columns, row, dialect))}`;
  return h("a", { href: address, "aria-label": "why is this row there", click: () => (pressed = address) }, "why");
}

/** The condition by which a row is found again. Floats are left out, whose text is not their value; and what holds values. */
function condition(columns, row, dialect) {
  const asked = columns.filter((one) => !/float|array|map|tuple|struct|json/.test(one.type));
  const value = (one) => (row[one] === null ? "IS NULL" : `= ${literal(row[one], dialect)}`);
  const term = ({ name }) => `${quoted(name, dialect)} ${value(name)}`;
  return (asked.length ? asked : columns).map(term).join(" AND ");
}
