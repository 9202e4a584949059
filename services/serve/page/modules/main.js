/** The frame: who asks, which panel, and what keeps the page from working. */

import { show as changes } from "./changes.js";
import { failure } from "./dialog.js";
import { show as dictionaries } from "./dictionaries.js";
import { show as editor } from "./editor.js";
import { h, say } from "./dom.js";
import { moment } from "./format.js";
import { show as graph } from "./graph.js";
import { show as letters } from "./letters.js";
import { login, logout } from "./user.js";
import { show as view } from "./view.js";
import { show as views } from "./views.js";
import { show as why } from "./why.js";

/**
 * Path → title and what shows it: `show(place, name, frame)`. `frame.signal` ends with the panel, `frame.fail` tells
 * what keeps it from its work, `frame.rest` and `frame.more` are what else its address says.
 */
const PANELS = {
  views: { title: "Views", show: (place, name, frame) => (name ? view : views)(place, name, frame) },
  graph: { title: "Graph", show: graph },
  changes: { title: "Changes", show: changes },
  sql: { title: "SQL", show: editor },
  dictionaries: { title: "Dictionaries", show: dictionaries },
  letters: { title: "Dead letters", show: letters },
  why: { title: "Why", show: why },
};
const FIRST = "views";

const main = document.getElementById("main");
const nav = document.getElementById("panels");
let shown = new AbortController();
let wellMs = 0; // of the panel that is shown: when it last had an answer

/** @param {Error|null} error */
function fail(error) {
  const trouble = document.getElementById("trouble");
  if (error === null) wellMs = Date.now();
  const old = wellMs && `What is shown was so at ${moment(wellMs)} UTC.`;
  const told = error === null ? "" : [error.what ?? error.message, error.fix && `fix: ${error.fix}`, old].filter(Boolean).join("\n");
  main.classList.toggle("stale", error !== null);
  say(trouble, told);
  trouble.hidden = !told;
  if (error?.status === 401) location.reload();
}

/** `#/why/name/rest/more` → the panel, a name, and what else it is told. */
function route() {
  const [path, name = "", rest = "", more = ""] = location.hash.replace(/^#\/?/, "").split("/", 4);
  return { path: Object.hasOwn(PANELS, path) ? path : FIRST, name: decoded(name), rest: decoded(rest), more: decoded(more) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function open() {
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  const { path, name, rest, more } = route();
  fail(null);
  wellMs = 0;
  for (const link of nav.children) {
    if (link.dataset.path === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${name || PANELS[path].title} · Dovetail`;
  main.replaceChildren();
  try {
    await PANELS[path].show(main, name, { signal, fail, rest, more });
  } catch (error) {
    if (!signal.aborted) main.prepend(failure(error));
  }
}

async function start() {
  for (const [path, { title }] of Object.entries(PANELS)) nav.append(h("a", { href: `#/${path}`, "data-path": path }, title));
  const user = await login();
  const leave = !user.open && h("button", { click: logout }, "Leave");
  document.getElementById("user").append(user.open ? "no login required" : `${user.name}, ${user.role}`, leave || "");
  addEventListener("hashchange", open);
  await open();
}

start().catch((error) => main.replaceChildren(failure(error)));
