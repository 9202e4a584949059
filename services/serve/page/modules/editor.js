/** Statements: written, explained while they are, run; an error is marked at its place. */

import { post, run } from "./api.js";
import { completing } from "./completion.js";
import { agreed, failure } from "./dialog.js";
import { h, say } from "./dom.js";
import { marked } from "./marked.js";
import { keep, past } from "./past.js";
import { shown } from "./results.js";
import { placeOf, statementAt, statements } from "./statements.js";

const EXPLAINED_AFTER_MS = 500;
const EXPLAINED = /^\s*(?:(?:--[^\n]*\n|\/\*[\s\S]*?\*\/)\s*)*(select|with|explain|create\s+(or\s+replace\s+)?(materialized\s+)?view)\b/i;
const FIRST = "SHOW VIEWS;\n";

/** @param {HTMLElement} place */
export async function show(place, _name, { signal }) {
  const plan = h("pre", { class: "plan" });
  const results = h("div", { "aria-live": "polite" });
  let timer = 0;
  let running = null;
  const later = () => (clearTimeout(timer), (timer = setTimeout(explain, EXPLAINED_AFTER_MS)));
  const editor = marked({ label: "statements", text: past()[0] ?? FIRST, changed: later, pressed });
  const offers = completing(editor.field, later, signal);
  const go = h("button", { type: "button", class: "main", click: () => start() }, "Run");
  const stop = h("button", { type: "button", hidden: true, click: () => running?.abort() }, "Stop");
  const earlier = h("select", { "aria-label": "history", change: () => take() });
  const hint = h("span", { class: "faint" }, "Ctrl+Enter runs, Ctrl+Space completes");
  const plans = h("section", { class: "card", "aria-label": "EXPLAIN" }, h("h2", {}, "EXPLAIN"), plan);
  place.append(
    h("div", { class: "bar" }, h("h1", {}, "SQL"), go, stop, earlier, hint),
    h("div", { class: "editor" }, h("div", {}, editor.element, offers), plans),
    results,
  );
  signal.addEventListener("abort", () => (clearTimeout(timer), running?.abort()));
  for (const event of ["keyup", "click"]) editor.field.addEventListener(event, later);
  remembered();
  editor.field.focus();
  await explain();

  function pressed(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    start();
  }

  function remembered() {
    const line = (text) => text.trim().replace(/\s+/g, " ").slice(0, 60);
    earlier.replaceChildren(h("option", { value: "" }, "history"), ...past().map((one, at) => h("option", { value: at }, line(one))));
    earlier.hidden = past().length === 0;
  }

  function take() {
    if (earlier.value === "") return;
    editor.field.value = past()[Number(earlier.value)];
    earlier.value = "";
    editor.mark(null);
    editor.field.focus();
    later();
  }

  /** The plan of the statement under the cursor, or what is wrong with it. */
  async function explain() {
    const { value, selectionStart } = editor.field;
    const one = statementAt(value, selectionStart);
    if (!one || !EXPLAINED.test(one.text)) return say(plan, one ? "The plan of a SELECT or a view is shown here." : "");
    try {
      const told = await post("/v1/explain", one.text, signal);
      if (editor.field.value !== value) return;
      const notes = [...told.warnings.map((text) => `warning: ${text}`), ...told.kept_elsewhere.map((text) => `kept elsewhere: ${text}`)];
      say(plan, [...notes, told.text].join("\n"));
    } catch (error) {
      if (signal.aborted || editor.field.value !== value) return;
      say(plan, [error.what, error.where, error.fix && `fix: ${error.fix}`].filter(Boolean).join("\n"));
      const at = placeOf(one.text, error.where);
      if (at) editor.mark({ start: one.start + at.start, end: one.start + at.end });
    }
  }

  async function start() {
    const text = editor.field.value;
    if (running || !text.trim()) return;
    running = new AbortController();
    go.disabled = true;
    stop.hidden = false;
    editor.mark(null);
    keep(text);
    remembered();
    results.replaceChildren(h("p", { class: "faint" }, "It runs."));
    try {
      list(await run(text, { signal: running.signal }));
    } catch (error) {
      if (!signal.aborted) await failed(text, error);
    } finally {
      running = null;
      go.disabled = false;
      stop.hidden = true;
    }
  }

  function list(found) {
    results.replaceChildren(...found.map((one, at) => shown(one, at + 1)));
  }

  /** What came before an error is shown; a DROP that takes more along is asked about, and goes on from there. */
  async function failed(text, error) {
    const before = error.results ?? [];
    list(before);
    if (error.name === "AbortError") return results.append(h("p", { class: "faint" }, "It was stopped."));
    const asked = error.kind === "Unsupported" && /\bagree\b/.test(error.fix);
    if (asked && (await agreed("More would be dropped", [h("p", {}, error.what)], "Drop it"))) {
      const left = statements(text).slice(before.length).map((one) => one.text).join(";");
      try {
        return results.append(...(await run(left, { agree: true })).map((one, at) => shown(one, before.length + at + 1)));
      } catch (further) {
        return results.append(failure(further));
      }
    }
    results.append(failure(error));
    const at = placeOf(text, error.where);
    if (!at) return;
    editor.mark(at);
    editor.field.focus();
    editor.field.setSelectionRange(at.start, at.end);
  }
}
