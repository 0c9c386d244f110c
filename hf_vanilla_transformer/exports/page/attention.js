// Pictures of attention, and the tables that stand behind them.

const FONT = "13px system-ui, sans-serif";
const CELL = { least: 16, most: 40 };
const LABEL = 96; // the most pixels that a token's name takes

/** A token as people read it: `▁` is a space. */
export const plain = (token) => token.replaceAll("▁", " ").trim() || "␣";

/** An element with properties, a class, attributes and children. */
export function make(name, { className, text, ...attributes } = {}, ...children) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const greatest = (rows) => rows.reduce((most, row) => row.reduce((a, b) => Math.max(a, b), most), 0);

/** The mean of a layer's heads: [head][query] -> over keys, to [query] -> over keys. */
export const meanOf = (heads) =>
  heads[0].map((keys, query) => keys.map((_, key) => heads.reduce((sum, head) => sum + head[query][key], 0) / heads.length));

/** The text once for each head, its words the darker the more the head's one query reads them. */
export function drawWords(figure, heads, tokens, words) {
  const most = greatest(heads);
  const areWords = !tokens.some((token) => token.includes("▁"));
  const lines = heads.map((weights, head) => {
    const order = Array.from(weights.keys()).sort((a, b) => weights[b] - weights[a]);
    const told = order.slice(0, 3).map((place) => `${plain(tokens[place])} ${weights[place].toFixed(2)}`);
    const text = make("p", { className: "words", role: "img", "aria-label": told.join(", ") });
    tokens.forEach((token, place) => {
      if (areWords || token.startsWith("▁")) text.append(" ");
      const share = weights[place] / most;
      const word = make("span", { text: plain(token), title: weights[place].toFixed(4) });
      if (share > 0.7) word.className = "strong";
      word.style.setProperty("--share", `${Math.round(100 * share)}%`);
      text.append(word);
    });
    return make("li", {}, make("span", { className: "head", text: words("headNumber", { number: head + 1 }) }), text);
  });
  figure.replaceChildren(make("ul", {}, ...lines), make("figcaption", { text: words("scale", { most: most.toFixed(2) }) }));
}

/** A map: one row for each query token, one column for each key token. */
export function drawMap(figure, rows, queries, keys, words, name) {
  let canvas = figure.querySelector("canvas");
  if (!canvas) {
    canvas = make("canvas", { role: "img" });
    figure.replaceChildren(make("div", { className: "scroll" }, canvas), make("figcaption"));
  }
  canvas.setAttribute("aria-label", name);
  const caption = figure.querySelector("figcaption");
  const most = greatest(rows);
  const scale = words("scale", { most: most.toFixed(2) });
  caption.textContent = scale;

  const context = canvas.getContext("2d");
  context.font = FONT;
  const widest = (tokens) => Math.min(LABEL, Math.max(...tokens.map((token) => context.measureText(plain(token)).width)));
  const [left, top] = [widest(queries) + 8, widest(keys) + 8].map(Math.ceil);
  const side = Math.max(CELL.least, Math.min(CELL.most, Math.floor((figure.clientWidth - left - 2) / keys.length)));
  const [width, height] = [left + side * keys.length + 1, top + side * queries.length + 1];
  const ratio = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  context.scale(ratio, ratio);

  const style = getComputedStyle(figure);
  const paint = (colour) => (context.fillStyle = style.getPropertyValue(colour));
  paint("--pale");
  context.fillRect(left, top, side * keys.length, side * queries.length);
  paint("--accent");
  rows.forEach((weights, row) =>
    weights.forEach((weight, column) => {
      context.globalAlpha = weight / most;
      context.fillRect(left + side * column, top + side * row, side - 1, side - 1);
    }),
  );
  context.globalAlpha = 1;
  context.font = FONT;
  context.textBaseline = "middle";
  paint("--ink");
  context.textAlign = "right";
  queries.forEach((token, row) => context.fillText(plain(token), left - 6, top + side * (row + 0.5), LABEL));
  context.rotate(-Math.PI / 2);
  context.textAlign = "left";
  keys.forEach((token, column) => context.fillText(plain(token), 6 - top, left + side * (column + 0.5), LABEL));

  canvas.onpointerleave = () => (caption.textContent = scale);
  canvas.onpointermove = ({ offsetX, offsetY }) => {
    const [row, column] = [Math.floor((offsetY - top) / side), Math.floor((offsetX - left) / side)];
    const weight = rows[row]?.[column];
    caption.textContent =
      weight === undefined ? scale : words("read", { query: plain(queries[row]), key: plain(keys[column]), weight: weight.toFixed(3) });
  };
}

/** Fill the table of a picture, when it is open. */
export function fillTable(details, { name, corner, rows, columns, cell }) {
  const fill = () => {
    if (!details.open) return;
    const head = make("tr", {}, make("th", { text: corner, scope: "col" }));
    head.append(...columns.map((text) => make("th", { text, scope: "col" })));
    const body = rows.map((text, row) => {
      const cells = columns.map((_, column) => make("td", { text: cell(row, column).toFixed(4) }));
      return make("tr", {}, make("th", { text, scope: "row" }), ...cells);
    });
    const table = make("table", {}, make("caption", { text: name }));
    table.append(make("thead", {}, head), make("tbody", {}, ...body));
    details.querySelector("div").replaceChildren(table);
  };
  details.ontoggle = fill;
  fill();
}
