/** Questions to the user, and errors shown to them. */

import { h } from "./dom.js";

/**
 * Whether the user agrees. Escape means no.
 * @param {string} title
 * @param {Array<Node|string>} body
 * @param {string} action what the button says
 */
export function agreed(title, body, action) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-label": title, close: () => (dialog.remove(), resolve(dialog.returnValue === "yes")) },
      h(
        "form",
        { method: "dialog" },
        h("h1", {}, title),
        ...body,
        h(
          "div",
          { class: "bar" },
          h("button", { value: "no", autofocus: true, class: "push" }, "Leave it"),
          h("button", { value: "yes", class: "danger" }, action),
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** An error: what, where, fix. */
export function failure(error) {
  return h(
    "div",
    { class: "error", role: "alert" },
    h("p", {}, error.what ?? String(error)),
    error.where && h("p", {}, "where: ", error.where),
    error.fix && h("p", {}, "fix: ", error.fix),
  );
}
