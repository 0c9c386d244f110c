/* The vanilla Transformer (Vaswani et al. 2017, "Attention Is All You Need"), in the paper's order.

Section and equation numbers are the paper's; names are those of modeling_vanilla_transformer.py. numbers.js has what
torch does there, search.js what `generate` does.

Shapes: S source tokens, T target tokens, P earlier target tokens in the cache, L tokens of either side, M keys that L
queries attend to, D = `d_model`, H heads, K = `head_dim` (the paper's d_k = d_v), E = H x K, F feed-forward units, C
labels, V target vocabulary. There is no batch: one sequence at a time. */

import { ACTIVATIONS, add, dot, linear, map, probabilitiesOf, row, rowsOf, zeros } from "./numbers.js";
import { search } from "./search.js";
import { taskOf, Weights } from "./weights.js";

/** What a pass through the model keeps and what it switches off. `name` is the path of the part that is running. */
class Run {
  constructor({ trace = null, changes = {} }, name = "") {
    Object.assign(this, { trace, changes, name });
  }

  in(part) {
    return new Run(this, this.name ? `${this.name}.${part}` : part);
  }

  /** Tensors by axes and name: {LD: {output}} keeps `output`, whose axes are L and D. */
  keep(byAxes) {
    for (const [axes, tensors] of Object.entries(byAxes))
      for (const name in tensors) this.trace?.set(`${this.name}.${name}`, { ...tensors[name], axes });
  }

  /** Whether `changes` lists this place, such as residuals: [{stack: "encoder", layer: 0}]. */
  isOff(what, place) {
    return (this.changes[what] ?? []).some((one) => Object.keys(one).every((key) => one[key] === place[key]));
  }
}

/** §3.4: token embeddings, multiplied by sqrt(D) if `scale_embedding`, plus §3.5: the positions. */
class Embedding {
  constructor(config, weights, stack) {
    this.table = weights.embedding(stack);
    this.scale = config.scale_embedding ? Math.sqrt(config.d_model) : 1;
    this.type = config.position_embedding_type;
    this.learned = this.type === "learned" && weights.get(`${stack}.embed_positions.weight`);
    this.offset = config.position_offset;
  }

  /** Ids and positions, -1 for padding, to (L, D). */
  forward(ids, positions, run) {
    const width = this.table.shape[1];
    const [rows, vectors] = [zeros(ids.length, width), zeros(ids.length, width)];
    ids.forEach((id, place) => {
      row(rows, place).set(row(this.table, id));
      if (this.type === "none" || run.changes.positions === false) return;
      const position = Math.max(positions[place] + this.offset, 0);
      row(vectors, place).set(this.learned ? row(this.learned, position) : sinusoid(position, width));
    });
    const scaled = map(rows, (value) => value * this.scale);
    const output = add(scaled, vectors);
    run.in("embedding").keep({ LD: { rows, scaled, positions: vectors, output } });
    return output;
  }
}

/** §3.5: PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)). */
export function sinusoid(position, width) {
  const angle = (column) => position / 10000 ** ((2 * Math.floor(column / 2)) / width);
  return Float32Array.from({ length: width }, (_, i) => (i % 2 ? Math.cos(angle(i)) : Math.sin(angle(i))));
}

/** §3.2.2: multi-head attention, MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O. */
class Attention {
  constructor(config, weights, name, heads, place) {
    Object.assign(this, { heads, place, width: config.head_dim ?? config.d_model / heads });
    const [width, inner] = [config.d_model, heads * this.width];
    for (const part of ["q_proj", "k_proj", "v_proj"]) this[part] = weights.linear(`${name}.${part}`, width, inner);
    this.out_proj = weights.linear(`${name}.out_proj`, inner, width);
  }

  /** §3.2.3: (L, D) attends to `source` (M, D), or also to the cache's keys and values, to which it adds its own. */
  forward(x, source, mask, run, cache = null) {
    const query = linear(x, this.q_proj);
    const memory = cache ?? { keys: [], values: [] };
    if (source) {
      memory.keys.push(...rowsOf(linear(source, this.k_proj)));
      memory.values.push(...rowsOf(linear(source, this.v_proj)));
    }
    const { scores, weights, heads } = this.attend(query, memory, mask, run);
    const output = linear(heads, this.out_proj);
    if (run.trace) {
      const [key, value] = [this.splitHeads(memory.keys), this.splitHeads(memory.values)];
      run.keep({ HLK: { query: this.splitHeads(rowsOf(query)) }, HMK: { key, value }, HLM: { scores, weights } });
      run.keep({ LM: { mask }, LE: { heads }, LD: { output } });
    }
    return output;
  }

  /** §3.2.1, Eq. 1: softmax(Q K^T / sqrt(d_k)) V. A query whose keys are all masked gets zeros. */
  attend(query, { keys, values }, mask, run) {
    const { heads: H, width } = this;
    const [L, M] = mask.shape;
    const [scores, weights, heads] = [zeros(H, L, M), zeros(H, L, M), zeros(L, H * width)];
    for (let head = 0; head < H; head++) {
      const isOff = run.isOff("heads", { ...this.place, head });
      const start = head * width;
      for (let place = 0; place < L; place++) {
        const at = (head * L + place) * M;
        let most = -Infinity;
        for (let m = 0; m < M; m++) {
          scores.data[at + m] = dot(query.data, place * H * width + start, keys[m], start, width) / Math.sqrt(width);
          if (mask.data[place * M + m]) most = Math.max(most, scores.data[at + m]);
        }
        let total = 0;
        for (let m = 0; m < M; m++) if (mask.data[place * M + m]) total += Math.exp(scores.data[at + m] - most);
        const output = row(heads, place);
        for (let m = 0; m < M; m++) {
          if (!mask.data[place * M + m]) continue;
          const weight = Math.exp(scores.data[at + m] - most) / total;
          weights.data[at + m] = weight;
          for (let i = start; i < start + width && !isOff; i++) output[i] += weight * values[m][i];
        }
      }
    }
    return { scores, weights, heads };
  }

  /** A list of rows (H*K) to (H, rows, K). */
  splitHeads(rows) {
    const result = zeros(this.heads, rows.length, this.width);
    rows.forEach((one, place) => {
      for (let head = 0; head < this.heads; head++) {
        const part = one.subarray(head * this.width, (head + 1) * this.width);
        result.data.set(part, (head * rows.length + place) * this.width);
      }
    });
    return result;
  }
}

/** Which of M keys each of L queries may attend to, (L, M): those that are tokens. */
function paddingMask(length, isToken, { changes }) {
  const mayRead = (_, i) => (changes.paddingMask === false || isToken[i % isToken.length] ? 1 : 0);
  return { ...map(zeros(length, isToken.length), mayRead), kind: "padding" };
}

/** §3.2.3: those that are not behind the query. */
function causalMask(length, past, { changes }) {
  const keys = past + length;
  const mayRead = (_, i) => (changes.causalMask === false || i % keys <= past + Math.floor(i / keys) ? 1 : 0);
  return { ...map(zeros(length, keys), mayRead), kind: "causal" };
}

/** §3.3, Eq. 2: FFN(x) = f(x W_1 + b_1) W_2 + b_2 at each position, f the configured activation. */
class FeedForward {
  constructor(config, weights, name, units) {
    this.activation = ACTIVATIONS[config.activation_function];
    this.fc1 = weights.linear(`${name}.fc1`, config.d_model, units);
    this.fc2 = weights.linear(`${name}.fc2`, units, config.d_model);
  }

  forward(x, run) {
    const hidden = map(linear(x, this.fc1), this.activation);
    const output = linear(hidden, this.fc2);
    run.keep({ LF: { hidden }, LD: { output } });
    return output;
  }
}

/** Layer norm: torch's, or the Annotated Transformer's, a (x - mean) / (std + eps) + b with the unbiased std. */
class LayerNorm {
  constructor(config, weights, name) {
    this.weight = weights.get(`${name}.weight`).data;
    this.bias = weights.get(`${name}.bias`).data;
    this.isStandard = config.layer_norm_type === "standard";
    this.eps = config.layer_norm_eps;
  }

  forward(x) {
    const [length, width] = x.shape;
    const result = zeros(length, width);
    for (let place = 0; place < length; place++) {
      const input = row(x, place);
      const mean = input.reduce((sum, value) => sum + value, 0) / width;
      const squares = input.reduce((sum, value) => sum + (value - mean) ** 2, 0);
      const [biased, unbiased] = [squares / width, squares / (width - 1)];
      const divisor = this.isStandard ? Math.sqrt(biased + this.eps) : Math.sqrt(unbiased) + this.eps;
      const { weight, bias } = this;
      const at = (i) => i % weight.length; // "unbiased_std_scalar" has one scale and one shift
      row(result, place).set(input.map((value, i) => (weight[at(i)] * (value - mean)) / divisor + bias[at(i)]));
    }
    return result;
  }
}

/** §3.1, §5.4: LayerNorm(x + Sublayer(x)) or, with `norm_first`, x + Sublayer(LayerNorm(x)). */
class Residual {
  constructor(config, weights, name, place) {
    this.place = place;
    this.preNorm = config.norm_first ? new LayerNorm(config, weights, `${name}.pre_norm`) : null;
    this.postNorm = config.norm_first ? null : new LayerNorm(config, weights, `${name}.post_norm`);
  }

  before(x, run) {
    run.keep({ LD: { before: x } });
    if (!this.preNorm) return x;
    const norm = this.preNorm.forward(x);
    run.keep({ LD: { norm } });
    return norm;
  }

  after(residual, output, run) {
    const sum = run.isOff("residuals", this.place) ? output : add(residual, output);
    const after = this.postNorm ? this.postNorm.forward(sum) : sum;
    run.keep({ LD: this.postNorm ? { norm: after, after } : { after } });
    return after;
  }
}

/** §3.1, Figure 1 left: self-attention, feed-forward network. Right: encoder-decoder attention between the two. */
class Layer {
  constructor(config, weights, stack, layer) {
    const name = `${stack}.layers.${layer}`;
    const heads = config[`${stack}_attention_heads`];
    const place = (sublayer) => ({ stack, layer, sublayer });
    const attention = (part, sublayer) => new Attention(config, weights, `${name}.${part}`, heads, place(sublayer));
    const residual = (part, sublayer) => new Residual(config, weights, `${name}.${part}_residual`, place(sublayer));
    this.selfAttn = attention("self_attn", "self_attention");
    this.selfAttnResidual = residual("self_attn", "self_attention");
    if (stack === "decoder") {
      this.encoderAttn = attention("encoder_attn", "cross_attention");
      this.encoderAttnResidual = residual("encoder_attn", "cross_attention");
    }
    this.feedForward = new FeedForward(config, weights, `${name}.feed_forward`, config[`${stack}_ffn_dim`]);
    this.feedForwardResidual = residual("feed_forward", "feed_forward");
  }

  /** (L, D) to (L, D). A decoder's layer also gets the encoder's output, its mask and its own cache. */
  forward(x, mask, run, { source, sourceMask, cache } = {}) {
    let part = run.in("self_attention");
    let residual = x;
    x = this.selfAttnResidual.before(x, part);
    x = this.selfAttn.forward(x, x, mask, part, cache?.self);
    x = this.selfAttnResidual.after(residual, x, part);

    if (this.encoderAttn) {
      part = run.in("cross_attention");
      residual = x;
      x = this.encoderAttnResidual.before(x, part);
      // Keys and values of the source are the same for every target token.
      x = this.encoderAttn.forward(x, cache.cross.keys.length ? null : source, sourceMask, part, cache.cross);
      x = this.encoderAttnResidual.after(residual, x, part);
    }

    part = run.in("feed_forward");
    residual = x;
    x = this.feedForwardResidual.before(x, part);
    x = this.feedForward.forward(x, part);
    return this.feedForwardResidual.after(residual, x, part);
  }
}

/** §3.1: a stack of N layers over the embedded tokens. */
class Stack {
  constructor(config, weights, stack) {
    this.embedding = new Embedding(config, weights, stack);
    const length = config[`${stack}_layers`];
    this.layers = Array.from({ length }, (_, layer) => new Layer(config, weights, stack, layer));
    this.finalNorm = config.final_norm ? new LayerNorm(config, weights, `${stack}.final_norm`) : null;
  }

  /** What the layers wrote, (L, D) each, and the stack's output. */
  forward(ids, positions, mask, run, decoding = { caches: [] }) {
    let x = this.embedding.forward(ids, positions, run);
    const states = this.layers.map((layer, place) => {
      const part = run.in(`layers.${place}`);
      return (x = layer.forward(x, mask, part, { ...decoding, cache: decoding.caches[place] }));
    });
    const output = this.norm(x);
    run.keep({ LD: this.finalNorm ? { norm: output, output } : { output } });
    return { states, output };
  }

  norm(x) {
    return this.finalNorm ? this.finalNorm.forward(x) : x;
  }
}

/** §3.1, Figure 1: encoder and decoder, with the linear layer to the vocabulary (§3.4) or a classifier. */
export class VanillaTransformer {
  /** `tensors`: name in the state dict -> {shape, data: Float32Array}. */
  constructor(config, tensors) {
    const weights = new Weights(config, tensors);
    this.config = config;
    this.encoder = new Stack(config, weights, "encoder");
    this.decoder = new Stack(config, weights, "decoder");
    if (taskOf(config) === "classification") this.classifier = weights.get("classifier.weight");
    else this.lmHead = weights.head();
    this.maxTargetPositions = config.decoder_max_position_embeddings ?? config.max_position_embeddings;
    this.ends = [config.eos_token_id ?? []].flat();
  }

  /** (S,) ids to what the decoder reads: the encoder's output (S, D), and which of its rows are tokens.

  Options: `mask` (S,), 1 for a token and 0 for padding; `trace`, a Map to fill; `changes`. */
  encode(ids, options) {
    // A text without a token becomes padding, which no query attends to.
    if (!ids.length) return { source: zeros(1, this.config.d_model), isToken: [0] };
    const isToken = options.mask ?? ids.map(() => 1);
    let count = 0;
    const positions = isToken.map((one) => (one ? count++ : -1));
    const run = new Run(options, "encoder");
    const { output } = this.encoder.forward(ids, positions, paddingMask(ids.length, isToken, run), run);
    return { source: output, isToken };
  }

  /** A cache for each decoder layer, to which `forwardDecoder` adds keys and values. */
  newCaches() {
    const empty = () => ({ keys: [], values: [] });
    return this.decoder.layers.map(() => ({ self: empty(), cross: empty() }));
  }

  /** Target ids (L,) behind those in the caches, to what each layer wrote and the decoder's output, (L, D) each. */
  forwardDecoder(ids, { source, isToken }, caches, options = {}, name = "decoder") {
    const past = caches[0].self.keys.length;
    const run = new Run(options, name);
    const positions = ids.map((_, place) => past + place);
    const decoding = { source, sourceMask: paddingMask(ids.length, isToken, run), caches };
    return this.decoder.forward(ids, positions, causalMask(ids.length, past, run), run, decoding);
  }

  /** The Transformer with a classifier over the maximum of the decoder's positions; it reads the start token alone. */
  classify(ids, options = {}) {
    const start = [this.config.decoder_start_token_id];
    const [source, caches] = [this.encode(ids, options), this.newCaches()];
    const { output } = this.forwardDecoder(start, source, caches, options, "decoder.steps.0");
    const logits = linear(output, { weight: this.classifier });
    new Run(options, "classifier").keep({ LD: { pooled: output }, LC: { logits } });
    const probabilities = probabilitiesOf([...logits.data], this.config.problem_type);
    return { logits: logits.data, probabilities, trace: options.trace };
  }

  /** Greedy or beam search, as search.js explains. */
  translate(ids, options = {}) {
    return search(this, this.encode(ids, options), options);
  }
}
