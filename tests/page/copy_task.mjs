/* Prints the copy task's weights with their gradients, and what 120 updates give. */

import { CopyTask, trainCopyTask } from "../../hf_vanilla_transformer/page/copy_task.js";

const task = new CopyTask(3);
for (let update = 0; update < 3; update++) task.update(8); // norms and biases are no longer 1 and 0
const sequences = task.sequences(4);
const loss = task.gradients(sequences);
const weights = Object.fromEntries([...task.tensors].map(([name, { shape, data, grad }]) => [
  name,
  { shape, data: Array.from(data), grad: Array.from(grad) },
]));
const updates = [...trainCopyTask({ updates: 120, seed: 0 })];
process.stdout.write(JSON.stringify({ sequences, loss, weights, updates }));
