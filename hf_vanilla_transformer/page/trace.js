/* The tensors of a run as the panels read them; PAGE's names of tensors are those of model.js. */

import { dot, grid, number, part } from "./draw.js";
import { LINES } from "./lines.js";

/** The three kinds of attention, and where a layer has them. */
export const KINDS = { encoder: "self_attention", decoder: "self_attention", cross: "cross_attention" };
export const MODULES = { encoder: "encoder.layers.{}.self_attn", decoder: "decoder.layers.{}.self_attn", cross: "decoder.layers.{}.encoder_attn" };

/** Tokens that the decoder reads: the start token, and what it wrote but for the last. */
export function readTokens(context) {
  return [context.startPiece, ...(context.run.pieces ?? []).slice(0, -1)];
}

export function sourceTokens({ run }) {
  const length = run.trace.get("encoder.output")?.shape[0] ?? run.source.pieces.length;
  return Array.from({ length }, (_, place) => run.source.pieces[place] ?? "[PAD]");
}

/** All of one attention in one layer, the decoder's put together from its steps. */
export function attention(context, kind, layer) {
  const { trace } = context.run;
  const isEncoder = kind === "encoder";
  const source = sourceTokens(context);
  const written = readTokens(context);
  const [queries, keys] = [isEncoder ? source : written, kind === "decoder" ? written : source];
  const tensor = (query, name) =>
    trace.get(isEncoder ? `encoder.layers.${layer}.self_attention.${name}` : `decoder.steps.${query}.layers.${layer}.${KINDS[kind]}.${name}`);
  const last = written.length - 1;
  // A step of the decoder has one row of queries; without the causal mask it has all, of which the last is its own.
  const rowOf = (query, { shape }) => (isEncoder ? query : shape.at(-2) - 1);
  const [heads, , width] = tensor(0, "query").shape;
  const view = { kind, layer, heads, width, queries, keys };
  view.query = (head, query) => part(tensor(query, "query"), head, rowOf(query, tensor(query, "query")));
  view.key = (head, key) => part(tensor(isEncoder ? 0 : last, "key"), head, key);
  view.value = (head, key) => part(tensor(isEncoder ? 0 : last, "value"), head, key);
  view.score = (head, query, key) => dot(view.query(head, query), view.key(head, key)) / Math.sqrt(width);
  view.hidden = (query, key) => {
    if (kind === "decoder") return key > query ? "causal" : null;
    const mask = tensor(query, "mask");
    return part(mask, rowOf(query, mask))[key] ? null : "padding";
  };
  view.weight = (head, query, key) => {
    const weights = tensor(query, "weights");
    return part(weights, head, rowOf(query, weights))[key] ?? 0;
  };
  view.meanWeight = (query, key) => {
    let sum = 0;
    for (let head = 0; head < heads; head++) sum += view.weight(head, query, key);
    return sum / heads;
  };
  /** The heads' results side by side, [H*K], and after W^O, [D]. */
  view.joined = (query) => part(tensor(query, "heads"), rowOf(query, tensor(query, "heads")));
  view.output = (query) => part(tensor(query, "output"), rowOf(query, tensor(query, "output")));
  return view;
}

/** The weights of one head, or the mean of all, as a picture. */
export function weightsGrid(view, w, head = null, more = {}) {
  const { queries, keys } = view;
  const weight = (query, key) => (head === null ? view.meanWeight(query, key) : view.weight(head, query, key));
  return grid({
    ...{ rows: queries.length, columns: keys.length, scale: "weights", smallest: 9, label: `${w(`kind.${view.kind}`)}: ${w("map.weights")}` },
    ...{ rowLabels: queries, columnLabels: keys, rowAxis: w("axis.query"), columnAxis: w("axis.key"), value: weight, masked: view.hidden },
    hint(query, key) {
      const hidden = view.hidden(query, key);
      const score = head === null ? "" : `q·k/√d_k = ${number(view.score(head, query, key))}`;
      const lines = [hidden ? w(`mask.${hidden}`) : score].filter(Boolean);
      return { title: `${queries[query]} → ${keys[key]}: ${number(weight(query, key))}`, lines, code: LINES[hidden ? "mask" : "softmax"] };
    },
    ...more,
  });
}

/** A tensor of one stack, [L, D] row by row: `row(token)` of `name`, such as layers.0.feed_forward.after. */
export function stackRow({ run: { trace } }, stack, name, token) {
  const tensor = trace.get(stack === "encoder" ? `encoder.${name}` : `decoder.steps.${token}.${name}`);
  return tensor && part(tensor, stack === "encoder" ? token : tensor.shape[0] - 1);
}

/** The kinds of attention with their numbers of layers and heads. */
export function places({ config }) {
  return {
    encoder: { layers: config.encoder_layers, heads: config.encoder_attention_heads },
    decoder: { layers: config.decoder_layers, heads: config.decoder_attention_heads },
    cross: { layers: config.decoder_layers, heads: config.decoder_attention_heads },
  };
}
