"""experiment.toml: what is accepted, and that every error names the file and the key."""

from pathlib import Path

import pytest

from harness import experiment, schedule
from harness.errors import HarnessError

DECLARATION = """
[episode]
number = "77"
title = "Test"
question = "Does it?"

[seeds]
prompts = 1
arrivals = 2
sampling = 3

[tier.cpu]
model = "m"
engines = ["a", "b", "c"]
repeats = 3
max_model_tokens = 128
engine_cores = [0]
client_core = 1
request_timeout_s = 5
usd_per_hour = 0.05
price_unit = "core"

[[tier.cpu.sweep]]
name = "length"
endpoint = "completions"
prompt_tokens = [8, 16]
output_tokens = 4
in_flight = 1
warmup_requests = 1
min_requests = 2
"""
OPEN = 'load = "poisson"\nconnections = 4\n'
SHARED = "in_flight = 1\nshared_tokens = "
TEXTS = 'in_flight = 1\ntexts = "t.jsonl"\n'
VARIANT = '[tier.cpu.variant.b]\nengine = "a"\n'
STAGES = 'load = "stages"\nconnections = 4\nstages = '


def write(folder: Path, text: str) -> Path:
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def test_reads_every_field(tmp_path: Path) -> None:
    declared = experiment.load(write(tmp_path, DECLARATION))
    tier = declared.tiers["cpu"]
    assert declared.episode.number == "77"
    assert tier.request_timeout_s == 5.0
    assert tier.sweeps[0].prompt_tokens == (8, 16)
    assert (tier.sweeps[0].min_duration_s, tier.sweeps[0].metrics_hz) == (0.0, 2.0)


def test_engines_take_turns_and_lengths_are_the_same_for_each(tmp_path: Path) -> None:
    declared = experiment.load(write(tmp_path, DECLARATION))
    planned = schedule.cells(declared, declared.tiers["cpu"], ("a", "b", "c"))
    assert [c.position for c in planned] == list(range(1, 19))
    assert [c.variant for c in planned[::2]] == list("abcbcacab")
    for repeat in (1, 2, 3):
        orders = {
            engine: [
                c.level.prompt_tokens for c in planned if (c.variant, c.repeat) == (engine, repeat)
            ]
            for engine in "abc"
        }
        assert orders["a"] == orders["b"] == orders["c"]
        assert sorted(orders["a"]) == [8, 16]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("repeats = 3", "repeat = 3"), "tier.cpu.repeat"),
        (("repeats = 3\n", ""), "missing key tier.cpu.repeats"),
        (("repeats = 3", 'repeats = "3"'), "tier.cpu.repeats must be int"),
        (("repeats = 3", "repeats = 0"), "tier.cpu.repeats: must be at least 1"),
        (("[8, 16]", "[8, 1600]"), "max_model_tokens: sweep 'length' needs 1604"),
        (("[8, 16]", "[]"), "tier.cpu.sweep[0].prompt_tokens: must not be empty"),
        (("in_flight = 1", "in_flight = 0"), "tier.cpu.sweep[0].in_flight: must be above 0"),
        (('"completions"', '"complete"'), "tier.cpu.sweep[0].endpoint"),
        (("[tier.cpu]", "[tier.tpu]"), "tier 'tpu'"),
        (("[seeds]", "[seed]"), "unknown key 'seed'"),
        (("min_requests = 2", "min_requests = 2\nmin_duration_s = 3"), "max_requests"),
        (("[seeds]", "[seeds"), "cannot be read"),
        (("[8, 16]", "[8, 8]"), "tier.cpu.sweep[0].prompt_tokens: a length stands there twice"),
        (("client_core = 1", "client_core = 0"), "tier.cpu.client_core: is one of engine_cores"),
        (("request_timeout_s = 5", "request_timeout_s = -5"), "tier.cpu.request_timeout_s"),
        (("[seeds]\n", "flags = 3\n[seeds]\n"), "unknown key episode.flags"),
        (('price_unit = "core"', 'price_unit = "core"\nflags.a = "--x"'), "tier.cpu.flags.a"),
        (('price_unit = "core"', 'price_unit = "core"\nflags.z = ["--x"]'), "no engine z here"),
        (
            ('price_unit = "core"', 'price_unit = "core"\nvariant.z.engine = "a"'),
            "no engine z here",
        ),
        (('price_unit = "core"', 'price_unit = "core"\nvariant.a.flags = []'), "variant.a.engine"),
        (("in_flight = 1", 'load = "bursty"'), "tier.cpu.sweep[0].load: one of"),
        (("in_flight = 1", ""), "tier.cpu.sweep[0].in_flight: must not be empty"),
        (("in_flight = 1", 'load = "poisson"'), "needs rate_per_s, capacity_frac or"),
        (("in_flight = 1", f"{OPEN}rate_per_s = 0"), "rate_per_s: must be above 0"),
        (("in_flight = 1", f"{OPEN}rate_per_s = [1, 0]"), "rate_per_s: must be above 0"),
        (("in_flight = 1", 'load = "poisson"\nrate_per_s = 1'), "connections: must be above 0"),
        (("in_flight = 1", f"{OPEN}capacity_frac = 0.5"), "capacity_of: no such closed sweep"),
        (("in_flight = 1", "in_flight = 1\nrate_per_s = 2"), "rate_per_s: of another load"),
        (("in_flight = 1", "in_flight = 1\nsearch_steps = 2"), "search_steps: of another load"),
        (("in_flight = 1", 'in_flight = 1\nlength_by = "stop"'), "length_by: one of"),
        (("in_flight = 1", "in_flight = 1\ntemperature = -1"), "temperature: must not be negative"),
        (("in_flight = 1", 'in_flight = 1\nkinds = ["a"]'), "kinds: of a sweep with texts"),
        (("in_flight = 1", f"{TEXTS}"), "prompt_tokens: one number with texts"),
        (("in_flight = 1", f"{TEXTS}turns = 2"), "texts: neither with turns"),
        (("in_flight = 1", f'{TEXTS}extra = ["a", "a"]'), "extra: a level is there twice"),
        (("[tier.cpu]", f"{VARIANT}env.A = 1\n\n[tier.cpu]"), "variant.b.env.A must be str"),
        (("in_flight = 1", f"{OPEN}search_steps = 2"), "capacity_of: no such closed sweep"),
        (("in_flight = 1", "in_flight = [1, 4]\nprocesses = 2"), "processes: more than"),
        (("in_flight = 1", "in_flight = 1\nrounds = -1"), "rounds: must not be negative"),
        (("in_flight = 1", f"{STAGES}[[1, 0]]"), "stages: pairs of a rate and a duration"),
        (("in_flight = 1", f"{STAGES}[[1, 2, 3]]"), "stages must hold lists of 2"),
        (
            ("in_flight = 1", "in_flight = 1\nturns = 50"),
            "needs 216 tokens",
        ),
        (("in_flight = 1", 'in_flight = 1\nengines = ["d"]'), "no engine d in this tier"),
        (("in_flight = 1", "in_flight = 1\nmix = [[8, 2]]"), "mix must hold lists of 3"),
        (("in_flight = 1", "in_flight = 1\nmix = [[8, 2, 0]]"), "mix: lengths and weights"),
        (("in_flight = 1", "in_flight = 1\nmix = [[900, 2, 1]]"), "needs 902 tokens"),
        (("in_flight = 1", f"{SHARED}[8]\ncold = true"), "cold: must be false"),
        (("in_flight = 1", f"{SHARED}[-1]"), "shared_tokens: must not be negative"),
        (("in_flight = 1", f'{SHARED}[8]\nshared_at = "top"'), "shared_at: start or end"),
        (("in_flight = 1", f"{SHARED}[8]\nturns = 2"), "shared_tokens: neither with turns"),
        (('"completions"', '"chat"\ncold = false\nshared_tokens = [8]'), "endpoint: completions"),
        (("in_flight = 1", "in_flight = 1\ndocuments = 2"), "documents: of a sweep with shared"),
        (("in_flight = 1", 'in_flight = 1\nsalts = ["a"]'), "salts: of a sweep with shared"),
        (("in_flight = 1", "in_flight = 1\nfront_cap = true"), "front_cap: of another load"),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, change: tuple[str, str], named: str) -> None:
    path = write(tmp_path, DECLARATION.replace(*change))
    with pytest.raises(HarnessError) as caught:
        experiment.load(path)
    assert str(path) in str(caught.value)
    assert named in str(caught.value)


def test_a_missing_episode_lists_those_there_are(tmp_path: Path) -> None:
    folder = tmp_path / "episodes" / "77-test"
    folder.mkdir(parents=True)
    write(folder, DECLARATION)
    assert experiment.find(tmp_path, "77") == folder
    with pytest.raises(HarnessError, match=r"no episode '78'.*declared: 77-test"):
        experiment.find(tmp_path, "78")


ATTEMPT = """
[[tier.cpu.attempt]]
name = "odd"
asks = "whether it takes an odd flag"
engine = "a"
body = '{"prompt": "x"}'
"""
JOB = """
[[tier.cpu.job]]
name = "copy"
script = "copy.py"
environment = "vllm-cpu"
"""


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("asks =", "ask ="), "unknown key tier.cpu.attempt[0].ask"),
        (('name = "odd"', 'name = "a"'), "attempt[0].name: is the name of an engine or variant"),
        (('\'{"prompt": "x"}\'', "'[1]'"), "attempt[0].body: must be a JSON object"),
        (('\'{"prompt": "x"}\'', "'{'"), "attempt[0].body: must be a JSON object"),
        (('\'{"prompt": "x"}\'', "''"), "attempt[0].body: needed without a probe"),
        (('engine = "a"', 'engine = "a"\nkeep = ["("]'), "attempt[0].keep: '('"),
        (('engine = "a"', 'engine = "a"\nendpoint = "x"'), "attempt[0].endpoint: one of"),
        (('engine = "a"', 'engine = "a"\ntimeout_s = 0'), "attempt[0].timeout_s: must be above 0"),
        (("script =", "threads = 0\nscript ="), "job[0].threads: must be at least 1"),
        (
            ("script =", "repeats = 4\nscript ="),
            "job[0].repeats: 0 for all, or at most the tier's 3",
        ),
        ((JOB, JOB + JOB), "tier.cpu.job: two of them share a name"),
        (("[[tier.cpu.job]]", "[tier.cpu.job]"), "tier.cpu.job: [[job]] tables"),
    ],
)
def test_attempts_and_jobs_say_what_they_lack(
    tmp_path: Path, change: tuple[str, str], named: str
) -> None:
    text = DECLARATION + ATTEMPT + JOB
    tier = experiment.load(write(tmp_path, text)).tiers["cpu"]
    assert (tier.attempts[0].name, tier.attempts[0].endpoint) == ("odd", "chat")
    assert (tier.jobs[0].script, tier.cores_of(tier.jobs[0])) == ("copy.py", (0,))
    with pytest.raises(HarnessError) as caught:
        experiment.load(write(tmp_path, text.replace(*change)))
    assert named in str(caught.value)


def test_jobs_take_turns_with_the_repeat(tmp_path: Path) -> None:
    once = JOB.replace('"copy"', '"once"') + "repeats = 1\n"
    third = JOB.replace('"copy"', '"third"')
    tier = experiment.load(write(tmp_path, DECLARATION + JOB + once + third)).tiers["cpu"]
    named = [[job.name for job in schedule.jobs(tier, repeat)] for repeat in (1, 2, 3)]
    assert named == [["copy", "once", "third"], ["third", "copy"], ["third", "copy"]]


SEARCH = """
[[tier.cpu.sweep]]
name = "search"
endpoint = "completions"
prompt_tokens = [8]
output_tokens = 4
load = "poisson"
connections = 64
capacity_of = "length"
search_steps = 4
slo_ttft_ms = 500
slo_quantile = 0.9
warmup_requests = 1
min_requests = 64
"""


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("steps = 4", "steps = -1"), "sweep[1].search_steps: must not be negative"),
        (("steps = 4", "steps = 0\nrate_per_s = 2"), "slo_ttft_ms: of a sweep with search_steps"),
        (("ms = 500", "ms = 0"), "sweep[1].slo_ttft_ms: a bound above 0 is needed"),
        (("steps = 4", "steps = 4\nsearch_frac = [1.2, 0.2]"), "sweep[1].search_frac: two shares"),
        (("= 0.9", "= 1"), "sweep[1].slo_quantile: a share between 0 and 1"),
        (("= 0.9", "= 0.95"), "slo_quantile: takes 130 requests, min_requests has 64"),
        (("connections = 64", "connections = 63"), "connections: a search needs at least min_"),
    ],
)
def test_a_search_says_what_it_lacks(tmp_path: Path, change: tuple[str, str], named: str) -> None:
    experiment.load(write(tmp_path, DECLARATION + SEARCH))
    capped = SEARCH.replace("connections = 64", "connections = 8\nfront_cap = true")
    experiment.load(write(tmp_path, DECLARATION + capped))
    with pytest.raises(HarnessError) as caught:
        experiment.load(write(tmp_path, DECLARATION + SEARCH.replace(*change)))
    assert named in str(caught.value)
