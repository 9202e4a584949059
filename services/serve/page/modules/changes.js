/** The changes of a view, a stream or a topic as they come: as a log, or folded into the rows that are there. */

import { get } from "./api.js";
import { ChangesView } from "./changes_view.js";
import { failure } from "./dialog.js";
import { h } from "./dom.js";
import { follow } from "./sse.js";

/** @param {HTMLElement} place @param {string} name what is followed */
export async function show(place, name, { signal, fail }) {
  const { views, names } = await known(signal);
  const heading = h("div", { class: "bar" }, h("h1", {}, "Changes"), chooser(name, names));
  place.append(heading);
  if (!name) {
    place.append(h("p", { class: "empty" }, "Choose what to follow."));
    return;
  }
  const told = h("div");
  const body = h("div");
  const begin = h(
    "select",
    { "aria-label": "where to begin", change: () => start() },
    h("option", { value: "beginning" }, "from the beginning"),
    h("option", { value: "now" }, "from now on"),
  );
  heading.append(begin);
  place.append(told, body);
  let following = new AbortController();
  let view = null;
  signal.addEventListener("abort", () => (following.abort(), view?.close()));

  function start() {
    following.abort();
    following = new AbortController();
    view?.close();
    view = null;
    told.replaceChildren();
    const mine = following.signal;
    const path = `/v1/views/${encodeURIComponent(name)}/changes?from=${begin.value}`;
    const heard = ({ type, data }) => {
      if (mine.aborted) return;
      if (type === "start" && view === null) view = new ChangesView(body, data.columns, views.has(name) ? name : "", data.dialect);
      if (type === "rows") view?.add(data);
    };
    const trouble = (error) => told.replaceChildren(...(error === null ? [] : [failure(error)]));
    follow(path, heard, mine, trouble).catch(fail);
  }
  start();
}

/** All that can be followed, and the views among them. */
async function known(signal) {
  const [streams, views] = await Promise.all([get("/v1/streams", signal), get("/v1/views", signal)]);
  const made = views.rows.filter((one) => one.topic).map((one) => one.name);
  return { views: new Set(made), names: [...made, ...streams.rows.map((one) => one.name)] };
}

function chooser(name, names) {
  const all = new Set(name ? [...names, name] : ["", ...names]);
  const options = [...all].map((one) => h("option", { value: one, selected: one === name }, one));
  const go = (event) => (location.hash = `#/changes/${encodeURIComponent(event.target.value)}`);
  return h("select", { "aria-label": "what to follow", change: go }, options);
}
