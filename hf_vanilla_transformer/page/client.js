/* The page's side of the worker: a model whose calls are promises, and the copy task. */

/** Trains in a worker of its own: onUpdate gets what copy_task.js yields. {done: a promise, stop()}. */
export function trainCopyTask(options, onUpdate) {
  const trainer = new Model();
  const done = trainer.ask("trainCopyTask", [options], onUpdate).finally(() => trainer.close());
  return { done, stop: () => trainer.close() };
}

export class Model {
  constructor() {
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.waiting = new Map();
    this.worker.onmessage = ({ data }) => this.receive(data);
  }

  /** `filesOrUrl`: Map(path -> Blob) or a folder's address; onProgress({file, loaded, total}), in bytes. */
  static async open(filesOrUrl, onProgress = () => {}) {
    const model = new Model();
    try {
      // config, generationConfig, task ("classification" or "translation"), labels, parameters
      return Object.assign(model, await model.ask("open", [filesOrUrl], onProgress));
    } catch (error) {
      model.close();
      throw error;
    }
  }

  /** {text, normalized, pieces, ids, isCut, isEmpty} */
  encodeText(text) {
    return this.ask("encodeText", [text]);
  }

  /** {source, logits, probabilities, trace}; options: trace (true for all tensors), changes, padding
  (how many hidden tokens follow the text). */
  classify(text, options = {}) {
    return this.ask("classify", [text, options]);
  }

  /** {source, ids, pieces, text, score, steps, tree, trace}, as in search.js; tokens also have their `piece`.

  Options: trace, changes, padding, forced, and beams, lengthPenalty, earlyStopping, maxLength, by default the model's
  own. Of generation_config.json nothing else is read but the ids of start and end. */
  translate(text, options = {}) {
    return this.ask("translate", [text, options]);
  }

  piece(id, side = "target") {
    return this.ask("piece", [id, side]);
  }

  /** A tensor {shape, data} of the state dict, or null. */
  weight(name) {
    return this.ask("weight", [name]);
  }

  close() {
    this.worker.terminate();
  }

  ask(call, values, onProgress) {
    const number = (this.asked = (this.asked ?? 0) + 1);
    return new Promise((resolve, reject) => {
      this.waiting.set(number, { resolve, reject, onProgress });
      this.worker.postMessage({ number, call, values });
    });
  }

  receive({ number, result, error, progress }) {
    const { resolve, reject, onProgress } = this.waiting.get(number);
    if (progress) return onProgress(progress);
    this.waiting.delete(number);
    return error ? reject(Object.assign(new Error(error.message), error)) : resolve(result);
  }
}
