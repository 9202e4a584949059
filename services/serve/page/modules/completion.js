/** Completion in a field for statements: names, columns and keywords that begin as the word before the cursor does. */

import { get } from "./api.js";
import { h } from "./dom.js";

const MOST = 8;
const KEYWORDS = `SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT RIGHT FULL INNER ASOF LATEST SEMI ANTI ON USING WITH AS AND OR
NOT IN EXISTS BETWEEN LIKE CASE WHEN THEN ELSE END UNION ALL INTERSECT EXCEPT DISTINCT EMIT CHANGELOG WINDOW CLOSE
CREATE REPLACE STREAM MUTABLE TABLE MATERIALIZED VIEW DICTIONARY PRIMARY KEY SOURCE LAYOUT LIFETIME SETTINGS WATERMARK
FOR INTERVAL INSERT INTO VALUES UPDATE SET DELETE DROP CASCADE DATA ALTER PAUSE RESUME TERMINATE SHOW VIEWS STREAMS
DICTIONARIES QUERIES TOPICS DESCRIBE EXPLAIN ANALYZE PRINT WHY WAIT TO INCLUDE TIMEOUT REPLAY DEAD LETTERS SYSTEM
RELOAD tumble hop session gap_fill table count sum avg min max dict_get now64`.split(/\s+/);

/**
 * The list of offers under `field`; empty and hidden while there are none.
 * @param {HTMLTextAreaElement} field @param {() => void} changed @param {AbortSignal} signal
 */
export function completing(field, changed, signal) {
  const list = h("ul", { class: "offers", role: "listbox", "aria-label": "completions", hidden: true });
  let names = [];
  let at = 0;
  const word = () => field.value.slice(0, field.selectionStart).match(/\w*$/)[0];
  const close = () => (list.hidden = true);

  async function open() {
    names = await known(signal);
    const begun = word().toLowerCase();
    const offers = [...new Set([...names, ...KEYWORDS])].filter((one) => one.toLowerCase().startsWith(begun)).slice(0, MOST);
    at = 0;
    list.replaceChildren(...offers.map((one) => h("li", { role: "option", click: () => accept(one) }, one)));
    list.hidden = offers.length === 0;
    choose(0);
  }

  function choose(step) {
    at = (at + step + list.children.length) % Math.max(list.children.length, 1);
    [...list.children].forEach((one, place) => one.setAttribute("aria-selected", String(place === at)));
  }

  function accept(offer) {
    const end = field.selectionStart;
    field.setRangeText(offer, end - word().length, end, "end");
    close();
    field.focus();
    changed();
  }

  const acts = {
    ArrowDown: () => choose(1),
    ArrowUp: () => choose(-1),
    Enter: () => accept(list.children[at].textContent),
    Tab: () => accept(list.children[at].textContent),
    Escape: close,
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      open().catch(close);
    } else if (!list.hidden && event.key in acts && !event.ctrlKey) {
      event.preventDefault();
      event.stopImmediatePropagation();
      acts[event.key]();
    }
  });
  field.addEventListener("input", close);
  field.addEventListener("blur", () => setTimeout(close, 200));
  return list;
}

/** Names of relations, and columns of streams. */
async function known(signal) {
  const [graph, streams] = [await get("/v1/graph", signal), await get("/v1/streams", signal)];
  const columns = streams.rows.flatMap((one) => one.columns.split(", "));
  return [...graph.nodes.map((one) => one.name), ...columns];
}
