/* How an encoder-decoder classifies, and what each word changes. */

import { bars, bestOf, button, chips, controls, dot, figure, grid, heading, largestOf, legend, make, note, number, part, titledStripe } from "../draw.js";
import { needs } from "../frame.js";
import { LINES } from "../lines.js";
import { attention, sourceTokens } from "../trace.js";
import { labelBars } from "./map.js";

export const code = ["start", "layer", "pooled"];

export function render(root, context) {
  const { task, state, run } = context;
  if (task !== "classification") return root.append(needs("classification", context));
  if (state.words !== run.words) Object.assign(state, { words: run.words, without: {}, out: null });
  root.append(path(context), words(context));
}

function path(context) {
  const { w, run, config, labelOf, model, state, kind } = context;
  const source = sourceTokens(context);
  const cross = attention(context, "cross", config.decoder_layers - 1);
  const weights = source.map((_, key) => cross.meanWeight(0, key));
  const hintOf = (place) => ({ title: `${source[place]}: ${number(weights[place])}`, code: LINES.softmax });
  const pooled = part(run.trace.get("classifier.pooled"), 0);
  const body = make("div");
  const load = async () => {
    state.head ??= await model.weight("classifier.weight");
    const rows = Array.from(run.logits, (_, label) => part(state.head, label));
    const products = rows.map((row) => row.map((value, i) => value * pooled[i]));
    const how = w(`outcome.${kind}.by`);
    const list = labelBars(context).map((one, label) => {
      const lines = [`Σ h · W = ${number(dot(rows[label], pooled))}`, how && `${how} → ${one.text}`].filter(Boolean);
      return { ...one, hint: { title: one.label, lines, code: LINES.pooled } };
    });
    body.replaceChildren(
      grid({
        ...{ rows: rows.length, columns: pooled.length, cell: 8, cellHeight: 20, max: Math.max(...products.map(largestOf)) },
        ...{ rowLabels: rows.map((row, label) => `${labelOf(label)}: ${number(dot(row, pooled))}`), label: w("classifier.head") },
        value: (row, column) => products[row][column],
        hint(row, column) {
          const factors = `${number(pooled[column])} · ${number(rows[row][column])} = ${number(products[row][column])}`;
          return { title: `h[${column}] · W[${column}] = ${factors}`, code: LINES.pooled };
        },
      }),
      bars(list, { label: w(`outcome.${kind}.name`), max: kind === "regression" ? largestOf(run.logits) : 1 }),
    );
  };
  setTimeout(load);
  return figure(
    w("classifier.path"),
    `(T, D) = (1, ${config.d_model}) → (C) = (${run.logits.length})`,
    heading(w("classifier.start")),
    chips([context.startPiece], { label: w("classifier.start") }),
    heading(w("classifier.looks")),
    chips(source, { weights, label: w("classifier.looks"), hintOf }),
    legend("weights", 1),
    ...titledStripe(w("classifier.pooled"), { data: pooled, name: "h", code: LINES.pooled }),
    heading(w("classifier.head")),
    body,
    note(w(`outcome.${kind}.how`)),
  );
}

/** Leave out a word in one click. */
function words(context) {
  const { w, run, state, labelOf, valueOf, kind } = context;
  const words = run.words.trim().split(/\s+/);
  const label = bestOf(run.probabilities);
  const [name, before] = [labelOf(label), run.probabilities[label]];
  const unit = kind === "regression" ? 1 : 100; // percentage points
  const without = async (place) => {
    const text = words.filter((_, one) => one !== place).join(" ");
    state.without[place] ??= (await context.answer(text)).probabilities[label];
  };
  const pick = async (place) => {
    state.out = state.out === place ? null : place;
    await without(place);
    show();
  };
  const row = chips(words, { pick, label: w("classifier.words") });
  const result = make("div", { role: "status" });
  const list = make("div");
  const show = () => {
    const { out } = state;
    [...row.children].forEach((one, place) => {
      one.classList.toggle("out", place === out);
      one.setAttribute("aria-pressed", place === out);
    });
    const values = { word: words[out], label: name, before: valueOf(before), after: out !== null && valueOf(state.without[out]) };
    result.replaceChildren(note(w(out === null ? "classifier.now" : "classifier.after", values)));
    const known = [...words.keys()].filter((place) => state.without[place] !== undefined);
    const changes = known.map((place) => state.without[place] - before);
    const rows = known.map((place, at) => {
      const text = `${changes[at] > 0 ? "+" : "−"}${number(Math.abs(unit * changes[at]))}`;
      return { label: words[place], value: changes[at], text, isBest: place === out };
    });
    const max = kind === "regression" ? largestOf(changes) : 1;
    list.replaceChildren(bars(rows, { max, label: w("classifier.each") }), known.length ? note(w("classifier.changes", { label: name })) : "");
  };
  const all = button(w("classifier.each"), async () => {
    all.disabled = true;
    for (const place of words.keys()) {
      await without(place);
      if (!list.isConnected) return;
      show();
    }
    all.disabled = false;
  });
  show();
  return figure(w("classifier.words"), "", note(w("classifier.words.note")), row, result, controls(all), list);
}
