"""Small models of Episode 15: the knee, the open loop, and what the work that counts costs.

All three rest on two constants of the closed loop: N requests in flight take a + b N each.
"""

from typing import Any

from harness.render.model import Input, Output, model

ENGINES = ["vllm", "sglang"]
LEVELS = [1, 8, 16, 32]


@model(
    formula="requests/s = N / (a + b N)\n"
    "time of a request = a + b N\n"
    "limit = 1 / b, half of it at N = a / b",
    inputs=[
        Input("engine", "Engine", ENGINES),
        Input("in_flight", "Requests in flight, N", [1, 2, 3, 4, 6, 8, 12, 16, 24, 32], default=8),
    ],
    outputs=[
        Output("requests_per_s", "Throughput", "requests/s", ".2f", within=0.4),
        Output("each_s", "Time of a request", "s", ".2f", within=0.3),
        Output("limit_percent", "Of the limit", "%", ".0f"),
        Output("next_percent", "What one more in flight adds", "%", ".1f"),
    ],
    constants="model_fit",
    check="closed_points",
)
def knee(in_flight: float, a_s: float, b_s: float) -> dict[str, float]:
    """What do more requests in flight bring?"""
    each_s = a_s + b_s * in_flight
    after = (in_flight + 1) / (each_s + b_s)
    return {
        "requests_per_s": in_flight / each_s,
        "each_s": each_s,
        "limit_percent": 100 * b_s * in_flight / each_s,
        "next_percent": 100 * (after * each_s / in_flight - 1),
    }


@model(
    formula="load = rate × b\n"
    "time of a request = (a + b) / (1 − load)\n"
    "in flight = rate × time of a request",
    inputs=[
        Input(
            "capacity_percent",
            "Offered rate, of the capacity",
            [10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 100],
            default=80,
            unit="%",
        ),
    ],
    outputs=[
        Output("each_s", "Time of a request", "s", ".2f", within=0.35),
        Output("rate_per_s", "Offered rate", "requests/s", ".2f"),
        Output("load_percent", "Load, of the limit", "%", ".0f"),
        Output("in_flight", "In flight, mean", "", ".1f"),
        Output("often", "In flight, nine times in ten at most", "", ".0f"),
    ],
    constants="open_fit",
    check="open_points",
)
def arrivals(
    capacity_percent: float, a_s: float, b_s: float, capacity_per_s: float
) -> dict[str, Any]:
    """What do arrivals wait on vLLM, that do not wait for each other?"""
    rate = capacity_percent / 100 * capacity_per_s
    load = rate * b_s
    found: dict[str, Any] = {"rate_per_s": rate, "load_percent": 100 * load}
    if load >= 1:
        return found | {"each_s": None, "in_flight": None, "often": "no bound: the queue grows"}
    each_s = (a_s + b_s) / (1 - load)
    return found | {"each_s": each_s, "in_flight": rate * each_s, "often": _often(load, a_s / b_s)}


@model(
    formula="USD a million tokens = price / 3600 / tokens per second × 1,000,000\n"
    "... that met the objective = the same / share of requests that met it",
    inputs=[
        Input("engine", "Engine", ENGINES),
        Input("in_flight", "Requests in flight", LEVELS, default=8),
        Input(
            "usd_per_hour",
            "Price of the machine",
            [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8],
            default=0.05,
            unit="USD an hour",
        ),
    ],
    outputs=[
        Output("requests_per_s", "Throughput", "requests/s", ".2f", within=0.4),
        Output("usd_million", "A million output tokens", "USD", ".3f", within=0.3),
        Output("met_percent", "Requests that met the objective, as recorded", "%", ".0f"),
        Output("usd_million_good", "A million of those that did", "USD", ".3f"),
    ],
    constants="cost_fit",
    check="closed_points",
)
def price(
    in_flight: float,
    usd_per_hour: float,
    a_s: float,
    b_s: float,
    output_tokens: float,
    met_frac: float,
) -> dict[str, Any]:
    """What does a million tokens cost, and a million that came in time?"""
    requests_per_s = in_flight / (a_s + b_s * in_flight)
    usd_million = 1e6 * usd_per_hour / 3600 / (requests_per_s * output_tokens)
    return {
        "requests_per_s": requests_per_s,
        "usd_million": usd_million,
        "met_percent": 100 * met_frac,
        "usd_million_good": usd_million / met_frac if met_frac else "no price buys one",
    }


def _often(load: float, a_over_b: float) -> int:
    """The number in flight that is passed in one case of ten, of the chain whose n requests end at
    the rate n / (a + b n): weight of n is the product of load + load a / (b k) for k up to n."""
    weights = [1.0]
    while weights[-1] > 1e-9 * max(weights) or len(weights) < 10:
        weights.append(weights[-1] * load * (1 + a_over_b / len(weights)))
    goal, passed = 0.9 * sum(weights), 0.0
    for number, weight in enumerate(weights):
        passed += weight
        if passed >= goal:
            return number
    return len(weights)
