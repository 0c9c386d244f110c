/* One question a panel, about the run that it shows. Each function gives {values, options, right}: values for the words
of `ask` and `why`, the options, and the place of the right one, or an async function of that. */

import { bestOf, button, make, norm, number, part, percent } from "./draw.js";
import { attention, sourceTokens, stackRow } from "./trace.js";

/** Numbers to choose from, the right one and others, in their order. */
function among(right, others, say = String) {
  const options = [...new Set([right, ...others].sort((a, b) => a - b).map(say))];
  return { options, right: options.indexOf(say(right)) };
}

/** The largest weight of a softmax over scores times `scale`. */
function largestWeight(scores, scale) {
  const most = Math.max(...scores);
  return 1 / scores.reduce((sum, score) => sum + Math.exp(scale * (score - most)), 0);
}

const QUESTIONS = {
  map(context) {
    const count = sourceTokens(context).length;
    return { values: { count }, ...among(count, [context.run.pieces?.length ?? 1, context.config.d_model]) };
  },

  text({ run, w }) {
    const [row, position] = ["scaled", "positions"].map((name) => norm(part(run.trace.get(`encoder.embedding.${name}`), 0)));
    const values = { piece: run.source.pieces[0] ?? "[PAD]", row: number(row), position: number(position) };
    return { values, options: [w("ask.row"), w("ask.position")], right: row > position ? 0 : 1 };
  },

  head(context) {
    const view = attention(context, "encoder", 0);
    const query = view.queries.length - 1;
    const scores = view.keys.map((_, key) => view.score(0, query, key));
    const [now, flat, sharp] = [1, 1 / Math.sqrt(view.width), Math.sqrt(view.width)].map((scale) => largestWeight(scores, scale));
    const values = { query: view.queries[query], now: number(now), sharp: number(sharp) };
    return { values, ...among(sharp, [now, flat], number) };
  },

  attentions({ run }) {
    const count = run.pieces?.length ?? 1;
    const hidden = (count * (count - 1)) / 2;
    return { values: { count, hidden }, ...among(hidden, [count, count * count - hidden]) };
  },

  layers(context) {
    const last = context.config.encoder_layers - 1;
    const names = ["embedding.output", `layers.${last}.feed_forward.after`];
    const [before, after] = names.map((name) => norm(stackRow(context, "encoder", name, 0)));
    const values = { piece: sourceTokens(context)[0], before: number(before), after: number(after) };
    return { values, ...among(after / before, [after / before / 2, (2 * after) / before], (factor) => `× ${number(factor)}`) };
  },

  decoding({ run }) {
    const order = run.steps.map(({ token, best, piece }) => ({ piece, p: best.find(({ id }) => id === token)?.p ?? 0 })).sort((a, b) => a.p - b.p);
    const chosen = [0, Math.floor(order.length / 2), order.length - 1].map((place) => order[place]);
    const options = [...new Set(chosen.map(({ piece }) => piece))].sort();
    return { values: { piece: order[0].piece, p: percent(order[0].p) }, options, right: options.indexOf(order[0].piece) };
  },

  lens({ run: { steps } }) {
    const first = steps.filter(({ lens, token }) => lens[0][0].id === token).length;
    return { values: { count: steps.length, first }, ...among(first, [0, steps.length]) };
  },

  classifier({ run, answer }) {
    const words = run.words.trim().split(/\s+/);
    const label = bestOf(run.probabilities);
    const places = [...new Set([0, Math.floor(words.length / 2), words.length - 1])];
    const right = async () => {
      const changes = [];
      for (const place of places) {
        const { probabilities } = await answer(words.filter((_, one) => one !== place).join(" "));
        changes.push(Math.abs(probabilities[label] - run.probabilities[label]));
      }
      return bestOf(changes);
    };
    return { values: {}, options: places.map((place) => words[place]), right };
  },

  experiments({ run, w, answer, outcome }) {
    const right = async () => (outcome(await answer(run.words, { changes: { positions: false } })) === outcome(run) ? 0 : 1);
    return { values: {}, options: [w("ask.same"), w("ask.other")], right };
  },

  training: ({ w }) => ({ values: {}, options: [w("ask.code"), w("ask.nobody"), w("ask.mask")], right: 1 }),
};

export function question(id, context) {
  const { w, task, guesses } = context;
  if ((task === "translation" && id === "classifier") || (task === "classification" && /decoding|lens/.test(id))) return "";
  const { values, options, right } = QUESTIONS[id](context);
  const ask = w(`ask.${id}`, values);
  const result = make("div", { role: "status" });
  const buttons = options.map((text, place) => button(text, () => guess(place)));
  async function guess(place) {
    buttons.forEach((one) => (one.disabled = true));
    const { guessed, answer } = (guesses[ask + options] ??= { guessed: place, answer: right instanceof Function ? await right() : right });
    guesses[id] = true;
    buttons.forEach((one, number) => {
      one.classList.toggle("right", number === answer);
      one.classList.toggle("wrong", number === guessed && number !== answer);
    });
    const verdict = make("strong", { text: `${w(guessed === answer ? "question.right" : "question.wrong")} ` });
    result.replaceChildren(make("p", {}, verdict, w(`why.${id}`, values)));
  }
  if (guesses[ask + options]) guess();
  return make(
    "section",
    { className: "question" },
    make("h3", { text: `${w("question")} ${ask}` }),
    make("div", { className: "options" }, ...buttons),
    result,
  );
}
