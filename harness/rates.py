"""The rate at which a cell's requests are to arrive: declared, a share of a measured capacity, or a
step of a search for the highest rate at which an objective holds.

A measured rate is read from the recording, so one that was interrupted goes on with the same rates.

The search is a bisection. It begins between two shares of the capacity; each step runs at the
middle, and is the new lower end if the objective held, else the new upper one. Requests that failed
met no bound. A drift counts as not held, although the requests of so short a phase may still have
been in time: a queue grows, or those who came first were held up by those after them. Where
something else made a step INVALID, such as a late client, it says nothing of the server: it moves
no end, and the next step tries its rate again.
"""

from harness.errors import HarnessError
from harness.experiment import Tier
from harness.recording.store import Recording
from harness.schedule import Cell
from harness.sweep import Sweep

THE_SERVERS_OWN = ("steady_state", "errors")  # reasons that are the answer of an overloaded server
HELD = """
SELECT c.rate_per_s, c.reasons,
    count(*) FILTER (r.error IS NULL AND ($ttft_ms = 0
        OR (r.first_token_ns - r.scheduled_ns) / 1e6 <= $ttft_ms)) >= $quantile * count(*)
    AND count(*) FILTER (r.error IS NULL AND ($tpot_ms = 0
        OR (r.last_token_ns - r.first_token_ns) / 1e6
        / nullif(r.output_tokens - coalesce(r.chunk_tokens[1], 1), 0) <= $tpot_ms))
        >= $quantile * count(*)
FROM cell c JOIN request r ON r.cell_id = c.cell_id AND r.phase = 'measured'
WHERE c.variant = $variant AND c.sweep = $sweep AND c.prompt_tokens = $prompt_tokens
    AND c.shared_tokens IS NOT DISTINCT FROM $shared_tokens
    AND c.kind IS NOT DISTINCT FROM $kind AND c.extra IS NOT DISTINCT FROM $extra
    AND c.repeat = $repeat AND c.search_step < $step
GROUP BY c.search_step, c.rate_per_s, c.reasons ORDER BY c.search_step
"""


def rate_per_s(recording: Recording, tier: Tier, cell: Cell) -> float | None:
    """Requests a second; None where the load has no rate. Raises HarnessError where the capacity
    is not known."""
    level = cell.level
    if level.search_step:
        low, high = bracket(recording, tier, cell)
        return (low + high) / 2
    if level.capacity_frac:
        return level.capacity_frac * _capacity(recording, tier, cell)
    return level.rate_per_s


def bracket(recording: Recording, tier: Tier, cell: Cell) -> tuple[float, float]:
    """What the steps before this one left: the highest rate that held the objective and the lowest
    that did not, requests a second."""
    sweep = cell.level.sweep
    capacity = _capacity(recording, tier, cell)
    low, high = (share * capacity for share in sweep.search_frac)
    steps = recording.con.execute(
        HELD,
        {
            "variant": cell.variant,
            "sweep": sweep.name,
            "prompt_tokens": cell.level.prompt_tokens,
            "shared_tokens": cell.level.shared_tokens,
            "kind": cell.level.kind,
            "extra": cell.level.extra,
            "repeat": cell.repeat,
            "step": cell.level.search_step,
            "quantile": sweep.slo_quantile,
            "ttft_ms": sweep.slo_ttft_ms,
            "tpot_ms": sweep.slo_tpot_ms,
        },
    ).fetchall()
    for rate, reasons, held in steps:
        names = {reason.partition(":")[0] for reason in reasons}
        if not names and held:
            low = rate
        elif names <= set(THE_SERVERS_OWN):
            high = rate
    return low, high


def _capacity(recording: Recording, tier: Tier, cell: Cell) -> float:
    """The highest rate that the variant reached in the closed loops of the first repeat, the same
    in every repeat."""
    sweep = cell.level.sweep
    variant = capacity_variant(tier, sweep, cell.variant)
    ((capacity,),) = recording.con.execute(
        "SELECT max(requests_per_s) FROM outcome WHERE variant = ? AND sweep = ?"
        " AND prompt_tokens = ? AND repeat = 1 AND verdict = 'VALID'",
        [variant, sweep.capacity_of, cell.level.prompt_tokens],
    ).fetchall()
    if not capacity:
        raise HarnessError(
            f"{recording.path}: {variant} has no VALID cell of sweep {sweep.capacity_of!r} in "
            f"repeat 1, so the capacity that sweep {sweep.name!r} takes a share of is unknown. "
            "Remove the file and record it anew"
        )
    return float(capacity)


def capacity_variant(tier: Tier, sweep: Sweep, variant: str) -> str:
    """Whose capacity counts: the variant's own or, where it is not in that sweep, that of the plain
    engine, so that a cap or a small pool gets the load of the engine without it."""
    base = next(each for each in tier.sweeps if each.name == sweep.capacity_of)
    if not base.engines or variant in base.engines:
        return variant
    return tier.variant(variant).engine
