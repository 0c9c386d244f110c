// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* Writing as a film: step by step, the cache, the next tokens, greedy beside beams, a token that the reader overrules. */

import { bars, button, chips, choice, figure, grid, largestOf, legend, make, note, number, paint, part, percent, slider, svg } from "../draw.js";
import { needs } from "../frame.js";
import { LINES } from "../lines.js";
import { attention, sourceTokens } from "../trace.js";

let timer;

export default {
  id: "decoding",
  code: ["shift", "cache", "logits", "softmax"],
  render(root, context) {
    const { w, run, task, state } = context;
    clearInterval(timer);
    if (task !== "translation") return root.append(needs("translation", context));
    if (state.words !== run.words) Object.assign(state, { words: run.words, forced: {}, film: run, step: 0, beams: null });
    root.append(this.film(context), this.beams(context));
  },

  film(context) {
    const { w, state, run } = context;
    const film = state.film;
    const source = sourceTokens(context);
    const last = film.steps.length - 1;
    state.step = Math.min(state.step, last);
    const layer = context.config.decoder_layers - 1;
    const cross = attention({ ...context, run: film }, "cross", layer);
    // What each step looks at, the mean of the heads in the last layer.
    const looks = film.steps.map((_, step) => source.map((_, key) => cross.meanWeight(step, key)));
    const keys = film.trace.get(`decoder.steps.${last}.layers.0.self_attention.key`);
    const [heads, , width] = keys.shape;
    const most = largestOf(keys.data);
    const columns = film.steps.map((_, column) => Array.from({ length: heads * width }, (_, row) => part(keys, Math.floor(row / width), column)[row % width]));

    const sourceChips = chips(source, { label: w("decoding.source") });
    const written = make("div", { className: "chips", role: "group", "aria-label": w("decoding.written") });
    const pieces = [context.startPiece, ...film.pieces];
    const chosen = pieces.map((piece, place) => {
      const chip = button(piece, () => move(Math.max(0, place - 1)), { className: "chip" });
      chip.classList.toggle("changed", place > 0 && place - 1 in state.forced);
      return chip;
    });
    written.append(...chosen);
    const next = make("div");
    const cache = grid({
      ...{ rows: heads * width, columns: last + 1, cell: 26, cellHeight: 2, max: most, label: w("decoding.cache"), columnLabels: pieces.slice(0, -1) },
      ...{ rowAxis: "H · d_k" },
      value: (row, column) => (column <= state.step ? columns[column][row] : null),
      hint: (row, column) =>
        column <= state.step && {
          title: `k(${pieces[column]})[${row}] = ${number(columns[column][row])}`,
          lines: [w(column === state.step ? "decoding.new" : "decoding.kept")],
          code: LINES.cache,
        },
    });
    const status = make("p", { className: "sum", role: "status" });

    /** Show one step. Only colours and ten bars change, so that scrubbing is smooth. */
    function move(step) {
      state.step = step;
      control.set(step + 1);
      source.forEach((_, place) => paint(sourceChips.children[place], looks[step][place]));
      chosen.forEach((chip, place) => {
        chip.classList.toggle("chosen", place === step + 1);
        chip.classList.toggle("future", place > step + 1);
      });
      cache.update({ chosen: [null, step] });
      const { best, token, piece } = film.steps[step];
      status.textContent = w("decoding.step", { step: step + 1, count: last + 1, piece });
      next.replaceChildren(
        bars(
          best.map(({ id, p, piece: name }) => ({
            ...{ label: name, value: p, text: percent(p), isBest: id === token },
            pick: id === token ? null : () => overrule(step, id),
            hint: { title: `P(${name}) = ${number(p)}`, lines: [w("decoding.overrule.hint")], code: LINES.logits },
          })),
          { label: w("decoding.next") },
        ),
      );
    }
    async function overrule(step, id) {
      // What came after the new token is the model's again.
      const forced = Object.fromEntries(film.ids.slice(0, step).map((one, place) => [place, one]));
      const answer = await context.answer(run.words, { trace: true, forced: { ...forced, [step]: id } });
      const kept = Object.fromEntries(Object.entries(state.forced).filter(([place]) => place < step));
      Object.assign(state, { film: answer, forced: { ...kept, [step]: id } });
      context.refresh();
    }
    const toggle = () => {
      clearInterval(timer);
      state.isPlaying = !state.isPlaying;
      play.textContent = w(state.isPlaying ? "pause" : "play");
      if (!state.isPlaying) return;
      if (state.step === last) move(0);
      timer = setInterval(() => {
        if (!written.isConnected || state.step === last) return toggle();
        move(state.step + 1);
      }, 900);
    };
    state.isPlaying = false;
    const play = button(w("play"), toggle, { className: "primary" });
    const control = slider(w("decoding.slider"), { min: 1, max: last + 1, value: 1 }, (step) => move(step - 1));
    const controls = make(
      "div",
      { className: "controls" },
      play,
      button(w("back"), () => move(Math.max(0, state.step - 1))),
      button(w("forward"), () => move(Math.min(last, state.step + 1))),
      control,
    );
    const isForced = Object.keys(state.forced).length > 0;
    const undo = button(w("decoding.undo"), () => {
      Object.assign(state, { film: run, forced: {} });
      context.refresh();
    });
    const left = make(
      "div",
      {},
      make("h4", { text: w("decoding.source") }),
      sourceChips,
      legend("weights", 1, w),
      make("h4", { text: w("decoding.written") }),
      written,
      isForced && make("p", { className: "note" }, `${w("decoding.forced", { before: run.text, after: film.text })} `, undo),
      make("h4", { text: w("decoding.cache") }),
      note(w("decoding.cache.note")),
      cache,
      legend("signed", most, w),
    );
    const right = make("div", {}, make("h4", { text: w("decoding.next") }), next, note(w("decoding.overrule")));
    const result = figure(w("decoding.film"), `(T) = (${last + 1})`, controls, status, make("div", { className: "pair" }, left, right));
    move(state.step);
    return result;
  },

  /** Greedy search beside beams, as a tree, and what the length penalty makes of the finished ones. */
  beams(context) {
    const { w, state, run, model } = context;
    const own = model.generationConfig ?? {};
    state.count ??= Math.max(2, own.num_beams ?? 4);
    state.penalty ??= own.length_penalty ?? 1;
    const body = make("div");
    const search = async () => {
      const found = await context.answer(run.words, { beams: state.count, lengthPenalty: state.penalty });
      state.beams = { found, count: state.count, penalty: state.penalty, words: run.words };
      if (body.isConnected) show();
    };
    const show = () => {
      const { found } = state.beams;
      const lines = make("div", {});
      const rank = (penalty) => {
        const list = finished(found, penalty, context.startPiece);
        const greedy = run.score / run.ids.length ** penalty;
        const head = ["rank", "sentence", "logp", "length", "final"].map((name) => make("th", { scope: "col", text: w(`decoding.${name}`) }));
        const rows = list.map(({ text, score, length, final }, place) =>
          make(
            "tr",
            { className: place === 0 ? "best" : "" },
            ...[place + 1, text, number(score), length, number(final)].map((one, column) => make("td", { className: column === 1 ? "" : "value", text: one })),
          ),
        );
        const last = make("tr", {}, ...[w("decoding.greedy"), run.pieces.join(" "), number(run.score), run.ids.length, number(greedy)].map((text, column) => make("td", { className: column === 1 ? "" : "value", text })));
        lines.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows, last)));
      };
      const control = slider(w("decoding.penalty"), { min: 0, max: 2, step: 0.1, value: state.penalty }, (value) => {
        state.penalty = value;
        rank(value);
      }, (value) => value.toFixed(1));
      body.replaceChildren(
        make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": w("decoding.tree") }, tree(found, context)),
        note(w("decoding.tree.note")),
        make("div", { className: "controls" }, control),
        make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": w("decoding.finished") }, lines),
        note(w("decoding.penalty.note")),
      );
      rank(state.penalty);
    };
    const counts = choice(w("decoding.beams"), [2, 3, 4, 5, 8].map((one) => [one, String(one)]), state.count, (count) => {
      state.count = count;
      state.beams = null;
      context.refresh();
    });
    const isDone = state.beams && state.beams.count === state.count && state.beams.words === run.words;
    body.append(note(w("decoding.searching")));
    // After this panel is on the page.
    setTimeout(isDone ? show : search);
    return figure(w("decoding.search"), "", note(w("decoding.search.note")), make("div", { className: "controls" }, counts), body);
  },
};

/** The tokens up to a node of the tree. */
function pathOf(nodes, place) {
  const path = [];
  for (let at = place; at >= 0; at = nodes[at].parent) path.unshift(nodes[at]);
  return path;
}

/** The finished sentences by their scores under a length penalty. */
function finished({ tree: nodes }, penalty) {
  const list = nodes.flatMap((node, place) => {
    if (!node.finished) return [];
    const path = pathOf(nodes, place);
    const text = path.map(({ piece }) => piece).join(" ");
    return [{ text, score: node.score, length: path.length, final: node.score / path.length ** penalty }];
  });
  return list.sort((a, b) => b.final - a.final).slice(0, 8);
}

/** The kept and finished candidates, a column for each step; what the search chose is bold. */
function tree({ tree: nodes, ids }, { w, run }) {
  const [wide, high, size] = [124, 30, 104];
  const shown = new Map();
  const counts = [];
  nodes.forEach((node, place) => {
    if (!node.kept && !node.finished) return;
    counts[node.step] ??= 0;
    shown.set(place, { x: 8 + node.step * wide, y: 38 + counts[node.step]++ * high });
  });
  const [width, height] = [counts.length * wide + 20, Math.max(...counts) * high + 40];
  const root = svg("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": w("decoding.tree") });
  const isPrefix = (path, list) => path.every(({ id }, step) => id === list[step]);
  const [lines, boxes] = [svg("g"), svg("g")];
  for (let step = 0; step < counts.length; step++) lines.append(svg("text", { x: 12 + step * wide, y: 14, class: "pale", text: step + 1 }));
  for (const [place, { x, y }] of shown) {
    const node = nodes[place];
    const path = pathOf(nodes, place);
    const kind = isPrefix(path, ids) ? "chosen" : isPrefix(path, run.ids) ? "greedy" : "";
    const from = shown.get(node.parent);
    if (from) lines.append(svg("path", { class: kind, d: `M${from.x + size},${from.y} C${from.x + size + 12},${from.y} ${x - 12},${y} ${x},${y}` }));
    const label = node.piece.length > 9 ? `${node.piece.slice(0, 8)}…` : node.piece;
    const title = svg("title", { text: `${node.piece}: Σ log p = ${number(node.score)}` });
    const box = svg("rect", { x, y: y - 12, width: size, height: 24, rx: 5 });
    const words = svg("text", { x: x + 6, y: y + 4, text: label });
    const score = svg("text", { x: x + size - 4, y: y + 4, class: "score", text: number(node.score) });
    boxes.append(svg("g", { class: `${kind} ${node.finished ? "finished" : ""}` }, title, box, words, score));
  }
  root.append(lines, boxes);
  return root;
}
