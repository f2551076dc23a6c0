#!/usr/bin/env python3
"""The selection of Transformers' own numbers that tests/golden/families holds, from all of them.

    python3 tests/golden/make_families.py REFERENCE_FOLDER OUTPUT_FOLDER

REFERENCE_FOLDER has a folder for each model, with what Transformers computed of it (its README says
how and with which versions). Needs Python alone.

OUTPUT_FOLDER receives families.json (of each model: the seed and rule of its weights, which are made
again from them and not stored; its config.json as three releases write it; which fields its variants
change) and for each model MODEL.safetensors with
  input_ids, labels  int64 [2, 48]; row 1 has 36 tokens, then padding
  logits             [2, 4, 512] at positions 5, 20, 35 and 47 (the last of row 1 is padding)
  loss, step_losses  of the batch, and before each of three AdamW steps and after them
  grad.NAME          gradient of the loss. One-dimensional tensors are whole; a matrix [out, in] is
                     stored as matrix @ signs, [out], with sign() below: the expected squared size of
                     (difference @ signs) is that of the difference
  after3.NAME        parameters after the three steps, likewise
  prompt, tokens     int64: a greedy continuation with a cache
  variant.V.loss, variant.V.grad_norm, variant.V.logits ([512], row 0, position 47)
  trained.NAME       qwen3 alone: parameters after five updates of two micro-batches with unequal
                     counts of labels, as the Trainer weights them (transformers/trainer/data), likewise
"""
import array
import json
import pathlib
import struct
import sys

MODELS = ["llama_linear", "llama_yarn", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text"]
PLACES = [5, 20, 35, 47]
MASK = (1 << 64) - 1


def sign(place):
    """+1 or -1 by the top bit of SplitMix64's mix of the place."""
    x = ((place + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return -1.0 if (x ^ (x >> 31)) >> 63 else 1.0


class Tensor:
    def __init__(self, shape, values, code):
        self.shape, self.values, self.code = list(shape), values, code


def read_safetensors(path):
    blob = path.read_bytes()
    (header_bytes,) = struct.unpack("<Q", blob[:8])
    tensors = {}
    for name, entry in json.loads(blob[8:8 + header_bytes]).items():
        if name != "__metadata__":
            begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
            code = {"F32": "f", "I64": "q"}[entry["dtype"]]
            tensors[name] = Tensor(entry["shape"], array.array(code, blob[begin:end]), code)
    return tensors


def write_safetensors(path, tensors):
    header, blob = {"__metadata__": {"format": "pt"}}, b""
    for name in sorted(tensors, key=lambda n: (tensors[n].code == "f", n)):  # int64 first: aligned
        raw = array.array(tensors[name].code, tensors[name].values).tobytes()
        header[name] = {"dtype": {"f": "F32", "q": "I64"}[tensors[name].code],
                        "shape": tensors[name].shape, "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


def sketch(tensor):
    if len(tensor.shape) == 1:
        return tensor
    rows, width = tensor.shape
    signs = [sign(i) for i in range(width)]
    return Tensor([rows],
                  [sum(n * s for n, s in zip(tensor.values[row * width:(row + 1) * width], signs))
                   for row in range(rows)], "f")


def rows_of_logits(logits):
    _, tokens, vocabulary = logits.shape
    values = []
    for row in range(2):
        for place in PLACES:
            start = (row * tokens + place) * vocabulary
            values += logits.values[start:start + vocabulary]
    return Tensor([2, len(PLACES), vocabulary], values, "f")


def select(folder):
    info = json.loads((folder / "info.json").read_text())
    inputs = read_safetensors(folder / "inputs.safetensors")
    golden = read_safetensors(folder / "golden.safetensors")
    generated = read_safetensors(folder / "generate.safetensors")
    variants = read_safetensors(folder / "variants.safetensors")
    chosen = {"input_ids": inputs["input_ids"], "labels": inputs["labels"],
              "logits": rows_of_logits(golden["logits"]), "loss": golden["loss"],
              "step_losses": golden["step_losses"], "prompt": generated["prompt"],
              "tokens": generated["tokens"]}
    for kind, file in (("grad.", "grads"), ("after3.", "after3")):
        for name, tensor in read_safetensors(folder / f"{file}.safetensors").items():
            chosen[kind + name] = sketch(tensor)
    for name in info["variants"]:
        logits = variants[f"{name}.logits"]
        vocabulary = logits.shape[2]
        chosen[f"variant.{name}.logits"] = Tensor(
            [vocabulary], logits.values[3 * vocabulary:4 * vocabulary], "f")
        for what in ("loss", "grad_norm"):
            chosen[f"variant.{name}.{what}"] = variants[f"{name}.{what}"]
    trained = folder.parent / "trainer" / f"{folder.name}_hand.safetensors"
    if trained.exists():
        for name, tensor in read_safetensors(trained).items():
            if name.startswith("param."):
                chosen["trained." + name[len("param."):]] = sketch(tensor)
    facts = {"seed": info["seed"], "norms_around": 0 if folder.name.startswith("gemma") else 1,
             "configs": {form: json.loads((folder / form).read_text())
                         for form in ("config.json", "config_v452.json", "config_v5.json")},
             "variants": {name: variant["config_change"] for name, variant in info["variants"].items()}}
    return facts, chosen


def main(reference, output):
    output.mkdir(parents=True, exist_ok=True)
    facts = {}
    for model in MODELS:
        facts[model], chosen = select(reference / model)
        write_safetensors(output / f"{model}.safetensors", chosen)
    (output / "families.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
