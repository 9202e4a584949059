/** How a query is, by colour and by word. */

import { say } from "./dom.js";

/** @param {HTMLElement} element @param {{state: string, well: boolean}} figures */
export function badge(element, figures) {
  say(element, figures.state);
  const bad = figures.state === "failed" || figures.state === "down";
  element.className = `badge ${bad ? "bad" : figures.well && figures.state === "running" ? "good" : ""}`;
}
