#!/usr/bin/env python3
"""Golden learning rates of every schedule, computed apart from the C++ code.

    python3 tests/golden/make_schedules.py tests/golden/schedules.json

Standard library only. Each schedule is written as its definition reads (Transformers' by the factor
of a 0-based step, DeepSpeed's as an object that is stepped from index -1), not as the C++ does it.
Where PyTorch can be imported, the curves that torch.optim.lr_scheduler has too (linear, cosine, warm
restarts, polynomial, the triangle of CyclicLR with its momentum) are checked against it.

The file holds a list of cases: the kind by its users' name, peak, warmup_updates, total_updates,
params as a user writes them, `rates` of updates 0, 1, 2, ... and, for OneCycle, `betas`.
"""
import json
import math
import sys

UPDATES = 26  # of each case: beyond every total below


# Transformers: the factor of the peak at step s, w warm-up steps, t in all.

def ramp(s, w):
    return s / w if s < w else None


def linear(s, w, t):
    return max(0.0, (t - s) / (t - w))


def half_wave(angle):
    return (math.cos(math.pi * angle) + 1) / 2


def cosine(s, w, t, num_cycles=0.5):
    return half_wave(2 * num_cycles * (s - w) / (t - w))


def restarts(s, w, t, num_cycles=1):
    if s >= t:
        return 0.0
    length = (t - w) / num_cycles  # of one cycle
    into = s - w
    while into >= length - 1e-9:
        into -= length
    return half_wave(into / length)


def polynomial(s, w, t, lr_end=1e-7, power=1.0, peak=None):
    share = 0.0 if s >= t else (t - s) / (t - w)
    return (lr_end + (peak - lr_end) * share ** power) / peak


def inverse_sqrt(s, w, t, timescale=None):
    scale = timescale or w or 10000
    return (scale / (scale + s - w)) ** 0.5


def above(low, factor):
    return low + (1 - low) * factor


def low_of(min_lr=None, min_lr_rate=None, peak=None, **_):
    return min_lr / peak if min_lr is not None else min_lr_rate


def cosine_min(s, w, t, num_cycles=0.5, **p):
    return above(low_of(**p), cosine(s, w, t, num_cycles))


def cosine_warmup_min(s, w, t, num_cycles=0.5, warmup_lr_rate=None, **p):
    if s < w:
        if warmup_lr_rate is None:
            return (s + 1) / w
        return warmup_lr_rate + (1 - warmup_lr_rate) * s / (w - 1)
    return above(low_of(**p), cosine(s + 1, w, t, num_cycles))


def stable_decay(s, w, t, num_decay_steps=None, num_stable_steps=None, warmup_type="linear",
                 decay_type="cosine", min_lr_ratio=0.0, num_cycles=0.5):
    if num_decay_steps is None and num_stable_steps is None:
        num_stable_steps = (t - w) // 3
    if num_decay_steps is None:
        num_decay_steps = t - w - num_stable_steps
    if num_stable_steps is None:
        num_stable_steps = t - w - num_decay_steps
    if s < w:
        x = s / w
        rise = {"linear": x, "cosine": 1 - half_wave(x), "1-sqrt": 1 - (1 - x) ** 0.5}[warmup_type]
        return above(min_lr_ratio, rise)
    x = (s - w - num_stable_steps) / num_decay_steps
    if x < 0:
        return 1.0
    if x >= 1:
        return min_lr_ratio
    fall = {"linear": 1 - x, "cosine": half_wave(2 * num_cycles * x), "1-sqrt": 1 - x ** 0.5}[decay_type]
    return above(min_lr_ratio, fall)


CURVES = {
    "linear": linear, "cosine": cosine, "cosine_with_restarts": restarts, "polynomial": polynomial,
    "constant_with_warmup": lambda s, w, t: 1.0, "inverse_sqrt": inverse_sqrt,
    "cosine_with_min_lr": cosine_min,
}


def transformers(kind, peak, w, t, params):
    if kind in ("polynomial", "cosine_with_min_lr", "cosine_warmup_with_min_lr"):
        params = dict(params, peak=peak)
    rates = []
    for s in range(UPDATES):
        if kind == "constant":
            factor = 1.0
        elif kind == "warmup_stable_decay":
            factor = stable_decay(s, w, t, **params)
        elif kind == "cosine_warmup_with_min_lr":
            factor = cosine_warmup_min(s, w, t, **params)
        else:
            factor = ramp(s, w)
            factor = CURVES[kind](s, w, t, **params) if factor is None else factor
        rates.append(peak * max(0.0, factor))
    return rates


# DeepSpeed: objects whose index starts at -1 and moves by one with each update.

class Stepped:
    index = -1

    def trace(self):
        values = []
        for self.index in range(-1, UPDATES - 1):
            values.append(self.value())
        return values


class Warmup(Stepped):
    def __init__(self, kind, peak, w, t, params):
        self.kind, self.peak, self.t = kind, peak, t
        self.n = w if w > 1 else 2
        self.params = params

    def rising(self):
        if self.params.get("warmup_type", "log") == "log":
            return math.log(self.index + 1, self.n)
        return self.index / self.n

    def value(self):
        if self.kind == "WarmupCosineLR":
            return self.peak * self.cosine_ratio()
        low = self.params.get("warmup_min_lr", 0.0)
        if self.index < 0:
            return low
        if self.index < self.n:
            share = self.rising()
        elif self.kind == "WarmupLR":
            share = 1.0
        else:
            share = max(0, self.t - self.index) / max(1, self.t - self.n)
        return (1 - share) * low + share * self.peak

    def cosine_ratio(self):
        if self.index < 0:
            return 0.0
        if self.index < self.n:
            return above(self.params.get("warmup_min_ratio", 0.0), self.rising())
        progress = (self.index - self.n + 1) / max(1, self.t - self.n)
        return above(self.params.get("cos_min_ratio", 0.0001), half_wave(min(1, progress)))


class OneCycle(Stepped):
    def __init__(self, params):
        self.p = params
        self.first = params["cycle_first_step_size"]
        self.second = params.get("cycle_second_step_size", self.first)
        self.stairs = params.get("cycle_first_stair_count", 0)
        self.second_stairs = params.get("cycle_second_stair_count", self.stairs)

    def height(self):
        """Walks up `first` steps and down `second`; with stairs, the last whole stair."""
        at, up = 0, True
        for _ in range(self.index + 1):
            at += 1 if up else -1
            if up and at == self.first:
                at, up = self.second, False
        size, stairs = (self.first, self.stairs) if up else (self.second, self.second_stairs)
        return at * stairs // size / stairs if stairs else at / size

    def past(self):
        """Decay intervals since the end of the cycle."""
        size = self.p.get("decay_step_size", 0)
        return (self.index + 1 - self.first - self.second) / size if size else 0

    def value(self):
        low, high = self.p["cycle_min_lr"], self.p["cycle_max_lr"]
        if self.index < self.first + self.second:
            return low + self.height() * (high - low)
        return low / (1 + self.p.get("decay_lr_rate", 0) * self.past())

    def betas(self):
        low, high = self.p.get("cycle_min_mom", 0.8), self.p.get("cycle_max_mom", 0.9)
        values = []
        for self.index in range(-1, UPDATES - 1):
            if self.index < 0:
                first = low
            elif self.index < self.first + self.second:
                first = high - self.height() * (high - low)
            else:
                first = high * (1 + self.p.get("decay_mom_rate", 0) * self.past())
            values.append([first, 0.99])
        return values


class RangeTest(Stepped):
    def __init__(self, params):
        self.p = params

    def value(self):
        size = self.p.get("lr_range_test_step_size", 2000)
        done = self.index + 1
        interval = done // size if self.p.get("lr_range_test_staircase") else done / size
        return self.p["lr_range_test_min_lr"] * (1 + self.p.get("lr_range_test_step_rate", 1) * interval)


def case(kind, peak=0.001, w=0, t=20, **params):
    entry = {"kind": kind, "peak": peak, "warmup_updates": w, "total_updates": t, "params": params}
    if kind.startswith("Warmup"):
        entry["rates"] = Warmup(kind, peak, w, t, params).trace()
    elif kind == "OneCycle":
        cycle = OneCycle(params)
        entry["rates"] = cycle.trace()
        entry["betas"] = cycle.betas()
    elif kind == "LRRangeTest":
        entry["rates"] = RangeTest(params).trace()
    else:
        entry["rates"] = transformers(kind, peak, w, t, params)
    return entry


CASES = [
    case("linear"), case("linear", w=5), case("linear", w=1),
    case("cosine", w=4), case("cosine", w=3, num_cycles=1.25),
    case("cosine_with_restarts", w=4), case("cosine_with_restarts", w=4, num_cycles=2),
    case("polynomial", w=5), case("polynomial", w=2, lr_end=1e-4, power=2.5),
    case("constant", w=5), case("constant_with_warmup", w=5),
    case("inverse_sqrt"), case("inverse_sqrt", w=4), case("inverse_sqrt", w=4, timescale=9),
    case("cosine_with_min_lr", w=4, min_lr=1e-4),
    case("cosine_with_min_lr", w=4, min_lr_rate=0.3, num_cycles=1.0),
    case("cosine_warmup_with_min_lr", w=4, min_lr_rate=0.1),
    case("cosine_warmup_with_min_lr", w=4, min_lr=2e-4, warmup_lr_rate=0.25),
    case("warmup_stable_decay", w=4, num_decay_steps=6),
    case("warmup_stable_decay", w=5),
    case("warmup_stable_decay", w=4, num_decay_steps=8, num_stable_steps=5, warmup_type="cosine",
         decay_type="linear", min_lr_ratio=0.1),
    case("warmup_stable_decay", w=4, num_stable_steps=6, warmup_type="1-sqrt", decay_type="1-sqrt"),
    case("WarmupLR", w=6), case("WarmupLR", w=6, warmup_type="linear", warmup_min_lr=1e-5),
    case("WarmupLR", w=1), case("WarmupLR", w=1, warmup_type="linear"),
    case("WarmupDecayLR", w=6), case("WarmupDecayLR", w=4, warmup_type="linear", warmup_min_lr=2e-4),
    case("WarmupDecayLR", w=8, t=5),
    case("WarmupCosineLR", w=6),
    case("WarmupCosineLR", w=4, warmup_type="linear", warmup_min_ratio=0.2, cos_min_ratio=0.05),
    case("WarmupCosineLR", w=8, t=5),
    case("OneCycle", cycle_min_lr=1e-4, cycle_max_lr=1e-3, cycle_first_step_size=6),
    case("OneCycle", cycle_min_lr=1e-4, cycle_max_lr=1e-3, cycle_first_step_size=4,
         cycle_second_step_size=10, decay_step_size=2, decay_lr_rate=0.5, decay_mom_rate=0.01,
         cycle_min_mom=0.7, cycle_max_mom=0.85),
    case("OneCycle", cycle_min_lr=1e-4, cycle_max_lr=1e-3, cycle_first_step_size=6,
         cycle_second_step_size=8, cycle_first_stair_count=3, cycle_second_stair_count=2),
    case("LRRangeTest", lr_range_test_min_lr=1e-4, lr_range_test_step_size=5),
    case("LRRangeTest", lr_range_test_min_lr=1e-4, lr_range_test_step_size=5,
         lr_range_test_step_rate=3.0, lr_range_test_staircase=True),
]


def check_with_torch():
    """The curves that PyTorch has too, up to the end of each schedule."""
    import torch
    from torch.optim import lr_scheduler as s

    def rates(make, peak=0.001, updates=UPDATES, field=lambda group: group["lr"]):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak, momentum=0.9)
        scheduler = make(optimizer)
        values = []
        for _ in range(updates):
            values.append(field(optimizer.param_groups[0]))
            optimizer.step()
            scheduler.step()
        return values

    def ours(kind, w, **params):
        return next(c for c in CASES if (c["kind"], c["warmup_updates"], c["params"]) == (kind, w, params))

    cycle = dict(cycle_min_lr=1e-4, cycle_max_lr=1e-3, cycle_first_step_size=6)
    triangle = lambda o: s.CyclicLR(o, 1e-4, 1e-3, 6, base_momentum=0.8, max_momentum=0.9)
    checks = [
        (ours("linear", 0)["rates"], rates(lambda o: s.LinearLR(o, 1.0, 0.0, 20)), 26),
        (ours("cosine", 4)["rates"][4:], rates(lambda o: s.CosineAnnealingLR(o, 16)), 17),
        (ours("cosine_with_restarts", 4, num_cycles=2)["rates"][4:],
         rates(lambda o: s.CosineAnnealingWarmRestarts(o, 8)), 16),
        (ours("cosine_with_min_lr", 4, min_lr=1e-4)["rates"][4:],
         rates(lambda o: s.CosineAnnealingLR(o, 16, eta_min=1e-4)), 17),
        (ours("polynomial", 2, lr_end=1e-4, power=2.5)["rates"][2:],
         [1e-4 + r for r in rates(lambda o: s.PolynomialLR(o, 18, power=2.5), peak=9e-4)], 23),
        (ours("OneCycle", 0, **cycle)["rates"], rates(triangle), 13),
        ([b[0] for b in ours("OneCycle", 0, **cycle)["betas"]][1:],
         rates(triangle, field=lambda group: group["momentum"])[1:], 12),
    ]
    for number, (mine, theirs, count) in enumerate(checks):
        for update, (a, b) in enumerate(zip(mine[:count], theirs[:count])):
            assert abs(a - b) <= 1e-12, f"check {number}, update {update}: {a} and torch's {b}"
    print(f"{len(checks)} curves agree with torch {torch.__version__}")


def main():
    try:
        check_with_torch()
    except ImportError:
        print("PyTorch is not there: curves not checked against it")
    with open(sys.argv[1], "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(c) for c in CASES) + "\n]\n")


if __name__ == "__main__":
    main()
