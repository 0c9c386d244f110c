/* Greedy and beam search, with the results of transformers' `generate`. */

import { largest, linear, logSoftmax } from "./numbers.js";

const BEST = 10; // tokens that a step lists

/** Write a target for an encoded source, {source, isToken}.

Options:
  beams: 1 is greedy search.
  lengthPenalty, earlyStopping: of beams, as in `generate`.
  maxLength: most target tokens, the start token included.
  forced: {step: id}, tokens that the reader chose; the search continues from them.
  trace: a Map to fill with the tensors of every step.
  changes: what is switched off.

Returns {ids, score, steps, tree, trace}:
  ids: the target without the start token, with the end token if there is one.
  score: the log-probability; with beams divided by length ** lengthPenalty.
  steps: for each token {token, best: [{id, p}], lens: [[{id, p}]]}; `lens` has, with a trace, the best next tokens
    after each decoder layer, as if it were the last.
  tree: with beams, all candidates {step, parent, id, score, kept, finished, final}; `parent` is a place in this list
    or -1, `score` the log-probability so far, `final` the score of a finished one. */
export function search(model, encoded, options) {
  const { beams = 1, forced = {}, maxLength = Infinity } = options;
  const settings = { ...options, forced, limit: Math.min(maxLength, model.maxTargetPositions) };
  if (beams === 1) return { ...greedy(model, encoded, settings), tree: [] };
  // What the search found is written once more, for the steps and the trace of that one target.
  const found = beamSearch(model, encoded, settings);
  const again = greedy(model, encoded, { ...settings, forced: found.ids, limit: found.ids.length + 1 });
  return { ...again, ...found };
}

/** The decoder's next pass: what each layer wrote for the last of `written`, and the output. */
function nextStates(model, encoded, written, caches, options) {
  const name = `decoder.steps.${written.length - 1}`;
  // Without the causal mask, earlier tokens attend to later ones, so nothing in a cache is right.
  const isCausal = options.changes?.causalMask !== false;
  const [ids, past] = isCausal ? [written.slice(-1), caches] : [written, model.newCaches()];
  return model.forwardDecoder(ids, encoded, past, options, name);
}

/** Logits of the next token, (V,), from hidden states (L, D). */
function nextLogits(model, { shape: [length, width], data }) {
  return linear({ shape: [1, width], data: data.subarray((length - 1) * width) }, model.lmHead).data;
}

function bestTokens(logP) {
  return largest(logP, BEST).map((id) => ({ id, p: Math.exp(logP[id]) }));
}

function greedy(model, encoded, options) {
  const { forced, limit, trace } = options;
  const written = [model.config.decoder_start_token_id];
  const caches = model.newCaches();
  const steps = [];
  let score = 0;
  while (written.length < limit) {
    const step = steps.length;
    const { states, output } = nextStates(model, encoded, written, caches, options);
    const logits = nextLogits(model, output);
    trace?.set(`decoder.steps.${step}.logits`, { shape: [logits.length], axes: "V", data: logits });
    const logP = logSoftmax(logits);
    const best = bestTokens(logP);
    const token = forced[step] ?? best[0].id;
    const earlier = states.slice(0, -1).map((state) => model.decoder.norm(state));
    const lens = trace ? [...earlier.map((state) => bestTokens(logSoftmax(nextLogits(model, state)))), best] : [];
    steps.push({ token, best, lens });
    written.push(token);
    score += logP[token];
    if (model.ends.includes(token)) break;
  }
  return { ids: written.slice(1), score, steps, trace };
}

function beamSearch(model, encoded, { beams, lengthPenalty = 1, earlyStopping = false, limit, forced, changes }) {
  // Enough candidates that `beams` of them go on even if all others end.
  const count = Math.max(2, 1 + model.ends.length) * beams;
  const tree = [];
  const start = [model.config.decoder_start_token_id];
  let running = [{ place: -1, written: start, score: 0, caches: model.newCaches() }];
  let finished = [];
  for (let length = 1; running.length; length++) {
    const candidates = running.flatMap((beam) => {
      const { output } = nextStates(model, encoded, beam.written, beam.caches, { changes });
      const logP = logSoftmax(nextLogits(model, output));
      const ids = forced[length - 1] === undefined ? largest(logP, count) : [forced[length - 1]];
      return ids.map((id) => ({ beam, id, score: beam.score + logP[id] }));
    });
    candidates.sort((a, b) => b.score - a.score).splice(count);
    const going = [];
    candidates.forEach(({ beam, id, score }, rank) => {
      const written = [...beam.written, id];
      const ends = written.length >= limit || model.ends.includes(id);
      const node = { step: length - 1, parent: beam.place, id, score, kept: false, finished: ends && rank < beams };
      if (node.finished) finished.push({ written, score: (node.final = score / length ** lengthPenalty) });
      if (!ends && going.length < beams) {
        node.kept = true;
        going.push({ place: tree.length, written, score, caches: copyOf(beam.caches) });
      }
      tree.push(node);
    });
    running = going;
    finished = finished.sort((a, b) => b.score - a.score).slice(0, beams);
    if (finished.length === beams && running.length) {
      const longest = earlyStopping === "never" && lengthPenalty > 0 ? limit - 1 : length;
      const canImprove = running[0].score / longest ** lengthPenalty > finished.at(-1).score;
      if (earlyStopping === true || !canImprove) break;
    }
  }
  const [{ written, score }] = finished;
  return { ids: written.slice(1), score, tree };
}

/** Caches for one more beam; keys and values themselves are shared. */
function copyOf(caches) {
  return caches.map(({ self, cross }) => ({ self: { keys: [...self.keys], values: [...self.values] }, cross }));
}
