/** What there is and what reads what, with rates and lag as they are; a click opens what is known of one. */

import { get } from "./api.js";
import { h, say, svg } from "./dom.js";
import { finder } from "./find.js";
import { fitted, known, rate, short } from "./format.js";
import { flowOf } from "./generators.js";
import { BOX, curve, placed } from "./layout.js";
import { describe } from "./node.js";
import { poll } from "./polling.js";

const EVERY_MS = 2000;
const NARROW_PX = 720;
const INSIDE_PX = BOX.width - 18;
const TOWARDS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** @param {HTMLElement} place @param {string} chosen the node that is open */
export async function show(place, chosen, { signal, fail, rest, more }) {
  const canvas = h("div", { class: "graph", role: "group", "aria-label": "graph" });
  const aside = h("aside", { class: "card", hidden: true, "aria-live": "polite" });
  const empty = h("p", { class: "empty", hidden: true }, "There is nothing yet. CREATE STREAM makes a stream.");
  const search = finder({ text: rest, wide: more, changed: () => (addressed(), set()), entered: () => drawn.first?.focus() });
  const bar = h("div", { class: "bar" }, h("h1", {}, "Graph"), legend(), h("span", { class: "push" }), search.elements);
  place.append(bar, empty, h("div", { class: "beside" }, canvas, aside));
  let drawn = { key: "", boxes: new Map(), first: null };
  let told = null;
  let opened = "";

  const addressed = () => {
    const parts = ["graph", opened || chosen, ...search.address()].map(encodeURIComponent);
    history.replaceState(null, "", `#/${parts.join("/").replace(/\/+$/, "")}`);
  };
  const open = (node) => {
    opened = node.name;
    addressed();
    for (const [name, box] of drawn.boxes) box.element.classList.toggle("chosen", name === opened);
    describe(aside, node, signal).catch(fail);
  };
  const set = () => {
    if (told === null) return;
    const { graph, figures } = told;
    const part = search.part(graph);
    const direction = innerWidth < NARROW_PX ? "TB" : "LR";
    const key = JSON.stringify([part.nodes.map(({ name, kind }) => [name, kind]), part.edges, [...part.found], direction]);
    if (key !== drawn.key) {
      drawn = { key, ...draw(canvas, part, direction, open) };
      drawn.boxes.get(opened)?.element.classList.add("chosen");
    }
    empty.hidden = graph.nodes.length > 0;
    const queries = new Map(figures.queries.map((one) => [one.name, one]));
    for (const node of part.nodes) drawn.boxes.get(node.name).set(node, queries.get(node.name), figures.topics[node.topic ?? node.name]);
  };
  const look = async () => {
    const graph = await get("/v1/graph?detail=fragments", signal);
    told = { graph, figures: await get("/v1/history", signal) };
    set();
    const wanted = graph.nodes.find((node) => node.name === chosen);
    if (opened || !wanted) return;
    open(wanted);
    drawn.boxes.get(chosen)?.element.scrollIntoView({ block: "nearest", inline: "center" });
  };
  await poll(look, EVERY_MS, signal, fail);
}

function legend() {
  const kinds = ["topic", "stream", "dictionary", "view", "fragment"];
  return h("span", { class: "legend" }, kinds.map((kind) => h("span", { class: `kind ${kind}` }, kind)));
}

/** Boxes and lines, and how to set what a box says. The focus stays where it was. */
function draw(canvas, { nodes, edges, found }, direction, open) {
  const { width, height, boxes, frames, lines } = placed(nodes, edges, direction);
  const made = new Map(nodes.map((node) => [node.name, box(node, boxes.get(node.name), found.has(node.name), open)]));
  const arrow = svg(
    "marker",
    { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 0 8 4 0 8z" }),
  );
  const focused = canvas.contains(document.activeElement) ? document.activeElement.dataset.name : undefined;
  canvas.onkeydown = (event) => {
    const { name } = event.target.dataset;
    const next = event.key in TOWARDS && made.has(name) && nearest(boxes, name, TOWARDS[event.key]);
    if (next) (event.preventDefault(), made.get(next).element.focus());
  };
  canvas.replaceChildren(
    svg(
      "svg",
      { width, height, viewBox: `0 0 ${width} ${height}` },
      svg("defs", {}, arrow),
      frames.map((frame) => svg("rect", { class: "block", rx: 8, ...frame })),
      lines.map((points) => svg("path", { class: "edge", d: curve(points, direction), "marker-end": "url(#arrow)" })),
      [...made.values()].map((one) => one.element),
    ),
  );
  made.get(focused)?.element.focus({ preventScroll: true });
  return { boxes: made, first: made.get([...found][0])?.element };
}

/** The box that an arrow key leads to: the nearest on that side, one that lies straight ahead before others. */
function nearest(boxes, name, [right, down]) {
  const own = boxes.get(name);
  const far = ({ x, y }) => {
    const [ahead, aside] = right ? [(x - own.x) * right, y - own.y] : [(y - own.y) * down, x - own.x];
    return ahead > 1 ? ahead + 2 * Math.abs(aside) : Infinity;
  };
  const [best] = [...boxes].map(([other, at]) => [far(at), other]).sort(([a], [b]) => a - b);
  return best[0] < Infinity ? best[1] : null;
}

function box(node, { x, y }, found, open) {
  let now = node;
  const title = svg("text", { class: "title", x: 10, y: 20 });
  const what = svg("text", { x: 10, y: 36 });
  const figures = svg("text", { class: "figures", x: 10, y: 51 });
  const hint = svg("title");
  const act = () => open(now);
  const element = svg(
    "g",
    {
      class: `node ${node.kind}${found ? " found" : ""}`,
      transform: `translate(${x - BOX.width / 2} ${y - BOX.height / 2})`,
      role: "button",
      tabindex: 0,
      "aria-label": `${node.kind} ${node.name}${found ? ", found" : ""}`,
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
      say(title, fitted(told.name, "600 13px", INSIDE_PX));
      const words = told.generates ? ["generator", told.state] : [told.kind, told.state, told.engine];
      say(what, fitted(words.filter(Boolean).join(" · "), "12px", INSIDE_PX));
      const lag = known(query?.lag) && query.lag > 0 ? ` · ${short(query.lag)} to read` : "";
      const flow = query ? query.rows_out_per_s : perS;
      say(figures, known(flow) ? fitted(`${told.generates ? flowOf(told, query) : rate(flow)}${lag}`, "12px", INSIDE_PX) : "");
      say(hint, told.why ? `${told.name}: ${told.why}` : told.name);
      element.classList.toggle("bad", told.state === "failed" || told.state === "down");
    },
  };
}
