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
- No /metrics, no log-probabilities, and no KV cache pool: the cache grows with each request.
- It is generate() behind HTTP: one thread calls model.generate() for one request after another.
- --continuous-batching is another path: pages of 256 tokens, of which full ones are shared by equal
  prompts; all requests get the sampling settings of the first. Without --cb-num-blocks it takes
  what memory is free, and its first request on a CPU waited 21 s.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from harness.engines.base import Engine, Start
from harness.errors import HarnessError


class Transformers(Engine):
    name = "transformers"
    package = "transformers"
    environments: ClassVar[Mapping[str, str]] = {"cpu": "transformers", "gpu": "transformers"}
    metrics_path = None
    takes_ids = False
    gives_logprobs = False
    takes_keys = False

    def argv(self, start: Start) -> list[str]:
        argv = [str(start.home / "bin" / "transformers"), "serve", start.model]
        argv += ["--host", "127.0.0.1", "--port", str(start.port)]
        argv += ["--device", "cpu" if start.tier == "cpu" else "cuda"]
        return [*argv, "--dtype", start.dtype] if start.dtype else argv

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
        body = super().request_body(
            endpoint,
            prompt_ids,
            prompt_text,
            output_tokens,
            seed,
            served_name,
            logprobs,
            salt,
            adapter,
        )
        for refused in ("ignore_eos", "model", "stream_options"):
            del body[refused]
        fixed = {"eos_token_id": -1, "max_new_tokens": output_tokens, "do_sample": False}
        return body | {"generation_config": json.dumps(fixed)}

    def with_own_end(self, body: dict[str, Any]) -> dict[str, Any]:
        fixed = json.loads(body["generation_config"])
        del fixed["eos_token_id"]
        return body | {"generation_config": json.dumps(fixed)}

    def with_temperature(self, body: dict[str, Any], temperature: float) -> dict[str, Any]:
        raise HarnessError("transformers: its answers are greedy here; limit the sweep by engines")
