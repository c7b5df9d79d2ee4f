"""What is hidden, and what must not be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.engines.redact import REPO, is_secret_name, redact, redact_env

SECRET = [
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "OPENAI_API_KEY",
    "--api-key",
    "apiKey",
    "AWS_SECRET_ACCESS_KEY",
    "PGPASSWORD_FILE_PASSWORD",
    "Authorization",
]
PLAIN = [
    "MAX_TOKENS",
    "max_token",
    "--max-total-tokens",
    "--max-num-batched-tokens",
    "--long-prefill-token-threshold",
    "TOKENIZERS_PARALLELISM",
    "--tokenizer-mode",
    "eos_token_id",
    "KEYBOARD",
    "new-token",
    "PWD",
]


def test_the_shells_own_secrets_are_hidden_wherever_they_show() -> None:
    line = (
        "import os; from harness.engines.redact import redact; print(redact('Using hush-hush-1'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", line],
        env=os.environ | {"MY_API_KEY": "hush-hush-1"},
        capture_output=True,
        text=True,
        cwd=REPO,
        check=True,
    )
    assert done.stdout.strip() == "Using [redacted]"


@pytest.mark.parametrize("name", SECRET)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", PLAIN)
def test_names_that_are_none(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("api_key=abc123", "api_key=[redacted]"),
        ("DB_PWD=abc123 and --pass abc123", "DB_PWD=[redacted] and --pass [redacted]"),
        ("cloned with ghp_abcdefghijkl", "cloned with [redacted]"),
        ("3 tests passed: 4 bypassed=1, passage = 2", None),
        ("{'api_key': ['abc123'], 'port': 8000}", "{'api_key': ['[redacted]'], 'port': 8000}"),
        ('{"token": "abc.def", "n": 1}', '{"token": "[redacted]", "n": 1}'),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted]"),
        ("sent Bearer abcdef123456", "sent Bearer [redacted]"),
        ("run --api-key abc123 --port 1", "run --api-key [redacted] --port 1"),
        ("with hf_abcdefghij and sk-abcdefghij", "with [redacted] and [redacted]"),
        ("get https://me:pass@host/x", "get https://[redacted]@host/x"),
        ("Decode batch, #token: 1345, #new-token: 6, token usage: 0.08", None),
        ("--max-total-tokens 16384 --max-num-batched-tokens 256", None),
        ("api_key=None, ssl_keyfile=None, the key to speed is 4 ways", None),
        ("Avg prompt throughput: 109.1 tokens/s, Waiting: 0 reqs", None),
        (f"{REPO}/.engines/x and {REPO}", "$REPO/.engines/x and $REPO"),
        (f"{REPO}-other/x", None),
        (f"{Path.home()}/.cache/vllm", "~/.cache/vllm"),
    ],
)
def test_lines(line: str, wanted: str | None) -> None:
    assert redact(line) == (line if wanted is None else wanted)


def test_a_command_line_keeps_its_shape() -> None:
    argv = [f"{REPO}/bin/vllm", "serve", "--api-key", "abc", "--port", "8000", "--hf-token=xyz1"]
    assert redact(argv) == [
        "$REPO/bin/vllm",
        "serve",
        "--api-key",
        "[redacted]",
        "--port",
        "8000",
        "--hf-token=[redacted]",
    ]


def test_an_environment() -> None:
    env = {"HF_TOKEN": "x", "OMP_NUM_THREADS": "1", "P": f"{REPO}/a", "URL": "http://u:p@h/"}
    assert redact_env(env) == {
        "HF_TOKEN": "[redacted]",
        "OMP_NUM_THREADS": "1",
        "P": "$REPO/a",
        "URL": "http://[redacted]@h/",
    }
