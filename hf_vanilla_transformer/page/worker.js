/* Opens a model and answers, away from the page's own thread. client.js has the calls. */

import { VanillaTransformer } from "./model.js";
import { openFolder, openUrl, taskOf } from "./weights.js";

let opened; // {config, generationConfig, tensors, tokenizers, model}

const withPiece = (one) => ({ ...one, piece: opened.tokenizers.target.piece(one.id) });

/** Ids with `padding` more that are hidden, and the mask that hides them. */
function padded(ids, { padding = 0 }) {
  const more = Array.from({ length: padding }, () => opened.config.pad_token_id ?? 0);
  return [[...ids, ...more], [...ids.map(() => 1), ...more.map(() => 0)]];
}

export const calls = {
  async open(filesOrUrl, onProgress) {
    const found = await (typeof filesOrUrl === "string" ? openUrl(filesOrUrl, onProgress) : openFolder(filesOrUrl));
    opened = { ...found, model: new VanillaTransformer(found.config, found.tensors) };
    const { config, generationConfig, tensors } = opened;
    const labels = Object.keys(config.id2label ?? {}).sort((a, b) => a - b).map((key) => config.id2label[key]);
    const parameters = [...tensors.values()].reduce((sum, { data }) => sum + data.length, 0);
    return { config, generationConfig, task: taskOf(config), labels, parameters };
  },

  encodeText(text) {
    const { config, tokenizers } = opened;
    const limit = taskOf(config) === "translation" ? Infinity : tokenizers.source.maxLength;
    return { text, ...tokenizers.source.encode(text, Math.min(limit, config.max_position_embeddings)) };
  },

  classify(text, options = {}) {
    const source = calls.encodeText(text);
    const trace = options.trace ? new Map() : undefined;
    const [ids, mask] = padded(source.ids, options);
    return { source, ...opened.model.classify(ids, { ...options, mask, trace }) };
  },

  translate(text, options = {}) {
    const source = calls.encodeText(text);
    const { num_beams, length_penalty, early_stopping, max_length, max_new_tokens } = opened.generationConfig;
    const own = { beams: num_beams ?? 1, lengthPenalty: length_penalty ?? 1, earlyStopping: early_stopping ?? false };
    own.maxLength = max_new_tokens ? max_new_tokens + 1 : (max_length ?? Infinity);
    const [sourceIds, mask] = padded(source.ids, options);
    const settings = { ...own, ...options, mask, trace: options.trace ? new Map() : undefined };
    const nothing = { ids: [], score: 0, steps: [], tree: [], trace: settings.trace };
    const found = source.isEmpty ? nothing : opened.model.translate(sourceIds, settings);
    const { ids, steps, tree, ...rest } = found;
    const { target } = opened.tokenizers;
    return {
      ...{ source, ids, ...rest, text: target.decode(ids), pieces: ids.map((id) => target.piece(id)) },
      steps: steps.map((step) => ({
        ...{ token: step.token, piece: target.piece(step.token) },
        ...{ best: step.best.map(withPiece), lens: step.lens.map((layer) => layer.map(withPiece)) },
      })),
      tree: tree.map(withPiece),
    };
  },

  async trainCopyTask(options, onUpdate) {
    const { trainCopyTask } = await import("./copy_task.js");
    for (const update of trainCopyTask(options)) onUpdate(update);
  },

  piece: (id, side = "target") => opened.tokenizers[side].piece(id),

  weight: (name) => opened.tensors.get(name) ?? null,
};

globalThis.onmessage = async ({ data: { number, call, values } }) => {
  const progress = (state) => postMessage({ number, progress: state });
  try {
    postMessage({ number, result: await calls[call](...values, progress) });
  } catch ({ message, code, detail }) {
    postMessage({ number, error: { message, code, detail } });
  }
};
