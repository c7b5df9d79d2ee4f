"""Checks on the machine: did its clocks and cores hold still, and was it watched to the end?"""

from harness.recording.judged import Judged

CLOCK_FRAC = 0.1  # of the SM clock, from its lowest to its highest while busy
SLOWED_BITS = 0x08 | 0x20 | 0x40 | 0x80  # NVML: hardware or thermal slow-down, power brake
STEAL_FRAC = 0.05  # of a core, that the hypervisor gave to others
MIN_LOOKS = 5  # at a core, below which their mean says nothing


def gpu_clock(cell: Judged) -> str | None:
    """While a kernel ran: SM clock from lowest to highest, and clocks held down by heat."""
    found = cell.rows(
        f"""SELECT gpu, min(sm_clock_mhz), max(sm_clock_mhz), median(sm_clock_mhz),
            count(*) FILTER (throttle_reasons & {SLOWED_BITS} > 0), count(*)
        FROM gpu_sample JOIN cell USING (cell_id)
        WHERE cell_id = $cell AND busy_frac > 0 AND t_ns BETWEEN measured_ns AND ended_ns
        GROUP BY gpu ORDER BY gpu"""
    )
    for gpu, low, high, middle, slowed, looks in found:
        if slowed:
            return f"gpu_clock: GPU {gpu} was slowed by heat or power in {slowed} of {looks} looks"
        if middle and high - low > CLOCK_FRAC * middle:
            return f"gpu_clock: GPU {gpu} ran at {low} to {high} MHz"
    return None


def cpu_steal(cell: Judged) -> str | None:
    """The mean of each core over the measured phase; the first sample reaches back before it."""
    found = cell.rows(
        """SELECT core, avg(steal), count(*) FROM (
            SELECT generate_subscripts(core_steal_frac, 1) - 1 AS core,
                unnest(core_steal_frac) AS steal
            FROM host_sample JOIN cell USING (cell_id)
            WHERE cell_id = $cell AND t_ns BETWEEN measured_ns + 500000000 AND ended_ns)
        GROUP BY core ORDER BY 2 DESC, 1 LIMIT 1"""
    )
    for core, share, looks in found:
        if looks >= MIN_LOOKS and share > STEAL_FRAC:
            return f"cpu_steal: the hypervisor took {share:.0%} of core {core}"
    return None


def telemetry(cell: Judged) -> str | None:
    faults = cell.client.get("telemetry_faults")
    return f"telemetry: {faults[0]}" if faults else None
