/* Before a model is open: why there is none, how to open one, and the files that are dropped on the page. */

import { make } from "./draw.js";
import * as words from "./words/start.js";

/** Say why there is no model, and how to open one. */
export function startPanel({ language, error }) {
  const { title, drop, hub, ...failures } = words[language];
  const sentence = error && (failures[error.code]?.replace("{detail}", () => error.detail) ?? error.message);
  return make(
    "div",
    { className: "drop" },
    make("h2", { text: title }),
    sentence && make("p", { role: "alert", text: sentence }),
    make("p", { text: drop }),
    make("p", {}, `${hub} `, make("code", { text: "?model=USER/NAME" })),
    make("pre", { text: "vanilla-transformer page --model RUN --output_dir page", tabIndex: 0 }),
  );
}

/** Files of a dropped folder, or dropped one by one, by their paths. */
export async function filesOf(entries) {
  const files = new Map();
  const read = async (entry, path) => {
    if (entry.isFile) return files.set(path, await new Promise((resolve, reject) => entry.file(resolve, reject)));
    const reader = entry.createReader();
    for (let batch; (batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length; )
      for (const one of batch) await read(one, `${path}/${one.name}`);
  };
  for (const entry of entries) await read(entry, entry.name);
  return files;
}
