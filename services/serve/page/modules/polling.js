/** Asking again and again, as long as a panel is shown. */

import { pause } from "./api.js";

/**
 * `look` now, and `everyMs` after each time, until the signal. While the tab is hidden it waits.
 * @param {() => Promise<void>} look its errors are for `fail`
 * @param {(error: Error|null) => void} fail
 */
export async function poll(look, everyMs, signal, fail) {
  while (!signal.aborted) {
    if (!document.hidden) {
      try {
        await look();
        if (!signal.aborted) fail(null);
      } catch (error) {
        if (signal.aborted) return;
        fail(error);
      }
    }
    await pause(everyMs, signal);
  }
}
