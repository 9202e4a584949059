/** What there is and what reads what, with rates and lag as they are; a click opens what is known of one. */

import { get } from "./api.js";
import { h, say, svg } from "./dom.js";
import { known, rate, short } from "./format.js";
import { BOX, curve, placed } from "./layout.js";
import { describe } from "./node.js";
import { poll } from "./polling.js";

const EVERY_MS = 2000;
const NARROW_PX = 720;
const MOST_LETTERS = 21;

/** @param {HTMLElement} place @param {string} chosen the node that is open */
export async function show(place, chosen, { signal, fail }) {
  const canvas = h("div", { class: "graph", role: "group", "aria-label": "graph" });
  const aside = h("aside", { class: "card", hidden: true, "aria-live": "polite" });
  const empty = h("p", { class: "empty", hidden: true }, "There is nothing yet. CREATE STREAM makes a stream.");
  place.append(h("div", { class: "bar" }, h("h1", {}, "Graph"), legend()), empty, h("div", { class: "beside" }, canvas, aside));
  let drawn = { key: "", boxes: new Map() };
  let opened = "";

  const open = (node) => {
    opened = node.name;
    history.replaceState(null, "", `#/graph/${encodeURIComponent(node.name)}`);
    for (const [name, box] of drawn.boxes) box.element.classList.toggle("chosen", name === opened);
    describe(aside, node, signal).catch(fail);
  };
  const look = async () => {
    const graph = await get("/v1/graph?detail=fragments", signal);
    const figures = await get("/v1/history", signal);
    const direction = innerWidth < NARROW_PX ? "TB" : "LR";
    const key = JSON.stringify([graph.nodes.map(({ name, kind }) => [name, kind]), graph.edges, direction]);
    if (key !== drawn.key) drawn = { key, ...draw(canvas, graph, direction, open) };
    empty.hidden = graph.nodes.length > 0;
    const queries = new Map(figures.queries.map((one) => [one.name, one]));
    for (const node of graph.nodes) drawn.boxes.get(node.name).set(node, queries.get(node.name), figures.topics[node.topic ?? node.name]);
    const wanted = graph.nodes.find((node) => node.name === chosen);
    if (!opened && wanted) open(wanted);
  };
  await poll(look, EVERY_MS, signal, fail);
}

function legend() {
  const kinds = ["topic", "stream", "dictionary", "view", "fragment"];
  return h("span", { class: "legend" }, kinds.map((kind) => h("span", { class: `kind ${kind}` }, kind)));
}

/** Boxes and lines, and how to set what a box says. */
function draw(canvas, { nodes, edges }, direction, open) {
  const { width, height, boxes, lines } = placed(nodes, edges, direction);
  const made = new Map(nodes.map((node) => [node.name, box(node, boxes.get(node.name), open)]));
  const arrow = svg(
    "marker",
    { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 0 8 4 0 8z" }),
  );
  canvas.replaceChildren(
    svg(
      "svg",
      { width, height, viewBox: `0 0 ${width} ${height}` },
      svg("defs", {}, arrow),
      lines.map((points) => svg("path", { class: "edge", d: curve(points, direction), "marker-end": "url(#arrow)" })),
      [...made.values()].map((one) => one.element),
    ),
  );
  return { boxes: made };
}

function box(node, { x, y }, open) {
  let now = node;
  const title = svg("text", { class: "title", x: 10, y: 20 });
  const what = svg("text", { x: 10, y: 36 });
  const figures = svg("text", { class: "figures", x: 10, y: 51 });
  const hint = svg("title");
  const act = () => open(now);
  const element = svg(
    "g",
    {
      class: `node ${node.kind}`,
      transform: `translate(${x - BOX.width / 2} ${y - BOX.height / 2})`,
      role: "button",
      tabindex: 0,
      "aria-label": `${node.kind} ${node.name}`,
      "data-name": node.name,
      click: act,
      keydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), act()),
    },
    svg("rect", { width: BOX.width, height: BOX.height, rx: 6 }),
    svg("rect", { class: "mark", width: 4, height: BOX.height, rx: 2 }),
    title,
    what,
    figures,
    hint,
  );
  return {
    element,
    set(told, query, perS) {
      now = told;
      say(title, told.name.length > MOST_LETTERS ? `${told.name.slice(0, MOST_LETTERS - 1)}…` : told.name);
      say(what, [told.kind, told.state, told.engine].filter(Boolean).join(" · "));
      const lag = known(query?.lag) && query.lag > 0 ? ` · ${short(query.lag)} to read` : "";
      const flow = query ? query.rows_out_per_s : perS;
      say(figures, known(flow) ? `${rate(flow)}${lag}` : "");
      say(hint, told.why ? `${told.name}: ${told.why}` : told.name);
      element.classList.toggle("bad", told.state === "failed" || told.state === "down");
    },
  };
}
