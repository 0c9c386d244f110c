/* The ten best next tokens after each decoder layer, and the embedding as the one table that reads and writes. */

import { chips, dot, figure, grid, largestOf, make, note, number, part, percent, table, titledStripe } from "../draw.js";
import { needs } from "../frame.js";
import { LINES } from "../lines.js";
import { sourceTokens, stackRow } from "../trace.js";

export const code = ["layer", "finalNorm", "logits", "tied"];

export function render(root, context) {
  const { w, run, task, state, refresh } = context;
  if (task !== "translation") return root.append(needs("translation", context));
  state.step = Math.min(state.step ?? 1, run.steps.length - 1);
  const pick = (step) => {
    state.step = step;
    refresh();
  };
  root.append(figure(w("lens.step"), "(T)", chips(run.pieces, { pick, chosen: state.step, label: w("lens.step") })), layers(context), embeddings(context));
}

function layers({ w, run, state, config }) {
  const { lens, token, piece } = run.steps[state.step];
  const rows = lens[0].map((_, rank) => {
    const cells = lens.map((list) => {
      const { id, piece, p } = list[rank];
      const chip = make("span", { className: `chip${id === token ? " chosen" : ""}`, text: piece });
      return make("td", {}, chip, make("small", { text: ` ${percent(p)}` }));
    });
    return make("tr", {}, make("td", { className: "value", text: rank + 1 }), ...cells);
  });
  const title = w("lens.layers", { step: state.step + 1, piece });
  const titles = [w("decoding.rank"), ...lens.map((_, layer) => w("layerOf", { layer: layer + 1 }))];
  return figure(title, `${lens.length} × (V) = (${config.decoder_vocab_size ?? config.vocab_size})`, note(w("lens.layers.note")), table(title, titles, rows, "lens"));
}

function embeddings(context) {
  const { w, run, config, state, model } = context;
  const { d_model: D, tie_word_embeddings: isTied, share_encoder_decoder_embeddings: isShared } = config;
  const body = make("div", {}, note(w("loading")));
  const name = isTied ? `model.${isShared ? "encoder" : "decoder"}.embed_tokens.weight` : "lm_head.weight";
  const load = async () => {
    state.head ??= await model.weight(name);
    state.bias ??= await model.weight("lm_head.bias");
    if (body.isConnected) show();
  };
  const show = () => {
    const hidden = stackRow(context, "decoder", "output", state.step);
    // Rows that are read as the source's tokens, then those that are the likeliest to be written.
    const { ids } = run.source;
    const source = isShared && isTied ? sourceTokens(context).slice(0, ids.length) : [];
    const read = source.map((piece, place) => ({ piece, id: ids[place], arrow: "→", side: "read", code: LINES.rows }));
    const { best } = run.steps[state.step];
    const rows = [...read, ...best.map(({ id, piece }) => ({ piece, id, arrow: "←", side: "write", code: LINES.logits }))];
    const vectors = rows.map(({ id }) => part(state.head, id));
    const most = Math.max(...vectors.map(largestOf));
    body.replaceChildren(
      grid({
        ...{ rows: rows.length, columns: D, cell: 8, cellHeight: 18, max: most, label: w("lens.table") },
        ...{ rowLabels: rows.map(({ piece, arrow, id }) => `${arrow} ${piece} ${id}`), columnAxis: w("axis.dimension", { last: D - 1 }) },
        value: (row, column) => vectors[row][column],
        hint(row, column) {
          const { id, side, code } = rows[row];
          const logit = number(dot(vectors[row], hidden) + (state.bias?.data[id] ?? 0));
          const title = `E[${id}, ${column}] = ${number(vectors[row][column])}`;
          return { title, lines: [w(`lens.${side}`), `h · E[${id}] + b = ${logit}`], code };
        },
      }),
      ...titledStripe(w("lens.hidden"), { data: hidden, name: "h", code: LINES.finalNorm }),
    );
  };
  setTimeout(load);
  const words = w(isTied ? (isShared ? "lens.one" : "lens.two") : "lens.apart");
  return figure(w("lens.table"), `E (V, D) = (${config.decoder_vocab_size ?? config.vocab_size}, ${D})`, note(words), body);
}
