// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* How an encoder-decoder classifies, and what each word changes. */

import { bars, bestOf, button, chips, dot, figure, grid, largestOf, make, note, number, part, stripe } from "../draw.js";
import { needs } from "../frame.js";
import { LINES } from "../lines.js";
import { attention, sourceTokens } from "../trace.js";
import { labelBars } from "./map.js";

export default {
  id: "classifier",
  code: ["start", "layer", "pooled"],
  render(root, context) {
    const { w, task, state, run } = context;
    if (task !== "classification") return root.append(needs("classification", context));
    if (state.words !== run.words) Object.assign(state, { words: run.words, without: {}, out: null });
    root.append(this.path(context), this.words(context));
  },

  path(context) {
    const { w, run, config, labelOf, model, state, kind } = context;
    const source = sourceTokens(context);
    const cross = attention(context, "cross", config.decoder_layers - 1);
    const weights = source.map((_, key) => cross.meanWeight(0, key));
    const pooled = part(run.trace.get("classifier.pooled"), 0);
    const body = make("div", {});
    const load = async () => {
      state.head ??= await model.weight("classifier.weight");
      if (body.isConnected) show();
    };
    const show = () => {
      const labels = Array.from(run.logits.keys());
      const rows = labels.map((label) => part(state.head, label));
      const products = rows.map((row) => row.map((value, i) => value * pooled[i]));
      const most = Math.max(...products.map((row) => largestOf(row)));
      body.replaceChildren(
        grid({
          ...{ rows: labels.length, columns: pooled.length, cell: 8, cellHeight: 20, max: most, rowLabels: labels.map(labelOf), label: w("classifier.head") },
          value: (row, column) => products[row][column],
          hint: (row, column) => ({
            title: `h[${column}] · W[${column}] = ${number(pooled[column])} · ${number(rows[row][column])} = ${number(products[row][column])}`,
            code: LINES.pooled,
          }),
        }),
        bars(
          labelBars(context).map((one, label) => {
            const how = w(`outcome.${kind}.by`);
            const lines = [`Σ h · W = ${number(dot(rows[label], pooled))}`, ...(how ? [`${how} → ${one.text}`] : [])];
            return { ...one, hint: { title: one.label, lines, code: LINES.pooled } };
          }),
          { label: w(`outcome.${kind}.name`), max: kind === "regression" ? largestOf(run.logits) : 1 },
        ),
      );
    };
    setTimeout(load);
    return figure(
      w("classifier.path"),
      `(T, D) = (1, ${config.d_model}) → (C) = (${run.logits.length})`,
      make("h4", { text: w("classifier.start") }),
      chips([context.startPiece], { label: w("classifier.start") }),
      make("h4", { text: w("classifier.looks") }),
      chips(source, {
        ...{ weights, label: w("classifier.looks") },
        hintOf: (place) => ({ title: `${source[place]}: ${number(weights[place])}`, lines: [w("classifier.mean")], code: LINES.softmax }),
      }),
      make("h4", { text: w("classifier.pooled") }),
      stripe({ data: pooled, name: "h", label: w("classifier.pooled"), code: LINES.pooled }),
      make("h4", { text: w("classifier.head") }),
      note(w(`outcome.${kind}.how`)),
      body,
    );
  },

  /** Leave out a word in one click. */
  words(context) {
    const { w, run, state, labelOf, valueOf, kind } = context;
    const words = run.words.trim().split(/\s+/);
    const label = bestOf(run.probabilities);
    const before = run.probabilities[label];
    const unit = kind === "regression" ? 1 : 100; // percentage points
    const textWithout = (place) => words.filter((_, one) => one !== place).join(" ");
    const result = make("div", { role: "status" });
    const list = make("div");
    const without = async (place) => (state.without[place] ??= (await context.answer(textWithout(place))).probabilities?.[label] ?? NaN);
    const row = make("div", { className: "chips", role: "group", "aria-label": w("classifier.words") });
    const buttons = words.map((word, place) =>
      button(
        word,
        async () => {
          const isSame = state.out === place;
          state.out = isSame ? null : place;
          await without(place);
          show();
        },
        { className: "chip" },
      ),
    );
    row.append(...buttons);
    const show = () => {
      buttons.forEach((one, place) => {
        one.classList.toggle("out", place === state.out);
        one.setAttribute("aria-pressed", place === state.out);
      });
      const name = labelOf(label);
      const after = state.without[state.out];
      result.replaceChildren(
        note(w(state.out === null ? "classifier.now" : "classifier.after", { word: words[state.out], label: name, before: valueOf(before), after: valueOf(after) })),
      );
      const known = words.map((word, place) => [word, place]).filter(([, place]) => state.without[place] !== undefined);
      list.replaceChildren(
        bars(
          known.map(([word, place]) => {
            const change = before - state.without[place];
            return { label: word, value: change, text: `${change < 0 ? "+" : "−"}${number(Math.abs(unit * change))}`, isBest: place === state.out };
          }),
          { max: Math.max(0.01, ...known.map(([, place]) => Math.abs(before - state.without[place]))), label: w("classifier.each") },
        ),
        ...(known.length ? [note(w(`classifier.changes.${unit}`, { label: name }))] : []),
      );
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
    return figure(w("classifier.words"), "", note(w("classifier.words.note")), row, result, make("div", { className: "controls" }, all), list);
  },
};
