/** A line without axes, the size of a word. */

import { svg } from "./dom.js";

const WIDTH = 96;
const HEIGHT = 22;

/** @param {string} label what a screen reader says of it */
export function spark(label) {
  const line = svg("polyline", { points: "" });
  const area = svg("polygon", { points: "" });
  const box = { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" };
  const element = svg("svg", { ...box, "aria-label": label }, area, line);
  return {
    element,
    /** @param {number[]} values older ones first, from 0 up */
    set(values) {
      const most = Math.max(...values, 1e-9);
      const step = WIDTH / Math.max(values.length - 1, 1);
      const at = (value, place) => `${(place * step).toFixed(1)},${(HEIGHT - 1 - (value / most) * (HEIGHT - 3)).toFixed(1)}`;
      const points = values.map(at).join(" ");
      line.setAttribute("points", points);
      area.setAttribute("points", values.length ? `0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}` : "");
    },
  };
}
