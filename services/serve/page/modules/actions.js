/** What an admin does to a view: pause, resume, drop with what hangs on it. */

import { get, run } from "./api.js";
import { agreed, failure } from "./dialog.js";
import { busy, h } from "./dom.js";
import { name as quoted } from "./quote.js";
import { may } from "./user.js";

/**
 * The buttons of a view; none for who may not. `done` is called after each.
 * @param {string} view
 * @param {HTMLElement} told where errors are shown
 * @param {() => void} done
 * @param {{drops?: boolean}} [which] drops: whether there is one to drop it
 */
export function buttons(view, told, done, { drops = true } = {}) {
  if (!may("admin")) return { elements: [], set() {} };
  const button = (title, act, options = {}) =>
    h("button", { ...options, type: "button", "aria-label": `${title} ${view}`, click: (event) => attempt(event.target, act) }, title);
  const attempt = async (target, act) => {
    if (target.hasAttribute("aria-disabled")) return;
    busy(target, true);
    told.replaceChildren();
    try {
      await act();
      done();
    } catch (error) {
      told.replaceChildren(failure(error));
    } finally {
      busy(target, false);
    }
  };
  const pause = button("Pause", () => run(`PAUSE ${quoted(view)}`));
  const resume = button("Resume", () => run(`RESUME ${quoted(view)}`));
  const drop = button("Drop", () => dropped(view), { class: "danger" });
  return {
    elements: drops ? [pause, resume, drop] : [pause, resume],
    /** @param {string} state */
    set(state) {
      const [shown, other] = state.startsWith("paused") ? [resume, pause] : [pause, resume];
      shown.hidden = false;
      // Who has pressed the one has the focus on the other.
      if (document.activeElement === other) shown.focus();
      other.hidden = true;
    },
  };
}

async function dropped(view) {
  const { read_by: users } = await get(`/v1/relations/${encodeURIComponent(view)}`);
  const others = users.length
    ? [h("p", {}, "With it goes what is made of it:"), h("ul", {}, users.map((one) => h("li", {}, one)))]
    : [h("p", {}, "Nothing else is made of it.")];
  const stays = h("p", { class: "faint" }, "The records stay in their topics.");
  if (!(await agreed(`Drop ${view}?`, [...others, stays], users.length ? `Drop all ${users.length + 1}` : "Drop it"))) return;
  await run(`DROP VIEW ${quoted(view)}${users.length ? " CASCADE" : ""}`, { agree: true });
}
