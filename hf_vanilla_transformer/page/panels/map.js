/* Figure 1 of the paper as a map of the panels, and a tour of one answer through it. */

import { bars, bestOf, button, chips, controls, figure, grid, largestOf, make, maskLegend, note, number, percent, player, svg, table } from "../draw.js";
import { attention, readTokens, sourceTokens, weightsGrid } from "../trace.js";

/** Tokens that the decoder has read at the step of which the map shows the probabilities. */
const tokensOnMap = (context) => readTokens(context).slice(0, 4);

/** How wide a text is, in Latin letters. */
const widthOf = (text) => Array.from(text, (one) => (one > "\u1100" && one !== "▁" ? 1.8 : 1)).reduce((a, b) => a + b, 0);

/** Lines of at most `most` Latin letters. */
function wrap(tokens, most, lines) {
  const rows = [""];
  for (const token of tokens) {
    if (rows.at(-1) && widthOf(rows.at(-1)) + widthOf(token) + 1 > most) rows.push("");
    rows[rows.length - 1] += `${rows.at(-1) ? " " : ""}${token}`;
  }
  return rows.length > lines ? [...rows.slice(0, lines - 1), `${rows[lines - 1].slice(0, most - 2)} …`] : rows;
}

/** The drawing of the walk-through's map.svg, with this text in it. `here` is a panel, `lit` names of parts. */
export function drawMap(context, { here, lit = [] } = {}) {
  const { w, run, panels, task } = context;
  const root = svg("svg", { class: "map", viewBox: "0 -66 400 620", role: "group", "aria-label": w("map.label") });
  const place = (id) => panels.indexOf(id) + 1;
  const isLit = (name) => (lit.includes(name) ? " lit" : "");

  function words(x, y, text, kind = "") {
    root.append(svg("text", { class: kind, x, y: y + 4.6, text }));
  }
  function arrow(name, ...points) {
    const [[x0, y0], [x1, y1]] = points.slice(-2);
    const length = Math.hypot(x1 - x0, y1 - y0);
    const [dx, dy] = [(x1 - x0) / length, (y1 - y0) / length];
    const corners = [[x1, y1], ...[1, -1].map((s) => [x1 - 7 * dx + 4 * s * dy, y1 - 7 * dy - 4 * s * dx])];
    const line = svg("polyline", { points: points.join(" ") });
    root.append(svg("g", { class: isLit(name) }, line, svg("polygon", { points: corners.join(" ") })));
  }
  function part(name, x, y, text, kind, panel, height = 30, state = null) {
    const group = svg("a", { href: `#${panel}`, class: `${isLit(name)}${here === panel || (here === "attentions" && panel === "head") ? " here" : ""}` });
    const title = `${text}: ${place(panel)}. ${w(`${panel}.title`)}`;
    group.setAttribute("aria-label", title);
    group.append(
      svg("rect", { class: kind, x, y, width: 160, height, rx: 6 }),
      svg("text", { x: x + 80, y: y + height / 2 + 4.6, text }),
      svg("circle", { cx: x + 160, cy: y, r: 9 }),
      svg("text", { x: x + 160, y: y + 4.3, text: place(panel), "font-size": 11 }),
    );
    if (state) {
      group.addEventListener("click", (event) => {
        event.preventDefault();
        context.go(panel, state);
      });
    }
    root.append(group);
  }
  function stack(x, top, name, count, layers) {
    root.append(svg("rect", { class: "frame", x: x - 12, y: top, width: 184, height: 384 - top, rx: 6 }));
    root.append(svg("text", { class: "pale start", x: x - 4, y: top + 17.3, text: w(name, { count }) }));
    const side = x < 200 ? "encoder" : "decoder";
    arrow(`${side}.in`, [x + 80, 398], [x + 80, 378]);
    layers.forEach(([name, text, kind, panel, state], index) => {
      const y = 346 - 66 * index;
      part(`${side}.${name}`, x, y, w(text), kind, panel, 30, state);
      part(`${side}.norm${index}`, x, y - 28, w("map.norm"), "norm", "layers", 22, { stack: side });
      arrow(`${side}.up`, [x + 80, y], [x + 80, y - 6]);
      if (index) arrow(`${side}.up`, [x + 80, y + 38], [x + 80, y + 30]);
    });
  }

  const source = sourceTokens(context);
  const isTranslation = task === "translation";
  const target = tokensOnMap(context);
  for (const [x, side] of [[20, "encoder"], [220, "decoder"]]) {
    part(`${side}.tokens`, x, 448, w(`map.${side}.tokens`), "plain", "text");
    part(`${side}.embedding`, x, 398, w("map.embedding"), "embedding", "text");
    arrow(`${side}.in`, [x + 80, 448], [x + 80, 430]);
    const rows = wrap(side === "encoder" ? source : target, 22, 3);
    rows.forEach((text, index) => words(x + 80, 494 + 18 * index, text, "token"));
  }
  const { encoder_layers: N, decoder_layers: M } = context.config;
  const feedForward = (side) => ["feed_forward", "layers.feed_forward", "feed_forward", "layers", { stack: side }];
  stack(20, 226, "map.encoder", N, [["self", "layers.self_attention", "attention", "head", { kind: "encoder" }], feedForward("encoder")]);
  stack(220, 160, "map.decoder", M, [
    ["self", "map.masked", "attention", "head", { kind: "decoder" }],
    ["cross", "layers.cross_attention", "attention", "attentions", null],
    feedForward("decoder"),
  ]);
  arrow("memory", [100, 226], [100, 204], [200, 204], [200, 295], [218, 295]);
  const end = isTranslation ? "lens" : "classifier";
  part("linear", 220, 108, w("map.linear"), "output", end);
  const makes = isTranslation ? "single_label_classification" : context.kind;
  const isNumber = makes === "regression";
  if (!isNumber) part("softmax", 220, 62, w(`outcome.${makes}.by`), "output", isTranslation ? "decoding" : "classifier");
  for (const [low, high] of isNumber ? [[160, 140], [108, 44]] : [[160, 140], [108, 94], [62, 44]]) arrow("out", [300, low], [300, high]);
  words(300, 32, w(isTranslation ? "map.next" : `outcome.${makes}.name`));
  outcomes(context).forEach(({ label, share }, index) => {
    const y = -50 + 22 * index;
    const text = label.length > 12 ? `${label.slice(0, 11)}…` : label;
    root.append(svg("rect", { class: "share", x: 306, y: y - 6, width: Math.max(1, 40 * share), height: 12, rx: 3 }));
    if (!isNumber) root.append(svg("text", { x: 310 + 40 * share, y: y + 4.6, text: percent(share), class: "start" }));
    root.append(svg("text", { x: 298, y: y + 4.6, text, class: "end" }));
  });
  words(100, 26, w("map.else"), "pale");
  ["decoding", "classifier", "experiments", "training"].forEach((id, index) =>
    part(id, 20, 42 + 31 * index, w(`map.${id}`), "plain", id, 22),
  );
  return root;
}

/** The likeliest outcomes: next tokens or labels; a regression's numbers have no share of a bar. */
function outcomes(context) {
  const { run, task, labelOf, kind, valueOf } = context;
  if (task === "translation") return run.steps[tokensOnMap(context).length - 1].best.slice(0, 3).map(({ piece, p }) => ({ label: piece, share: p }));
  const order = [...run.probabilities.keys()].sort((a, b) => run.probabilities[b] - run.probabilities[a]).slice(0, 3);
  if (kind === "regression") return order.map((place) => ({ label: valueOf(run.probabilities[place]), share: 0 }));
  return order.map((place) => ({ label: labelOf(place), share: run.probabilities[place] }));
}

export function labelBars({ run, labelOf, valueOf }) {
  const values = Array.from(run.probabilities);
  return values.map((value, place) => ({ label: labelOf(place), value, text: valueOf(value), isBest: place === bestOf(values) }));
}

/** The stages of the tour: the parts that light up, and what is shown beside them. */
function stagesOf(context) {
  const { w, run, config, task } = context;
  const source = sourceTokens(context);
  const written = readTokens(context);
  const isTranslation = task === "translation";
  const [S, T, D] = [source.length, written.length, config.d_model];
  const rows = (name, labels) => {
    const tensor = run.trace.get(name);
    return [
      grid({
        ...{ rows: tensor.shape[0], columns: tensor.shape[1], cellHeight: 22, max: largestOf(tensor.data), rowLabels: labels, label: w("map.vectors") },
        value: (row, column) => tensor.data[row * tensor.shape[1] + column],
        hint: (row, column) => ({ title: `${labels[row]} [${column}] = ${number(tensor.data[row * tensor.shape[1] + column])}` }),
        columnAxis: w("axis.dimension", { last: D - 1 }),
      }),
    ];
  };
  const weights = (kind, layer) => {
    const isHidden = kind === "decoder" && T > 1;
    return [weightsGrid(attention(context, kind, layer), w), isHidden && maskLegend(w, ["causal"])];
  };
  const pairs = () => {
    const predicted = isTranslation ? run.pieces : [w("map.theLabel")];
    const rows = written.map((token, place) => make("tr", {}, ...[token, `→ ${predicted[place] ?? ""}`].map((text) => make("td", { text }))));
    return [table(w("stage.shifted.title"), [w("map.reads"), w("map.predicts")], rows)];
  };
  const final = () => {
    if (!isTranslation) return [bars(labelBars(context), { label: w(`outcome.${context.kind}.name`), max: largestOf(run.probabilities) })];
    const list = run.steps[tokensOnMap(context).length - 1].best.slice(0, 6).map(({ piece, p }) => ({ label: piece, value: p, text: percent(p) }));
    return [bars(list, { label: w("map.next") })];
  };
  return [
    ["tokens", ["encoder.tokens"], `(S) = (${S})`, () => [chips(source.map((piece, place) => `${piece} ${run.source.ids[place] ?? ""}`))]],
    ["embedding", ["encoder.embedding", "encoder.in"], `(S, D) = (${S}, ${D})`, () => rows("encoder.embedding.output", source)],
    ["self", ["encoder.self", "encoder.up"], `(S, S) = (${S}, ${S})`, () => weights("encoder", 0)],
    ["forward", ["encoder.feed_forward", "encoder.norm0", "encoder.norm1", "encoder.up"], `(S, D) = (${S}, ${D})`, () => rows("encoder.layers.0.feed_forward.after", source)],
    ["memory", ["memory"], `(S, D) = (${S}, ${D})`, () => rows("encoder.output", source)],
    ["shifted", ["decoder.tokens", "decoder.embedding", "decoder.in"], `(T) = (${T})`, pairs],
    ["causal", ["decoder.self", "decoder.up"], `(T, T) = (${T}, ${T})`, () => weights("decoder", 0)],
    ["cross", ["memory", "decoder.cross", "decoder.up"], `(T, S) = (${T}, ${S})`, () => weights("cross", config.decoder_layers - 1)],
    ["end", ["linear", "softmax", "out"], isTranslation ? `(V) = (${config.decoder_vocab_size ?? config.vocab_size})` : `(C) = (${run.probabilities.length})`, final],
  ].map(([id, lit, shape, picture]) => ({ id, lit, shape, picture }));
}

export const code = ["rows", "positions", "query", "output", "residual", "feedForward", "layer", "logits"];

export function render(root, context) {
  const { w, state, config, task, panels, guesses } = context;
  const stages = stagesOf(context);
  const chart = make("div");
  const card = make("div");
  const list = make("ol", { className: "contents", start: 2 });
  const play = player(w, 2600, stages.length, () => state.stage, showStage);
  state.stage ??= 0;

  function showStage(step) {
    state.stage = (step + stages.length) % stages.length;
    const { id, lit, shape, picture } = stages[state.stage];
    chart.replaceChildren(drawMap(context, { lit }));
    const title = `${w("map.tour")} ${state.stage + 1} / ${stages.length} · ${w(`stage.${id}.title`)}`;
    const words = w(`stage.${id}${id === "end" || id === "shifted" ? `.${task}` : ""}`, { result: w(`outcome.${context.kind}.how`), read: tokensOnMap(context).join(" ") });
    card.replaceChildren(figure(title, shape, make("p", { text: words }), ...picture().filter(Boolean)));
  }
  list.append(
    ...panels.slice(1).map((id) => make("li", {}, make("a", { href: `#${id}`, text: w(`${id}.title`) }), id in guesses && " ✓")),
  );
  const [back, forward] = [["back", -1], ["forward", 1]].map(([name, step]) => button(w(name), () => showStage(state.stage + step)));
  root.append(make("div", { className: "tour" }, chart, make("div", {}, controls(play, back, forward), card, list)), note(w("map.keys")), note(w(config.norm_first ? "layers.normFirst" : "layers.normLast")));
  showStage(state.stage);
}
