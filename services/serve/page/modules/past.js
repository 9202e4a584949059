/** What was run in this tab, the last first: it is forgotten with it, since statements may hold passwords. */

const KEY = "dovetail-statements";
const MOST = 50;

/** @returns {string[]} */
export function past() {
  return JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
}

/** @param {string} text */
export function keep(text) {
  sessionStorage.setItem(KEY, JSON.stringify([text, ...past().filter((one) => one !== text)].slice(0, MOST)));
}
