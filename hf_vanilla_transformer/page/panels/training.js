/* Training for real: chapter 6's copy task, with its loss, its attention and what it writes after each step. */

import { trainCopyTask } from "../client.js";
import { CONFIG, LENGTH, SYMBOLS } from "../copy_task.js";
import { button, chips, controls, figure, grid, heading, make, note, number, percent, plot, slider } from "../draw.js";

const STEPS = 200;

export function render(root, context) {
  const { w, state } = context;
  state.updates ??= [];
  const { updates } = state;

  const status = make("p", { className: "sum", role: "status", text: w("training.before") });
  const losses = plot({ curves: [], label: w("training.loss"), x: w("step"), xStart: 1, y: w("training.loss"), low: 0, high: 3.5, height: 190, xEnd: STEPS - 1 });
  const wanted = make("div");
  const written = make("div");
  const weight = (row, column) => state.shown.attention[row][column];
  const pictures = make("div");

  /** Show the model as it was after one step. */
  function show(place) {
    const one = (state.shown = updates[place]);
    const { source, written: ids } = one;
    const share = updates.slice(0, place + 1).findLast((other) => other.share !== undefined)?.share;
    const right = new Set([...ids.keys()].filter((at) => ids[at] === source[at]));
    const values = { step: one.update, loss: number(one.loss), right: right.size, share: share === undefined ? "–" : percent(share) };
    status.textContent = w("training.status", values);
    const labels = { columnLabels: source.map(String), rowLabels: ids.map(String) };
    wanted.replaceChildren(chips(source.map(String), { label: w("training.wanted") }));
    written.replaceChildren(chips(ids.map(String), { label: w("training.written"), chosen: right }));
    losses.update({ curves: [{ data: updates.map(({ loss }) => loss) }], mark: place });
    if (pictures.firstChild) return pictures.firstChild.update(labels);
    pictures.append(
      grid({
        ...{ rows: LENGTH, columns: LENGTH, scale: "weights", cell: 30, label: w("training.attention"), ...labels },
        ...{ rowAxis: w("training.writes"), columnAxis: w("training.reads") },
        value: weight,
        hint: (row, column) => ({ title: `${row + 1} → ${column + 1}: ${number(weight(row, column))}` }),
      }),
    );
  }
  const control = slider(w("step"), { min: 1, max: STEPS, value: 1 }, (step) => {
    state.isScrubbing = true;
    show(Math.min(step, updates.length) - 1);
  });
  async function start() {
    state.stop?.();
    updates.length = 0;
    state.isScrubbing = false;
    go.textContent = w("training.again");
    const run = trainCopyTask({ updates: STEPS, seed: 0 }, (one) => {
      updates.push(one);
      if (!root.isConnected || state.isScrubbing) return;
      control.set(updates.length);
      show(updates.length - 1);
    });
    state.stop = run.stop;
    await run.done;
  }
  const go = button(w(updates.length ? "training.again" : "training.start"), start, { className: "primary" });
  root.append(
    figure(
      w("training.task"),
      `D = ${CONFIG.d_model}, H = ${CONFIG.encoder_attention_heads}, V = ${SYMBOLS}, T = S = ${LENGTH}`,
      controls(go, control),
      status,
      losses,
      note(w("training.guess", { loss: number(Math.log(SYMBOLS - 2)) })),
    ),
    figure(
      w("training.probe"),
      `(T, S) = (${LENGTH}, ${LENGTH})`,
      heading(w("training.wanted")),
      wanted,
      heading(w("training.written")),
      written,
      heading(w("training.attention")),
      pictures,
      note(w("training.attention.note")),
    ),
  );
  if (updates.length) {
    control.set(updates.length);
    show(updates.length - 1);
  }
}
