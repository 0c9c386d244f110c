// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* Training for real: chapter 6's copy task, with its loss, its attention and what it writes. */

import { CONFIG, CopyTask, LENGTH, SYMBOLS } from "../copy_task.js";
import { button, chips, figure, grid, legend, make, note, number, part, percent, plot } from "../draw.js";

const STEPS = 200;
const EVERY = 10; // steps between two looks at the model

export default {
  id: "training",
  render(root, context) {
    const { w, state } = context;
    state.task ??= new CopyTask(1);
    state.losses ??= [];
    const { task } = state;
    const source = task.example;
    const parameters = [...task.tensors.values()].reduce((sum, { data }) => sum + data.length, 0);

    const status = make("p", { className: "sum", role: "status" });
    const losses = plot({ curves: [{ data: state.losses }], label: w("training.loss"), x: w("training.step"), y: w("training.loss"), low: 0, high: 3.5, height: 190, xEnd: STEPS });
    const wanted = chips(source.map(String), { label: w("training.wanted") });
    const written = make("div");
    const picture = grid({
      ...{ rows: LENGTH, columns: LENGTH, scale: "weights", cell: 30, label: w("training.attention") },
      ...{ columnLabels: source.map(String), rowAxis: w("training.writes"), columnAxis: w("training.reads") },
      value: (row, column) => state.weights?.[row]?.[column] ?? 0,
      hint: (row, column) => ({ title: `${row + 1} → ${column + 1}: ${number(state.weights?.[row]?.[column] ?? 0)}` }),
    });

    /** Write the probe, and count how many new sequences are copied without a mistake. */
    function look() {
      const { written: ids, attention } = task.show();
      const [heads] = attention.cross.shape;
      const weight = (row, column) => Array.from({ length: heads }, (_, head) => part(attention.cross, head, row)[column]);
      state.weights = ids.map((_, row) => source.map((_, column) => weight(row, column).reduce((a, b) => a + b) / heads));
      state.share = task.share(20);
      written.replaceChildren(chips(ids.map(String), { label: w("training.written"), chosen: new Set([...ids.keys()].filter((place) => ids[place] === source[place])) }));
      picture.update({});
    }
    function tell() {
      const { length } = state.losses;
      const values = { step: length, loss: length ? number(state.losses.at(-1)) : "–", share: percent(state.share ?? 0) };
      status.textContent = w("training.status", values);
      losses.update({ curves: [{ data: state.losses }] });
      go.textContent = w(state.isRunning ? "pause" : length >= STEPS ? "training.done" : "training.start");
      go.disabled = length >= STEPS;
    }
    /** As many steps as fit into a frame. */
    function frame() {
      if (!state.isRunning || !root.isConnected) return void (state.isRunning = false);
      const start = performance.now();
      do {
        state.losses.push(task.update(32));
        if (state.losses.length % EVERY === 0) look();
        if (state.losses.length >= STEPS) state.isRunning = false;
      } while (state.isRunning && performance.now() - start < 8);
      tell();
      requestAnimationFrame(frame);
    }
    const go = button(w("training.start"), () => {
      state.isRunning = !state.isRunning;
      tell();
      requestAnimationFrame(frame);
    }, { className: "primary" });
    const again = button(w("training.again"), () => {
      Object.assign(state, { isRunning: false, task: null, losses: null, weights: null, share: 0 });
      context.refresh();
    });
    state.isRunning = false;
    root.append(
      figure(
        w("training.task"),
        `D = ${CONFIG.d_model}, ${w("training.parameters", { count: parameters.toLocaleString("en") })}`,
        make("div", { className: "controls" }, go, again),
        status,
        losses,
        note(w("training.guess", { loss: number(Math.log(SYMBOLS - 2)) })),
      ),
      figure(
        w("training.probe"),
        `(T, S) = (${LENGTH}, ${LENGTH})`,
        make("h4", { text: w("training.wanted") }),
        wanted,
        make("h4", { text: w("training.written") }),
        written,
        make("h4", { text: w("training.attention") }),
        picture,
        legend("weights", 1, w),
        note(w("training.attention.note")),
      ),
    );
    look();
    tell();
  },
};
