/* The residual stream of one token, the norms before and after, and the feed-forward units that fire. */

import { bars, bestOf, chips, choice, controls, figure, grid, heading, largestOf, legend, norm, note, number, numbered, titledStripe } from "../draw.js";
import { LINES } from "../lines.js";
import { readTokens, sourceTokens, stackRow } from "../trace.js";

const SUBLAYERS = { encoder: ["self_attention", "feed_forward"], decoder: ["self_attention", "cross_attention", "feed_forward"] };
const ROW = 64; // units in a row of the picture

/** Mean and standard deviation over the dimensions. */
function moments(data) {
  const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
  return { mean: number(mean), deviation: number(norm(data.map((value) => value - mean)) / Math.sqrt(data.length)) };
}

export const code = ["before", "residual", "after", "hidden", "feedForward", "finalNorm"];

export function render(root, context) {
  const { w, state, config, refresh } = context;
  const stack = (state.stack ??= "encoder");
  const tokens = stack === "encoder" ? sourceTokens(context) : readTokens(context);
  const [count, sublayers, D] = [config[`${stack}_layers`], SUBLAYERS[stack], config.d_model];
  const place = (state.token = Math.min(state.token ?? 1, tokens.length - 1));
  const layer = (state.layer = Math.min(state.layer ?? 0, count - 1));
  if (!sublayers.includes(state.sublayer)) state.sublayer = "self_attention";
  const { sublayer } = state;
  const get = (name, token = place) => stackRow(context, stack, name, token);
  const change = (values) => {
    Object.assign(state, { unit: undefined, ...values });
    refresh();
  };
  const stacks = Object.keys(SUBLAYERS).map((one) => [one, w(`stack.${one}`)]);
  root.append(
    controls(choice(w("stack"), stacks, stack, (one) => change({ stack: one }))),
    figure(w("layers.token"), stack === "encoder" ? "(S)" : "(T)", chips(tokens, { pick: (token) => change({ token, unit: state.unit }), chosen: place, label: w("token") })),
  );

  /* The stream, a row after each sub-layer */
  const stream = [{ name: "embedding.output", title: w("layers.embedding") }];
  for (let layer = 0; layer < count; layer++)
    for (const sublayer of sublayers)
      stream.push({ name: `layers.${layer}.${sublayer}.after`, title: `${layer + 1} ${w(`layers.${sublayer}`)}`, layer, sublayer });
  if (config.final_norm) stream.push({ name: "norm", title: w("layers.finalNorm") });
  const rows = stream.map(({ name }) => get(name));
  const most = Math.max(...rows.map(largestOf));
  const at = stream.findIndex((one) => one.layer === layer && one.sublayer === sublayer);
  const lengths = stream.map(({ title, layer, sublayer }, row) => {
    const added = sublayer && w("layers.added", { size: number(norm(get(`layers.${layer}.${sublayer}.output`))) });
    const hint = added && { title, lines: [added], code: LINES.residual };
    return { label: title, value: norm(rows[row]), text: number(norm(rows[row])), isBest: row === at, hint };
  });
  root.append(
    figure(
      w("layers.stream"),
      `${rows.length} × (D) = (${D})`,
      note(w("layers.stream.note")),
      grid({
        ...{ rows: rows.length, columns: D, cell: 10, cellHeight: 18, max: most, label: w("layers.stream"), chosen: [at, null] },
        ...{ rowLabels: stream.map(({ title }) => title), columnAxis: w("axis.dimension", { last: D - 1 }) },
        value: (row, column) => rows[row][column],
        hint: (row, column) => ({ title: `${stream[row].title} [${column}] = ${number(rows[row][column])}`, code: row ? LINES.residual : LINES.positions }),
        pick: (row) => stream[row].sublayer && change(stream[row]),
      }),
      heading(w("layers.length")),
      bars(lengths, { max: Math.max(...rows.map(norm)), label: w("layers.length") }),
    ),
  );

  /* One sub-layer: before, norm, output, after */
  const order = config.norm_first ? ["before", "norm", "output", "after"] : ["before", "output", "norm"];
  const codes = { before: LINES.before, norm: config.norm_first ? LINES.before : LINES.after, output: sublayer === "feed_forward" ? LINES.feedForward : LINES.output, after: LINES.residual };
  const kind = config.norm_first ? "first" : "last";
  const vectors = order.map((one) => get(`layers.${layer}.${sublayer}.${one}`));
  const max = Math.max(...vectors.map(largestOf));
  const stripes = vectors.flatMap((data, at) => {
    const title = `${w(`layers.${order[at]}.${kind}`)}: ${w("layers.moments", moments(data))}`;
    return titledStripe(title, { data, max, name: order[at], code: codes[order[at]] });
  });
  const choices = controls(
    choice(w("layer"), numbered(count), layer, (one) => change({ layer: one })),
    choice(w("where"), sublayers.map((one) => [one, w(`layers.${one}`)]), sublayer, (one) => change({ sublayer: one })),
  );
  root.append(figure(w("layers.one", { layer: layer + 1, sublayer: w(`layers.${sublayer}`) }), "(D)", choices, note(w(config.norm_first ? "layers.normFirst" : "layers.normLast")), ...stripes, legend("signed", max)));

  /* The feed-forward's units */
  const hidden = tokens.map((_, token) => get(`layers.${layer}.feed_forward.hidden`, token));
  const units = hidden[place];
  if (!(state.unit < units.length)) state.unit = bestOf(units);
  const { unit } = state;
  const firing = units.filter((value) => value > 0).length;
  const values = { firing, count: units.length, share: Math.round((100 * firing) / units.length), name: config.activation_function.replace("relu", "ReLU").replace("gelu", "GELU") };
  const title = w("layers.units", { layer: layer + 1 });
  const tokensOf = w("layers.tokensOf", { unit });
  root.append(
    figure(
      title,
      `(F) = (${units.length})`,
      note(w("layers.units.note", values)),
      grid({
        ...{ rows: Math.ceil(units.length / ROW), columns: ROW, cell: 14, cellHeight: 12, max: largestOf(units), label: title },
        ...{ chosen: [Math.floor(unit / ROW), unit % ROW], columnAxis: w("layers.unitsAxis", { last: ROW - 1, next: ROW }) },
        value: (row, column) => units[row * ROW + column] ?? null,
        hint: (row, column) => ({ title: w("layers.unit", { unit: row * ROW + column, value: number(units[row * ROW + column]) }), code: LINES.hidden }),
        pick: (row, column) => change({ unit: row * ROW + column }),
      }),
      heading(tokensOf),
      bars(
        tokens.map((token, one) => ({ label: token, value: hidden[one][unit], text: number(hidden[one][unit]), isBest: one === place })),
        { max: Math.max(...hidden.map((row) => Math.abs(row[unit]))), label: tokensOf },
      ),
    ),
  );
}
