/** What the page cannot open: `code` names a sentence of words/start.js, `detail` what it is about. */
export function failure(code, detail) {
  return Object.assign(new Error(`${code}: ${detail}`), { code, detail });
}
