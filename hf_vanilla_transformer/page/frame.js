// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* What every panel has round its figures: title, three depths, question, chapter, neighbours. */

import { button, choice, make } from "./draw.js";
import { LINES } from "./lines.js";
import { CHAPTERS, QUESTIONS } from "./words.js";

const DEPTHS = ["idea", "formula", "code"];

/** Text with x_{low} and x^{high}. */
export function maths(text) {
  const parts = text.split(/([_^]\{[^}]*\})/).map((one) => {
    if (one.startsWith("_{")) return make("sub", { text: one.slice(2, -1) });
    return one.startsWith("^{") ? make("sup", { text: one.slice(2, -1) }) : one;
  });
  return make("p", { className: "formula" }, ...parts);
}

/** The explanation: the idea, the formulas too, the code too. */
function explanation(panel, context) {
  const { w, depth } = context;
  const level = DEPTHS.indexOf(depth);
  const root = make("div", { className: "words" });
  root.append(...w(`${panel.id}.idea`).split("\n").map((text) => make("p", { text })));
  const formulas = w(`${panel.id}.formula`);
  if (level > 0 && formulas) root.append(...formulas.split("\n").map(maths));
  if (level > 1 && panel.code) {
    const lines = panel.code.map((name) => LINES[name]).join("\n");
    root.append(make("p", { className: "note", text: w("code.from") }), make("pre", { tabIndex: 0, text: lines }));
  }
  return root;
}

/** A link to a chapter; the heading gives the anchor. */
export function chapterLink(id, { language, w, chapters }) {
  const [chapter, ...headings] = CHAPTERS[id];
  const heading = headings[language === "ko" ? 0 : 1];
  const base = `${chapters}${language === "ko" ? "" : "/en"}/${chapter}.ipynb`;
  const anchor = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replace(/\s/g, "-");
  return make("a", { href: `${base}#${encodeURIComponent(anchor)}`, text: w("chapter", { number: +chapter.slice(0, 2), heading: heading.replaceAll("`", "") }) });
}

/** One question: guess, then see the answer. */
export function question(id, context) {
  const { w, language, guesses } = context;
  const { ask, options, right, why } = QUESTIONS[id];
  const at = language === "ko" ? 0 : 1;
  const root = make("section", { className: "question" });
  const result = make("div", { role: "status" });
  const buttons = options[at].map((text, place) => button(text, () => guess(place)));
  function guess(place) {
    guesses[id] ??= place;
    buttons.forEach((one, number) => {
      one.disabled = true;
      one.classList.toggle("right", number === right);
      one.classList.toggle("wrong", number === guesses[id] && number !== right);
    });
    const isRight = guesses[id] === right;
    result.replaceChildren(
      make("p", {}, make("strong", { text: `${w(isRight ? "question.right" : "question.wrong")} ` }), why[at]),
    );
  }
  root.append(make("h3", { text: `${w("question")} ${ask[at]}` }), make("div", { className: "options" }, ...buttons), result);
  if (id in guesses) guess(guesses[id]);
  return root;
}

/** What a panel shows if it is for models of another task: the other models beside the page. */
export function needs(task, { w, others, choose }) {
  const buttons = others.map((name) => button(w("openOther", { name }), () => choose(name)));
  return make("div", {}, make("p", { className: "note", text: w(`needs.${task}`) }), make("p", { className: "controls" }, ...buttons));
}

/** Render a panel with its frame into `root`. */
export function renderPanel(root, panel, context) {
  const { w, depth, panels, go } = context;
  const place = panels.indexOf(panel);
  const figures = make("div", { className: "figures" });
  const frame = make("article", { className: `panel of-${panel.id}`, "aria-labelledby": "panel-title" });
  const toMap = place > 0 && button(w("toMap"), () => go("map"));
  const kicker = make("p", { className: "kicker" }, toMap, `${place + 1} / ${panels.length}`);
  const title = make("h2", { id: "panel-title", text: w(`${panel.id}.title`) });
  const depths = choice(w("depth"), DEPTHS.map((one) => [one, w(`depth.${one}`)]), depth, context.setDepth);
  const neighbour = (step, name) => {
    const other = panels[place + step];
    return other ? make("a", { href: `#${other.id}`, text: w(name, { title: w(`${other.id}.title`) }) }) : make("span");
  };
  const links = make("p", { className: "note" }, `${w("more")} `, chapterLink(panel.id, context));
  frame.append(
    make("header", {}, make("div", {}, kicker, title), depths),
    explanation(panel, context),
    figures,
    ...(QUESTIONS[panel.id] ? [question(panel.id, context)] : []),
    links,
    make("nav", { className: "pages", "aria-label": w("pages") }, neighbour(-1, "previous"), neighbour(1, "next")),
  );
  root.replaceChildren(frame);
  panel.render(figures, context);
}
