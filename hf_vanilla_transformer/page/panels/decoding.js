/* Writing as a film: step by step, the cache, the next tokens, greedy beside beams, a token that the reader overrules. */

import { bars, button, chips, choice, controls, figure, grid, heading, largestOf, legend, make, note, number, paint, part, percent, player, slider, svg, table } from "../draw.js";
import { needs } from "../frame.js";
import { LINES } from "../lines.js";
import { attention, sourceTokens } from "../trace.js";

export const code = ["cache", "logits", "logP", "greedy", "beams"];

export function render(root, context) {
  const { run, task, state } = context;
  if (task !== "translation") return root.append(needs("translation", context));
  if (state.words !== run.words) Object.assign(state, { words: run.words, forced: {}, film: run, step: 0, beams: null });
  root.append(film(context), beams(context));
}

function film(context) {
  const { w, state, run } = context;
  const { film, forced } = state;
  const source = sourceTokens(context);
  const last = film.steps.length - 1;
  state.step = Math.min(state.step, last);
  const cross = attention({ ...context, run: film }, "cross", context.config.decoder_layers - 1);
  // What each step looks at, the mean of the heads in the last layer.
  const looks = film.steps.map((_, step) => source.map((_, key) => cross.meanWeight(step, key)));
  const keys = film.trace.get(`decoder.steps.${last}.layers.0.self_attention.key`);
  const [heads, , width] = keys.shape;
  const most = largestOf(keys.data);
  const keyAt = (row, column) => part(keys, Math.floor(row / width), column)[row % width];

  const sourceChips = chips(source, { label: w("decoding.source") });
  const pieces = [context.startPiece, ...film.pieces];
  const written = chips(pieces, { pick: (place) => move(Math.max(0, place - 1)), label: w("decoding.written") });
  const next = make("div");
  const cache = grid({
    ...{ rows: heads * width, columns: last + 1, cell: 26, cellHeight: 2, max: most, label: w("decoding.cache"), columnLabels: pieces.slice(0, -1) },
    ...{ rowAxis: "H · d_k" },
    value: () => null,
    hint: (row, column) =>
      column <= state.step && {
        title: `k(${pieces[column]})[${row}] = ${number(keyAt(row, column))}`,
        lines: [w(column === state.step ? "decoding.new" : "decoding.kept")],
        code: LINES.cache,
      },
  });
  const status = make("p", { className: "sum", role: "status" });

  /** Show one step. Only colours and bars change: scrubbing is smooth. */
  function move(step) {
    state.step = step;
    control.set(step + 1);
    source.forEach((_, place) => paint(sourceChips.children[place], looks[step][place]));
    [...written.children].forEach((chip, place) => {
      chip.classList.toggle("changed", place - 1 in forced);
      chip.classList.toggle("chosen", place === step + 1);
      chip.classList.toggle("future", place > step + 1);
      chip.setAttribute("aria-pressed", place === step + 1);
    });
    cache.update({ chosen: [null, step], value: (row, column) => (column <= step ? keyAt(row, column) : null) });
    const { best, token, piece } = film.steps[step];
    status.textContent = w("decoding.step", { step: step + 1, count: last + 1, piece });
    const list = best.map(({ id, p, piece: name }) => ({
      ...{ label: name, value: p, text: percent(p), isBest: id === token },
      pick: id === token ? null : () => overrule(step, id),
      hint: { title: `P(${name}) = ${number(p)}`, lines: [w("decoding.overrule.hint")], code: LINES.logits },
    }));
    const others = Math.max(0, 1 - best.reduce((sum, { p }) => sum + p, 0));
    list.push({ label: w("decoding.others"), value: others, text: percent(others) });
    next.replaceChildren(bars(list, { label: w("decoding.next") }));
  }
  async function overrule(step, id) {
    // What came after the new token is the model's again.
    const before = Object.fromEntries(film.ids.slice(0, step).map((one, place) => [place, one]));
    const answer = await context.answer(run.words, { trace: true, forced: { ...before, [step]: id } });
    const kept = Object.fromEntries(Object.entries(forced).filter(([place]) => place < step));
    Object.assign(state, { film: answer, forced: { ...kept, [step]: id } });
    context.refresh();
  }
  const play = player(w, 900, last + 1, () => state.step, move);
  const control = slider(w("step"), { min: 1, max: last + 1, value: 1 }, (step) => move(step - 1));
  const undo = button(w("decoding.undo"), () => {
    Object.assign(state, { film: run, forced: {} });
    context.refresh();
  });
  const change = w("decoding.forced", { before: run.text, after: film.text });
  const left = make(
    "div",
    {},
    heading(w("decoding.source")),
    sourceChips,
    legend("weights", 1),
    heading(w("decoding.written")),
    written,
    Object.keys(forced).length > 0 && make("p", { className: "note" }, `${change} `, undo),
    heading(w("decoding.cache")),
    note(w("decoding.cache.note")),
    cache,
  );
  const right = make("div", {}, heading(w("decoding.next")), next, note(w("decoding.overrule")));
  const result = figure(w("decoding.film"), `(T) = (${last + 1})`, controls(play, control), status, make("div", { className: "pair" }, left, right));
  move(state.step);
  return result;
}

/** Greedy search beside beams, as a tree, and what the length penalty makes of the finished ones. */
function beams(context) {
  const { w, state, run, model } = context;
  state.count ??= Math.max(2, model.generationConfig.num_beams ?? 4);
  state.penalty ??= model.generationConfig.length_penalty ?? 1;
  const body = make("div", {}, note(w("decoding.searching")));
  const search = async () => {
    state.beams = await context.answer(run.words, { beams: state.count, lengthPenalty: state.penalty });
    if (body.isConnected) show();
  };
  const show = () => {
    const lines = make("div");
    const rank = (penalty) => {
      const rowOf = (name, text, logP, length) => {
        const cells = [name, text, number(logP), length, number(logP / length ** penalty)];
        const isBest = name === 1;
        return make("tr", { className: isBest ? "best" : "" }, ...cells.map((text, column) => make("td", { className: column === 1 ? "" : "value", text })));
      };
      const rows = finished(state.beams, penalty).map(({ text, score, length }, place) => rowOf(place + 1, text, score, length));
      rows.push(rowOf(w("decoding.greedy"), run.pieces.join(" "), run.score, run.ids.length));
      const titles = ["rank", "sentence", "logp", "length", "final"].map((name) => w(`decoding.${name}`));
      lines.replaceChildren(table(w("decoding.finished"), titles, rows, "sentences"));
    };
    const setPenalty = (value) => rank((state.penalty = value));
    const penalty = { min: 0, max: 2, step: 0.1, value: state.penalty };
    const picture = tree(state.beams, context, body.clientWidth < 500 ? 60 : 76);
    body.replaceChildren(
      make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": w("decoding.tree") }, picture),
      note(`${w("decoding.tree.note")} ${picture.querySelector(".greedy") ? w("decoding.tree.greedy") : ""}`),
      controls(slider(w("decoding.penalty"), penalty, setPenalty, (value) => value.toFixed(1))),
      lines,
      note(w("decoding.penalty.note")),
    );
    rank(state.penalty);
  };
  const counts = choice(w("decoding.beams"), [2, 3, 4, 5, 8].map((one) => [one, String(one)]), state.count, (count) => {
    Object.assign(state, { count, beams: null });
    context.refresh();
  });
  setTimeout(state.beams ? show : search);
  return figure(w("decoding.search"), "", note(w("decoding.search.note")), controls(counts), body);
}

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

/** The kept and finished candidates, a row for each step; what the search chose is blue, what is finished is bold. */
function tree({ tree: nodes, ids }, { w, run }, wide) {
  const [high, boxWidth, boxHeight] = [56, wide - 5, 36];
  const shown = new Map();
  const counts = [];
  nodes.forEach((node, place) => {
    if (!node.kept && !node.finished) return;
    counts[node.step] ??= 0;
    shown.set(place, { x: 18 + counts[node.step]++ * wide, y: 2 + node.step * high });
  });
  const [width, height] = [18 + Math.max(...counts) * wide, counts.length * high - 16];
  const root = svg("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": w("decoding.tree") });
  const isPrefix = (path, list) => path.every(({ id }, step) => id === list[step]);
  const [lines, boxes] = [svg("g"), svg("g")];
  for (const step of counts.keys()) lines.append(svg("text", { x: 7, y: 24 + step * high, class: "pale", text: step + 1 }));
  for (const [place, { x, y }] of shown) {
    const node = nodes[place];
    const path = pathOf(nodes, place);
    const kind = isPrefix(path, ids) ? "chosen" : isPrefix(path, run.ids) ? "greedy" : "";
    const from = shown.get(node.parent);
    const [middle, gap] = [x + boxWidth / 2, high - boxHeight];
    if (from) lines.append(svg("path", { class: kind, d: `M${from.x + boxWidth / 2},${y - gap} c0,${gap / 2} ${x - from.x},${gap / 2} ${x - from.x},${gap}` }));
    const title = svg("title", { text: `${node.piece}: Σ log p = ${number(node.score)}` });
    const box = svg("rect", { x, y, width: boxWidth, height: boxHeight, rx: 5 });
    const squeezed = 7 * node.piece.length > boxWidth ? { textLength: boxWidth - 8, lengthAdjust: "spacingAndGlyphs" } : {};
    const words = svg("text", { x: middle, y: y + 16, text: node.piece, ...squeezed });
    const score = svg("text", { x: middle, y: y + 30, class: "score", text: number(node.score) });
    boxes.append(svg("g", { class: `${kind} ${node.finished ? "finished" : ""}` }, title, box, words, score));
  }
  root.append(lines, boxes);
  return root;
}
