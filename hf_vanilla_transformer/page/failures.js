// Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
/* What the page cannot open, one sentence each. An error has `code`, `detail` and `sentences`, {en, ko}. */

const SENTENCES = {
  no_model: {
    en: (address = "these files") => `There is no config.json in ${address}, so this is no model's folder.`,
    ko: (address = "고른 파일") => `${address}에 config.json이 없어 모델 폴더가 아닙니다.`,
  },
  missing_file: {
    en: (name) => `The file ${name} is missing.`,
    ko: (name) => `${name} 파일이 없습니다.`,
  },
  unreadable_file: {
    en: (name) => `The file ${name} is no valid JSON.`,
    ko: (name) => `${name} 파일이 올바른 JSON이 아닙니다.`,
  },
  unreachable: {
    en: (address) => `${address} cannot be reached.`,
    ko: (address) => `${address}에 연결할 수 없습니다.`,
  },
  other_model: {
    en: (type) => `This is a model of type ${type}, not vanilla_transformer.`,
    ko: (type) => `vanilla_transformer가 아니라 ${type} 종류의 모델입니다.`,
  },
  no_task: {
    en: (name) => `This is a ${name}, which neither classifies nor translates.`,
    ko: (name) => `${name} 모델은 분류도 번역도 하지 않습니다.`,
  },
  activation: {
    en: (name) => `The page cannot compute the activation ${name}.`,
    ko: (name) => `활성화 함수 ${name}은(는) 이 페이지가 계산하지 못합니다.`,
  },
  too_large: {
    en: (millions) => `The model has ${millions} million parameters; a browser has memory for 250 million.`,
    ko: (millions) => `모델의 파라미터가 ${millions / 100}억 개인데, 브라우저의 메모리로는 2.5억 개까지 열 수 있습니다.`,
  },
  precision: {
    en: (type) => `The weights are ${type}; the page reads F32, F16 and BF16.`,
    ko: (type) => `가중치의 자료형이 ${type}입니다. 이 페이지는 F32, F16, BF16만 읽습니다.`,
  },
  damaged: {
    en: (name) => `The file ${name} is damaged or incomplete.`,
    ko: (name) => `${name} 파일이 손상되었거나 끝까지 받아지지 않았습니다.`,
  },
  missing_weight: {
    en: (name) => `The weights lack ${name}.`,
    ko: (name) => `가중치에 ${name}이(가) 없습니다.`,
  },
  wrong_shape: {
    en: (name) => `The weight ${name} has another shape than config.json says.`,
    ko: (name) => `가중치 ${name}의 모양이 config.json과 다릅니다.`,
  },
  tokenizer: {
    en: (reason) => `The page cannot read this tokenizer: ${reason}.`,
    ko: (reason) => `이 토크나이저는 읽을 수 없습니다: ${reason}.`,
  },
};

export function failure(code, detail) {
  const { en, ko } = SENTENCES[code];
  return Object.assign(new Error(en(detail)), { code, detail, sentences: { en: en(detail), ko: ko(detail) } });
}
