// The model: tokenizer and onnxruntime, which read nothing but this folder.

import * as ort from "./runtime/ort.wasm.bundle.min.mjs";
import { Tokenizer } from "./runtime/tokenizers.min.mjs";

ort.env.wasm.numThreads = 1; // more would need headers that a static host does not send
ort.env.wasm.wasmPaths = { wasm: new URL("runtime/ort-wasm-simd-threaded.wasm", import.meta.url).href };

async function read(path) {
  const answer = await fetch(new URL(path, import.meta.url));
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer;
}

export const readJson = async (path) => (await read(path)).json();

async function loadTokenizer(folder) {
  const files = ["tokenizer.json", "tokenizer_config.json"].map((name) => readJson(folder + name));
  const tokenizer = new Tokenizer(...(await Promise.all(files)));
  // As in Python, unknown characters become one token within a word, not across words.
  const model = tokenizer.model;
  tokenizer.model = new Proxy(model, { apply: (_, self, [words]) => words.flatMap((word) => model([word])) });
  return tokenizer;
}

async function loadSession(name) {
  return ort.InferenceSession.create(new Uint8Array(await (await read(`model/${name}.onnx`)).arrayBuffer()));
}

/** Token ids as a batch of one. */
function row(ids) {
  return new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]);
}

/** The weights of one layer's heads, [head][query] -> Float32Array over keys, of a tensor (1, heads, T, S). */
function heads({ data, dims: [, count, queries, keys] }) {
  return Array.from({ length: count }, (_, head) =>
    Array.from({ length: queries }, (_, query) => {
      const start = (head * queries + query) * keys;
      return data.subarray(start, start + keys);
    }),
  );
}

/** All layers, [layer][head][query] -> Float32Array over keys, of the outputs NAME.0, NAME.1 and so on. */
const layers = (outputs, name, count) =>
  Array.from({ length: count }, (_, layer) => heads(outputs[`${name}.${layer}`]));

function softmax(logits) {
  const most = Math.max(...logits);
  const powers = Array.from(logits, (logit) => Math.exp(logit - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

class Model {
  /** Ids and tokens of a text, cut to what the model reads; null where the text has no token of its own. */
  encode(whole) {
    const text = [...whole].slice(0, this.config.max_characters).join("");
    const own = this.source.encode(text, { add_special_tokens: false }).ids;
    if (!own.length) return null;
    const { ids, tokens } = this.source.encode(text);
    const over = ids.length - this.config.max_length;
    if (over > 0) {
      // The special tokens at the end stay.
      const before = ids.findIndex((_, place) => own.every((id, index) => ids[place + index] === id));
      for (const list of [ids, tokens]) list.splice(before + own.length - over, over);
    }
    return { ids, tokens, cut: over > 0, inputs: { input_ids: row(ids), attention_mask: row(ids.map(() => 1)) } };
  }
}

export class Classifier extends Model {
  static async load(config) {
    const [source, session] = await Promise.all([loadTokenizer("model/"), loadSession("classifier")]);
    return Object.assign(new Classifier(), { config, source, session });
  }

  /** Probabilities by label, and the attention of encoder and decoder; null for a text without a token. */
  async classify(text) {
    const read = this.encode(text);
    if (!read) return null;
    const outputs = await this.session.run(read.inputs);
    const { encoder, decoder } = this.config.attention;
    return {
      ...read,
      probabilities: softmax(outputs.logits.data),
      encoder: layers(outputs, "encoder_attentions", encoder.layers),
      cross: layers(outputs, "cross_attentions", decoder.layers),
    };
  }
}

export class Translator extends Model {
  static async load(config) {
    const [source, target, encoder, decoder] = await Promise.all([
      loadTokenizer("model/"),
      config.target_tokenizer ? loadTokenizer("model/target_tokenizer/") : null,
      loadSession("encoder"),
      loadSession("decoder"),
    ]);
    return Object.assign(new Translator(), { config, source, target: target ?? source, encoder, decoder });
  }

  /** Greedy search: after each token what is written so far, with its cross-attention. */
  async *translate(text) {
    const read = this.encode(text);
    if (!read) return;
    const { last_hidden_state } = await this.encoder.run(read.inputs);
    const { start, end, max_target_length, target_vocab_size } = this.config;
    const ids = [start];
    while (ids.length < max_target_length && !end.includes(ids.at(-1))) {
      const outputs = await this.decoder.run({
        decoder_input_ids: row(ids),
        "encoder_outputs.last_hidden_state": last_hidden_state,
        attention_mask: read.inputs.attention_mask,
      });
      const last = outputs.logits.data.subarray(-target_vocab_size);
      ids.push(last.reduce((best, logit, id) => (logit > last[best] ? id : best), 0));
      const written = ids.slice(1);
      yield {
        ...read,
        written: written.map((id) => this.target.id_to_token(id)),
        translation: this.target.decode(written, { skip_special_tokens: true }),
        cross: layers(outputs, "cross_attentions", this.config.attention.decoder.layers),
      };
    }
  }
}
