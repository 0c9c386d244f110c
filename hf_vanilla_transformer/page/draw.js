// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* What the panels draw with. All text goes through textContent or a canvas: a token or a label is never markup. */

/** An element; `properties` are its own, but `data-…`, `aria-…` and `for` are attributes. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "text") element.textContent = value;
    else if (/^(aria|data)-|^(for|role|colspan|scope|list)$/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An SVG element. */
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
  const text = size >= 1000 ? Math.round(value).toLocaleString("en") : value.toFixed(size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0);
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

/* Colours: those of style.css, as [r, g, b]. */

let palette = {};
let shades = {}; // of each end of a scale, 256 colours from the card's to its own
export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const scratch = document.createElement("canvas").getContext("2d");
  [palette, shades] = [{}, {}];
  for (const name of ["card", "ink", "soft", "line", "pale", "accent", "plus", "minus", "causal", "padding"]) {
    scratch.fillStyle = style.getPropertyValue(`--${name}`).trim();
    palette[name] = [1, 3, 5].map((at) => parseInt(scratch.fillStyle.slice(at, at + 2), 16));
  }
}

const mix = (from, to, share) => `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * share)).join()})`;
export const colour = (name) => mix(palette[name], palette[name], 0);

/** The colour of a value: signed ones run from orange through the card to blue, weights from the card to blue. */
export function colourOf(value, scale, max = 1) {
  const level = Math.round(255 * Math.min(1, Math.abs(value) / (max || 1)));
  const end = scale === "weights" ? "accent" : value < 0 ? "minus" : "plus";
  shades[end] ??= Array.from({ length: 256 }, (_, at) => mix(palette.card, palette[end], (at / 255) ** (end === "accent" ? 0.5 : 0.7)));
  return shades[end][level];
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

/** Give an element a hint; `content` is {title, lines, code} or a function that makes it. */
export function hint(element, content) {
  const get = () => (typeof content === "function" ? content() : content);
  follow(element, get);
  element.addEventListener("focus", () => {
    const { left, bottom } = element.getBoundingClientRect();
    if (element.matches(":focus-visible")) showHint(get(), left, bottom - 14);
  });
  element.addEventListener("blur", hideHint);
  return element;
}

/* Tables of numbers: a heat map with labels, of which a stripe is one row. */

const FONT = "12px system-ui, 'Apple SD Gothic Neo', 'Malgun Gothic', 'Noto Sans KR', NanumGothic, sans-serif";
/** A token beside a table: without the mark of its space, and not too long. */
function short(token, most = 14) {
  const text = shown(token).replace(/^▁(?=.)/, "");
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A heat map on a canvas. Arrow keys move a cell, Enter picks it.

  rows, columns: how many. value(row, column): a number, or null for an empty cell.
  scale: "signed" or "weights"; max: the value of the full colour.
  label: what it shows, for readers who do not see it.
  rowLabels, columnLabels: tokens or numbers. rowAxis, columnAxis: what they are.
  hint(row, column): {title, lines, code}. pick(row, column): called by a click or Enter.
  masked(row, column): "causal", "padding" or null. chosen: [row, column], null for all of either.
  cell, cellHeight, smallest: widest cell, its height, narrowest cell (then the element scrolls). */
export function grid(options) {
  const canvas = make("canvas");
  const element = make("div", { className: "grid", tabIndex: 0, role: "group", "aria-label": options.label }, canvas);
  const pen = canvas.getContext("2d");
  let layout, place;

  function measure() {
    const { columns, rowLabels, columnLabels, rowAxis, columnAxis } = options;
    pen.font = FONT;
    const widest = (labels) => Math.max(0, ...(labels ?? []).map((text) => pen.measureText(short(text)).width));
    const wide = Math.max(1, element.clientWidth);
    const rowWidth = Math.min(widest(rowLabels), 0.3 * wide);
    const left = (rowLabels ? Math.ceil(rowWidth) + 8 : 0) + (rowAxis ? 16 : 0);
    const width = Math.max(options.smallest ?? 0, Math.min(options.cell ?? 30, (wide - left) / columns));
    // Labels that do not fit lie on their side.
    const columnWidth = widest(columnLabels);
    const isTurned = columnWidth + 4 > width;
    const top = (columnLabels ? (isTurned ? Math.ceil(Math.min(columnWidth, 84)) + 6 : 18) : 0) + (columnAxis ? 16 : 0);
    const height = options.cellHeight ?? Math.max(12, Math.min(width, 26));
    return { left, top, width, height, isTurned };
  }

  function draw() {
    if (!element.isConnected) return;
    const { rows, columns, value, scale = "signed", masked, chosen, rowLabels, columnLabels } = options;
    if (layout?.at !== element.clientWidth) layout = { ...measure(), at: element.clientWidth };
    const { left, top, width, height, isTurned } = layout;
    const max = options.max ?? 1;
    const [wide, high] = [Math.ceil(left + width * columns), Math.ceil(top + height * rows) + 1];
    const density = window.devicePixelRatio || 1;
    if (canvas.width !== Math.ceil(wide * density) || canvas.height !== Math.ceil(high * density)) {
      [canvas.width, canvas.height] = [Math.ceil(wide * density), Math.ceil(high * density)];
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${high}px`;
    }
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.clearRect(0, 0, wide, high);
    const gap = width > 6 && rows > 1 ? 1 : 0;
    pen.font = FONT;
    pen.textBaseline = "middle";
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const [x0, x1] = [left + column * width, left + (column + 1) * width].map((x) => Math.round(x * density) / density);
        const y = top + row * height;
        const found = value(row, column);
        if (found === null || found === undefined) continue;
        const hidden = masked?.(row, column);
        pen.fillStyle = hidden ? colour("pale") : colourOf(found, scale, max);
        pen.fillRect(x0, y, x1 - x0 - gap, height - gap);
        if (hidden) hatch(hidden, x0, y, x1 - x0 - gap, height - gap);
      }
    }
    if (rows === 1) {
      pen.strokeStyle = colour("line");
      pen.strokeRect(left + 0.5, top + 0.5, width * columns - 1, height - 1);
    }
    pen.textAlign = "right";
    rowLabels?.forEach((text, row) => {
      pen.fillStyle = chosen?.[0] === row ? colour("accent") : colour("ink");
      if (height >= 9 || row % 2 === 0) pen.fillText(short(text), left - 6, top + (row + 0.5) * height, left - 6);
    });
    columnLabels?.forEach((text, column) => {
      pen.fillStyle = chosen?.[1] === column ? colour("accent") : colour("ink");
      pen.save();
      pen.translate(left + (column + 0.5) * width, top - 4);
      if (isTurned) pen.rotate(-Math.PI / 2);
      pen.textAlign = isTurned ? "left" : "center";
      pen.fillText(short(text), 0, isTurned ? 0 : -6, isTurned ? 84 : width);
      pen.restore();
    });
    pen.fillStyle = colour("soft");
    if (options.columnAxis) {
      pen.textAlign = "left";
      pen.fillText(options.columnAxis, left, 8, wide - left);
    }
    if (options.rowAxis) {
      pen.save();
      pen.translate(8, top);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "right";
      pen.fillText(options.rowAxis, 0, 0, rows * height);
      pen.restore();
    }
    if (chosen) outline(chosen, "accent", 2);
    if (place) outline(place, "ink", 1.5);
  }

  function outline([row, column], name, thick) {
    const { left, top, width, height } = layout;
    pen.strokeStyle = colour(name);
    pen.lineWidth = thick;
    const [x, y] = [left + (column ?? 0) * width, top + (row ?? 0) * height];
    const [wide, high] = [column === null ? options.columns * width : width, row === null ? options.rows * height : height];
    pen.strokeRect(x, y, wide, high);
    pen.lineWidth = 1;
  }

  /** Hidden cells: causal ones are striped, padding is dotted, so that colour alone says nothing. */
  function hatch(kind, x, y, wide, high) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, wide, high);
    pen.clip();
    pen.strokeStyle = pen.fillStyle = colour(kind);
    pen.beginPath();
    if (kind === "causal") {
      for (let at = -high; at < wide; at += 5) {
        pen.moveTo(x + at, y + high);
        pen.lineTo(x + at + high, y);
      }
      pen.stroke();
    } else {
      for (let dx = 3; dx < wide; dx += 5) for (let dy = 3; dy < high; dy += 5) pen.rect(x + dx, y + dy, 2, 2);
      pen.fill();
    }
    pen.restore();
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
    const [row, column] = place ? [place[0] + move[0], place[1] + move[1]] : (options.chosen ?? [0, 0]);
    place = [Math.max(0, Math.min(options.rows - 1, row ?? 0)), Math.max(0, Math.min(options.columns - 1, column ?? 0))];
    draw();
    const { left, top } = canvas.getBoundingClientRect();
    const y = top + layout.top + (place[0] + 0.5) * layout.height;
    showHint(options.hint?.(...place), left + layout.left + (place[1] + 0.5) * layout.width, y);
  });
  element.addEventListener("blur", () => {
    place = null;
    hideHint();
    draw();
  });
  new ResizeObserver(draw).observe(element);
  element.update = (changes) => {
    Object.assign(options, changes);
    if (changes.rowLabels || changes.columnLabels) layout = null;
    draw();
  };
  return element;
}

/** One vector as a stripe; `name` is shown before it in hints, such as q. */
export function stripe({ data, name = "", label, code, max = largestOf(data), height = 20, lines, ...rest }) {
  return grid({
    ...{ rows: 1, columns: data.length, cell: 14, cellHeight: height, max, label },
    value: (_, column) => data[column],
    hint: (_, column) => ({
      title: `${name}[${column}] = ${number(data[column])}`,
      lines: lines?.(column) ?? [],
      code,
    }),
    ...rest,
  });
}

/** What the colours of signed values mean. */
export function legend(scale, max, w) {
  const canvas = make("canvas", { width: 96, height: 10 });
  const pen = canvas.getContext("2d");
  for (let x = 0; x < 96; x++) {
    pen.fillStyle = colourOf(scale === "weights" ? x / 95 : x / 47.5 - 1, scale);
    pen.fillRect(x, 0, 1, 10);
  }
  const ends = scale === "weights" ? ["0", number(max)] : [number(-max), number(max)];
  return make("p", { className: "legend", "aria-label": w("legend") }, ends[0], canvas, ends[1]);
}

/** What the two patterns of hidden cells mean. */
export function maskLegend(w, kinds) {
  return make(
    "p",
    { className: "legend" },
    ...kinds.flatMap((kind) => [make("span", { className: `swatch ${kind}` }), w(`mask.${kind}`)]),
  );
}

/* Controls. */

/** Buttons of which one is pressed. `options`: [[value, text]]. */
export function choice(label, options, value, onPick) {
  const buttons = options.map(([one, text]) => {
    const button = make("button", { type: "button", text, "aria-pressed": one === value });
    button.addEventListener("click", () => onPick(one));
    return button;
  });
  const name = make("span", { text: label });
  return make("div", { className: "choice" }, name, make("div", { className: "segments", role: "group", "aria-label": label }, ...buttons));
}

export function slider(label, { min, max, value, step = 1 }, onInput, say = String) {
  const shownValue = make("output", { text: say(value) });
  const input = make("input", { type: "range", min, max, step, value });
  input.addEventListener("input", () => {
    shownValue.textContent = say(+input.value);
    onInput(+input.value);
  });
  const element = make("label", { className: "slider" }, make("span", { text: label }), input, shownValue);
  element.set = (next) => {
    input.value = next;
    shownValue.textContent = say(next);
  };
  return element;
}

export function button(text, onClick, properties = {}) {
  const element = make("button", { type: "button", text, ...properties });
  element.addEventListener("click", onClick);
  return element;
}

/** Tokens in a row. `pick(place)` makes them buttons; `weights` colours them; `chosen` is one place or a set. */
export function chips(tokens, { pick, chosen, weights, hintOf, label = "" } = {}) {
  const isChosen = (place) => (chosen instanceof Set ? chosen.has(place) : chosen === place);
  const items = tokens.map((token, place) => {
    const chip = pick
      ? button(shown(token), () => pick(place), { "aria-pressed": isChosen(place) })
      : make("span", { text: shown(token) });
    chip.classList.add("chip");
    chip.classList.toggle("chosen", isChosen(place));
    if (weights) paint(chip, weights[place]);
    if (hintOf) hint(chip, () => hintOf(place));
    return chip;
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
    const bar = make("span", { className: "bar" });
    bar.style.setProperty("--share", `${Math.max(0, Math.min(100, (100 * Math.abs(value)) / (max || 1)))}%`);
    bar.classList.toggle("minus", value < 0);
    const title = pick ? button(shown(name), pick, { className: "chip" }) : make("span", { text: shown(name) });
    const row = make("li", { className: isBest ? "best" : "" }, title, bar, make("span", { className: "value", text }));
    return content ? hint(row, content) : row;
  });
  return make("ul", { className: "bars", "aria-label": label }, ...rows);
}

/** Curves over a shared axis on a canvas. `curves`: [{data, name, dashed}]. */
export function plot({ curves, label, x, y, high, low, height = 150, mark, xEnd }) {
  const canvas = make("canvas");
  const element = make("div", { className: "plot", role: "img", "aria-label": label }, canvas);
  const options = { curves, high, low, mark };
  function draw() {
    if (!element.isConnected) return;
    const density = window.devicePixelRatio || 1;
    const wide = element.clientWidth;
    [canvas.width, canvas.height] = [wide * density, height * density];
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(density, density);
    pen.font = FONT;
    const all = options.curves.flatMap(({ data }) => Array.from(data));
    const [most, least] = [options.high ?? Math.max(...all, 1e-9), options.low ?? Math.min(...all, 0)];
    const length = xEnd ?? Math.max(2, ...options.curves.map(({ data }) => data.length)) - 1;
    const [left, right, top, bottom] = [38, 8, 26, 20];
    const across = (i) => left + ((wide - left - right) * i) / length;
    const down = (value) => top + ((height - top - bottom) * (most - value)) / (most - least);
    pen.strokeStyle = colour("line");
    pen.fillStyle = colour("soft");
    pen.textAlign = "right";
    for (const value of [least, (least + most) / 2, most]) {
      pen.beginPath();
      pen.moveTo(left, down(value));
      pen.lineTo(wide - right, down(value));
      pen.stroke();
      pen.fillText(number(value), left - 5, down(value) + 4);
    }
    pen.textAlign = "left";
    pen.fillText(y, 0, 11);
    pen.textAlign = "right";
    pen.fillText(x, wide - right, height - 3);
    if (options.mark !== undefined) {
      pen.strokeStyle = colour("ink");
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.moveTo(across(options.mark), top);
      pen.lineTo(across(options.mark), height - bottom);
      pen.stroke();
      pen.setLineDash([]);
    }
    options.curves.forEach(({ data, tone = "accent", dashed }) => {
      pen.strokeStyle = colour(tone);
      pen.lineWidth = 1.8;
      pen.setLineDash(dashed ? [5, 4] : []);
      pen.beginPath();
      data.forEach((value, i) => pen[i ? "lineTo" : "moveTo"](across(i), down(value)));
      pen.stroke();
    });
  }
  new ResizeObserver(draw).observe(element);
  element.update = (changes) => {
    Object.assign(options, changes);
    draw();
  };
  return element;
}

/** A figure: a title with the shape in letters, the picture, a caption. */
export function figure(title, shape, ...parts) {
  const head = make("h3", { text: title }, shape && make("span", { className: "shape", text: shape }));
  return make("section", { className: "figure" }, head, ...parts);
}

export const note = (text) => make("p", { className: "note", text });
