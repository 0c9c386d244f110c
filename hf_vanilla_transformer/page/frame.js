/* What every panel has round its figures: title, three depths, question, chapter, neighbours. */

import { button, choice, controls, make, note } from "./draw.js";
import { LINES } from "./lines.js";
import { question } from "./questions.js";

const DEPTHS = ["idea", "formula", "code"];

/** The chapter of the walk-through that a panel belongs to; its heading is in the words. */
export const CHAPTERS = {
  map: "05_encoder_and_decoder",
  text: "02_embeddings_and_positions",
  head: "03_attention",
  attentions: "05_encoder_and_decoder",
  layers: "05_encoder_and_decoder",
  decoding: "08_translation",
  lens: "06_training",
  classifier: "07_review_classification",
  experiments: "06_training",
  training: "06_training",
};

/** Text with x_{low} and x^{high}. */
export function maths(text) {
  const parts = text.split(/([_^]\{[^}]*\})/).map((one) => {
    if (one.startsWith("_{")) return make("sub", { text: one.slice(2, -1) });
    return one.startsWith("^{") ? make("sup", { text: one.slice(2, -1) }) : one;
  });
  return make("p", { className: "formula" }, ...parts);
}

/** The explanation: the idea, the formulas too, the code too. */
function explanation(id, code, context) {
  const { w, depth } = context;
  const level = DEPTHS.indexOf(depth);
  const root = make("div", { className: "words" });
  root.append(...w(`${id}.idea`).split("\n").map((text) => make("p", { text })));
  const formulas = w(`${id}.formula`);
  if (level > 0 && formulas) root.append(...formulas.split("\n").map(maths));
  if (level > 1 && code) {
    const lines = code.map((name) => LINES[name]).join("\n");
    root.append(note(w("code.from", { file: `modeling_vanilla_transformer.py${id === "decoding" ? ", search.js" : ""}` })), make("pre", { tabIndex: 0, text: lines }));
  }
  return root;
}

/** A link to a chapter: beside this page on the documentation's site, elsewhere the repository's notebook. */
function chapterLink(id, { language, w, home }) {
  const isKorean = language === "ko";
  const [chapter, heading] = [CHAPTERS[id], w(`${id}.chapter`)];
  const repository = home.split(", ")[1];
  const address = repository
    ? `${repository}/blob/main/docs/walkthrough${isKorean ? "" : "/en"}/${chapter}.ipynb`
    : `${home}${isKorean ? "/ko" : ""}/walkthrough/${chapter}.html`;
  const anchor = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replace(/\s/g, "-");
  return make("a", { href: `${address}#${anchor}`, text: w("chapter", { number: +chapter.slice(0, 2), heading }) });
}

/** What a panel shows if it is for models of another task: the other models beside the page. */
export function needs(task, { w, others, choose }) {
  const buttons = others.map((name) => button(w("openOther", { name }), () => choose(name)));
  return make("div", {}, note(w(`needs.${task}`)), controls(...buttons));
}

/** Render a panel, a module of panels/, with its frame into `root`. */
export function renderPanel(root, id, { code, render }, context) {
  const { w, depth, panels, go } = context;
  const place = panels.indexOf(id);
  const figures = make("div", { className: "figures" });
  const frame = make("article", { className: `panel of-${id}`, "aria-labelledby": "panel-title" });
  const toMap = place > 0 && button(w("toMap"), () => go("map"));
  const kicker = make("p", { className: "kicker" }, toMap, `${place + 1} / ${panels.length}`);
  const title = make("h2", { id: "panel-title", text: w(`${id}.title`) });
  const depths = choice(w("depth"), DEPTHS.map((one) => [one, w(`depth.${one}`)]), depth, context.setDepth);
  const neighbour = (step, before, after) => {
    const other = panels[place + step];
    return other ? make("a", { href: `#${other}`, text: before + w(`${other}.title`) + after }) : make("span");
  };
  const links = make("p", { className: "note" }, `${w("more")} `, chapterLink(id, context));
  frame.append(
    make("header", {}, make("div", {}, kicker, title), depths),
    explanation(id, code, context),
    figures,
    question(id, context),
    links,
    make("nav", { className: "pages", "aria-label": w("pages") }, neighbour(-1, "← ", ""), neighbour(1, "", " →")),
  );
  root.replaceChildren(frame);
  render(figures, context);
}
