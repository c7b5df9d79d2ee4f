"""SGLang 0.5.23.

On the cpu tier it runs without its optimised CPU kernels, which the package does not hold (they
want AMX and a build from source): any comparison must say so first. Its kernel library links
libcuda.so.1 for one symbol that the CPU path never calls; environments.py builds a stub of it where
there is no driver.

Its gauges (running, queued, token usage) change only when it logs a decode step, every 40 steps by
default: --decode-log-interval makes that every step on a CPU and every 8 on a GPU. The overlap
scheduler, which on a GPU hides work behind kernels, is off on a CPU.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from harness.engines.base import (
    CPU_POOL_TOKENS,
    Engine,
    Start,
    one_thread,
    with_library_path,
)


class Sglang(Engine):
    name = "sglang"
    package = "sglang"
    no_thinking: ClassVar[Mapping[str, Any]] = {"chat_template_kwargs": {"enable_thinking": False}}
    environments: ClassVar[Mapping[str, str]] = {"cpu": "sglang", "gpu": "sglang"}
    # KV Cache is allocated. dtype: torch.float32, #tokens: 23296, K size: 0.50 GB, V size: 0.50 GB
    pool_pattern = r"KV Cache is allocated.*#tokens: (\d+)"
    reset_path = "/flush_cache"  # refused with 400 while a request runs
    stream_options: ClassVar[Mapping[str, bool]] = {"continuous_usage_stats": True}

    def argv(self, start: Start) -> list[str]:
        argv = [str(start.home / "bin" / "python"), "-m", "sglang.launch_server"]
        argv += ["--model-path", start.model, "--served-model-name", start.served_name]
        argv += ["--host", "127.0.0.1", "--port", str(start.port)]
        argv += ["--context-length", str(start.max_model_tokens)]
        argv += ["--enable-metrics", "--enable-cache-report"]
        if start.dtype:
            argv += ["--dtype", start.dtype]
        if start.tier != "cpu":
            return [*argv, "--decode-log-interval", "8"]
        argv += ["--decode-log-interval", "1", "--device", "cpu"]
        argv += ["--attention-backend", "torch_native", "--sampling-backend", "pytorch"]
        return [*argv, "--disable-overlap-schedule", "--max-total-tokens", str(CPU_POOL_TOKENS)]

    def model_name(self, served_name: str, adapter: str) -> str:
        # A bare adapter name is answered by the base model, without a word.
        return f"{served_name}:{adapter}" if adapter else served_name

    def env(self, home: Path, tier: str) -> dict[str, str]:
        if tier != "cpu":
            return {"DO_NOT_TRACK": "1"}
        return one_thread() | {
            "DO_NOT_TRACK": "1",
            "SGLANG_USE_CPU_ENGINE": "1",
            "LD_LIBRARY_PATH": with_library_path(home / "stub"),
        }
