"""`transformers serve` of Transformers 5.24.0. Found by trying it and reading its source:

- /v1/completions is there and takes text alone (a list of token ids is refused with 400); it puts
  the text through the model's tokenizer, which adds nothing for SmolLM2, and its usage gives the
  count, so equal token ids in are a text that encodes to those ids.
- Output length is fixed by a generation_config without an end token: "eos_token_id": -1 with
  max_new_tokens gives exactly that many. `ignore_eos` and `min_tokens` are refused with 422.
- Usage comes in the last chunk, asked for or not; there is no running usage and no cached count,
  and the stream ends without "[DONE]". A token that completes no character makes no chunk.
- /v1/chat/completions sends a chunk with the role at once, long before the first token.
- The model is named by its path, or not at all, which keeps the path out of the recording.
- No /metrics, and no KV cache pool: the cache grows with each request. One request runs at a time
  unless --continuous-batching is among the flags.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from harness.engines.base import CPU_DTYPE, Engine


class Transformers(Engine):
    name = "transformers"
    package = "transformers"
    environments: ClassVar[Mapping[str, str]] = {"cpu": "transformers", "gpu": "transformers"}
    metrics_path = None
    takes_ids = False

    def argv(
        self, home: Path, model: str, served_name: str, port: int, tier: str, max_model_tokens: int
    ) -> list[str]:
        argv = [str(home / "bin" / "transformers"), "serve", model]
        argv += ["--host", "127.0.0.1", "--port", str(port)]
        if tier == "cpu":
            return [*argv, "--device", "cpu", "--dtype", CPU_DTYPE]
        return [*argv, "--device", "cuda"]

    def request_body(
        self,
        endpoint: str,
        prompt_ids: Sequence[int] | None,
        prompt_text: str,
        output_tokens: int,
        seed: int,
        served_name: str,
    ) -> dict[str, Any]:
        body = super().request_body(
            endpoint, prompt_ids, prompt_text, output_tokens, seed, served_name
        )
        for refused in ("ignore_eos", "model", "stream_options"):
            del body[refused]
        fixed = {"eos_token_id": -1, "max_new_tokens": output_tokens, "do_sample": False}
        return body | {"generation_config": json.dumps(fixed)}
