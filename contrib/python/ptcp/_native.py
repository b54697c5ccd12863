"""The structs and functions of libptcp and libptcp-plan, as in <ptcp/ptcp.h> and <ptcp/plan.h>."""

from __future__ import annotations

import ctypes as c
import functools
import os

from ._command import BUNDLED

u64, f64, text = c.c_uint64, c.c_double, c.c_char_p
ABI = 0  # SOVERSION of the libraries
PLAN_METHODS = ("direct", "best-path", "coordinated", "pipelined")


class Err(c.Structure):
    _fields_ = [("code", c.c_int), ("sys", c.c_int), ("from_peer", c.c_bool), ("msg", c.c_char * 512)]


class Progress(c.Structure):
    _fields_ = [(n, u64) for n in ("bytes", "total_bytes", "files", "total_files", "failed", "wire_bytes",
                                   "saved_bytes", "resumed_bytes", "file_bytes", "others")]
    _fields_ += [("streams", c.c_uint16), ("max_streams", c.c_uint16), ("activity", c.c_uint8),
                 ("total_known", c.c_bool)]


class Path(c.Structure):
    _fields_ = [("candidate", text), ("bytes", u64), ("rate_bps", f64), ("streams", c.c_uint), ("rtt_s", f64),
                ("min_rtt_s", f64), ("segments", u64), ("retransmits", u64)]


class FileDigest(c.Structure):
    _fields_ = [("kind", c.c_int), ("hex", text)]


class Deadline(c.Structure):
    _fields_ = [("at_s", c.c_int64), ("possible", c.c_bool), ("streams", c.c_uint), ("floor_bps", f64),
                ("impact_percent", f64), ("end_s", f64), ("larger_impact_percent", f64), ("larger_end_s", f64)]


class Event(c.Structure):
    _fields_ = [("type", c.c_int), ("peer", text), ("peer_fingerprint", text), ("progress", Progress),
                ("rate_bps", f64), ("eta_s", f64), ("from", c.c_uint), ("to", c.c_uint), ("path", text),
                ("status", c.c_int), ("text", text), ("code", c.c_int), ("sys", c.c_int), ("left", c.c_void_p),
                ("paths", c.POINTER(Path)), ("n_paths", c.c_size_t), ("failed_path", c.POINTER(Path)),
                ("failed_hop", c.c_uint), ("attempt", c.c_uint), ("in_s", f64), ("size_bytes", u64),
                ("is_link", c.c_bool), ("digest", c.POINTER(FileDigest)),
                ("n_digests", c.c_uint), ("ahead", c.c_uint), ("congestion", text), ("advice", c.c_void_p),
                ("movers", c.c_void_p), ("n_movers", c.c_size_t), ("deadline", c.POINTER(Deadline))]


EventFn = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Event))
TrustFn = c.CFUNCTYPE(c.c_bool, c.c_void_p, text, text)


class Rule(c.Structure):
    _fields_ = [("include", c.c_bool), ("pattern", text), ("filter", text)]


class Option(c.Structure):
    """A row of the library's table of options."""
    _fields_ = [("member", text), ("type", c.c_int), ("at", c.c_size_t), ("initial", f64), ("min", f64), ("max", f64),
                ("name", text), ("value", text), ("help", text)]


class Result(c.Structure):
    _fields_ = [("size", c.c_size_t), ("progress", Progress), ("warnings", u64), ("seconds", f64),
                ("advised_streams", c.c_uint), ("predicted_bps", f64), ("predicted_impact_percent", f64),
                ("measured_bps", f64), ("from_history", c.c_bool), ("budget_percent", f64),
                ("fastest_streams", c.c_uint), ("fastest_bps", f64), ("fastest_impact_percent", f64), ("deleted", u64),
                ("vanished", u64), ("same_files", u64), ("same_bytes", u64), ("deadline", Deadline),
                ("spent_s", f64 * 11), ("copied_bytes", u64), ("probed_s", f64), ("compared_bytes", u64),
                ("compress_level", c.c_int)]


class Entry(c.Structure):
    _fields_ = [("path", text), ("type", c.c_int), ("mode", c.c_uint), ("bytes", u64), ("disk_bytes", u64),
                ("entries", u64), ("mtime_s", c.c_int64), ("mtime_ns", c.c_uint), ("target", text), ("code", c.c_int),
                ("sys", c.c_int), ("why", text), ("digest", c.POINTER(FileDigest)), ("n_digests", c.c_uint),
                ("url", c.c_size_t)]


EntryFn = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Entry))


class ManageOpts(c.Structure):
    _fields_ = [("size", c.c_size_t), ("recursive", c.c_bool), ("hidden", c.c_bool), ("itself", c.c_bool),
                ("parents", c.c_bool), ("replace", c.c_bool), ("digests", c.c_uint), ("start", c.c_int64),
                ("end", c.c_int64), ("literal", c.c_bool), ("entry", EntryFn), ("arg", c.c_void_p)]


class Range(c.Structure):
    _fields_ = [("start", c.c_int64), ("end", c.c_int64)]


class Piece(c.Structure):
    _fields_ = [("range", c.c_size_t), ("offset", u64), ("data", c.c_void_p), ("bytes", c.c_size_t)]


PieceFn = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Piece))


class ReadOpts(c.Structure):
    _fields_ = [("size", c.c_size_t), ("ranges", c.POINTER(Range)), ("n_ranges", c.c_size_t), ("opened", EntryFn),
                ("piece", PieceFn), ("arg", c.c_void_p)]


class WriteOpts(c.Structure):
    _fields_ = [("size", c.c_size_t), ("data", c.c_void_p), ("bytes", c.c_size_t), ("mode", c.c_int),
                ("set_mtime", c.c_bool), ("mtime_s", c.c_int64), ("mtime_ns", c.c_uint), ("written", EntryFn), ("arg", c.c_void_p)]


class Probe(c.Structure):
    _fields_ = [("streams", c.c_uint), ("throughput_bps", f64), ("error_bps", f64)]


class AdviceOpts(c.Structure):
    _fields_ = [("size", c.c_size_t), ("model", c.c_int), ("impact_percent", f64), ("min_gain_percent", f64),
                ("max_streams", c.c_uint), ("congestion", text), ("levels", c.POINTER(c.c_uint)),
                ("n_levels", c.c_size_t), ("receive", c.c_bool), ("probe_s", f64), ("history", c.c_bool),
                ("time_s", f64)]


class AdvicePoint(c.Structure):
    _fields_ = [(n, f64) for n in ("throughput_bps", "throughput_low_bps", "throughput_high_bps", "impact_percent",
                                   "impact_low_percent", "impact_high_percent", "impact_total_percent")]


class Choice(c.Structure):
    _fields_ = [("impact_percent", f64), ("streams", c.c_uint), ("throughput_bps", f64)]


class Advice(c.Structure):
    _fields_ = [("size", c.c_size_t), ("streams", c.c_uint), ("throughput_bps", f64), ("impact_percent", f64),
                ("impact_total_percent", f64), ("throughput_low_bps", f64), ("throughput_high_bps", f64),
                ("impact_low_percent", f64), ("impact_high_percent", f64), ("others", c.c_int),
                ("choices", Choice * 3), ("curve", AdvicePoint * 128), ("n_curve", c.c_uint),
                ("budget_percent", f64), ("min_gain_percent", f64), ("max_streams", c.c_uint),
                ("limited_by", c.c_int), ("confident", c.c_bool), ("warnings", c.c_uint), ("next_probe", c.c_uint),
                ("congestion", c.c_char * 16), ("congestion_advice", text), ("yields", c.c_bool), ("limit", c.c_int),
                ("limit_advice", text), ("path_limit", text), ("path_advice", c.c_char * 240),
                ("path_rate_bps", f64), ("measured", c.c_bool), ("model", c.c_int), ("raw", f64 * 3), ("used", f64 * 3),
                ("probes", Probe * 64), ("n_probes", c.c_size_t), ("from_history", c.c_bool), ("age_s", f64),
                ("check_bps", f64)]


class OverlayHost(c.Structure):
    _fields_ = [("name", text), ("address", text), ("path", text), ("data_bytes", u64), ("storage_bytes", u64),
                ("ingress_bps", u64), ("egress_bps", u64), ("relay", c.c_bool)]


class PlanOpts(c.Structure):
    _fields_ = [("size", c.c_size_t), ("method", c.c_int), ("slot_s", f64), ("deadline_s", f64), ("effort_s", f64),
                ("go_on", c.c_void_p), ("arg", c.c_void_p)]


class PlanInfo(c.Structure):
    _fields_ = [("method", c.c_int)]
    _fields_ += [(n, f64) for n in ("makespan_s", "bound_s", "slot_s", "solve_s", "data_bytes", "relayed_bytes",
                                    "relayed_bound_bytes")]


class PlanStep(c.Structure):
    _fields_ = [("from", c.c_int), ("to", c.c_int), ("source", c.c_int), ("start_s", f64), ("end_s", f64),
                ("bytes", u64)]


# name: result type, argument types
_P, _ERR, _STRINGS = c.c_void_p, c.POINTER(Err), c.POINTER(text)
_PTCP = {
    "ptcp_version": (text, []),
    "ptcp_err_name": (text, [c.c_int]),
    "ptcp_err_text": (text, [c.c_int]),
    "ptcp_key_show": (c.c_int, [text, text, _ERR]),
    "ptcp_option_of_files": (c.c_bool, [c.POINTER(Option), c.c_bool]),
    "ptcp_transfer_option": (c.POINTER(Option), [c.c_size_t]),
    "ptcp_model_parse": (c.c_bool, [text, c.POINTER(c.c_int)]),
    "ptcp_transfer_opts_init": (None, [_P]),
    "ptcp_result_init": (None, [_P]),
    "ptcp_advice_opts_init": (None, [_P]),
    "ptcp_advice_init": (None, [_P]),
    "ptcp_send_new": (c.c_int, [c.POINTER(_P), _P, _STRINGS, c.c_size_t, text, _ERR]),
    "ptcp_recv_new": (c.c_int, [c.POINTER(_P), _P, _STRINGS, c.c_size_t, text, _ERR]),
    "ptcp_advise_new": (c.c_int, [c.POINTER(_P), _P, text, c.POINTER(AdviceOpts), _ERR]),
    "ptcp_manage_opts_init": (None, [_P]),
    "ptcp_manage_new": (c.c_int, [c.POINTER(_P), _P, c.c_int, _STRINGS, c.c_size_t,
                                  c.POINTER(ManageOpts), _ERR]),
    "ptcp_sum": (c.c_int, [text, c.POINTER(ManageOpts), _P, _ERR]),
    "ptcp_digests_parse": (c.c_int, [c.POINTER(c.c_uint), text, _ERR]),
    "ptcp_digest_name": (text, [c.c_int]),
    "ptcp_read_opts_init": (None, [_P]),
    "ptcp_read_new": (c.c_int, [c.POINTER(_P), _P, text, c.POINTER(ReadOpts), _ERR]),
    "ptcp_write_opts_init": (None, [_P]),
    "ptcp_write_new": (c.c_int, [c.POINTER(_P), _P, text, c.POINTER(WriteOpts), _ERR]),
    "ptcp_host_open": (c.c_int, [c.POINTER(_P), _ERR]),
    "ptcp_host_close": (None, [_P]),
    "ptcp_task_keep": (c.c_int, [_P, _P, _ERR]),
    "ptcp_task_start": (c.c_int, [_P, _ERR]),
    "ptcp_task_fd": (c.c_int, [_P]),
    "ptcp_task_timeout_ms": (c.c_int, [_P]),
    "ptcp_task_step": (c.c_int, [_P, _ERR]),
    "ptcp_task_cancel": (None, [_P]),
    "ptcp_task_free": (None, [_P]),
    "ptcp_transfer_set_impact": (c.c_int, [_P, c.c_double, _ERR]),
    "ptcp_transfer_set_rate": (c.c_int, [_P, text, _ERR]),
    "ptcp_rate_check": (c.c_int, [text, _ERR]),
    "ptcp_transfer_result": (None, [_P, c.POINTER(Result)]),
    "ptcp_advise_result": (c.c_int, [_P, c.POINTER(Advice), _ERR]),
    "ptcp_advice_warning": (text, [c.POINTER(Advice), c.c_size_t]),
    "ptcp_limited_by_name": (text, [c.c_int]),
    "ptcp_limit_name": (text, [c.c_int]),
    "ptcp_others_name": (text, [c.c_int]),
    "ptcp_model_name": (text, [c.c_int]),
}
_PLAN = {
    "ptcp_overlay_load": (c.c_int, [c.POINTER(_P), text, _ERR]),
    "ptcp_overlay_parse": (c.c_int, [c.POINTER(_P), text, c.c_size_t, text, _ERR]),
    "ptcp_overlay_free": (None, [_P]),
    "ptcp_overlay_hosts": (c.c_size_t, [_P]),
    "ptcp_overlay_host": (None, [_P, c.c_size_t, c.POINTER(OverlayHost)]),
    "ptcp_plan_opts_init": (None, [_P]),
    "ptcp_plan_make": (c.c_int, [c.POINTER(_P), _P, c.POINTER(PlanOpts), _ERR]),
    "ptcp_plan_free": (None, [_P]),
    "ptcp_plan_info": (None, [_P, c.POINTER(PlanInfo)]),
    "ptcp_plan_steps": (c.c_size_t, [_P]),
    "ptcp_plan_step": (None, [_P, c.c_size_t, c.POINTER(PlanStep)]),
}


def _load(name, functions):
    file = f"{name}.so.{ABI}"
    folder = os.environ.get("PTCP_LIBDIR") or (BUNDLED if os.path.isdir(BUNDLED) else None)
    try:
        lib = c.CDLL(os.path.join(folder, file) if folder else file)
    except OSError as e:
        raise ImportError(f"{file}: {e} (install ptcp, or set PTCP_LIBDIR to the folder of the library)") from e
    for function, (result, arguments) in functions.items():
        f = getattr(lib, function)
        f.restype, f.argtypes = result, arguments
    return lib


@functools.lru_cache(maxsize=None)
def ptcp():
    return _load("libptcp", _PTCP)


@functools.lru_cache(maxsize=None)
def plan():
    """Loaded by the first plan only: libptcp-plan loads GLPK, which is under the GPL."""
    ptcp()  # which libptcp-plan needs, perhaps from the same folder
    return _load("libptcp-plan", _PLAN)


def initialized(lib, struct, init):
    """A struct with the defaults of the library, whose struct may have more fields at its end."""
    room = c.create_string_buffer(c.sizeof(struct) + 4096)
    getattr(lib, init)(room)
    made = struct.from_buffer(room)
    if made.size < c.sizeof(struct):
        raise ImportError(f"{init}: libptcp is older than this package (install the same version of both)")
    made.size = c.sizeof(struct)
    return made
