/* The page: opens a model, answers what is typed, shows one panel of it. */

import { Model } from "./client.js";
import { bestOf, button, forgetColours, hideHint, make, number, percent } from "./draw.js";
import { failure } from "./failures.js";
import { renderPanel } from "./frame.js";
import * as map from "./panels/map.js";

const PANELS = ["map", "text", "head", "attentions", "layers", "decoding", "lens", "classifier", "experiments", "training"];
const get = (selector) => document.querySelector(selector);
const input = get("#input");
const parameters = new URLSearchParams(location.search);
const page = { depth: "idea", guesses: {}, states: {}, model: null, run: null };

/** Speak "ko" or "en"; only the words of that language are loaded. */
async function speak(language) {
  const words = await import(`./words/${language}.js`);
  Object.assign(page, { language, words });
}

/** GROUP.NAME of the words, or NAME of their group `page`, with values in the places in braces. */
function w(name, values = {}) {
  const [group, ...rest] = name.split(".");
  const text = (rest.length ? page.words[group]?.[rest.join(".")] : page.words.page[name]) ?? "";
  return text.replace(/(?<![_^])\{(\w+)\}/g, (_, key) => values[key] ?? "");
}

/* Opening a model */

/** USER/NAME is on the Hub, a name alone is a folder beside the page. */
function addressOf(name) {
  if (/^[\w-][\w.-]*\/[\w-][\w.-]*$/.test(name)) return `https://huggingface.co/${name}/resolve/main/`;
  return /^[\w-][\w.-]*$/.test(name) ? new URL(`models/${name}/`, document.baseURI).href : null;
}

async function open(filesOrUrl, name) {
  page.model?.close();
  Object.assign(page, { model: null, run: null, states: {}, name, error: null });
  const bar = make("progress", { max: 1, value: 0, "aria-label": w("loading") });
  const status = make("p", { className: "notice", role: "status", text: w("loading") });
  get("#side").hidden = get(".ask").hidden = true;
  get("#panel").replaceChildren(make("div", { className: "drop" }, status, bar));
  try {
    const model = await Model.open(filesOrUrl, ({ file, loaded, total }) => {
      status.textContent = w("loadingFile", { file, size: (loaded / 1e6).toFixed(1) });
      if (total) bar.value = loaded / total;
    });
    if (!bar.isConnected) return model.close(); // another model is being opened
    page.model = model;
    const { config, task } = model;
    page.kind = task === "translation" ? task : (config.problem_type ?? "single_label_classification");
    page.startPiece = await model.piece(config.decoder_start_token_id);
    const examples = await import(`./examples/${task}.js`);
    page.examples = examples[await languageOf(model, examples)];
    input.value = page.examples[0];
    get(".ask").hidden = false;
    say();
    await answer();
  } catch (error) {
    if (bar.isConnected) fail(error);
  }
}

/** In which language the model reads: the one of whose first sentence it is surest. */
async function languageOf(model, examples) {
  const scores = {};
  for (const [language, [sentence]] of Object.entries(examples)) {
    const { ids, pieces } = await model.encodeText(sentence);
    scores[language] = -ids.length / sentence.length - 100 * pieces.filter((piece) => /unk/i.test(piece)).length;
    if (model.task !== "translation" || scores[language] < -50) continue;
    const answer = await model.translate(sentence, { beams: 1, maxLength: 8 });
    scores[language] += (10 * answer.score) / answer.ids.length;
  }
  return Object.keys(scores).sort((a, b) => scores[b] - scores[a])[0];
}

function fail(error) {
  console.error(error);
  page.error = error;
  showStart();
}

async function showStart() {
  const { error } = page;
  const { startPanel } = await import("./start.js");
  if (page.error !== error) return; // a model is being opened
  get("#side").hidden = get(".ask").hidden = true;
  get("#panel").replaceChildren(startPanel(page));
}

const nameOf = (files) => [...files.keys()][0]?.split("/").at(-2) || w("ownModel");

/* Answering */

let answering = null; // the model that computes an answer; once closed, it never gives it
let isWanted = false;

/** A run with this text and options. */
function runOf(words, options) {
  const { model } = page;
  return model.task === "translation" ? model.translate(words, { beams: 1, maxLength: 80, ...options }) : model.classify(words, options);
}

function setText(words) {
  input.value = words;
  answer();
}

/** Answer the newest text; a text that was typed over is left out. */
async function answer() {
  isWanted = true;
  if (answering === page.model) return;
  const model = (answering = page.model);
  get(".answer").classList.add("busy");
  try {
    while (isWanted) {
      isWanted = false;
      const words = input.value;
      const run = await runOf(words, { trace: true });
      if (model !== page.model) return;
      page.run = words.trim() && !run.source.isEmpty ? { ...run, words } : null;
    }
    show();
  } catch (error) {
    fail(error);
  } finally {
    if (answering === model) {
      answering = null;
      get(".answer").classList.remove("busy");
    }
  }
}

const labelOf = (place) => {
  const own = page.model.labels[place] ?? String(place);
  return new Map(Object.entries(page.words.label)).get(own) ?? own;
};

/** A classifier's answer, {label, value}: the likeliest label, all above one half, or all numbers of a regression. */
function answersOf({ probabilities }) {
  const all = [...probabilities.keys()];
  const several = { multi_label_classification: all.filter((place) => probabilities[place] > 0.5), regression: all };
  const places = several[page.kind] ?? [bestOf(probabilities)];
  return places.map((place) => ({ label: labelOf(place), value: valueOf(probabilities[place]) }));
}

const valueOf = (value) => (page.kind === "regression" ? number(value) : percent(value));

/** An answer as a text: a translation, labels, or the numbers of a regression. */
function outcome(run) {
  if (page.model.task === "translation") return run.text || "∅";
  const part = page.kind === "regression" ? "value" : "label";
  return answersOf(run).map((one) => one[part]).join(", ") || "∅";
}

/** The probabilities of an answer's labels. */
function certainty(run) {
  return page.kind.endsWith("classification") ? answersOf(run).map(({ value }) => value).join(", ") : "";
}

function showAnswer() {
  const { run } = page;
  if (!run) return get(".answer").replaceChildren(w("empty"));
  const values = certainty(run);
  const cut = run.source.isCut && make("small", { text: w("cut", { count: run.source.ids.length }) });
  const parts = ["→", make("strong", { text: outcome(run) }), values && make("span", { text: values }), cut];
  return get(".answer").replaceChildren(...parts.filter(Boolean));
}

/* Showing */

const current = () => PANELS.find((id) => `#${id}` === location.hash) ?? "map";

function contextOf(id) {
  const { config, task } = page.model;
  return {
    ...{ ...page, config, task, panels: PANELS, w, labelOf, valueOf, outcome, certainty, choose, setText },
    others: Array.from(get(".models select").options, ({ value }) => value).filter((name) => !name.endsWith(page.name)),
    state: (page.states[id] ??= {}),
    answer: runOf,
    go: (id, state) => {
      if (state) Object.assign((page.states[id] ??= {}), state);
      location.hash = `#${id}`;
    },
    refresh: show,
    setDepth: (one) => {
      page.depth = one;
      show();
    },
  };
}

/** Keep the focus on what was chosen, though the panel is made anew. */
function keepFocus(root, change) {
  const all = () => [...root.querySelectorAll("button, a, input, select, [tabindex]")];
  const place = all().indexOf(document.activeElement);
  change();
  if (place >= 0) all()[place]?.focus({ preventScroll: true });
}

async function show() {
  hideHint();
  forgetColours();
  if (!page.model) return get("#panel .drop progress") || showStart();
  showAnswer();
  const id = current();
  const panel = id === "map" ? map : await import(`./panels/${id}.js`);
  if (id !== current() || !page.model) return; // gone on meanwhile
  const [root, side] = [get("#panel"), get("#side")];
  document.title = `${w(`${id}.title`)} · ${page.name} · Transformer`;
  side.hidden = id === "map" || !page.run;
  if (!page.run) return root.replaceChildren(make("p", { className: "notice", text: w("empty") }));
  const context = contextOf(id);
  keepFocus(root, () => renderPanel(root, id, panel, context));
  if (!side.hidden) keepFocus(side, () => side.replaceChildren(map.drawMap(context, { here: id })));
}

/** The words outside the panels. */
function say() {
  document.documentElement.lang = page.language;
  get(".top h1 a").textContent = w("title");
  for (const element of document.querySelectorAll("[data-say]")) element.textContent = w(element.dataset.say);
  for (const one of document.querySelectorAll("[data-language]"))
    one.setAttribute("aria-pressed", one.dataset.language === page.language);
  const { model } = page;
  if (!model) return;
  const { task, parameters: count } = model;
  get(".ask label").textContent = w(`input.${task}`);
  get(".examples").setAttribute("aria-label", w("examples"));
  get(".examples").replaceChildren(
    ...page.examples.slice(0, 4).map((words) => button(words, () => setText(words))),
  );
  get("footer").textContent = w("about", { name: page.name, parameters: count.toLocaleString(page.language) });
}

/** Keep a choice in the address. */
function remember(name, value) {
  parameters.set(name, value);
  history.replaceState(null, "", `?${parameters}${location.hash}`);
}

function choose(name) {
  get(".models select").value = name;
  remember("model", name);
  open(addressOf(name), name);
}

/** The models beside the page, to choose from. */
function listModels(names, chosen) {
  const list = get(".models select");
  const all = new Set([...names, ...(addressOf(chosen ?? "") ? [chosen] : [])]);
  list.append(...Array.from(all, (name) => make("option", { value: name, text: name, selected: name === chosen })));
  get(".models").hidden = all.size < 2;
  list.addEventListener("change", () => choose(list.value));
}

addEventListener("pointerdown", hideHint, true);
let pause;
input.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(answer, 200);
});
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.isComposing) event.preventDefault();
});
get(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  get("#panel").focus();
});
addEventListener("hashchange", async () => {
  await show();
  get("#panel").focus({ preventScroll: true });
  const { top } = get(".stage").getBoundingClientRect();
  if (top < 0) scrollBy({ top: top - 12 });
});
addEventListener("keydown", (event) => {
  const id = current();
  if (event.key !== "Escape" || id === "map" || !page.model) return;
  location.hash = "#map";
  addEventListener("hashchange", () => setTimeout(() => get(`.tour .map a[href="#${id}"]`)?.focus()), { once: true });
});
document.body.addEventListener("click", async ({ target }) => {
  const language = target.closest("[data-language]")?.dataset.language;
  if (!language) return;
  await speak(language);
  remember("lang", language);
  say();
  show();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("over");
});
addEventListener("dragleave", () => document.body.classList.remove("over"));
addEventListener("drop", async (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  const entries = Array.from(event.dataTransfer.items, (item) => item.webkitGetAsEntry()).filter(Boolean);
  const { filesOf } = await import("./start.js");
  const files = await filesOf(entries);
  if (files.size) open(files, nameOf(files));
});
get(".open input").addEventListener("change", ({ target }) => {
  const files = new Map(Array.from(target.files, (file) => [file.webkitRelativePath || file.name, file]));
  if (files.size) open(files, nameOf(files));
});

/** What stands beside the page: page.json lists models and says where the chapters are. */
async function begin() {
  const isKorean = (parameters.get("lang") ?? navigator.language).startsWith("ko");
  await speak(isKorean ? "ko" : "en");
  const { models, home } = await fetch("page.json").then((answer) => answer.json());
  page.home = home;
  const wanted = parameters.get("model") ?? models[0];
  say();
  listModels(models, wanted);
  if (!wanted) return showStart();
  const address = addressOf(wanted);
  if (address) return open(address, wanted.split("/").at(-1));
  return fail(failure("unreachable", `?model=${wanted}`));
}

begin();
