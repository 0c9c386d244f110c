/* Switch off a part, or swap two words: the answer, and how many of twenty kept sentences keep theirs. */

import { button, chips, choice, controls, figure, heading, make, note, numbered, percent } from "../draw.js";
import { KINDS, places } from "../trace.js";

const stackOf = (kind) => (kind === "encoder" ? "encoder" : "decoder");

/** The sentence with two of its words exchanged. */
const swapped = (words, [a, b]) => words.map((word, place) => (place === a ? words[b] : place === b ? words[a] : word)).join(" ");

export const code = ["sum", "residual", "positions", "mask"];

export function render(root, context) {
  const { w, state, task, run, refresh, outcome, certainty } = context;
  Object.assign(state, { kind: "encoder", layer: 0, head: 0, swap: [], switch: "head", ...state });
  if (state.words !== run.words) Object.assign(state, { words: run.words, swap: [], result: null });
  const all = places(context);
  const change = (values) => {
    Object.assign(state, values, { result: null });
    const { layers, heads } = all[state.kind];
    if (state.layer !== "all") state.layer = Math.min(state.layer, layers - 1);
    if (state.head !== "all") state.head = Math.min(state.head, heads - 1);
    refresh();
  };
  const everything = (list) => [...list, ["all", w("experiments.all")]];
  const switches = ["head", "residual", "positions", ...(task === "translation" ? ["causalMask"] : []), "paddingMask", "swap"];
  const choices = [choice(w("experiments.off"), switches.map((one) => [one, w(`experiments.${one}`)]), state.switch, (one) => change({ switch: one }))];
  if (state.switch === "head" || state.switch === "residual") {
    choices.push(choice(w("where"), Object.keys(all).map((kind) => [kind, w(`kind.${kind}`)]), state.kind, (kind) => change({ kind })));
    choices.push(choice(w("layer"), everything(numbered(all[state.kind].layers)), state.layer, (layer) => change({ layer })));
  }
  if (state.switch === "head") choices.push(choice(w("head"), everything(numbered(all[state.kind].heads)), state.head, (head) => change({ head })));

  const words = run.words.trim().split(/\s+/);
  const pick = (place) => {
    const swap = state.swap.includes(place) ? state.swap.filter((one) => one !== place) : [...state.swap, place].slice(-2);
    change({ swap });
  };
  const picker = state.switch === "swap" && chips(words, { pick, chosen: new Set(state.swap), label: w("experiments.swap.pick") });
  const canRun = state.switch !== "swap" || state.swap.length === 2;

  /** The options and the text of the experiment, for one sentence. */
  const experiment = (text, own) => {
    const place = { stack: stackOf(state.kind), sublayer: KINDS[state.kind], ...(state.layer !== "all" && { layer: state.layer }) };
    const one = {
      head: { changes: { heads: [{ ...place, ...(state.head !== "all" && { head: state.head }) }] } },
      residual: { changes: { residuals: [place] } },
      positions: { changes: { positions: false } },
      causalMask: { changes: { causalMask: false } },
      paddingMask: { changes: { paddingMask: false }, padding: 5 },
      swap: {},
    }[state.switch];
    if (state.switch !== "swap") return [text, one];
    const list = text.trim().split(/\s+/);
    return [swapped(list, own ? state.swap : [0, list.length - 1]), one];
  };
  const settings = { maxLength: 40 }; // for the kept sentences, which are short
  const result = make("div", { role: "status" });
  const tell = () => {
    if (!state.result) return;
    const { answer, same, done, changed } = state.result;
    const row = (name, one) => make("tr", {}, make("th", { scope: "row", text: w(name) }), make("td", { text: `${outcome(one)} ${certainty(one)}` }));
    const isSame = outcome(answer) === outcome(run);
    const share = done && w("experiments.share", { same, done, share: percent(same / done) });
    result.replaceChildren(
      make("table", {}, make("tbody", {}, row("experiments.before", run), row("experiments.after", answer))),
      make("p", { className: "sum", text: w(isSame ? "experiments.same" : "experiments.other") }),
      ...(share ? [make("p", { text: share })] : []),
      ...(changed.length ? [heading(w("experiments.changed"))] : []),
      ...changed.map(([before, after]) => note(`${before} → ${after || "∅"}`)),
    );
  };
  const start = async () => {
    go.disabled = true;
    const [text, options] = experiment(run.words, true);
    const mine = (state.result = { answer: await context.answer(text, options), same: 0, done: 0, changed: [] });
    tell();
    state.kept ??= {};
    for (const sentence of context.examples) {
      if (state.result !== mine || !result.isConnected) return;
      const before = (state.kept[sentence] ??= outcome(await context.answer(sentence, settings)));
      const [other, more] = experiment(sentence, false);
      const after = outcome(await context.answer(other, { ...settings, ...more }));
      mine.done++;
      if (before === after) mine.same++;
      else mine.changed.push([before, after]);
      tell();
    }
    go.disabled = false;
  };
  const go = button(w("experiments.run"), start, { className: "primary", disabled: !canRun });
  tell();
  root.append(
    figure(w("experiments.choose"), "", controls(...choices), note(w(`experiments.${state.switch}.note`)), picker, controls(go)),
    figure(w("experiments.result"), "", result, note(w("experiments.kept"))),
  );
}
