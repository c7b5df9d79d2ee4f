"""What machine this is, as a recording keeps it. No host name, no user, no path."""

import platform
import re
import sys
from pathlib import Path

import psutil

from harness.telemetry import gpu

# Instruction sets that decide which CPU kernels an engine can run.
FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")


def describe() -> dict[str, object]:
    """JSON-ready: processor, cores, memory, kernel, governor, GPUs and Python."""
    cpuinfo = _read("/proc/cpuinfo")
    flags = set(_field(cpuinfo, "flags").split())
    return {
        "cpu": _field(cpuinfo, "model name") or platform.processor(),
        "cpu_family_model": f"{_field(cpuinfo, 'cpu family')}/{_field(cpuinfo, 'model')}",
        "cores": psutil.cpu_count(),
        "cpu_flags": [flag for flag in FLAGS if flag in flags],
        "virtual": "hypervisor" in flags,
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None,
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "os": platform.freedesktop_os_release().get("PRETTY_NAME", sys.platform),
        "gpus": gpu.names(),
        "python": platform.python_version(),
    }


def tier() -> str:
    """The tier of this machine: gpu where NVML sees one, else cpu."""
    return "gpu" if gpu.count() else "cpu"


def boot_id() -> str:
    return _read("/proc/sys/kernel/random/boot_id").strip() or "unknown"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def _field(cpuinfo: str, name: str) -> str:
    found = re.search(rf"^{name}\s*:\s*(.*)$", cpuinfo, re.MULTILINE)
    return found.group(1).strip() if found else ""
