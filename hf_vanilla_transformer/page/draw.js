/* What the panels draw with. All text goes through textContent or a canvas: a token or a label is never markup. */

/** An element; `properties` are its own, but `data-…`, `aria-…`, `role` and `scope` are attributes. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "text") element.textContent = value;
    else if (/^(aria|data)-|^(role|scope)$/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A number in about three digits, with a true minus. */
export function number(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : value < 0 ? "−∞" : "∞";
  const size = Math.abs(value);
  if (size < 0.0005) return "0";
  const text = size >= 999.5 ? Math.round(value).toLocaleString("en") : value.toFixed(size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  return text.replace("-", "−");
}

export const percent = (share) => (share > 0 && share < 0.001 ? "< 0.1 %" : `${+(100 * share).toFixed(1)} %`);

/** A token as it is shown: the mark of a space stays, an empty one becomes visible. */
export const shown = (piece) => (piece === "" ? "∅" : String(piece));

/** A row of a tensor {shape, data}: `part(weights, head, query)` of [heads, Q, K] is [K]. */
export function part({ shape, data }, ...places) {
  let [begin, size] = [0, data.length];
  places.forEach((place, axis) => {
    size /= shape[axis];
    begin += place * size;
  });
  return data.subarray(begin, begin + size);
}

export const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
export const largestOf = (data) => data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
export const bestOf = (data) => data.reduce((best, value, i) => (value > data[best] ? i : best), 0);
export const norm = (data) => Math.sqrt(dot(data, data));

/* Colours: those of style.css, #rrggbb. */

let shades = {}; // of each end of a scale, 256 colours from the card's to its own
export const forgetColours = () => (shades = {});
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function shadesOf(end) {
  const [from, to] = ["card", end].map((name) => [1, 3, 5].map((at) => parseInt(colour(name).slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, level) => {
    const share = (level / 255) ** (end === "accent" ? 0.5 : 0.7);
    return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * share)).join()})`;
  });
}

/** The colour of a value: signed ones run from orange through the card to blue, weights from the card to blue. */
export function colourOf(value, scale, max = 1) {
  const level = Math.round(255 * Math.min(1, Math.abs(value) / (max || 1)));
  const end = scale === "weights" ? "accent" : value < 0 ? "minus" : "plus";
  return (shades[end] ??= shadesOf(end))[level];
}

/** Black or white, whichever is easier to read on a colour "rgb(…)" (WCAG's relative luminance). */
function textOn(background) {
  const [red, green, blue] = background.match(/\d+/g).map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

/* The hint: one box for all numbers, beside the pointer or the element in focus. */

const box = () => document.getElementById("hint");

/** Show {title, lines: [text], code} at a place of the window. */
export function showHint(content, x, y) {
  if (!content) return hideHint();
  const hint = box();
  const { title, lines = [], code } = content;
  hint.replaceChildren(
    ...(title ? [make("strong", { text: title })] : []),
    ...lines.map((text) => make("span", { text })),
    ...(code ? [make("code", { text: code })] : []),
  );
  hint.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = hint;
  const left = Math.max(8, Math.min(x + 14, document.documentElement.clientWidth - width - 8));
  const top = y + 18 + height > innerHeight ? Math.max(8, y - height - 14) : y + 18;
  hint.style.translate = `${left}px ${top}px`;
}

export function hideHint() {
  box().hidden = true;
}

/** Show a hint beside the pointer; a finger that is lifted leaves it there until the next touch. */
function follow(element, contentAt) {
  for (const name of ["pointermove", "pointerdown"])
    element.addEventListener(name, (event) => showHint(contentAt(event), event.clientX, event.clientY));
  element.addEventListener("pointerleave", ({ pointerType }) => pointerType === "touch" || hideHint());
}

/** Give an element a hint, {title, lines, code}. */
export function hint(element, content) {
  follow(element, () => content);
  element.addEventListener("focus", () => {
    const { left, bottom } = element.getBoundingClientRect();
    if (element.matches(":focus-visible")) showHint(content, left, bottom - 14);
  });
  element.addEventListener("blur", hideHint);
  return element;
}

/* Tables of numbers: a heat map with labels, of which a stripe is one row. */

/** A token beside a table: without the mark of its space, and not too long. */
function short(token) {
  const text = shown(token).replace(/^▁(?=.)/, "");
  return text.length > 18 ? `${text.slice(0, 17)}…` : text;
}

function penOf(canvas, wide, high) {
  const density = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.ceil(wide * density), Math.ceil(high * density)]; // which also empties it
  Object.assign(canvas.style, { width: `${wide}px`, height: `${high}px` });
  const pen = canvas.getContext("2d");
  pen.scale(density, density);
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen;
}

function write(pen, text, x, y, { align = "left", tone = "soft", isTurned = false, most } = {}) {
  pen.save();
  pen.translate(x, y);
  if (isTurned) pen.rotate(-Math.PI / 2);
  pen.fillStyle = colour(tone);
  pen.textAlign = align;
  pen.textBaseline = "middle";
  pen.fillText(text, 0, 0, most);
  pen.restore();
}

/** Hidden cells: causal ones have slanted stripes, padding level ones, so that colour alone says nothing. */
function hatch(pen, kind, x, y, wide, high) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, wide, high);
  pen.clip();
  pen.strokeStyle = colour(kind);
  pen.beginPath();
  for (let at = 2.5; at < wide + high; at += 5) {
    pen.moveTo(x, y + at);
    pen.lineTo(x + wide, kind === "causal" ? y + at - wide : y + at);
  }
  pen.stroke();
  pen.restore();
}

/** A heat map on a canvas, with the range of its colours below. Arrow keys move a cell, Enter picks it.

  rows, columns: how many. value(row, column): a number, or null for an empty cell.
  scale: "signed" or "weights"; max: the value of the full colour. hasLegend: false where the range stands elsewhere.
  label: what it shows, for readers who do not see it.
  rowLabels, columnLabels: tokens or numbers. rowAxis, columnAxis: what they are.
  hint(row, column): {title, lines, code}. pick(row, column): called by a click or Enter.
  masked(row, column): "causal", "padding" or null. chosen: [row, column], null for all of either.
  cell, cellHeight, smallest: widest cell, its height, narrowest cell (then the element scrolls). */
export function grid(options) {
  const { label, scale = "signed", max = 1, hasLegend = true } = options;
  const canvas = make("canvas");
  const [chosenFrame, placeFrame] = ["chosen", "place"].map((name) => make("div", { className: name, hidden: true }));
  const cells = make("div", { className: "cells" }, canvas, chosenFrame, placeFrame);
  const element = make("div", { className: "grid", tabIndex: 0, role: "group", "aria-label": label }, cells);
  let layout, place;

  function measure() {
    const { columns, rowLabels, columnLabels, rowAxis, columnAxis, smallest = 0, cell = 30, cellHeight } = options;
    const pen = penOf(canvas, 1, 1);
    const widest = (labels = []) => Math.max(0, ...labels.map((text) => pen.measureText(short(text)).width));
    const wide = Math.max(1, element.clientWidth);
    const left = (rowLabels ? Math.ceil(Math.min(widest(rowLabels), 0.3 * wide)) + 8 : 0) + (rowAxis ? 16 : 0);
    const width = Math.max(smallest, Math.min(cell, (wide - left) / columns));
    // Labels that do not fit lie on their side.
    const columnWidth = widest(columnLabels);
    const isTurned = columnWidth + 4 > width;
    const labels = columnLabels ? (isTurned ? Math.ceil(Math.min(columnWidth, 84)) + 6 : 18) : 0;
    const top = labels + (columnAxis ? 16 : 0);
    return { left, top, width, height: cellHeight ?? Math.max(12, Math.min(width, 26)), isTurned, at: element.clientWidth };
  }

  function draw() {
    if (!element.isConnected) return;
    const { rows, columns, value, masked, rowLabels = [], columnLabels = [] } = options;
    if (layout?.at !== element.clientWidth) layout = measure();
    const { left, top, width, height, isTurned } = layout;
    const pen = penOf(canvas, Math.ceil(left + width * columns), Math.ceil(top + height * rows) + 1);
    const density = window.devicePixelRatio || 1;
    const gap = width > 6 && rows > 1 ? 1 : 0;
    const toPixel = (column) => Math.round((left + column * width) * density) / density;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const found = value(row, column);
        if (found === null || found === undefined) continue;
        const hidden = masked?.(row, column);
        const x = toPixel(column);
        const cell = [x, top + row * height, toPixel(column + 1) - x - gap, height - gap];
        pen.fillStyle = hidden ? colour("pale") : colourOf(found, scale, max);
        pen.fillRect(...cell);
        if (hidden) hatch(pen, hidden, ...cell);
      }
    }
    pen.strokeStyle = colour("line");
    pen.strokeRect(left, top, columns * width, rows * height);
    rowLabels.forEach((text, row) => {
      const look = { align: "right", tone: "ink", most: left - 6 };
      if (height >= 9 || row % 2 === 0) write(pen, short(text), left - 6, top + (row + 0.5) * height, look);
    });
    columnLabels.forEach((text, column) => {
      const look = { align: isTurned ? "left" : "center", tone: "ink", isTurned, most: isTurned ? 84 : width };
      write(pen, short(text), left + (column + 0.5) * width, top - (isTurned ? 4 : 9), look);
    });
    if (options.columnAxis) write(pen, options.columnAxis, left, 8);
    if (options.rowAxis) write(pen, options.rowAxis, 8, top, { align: "right", isTurned: true, most: rows * height });
    showFrame(chosenFrame, options.chosen);
    showFrame(placeFrame, place);
  }

  /** Put a frame round a cell, a row or a column; the picture below stays as it is. */
  function showFrame(frame, cell) {
    frame.hidden = !cell;
    if (!cell || !layout) return;
    const { left, top, width, height } = layout;
    const [row, column] = cell;
    const [wide, high] = [column === null ? options.columns * width : width, row === null ? options.rows * height : height];
    const box = { left: left + (column ?? 0) * width, top: top + (row ?? 0) * height, width: wide, height: high };
    for (const side in box) frame.style[side] = `${box[side]}px`;
  }

  function cellAt({ offsetX, offsetY }) {
    const column = Math.floor((offsetX - layout.left) / layout.width);
    const row = Math.floor((offsetY - layout.top) / layout.height);
    return row < 0 || column < 0 || row >= options.rows || column >= options.columns ? null : [row, column];
  }
  follow(canvas, (event) => {
    const at = layout && cellAt(event);
    return at && options.hint?.(...at);
  });
  canvas.addEventListener("click", (event) => {
    const at = cellAt(event);
    if (at) options.pick?.(...at);
  });
  element.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Enter" && place) options.pick?.(...place);
    if (!move) return;
    event.preventDefault();
    const next = place ? [place[0] + move[0], place[1] + move[1]] : (options.chosen ?? [0, 0]);
    place = [options.rows, options.columns].map((count, axis) => Math.max(0, Math.min(count - 1, next[axis] ?? 0)));
    showFrame(placeFrame, place);
    const { left, top, width, height } = placeFrame.getBoundingClientRect();
    showHint(options.hint?.(...place), left + width / 2, top + height / 2);
  });
  element.addEventListener("blur", () => {
    place = null;
    showFrame(placeFrame, place);
    hideHint();
  });
  new ResizeObserver(draw).observe(element);
  const whole = make("div", {}, element, hasLegend && legend(scale, max));
  whole.update = (changes) => {
    Object.assign(options, changes);
    if (changes.columnLabels) layout = null;
    if (Object.keys(changes).some((name) => name !== "chosen")) draw();
    else showFrame(chosenFrame, options.chosen);
  };
  return whole;
}

/** One vector as a stripe; `name` is shown before it in hints, such as q. */
export function stripe({ data, name = "", label, code, max = largestOf(data), height = 20, lines = () => [] }) {
  return grid({
    ...{ rows: 1, columns: data.length, cell: 14, cellHeight: height, max, label, hasLegend: false },
    value: (_, column) => data[column],
    hint: (_, column) => ({ title: `${name}[${column}] = ${number(data[column])}`, lines: lines(column), code }),
  });
}

/** A stripe below its title and its range. Colours of its own, without `max`, have their legend below it. */
export function titledStripe(label, options) {
  const { data, max } = options;
  const range = `${number(Math.min(...data))} … ${number(Math.max(...data))}`;
  const title = make("h4", { text: `${label} ` }, make("span", { className: "shape", text: range }));
  return [title, stripe({ label, ...options }), ...(max ? [] : [legend("signed", largestOf(data))])];
}

/** The values of a scale's colours, with the one in the middle; `name` is what they belong to. */
export function legend(scale, max, name = "") {
  const least = scale === "weights" ? 0 : -max;
  const middle = (least + max) / 2;
  const shadesFrom = (start) => {
    const stops = Array.from({ length: 25 }, (_, at) => colourOf(start + ((max - middle) * at) / 24, scale, max));
    return make("span", { className: "swatch", style: `width: 3rem; background: linear-gradient(90deg, ${stops.join()})` });
  };
  const parts = [number(least), shadesFrom(least), number(middle), shadesFrom(middle), number(max)];
  return make("p", { className: "legend" }, name && make("span", { text: name }), ...parts);
}

export function maskLegend(w, kinds) {
  const parts = kinds.flatMap((kind) => [make("span", { className: `swatch ${kind}` }), w(`mask.${kind}`)]);
  return make("p", { className: "legend" }, ...parts);
}

/** Curves over a shared axis on a canvas. `curves`: [{data, tone, dashed}]. */
export function plot({ label, x, y, height = 150, xStart = 0, xEnd, ...options }) {
  const canvas = make("canvas");
  const element = make("div", { className: "plot", role: "img", "aria-label": label }, canvas);
  function draw() {
    if (!element.isConnected) return;
    const { curves, high, low, mark } = options;
    const wide = element.clientWidth;
    const pen = penOf(canvas, wide, height);
    const all = curves.flatMap(({ data }) => Array.from(data));
    const [most, least] = [high ?? Math.max(...all, 1e-9), low ?? Math.min(...all, 0)];
    const length = xEnd ?? Math.max(2, ...curves.map(({ data }) => data.length)) - 1;
    const [left, right, top, bottom] = [38, 8, 26, 20];
    const across = (i) => left + ((wide - left - right) * i) / length;
    const down = (value) => top + ((height - top - bottom) * (most - value)) / (most - least);
    const line = (points, tone, thick = 1, dash = []) => {
      pen.strokeStyle = colour(tone);
      pen.lineWidth = thick;
      pen.setLineDash(dash);
      pen.beginPath();
      for (const point of points) pen.lineTo(...point);
      pen.stroke();
    };
    for (const value of [least, (least + most) / 2, most]) {
      line([[left, down(value)], [wide - right, down(value)]], "line");
      write(pen, number(value), left - 5, down(value), { align: "right" });
    }
    write(pen, y, 0, 8);
    const end = `${x} ${xStart + length}`;
    write(pen, end, wide - right, height - 7, { align: "right" });
    const room = wide - right - pen.measureText(end).width - 20;
    for (const i of [0, Math.floor(length / 2)]) if (across(i) < room) write(pen, String(xStart + i), across(i), height - 7, { align: "center" });
    if (mark !== undefined) line([[across(mark), top], [across(mark), height - bottom]], "ink", 1, [3, 3]);
    for (const { data, tone = "accent", dashed } of curves)
      line(Array.from(data, (value, i) => [across(i), down(value)]), tone, 1.8, dashed ? [5, 4] : []);
  }
  new ResizeObserver(draw).observe(element);
  element.update = (changes) => {
    Object.assign(options, changes);
    draw();
  };
  return element;
}

export const heading = (text) => make("h4", { text });
export const note = (text) => make("p", { className: "note", text });
export const controls = (...parts) => make("div", { className: "controls" }, ...parts);

/** A figure: a title with the shape in letters, the picture, a caption. */
export function figure(title, shape, ...parts) {
  const head = make("h3", { text: title }, shape && make("span", { className: "shape", text: shape }));
  return make("section", { className: "figure" }, head, ...parts);
}

/** A table that scrolls by itself; `rows`: elements or lists of cells. */
export function table(label, titles, rows, className = "") {
  const head = make("tr", {}, ...titles.map((text) => make("th", { text, scope: "col" })));
  const body = make("tbody", {}, ...rows);
  const whole = make("table", { className }, make("thead", {}, head), body);
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": label }, whole);
}

export function button(text, onClick, properties = {}) {
  const element = make("button", { type: "button", text, ...properties });
  element.addEventListener("click", onClick);
  return element;
}

/** A button that plays `count` steps, from the one after `at()` to the last. */
export function player(w, pace, count, at, move) {
  let timer;
  const play = button(w("play"), toggle, { className: "primary" });
  function advance() {
    move((at() + 1) % count);
  }
  function toggle() {
    timer = timer ? clearInterval(timer) : setInterval(() => (play.isConnected && at() < count - 1 ? advance() : toggle()), pace);
    play.textContent = w(timer ? "pause" : "play");
    if (timer) advance();
  }
  return play;
}

/** Buttons of which one is pressed. `options`: [[value, text]]. */
export function choice(label, options, value, onPick) {
  const buttons = options.map(([one, text]) => button(text, () => onPick(one), { "aria-pressed": one === value }));
  const group = make("div", { className: "segments", role: "group", "aria-label": label }, ...buttons);
  return make("div", { className: "choice" }, make("span", { text: label }), group);
}

/** [[0, "1"], [1, "2"], …] for `choice`: places count from 0, readers from 1. */
export const numbered = (count) => Array.from({ length: count }, (_, one) => [one, String(one + 1)]);

export function slider(label, { min, max, value, step = 1 }, onInput, say = String) {
  const shownValue = make("output");
  const input = make("input", { type: "range", min, max, step });
  const element = make("label", { className: "slider" }, make("span", { text: label }), input, shownValue);
  element.set = (next) => {
    input.value = next;
    shownValue.textContent = say(next);
  };
  element.set(value);
  input.addEventListener("input", () => {
    element.set(+input.value);
    onInput(+input.value);
  });
  return element;
}

/** Tokens in a row. `pick(place)` makes them buttons; `weights` colours them; `chosen` is one place or a set. */
export function chips(tokens, { pick, chosen, weights, hintOf, label = "" } = {}) {
  const items = tokens.map((token, place) => {
    const isChosen = chosen instanceof Set ? chosen.has(place) : chosen === place;
    const text = shown(token);
    const chip = pick ? button(text, () => pick(place), { "aria-pressed": isChosen }) : make("span", { text });
    chip.classList.add("chip");
    chip.classList.toggle("chosen", isChosen);
    if (weights) paint(chip, weights[place]);
    return hintOf ? hint(chip, hintOf(place)) : chip;
  });
  return make("div", { className: "chips", role: "group", "aria-label": label }, ...items);
}

/** Colour a chip by a weight between 0 and 1. */
export function paint(chip, weight) {
  const background = colourOf(weight, "weights");
  Object.assign(chip.style, { backgroundColor: background, color: textOn(background) });
}

/** Bars in rows. `list`: [{label, value, text, isBest, pick, hint}]; `max` is the value of a full bar. */
export function bars(list, { max = 1, label = "" } = {}) {
  const rows = list.map(({ label: name, value, text, isBest, pick, hint: content }) => {
    const bar = make("span", { className: `bar${value < 0 ? " minus" : ""}` });
    bar.style.setProperty("--share", `${Math.min(100, (100 * Math.abs(value)) / (max || 1))}%`);
    const title = pick ? button(shown(name), pick, { className: "chip" }) : make("span", { text: shown(name) });
    const row = make("li", { className: isBest ? "best" : "" }, title, bar, make("span", { className: "value", text }));
    return content ? hint(row, content) : row;
  });
  return make("ul", { className: "bars", "aria-label": label }, ...rows);
}
