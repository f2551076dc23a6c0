#!/usr/bin/env python3
"""Golden values for a LLaMA-architecture model folder, computed apart from the C++ code.

    python3 tests/golden/make_reference.py MODEL_FOLDER ROWS_JSON OUTPUT_FOLDER

Needs PyTorch and NumPy only (tokenizer, prompt, safetensors and model are written out here). All
arithmetic is float64 autograd; what is stored is rounded to float32, traces keep all digits.

OUTPUT_FOLDER receives
  reference.safetensors
    input_ids, labels    int64 [rows, tokens]: the first rows of ROWS_JSON by the prompt template
                         `alpaca`, padded on the right with the end token; -100 is not trained
    lengths              int64 [rows]: tokens of each row that are real
    logits               [4, tokens, vocabulary]: of the first four rows (padding included)
    signs.N              [N, 4]: random signs, see grad.*
    grad.NAME            gradient of the token-weighted mean loss over all rows. One-dimensional
                         tensors are whole; a matrix [out, in] is stored as (matrix @ signs.in), [out, 4].
                         The expected squared size of (difference @ signs) is 4 times that of the
                         difference, so this measures a relative error as well as the whole matrix would.
    lora_grad.NAME       gradients of the adapter in lora_init, whole
  lora_init/             the adapter that the LoRA values start from (PEFT's names; B is not zero)
  trace.json             loss; [loss, gradient norm before clipping] of each update of full fine-tuning
                         and of LoRA, always on the same rows; the settings used
"""
import json
import math
import pathlib
import re
import struct
import sys

import numpy as np
import torch

ROWS = 8
LOGIT_ROWS = 4
SIGNS = 4
FULL = {"steps": 20, "learning_rate": 1e-3, "weight_decay": 0.01, "max_grad_norm": 1.0}
LORA = {"steps": 30, "learning_rate": 2e-3, "weight_decay": 0.0, "max_grad_norm": 1.0}
ADAM = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
RANK, ALPHA = 4, 8
LINEARS = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]

ALPACA = ("Below is an instruction that describes a task. Write a response that appropriately "
          "completes the request.\n\n### Instruction:\n{}\n\n### Response:\n")


# --- safetensors ---

NUMPY_TYPES = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I64": np.int64}


def read_safetensors(path):
    blob = path.read_bytes()
    (header_bytes,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8:8 + header_bytes])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        raw = blob[begin:end]
        if entry["dtype"] == "BF16":  # the upper half of a float32
            values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, NUMPY_TYPES[entry["dtype"]])
        tensors[name] = torch.from_numpy(values.reshape(entry["shape"]).astype(
            np.int64 if entry["dtype"] == "I64" else np.float64))
    return tensors


def write_safetensors(path, tensors):
    header, blob = {"__metadata__": {"format": "pt"}}, b""
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        dtype, numpy_type = ("I64", np.int64) if tensor.dtype == torch.int64 else ("F32", np.float32)
        raw = np.ascontiguousarray(tensor.numpy().astype(numpy_type)).tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape),
                        "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


# --- text ---

def byte_alphabet():
    """GPT-2's printable stand-in for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {byte: chr(byte) for byte in printable}, 0
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(256 + extra)
            extra += 1
    return table


class ByteLevelBpe:
    # Letters with at most one sign or space before them, single digits, signs, line ends, spaces: Qwen's
    # pattern, as far as text without contractions and underscores goes.
    PATTERN = re.compile(r"[^\r\n\w]?[^\W\d_]+|\d| ?[^\s\w]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

    def __init__(self, path):
        model = json.loads(path.read_text())["model"]
        self.vocab = model["vocab"]
        merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.alphabet = byte_alphabet()

    def encode(self, text):
        assert "_" not in text and "'" not in text, "outside of what PATTERN covers"
        return [self.vocab[piece] for word in self.PATTERN.findall(text) for piece in self.merge(word)]

    def merge(self, word):
        pieces = [self.alphabet[byte] for byte in word.encode()]
        while len(pieces) > 1:
            ranked = [(self.ranks.get(pair, math.inf), i) for i, pair in enumerate(zip(pieces, pieces[1:]))]
            rank, at = min(ranked)
            if rank == math.inf:
                break
            pieces[at:at + 2] = [pieces[at] + pieces[at + 1]]
        return pieces


def encode_rows(tokenizer, rows, end_token):
    encoded = []
    for row in rows:
        prompt = tokenizer.encode(ALPACA.format("\n".join(filter(None, [row["instruction"], row["input"]]))))
        answer = tokenizer.encode(row["output"]) + [end_token]
        encoded.append((prompt + answer, [-100] * len(prompt) + answer))
    longest = max(len(ids) for ids, _ in encoded)
    pad = lambda values, filler: values + [filler] * (longest - len(values))
    return (torch.tensor([pad(ids, end_token) for ids, _ in encoded]),
            torch.tensor([pad(labels, -100) for _, labels in encoded]),
            torch.tensor([len(ids) for ids, _ in encoded]))


# --- model ---

def rms_norm(x, weight, epsilon):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Llama:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        assert self.config["model_type"] == "llama" and not self.config.get("rope_scaling")
        self.weights = read_safetensors(folder / "model.safetensors")
        self.adapter = {}

    def linear(self, x, module):
        y = x @ self.weights[module + ".weight"].T
        a = self.adapter.get(f"base_model.model.{module}.lora_A.weight")
        b = self.adapter.get(f"base_model.model.{module}.lora_B.weight")
        return y if a is None else y + (x @ a.T) @ b.T * (ALPHA / RANK)

    def attention(self, x, prefix):
        heads, groups = self.config["num_attention_heads"], self.config["num_key_value_heads"]
        size = self.config.get("head_dim") or self.config["hidden_size"] // heads
        rows, tokens, _ = x.shape
        split = lambda y, count: y.view(rows, tokens, count, size).transpose(1, 2)
        q = split(self.linear(x, prefix + "q_proj"), heads)
        k = split(self.linear(x, prefix + "k_proj"), groups)
        v = split(self.linear(x, prefix + "v_proj"), groups)
        steps = torch.arange(0, size, 2, dtype=torch.float64) / size
        angles = torch.arange(tokens, dtype=torch.float64)[:, None] / self.config.get("rope_theta", 10000.0) ** steps
        cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin).repeat_interleave(heads // groups, 1)
        v = v.repeat_interleave(heads // groups, 1)
        future = torch.full((tokens, tokens), -math.inf, dtype=torch.float64).triu(1)
        mixed = ((q @ k.transpose(-1, -2)) / math.sqrt(size) + future).softmax(-1) @ v
        return self.linear(mixed.transpose(1, 2).reshape(rows, tokens, heads * size), prefix + "o_proj")

    def logits(self, ids):
        weights, epsilon = self.weights, self.config["rms_norm_eps"]
        embedding = weights["model.embed_tokens.weight"]
        x = embedding[ids]
        for layer in range(self.config["num_hidden_layers"]):
            prefix = f"model.layers.{layer}."
            x = x + self.attention(rms_norm(x, weights[prefix + "input_layernorm.weight"], epsilon),
                                   prefix + "self_attn.")
            h = rms_norm(x, weights[prefix + "post_attention_layernorm.weight"], epsilon)
            gate = torch.nn.functional.silu(self.linear(h, prefix + "mlp.gate_proj"))
            x = x + self.linear(gate * self.linear(h, prefix + "mlp.up_proj"), prefix + "mlp.down_proj")
        x = rms_norm(x, weights["model.norm.weight"], epsilon)
        return x @ weights.get("lm_head.weight", embedding).T

    def loss(self, ids, labels):
        """Mean over the trained tokens of all rows."""
        return torch.nn.functional.cross_entropy(
            self.logits(ids)[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)

    def random_adapter(self, generator):
        adapter = {}
        for layer in range(self.config["num_hidden_layers"]):
            for linear in LINEARS:
                module = f"model.layers.{layer}.{linear}"
                out_features, in_features = self.weights[module + ".weight"].shape
                for which, shape, size in (("A", (RANK, in_features), in_features ** -0.5),
                                           ("B", (out_features, RANK), 0.02)):
                    values = torch.randn(shape, generator=generator, dtype=torch.float64) * size
                    # Through float32, since that is what the file can hold.
                    adapter[f"base_model.model.{module}.lora_{which}.weight"] = values.float().double()
        return adapter


# --- training ---

def gradients(model, parameters, ids, labels):
    for parameter in parameters.values():
        parameter.requires_grad_(True)
    loss = model.loss(ids, labels)
    grads = torch.autograd.grad(loss, list(parameters.values()))
    for parameter in parameters.values():
        parameter.requires_grad_(False)
    return loss.item(), dict(zip(parameters, grads))


def train(model, parameters, ids, labels, settings):
    """AdamW in place at a constant rate; norms (one-dimensional tensors) are not decayed."""
    first = {name: torch.zeros_like(p) for name, p in parameters.items()}
    second = {name: torch.zeros_like(p) for name, p in parameters.items()}
    trace, rate = [], settings["learning_rate"]
    for step in range(1, settings["steps"] + 1):
        loss, grads = gradients(model, parameters, ids, labels)
        norm = math.sqrt(sum(g.pow(2).sum().item() for g in grads.values()))
        trace.append([loss, norm])
        clip = min(1.0, settings["max_grad_norm"] / (norm + 1e-6))
        for name, parameter in parameters.items():
            grad = grads[name] * clip
            first[name].mul_(ADAM["beta1"]).add_(grad * (1 - ADAM["beta1"]))
            second[name].mul_(ADAM["beta2"]).add_(grad.pow(2) * (1 - ADAM["beta2"]))
            if parameter.dim() > 1:
                parameter.mul_(1 - rate * settings["weight_decay"])
            mean = first[name] / (1 - ADAM["beta1"] ** step)
            spread = (second[name] / (1 - ADAM["beta2"] ** step)).sqrt() + ADAM["epsilon"]
            parameter.sub_(rate * mean / spread)
    return trace


def gradient_sketches(grads, generator):
    stored = {}
    for name, grad in grads.items():
        if grad.dim() == 1:
            stored["grad." + name] = grad
            continue
        key = f"signs.{grad.shape[1]}"
        if key not in stored:
            draws = torch.randint(0, 2, (grad.shape[1], SIGNS), generator=generator)
            stored[key] = draws.double() * 2 - 1
        stored["grad." + name] = grad @ stored[key]
    return stored


def write_adapter(folder, adapter):
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "adapter_model.safetensors", adapter)
    config = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "quickstart",
              "r": RANK, "lora_alpha": ALPHA, "lora_dropout": 0.0, "bias": "none", "fan_in_fan_out": False,
              "target_modules": [linear.split(".")[1] for linear in LINEARS], "inference_mode": True,
              "init_lora_weights": True, "modules_to_save": None}
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")


def main(model_folder, rows_file, output):
    output.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(1)
    model = Llama(model_folder)
    tokenizer = ByteLevelBpe(model_folder / "tokenizer.json")
    rows = json.loads(rows_file.read_text())[:ROWS]
    ids, labels, lengths = encode_rows(tokenizer, rows, model.config["eos_token_id"])
    stored = {"input_ids": ids, "labels": labels, "lengths": lengths, "logits": model.logits(ids[:LOGIT_ROWS])}

    loss, grads = gradients(model, model.weights, ids, labels)
    stored.update(gradient_sketches(grads, generator))
    trace = {"loss": loss, "target_tokens": int((labels[:, 1:] != -100).sum()),
             "adam": ADAM, "full_settings": FULL, "lora_settings": {**LORA, "rank": RANK, "alpha": ALPHA}}

    model.adapter = model.random_adapter(generator)
    write_adapter(output / "lora_init", model.adapter)
    lora_loss, lora_grads = gradients(model, model.adapter, ids, labels)
    trace["lora_loss"] = lora_loss
    stored.update({"lora_grad." + name: grad for name, grad in lora_grads.items()})
    trace["lora [loss, grad_norm]"] = train(model, model.adapter, ids, labels, LORA)

    model.adapter = {}
    trace["full [loss, grad_norm]"] = train(model, model.weights, ids, labels, FULL)
    write_safetensors(output / "reference.safetensors", stored)
    (output / "trace.json").write_text(json.dumps(trace, indent=1) + "\n")
    print(f"loss {loss:.6f}, with the adapter {lora_loss:.6f}; after training: full "
          f"{trace['full [loss, grad_norm]'][-1][0]:.6f}, LoRA {trace['lora [loss, grad_norm]'][-1][0]:.6f}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*(pathlib.Path(argument) for argument in sys.argv[1:]))
