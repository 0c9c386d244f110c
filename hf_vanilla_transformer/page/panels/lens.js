// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* The ten best next tokens after each decoder layer, and the embedding as the one table that reads and writes. */

import { bars, chips, dot, figure, grid, largestOf, legend, make, note, number, part, percent, plot, stripe } from "../draw.js";
import { needs } from "../frame.js";
import { LINES } from "../lines.js";
import { sourceTokens, stackRow } from "../trace.js";

export default {
  id: "lens",
  code: ["layer", "finalNorm", "logits", "tied"],
  render(root, context) {
    const { w, run, task, state, refresh } = context;
    if (task !== "translation") return root.append(needs("translation", context));
    state.step = Math.min(state.step ?? 1, run.steps.length - 1);
    const pick = (step) => {
      state.step = step;
      refresh();
    };
    root.append(figure(w("lens.step"), "(T)", chips(run.pieces, { pick, chosen: state.step, label: w("lens.step") })), this.layers(context), this.table(context));
  },

  layers({ w, run, state }) {
    const { lens, token, piece } = run.steps[state.step];
    const head = [w("decoding.rank"), ...lens.map((_, layer) => `${w("layer")} ${layer + 1}`)];
    const rows = lens[0].map((_, rank) => {
      const cells = lens.map((list) => {
        const one = list[rank];
        const cell = make("td", {}, make("span", { className: `chip${one.id === token ? " chosen" : ""}`, text: one.piece }), make("small", { text: ` ${percent(one.p)}` }));
        return cell;
      });
      return make("tr", {}, make("td", { className: "value", text: rank + 1 }), ...cells);
    });
    const table = make("table", { className: "lens" }, make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col", text })))), make("tbody", {}, ...rows));
    const chances = lens.map((list) => list.find(({ id }) => id === token)?.p ?? 0);
    return figure(
      w("lens.layers", { step: state.step + 1, piece }),
      `${lens.length} × (V)`,
      note(w("lens.layers.note")),
      make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": w("lens.layers", { step: state.step + 1, piece }) }, table),
      make("h4", { text: w("lens.chance", { piece }) }),
      bars(
        chances.map((p, layer) => ({ label: `${w("layer")} ${layer + 1}`, value: p, text: p ? percent(p) : w("lens.notTen"), isBest: layer === lens.length - 1 })),
        { label: w("lens.chance", { piece }) },
      ),
    );
  },

  table(context) {
    const { w, run, config, state, model } = context;
    const body = make("div", {}, note(w("loading")));
    const isTied = config.tie_word_embeddings;
    const one = config.share_encoder_decoder_embeddings ? "model.encoder.embed_tokens.weight" : "model.decoder.embed_tokens.weight";
    const load = async () => {
      state.head ??= isTied ? await model.weight(one) : await model.weight("lm_head.weight");
      state.bias ??= await model.weight("lm_head.bias");
      if (body.isConnected) show();
    };
    const show = () => {
      const D = config.d_model;
      const { best } = run.steps[state.step];
      const hidden = stackRow(context, "decoder", "output", state.step);
      const isShared = config.share_encoder_decoder_embeddings && isTied;
      // Rows that are read as the source's tokens, then those that are the likeliest to be written.
      const source = isShared ? sourceTokens(context).map((piece, place) => ({ piece, id: run.source.ids[place], side: "read" })) : [];
      const rows = [...source.filter(({ id }) => id !== undefined), ...best.map(({ id, piece }) => ({ id, piece, side: "write" }))];
      const vectors = rows.map(({ id }) => part(state.head, id));
      const most = Math.max(...vectors.map((row) => largestOf(row)));
      const logits = rows.map(({ id }, row) => dot(vectors[row], hidden) + (state.bias?.data[id] ?? 0));
      const sides = { read: "→", write: "←" };
      body.replaceChildren(
        grid({
          ...{ rows: rows.length, columns: D, cell: 8, cellHeight: 18, max: most, label: w("lens.table") },
          ...{ rowLabels: rows.map(({ piece, side, id }) => `${sides[side]} ${piece} ${id}`), columnAxis: w("axis.dimension", { d: D, last: D - 1 }) },
          value: (row, column) => vectors[row][column],
          hint: (row, column) => ({
            title: `E[${rows[row].id}, ${column}] = ${number(vectors[row][column])}`,
            lines: [w(`lens.${rows[row].side}`), `h · E[${rows[row].id}] + b = ${number(logits[row])}`],
            code: rows[row].side === "read" ? LINES.rows : LINES.logits,
          }),
        }),
        legend("signed", most, w),
        make("h4", { text: w("lens.hidden") }),
        stripe({ data: hidden, name: "h", label: w("lens.hidden"), code: LINES.finalNorm }),
        make("h4", { text: w("lens.logits") }),
        bars(
          best.map(({ piece, p, id }, place) => {
            const logit = logits[rows.length - best.length + place];
            return { label: piece, value: logit, text: number(logit), isBest: place === 0, hint: { title: `h · E[${id}] + b = ${number(logit)}`, lines: [`softmax → ${percent(p)}`], code: LINES.logits } };
          }),
          { max: largestOf(logits), label: w("lens.logits") },
        ),
      );
    };
    setTimeout(load);
    return figure(w("lens.table"), `E (V, D) = (${config.decoder_vocab_size ?? config.vocab_size}, ${config.d_model})`, note(w(isTied ? (config.share_encoder_decoder_embeddings ? "lens.one" : "lens.two") : "lens.apart")), body);
  },
};
