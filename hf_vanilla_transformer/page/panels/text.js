/* Text, what the normaliser changed, pieces, ids, rows of the embedding table, positions. */

import { button, chips, controls, figure, grid, largestOf, legend, make, note, number, part, plot, slider, titledStripe } from "../draw.js";
import { LINES } from "../lines.js";
import { sinusoid } from "../model.js";
import { sourceTokens } from "../trace.js";

/** Which characters of both texts are not in their longest common subsequence. */
export function changes(before, after) {
  const [a, b] = [Array.from(before), Array.from(after)];
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  const result = { before: [], after: [] };
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      result.before.push([a[i++], false]);
      result.after.push([b[j++], false]);
    } else if (j >= b.length || (i < a.length && lengths[i + 1][j] >= lengths[i][j + 1])) result.before.push([a[i++], true]);
    else result.after.push([b[j++], true]);
  }
  return result;
}

/** Sines and cosines of one position. */
const curvesOf = (row) => [
  { data: row.filter((_, i) => i % 2 === 0) },
  { data: row.filter((_, i) => i % 2 === 1), tone: "minus", dashed: true },
];

const visible = (character) => (/\s/.test(character) ? "␣" : character);
const marked = (characters) =>
  make("span", { className: "characters" }, ...characters.map(([one, isChanged]) => make(isChanged ? "mark" : "span", { text: visible(one) })));

export const code = ["scale", "rows", "sinusoid", "sinCos", "positions"];

export function render(root, context) {
  const { w, run, config, state, refresh, setText } = context;
  const { text, normalized, ids } = run.source;
  const pieces = sourceTokens(context);
  const D = config.d_model;
  const scale = config.scale_embedding ? Math.sqrt(D) : 1;
  state.token = Math.min(state.token ?? 0, pieces.length - 1);

  const { before, after } = changes(text.slice(0, 400), normalized.slice(0, 400));
  const isChanged = [...before, ...after].some(([, changed]) => changed);
  const example = "  최 고 다 !!  ﬁ ½ Ａ";
  const row = (name, characters) => make("tr", {}, make("th", { text: w(name), scope: "row" }), make("td", {}, marked(characters)));
  root.append(
    figure(
      w("text.normalised"),
      "",
      make("div", { className: "scroll" }, make("table", {}, row("text.before", before), row("text.after", after))),
      isChanged ? note(w("text.changed")) : make("p", { className: "note" }, `${w("text.same")} `, button(example, () => setText(example), { className: "spaced" })),
    ),
  );

  const tokens = chips(pieces.map((piece, place) => `${piece} · ${ids[place] ?? ""}`), {
    ...{ chosen: state.token, label: w("text.pieces") },
    pick: (place) => {
      state.token = place;
      refresh();
    },
  });
  root.append(figure(w("text.pieces"), `(S) = (${pieces.length})`, tokens, note(w("text.pieces.note", { count: config.vocab_size }))));

  const vector = (name) => part(run.trace.get(`encoder.embedding.${name}`), state.token);
  const max = Math.max(...["scaled", "positions", "output"].map((name) => largestOf(vector(name))));
  const line = (title, name, symbol, code) => titledStripe(title, { data: vector(name), name: symbol, code, max });
  root.append(
    figure(
      w("text.vector", { piece: pieces[state.token] }),
      `(D) = (${D})`,
      ...line(w("text.row", { id: ids[state.token] ?? "" }), "rows", "E", LINES.rows),
      ...line(scale === 1 ? w("text.unscaled") : w("text.scaled", { scale: number(scale) }), "scaled", "E·√d", LINES.scale),
      ...line(w("text.position", { place: state.token }), "positions", "PE", LINES.sinCos),
      ...line(w("text.output"), "output", "x", LINES.positions),
      legend("signed", max),
    ),
  );
  root.append(positions(context, pieces));
}

/** The slider over positions, or what the model has in place of the sinusoid. */
function positions({ w, run, config, state }, pieces) {
  const { d_model: D, position_embedding_type: type, position_offset: offset } = config;
  if (type === "none") return figure(w("text.waves"), "", note(w("text.none")));
  const isLearned = type === "learned";
  const count = isLearned ? pieces.length : Math.min(config.max_position_embeddings + offset, 128);
  const table = isLearned
    ? Array.from({ length: count }, (_, place) => part(run.trace.get("encoder.embedding.positions"), place))
    : Array.from({ length: count }, (_, place) => sinusoid(place, D));
  state.position = Math.min(state.position ?? 5, count - 1);
  const wave = plot({
    ...{ curves: curvesOf(table[state.position]), high: isLearned ? undefined : 1, low: isLearned ? undefined : -1 },
    ...{ label: w("text.waves"), x: w("text.dimension"), y: "PE(p)" },
  });
  const tick = count > 32 ? 16 : 2;
  const picture = grid({
    ...{ rows: count, columns: D, cell: 8, cellHeight: Math.max(2, Math.min(14, 260 / count)), label: w("text.waves") },
    ...{ chosen: [state.position, null], columnAxis: w("axis.dimension", { last: D - 1 }), rowAxis: w("axis.position") },
    rowLabels: table.map((_, place) => (place % tick ? " " : String(place))),
    value: (place, column) => table[place][column],
    hint: (place, column) => ({ title: `PE(${place}, ${column}) = ${number(table[place][column])}`, code: LINES.sinCos }),
    pick: (place) => {
      control.set(place);
      move(place);
    },
  });
  const move = (place) => {
    state.position = place;
    wave.update({ curves: curvesOf(table[place]) });
    picture.update({ chosen: [place, null] });
  };
  const control = slider(w("text.slider"), { min: 0, max: count - 1, value: state.position }, move);
  const words = isLearned ? w("text.learned") : `${w("text.waves.note")} ${offset ? w("text.offset", { offset }) : ""}`;
  return figure(w("text.waves"), `(P, D) = (${count}, ${D})`, note(words), controls(control), wave, note(w("text.curves")), picture);
}
