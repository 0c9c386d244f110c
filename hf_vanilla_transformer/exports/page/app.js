// The page: what is typed goes to the model, what the model says is shown.

import { Classifier, Translator, readJson } from "./engine.js";
import { drawMap, drawWords, fillTable, make, meanOf, plain } from "./attention.js";

const get = (id) => document.getElementById(id);
const input = get("input");
let config, model, texts, language, latest, wanted;
let busy = false;
let took, pause;

/** What the page says, in its language, with values in the places in braces. */
function words(name, values = {}) {
  const text = { ...texts[language], ...texts[language][config.task] }[name] ?? "";
  return text.replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

/** Lists to choose a layer and a head from; a list of one is left out. */
function offer(section, layers, heads) {
  const lists = { layer: Array.from({ length: layers }, (_, layer) => [layer, layer + 1]) };
  if (heads) lists.head = [["mean", words("mean")], ...Array.from({ length: heads }, (_, head) => [head, head + 1])];
  const choices = section.querySelector(".choices");
  const before = Object.fromEntries(Array.from(choices.querySelectorAll("select"), (list) => [list.name, list.value]));
  choices.replaceChildren();
  for (const [name, options] of Object.entries(lists)) {
    const list = make("select", { name }, ...options.map(([value, text]) => make("option", { value, text })));
    list.value = before[name] ?? options[0][0];
    list.addEventListener("change", show);
    if (options.length > 1) choices.append(make("label", {}, `${words(name)} `, list));
  }
}

/** What is chosen there: the layer's heads, and the mean or one of them. */
function chosen(section, attention) {
  const value = (name) => section.querySelector(`select[name=${name}]`)?.value ?? "0";
  const heads = attention[value("layer")];
  return value("head") === "mean" ? meanOf(heads) : heads[value("head")];
}

function showMap(section, attention, queries, keys) {
  const rows = chosen(section, attention);
  const name = section.querySelector("h2").textContent;
  drawMap(section.querySelector("figure"), rows, queries, keys, words, name);
  fillTable(section.querySelector("details"), {
    ...{ name, corner: words("corner"), rows: queries.map(plain), columns: keys.map(plain) },
    cell: (row, column) => rows[row][column],
  });
}

const percent = (share) =>
  new Intl.NumberFormat(language, { style: "percent", minimumFractionDigits: 2 }).format(share);

function showLabels() {
  const { probabilities, tokens, cross, encoder } = latest;
  // A label is a stranger's text: never a key of an object, which has `constructor` and others of its own.
  const names = new Map(Object.entries(texts[language].labelNames));
  const label = (place) => names.get(config.labels[place]) ?? config.labels[place];
  const order = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a]);
  const [best] = order;
  get("verdict").replaceChildren(make("strong", { text: label(best) }), ` ${percent(probabilities[best])}`);
  const listed = order.length > 5 ? order.slice(0, 5) : order.sort((a, b) => a - b);
  get("labels").tBodies[0].replaceChildren(
    ...listed.map((place) => {
      const bar = make("span", { className: "bar" });
      bar.style.setProperty("--share", `${100 * probabilities[place]}%`);
      const cells = [make("td", { "aria-hidden": "true" }, bar), make("td", { text: percent(probabilities[place]) })];
      return make("tr", { className: place === best ? "best" : "" }, make("th", { text: label(place) }), ...cells);
    }),
  );
  speak(`${label(best)} ${percent(probabilities[best])}`);

  const section = get("cross");
  const layer = cross[section.querySelector("select")?.value ?? 0].map(([weights]) => weights);
  drawWords(section.querySelector("figure"), layer, tokens, words);
  fillTable(section.querySelector("details"), {
    ...{ name: words("cross"), corner: words("token"), rows: tokens.map(plain) },
    columns: layer.map((_, head) => words("headNumber", { number: head + 1 })),
    cell: (row, column) => layer[column][row],
  });
  showMap(get("encoder"), encoder, tokens, tokens);
}

function showTranslation() {
  get("verdict").replaceChildren(make("strong", { text: latest.translation, lang: config.languages[1] ?? "" }));
  speak(latest.translation);
  showMap(get("cross"), latest.cross, latest.written, latest.tokens);
}

/** Say it to a screen reader, once the typing pauses. */
function speak(text) {
  clearTimeout(pause);
  pause = setTimeout(() => (get("spoken").textContent = text), 800);
}

function show() {
  const isClassifier = config.task === "classification";
  for (const id of ["answer", "cross"]) get(id).hidden = !latest;
  get("encoder").hidden = !latest || !isClassifier;
  get("notice").textContent = latest?.cut ? words("cut", { limit: config.max_length }) : latest ? "" : words("empty");
  get("time").textContent = took ? words("time", { time: took.toFixed(1) }) : "";
  if (latest) (isClassifier ? showLabels : showTranslation)();
}

/** Answer the newest text; a translation under way stops. */
async function answer() {
  wanted = input.value;
  if (busy) return;
  busy = true;
  try {
    while (wanted !== null) {
      const text = wanted;
      wanted = null;
      if (config.task === "classification") {
        const [isFirst, start] = [!latest, performance.now()];
        latest = await model.classify(text);
        took = isFirst ? null : performance.now() - start; // the first answer compiles code
      } else {
        latest = null;
        for await (latest of model.translate(text)) {
          if (wanted !== null) break;
          show();
          await new Promise(requestAnimationFrame);
        }
      }
      if (wanted === null) show();
    }
  } catch (error) {
    fail(error);
  } finally {
    busy = false;
  }
}

function fail(error) {
  get("notice").textContent = texts ? words("failed", { reason: error.message }) : error.message;
  console.error(error);
}

function say(chosen) {
  language = chosen;
  document.documentElement.lang = language;
  document.title = `${words("title")} · ${config.name}`;
  for (const element of document.querySelectorAll("[data-say]")) element.textContent = words(element.dataset.say);
  for (const element of document.querySelectorAll("[data-label]"))
    element.setAttribute("aria-label", words(element.dataset.label));
  for (const button of document.querySelectorAll("[data-language]"))
    button.setAttribute("aria-pressed", button.dataset.language === language);
  get("about").textContent = words("about", { name: config.name, parameters: config.parameters.toLocaleString(language) });
  const { decoder, encoder } = config.attention;
  offer(get("cross"), decoder.layers, config.task === "translation" && decoder.heads);
  offer(get("encoder"), encoder.layers, encoder.heads);
}

async function begin() {
  [config, texts] = await Promise.all([readJson("model/page.json"), readJson("words.json")]);
  say(navigator.language.startsWith("ko") ? "ko" : "en");
  for (const button of document.querySelectorAll("[data-language]"))
    button.addEventListener("click", () => {
      say(button.dataset.language);
      if (model) show();
    });
  get("notice").textContent = words("loading", { size: Math.round(config.bytes / 1e6) });
  input.lang = config.languages[0] ?? "";
  input.value ||= config.examples[0] ?? "";
  get("examples").replaceChildren(
    ...config.examples.map((text) => {
      const button = make("button", { type: "button", text, lang: input.lang });
      button.addEventListener("click", () => {
        input.value = text;
        if (model) answer();
      });
      return button;
    }),
  );
  model = await (config.task === "classification" ? Classifier : Translator).load(config);
  input.addEventListener("input", answer);
  window.addEventListener("resize", () => latest && show());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => latest && show());
  await answer();
  performance.mark("ready");
  document.body.dataset.ready = "";
}

begin().catch(fail);
