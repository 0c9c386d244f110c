/* Texts to ids and back, over @huggingface/tokenizers (vendor/tokenizers.js, Apache-2.0). */

import { failure } from "./failures.js";
import { Tokenizer } from "./vendor/tokenizers.js";

export class Tokens {
  /** The contents of tokenizer.json and tokenizer_config.json. */
  constructor(file, settings) {
    try {
      this.tokenizer = new Tokenizer(file, settings);
    } catch (error) {
      throw failure("tokenizer", error.message);
    }
    // As in Python, unknown characters become one token within a word, not across words.
    const { model } = this.tokenizer;
    this.tokenizer.model = new Proxy(model, { apply: (_, self, [words]) => words.flatMap((word) => model([word])) });
    this.maxLength = settings.model_max_length ?? Infinity;
    this.cutsLeft = settings.truncation_side === "left";
  }

  /** {normalized, pieces, ids, isCut, isEmpty}: cut to `maxLength` as in Python, where added tokens like [EOS] stay.

  Empty is a text without a token of its own, such as a zero-width space. */
  encode(text, maxLength = this.maxLength) {
    const normalized = this.tokenizer.normalizer?.(text) ?? text;
    const own = this.tokenizer.encode(text, { add_special_tokens: false }).ids;
    const { ids } = this.tokenizer.encode(text);
    const surplus = Math.min(ids.length - maxLength, own.length);
    if (surplus > 0) {
      const begin = ids.findIndex((_, place) => own.every((id, index) => ids[place + index] === id));
      ids.splice(this.cutsLeft ? begin : begin + own.length - surplus, surplus);
    }
    const pieces = ids.map((id) => this.piece(id));
    return { normalized, pieces, ids, isCut: surplus > 0, isEmpty: !own.length };
  }

  /** The text of ids, without special tokens. */
  decode(ids) {
    return ids.length ? this.tokenizer.decode(ids, { skip_special_tokens: true }) : "";
  }

  /** A token of the vocabulary; its number where the model has more rows than the tokenizer has tokens. */
  piece(id) {
    return this.tokenizer.id_to_token(id) ?? `[${id}]`;
  }
}
