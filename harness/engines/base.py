"""What an engine is to the harness: a command line, a request body, and names in its log.

An engine is never imported: it lives in an environment of its own under .engines/ and is spoken to
over HTTP.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from harness.engines.ports import free_port
from harness.errors import HarnessError

PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}

# float32 and not the weights' own bfloat16, in which vLLM fails a question that it answers in
# float32 (Episode 02): it is the one type that every CPU computes in hardware.
CPU_DTYPE = "float32"

# At 46,080 bytes a token in float32, vLLM's smallest pool on a CPU (1 GiB) holds this many tokens
# of SmolLM2-135M in whole blocks of 128. SGLang gets the same.
CPU_POOL_TOKENS = 23_296


@dataclass(frozen=True, slots=True)
class Launch:
    """How an engine is started: env holds what is added to the harness's own environment."""

    argv: tuple[str, ...]
    port: int
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Start:
    """What a command line is made of. home: the engine's environment. dtype: the type to compute
    in, None for the engine's own choice."""

    home: Path
    model: str
    served_name: str
    port: int
    tier: str
    max_model_tokens: int
    dtype: str | None


class Engine(ABC):
    """One engine.

    environments: its folder under .engines/ by tier, which is its lock's name too. takes_ids:
    whether /v1/completions takes token ids; gives_logprobs: whether it tells how likely tokens
    were. stream_options: what it takes beside include_usage. no_thinking: fields of a chat request
    that make a reasoning model answer at once. reset_path: what empties its prefix cache;
    takes_keys: whether a request can have a cache salt or an adapter.
    """

    name: ClassVar[str]
    package: ClassVar[str] = ""
    environments: ClassVar[Mapping[str, str]] = {}
    health_path: ClassVar[str] = "/health"
    metrics_path: ClassVar[str | None] = "/metrics"
    pool_pattern: ClassVar[str | None] = None
    takes_ids: ClassVar[bool] = True
    gives_logprobs: ClassVar[bool] = True
    reset_path: ClassVar[str | None] = None
    takes_keys: ClassVar[bool] = True
    stream_options: ClassVar[Mapping[str, bool]] = {}
    no_thinking: ClassVar[Mapping[str, Any]] = {}

    def launch(
        self,
        model_dir: str | None,
        served_name: str,
        port: int,
        tier: str,
        max_model_tokens: int,
        flags: Sequence[str],
        root: Path,
        dtype: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Launch:
        """The command line of this engine. port 0: any that is free. flags come last, and win, and
        so does env.

        dtype: the type to compute in; None: float32 on the cpu tier, else the engine's choice.
        """
        port = port or free_port()
        dtype = dtype or (CPU_DTYPE if tier == "cpu" else None)
        home = root / ".engines" / self.environments.get(tier, "")
        start = Start(home, str(model_dir), served_name, port, tier, max_model_tokens, dtype)
        own = self.env(home, tier) | (offline() if Path(str(model_dir)).is_dir() else {})
        return Launch((*self.argv(start), *flags), port, own | dict(env or {}))

    @abstractmethod
    def argv(self, start: Start) -> list[str]:
        """The command line without the experiment's flags."""

    def env(self, home: Path, tier: str) -> dict[str, str]:
        return one_thread() if tier == "cpu" else {}

    def request_body(
        self,
        endpoint: str,
        prompt_ids: Sequence[int] | None,
        prompt_text: str,
        output_tokens: int,
        seed: int,
        served_name: str,
        logprobs: int = 0,
        salt: str = "",
        adapter: str = "",
    ) -> dict[str, Any]:
        """The JSON body of one streamed request of exactly output_tokens tokens, greedy.

        The prompt is sent as ids where there are ids and the engine takes them, else as text.
        logprobs: how many of the likeliest tokens to name at each step of a completion, where the
        engine can. salt: requests of different salts share no cached prefix. adapter: name of a
        LoRA adapter that the engine was started with. Both "" for none; raises HarnessError where
        the engine takes neither.
        """
        if (salt or adapter) and not self.takes_keys:
            raise HarnessError(
                f"{self.name}: takes no cache salt and no adapter; limit the sweep by engines = "
                "[...] to engines that do"
            )
        sends_ids = self.takes_ids and prompt_ids is not None
        asked: dict[str, Any] = (
            {"messages": [{"role": "user", "content": prompt_text}]}
            if endpoint == "chat"
            else {"prompt": list(prompt_ids or ()) if sends_ids else prompt_text}
        )
        if logprobs and self.gives_logprobs and endpoint == "completions":
            asked["logprobs"] = logprobs
        if salt:
            asked["cache_salt"] = salt
        return asked | {
            "model": self.model_name(served_name, adapter),
            "max_tokens": output_tokens,
            "ignore_eos": True,
            "temperature": 0,
            "seed": seed,
            "stream": True,
            "stream_options": {"include_usage": True, **self.stream_options},
        }

    def with_min_tokens(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request with an earlier end forbidden instead of ignored: as long, but the engine
        can't know it, and plans by max_tokens as for any request. Raises HarnessError where the
        engine takes neither."""
        if "ignore_eos" not in body:
            raise HarnessError(
                f"{self.name}: takes no min_tokens; limit the sweep by engines = [...] to engines "
                "that do"
            )
        kept = {key: value for key, value in body.items() if key != "ignore_eos"}
        return kept | {"min_tokens": body["max_tokens"]}

    def with_own_end(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request whose answer ends by itself, after max_tokens at most."""
        return {key: value for key, value in body.items() if key != "ignore_eos"}

    def with_temperature(self, body: dict[str, Any], temperature: float) -> dict[str, Any]:
        """The request sampled instead of greedy. Raises HarnessError where the engine can't."""
        return body | {"temperature": temperature}

    def model_name(self, served_name: str, adapter: str) -> str:
        """What a request calls the model, with an adapter or ("") without."""
        return adapter or served_name

    def endpoint_url(self, base_url: str, endpoint: str) -> str:
        return base_url + PATHS[endpoint]

    def metrics_url(self, base_url: str) -> str | None:
        return base_url + self.metrics_path if self.metrics_path else None

    def reset_url(self, base_url: str) -> str | None:
        """Where a POST empties the prefix cache; None where the engine has no such thing."""
        return base_url + self.reset_path if self.reset_path else None

    def kv_pool_tokens(self, line: str) -> int | None:
        """Size of the KV cache pool, if this line of the engine's log tells it."""
        found = re.search(self.pool_pattern, line) if self.pool_pattern else None
        return int(found[1].replace(",", "")) if found else None

    def version(self, launch: Launch, base_url: str) -> str | None:
        """Version of the package in the environment that the launch runs from."""
        site = Path(launch.argv[0]).parent.parent.glob(
            f"lib/python*/site-packages/{self.package}-*.dist-info"
        )
        names = sorted(folder.name for folder in site)
        return names[0].removesuffix(".dist-info").rpartition("-")[2] if names else None


def one_thread() -> dict[str, str]:
    """One compute thread: the cpu tier gives an engine one core, whatever the machine has."""
    return {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def offline() -> dict[str, str]:
    """The model is on disk: nothing is asked of the hub, nothing is reported anywhere."""
    return {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
    }


def with_library_path(folder: Path) -> str:
    """LD_LIBRARY_PATH with the folder before what is there already."""
    there = os.environ.get("LD_LIBRARY_PATH")
    return f"{folder}:{there}" if there else str(folder)
