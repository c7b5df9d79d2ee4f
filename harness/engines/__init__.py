"""The engines by name."""

from harness.engines.base import Engine
from harness.engines.emulated import Emulator
from harness.engines.external import External
from harness.engines.sglang import Sglang
from harness.engines.transformers import Transformers
from harness.engines.vllm import Vllm
from harness.errors import HarnessError

ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (Vllm(), Sglang(), Transformers(), External(), Emulator())
}


def get(name: str) -> Engine:
    """The engine of that name. Raises HarnessError listing the names."""
    if name not in ENGINES:
        raise HarnessError(f"no engine {name!r}; there are: {', '.join(ENGINES)}")
    return ENGINES[name]
