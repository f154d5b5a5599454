"""A decoder of one layer in CTranslate2, which carries its own oneDNN and oneMKL."""

import sys

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerDecoderModelSpec

WIDTH, HIDDEN = 16, 32
WORDS = ["<unk>", "<s>", "</s>", "a", "b", "c", "d", "e"]


def save(folder):
    chance = np.random.default_rng(0)

    def weights(*shape):
        return chance.standard_normal(shape).astype("float32")

    spec = TransformerDecoderModelSpec.from_config(num_layers=1, num_heads=2)
    decoder, layer = spec.decoder, spec.decoder.layer[0]
    decoder.embeddings.weight = weights(len(WORDS), WIDTH)
    decoder.projection.weight = weights(len(WORDS), WIDTH)
    for norm in (decoder.layer_norm, layer.self_attention.layer_norm, layer.ffn.layer_norm):
        norm.gamma, norm.beta = weights(WIDTH), weights(WIDTH)
    layer.self_attention.linear[0].weight = weights(3 * WIDTH, WIDTH)
    layer.self_attention.linear[1].weight = weights(WIDTH, WIDTH)
    layer.ffn.linear_0.weight = weights(HIDDEN, WIDTH)
    layer.ffn.linear_1.weight = weights(WIDTH, HIDDEN)
    spec.register_vocabulary(WORDS)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = WORDS[:3]
    spec.validate()
    spec.save(folder)


save(sys.argv[1])
generator = ctranslate2.Generator(sys.argv[1], device="cpu", compute_type="float32")
print(len(generator.generate_batch([["<s>", "a"]], max_length=4)))
