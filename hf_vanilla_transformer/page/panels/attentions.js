/* The three kinds of attention side by side: all heads and layers small, one of them large. */

import { button, colour, colourOf, figure, make, maskLegend, note, numbered } from "../draw.js";
import { attention, places, weightsGrid } from "../trace.js";

/** A head's weights without labels, a pixel for each. */
function miniature(view, head) {
  const [rows, columns] = [view.queries.length, view.keys.length];
  const canvas = make("canvas", { width: columns, height: rows });
  const pen = canvas.getContext("2d");
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      pen.fillStyle = view.hidden(row, column) ? colour("pale") : colourOf(view.weight(head, row, column), "weights");
      pen.fillRect(column, row, 1, 1);
    }
  return canvas;
}

export const code = ["source", "query", "key", "value", "scores", "mask", "softmax"];

export function render(root, context) {
  const { w, state, go, run } = context;
  const all = places(context);
  state.layer ??= 0;
  state.head ??= 0;
  const kinds = Object.keys(all);
  const clamp = (kind) => [Math.min(state.layer, all[kind].layers - 1), Math.min(state.head, all[kind].heads - 1)];
  const small = make("div", { className: "triple" });
  const large = make("div", { className: "triple" });
  const views = {};
  const view = (kind, layer) => (views[`${kind}${layer}`] ??= attention(context, kind, layer));
  const marks = [];

  for (const kind of kinds) {
    const { layers, heads } = all[kind];
    const titles = [w("head"), ...numbered(heads).map(([, one]) => one)];
    const rows = [make("div", { className: "row" }, ...titles.map((text) => make("span", { text })))];
    for (let layer = 0; layer < layers; layer++) {
      const cells = [];
      for (let head = 0; head < heads; head++) {
        const one = button("", () => choose(layer, head), { className: "miniature" });
        one.append(miniature(view(kind, layer), head));
        one.setAttribute("aria-label", `${w(`kind.${kind}`)}, ${w("layerOf", { layer: layer + 1 })}, ${w("head")} ${head + 1}`);
        cells.push(one);
        marks.push(() => {
          const [l, h] = clamp(kind);
          one.setAttribute("aria-pressed", l === layer && h === head);
        });
      }
      rows.push(make("div", { className: "row" }, make("span", { text: w("layerOf", { layer: layer + 1 }) }), ...cells));
    }
    const { queries, keys } = view(kind, 0);
    const letters = { encoder: "S, S", decoder: "T, T", cross: "T, S" }[kind];
    const shape = `${layers} × ${heads} (${letters}) = (${queries.length}, ${keys.length})`;
    small.append(figure(w(`kind.${kind}`), shape, note(w(`attentions.${kind}`)), make("div", { className: "miniatures" }, ...rows)));
  }

  function choose(layer, head) {
    Object.assign(state, { layer, head });
    showLarge();
  }
  function showLarge() {
    marks.forEach((mark) => mark());
    large.replaceChildren(
      ...kinds.map((kind) => {
        const [layer, head] = clamp(kind);
        const pick = (query, key) => go("head", { kind, layer, head, query, key });
        return figure(w(`kind.${kind}`), `${w("layerOf", { layer: layer + 1 })}, ${w("head")} ${head + 1}`, weightsGrid(view(kind, layer), w, head, { pick }));
      }),
    );
  }
  root.append(small, note(w("attentions.choose")), large, ...(run.pieces ? [maskLegend(w, ["causal"])] : []));
  showLarge();
}
