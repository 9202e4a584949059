/** Statements: written, explained while they are, run; an error is marked at its place. */

import { run, send } from "./api.js";
import { completing } from "./completion.js";
import { agreed, failure } from "./dialog.js";
import { busy, h, say } from "./dom.js";
import { count } from "./format.js";
import { marked } from "./marked.js";
import { keep, past } from "./past.js";
import { drawn } from "./plan.js";
import { shown } from "./results.js";
import { placeOf, statementAt, statements } from "./statements.js";

const EXPLAINED_AFTER_MS = 500;
const EXPLAINED = /^\s*(?:(?:--[^\n]*\n|\/\*[\s\S]*?\*\/)\s*)*(select|with|explain|create\s+(or\s+replace\s+)?(materialized\s+)?view)\b/i;
const FIRST = "SHOW VIEWS;\n";
const SHOWN_EVERY_MS = 300;

/** @param {HTMLElement} place */
export async function show(place, _name, { signal }) {
  const plan = h("div", { class: "plan" });
  const results = h("div", { "aria-live": "polite" });
  let timer = 0;
  let running = null;
  const later = () => (clearTimeout(timer), (timer = setTimeout(explain, EXPLAINED_AFTER_MS)));
  const editor = marked({ label: "statements", text: past()[0] ?? FIRST, changed: later, pressed });
  const offers = completing(editor.field, later, signal);
  const go = h("button", { type: "button", class: "main", click: () => start() }, "Run");
  const stop = h("button", { type: "button", hidden: true, click: () => running?.abort() }, "Stop");
  const earlier = h("select", { "aria-label": "history", change: () => take() });
  const endless = h("input", { type: "checkbox" });
  const follows = h("label", { title: "a SELECT over streams goes on, also where its input has been answered" }, endless, "until stopped");
  const hint = h("span", { class: "faint" }, "Ctrl+Enter runs, Escape stops, Ctrl+Space completes");
  const progress = h("p", { class: "faint", role: "status" });
  const plans = h("section", { class: "card", "aria-label": "EXPLAIN" }, h("h2", {}, "EXPLAIN"), plan);
  place.append(
    h("div", { class: "bar" }, h("h1", {}, "SQL"), go, stop, follows, earlier, hint),
    h("div", { class: "editor" }, h("div", {}, editor.element, offers), plans),
    progress,
    results,
  );
  signal.addEventListener("abort", () => (clearTimeout(timer), running?.abort()));
  // The list of completions takes its Escape before this.
  document.addEventListener("keydown", (event) => event.key === "Escape" && running?.abort(), { signal });
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
    if (!one || !EXPLAINED.test(one.text)) return told(one ? "The plan of a SELECT or a view is shown here." : "");
    try {
      const found = await send("/v1/explain", { sql: one.text, single: true }, signal);
      if (editor.field.value !== value) return;
      const notes = found.warnings.map((text) => `warning: ${text}`);
      plan.replaceChildren(
        ...notes.map((text) => h("p", {}, text)),
        drawn(found.fragments.map(({ name, plan: root }) => ({ title: name, plan: root }))),
        h("details", {}, h("summary", {}, "as text"), h("pre", {}, found.text)),
      );
    } catch (error) {
      if (signal.aborted || editor.field.value !== value) return;
      told([error.what, error.where, error.fix && `fix: ${error.fix}`].filter(Boolean).join("\n"));
      const at = placeOf(one.text, error.where);
      if (at) editor.mark({ start: one.start + at.start, end: one.start + at.end });
    }
  }

  function told(text) {
    plan.replaceChildren(h("pre", {}, text));
  }

  async function start() {
    const text = editor.field.value;
    if (running || !text.trim()) return;
    running = new AbortController();
    busy(go, true);
    stop.hidden = false;
    editor.mark(null);
    keep(text);
    remembered();
    results.replaceChildren();
    say(progress, "It runs.");
    let found = [];
    let rows = -1;
    const showing = setInterval(() => {
      const last = found.at(-1);
      if (!last || rows === sum(found)) return;
      rows = sum(found);
      say(progress, last.kind === "changelog" && !last.ended ? waiting(last) : "It runs.");
      list(found);
    }, SHOWN_EVERY_MS);
    try {
      list(await run(text, { single: false, signal: running.signal, untilIdle: !endless.checked, heard: (so) => (found = so) }));
    } catch (error) {
      clearInterval(showing);
      say(progress, "");
      if (!signal.aborted) await failed(text, error);
    } finally {
      clearInterval(showing);
      say(progress, "");
      running = null;
      busy(go, false);
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
      try {
        return await goOn(statements(text).slice(before.length), before.length);
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

  /** The drop that was agreed to, and what is left after it, which nobody has agreed to. */
  async function goOn([drop, ...others], before) {
    const add = (found, earlier) => results.append(...found.map((one, at) => shown(one, earlier + at + 1)));
    add(await run(drop.text, { agree: true }), before);
    const left = others.map((one) => one.text).join(";");
    if (left) add(await run(left, { single: false }), before + 1);
  }
}

/** What is said of a SELECT over streams that is at work. */
function waiting({ rows }) {
  const so = rows.length ? `${count(rows.length)} row${rows.length === 1 ? "" : "s"} so far, and it waits for more` : "It waits for rows";
  return `${so}. Stop or Escape ends it.`;
}

/** Grows with whatever comes. */
function sum(found) {
  return found.reduce((total, one) => total + one.rows.length + (one.ended ? 2 : 1), 0);
}
