/* What torch does for the modelling file: tensors, linear layers, activations.

A tensor is {shape, data}: `data` is a Float32Array, and the last axis of `shape` runs fastest. Sums are float64, as
all numbers of JavaScript are. */

export const sizeOf = (shape) => shape.reduce((size, side) => size * side, 1);
export const zeros = (...shape) => ({ shape, data: new Float32Array(sizeOf(shape)) });
export const map = (x, change) => ({ shape: x.shape, data: x.data.map(change) });
export const add = (x, y) => map(x, (value, place) => value + y.data[place]);
export const row = (x, place) => x.data.subarray(place * x.shape[1], (place + 1) * x.shape[1]);
export const rowsOf = (x) => Array.from({ length: x.shape[0] }, (_, place) => row(x, place));

/** x W^T + b: (L, inputs) to (L, outputs). Inputs that are 0, most of what ReLU leaves, are passed over; four outputs
share the reading of the others, and their four sums do not wait for each other. Past the end of a row, nothing is written. */
export function linear(x, { weight, bias }) {
  const [length, inputs] = x.shape;
  const outputs = weight.shape[0];
  const result = zeros(length, outputs);
  const w = weight.data;
  const [values, columns] = [new Float64Array(inputs), new Int32Array(inputs)];
  for (let place = 0; place < length; place++) {
    const input = row(x, place);
    const output = row(result, place);
    let count = 0;
    for (let i = 0; i < inputs; i++) {
      values[count] = input[i];
      columns[count] = i;
      if (input[i] !== 0) count++;
    }
    for (let out = 0; out < outputs; out += 4) {
      let [a, b, c, d] = [0, 0, 0, 0];
      for (let i = 0; i < count; i++) {
        const value = values[i];
        let at = out * inputs + columns[i];
        a += value * w[at];
        b += value * w[(at += inputs)];
        c += value * w[(at += inputs)];
        d += value * w[(at += inputs)];
      }
      output[out] = a;
      output[out + 1] = b;
      output[out + 2] = c;
      output[out + 3] = d;
    }
    if (bias) for (let out = 0; out < outputs; out++) output[out] += bias.data[out];
  }
  return result;
}

export function dot(x, xStart, y, yStart, length) {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += x[xStart + i] * y[yStart + i];
  return sum;
}

export function logSoftmax(logits) {
  let most = -Infinity;
  for (let i = 0; i < logits.length; i++) if (logits[i] > most) most = logits[i];
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i] - most);
  const total = Math.log(sum) + most;
  const logP = new Float64Array(logits.length);
  for (let i = 0; i < logP.length; i++) logP[i] = logits[i] - total;
  return logP;
}

/** Error function, to 1.5e-7 (Abramowitz and Stegun, 7.1.26). */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const sum = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}

/** Of one label, or of each of several labels; a regression's numbers stay. */
export function probabilitiesOf(logits, type) {
  if (type === "regression") return logits;
  return type === "multi_label_classification" ? logits.map(sigmoid) : Array.from(logSoftmax(logits), Math.exp);
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const tanhGelu = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
const gelu = (x) => 0.5 * x * (1 + erf(x / Math.SQRT2));
const silu = (x) => x * sigmoid(x);

/** By transformers' names; those that Transformers are trained with. */
export const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  relu2: (x) => Math.max(x, 0) ** 2,
  ...{ gelu, gelu_new: tanhGelu, gelu_fast: tanhGelu, gelu_pytorch_tanh: tanhGelu },
  ...{ silu, swish: silu, sigmoid, tanh: Math.tanh },
};

/** The places of the largest values, the largest first; of equal ones the first. */
export function largest(values, count) {
  const places = [];
  for (let i = 0; i < values.length; i++) {
    if (places.length === count && !(values[i] > values[places[count - 1]])) continue;
    let at = places.length;
    while (at > 0 && values[i] > values[places[at - 1]]) at--;
    places.splice(at, 0, i);
    if (places.length > count) places.pop();
  }
  return places;
}
