"""What is kept of an engine's own words, and of its answer."""

from harness.attempts import answer_text, evidence

LOG = [
    "INFO loading",
    "WARNING attention backend X falls back to Y",
    *(f"ERROR number {n}" for n in range(1, 8)),
    "INFO loading",
    "ValueError: not for this CPU",
]


def test_the_last_errors_and_the_lines_asked_for_are_kept_in_order() -> None:
    errors = ["ERROR number 4", "ERROR number 5", "ERROR number 6", "ERROR number 7", LOG[-1]]
    assert evidence(LOG, ()) == errors
    assert evidence(LOG, ("falls back",)) == [LOG[1], *errors]
    assert evidence(LOG[:2], ("loading", "INFO")) == ["INFO loading"]


def test_the_text_of_an_answer_in_each_of_its_forms() -> None:
    chat = '{"choices": [{"message": {"content": "Paris"}}]}'
    completion = '{"choices": [{"text": " Paris"}]}'
    streamed = (
        'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n'
        'data: {"choices": [{"delta": {"content": "Pa"}}]}\n\n'
        'data: {"choices": [{"delta": {"content": "ris"}}]}\n\ndata: [DONE]\n'
    )
    refusal = '{"error": {"message": "no such field"}}'
    assert [answer_text(each) for each in (chat, completion, streamed)] == [
        "Paris",
        " Paris",
        "Paris",
    ]
    assert [answer_text(each) for each in (refusal, "no JSON", "[1]", "")] == [
        refusal,
        "no JSON",
        "[1]",
        "",
    ]
