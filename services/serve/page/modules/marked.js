/** A field for text in which a place can be marked: a copy of the text lies behind it, and shows the mark. */

import { h } from "./dom.js";

/** @param {{label: string, text: string, changed: () => void, pressed: (event: KeyboardEvent) => void}} how */
export function marked({ label, text, changed, pressed }) {
  const behind = h("pre", { "aria-hidden": "true" });
  const field = h("textarea", {
    "aria-label": label,
    spellcheck: "false",
    autocapitalize: "off",
    rows: 12,
    input: () => (mark(null), changed()),
    keydown: pressed,
    scroll: () => ((behind.scrollTop = field.scrollTop), (behind.scrollLeft = field.scrollLeft)),
  });
  field.value = text;

  /** @param {{start: number, end: number}|null} place */
  function mark(place) {
    if (place === null) return behind.replaceChildren();
    const { value } = field;
    const end = Math.max(place.end, place.start + 1);
    const within = value.slice(place.start, end) || " ";
    behind.replaceChildren(value.slice(0, place.start), h("mark", {}, within === "\n" ? " \n" : within), `${value.slice(end)}\n`);
    behind.scrollTop = field.scrollTop;
  }
  return { element: h("div", { class: "marked" }, behind, field), field, mark };
}
