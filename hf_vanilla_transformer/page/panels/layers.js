// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* The residual stream of one token, the norms before and after, and the feed-forward units that fire. */

import { bars, chips, choice, figure, grid, largestOf, legend, make, norm, note, number, stripe } from "../draw.js";
import { LINES } from "../lines.js";
import { readTokens, sourceTokens, stackRow } from "../trace.js";

const SUBLAYERS = { encoder: ["self_attention", "feed_forward"], decoder: ["self_attention", "cross_attention", "feed_forward"] };
const ROW = 64; // units in a row of the picture

/** Mean and standard deviation over the dimensions. */
function moments(data) {
  const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
  return { mean, deviation: Math.sqrt(data.reduce((sum, value) => sum + (value - mean) ** 2, 0) / data.length) };
}

export default {
  id: "layers",
  code: ["before", "residual", "after", "hidden", "feedForward", "finalNorm"],
  render(root, context) {
    const { w, state, config, refresh } = context;
    state.stack ??= "encoder";
    const tokens = state.stack === "encoder" ? sourceTokens(context) : readTokens(context);
    const count = config[`${state.stack}_layers`];
    state.token = Math.min(state.token ?? 1, tokens.length - 1);
    state.layer = Math.min(state.layer ?? 0, count - 1);
    const sublayers = SUBLAYERS[state.stack];
    if (!sublayers.includes(state.sublayer)) state.sublayer = "self_attention";
    const get = (name, token = state.token) => stackRow(context, state.stack, name, token);
    const change = (values) => {
      Object.assign(state, values);
      refresh();
    };
    const stacks = Object.keys(SUBLAYERS).map((one) => [one, w(`stack.${one}`)]);
    root.append(
      make("div", { className: "controls" }, choice(w("stack"), stacks, state.stack, (stack) => change({ stack }))),
      figure(w("layers.token"), state.stack === "encoder" ? "(S)" : "(T)", chips(tokens, { pick: (token) => change({ token }), chosen: state.token, label: w("token") })),
    );

    /* The stream, a row after each sub-layer */
    const stream = [{ name: "embedding.output", title: w("layers.embedding") }];
    for (let layer = 0; layer < count; layer++)
      for (const sublayer of sublayers)
        stream.push({ name: `layers.${layer}.${sublayer}.after`, title: `${layer + 1} ${w(`layers.${sublayer}`)}`, layer, sublayer });
    if (config.final_norm) stream.push({ name: "norm", title: w("layers.finalNorm") });
    const rows = stream.map(({ name }) => get(name));
    const D = config.d_model;
    const most = Math.max(...rows.map((row) => largestOf(row))) / 2;
    const longest = Math.max(...rows.map(norm));
    const at = stream.findIndex((one) => one.layer === state.layer && one.sublayer === state.sublayer);
    root.append(
      figure(
        w("layers.stream"),
        `${rows.length} × (D) = (${D})`,
        note(w("layers.stream.note")),
        grid({
          ...{ rows: rows.length, columns: D, cell: 10, cellHeight: 18, max: most, label: w("layers.stream"), chosen: [at, null] },
          ...{ rowLabels: stream.map(({ title }) => title), columnAxis: w("axis.dimension", { d: D, last: D - 1 }) },
          value: (row, column) => rows[row][column],
          hint: (row, column) => ({ title: `${stream[row].title} [${column}] = ${number(rows[row][column])}`, code: row ? LINES.residual : LINES.positions }),
          pick: (row) => stream[row].sublayer && change(stream[row]),
        }),
        legend("signed", most, w),
        make("h4", { text: w("layers.length") }),
        bars(
          stream.map(({ title, layer, sublayer }, row) => ({
            ...{ label: title, value: norm(rows[row]), text: number(norm(rows[row])), isBest: row === at },
            hint: sublayer && { title, lines: [w("layers.added", { size: number(norm(get(`layers.${layer}.${sublayer}.output`))) })], code: LINES.residual },
          })),
          { max: longest, label: w("layers.length") },
        ),
      ),
    );

    /* One sub-layer: before, norm, output, after */
    const name = `layers.${state.layer}.${state.sublayer}`;
    const order = config.norm_first ? ["before", "norm", "output", "after"] : ["before", "output", "norm"];
    const codes = { before: LINES.before, norm: config.norm_first ? LINES.before : LINES.after, output: state.sublayer === "feed_forward" ? LINES.feedForward : LINES.output, after: LINES.residual };
    const stripes = order.flatMap((one) => {
      const data = get(`${name}.${one}`);
      const { mean, deviation } = moments(data);
      const title = w(`layers.${one}.${config.norm_first ? "first" : "last"}`);
      return [
        make("h4", {}, title, make("span", { className: "shape", text: `  ${w("layers.moments", { mean: number(mean), deviation: number(deviation) })}` })),
        stripe({ data, name: one, label: title, code: codes[one] }),
      ];
    });
    const where = choice(w("where"), sublayers.map((one) => [one, w(`layers.${one}`)]), state.sublayer, (sublayer) => change({ sublayer }));
    const layers = choice(w("layer"), Array.from({ length: count }, (_, layer) => [layer, String(layer + 1)]), state.layer, (layer) => change({ layer }));
    const kind = w(config.norm_first ? "layers.normFirst" : "layers.normLast");
    root.append(figure(w("layers.one", { layer: state.layer + 1, sublayer: w(`layers.${state.sublayer}`) }), "(D)", make("div", { className: "controls" }, layers, where), note(kind), ...stripes));

    /* The feed-forward's units */
    const hidden = tokens.map((_, token) => get(`layers.${state.layer}.feed_forward.hidden`, token));
    const units = hidden[state.token];
    const order_ = Array.from(units.keys()).sort((a, b) => units[b] - units[a]);
    if (!(state.unit < units.length)) state.unit = order_[0];
    const firing = units.filter((value) => value > 0).length;
    const highest = largestOf(units);
    const unitHint = (unit) => ({ title: w("layers.unit", { unit, value: number(units[unit]) }), code: LINES.hidden });
    root.append(
      figure(
        w("layers.units", { layer: state.layer + 1 }),
        `(F) = (${units.length})`,
        note(w("layers.units.note", { firing, count: units.length, share: Math.round((100 * firing) / units.length), name: config.activation_function })),
        make(
          "div",
          { className: "pair" },
          make(
            "div",
            {},
            grid({
              ...{ rows: Math.ceil(units.length / ROW), columns: ROW, cell: 12, cellHeight: 10, max: highest, label: w("layers.units", { layer: state.layer + 1 }) },
              ...{ chosen: [Math.floor(state.unit / ROW), state.unit % ROW] },
              value: (row, column) => units[row * ROW + column] ?? null,
              hint: (row, column) => unitHint(row * ROW + column),
              pick: (row, column) => change({ unit: row * ROW + column }),
            }),
            make("h4", { text: w("layers.tokensOf", { unit: state.unit }) }),
            bars(
              tokens.map((token, place) => ({ label: token, value: hidden[place][state.unit], text: number(hidden[place][state.unit]), isBest: place === state.token })),
              { max: Math.max(...hidden.map((row) => Math.abs(row[state.unit]))), label: w("layers.tokensOf", { unit: state.unit }) },
            ),
          ),
          make(
            "div",
            {},
            make("h4", { text: w("layers.top", { token: tokens[state.token] }) }),
            bars(
              order_.slice(0, 12).map((unit) => ({
                ...{ label: w("layers.number", { unit }), value: units[unit], text: number(units[unit]), isBest: unit === state.unit },
                ...{ pick: () => change({ unit }), hint: unitHint(unit) },
              })),
              { max: highest, label: w("layers.top", { token: tokens[state.token] }) },
            ),
          ),
        ),
      ),
    );
  },
};
