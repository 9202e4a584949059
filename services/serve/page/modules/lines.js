/** What comes over a connection, a piece at a time. */

/** The texts of a stream of bytes as they come; a letter is never cut. */
export async function* texts(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}

/** The texts between line breaks; empty ones are none. */
export async function* lines(body) {
  let rest = "";
  for await (const text of texts(body)) {
    const whole = (rest + text).split("\n");
    rest = whole.pop();
    yield* whole.filter(Boolean);
  }
  if (rest) yield rest;
}
