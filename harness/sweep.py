"""A sweep: what its cells ask of an engine, and how the requests arrive."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sweep:
    """Cells that differ in load level and prompt length alone.

    prompt_tokens: the lengths. output_tokens: fixed output length. A cell ends when min_requests
    are done and min_duration_s has passed. warmup_requests come before and are excluded.
    max_requests: prompts prepared, needed where a closed loop has a duration. metrics_hz: how often
    /metrics is read. engines: some of the tier's, empty for all. repeats: in the first so many
    alone, 0 for all. cold: every prompt is new to the engine. same_prompts: all levels that say so
    send the same prompts, in every repeat. logprobs: how many likeliest tokens to ask for.
    processes: load processes that share the requests.

    load: how requests arrive.
    - "closed": in_flight, the numbers of slots.
    - "constant", "poisson", "gamma": rate_per_s, or capacity_frac, a share of the highest rate that
      the closed-loop sweep capacity_of reached in the first repeat; a variant that is not in that
      sweep takes a share of its plain engine's. burstiness: gamma's shape.
    - "stages": stages, pairs of rate_per_s and seconds; ramp: from one rate to the next in a line.
    - "trace": a file beside the declaration, stretched by time_scale; a block of its hash_ids is
      trace_block_tokens long. max_requests: how much of it. The lengths above are its warm-up's.
    connections: the most in flight in an open loop.

    turns: more than one makes each request the first of a session. After think_s from the end of an
    answer comes the prompt before, an answer of output_tokens and turn_tokens more.

    mix: kinds of measured requests, each its prompt tokens, output tokens and weight: a weight is
    how many there are of it in every sum of the weights, in random order. The lengths above are the
    warm-up's.

    shared_tokens: how many tokens of each measured prompt come from a text that the prompts share,
    at most the whole; the rest is its own. For completions alone. shared_at: "start" or "end" of
    the prompt. documents: how many such texts there are; the prompts take them in turn, and
    likewise salts (cache salts) and adapters (of LoRA), "" for none. reset_cache: the engine's
    prefix cache is emptied before each cell. front_cap: connections is a cap in front of the server
    by intent.

    search_steps: instead of rates, so many steps of a bisection for the highest rate at which the
    objective holds, between two shares of the capacity (search_frac): TTFT from the scheduled time
    and TPOT of the share slo_quantile of all requests are at most slo_ttft_ms and slo_tpot_ms, 0
    for no bound. It needs min_requests connections, so that it is the server that is overloaded.

    priorities: sent with the measured requests, in turn; empty for none.

    length_by: how the output length is asked for. Exact: "ignore_eos" tells the server the length;
    "min_tokens" forbids an earlier end, so that the server can plan by max_tokens alone. "eos": the
    answer ends by itself, after output_tokens at most.

    texts: a file beside the declaration, of prompts instead of random words (texts.py says how its
    lines look). prompt_tokens is then one number, the most that any of them has. Every cell takes
    them in order from the first, and its warm-up from the end. kinds: levels of which each takes
    the lines of one kind alone; extra: levels of which each merges what the lines have under that
    name into the request.

    temperature: 0 is greedy; above 0 each request has a seed of its own.
    """

    name: str
    endpoint: str
    prompt_tokens: tuple[int, ...]
    output_tokens: int
    warmup_requests: int
    min_requests: int
    load: str = "closed"
    in_flight: tuple[int, ...] = ()
    rate_per_s: tuple[float, ...] = ()
    capacity_frac: tuple[float, ...] = ()
    capacity_of: str = ""
    burstiness: float = 1.0
    stages: tuple[tuple[float, float], ...] = ()
    ramp: bool = False
    trace: str = ""
    time_scale: float = 1.0
    trace_block_tokens: int = 512
    connections: int = 0
    turns: int = 1
    think_s: float = 0.0
    turn_tokens: int = 0
    rounds: int = 0
    min_duration_s: float = 0.0
    max_requests: int = 0
    metrics_hz: float = 2.0
    engines: tuple[str, ...] = ()
    repeats: int = 0
    cold: bool = True
    same_prompts: bool = False
    logprobs: int = 0
    processes: int = 1
    mix: tuple[tuple[int, int, int], ...] = ()
    shared_tokens: tuple[int, ...] = ()
    shared_at: str = "start"
    documents: int = 1
    salts: tuple[str, ...] = ("",)
    adapters: tuple[str, ...] = ("",)
    reset_cache: bool = False
    front_cap: bool = False
    search_steps: int = 0
    search_frac: tuple[float, ...] = (0.2, 1.2)
    slo_ttft_ms: float = 0.0
    slo_tpot_ms: float = 0.0
    slo_quantile: float = 0.9
    length_by: str = "ignore_eos"
    priorities: tuple[int, ...] = ()
    texts: str = ""
    kinds: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    temperature: float = 0.0

    def longest_tokens(self) -> int:
        """Prompt and answer of the longest request; a trace's own are not known here."""
        later = (self.turns - 1) * (self.output_tokens + self.turn_tokens)
        mixed = max((prompt + output for prompt, output, _ in self.mix), default=0)
        return max(max(self.prompt_tokens) + later + self.output_tokens, mixed)
