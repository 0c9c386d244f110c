/* One head and one query: scores term by term, mask, softmax, weighted sum, concatenation and W^O. */

import { bestOf, button, chips, choice, controls, dot, figure, grid, hint, largestOf, legend, make, maskLegend, note, number, numbered, part, stripe, titledStripe } from "../draw.js";
import { LINES } from "../lines.js";
import { attention, MODULES, places } from "../trace.js";

export const code = ["query", "source", "key", "value", "scaling", "scores", "mask", "softmax", "sum", "output"];

export function render(root, context) {
  const { w, state, refresh, run, model } = context;
  const kinds = places(context);
  const kind = (state.kind ??= "encoder");
  const layer = (state.layer = Math.min(state.layer ?? 0, kinds[kind].layers - 1));
  const head = (state.head = Math.min(state.head ?? 0, kinds[kind].heads - 1));
  const padded = state.padded?.words === run.words && state.isPadded ? state.padded.run : run;
  const view = attention({ ...context, run: padded }, kind, layer);
  const { queries, keys, width: K } = view;
  const change = (values) => {
    Object.assign(state, values);
    if (!("query" in values || "key" in values)) state.key = null;
    refresh();
  };
  const query = (state.query = Math.min(state.query ?? queries.length - 1, queries.length - 1));
  const hidden = keys.map((_, key) => view.hidden(query, key));
  const weights = keys.map((_, key) => view.weight(head, query, key));
  const scores = keys.map((_, key) => view.score(head, query, key));
  const [k, v] = ["key", "value"].map((name) => keys.map((_, key) => view[name](head, key)));
  if (!(state.key < keys.length)) state.key = null;
  const chosen = (state.key ??= bestOf(weights));
  const q = view.query(head, query);

  /* Where */
  const pad = async () => {
    state.isPadded = !state.isPadded;
    if (state.isPadded) state.padded = { words: run.words, run: await context.answer(run.words, { trace: true, padding: 3 }) };
    change({});
  };
  const picked = chips(queries, { pick: (place) => change({ query: place, key: null }), chosen: query, label: w("head.query") });
  root.append(
    controls(
      choice(w("where"), Object.keys(kinds).map((one) => [one, w(`kind.${one}`)]), kind, (one) => change({ kind: one })),
      choice(w("layer"), numbered(kinds[kind].layers), layer, (one) => change({ layer: one })),
      choice(w("head"), numbered(kinds[kind].heads), head, (one) => change({ head: one })),
      kind !== "decoder" && button(w("head.pad"), pad, { "aria-pressed": Boolean(state.isPadded) }),
    ),
    figure(w("head.query"), kind === "encoder" ? "(S)" : "(T)", picked),
  );

  /* The ledger: a row for each key */
  const [most, mostValue] = [[q, ...k], v].map((rows) => Math.max(...rows.map(largestOf)));
  const rows = keys.map((token, key) => {
    const score = hint(make("td", { className: "value", text: number(scores[key]) }), {
      title: w("head.score.of", { query: queries[query], key: token }),
      lines: [`q·k = ${number(scores[key] * Math.sqrt(K))}`, `÷ √d_k = ÷ √${K} = ${number(scores[key])}`],
      code: LINES.scores,
    });
    const bar = make("span", { className: hidden[key] ? `swatch ${hidden[key]}` : "bar" });
    bar.style.setProperty("--share", `${100 * weights[key]}%`);
    const weight = hint(make("td", { className: "weight" }, bar, ` ${number(weights[key])}`), {
      title: w("head.weight.of", { key: token }),
      lines: hidden[key] ? [w(`mask.${hidden[key]}`), "exp(−∞) = 0"] : [`exp(${number(scores[key])}) / Σ exp = ${number(weights[key])}`],
      code: hidden[key] ? LINES.mask : LINES.softmax,
    });
    const vector = (name, data, max) =>
      make("td", {}, stripe({ data, name, max, label: `${name}: ${token} ${key}`, code: name === "k" ? LINES.key : LINES.value, height: 16 }));
    const name = button(token, () => change({ key }), { className: "chip", "aria-pressed": key === chosen });
    const cells = [make("td", {}, name), vector("k", k[key], most), score, weight, vector("v", v[key], mostValue)];
    return make("tr", { className: key === chosen ? "chosen" : "" }, ...cells);
  });
  const letter = kind === "decoder" ? "T" : "S";
  const titles = ["key", "k", "score", "weight", "v"].map((name) => make("th", { scope: "col", text: w(`head.${name}`) }));
  const masks = [...new Set(hidden.filter(Boolean))];
  root.append(
    figure(
      w("head.ledger"),
      `q (d_k) = (${K}),  k, v (${letter}, d_k) = (${keys.length}, ${K})`,
      ...titledStripe(w("head.q", { token: queries[query] }), { data: q, name: "q", max: most, code: LINES.query }),
      make("table", { className: "ledger" }, make("thead", {}, make("tr", {}, ...titles)), make("tbody", {}, ...rows)),
      masks.length > 0 && maskLegend(w, masks),
      legend("signed", most, "q, k"),
      legend("signed", mostValue, "v"),
    ),
  );

  /* One score, term by term */
  const terms = q.map((value, i) => value * k[chosen][i]);
  const lines = (i) => [`q[${i}] · k[${i}] = ${number(q[i])} · ${number(k[chosen][i])} = ${number(terms[i])}`];
  const product = number(dot(q, k[chosen]));
  const names = { query: queries[query], key: keys[chosen] };
  root.append(
    figure(
      w("head.terms", names),
      `(d_k) = (${K})`,
      ...titledStripe(w("head.q", { token: names.query }), { data: q, name: "q", code: LINES.query, max: most, lines }),
      ...titledStripe(w("head.kOf", { token: names.key }), { data: k[chosen], name: "k", code: LINES.key, max: most, lines }),
      legend("signed", most, "q, k"),
      ...titledStripe(w("head.products"), { data: terms, name: "q·k", code: LINES.scores, lines }),
      make("p", { className: "sum" }, `Σ = ${product},   ${product} ÷ √${K} = ${number(scores[chosen])}`),
      hidden[chosen] && note(w("head.masked")),
    ),
  );

  /* The weighted sum, the heads side by side, W^O */
  const joined = view.joined(query);
  const sum = joined.subarray(head * K, (head + 1) * K);
  const shares = v.map((row, key) => row.map((value) => weights[key] * value));
  let projection;
  model.weight(`model.${MODULES[kind].replace("{}", layer)}.out_proj.weight`).then((found) => (projection = found));
  const fromHeads = (column) =>
    Array.from({ length: projection ? view.heads : 0 }, (_, one) => {
      const [from, to] = [one * K, (one + 1) * K];
      const share = dot(part(projection, column).subarray(from, to), joined.subarray(from, to));
      return `${w("head")} ${one + 1}: Wᴼ[${column}] · z = ${number(share)}`;
    });
  root.append(
    figure(
      w("head.sum"),
      `a (${letter}) · v (${letter}, d_k) = z (d_k) = (${K})`,
      note(w("head.sum.note")),
      grid({
        ...{ rows: keys.length, columns: K, cell: 14, cellHeight: 16, max: Math.max(...shares.map(largestOf)), rowLabels: keys, label: w("head.sum") },
        value: (key, i) => shares[key][i],
        masked: (key) => hidden[key],
        hint(key, i) {
          const factors = `${number(weights[key])} · ${number(v[key][i])} = ${number(shares[key][i])}`;
          return { title: `${keys[key]}: ${number(weights[key])} · v[${i}] = ${factors}`, code: LINES.sum };
        },
      }),
      ...titledStripe(w("head.z"), { data: sum, name: "z", code: LINES.sum }),
    ),
    figure(
      w("head.join"),
      `(H·d_k) = (${joined.length}) → (D) = (${context.config.d_model})`,
      grid({
        ...{ rows: view.heads, columns: K, cell: 14, cellHeight: 18, max: largestOf(joined), chosen: [head, null] },
        ...{ rowLabels: numbered(view.heads).map(([, one]) => `${w("head")} ${one}`), label: w("head.join") },
        value: (one, i) => joined[one * K + i],
        pick: (one) => change({ head: one }),
        hint: (one, i) => ({ title: `z_${one + 1}[${i}] = ${number(joined[one * K + i])}`, code: LINES.sum }),
      }),
      ...titledStripe(w("head.output"), { data: view.output(query), name: "o", code: LINES.output, lines: fromHeads }),
    ),
  );
}
