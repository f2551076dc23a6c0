"""Writes tests/golden/torch: small files of torch.save, sound and otherwise.

Run with PyTorch at hand: python3 tests/golden/make_torch_files.py tests/golden/torch
Values count upwards, so that the tests know them.
"""

import collections
import json
import os
import sys

import torch


class Runs:
    """Asks an unpickler to run a command."""

    def __reduce__(self):
        return (os.system, ("echo this must never run",))


def counted(shape, dtype):
    size = 1
    for length in shape:
        size *= length
    return (torch.arange(size, dtype=torch.float32) / 4).reshape(shape).to(dtype)


def state():
    tied = counted([6, 4], torch.float32)
    entries = collections.OrderedDict()
    entries["embed.weight"] = tied
    entries["block.0.norm.weight"] = torch.nn.Parameter(counted([4], torch.float16))
    entries["block.0.up.weight"] = counted([8, 4], torch.bfloat16)
    entries["rows_2_to_4"] = tied[2:5]
    entries["head.weight"] = tied
    entries["scalar"] = torch.tensor(2.5)
    entries["empty"] = torch.zeros([0, 4])
    entries["ids"] = torch.arange(3)
    entries._metadata = collections.OrderedDict([("", {"version": 1})])
    return entries


def adapter_of_peft():
    """transformers/peft/llama3/plain as older releases of PEFT saved it."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "transformers/peft/llama3/plain/adapter_model.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    entries = collections.OrderedDict()
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = torch.frombuffer(data, dtype=torch.float32, count=(end - begin) // 4, offset=begin)
            entries[name] = values.reshape(entry["shape"]).clone()
    return entries


def main(folder):
    os.makedirs(folder, exist_ok=True)

    def save(name, value, **options):
        torch.save(value, os.path.join(folder, name), **options)

    save("state.bin", state())
    save("protocol4.bin", dict(state()), pickle_protocol=4)
    save("before_1_6.bin", {"a": counted([2], torch.float32)}, _use_new_zipfile_serialization=False)
    save("view.bin", {"turned": counted([3, 2], torch.float32).t()})
    save("runs.bin", {"a": counted([2], torch.float32), "b": Runs()})
    save("adapter_model.bin", adapter_of_peft())
    save("other.bin", {"model": {"a": counted([2], torch.float32)}, "epoch": 3})


if __name__ == "__main__":
    main(sys.argv[1])
