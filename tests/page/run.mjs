/* Opens models' folders as the page does, and answers: node run.mjs JOBS.json NUMBERS.bin

A job is {folder, asks: [{call, values}]}: a folder or its address; `call` is one of the worker's, or one of the model's
that takes ids. Prints the answers as JSON; the numbers of tensors go to the other file, in float32. */

import { openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { VanillaTransformer } from "../../hf_vanilla_transformer/page/model.js";
import { openFolder, openUrl } from "../../hf_vanilla_transformer/page/weights.js";
import { en, ko } from "../../hf_vanilla_transformer/page/words/start.js";
import { calls } from "../../hf_vanilla_transformer/page/worker.js";

const [, , jobsFile, numbersFile] = process.argv;
const numbers = openSync(numbersFile, "w");
let written = 0;

function place(data) {
  const floats = Float32Array.from(data);
  writeSync(numbers, new Uint8Array(floats.buffer));
  written += floats.length;
  return written - floats.length;
}

function plain(key, value) {
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Float32Array) return { length: value.length, begin: place(value) };
  return value;
}

function filesOf(folder) {
  const names = readdirSync(folder, { recursive: true }).filter((name) => /\.(json|safetensors)$/.test(name));
  return new Map(names.map((name) => [name, new Blob([readFileSync(join(folder, name))])]));
}

async function answer(folder, asks) {
  const isAddress = folder.startsWith("http");
  const files = isAddress ? folder : filesOf(folder);
  const loaded = {};
  const opened = await calls.open(files, (one) => (loaded[one.file] = one));
  const found = await (isAddress ? openUrl : openFolder)(files);
  const model = new VanillaTransformer(found.config, found.tensors);
  const answers = asks.map(({ call, values: [input, options = {}] }) => {
    if (call === "decode") return found.tokenizers.target.decode(input);
    if (typeof input === "string") return calls[call](input, options);
    return model[call](input, { ...options, trace: options.trace ? new Map() : undefined });
  });
  return { opened, loaded, answers };
}

const results = [];
for (const { folder, asks } of JSON.parse(readFileSync(jobsFile))) {
  try {
    results.push(await answer(folder, asks));
  } catch (error) {
    const { code, detail } = error;
    if (!code) throw error;
    const [english, korean] = [en, ko].map((sentences) => sentences[code].replace("{detail}", () => detail));
    results.push({ error: { code, en: english, ko: korean } });
  }
}
process.stdout.write(JSON.stringify(results, plain));
