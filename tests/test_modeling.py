"""The model against references: torch.nn with copied weights, the naive oracle, and itself by another path."""

import copy

import pytest
import reference
import torch
from shared import LINES, VARIANTS, tiny_config
from test_conversion import AUTO_CLASSES
from torch import nn
from transformers import DynamicCache, EncoderDecoderCache, StaticCache

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerEncoderModel,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
    to_source_state_dict,
)
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.modeling_vanilla_transformer import (
    VanillaTransformerAttention,
    VanillaTransformerUnbiasedStdNorm,
)


SOURCES = [[7, 8, 9, 10, 11], [12, 13, 14]]
TARGETS = [[2, 20, 21, 22], [2, 23]]
IDS = torch.tensor(SOURCES[:1])


def pad(rows: list[list[int]], side: str = "right", length: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask of rows of unequal length."""
    length = length or max(map(len, rows))
    pads = [[0] * (length - len(row)) for row in rows]
    ids = [row + zeros if side == "right" else zeros + row for row, zeros in zip(rows, pads, strict=True)]
    return torch.tensor(ids), torch.tensor(ids).ne(0).long()


def batch(side: str = "right", source_length: int | None = None, target_length: int | None = None) -> dict:
    """Sources and targets with their masks."""
    source, source_mask = pad(SOURCES, side, source_length)
    target, target_mask = pad(TARGETS, side, target_length)
    masks = {"attention_mask": source_mask, "decoder_attention_mask": target_mask}
    return {"input_ids": source, "decoder_input_ids": target, **masks}


def attending(attn: str, model):
    model = copy.deepcopy(model)
    model.set_attn_implementation(attn)
    return model


def test_the_model_computes_the_papers_equations(config):
    """Of each row by itself, and among others with pads on either side; in value and gradient."""
    model = VanillaTransformerModel(config).double().eval()
    direction = torch.linspace(-1, 1, config.d_model, dtype=torch.float64)

    def with_gradients(encoded, decoded):
        loss = (encoded * direction).sum() + (decoded * direction).sum()
        return encoded, decoded, torch.autograd.grad(loss, [*model.parameters()], materialize_grads=True)

    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        expected = with_gradients(*reference.encode_decode(model, source, target))
        alone = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([target])}
        for attn in ("eager", "sdpa"):
            model.set_attn_implementation(attn)
            for inputs, row in ((alone, 0), (batch("left", 9, 7), number), (batch("right", 9, 7), number)):
                outputs = model(**inputs)
                encoded = outputs.encoder_last_hidden_state[row, inputs["input_ids"][row] != 0]
                decoded = outputs.last_hidden_state[row, inputs["decoder_input_ids"][row] != 0]
                torch.testing.assert_close(with_gradients(encoded, decoded), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("attn", ["eager", "sdpa"])
def test_the_stacks_equal_torchs_in_value_and_gradient(attn):
    sizes = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    ours = VanillaTransformerModel(VanillaTransformerConfig.from_preset("torch-nn-transformer", **sizes)).eval()
    ours.set_attn_implementation(attn)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # norms, too, away from 1 and 0
    theirs = nn.Transformer(16, 8, 2, 2, 32, batch_first=True).eval()
    theirs.load_state_dict(to_source_state_dict(ours, "torch-nn-transformer"))

    source, target = torch.randn(2, 5, 16, requires_grad=True), torch.randn(2, 4, 16, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    output = ours(inputs_embeds=source, attention_mask=mask, decoder_inputs_embeds=target).last_hidden_state
    expected = theirs(
        source,
        target,
        src_key_padding_mask=mask == 0,
        memory_key_padding_mask=mask == 0,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(4).isinf(),
    )
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)
    gradients, expected_gradients = (
        torch.autograd.grad((x * torch.linspace(-1, 1, 16)).sum(), [source, target]) for x in (output, expected)
    )
    torch.testing.assert_close(gradients, expected_gradients, rtol=0, atol=1e-5)


def test_unbiased_std_norm_of_equal_features_has_a_gradient():
    x = torch.ones(3, 8, requires_grad=True)
    VanillaTransformerUnbiasedStdNorm(8, eps=1e-6)(x).square().sum().backward()
    assert x.grad.isfinite().all()


def cross_attention(attn: str) -> tuple[VanillaTransformerAttention, dict[str, torch.Tensor]]:
    """One position that attends to three sources, one of pads alone; dropout is on."""
    config = tiny_config(attention_dropout=0.3)
    config._attn_implementation = attn
    allowed = torch.tensor([[1, 1, 1, 1, 1], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]]).bool()[:, None, None]
    mask = torch.zeros(allowed.shape).double().masked_fill(~allowed, torch.finfo(torch.float64).min)
    attention = VanillaTransformerAttention(config, 4, is_causal=False, layer_idx=0).double()
    for weight in attention.parameters():
        nn.init.normal_(weight)
    return attention, {
        "hidden_states": torch.randn(3, 1, 16).double(),
        "attention_mask": allowed if attn == "sdpa" else mask,
        "encoder_hidden_states": torch.randn(3, 5, 16).double(),
    }


@pytest.mark.parametrize(("attn", "training"), [("eager", True), ("eager", False), ("sdpa", False)])
def test_a_single_position_attends_as_if_keys_and_values_were_projected(attn, training):
    """A cache needs them; without one they are left out. Values, gradients, probabilities, dropout."""
    attention, inputs = cross_attention(attn)
    attention.train(training)
    results = []
    for cache in (None, EncoderDecoderCache(DynamicCache(), DynamicCache())):
        torch.manual_seed(0)
        attention.zero_grad()
        output, probabilities = attention(**inputs, cache=cache)
        output.pow(2).sum().backward()
        results.append([output, probabilities, *(weight.grad for weight in attention.parameters())])
    torch.testing.assert_close(*results)
    assert (results[0][1] is None) == (attn == "sdpa")


def test_hooks_and_adapters_of_keys_and_values_are_called():
    attention, inputs = cross_attention("sdpa")
    shapes = []
    hook = attention.k_proj.register_forward_hook(lambda module, args, output: shapes.append(output.shape))
    attention(**inputs)
    assert shapes == [(3, 5, 16)]
    hook.remove()
    attention.v_proj = nn.Sequential(attention.v_proj, nn.Tanh())
    attention.eval()
    with_cache = attention(**inputs, cache=EncoderDecoderCache(DynamicCache(), DynamicCache()))[0]
    torch.testing.assert_close(attention(**inputs)[0], with_cache)


def test_a_text_without_a_token_is_classified_alike_alone_and_among_others_by_sdpa_and_eager(config):
    model = VanillaTransformerForSequenceClassification(config).eval()
    ids, mask = pad([*SOURCES, []])
    sdpa, eager = (attending(attn, model)(ids, mask).logits for attn in ("sdpa", "eager"))
    torch.testing.assert_close(sdpa, eager, rtol=0, atol=1e-5)
    alone = model(torch.zeros(1, 0), torch.zeros(1, 0)).logits  # as tokenizers make it: of floats
    torch.testing.assert_close(alone, sdpa[-1:], rtol=0, atol=1e-5)


@pytest.mark.parametrize("attn", ["eager", "sdpa"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_row_of_pads_gives_finite_outputs_and_gradients(attn, dtype):
    model = VanillaTransformerForConditionalGeneration(tiny_config()).to(dtype).train()
    model.set_attn_implementation(attn)
    for module in model.modules():  # in float16, scores below -16 and a mask's -65504 add up to -inf
        if isinstance(module, VanillaTransformerAttention):
            nn.init.constant_(module.q_proj.bias, 8.0)
            nn.init.constant_(module.k_proj.bias, -8.0)
    source, source_mask = pad([*SOURCES, []])
    target, target_mask = pad([*TARGETS, []], side="left")
    masks = {"attention_mask": source_mask, "decoder_attention_mask": target_mask}
    outputs = model(input_ids=source, decoder_input_ids=target, labels=target, **masks)
    outputs.loss.backward()
    assert outputs.logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("side", ["left", "right"])
def test_decoding_step_by_step_with_a_cache_equals_decoding_at_once(config, side):
    model = VanillaTransformerModel(config).eval()
    inputs = batch(side)
    target, mask = inputs["decoder_input_ids"], inputs["decoder_attention_mask"]
    at_once = model(**inputs)
    source = {"encoder_outputs": (at_once.encoder_last_hidden_state,), "attention_mask": inputs["attention_mask"]}
    cache, steps = None, []
    for step in range(target.shape[1]):
        now = {"decoder_input_ids": target[:, step : step + 1], "decoder_attention_mask": mask[:, : step + 1]}
        output = model(**source, **now, cache=cache, use_cache=True)
        cache = output.cache
        steps.append(output.last_hidden_state)
    assert isinstance(cache, EncoderDecoderCache)
    torch.testing.assert_close(
        torch.cat(steps, dim=1)[mask == 1], at_once.last_hidden_state[mask == 1], rtol=0, atol=1e-5
    )


def test_embeddings_in_place_of_ids(config):
    """Of the source as peft computes them: with the weight itself, times `embed_scale`."""
    model = VanillaTransformerModel(config).eval()
    inputs = batch()
    by_ids = model(**inputs)
    source, target = inputs.pop("input_ids"), inputs.pop("decoder_input_ids")
    embedding = model.get_input_embeddings()
    inputs["inputs_embeds"] = nn.functional.embedding(source, embedding.weight) * embedding.embed_scale
    inputs["decoder_inputs_embeds"] = model.decoder.get_input_embeddings()(target)
    assert torch.equal(model(**inputs).last_hidden_state, by_ids.last_hidden_state)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("variant", ["default", "pre-norm", "learned", "two-vocabularies"])
def test_generation_is_the_same_with_any_cache_or_none_and_in_batches(beams, variant):
    model = VanillaTransformerForConditionalGeneration(tiny_config(**VARIANTS[variant])).eval()
    source, mask = pad(SOURCES)
    settings = {"num_beams": beams, "max_new_tokens": 8, "do_sample": False}
    expected = model.generate(source, attention_mask=mask, **settings)
    plain = DynamicCache(config=model.config)
    for cache in ({"use_cache": False}, {"cache_implementation": "static"}, {"cache": plain}):
        assert torch.equal(model.generate(source, attention_mask=mask, **cache, **settings), expected), cache
    assert plain.get_seq_length() > 0
    for row, single in zip(expected, SOURCES, strict=True):
        alone = model.generate(torch.tensor([single]), **settings)[0]
        assert torch.equal(row[: len(alone)], alone)
        assert set(row[len(alone) :].tolist()) <= {model.config.pad_token_id, model.config.eos_token_id}


@pytest.mark.parametrize("target_vocab_size", [23, 41])
def test_transition_scores_add_up_to_the_scores_of_the_beams(target_vocab_size):
    model = VanillaTransformerForConditionalGeneration(tiny_config(decoder_vocab_size=target_vocab_size)).eval()
    settings = {"max_new_tokens": 6, "output_scores": True, "return_dict_in_generate": True}
    outputs = model.generate(IDS, num_beams=3, num_return_sequences=3, **settings)
    scores = model.compute_transition_scores(outputs.sequences, outputs.scores, outputs.beam_indices)
    lengths = (scores < 0).sum(dim=1)
    torch.testing.assert_close(scores.sum(dim=1) / lengths, outputs.sequences_scores)


@pytest.mark.parametrize(
    "search",
    [{}, {"num_beams": 3}, {"cache_implementation": "static"}, {"use_cache": False}, {"prompt_lookup_num_tokens": 2}],
    ids=str,
)
def test_generate_stops_at_a_string_that_its_tokenizer_reads(search):
    """transformers leaves `tokenizer` among the arguments of the model, and needs tokens for the letters `abcdef`."""
    tokenizer = train_tokenizer([*LINES, "abcdef"], vocab_size=29, max_length=16)
    model = VanillaTransformerForConditionalGeneration(tiny_config()).eval()

    def generate(**options):
        return model.generate(IDS, max_new_tokens=8, min_new_tokens=8, **search, **options)[0].tolist()

    ids = generate()
    assert generate(tokenizer=tokenizer) == ids
    stopped = generate(tokenizer=tokenizer, stop_strings=[tokenizer.decode(ids[3:5])])
    assert 1 < len(stopped) <= len(ids)
    assert "num_beams" in search or stopped == ids[: len(stopped)] != ids  # stops change which beams there are


# What `generate` hands to a forward, by what it is asked for.
HANDED = {
    "an assistant": lambda model: {"input_ids": IDS[:1], "assistant_model": copy.deepcopy(model)},
    "an assistant that beams do not ask": lambda model: {
        "input_ids": IDS[:1],
        "assistant_model": copy.deepcopy(model),
        "num_beams": 2,
    },
    "embeddings": lambda model: {"inputs_embeds": model.get_input_embeddings()(IDS[:1])},
    "the encoder's outputs": lambda model: {"encoder_outputs": model.get_encoder()(IDS[:1])},
    "a begun translation": lambda model: {
        "input_ids": IDS[:1],
        "decoder_input_ids": torch.tensor([[model.config.decoder_start_token_id]]),
        "decoder_attention_mask": torch.ones(1, 1, dtype=torch.long),
    },
    "attentions": lambda model: {
        "input_ids": IDS[:1],
        **dict.fromkeys(["output_attentions", "output_hidden_states", "output_logits", "output_scores"], True),
    },
    "a time limit": lambda model: {"input_ids": IDS[:1], "max_time": 600.0},
    "allowed tokens": lambda model: {
        "input_ids": IDS[:1],
        "prefix_allowed_tokens_fn": lambda batch, ids: list(range(model.config.vocab_size)),
    },
}


@pytest.mark.parametrize("asked", HANDED)
def test_generate_gives_the_same_ids_whatever_it_hands_to_the_forward(asked):
    model = VanillaTransformerForConditionalGeneration(tiny_config()).eval()
    options = {"max_new_tokens": 6, "return_dict_in_generate": True}
    handed = HANDED[asked](model)
    expected = model.generate(IDS[:1], num_beams=handed.get("num_beams", 1), **options).sequences
    assert torch.equal(model.generate(**handed, **options).sequences, expected)


@pytest.mark.parametrize("model_class", [VanillaTransformerEncoderModel, *AUTO_CLASSES])
def test_an_argument_that_a_forward_does_not_read_is_refused_by_its_name(model_class):
    """What `generate` leaves over does not reach it; of a caller, it is a mistake."""
    model = model_class(tiny_config()).eval()
    calls = [{"input_ids": IDS}]
    if hasattr(model.base_model, "decoder"):
        calls.append({"encoder_outputs": model.base_model.encoder(IDS)})
    for inputs in calls:
        for name in ("attention_masks", "tokenizer", "token_type_ids"):
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
                model(**inputs, **{name: IDS})
        assert model(**inputs, attention_masks=None)[0] is not None  # None is no argument, as in `generate`


@pytest.mark.slow
def test_a_decoding_step_compiles_as_one_graph_with_a_static_cache():
    config = tiny_config(encoder_layers=1, decoder_layers=1)
    model = VanillaTransformerForConditionalGeneration(config).eval()
    encoder_outputs = model.get_encoder()(IDS)

    def decode(step_function):
        cache = EncoderDecoderCache(
            StaticCache(config=model.config, max_cache_len=6), StaticCache(config=model.config, max_cache_len=5)
        )
        inputs = {"encoder_outputs": encoder_outputs, "cache": cache, "use_cache": True}
        return [step_function(**inputs, decoder_input_ids=torch.tensor([[token]])).logits for token in (2, 20, 21)]

    with torch.no_grad():
        torch.testing.assert_close(
            decode(torch.compile(model, fullgraph=True, backend="aot_eager")), decode(model), rtol=0, atol=1e-5
        )


def test_labels_are_shifted_right_and_ignored_at_minus_100():
    labels = torch.tensor([[20, 21, 3], [22, 3, -100]])
    model = VanillaTransformerForConditionalGeneration(tiny_config()).eval()
    source, mask = pad(SOURCES)
    outputs = model(source, mask, labels=labels)
    explicit = model(source, mask, decoder_input_ids=torch.tensor([[2, 20, 21], [2, 22, 3]])).logits
    torch.testing.assert_close(outputs.logits, explicit)
    expected = nn.functional.cross_entropy(explicit[labels != -100], labels[labels != -100])
    torch.testing.assert_close(outputs.loss, expected)


def test_the_classifiers_loss_follows_problem_type():
    ids = torch.tensor([SOURCES[0], SOURCES[0]])
    cases = {
        "single_label_classification": (3, torch.tensor([0, 2]), nn.functional.cross_entropy),
        "multi_label_classification": (3, torch.rand(2, 3), nn.functional.binary_cross_entropy_with_logits),
        "regression": (1, torch.rand(2, 1), nn.functional.mse_loss),
    }
    for problem_type, (num_labels, labels, loss) in cases.items():
        config = tiny_config(num_labels=num_labels, problem_type=problem_type)
        model = VanillaTransformerForSequenceClassification(config).eval()
        outputs = model(input_ids=ids, labels=labels)
        assert outputs.logits.shape == (2, num_labels)
        # Pipelines must not take several labels, or a number, for probabilities that sum to one. A classifier of one
        # label a text stays open to be trained on several.
        model.config.problem_type = None
        model(input_ids=ids, labels=labels)
        assert model.config.problem_type == (None if "single" in problem_type else problem_type)
        torch.testing.assert_close(outputs.loss, loss(outputs.logits, labels))
        number = torch.tensor(labels.numel())
        parts = [model(input_ids=ids[:1], labels=labels[i : i + 1], num_items_in_batch=number).loss for i in range(2)]
        torch.testing.assert_close(sum(parts), outputs.loss)


def test_the_classifier_reads_the_decoders_tokens():
    """By default one start token; no pads in the maximum, unless there is nothing else."""
    model = VanillaTransformerForSequenceClassification(tiny_config()).eval()
    start = model(IDS, decoder_input_ids=torch.tensor([[2]])).logits
    torch.testing.assert_close(model(IDS).logits, start)
    model.config.decoder_start_token_id = 0  # the padding token, too, as in T5
    assert torch.equal(model(IDS).logits, model(IDS, decoder_input_ids=torch.tensor([[0]])).logits)
    model.config.decoder_start_token_id = 2
    inputs = batch()
    with_mask = model(**inputs).logits
    del inputs["decoder_attention_mask"]
    logits = model(**inputs).logits
    torch.testing.assert_close(logits, with_mask)
    alone = model(torch.tensor(SOURCES[1:]), decoder_input_ids=torch.tensor(TARGETS[1:])).logits
    torch.testing.assert_close(logits[1:], alone, rtol=0, atol=1e-5)
    pads = torch.zeros(1, 2, dtype=torch.long)
    states = model.model(IDS, decoder_input_ids=pads, decoder_attention_mask=pads).last_hidden_state
    torch.testing.assert_close(model(IDS, decoder_input_ids=pads).logits, model.classifier(states.amax(dim=1)))


@pytest.mark.parametrize("side", ["", "decoder_"])
def test_a_boolean_mask_of_pairs_of_tokens_is_read_by_eager_as_by_sdpa(side):
    model = VanillaTransformerModel(tiny_config()).eval()
    mask = torch.rand(1, 1, *IDS.shape[1:], *IDS.shape[1:]).gt(0.5)
    states = []
    for attn in ("eager", "sdpa"):
        model.set_attn_implementation(attn)
        states.append(model(IDS, decoder_input_ids=IDS, **{f"{side}attention_mask": mask}).last_hidden_state)
    torch.testing.assert_close(*states, rtol=0, atol=1e-5)


def test_dropout_is_at_work_in_training_only():
    fields = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0, "embedding_dropout": 0.0}
    for name in fields:
        model = VanillaTransformerModel(tiny_config(**{**fields, name: 0.5}))
        assert not torch.equal(*(model.train()(IDS).last_hidden_state for _ in range(2))), name
        assert torch.equal(*(model.eval()(IDS).last_hidden_state for _ in range(2)))


def test_gradient_checkpointing_changes_no_gradient():
    model = VanillaTransformerForSequenceClassification(tiny_config(dropout=0.0, attention_dropout=0.0)).train()
    checkpointed = copy.deepcopy(model)
    checkpointed.activation_checkpointing_enable()
    assert checkpointed.model.encoder.gradient_checkpointing and checkpointed.model.decoder.gradient_checkpointing
    ids, mask = pad(SOURCES)
    for m in (model, checkpointed):
        m(input_ids=ids, attention_mask=mask, labels=torch.tensor([0, 1])).loss.backward()
    torch.testing.assert_close(
        [p.grad for p in checkpointed.parameters()], [p.grad for p in model.parameters()], rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("position_embedding_type", ["sinusoidal", "learned", "none"])
def test_a_sequence_may_have_as_many_tokens_as_positions(position_embedding_type):
    config = tiny_config(position_embedding_type=position_embedding_type, max_position_embeddings=6)
    model = VanillaTransformerForConditionalGeneration(config).eval()
    six, seven = (torch.full((1, length), 7) for length in (6, 7))
    assert model(six, decoder_input_ids=six).logits.isfinite().all()
    assert model.generate(six, min_new_tokens=6, max_new_tokens=6).shape == (1, 7)
    for call in (
        lambda: model(seven),
        lambda: model(six, decoder_input_ids=seven),
        lambda: model.generate(six, min_new_tokens=7, max_new_tokens=7),
    ):
        with pytest.raises(ValueError, match="7 tokens is longer than the model's 6 positions"):
            call()


EMBEDDINGS = torch.zeros(1, 5, 16)
BARE, TRANSLATOR = VanillaTransformerModel, VanillaTransformerForConditionalGeneration
NO_START = {"decoder_start_token_id": None}


@pytest.mark.parametrize(
    ("model_class", "fields", "inputs", "message"),
    [
        (BARE, {}, {}, "input_ids"),
        (BARE, {}, {"input_ids": IDS, "inputs_embeds": EMBEDDINGS}, "input_ids"),
        (BARE, {}, {"input_ids": IDS, "decoder_input_ids": IDS, "decoder_inputs_embeds": EMBEDDINGS}, "decoder_input"),
        (BARE, {}, {"input_ids": IDS, "decoder_input_ids": IDS[:, :0]}, "at least one token"),
        (BARE, NO_START, {"input_ids": IDS}, "Give `decoder_input_ids` or"),
        (TRANSLATOR, NO_START, {"input_ids": IDS, "labels": IDS}, "Give `decoder_input_ids`:"),
        (TRANSLATOR, {"pad_token_id": None}, {"input_ids": IDS, "labels": IDS}, "Give `decoder_input_ids`:"),
    ],
)
def test_inputs_that_do_not_fit_together_are_refused(model_class, fields, inputs, message):
    with pytest.raises(ValueError, match=message):
        model_class(tiny_config(**fields))(**inputs)
