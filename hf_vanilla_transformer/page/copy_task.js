/* Trains a small Transformer to copy, as chapter 6 of the walk-through does, with 32 features and without dropout.

  for (const { update, loss, source, written, share, attention } of trainCopyTask({ updates: 200, seed: 0 })) ...

The weights have the names of the package's state dict, so model.js writes with them while they change. The gradients
come from a tape: each operation below appends how its inputs' gradients follow from its output's. */

import { sinusoid, VanillaTransformer } from "./model.js";
import { dot, linear, logSoftmax, row, sizeOf } from "./numbers.js";

export const [START, SYMBOLS, LENGTH] = [1, 11, 10]; // 0 is padding; 2 to 10 are copied
export const CONFIG = {
  ...{ architectures: ["VanillaTransformerForConditionalGeneration"], vocab_size: SYMBOLS, d_model: 32 },
  ...{ encoder_layers: 1, decoder_layers: 1, encoder_ffn_dim: 64, decoder_ffn_dim: 64, activation_function: "relu" },
  ...{ encoder_attention_heads: 2, decoder_attention_heads: 2, layer_norm_type: "standard", layer_norm_eps: 1e-5 },
  ...{ position_embedding_type: "sinusoidal", position_offset: 0, scale_embedding: true },
  ...{ max_position_embeddings: LENGTH + 1, decoder_start_token_id: START },
};
const SMOOTHING = 0.1;

function addTo(sum, values) {
  for (let i = 0; i < sum.length; i++) sum[i] += values[i];
}

function transposed({ shape: [rows, columns], data }) {
  const result = new Float32Array(data.length);
  for (let place = 0; place < rows; place++)
    for (let i = 0; i < columns; i++) result[i * rows + place] = data[place * columns + i];
  return { shape: [columns, rows], data: result };
}

/** Operations on nodes {shape, data, grad}; `backward` runs what they recorded from the last to the first. */
class Tape {
  constructor() {
    this.steps = [];
  }

  node(shape, data, backward) {
    const result = { shape, data, grad: new Float32Array(data.length) };
    this.steps.push(() => backward(result.grad));
    return result;
  }

  backward() {
    for (const step of this.steps.reverse()) step();
  }

  /** §3.4, §3.5: rows of the table times sqrt(D), plus the sinusoid. */
  embed(table, sequences) {
    const [width, ids] = [table.shape[1], sequences.flat()];
    const scale = Math.sqrt(width);
    const positions = sequences[0].map((_, place) => sinusoid(place, width));
    const data = new Float32Array(ids.length * width);
    ids.forEach((id, place) => {
      const position = positions[place % positions.length];
      for (let i = 0; i < width; i++) data[place * width + i] = table.data[id * width + i] * scale + position[i];
    });
    return this.node([ids.length, width], data, (grad) => {
      ids.forEach((id, place) => {
        for (let i = 0; i < width; i++) table.grad[id * width + i] += grad[place * width + i] * scale;
      });
    });
  }

  /** y = x W^T + b: dL/dx = dL/dy W, dL/dW = (dL/dy)^T x, dL/db is the sum of dL/dy over the rows. */
  linear(x, { weight, bias }) {
    const { shape, data } = linear(x, { weight, bias });
    return this.node(shape, data, (grad) => {
      const slopes = { shape, data: grad };
      addTo(x.grad, linear(slopes, { weight: transposed(weight) }).data);
      addTo(weight.grad, linear(transposed(slopes), { weight: transposed(x) }).data);
      grad.forEach((slope, i) => (bias.grad[i % shape[1]] += slope));
    });
  }

  relu(x) {
    const data = x.data.map((value) => Math.max(value, 0));
    return this.node(x.shape, data, (grad) => grad.forEach((slope, i) => (x.grad[i] += x.data[i] > 0 ? slope : 0)));
  }

  add(x, y) {
    const data = x.data.map((value, i) => value + y.data[i]);
    return this.node(x.shape, data, (grad) => [x, y].forEach((side) => addTo(side.grad, grad)));
  }

  /** With n = (x - mean) / std and g = dL/dy * weight: dL/dx = (g - mean(g) - n mean(g n)) / std. */
  layerNorm(x, { weight, bias }) {
    const [length, width] = x.shape;
    const [data, normed, stds] = [new Float32Array(x.data.length), new Float32Array(x.data.length), []];
    for (let place = 0; place < length; place++) {
      const input = row(x, place);
      const mean = input.reduce((sum, value) => sum + value, 0) / width;
      const squares = input.reduce((sum, value) => sum + (value - mean) ** 2, 0);
      stds.push(Math.sqrt(squares / width + CONFIG.layer_norm_eps));
      for (let i = 0, at = place * width; i < width; i++, at++) {
        normed[at] = (input[i] - mean) / stds[place];
        data[at] = normed[at] * weight.data[i] + bias.data[i];
      }
    }
    return this.node(x.shape, data, (grad) => {
      for (let place = 0; place < length; place++) {
        let [sum, sumNormed] = [0, 0];
        for (let i = 0, at = place * width; i < width; i++, at++) {
          weight.grad[i] += grad[at] * normed[at];
          bias.grad[i] += grad[at];
          sum += grad[at] * weight.data[i];
          sumNormed += grad[at] * weight.data[i] * normed[at];
        }
        for (let i = 0, at = place * width; i < width; i++, at++) {
          const slope = grad[at] * weight.data[i] - sum / width - (normed[at] * sumNormed) / width;
          x.grad[at] += slope / stds[place];
        }
      }
    });
  }

  /** §3.2.1, Eq. 1 for each sequence and head. With p the weights: dL/ds = p (dL/dp - sum of p dL/dp). */
  attend(query, key, value, heads, isCausal) {
    const [rows, D] = query.shape;
    const width = D / heads;
    const scale = 1 / Math.sqrt(width);
    const data = new Float32Array(query.data.length);
    const kept = []; // of each query and head: where it starts, where its keys start, its weights
    for (let place = 0; place < rows; place++) {
      const first = place - (place % LENGTH); // sequences follow each other
      const keys = isCausal ? (place % LENGTH) + 1 : LENGTH;
      for (let start = 0; start < D; start += width) {
        const [at, weights] = [place * D + start, new Float64Array(keys)];
        const scores = weights.map((_, m) => scale * dot(query.data, at, key.data, (first + m) * D + start, width));
        const logs = logSoftmax(scores);
        for (let m = 0; m < keys; m++) {
          weights[m] = Math.exp(logs[m]);
          const other = (first + m) * D + start;
          for (let i = 0; i < width; i++) data[at + i] += weights[m] * value.data[other + i];
        }
        kept.push({ at, other: first * D + start, weights });
      }
    }
    return this.node(query.shape, data, (grad) => {
      for (const { at, other, weights } of kept) {
        const slopes = weights.map((_, m) => dot(grad, at, value.data, other + m * D, width));
        const mean = weights.reduce((sum, weight, m) => sum + weight * slopes[m], 0);
        weights.forEach((weight, m) => {
          const [there, slope] = [other + m * D, weight * (slopes[m] - mean) * scale];
          for (let i = 0; i < width; i++) {
            value.grad[there + i] += weight * grad[at + i];
            query.grad[at + i] += slope * key.data[there + i];
            key.grad[there + i] += slope * query.data[at + i];
          }
        });
      }
    });
  }

  /** §5.4: cross-entropy with label smoothing, the mean over all tokens. dL/dlogit = probability - target. */
  loss(logits, labels) {
    const [length, size] = logits.shape;
    const slopes = new Float32Array(logits.data.length);
    let total = 0;
    for (let place = 0; place < length; place++) {
      logSoftmax(row(logits, place)).forEach((logP, id) => {
        const target = SMOOTHING / size + (id === labels[place] ? 1 - SMOOTHING : 0);
        total -= (target * logP) / length;
        slopes[place * size + id] = (Math.exp(logP) - target) / length;
      });
    }
    this.steps.push(() => logits.grad.set(slopes));
    return total;
  }
}

/** Random numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class CopyTask {
  constructor(seed = 0) {
    this.random = randomNumbers(seed);
    this.tensors = this.newTensors();
    this.model = new VanillaTransformer(CONFIG, this.tensors);
    this.example = this.sequences(1)[0];
    this.updates = 0;
  }

  /** Matrices are uniform (Glorot and Bengio 2010), norms 1, biases 0, embeddings N(0, 1 / D). */
  newTensors() {
    const { d_model: D, encoder_ffn_dim: F } = CONFIG;
    const tensors = new Map();
    const add = (name, shape, draw) => {
      const data = Float32Array.from({ length: sizeOf(shape) }, draw);
      const [grad, mean, square] = [0, 0, 0].map((zero) => data.slice().fill(zero));
      tensors.set(name, { shape, data, grad, mean, square });
    };
    const normal = () => Math.sqrt(-2 * Math.log(1 - this.random())) * Math.cos(2 * Math.PI * this.random());
    const addLinear = (name, inputs, outputs) => {
      const bound = Math.sqrt(6 / (inputs + outputs));
      add(`${name}.weight`, [outputs, inputs], () => (2 * this.random() - 1) * bound);
      add(`${name}.bias`, [outputs], () => 0);
    };
    for (const stack of ["model.encoder", "model.decoder"]) {
      add(`${stack}.embed_tokens.weight`, [SYMBOLS, D], () => normal() / Math.sqrt(D));
      const layer = `${stack}.layers.0`;
      const attentions = stack === "model.encoder" ? ["self_attn"] : ["self_attn", "encoder_attn"];
      for (const name of attentions)
        for (const part of ["q_proj", "k_proj", "v_proj", "out_proj"]) addLinear(`${layer}.${name}.${part}`, D, D);
      addLinear(`${layer}.feed_forward.fc1`, D, F);
      addLinear(`${layer}.feed_forward.fc2`, F, D);
      for (const name of [...attentions, "feed_forward"]) {
        add(`${layer}.${name}_residual.post_norm.weight`, [D], () => 1);
        add(`${layer}.${name}_residual.post_norm.bias`, [D], () => 0);
      }
    }
    addLinear("lm_head", D, SYMBOLS);
    return tensors;
  }

  sequences(number) {
    const symbol = () => 2 + Math.floor(this.random() * (SYMBOLS - 2));
    return Array.from({ length: number }, () => Array.from({ length: LENGTH }, symbol));
  }

  /** The loss of copying these sequences; the gradients are in the tensors' `grad`. */
  gradients(sequences) {
    for (const { grad } of this.tensors.values()) grad.fill(0);
    const tape = new Tape();
    const of = (name) => ({ weight: this.tensors.get(`${name}.weight`), bias: this.tensors.get(`${name}.bias`) });
    const attend = (name, x, source, isCausal) => {
      const query = tape.linear(x, of(`${name}.q_proj`));
      const [key, value] = ["k", "v"].map((part) => tape.linear(source, of(`${name}.${part}_proj`)));
      const heads = tape.attend(query, key, value, CONFIG.encoder_attention_heads, isCausal);
      return tape.linear(heads, of(`${name}.out_proj`));
    };
    const after = (name, x, output) => tape.layerNorm(tape.add(x, output), of(`${name}_residual.post_norm`));
    const feed = (name, x) => {
      const hidden = tape.relu(tape.linear(x, of(`${name}.fc1`)));
      return after(name, x, tape.linear(hidden, of(`${name}.fc2`)));
    };

    let layer = "model.encoder.layers.0";
    let x = tape.embed(this.tensors.get("model.encoder.embed_tokens.weight"), sequences);
    x = after(`${layer}.self_attn`, x, attend(`${layer}.self_attn`, x, x, false));
    const source = feed(`${layer}.feed_forward`, x);

    layer = "model.decoder.layers.0";
    const shifted = sequences.map((sequence) => [START, ...sequence.slice(0, -1)]);
    x = tape.embed(this.tensors.get("model.decoder.embed_tokens.weight"), shifted);
    x = after(`${layer}.self_attn`, x, attend(`${layer}.self_attn`, x, x, true));
    x = after(`${layer}.encoder_attn`, x, attend(`${layer}.encoder_attn`, x, source, false));
    x = feed(`${layer}.feed_forward`, x);
    const loss = tape.loss(tape.linear(x, of("lm_head")), sequences.flat());
    tape.backward();
    return loss;
  }

  /** One update by Adam, whose rate rises for 40 updates and then falls with their square root. */
  update(batch) {
    const loss = this.gradients(this.sequences(batch));
    this.updates += 1;
    const rate = 0.01 * Math.min(this.updates / 40, Math.sqrt(40 / this.updates));
    const [first, second] = [0.9, 0.98];
    for (const { data, grad, mean, square } of this.tensors.values()) {
      for (let i = 0; i < data.length; i++) {
        mean[i] += (1 - first) * (grad[i] - mean[i]);
        square[i] += (1 - second) * (grad[i] ** 2 - square[i]);
        const [m, s] = [mean[i] / (1 - first ** this.updates), square[i] / (1 - second ** this.updates)];
        data[i] -= (rate * m) / (Math.sqrt(s) + 1e-9);
      }
    }
    return loss;
  }

  /** What the model writes for the example, and where each step looks: the mean of cross-attention's heads, (T, S). */
  show() {
    const trace = new Map();
    const { ids } = this.model.translate(this.example, { trace });
    const heads = CONFIG.decoder_attention_heads;
    const attention = ids.map((_, step) => {
      const { data } = trace.get(`decoder.steps.${step}.layers.0.cross_attention.weights`);
      return this.example.map((_, key) => (data[key] + data[key + LENGTH]) / heads);
    });
    return { source: this.example, written: ids, attention };
  }

  /** The share of new sequences that the model copies without a mistake. */
  share(number) {
    const copies = this.sequences(number).filter((ids) => String(this.model.translate(ids).ids) === String(ids));
    return copies.length / number;
  }
}

/** After each update {update, loss, source, written, attention}, and after each tenth the `share` of 20 copied. */
export function* trainCopyTask({ updates = 200, batch = 32, seed = 0 } = {}) {
  const task = new CopyTask(seed);
  for (let update = 1; update <= updates; update++) {
    const loss = task.update(batch);
    yield { update, loss, ...task.show(), ...(update % 10 === 0 && { share: task.share(20) }) };
  }
}
