/** The search of the graph: what has a text in its name, and with it what that reads and what reads it. */

import { h, say } from "./dom.js";
import { neighbours } from "./layout.js";

const AFTER_MS = 150; // between two keys somebody may still be typing
const UPSTREAM = "upstream";
const DOWNSTREAM = "downstream";

/**
 * @param {{text: string, wide: string, changed: () => void, entered: () => void}} how `text`, `wide`: as an address
 *   has them; `entered`: to the first that was found
 */
export function finder({ text, wide, changed, entered }) {
  const words = wide.split(",");
  const told = h("span", { class: "faint", role: "status" });
  let waiting = 0;
  const soon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(changed, AFTER_MS);
  };
  const pressed = (event) => {
    const act = { Escape: () => ((field.value = ""), changed()), Enter: () => (changed(), entered()), ArrowDown: entered }[event.key];
    if (!act) return;
    event.preventDefault();
    clearTimeout(waiting);
    act();
  };
  const field = h("input", {
    type: "search",
    placeholder: "find by name",
    "aria-label": "find by name",
    spellcheck: "false",
    input: soon,
    keydown: pressed,
  });
  field.value = text;
  const widening = (side) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": String(words.includes(side)),
        title: `everything ${side} of what is found, and not its neighbours alone`,
        click: ({ currentTarget: own }) => (own.setAttribute("aria-pressed", String(!isPressed(own))), changed()),
      },
      `all ${side}`,
    );
  const sides = [widening(UPSTREAM), widening(DOWNSTREAM)];
  const more = h("span", { class: "sides", role: "group", "aria-label": "how far" }, sides);
  return {
    elements: [told, more, field],
    /** @returns {[string, string]} as an address has them */
    address: () => [sought(), sought() && [UPSTREAM, DOWNSTREAM].filter((_, side) => isPressed(sides[side])).join(",")],
    /** The part of a graph that is shown, and the names that were found; all of it where nothing is sought. */
    part(graph) {
      more.hidden = !sought();
      if (!sought()) return say(told, ""), { ...graph, found: new Set() };
      const { found, shown } = around(graph, sought(), ...sides.map(isPressed));
      say(told, found.size ? `${found.size} found, ${shown.size} of ${graph.nodes.length} shown` : `No name has "${sought()}" in it.`);
      return { nodes: graph.nodes.filter(({ name }) => shown.has(name)), edges: graph.edges, found };
    },
  };

  function sought() {
    return field.value.trim();
  }
}

function isPressed(button) {
  return button.getAttribute("aria-pressed") === "true";
}

/** `upstream`, `downstream`: whether all that is there is shown, or neighbours. */
function around({ nodes, edges }, text, upstream, downstream) {
  const found = new Set(nodes.map(({ name }) => name).filter((name) => name.toLowerCase().includes(text.toLowerCase())));
  const sides = neighbours(nodes, edges);
  const fragments = new Set(nodes.filter(({ kind }) => kind === "fragment").map(({ name }) => name));
  const reached = (side, all) => {
    const seen = new Set(found);
    for (let rim = [...found]; rim.length; ) {
      const next = rim.flatMap((name) => sides.get(name)[side]).filter((name) => !seen.has(name) && seen.add(name));
      // What a view reads is what its fragments read: these are no neighbours of their own.
      rim = next.filter((name) => all || fragments.has(name));
    }
    return seen;
  };
  return { found, shown: new Set([...reached(0, upstream), ...reached(1, downstream)]) };
}
