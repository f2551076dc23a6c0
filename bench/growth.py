"""How the speed of an update grows: zeroth bench over row length, rows, ranks and model size.

    python3 bench/growth.py build/release/zeroth OUT_FOLDER [series...]      series: tokens rows ranks size

LoRA of rank 16 on all linears in bf16. Writes OUT_FOLDER/growth.json (all that the bench said), growth.md (tables) and
growth.svg (one panel a series). Takes about a quarter of an hour on two cores.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

# hidden, inner, layers, heads, key heads, vocabulary
SHAPES = {
    "10M": (256, 768, 6, 4, 2, 16384),
    "30M": (384, 1024, 10, 6, 2, 32768),
    "135M": (576, 1536, 30, 9, 3, 49152),
    "360M": (960, 2560, 32, 15, 5, 49152),
    "1.1B": (2048, 5632, 22, 32, 4, 32000),
}
# What varies and the rest of each run.
SERIES = {
    "tokens": ("tokens a row (135M, 1 row)", [128, 256, 512, 1024, 2048, 4096, 8192],
               lambda n: ("135M", 1, n, 1)),
    "rows": ("rows (135M, 256 tokens)", [1, 2, 4, 8, 16], lambda n: ("135M", n, 256, 1)),
    "ranks": ("ranks (135M, 2 x 256 each, stage 2)", [1, 2, 4], lambda n: ("135M", 2, 256, n)),
    "size": ("model (1 row of 512 tokens)", list(SHAPES), lambda name: (name, 1, 512, 1)),
}


def config_of(name):
    hidden, inner, layers, heads, key_heads, vocabulary = SHAPES[name]
    return {"model_type": "llama", "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": key_heads, "vocab_size": vocabulary,
            "max_position_embeddings": 16384, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "tie_word_embeddings": name != "1.1B", "hidden_act": "silu"}


def measure(zeroth, folder, shape, rows, tokens, ranks):
    config = os.path.join(folder, shape + ".json")
    with open(config, "w") as file:
        json.dump(config_of(shape), file)
    words = [zeroth, "bench", "--model_config", config, "--lora_rank", "16", "--dtype", "bf16", "--rows", str(rows),
             "--tokens", str(tokens), "--bench_warmup", "2", "--bench_updates", "3", "--format", "json"]
    if ranks > 1:
        words += ["--ranks", str(ranks), "--zero_stage", "2"]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{run.stderr}")
    return json.loads(run.stdout.strip().splitlines()[-1])


def table(title, points):
    lines = [f"| {title} | tokens/s | roofline | attention | memory counted |", "| --- | --- | --- | --- | --- |"]
    for label, result in points:
        attention = result["phases"]["attention"] / result["seconds_per_update"]
        lines.append(f"| {label} | {result['tokens_per_second']:.0f} | {result['roofline']:.2f} | "
                     f"{100 * attention:.0f} % | {result['peak_memory_bytes'] / 1e6:.0f} MB |")
    return "\n".join(lines)


def panel(title, points, left, top, width=360, height=190):
    rates = [result["tokens_per_second"] for _, result in points]
    most = max(rates)
    step = 10 ** math.floor(math.log10(most))
    ceiling = next(step * k for k in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * k >= most)
    x_of = lambda i: left + 50 + (width - 70) * (i + 0.5) / len(points)
    y_of = lambda rate: top + height - 30 - (height - 60) * rate / ceiling
    parts = [f'<text x="{left + 50}" y="{top + 16}" class="title">tokens/s by {title}</text>']
    for part in (0, 0.5, 1):
        y = y_of(ceiling * part)
        parts.append(f'<line x1="{left + 50}" y1="{y:.1f}" x2="{left + width - 20}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{left + 44}" y="{y + 4:.1f}" text-anchor="end">{ceiling * part:g}</text>')
    path = " ".join(f"{x_of(i):.1f},{y_of(rate):.1f}" for i, rate in enumerate(rates))
    parts.append(f'<polyline points="{path}"/>')
    for i, ((label, _), rate) in enumerate(zip(points, rates)):
        parts.append(f'<circle cx="{x_of(i):.1f}" cy="{y_of(rate):.1f}" r="3"><title>{label}: {rate:.0f}</title></circle>')
        parts.append(f'<text x="{x_of(i):.1f}" y="{top + height - 12}" text-anchor="middle">{label}</text>')
    return parts


def drawing(measured):
    parts = []
    for i, (name, points) in enumerate(measured.items()):
        parts += panel(SERIES[name][0], points, 380 * (i % 2), 200 * (i // 2))
    rows = (len(measured) + 1) // 2
    style = ("text{font:12px sans-serif;fill:#555}.title{font-weight:bold}.grid{stroke:#bbb;stroke-width:.6}"
             "polyline{fill:none;stroke:#2a78c0;stroke-width:2}circle{fill:#2a78c0}"
             "@media (prefers-color-scheme:dark){text{fill:#bbb}.grid{stroke:#555}}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {200 * rows}" role="img" '
            f'aria-label="tokens per second"><style>{style}</style>\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    zeroth, out = sys.argv[1], sys.argv[2]
    os.makedirs(out, exist_ok=True)
    measured = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[3:] or SERIES:
            _, values, run_of = SERIES[name]
            measured[name] = []
            for value in values:
                measured[name].append((str(value), measure(zeroth, folder, *run_of(value))))
                print(name, value, f"{measured[name][-1][1]['tokens_per_second']:.0f} tokens/s", flush=True)
    with open(os.path.join(out, "growth.json"), "w") as file:
        json.dump({name: dict(points) for name, points in measured.items()}, file, indent=1)
    with open(os.path.join(out, "growth.md"), "w") as file:
        file.write("\n\n".join(table(SERIES[name][0], points) for name, points in measured.items()) + "\n")
    with open(os.path.join(out, "growth.svg"), "w") as file:
        file.write(drawing(measured))


main()
