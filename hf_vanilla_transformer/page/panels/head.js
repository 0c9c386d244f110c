// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* One head and one query: scores term by term, mask, softmax, weighted sum, concatenation and W^O. */

import { bestOf, button, chips, choice, dot, figure, grid, hint, legend, largestOf, make, maskLegend, note, number, part, stripe } from "../draw.js";
import { LINES } from "../lines.js";
import { attention, places } from "../trace.js";

const range = (length) => Array.from({ length }, (_, i) => i);
const MODULES = { encoder: "encoder.layers.{}.self_attn", decoder: "decoder.layers.{}.self_attn", cross: "decoder.layers.{}.encoder_attn" };

/** Buttons for the kind of attention, its layer and its head. */
export function placeControls(context, change, { withHead = true } = {}) {
  const { w, state } = context;
  const { layers, heads } = places(context)[state.kind];
  const numbers = (count) => range(count).map((one) => [one, String(one + 1)]);
  return make(
    "div",
    { className: "controls" },
    choice(w("where"), Object.keys(places(context)).map((kind) => [kind, w(`kind.${kind}`)]), state.kind, (kind) => change({ kind })),
    choice(w("layer"), numbers(layers), state.layer, (layer) => change({ layer })),
    withHead && choice(w("head"), numbers(heads), state.head, (head) => change({ head })),
  );
}

/** Keep a state within the model's sizes. */
export function clampPlace(context) {
  const { state } = context;
  state.kind ??= "encoder";
  const { layers, heads } = places(context)[state.kind];
  state.layer = Math.min(state.layer ?? 0, layers - 1);
  state.head = Math.min(state.head ?? 0, heads - 1);
}

export default {
  id: "head",
  code: ["query", "source", "key", "value", "scaling", "scores", "mask", "softmax", "sum", "output"],
  render(root, context) {
    const { w, state, refresh, run, model } = context;
    clampPlace(context);
    const padded = state.padded?.words === run.words && state.isPadded ? state.padded.run : run;
    const view = attention({ ...context, run: padded }, state.kind, state.layer);
    const { head, layer, kind } = state;
    const change = (values) => {
      Object.assign(state, values);
      if (!("query" in values || "key" in values)) state.key = null;
      refresh();
    };
    state.query = Math.min(state.query ?? view.queries.length - 1, view.queries.length - 1);
    const { query } = state;
    const hidden = range(view.keys.length).map((key) => view.hidden(query, key));
    const weights = range(view.keys.length).map((key) => view.weight(head, query, key));
    const scores = range(view.keys.length).map((key) => view.score(head, query, key));
    if (state.key === null || state.key === undefined || state.key >= view.keys.length) state.key = bestOf(weights);
    const q = view.query(head, query);
    const [K, root_] = [view.width, Math.sqrt(view.width)];

    /* Where */
    const pad = async () => {
      state.isPadded = !state.isPadded;
      if (state.isPadded) state.padded = { words: run.words, run: await context.answer(run.words, { trace: true, padding: 3 }) };
      change({});
    };
    const controls = placeControls(context, change);
    if (kind !== "decoder") controls.append(button(w("head.pad"), pad, { "aria-pressed": Boolean(state.isPadded) }));
    const picked = chips(view.queries, { pick: (place) => change({ query: place, key: null }), chosen: query, label: w("head.query") });
    root.append(controls, figure(w("head.query"), kind === "encoder" ? "(S)" : "(T)", picked));

    /* The ledger: a row for each key */
    const most = largestOf([...q, ...range(view.keys.length).flatMap((key) => Array.from(view.key(head, key)))]);
    const mostValue = largestOf(range(view.keys.length).flatMap((key) => Array.from(view.value(head, key))));
    const rows = view.keys.map((token, key) => {
      const label = `${token} ${key}`;
      const score = hint(make("td", { className: "value", text: number(scores[key]) }), {
        title: w("head.score.of", { query: view.queries[query], key: token }),
        lines: [`q·k = ${number(scores[key] * root_)}`, `÷ √d_k = ÷ √${K} = ${number(scores[key])}`],
        code: LINES.scores,
      });
      const cell = make("td", { className: `weight ${hidden[key] ?? ""}` });
      if (hidden[key]) cell.append(make("span", { className: `swatch ${hidden[key]}` }), " 0");
      else {
        const bar = make("span", { className: "bar" });
        bar.style.setProperty("--share", `${100 * weights[key]}%`);
        cell.append(bar, make("span", { text: number(weights[key]) }));
      }
      hint(cell, {
        title: w("head.weight.of", { key: token }),
        lines: hidden[key] ? [w(`mask.${hidden[key]}`), "exp(−∞) = 0"] : [`exp(${number(scores[key])}) / Σ exp = ${number(weights[key])}`],
        code: hidden[key] ? LINES.mask : LINES.softmax,
      });
      return make(
        "tr",
        { className: key === state.key ? "chosen" : "" },
        make("td", {}, button(token, () => change({ key }), { className: "chip", "aria-pressed": key === state.key })),
        make("td", { className: "wide" }, stripe({ data: view.key(head, key), name: "k", max: most, label: `k: ${label}`, code: LINES.key, height: 16 })),
        score,
        cell,
        make("td", { className: "wide" }, stripe({ data: view.value(head, key), name: "v", max: mostValue, label: `v: ${label}`, code: LINES.value, height: 16 })),
      );
    });
    const titles = ["head.key", "head.k", "head.score", "head.weight", "head.v"].map((name) => make("th", { scope: "col", text: w(name) }));
    const kinds = [...new Set(hidden.filter(Boolean))];
    root.append(
      figure(
        w("head.ledger"),
        `q (d_k) = (${K}),  k, v (${kind === "decoder" ? "T" : "S"}, d_k) = (${view.keys.length}, ${K})`,
        make("h4", { text: w("head.q", { token: view.queries[query] }) }),
        stripe({ data: q, name: "q", max: most, label: "q", code: LINES.query }),
        make("table", { className: "ledger" }, make("thead", {}, make("tr", {}, ...titles)), make("tbody", {}, ...rows)),
        ...(kinds.length ? [maskLegend(w, kinds)] : []),
        legend("signed", most, w),
      ),
    );

    /* One score, term by term */
    const k = view.key(head, state.key);
    const terms = q.map((value, i) => value * k[i]);
    const lines = (i) => [`q[${i}] · k[${i}] = ${number(q[i])} · ${number(k[i])} = ${number(terms[i])}`];
    const line = (title, data, name, code) => [
      make("h4", { text: title }),
      stripe({ data, name, label: title, code, max: name === "q·k" ? largestOf(terms) : most, lines }),
    ];
    root.append(
      figure(
        w("head.terms", { query: view.queries[query], key: view.keys[state.key] }),
        `(d_k) = (${K})`,
        ...line(w("head.q", { token: view.queries[query] }), q, "q", LINES.query),
        ...line(w("head.kOf", { token: view.keys[state.key] }), k, "k", LINES.key),
        ...line(w("head.products"), terms, "q·k", LINES.scores),
        make("p", { className: "sum" }, `Σ = ${number(dot(q, k))}   ÷ √${K} = ${number(scores[state.key])}`),
        hidden[state.key] && note(w("head.masked")),
      ),
    );

    /* The weighted sum, the heads side by side, W^O */
    const sum = part({ shape: [view.heads, K], data: view.joined(query) }, head);
    const weighted = (key, i) => weights[key] * view.value(head, key)[i];
    const joined = view.joined(query);
    const output = view.output(query);
    const name = `model.${MODULES[kind].replace("{}", layer)}.out_proj`;
    let projection;
    model.weight(`${name}.weight`).then((found) => (projection = found));
    const fromHeads = (column) => {
      if (!projection) return [];
      const row = part(projection, column);
      return range(view.heads).map((one) => {
        const share = dot(row.subarray(one * K, (one + 1) * K), joined.subarray(one * K, (one + 1) * K));
        return `${w("head")} ${one + 1}: Wᴼ[${column}] · z = ${number(share)}`;
      });
    };
    root.append(
      figure(
        w("head.sum"),
        `z (d_k) = (${K})`,
        note(w("head.sum.note")),
        grid({
          ...{ rows: view.keys.length, columns: K, cell: 14, cellHeight: 16, max: largestOf(sum), rowLabels: view.keys },
          ...{ label: w("head.sum") },
          value: weighted,
          masked: (key) => hidden[key],
          hint: (key, i) => ({
            title: `${view.keys[key]}: ${number(weights[key])} · v[${i}] = ${number(weights[key])} · ${number(view.value(head, key)[i])} = ${number(weighted(key, i))}`,
            code: LINES.sum,
          }),
        }),
        make("h4", { text: w("head.z") }),
        stripe({ data: sum, name: "z", label: "z", code: LINES.sum }),
      ),
      figure(
        w("head.join"),
        `(H·d_k) = (${view.heads * K}) → (D) = (${output.length})`,
        grid({
          ...{ rows: view.heads, columns: K, cell: 14, cellHeight: 18, max: largestOf(joined), chosen: [head, null] },
          ...{ rowLabels: range(view.heads).map((one) => `${w("head")} ${one + 1}`), label: w("head.join") },
          value: (one, i) => joined[one * K + i],
          pick: (one) => change({ head: one }),
          hint: (one, i) => ({ title: `z_${one + 1}[${i}] = ${number(joined[one * K + i])}`, code: LINES.sum }),
        }),
        make("h4", { text: w("head.output") }),
        stripe({ data: output, name: "o", label: w("head.output"), code: LINES.output, lines: fromHeads }),
      ),
    );
  },
};
