// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* All questions of the panels, with the links to them and to the chapters. */

import { make, note } from "../draw.js";
import { chapterLink, question } from "../frame.js";
import { QUESTIONS } from "../words.js";

export default {
  id: "questions",
  render(root, context) {
    const { w, panels, guesses } = context;
    const asked = panels.filter(({ id }) => id in QUESTIONS);
    const right = asked.filter(({ id }) => guesses[id] === QUESTIONS[id].right).length;
    root.append(note(w("questions.score", { right, guessed: Object.keys(guesses).length, count: asked.length })));
    for (const { id } of asked) {
      const links = make("p", { className: "note" }, make("a", { href: `#${id}`, text: w(`${id}.title`) }), " · ", chapterLink(id, context));
      root.append(question(id, context), links);
    }
  },
};
