"""Results. Sizes are bytes, rates bit/s, times seconds; unknown rates are NAN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Progress:
    bytes: int  # verified and written at the destination
    total_bytes: int  # listed so far; see total_known
    files: int  # complete
    total_files: int
    failed: int
    wire_bytes: int  # sent in this run: compressed, retransmitted blocks included
    saved_bytes: int  # that compression kept from being sent
    resumed_bytes: int  # already transferred before this run, and verified
    file_bytes: int  # of the complete files
    others: int  # complete directories and links
    streams: int
    max_streams: int
    activity: str  # "transferring", "verifying" or "syncing"
    total_known: bool  # the listing is complete
    rate_bps: float  # over the last seconds; NAN in a result
    eta_s: float  # NAN: unknown


@dataclass(frozen=True)
class FailedFile:
    path: bytes  # relative to the source
    code: str  # such as "PTCP_EIO"
    reason: str


@dataclass(frozen=True)
class TransferResult:
    progress: Progress  # at the end
    warnings: Tuple[str, ...]
    failed_files: Tuple[FailedFile, ...]
    seconds: float
    advised_streams: int  # 0: not chosen from observed throughput, and the next three are NAN
    predicted_bps: float
    predicted_impact_percent: float
    measured_bps: float


@dataclass(frozen=True)
class Entry:
    """A file, directory or link of another host."""

    path: bytes  # below the listed directory; the whole path of a listed file, or with several URLs or wildcards
    type: str  # "file", "directory", "symlink", "fifo", "socket", "char device", "block device" or "unknown"
    mode: int
    bytes: int
    disk_bytes: int
    mtime_ns: int  # since 1970-01-01, UTC
    target: Optional[bytes]  # of a symbolic link
    entries: int = 0  # of du(): files and directories, itself included


@dataclass(frozen=True)
class Choice:
    impact_percent: float  # budget
    streams: int
    throughput_bps: float


@dataclass(frozen=True)
class Probe:
    streams: int
    throughput_bps: float
    error_bps: float


@dataclass(frozen=True)
class Advice:
    streams: int
    throughput_bps: float  # predicted, as the impact
    throughput_range_bps: Tuple[float, float]  # holds 80 % of the truth
    impact_percent: float  # slowdown of each other flow, compared with one stream; NAN with limit_advice
    impact_range_percent: Tuple[float, float]
    confident: bool
    warnings: Tuple[str, ...]
    limited_by: str  # "impact", "gain", "max-streams" or "saturated"
    limit: str  # bottleneck of the probes: "unknown", "network", "send-buffer" ..
    limit_advice: Optional[str]
    others: str  # other flows on the path: "unknown", "none seen" or "some"
    model: str
    choices: Tuple[Choice, ...]  # for this budget, half of it, and no budget
    probes: Tuple[Probe, ...]
    from_history: bool
    age_s: float


@dataclass(frozen=True)
class Step:
    """Data of `source` over the link from `from_host` to `to_host`."""

    from_host: str
    to_host: str
    source: str
    start_s: float
    end_s: float
    bytes: int


@dataclass(frozen=True)
class Plan:
    method: str
    makespan_s: float
    bound_s: float  # lower bound of the makespan for this method
    solve_s: float
    data_bytes: float
    relayed_bytes: float
    steps: Tuple[Step, ...]
