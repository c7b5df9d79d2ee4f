"""Checks on the work: was it done, was it the work asked for, and was it new to the engine?"""

from harness.recording.judged import Judged

SHARED_TOKENS = 2  # first words that two prompts can share by chance: no block, no saving
CACHE_COUNTERS = (  # prompt tokens that the engine took from its prefix cache
    "vllm:prefix_cache_hits_total",
    "sglang:cached_tokens_total",
    "emulator:prefix_cache_hits_total",
)


def errors(cell: Judged) -> str | None:
    """No measured request may fail. An answer without a token, a usage or a finish reason did."""
    sent, failed, first = cell.ask(
        "SELECT count(*), count(error), arg_min(error, request_id) FILTER (error IS NOT NULL)"
        " FROM measured"
    )
    return f"errors: {failed} of {sent} failed, first: {first}" if failed else None


def prompt_length(cell: Judged) -> str | None:
    said = _wrong_length(cell, "prompt")
    return f"prompt_length: {said}" if said else None


def output_length(cell: Judged) -> str | None:
    said = _wrong_length(cell, "output")
    return f"output_length: {said}" if said else None


def _wrong_length(cell: Judged, what: str) -> str | None:
    """Each request must have the tokens that were asked of it, by the server's own count; an answer
    that ends by itself has some, and no more than that."""
    counted, asked = f"{what}_tokens", f"asked_{what}_tokens"
    differs = f"{counted} IS DISTINCT FROM {asked}"
    if what == "output" and cell.row["ends_itself"]:
        differs = f"coalesce({counted} NOT BETWEEN 1 AND {asked}, true)"
    sent, wrong, had, wanted = cell.ask(
        f"SELECT count(*), count(*) FILTER ({differs}),"
        f" arg_min(coalesce({counted}, 0), request_id) FILTER ({differs}),"
        f" arg_min({asked}, request_id) FILTER ({differs}) FROM measured WHERE error IS NULL"
    )
    return f"{wrong} of {sent} had {had} {what} tokens, not {wanted}" if wrong else None


def warm_cache(cell: Judged) -> str | None:
    """By each request's usage, and by the engine's own counter: not every server says the first."""
    if not cell.row["cold"]:
        return None
    allowed = cell.row["added_tokens"] + SHARED_TOKENS
    sent, hits, most = cell.ask(
        f"SELECT count(*), count(*) FILTER (cached_tokens > {allowed}), max(cached_tokens)"
        " FROM measured WHERE error IS NULL"
    )
    if hits:
        return f"warm_cache: {hits} of {sent} prompts hit the cache, up to {most} tokens"
    requests, gained = cell.ask(
        f""", gain AS (
            SELECT max(value) - coalesce(max(value) FILTER (t_ns = f.first_ns), 0) AS tokens
            FROM engine_metric, (SELECT min(t_ns) AS first_ns FROM scrape WHERE cell_id = $cell) f
            WHERE cell_id = $cell AND name IN {CACHE_COUNTERS} GROUP BY name, labels)
        SELECT (SELECT count(*) FROM request WHERE cell_id = $cell),
            (SELECT coalesce(sum(tokens), 0) FROM gain)"""
    )
    if gained <= allowed * requests:
        return None
    return f"warm_cache: the engine took {gained:.0f} prompt tokens from its cache, by its counter"


def minimums(cell: Judged) -> str | None:
    done = cell.ask("SELECT count(*) FROM measured")[0]
    # All of an open loop's plan is to be sent; of a closed loop's, what it asks for at least.
    asked = cell.client.get("planned", 0) if cell.is_open else cell.row["min_requests"]
    lasted_s = (cell.row["ended_ns"] - cell.row["measured_ns"]) / 1e9
    if done >= asked and lasted_s >= cell.row["min_duration_s"]:
        return None
    return (
        f"minimums: {done} of {asked} requests in"
        f" {lasted_s:.1f} of {cell.row['min_duration_s']:.1f} s"
    )


def engine_restarted(cell: Judged) -> str | None:
    """A counter of the engine never falls while its process lives."""
    fallen = cell.rows(
        """SELECT name, before, value FROM (
            SELECT *, lag(value) OVER (PARTITION BY name, labels ORDER BY t_ns) AS before
            FROM engine_metric m WHERE run_id = (SELECT run_id FROM cell WHERE cell_id = $cell)
                AND (name LIKE '%\\_total' ESCAPE '\\' OR name LIKE '%\\_count' ESCAPE '\\'))
        WHERE cell_id = $cell AND value < before ORDER BY t_ns, name LIMIT 1"""
    )
    return next((f"engine_restarted: {n} fell from {a:g} to {b:g}" for n, a, b in fallen), None)


def run_fault(cell: Judged) -> str | None:
    """What stands against every cell of the engine's run, such as a wrong answer."""
    fault: str | None = cell.row["fault"]
    return fault
