/** Who looks at the page: asked of the service, and for a token where it wants one. */

import { get, remember, Refused } from "./api.js";
import { h, say } from "./dom.js";

const ORDER = ["reader", "writer", "admin"];

/** @type {{name: string, role: string, open: boolean}} */
export let user = { name: "", role: "reader", open: false };

/** Whether the user may do what a role may. The service refuses on its own: this only hides buttons. */
export function may(role) {
  return ORDER.indexOf(user.role) >= ORDER.indexOf(role);
}

/** The user, once there is one. Raises Refused for anything but a missing token. */
export async function login() {
  for (let refused = ""; ; ) {
    try {
      user = await get("/v1/user");
      return user;
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 401) throw error;
      refused = await asked(refused, error);
    }
  }
}

/** Forgets the token. */
export function logout() {
  remember("");
  location.reload();
}

/** Resolves once a token was given; to what to say if that is not taken either. */
function asked(before, error) {
  return new Promise((resolve) => {
    const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true, spellcheck: "false" });
    const told = h("p", { class: "error", hidden: !before });
    say(told, before ? `${error.what}. ${error.fix}` : "");
    const form = h(
      "form",
      {
        submit: (event) => {
          event.preventDefault();
          remember(field.value.trim());
          dialog.close();
          dialog.remove();
          resolve("again");
        },
      },
      h("h1", {}, "Sign in"),
      told,
      h("label", { for: "token" }, "token"),
      field,
      h("p", { class: "faint" }, "An admin gives one: dovetail user add NAME --role reader. It is kept until this tab is closed."),
      h("button", { class: "main", type: "submit" }, "Sign in"),
    );
    const dialog = h("dialog", { "aria-label": "token", cancel: (event) => event.preventDefault() }, form);
    remember("");
    document.body.append(dialog);
    dialog.showModal();
  });
}
