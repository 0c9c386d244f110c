/* Opens a model's folder as `save_pretrained` and the Hub have it: config.json, model.safetensors (in float32, float16
or bfloat16, in one file or several), tokenizer.json, and target_tokenizer/ where the target has its own vocabulary.

  await openFolder(files)          files: Map(path -> Blob), such as dropped files
  await openUrl(base, onProgress)  base: a folder's address; onProgress({file, loaded, total}), in bytes

Both give {config, generationConfig, tensors: Map(name -> {shape, data}), tokenizers: {source, target}}. */

import { failure } from "./failures.js";
import { ACTIVATIONS, sizeOf } from "./numbers.js";
import { Tokens } from "./tokens.js";

const MAX_PARAMETERS = 250e6; // 1 GB in float32
const TASKS = {
  VanillaTransformerForSequenceClassification: "classification",
  VanillaTransformerForConditionalGeneration: "translation",
};

export const taskOf = (config) => TASKS[config.architectures?.[0]];

export async function openFolder(files) {
  // A dropped folder's paths begin with its name.
  const places = [...files.keys()].filter((path) => /(^|\/)config\.json$/.test(path));
  if (!places.length) throw failure("no_model");
  const folder = places.sort((a, b) => a.length - b.length)[0].slice(0, -"config.json".length);
  return open(async (path) => files.get(folder + path) ?? null);
}

export async function openUrl(base, onProgress = () => {}) {
  const folder = base.endsWith("/") ? base : `${base}/`;
  return open(async (path) => {
    const answer = await fetch(folder + path).catch(() => {
      throw failure("unreachable", folder + path);
    });
    if (path === "config.json" && !answer.ok) throw failure("no_model_there", folder);
    if (!answer.ok) return null;
    const total = Number(answer.headers.get("Content-Length")); // 0 if the server does not say
    const pieces = [];
    let loaded = 0;
    for (const reader = answer.body.getReader(); ; ) {
      const { done, value } = await reader.read().catch(() => {
        throw failure("damaged", path);
      });
      if (done) break;
      pieces.push(value);
      onProgress({ file: path, loaded: (loaded += value.length), total });
    }
    return new Blob(pieces);
  });
}

/** `read` gives a file's Blob, or null where there is none. */
async function open(read) {
  const config = await readJson(read, "config.json");
  if (config.model_type !== "vanilla_transformer") throw failure("other_model", config.model_type);
  if (!taskOf(config)) throw failure("no_task", config.architectures?.[0]);
  if (!(config.activation_function in ACTIVATIONS)) throw failure("activation", config.activation_function);
  const parameters = parametersOf(config);
  if (parameters > MAX_PARAMETERS) throw failure("too_large", parameters.toLocaleString("en"));
  const generationConfig = (await readJson(read, "generation_config.json", true)) ?? {};
  // What it sets counts, as in transformers' `generate`; a classifier generates nothing.
  for (const name of taskOf(config) === "translation" ? ["decoder_start_token_id", "eos_token_id"] : [])
    config[name] = generationConfig[name] ?? config[name];
  const source = await readTokens(read, "");
  const target = config.decoder_vocab_size === null ? source : await readTokens(read, "target_tokenizer/");
  return { config, generationConfig, tensors: await readWeights(read), tokenizers: { source, target } };
}

/** About how many parameters a model has: the matrices of its embeddings, attentions and feed-forward networks. */
function parametersOf(config) {
  const encoder = config.encoder_layers * (4 * config.d_model + 2 * config.encoder_ffn_dim);
  const decoder = config.decoder_layers * (8 * config.d_model + 2 * config.decoder_ffn_dim);
  return config.d_model * (config.vocab_size + (config.decoder_vocab_size ?? 0) + encoder + decoder);
}

async function readJson(read, path, isOptional = false) {
  const file = await read(path);
  if (file === null && isOptional) return null;
  if (file === null) throw failure("missing_file", path);
  try {
    return JSON.parse(await file.text());
  } catch {
    throw failure("unreadable_file", path);
  }
}

async function readTokens(read, folder) {
  const file = await readJson(read, `${folder}tokenizer.json`);
  return new Tokens(file, (await readJson(read, `${folder}tokenizer_config.json`, true)) ?? {});
}

async function readWeights(read) {
  const tensors = new Map();
  const single = await read("model.safetensors");
  const index = single ? null : await readJson(read, "model.safetensors.index.json", true);
  for (const name of index ? new Set(Object.values(index.weight_map)) : ["model.safetensors"]) {
    const file = single ?? (await read(name));
    if (file === null) throw failure("missing_file", name);
    for (const [key, tensor] of readSafetensors(await file.arrayBuffer(), name)) tensors.set(key, tensor);
  }
  return tensors;
}

/** The format: the header's length (8 bytes), the header as JSON, and the numbers, all little-endian. */
function readSafetensors(buffer, name) {
  const tensors = new Map();
  const length = buffer.byteLength < 8 ? NaN : Number(new DataView(buffer).getBigUint64(0, true));
  if (!(8 + length <= buffer.byteLength)) throw failure("damaged", name);
  let header;
  try {
    header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  } catch {
    throw failure("damaged", name);
  }
  delete header.__metadata__;
  for (const [key, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(header)) {
    if (!(dtype in TO_FLOAT32)) throw failure("precision", dtype);
    if (8 + length + end > buffer.byteLength) throw failure("damaged", name);
    const data = TO_FLOAT32[dtype](buffer.slice(8 + length + begin, 8 + length + end));
    if (data.length !== sizeOf(shape)) throw failure("damaged", name);
    tensors.set(key, { shape, data });
  }
  return tensors;
}

const TO_FLOAT32 = {
  F32: (bytes) => new Float32Array(bytes),
  F16(bytes) {
    const halves = new Uint16Array(bytes);
    const data = new Float32Array(halves.length);
    for (let i = 0; i < data.length; i++) data[i] = HALVES[halves[i]];
    return data;
  },
  BF16(bytes) {
    const halves = new Uint16Array(bytes);
    const bits = new Uint32Array(halves.length);
    for (let i = 0; i < bits.length; i++) bits[i] = halves[i] << 16;
    return new Float32Array(bits.buffer);
  },
};

/** The value of each float16: 1 bit sign, 5 bits exponent, 10 bits fraction. */
const HALVES = Float32Array.from({ length: 65536 }, (_, bits) => {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
});

/** The state dict, without the prefix of the model's class; weights that are tied are there once. */
export class Weights {
  constructor(config, tensors) {
    Object.assign(this, { config, tensors });
  }

  /** A weight; `shape` is what the configuration says of it. */
  get(name, shape = null) {
    const found = this.find(name);
    if (!found) throw failure("missing_weight", name);
    if (shape && String(found.shape) !== String(shape)) throw failure("wrong_shape", name);
    return found;
  }

  find(name) {
    return this.tensors.get(`model.${name}`) ?? this.tensors.get(name);
  }

  linear(name, inputs, outputs) {
    return { weight: this.get(`${name}.weight`, [outputs, inputs]), bias: this.find(`${name}.bias`) };
  }

  embedding(stack) {
    const { decoder_vocab_size, vocab_size, d_model } = this.config;
    const size = stack === "encoder" ? vocab_size : (decoder_vocab_size ?? vocab_size);
    const owner = this.config.share_encoder_decoder_embeddings ? "encoder" : stack;
    return this.get(`${owner}.embed_tokens.weight`, [size, d_model]);
  }

  /** §3.4: with `tie_word_embeddings`, the target embedding is the weight of the generation head, too. */
  head() {
    const bias = this.get("lm_head.bias");
    return { weight: this.config.tie_word_embeddings ? this.embedding("decoder") : this.get("lm_head.weight"), bias };
  }
}
