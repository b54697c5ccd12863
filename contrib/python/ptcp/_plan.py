"""Plans, by libptcp-plan."""

from __future__ import annotations

import ctypes as c
import os

from . import _native as n
from ._task import check, encoded
from .types import Plan, Step


def _overlay(lib, overlay, text, err):
    o = c.c_void_p()
    if text:
        data = overlay.encode() if isinstance(overlay, str) else bytes(overlay)
        r = lib.ptcp_overlay_parse(c.byref(o), data, len(data), b"overlay", c.byref(err))
    else:
        r = lib.ptcp_overlay_load(c.byref(o), encoded(overlay), c.byref(err))
    check(n.ptcp(), r, err)
    return o


def _steps(lib, overlay, plan):
    host, step, names, steps = n.OverlayHost(), n.PlanStep(), [], []
    for i in range(lib.ptcp_overlay_hosts(overlay)):
        lib.ptcp_overlay_host(overlay, i, c.byref(host))
        names.append(os.fsdecode(host.name))
    for i in range(lib.ptcp_plan_steps(plan)):
        lib.ptcp_plan_step(plan, i, c.byref(step))
        steps.append(Step(names[getattr(step, "from")], names[step.to], names[step.source], step.start_s, step.end_s,
                          step.bytes))
    return tuple(steps)


def make(overlay, method, slot_s, deadline_s, effort_s, text):
    if method not in n.PLAN_METHODS:
        raise ValueError(f"method {method!r}: unknown (use one of {', '.join(n.PLAN_METHODS)})")
    lib, err, plan, info = n.plan(), n.Err(), c.c_void_p(), n.PlanInfo()
    opts = n.initialized(lib, n.PlanOpts, "ptcp_plan_opts_init")
    opts.method = n.PLAN_METHODS.index(method)
    opts.slot_s, opts.deadline_s, opts.effort_s = slot_s, deadline_s, effort_s
    o = _overlay(lib, overlay, text, err)
    try:
        check(n.ptcp(), lib.ptcp_plan_make(c.byref(plan), o, c.byref(opts), c.byref(err)), err)
        lib.ptcp_plan_info(plan, c.byref(info))
        return Plan(method, info.makespan_s, info.bound_s, info.solve_s, info.data_bytes, info.relayed_bytes,
                    _steps(lib, o, plan))
    finally:
        lib.ptcp_plan_free(plan)
        lib.ptcp_overlay_free(o)
