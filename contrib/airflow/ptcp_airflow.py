"""An operator of Airflow 3: one server sends to another, and no worker waits meanwhile. See README.md in this folder."""

import asyncio
import json
import subprocess

from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger, TriggerEvent


async def state_of(name, options):
    """The transfer as `ptcp status --json` reports it; its state is "unknown" if the server does not answer, or knows it no more."""
    process = await asyncio.create_subprocess_exec("ptcp", "status", "--json", *options, name, stdout=subprocess.PIPE,
                                                   stderr=subprocess.PIPE)
    out, err = await process.communicate()
    for line in out.splitlines():
        event = json.loads(line)
        if event.get("event") == "status":
            return event
    return {"state": "unknown", "exit": process.returncode, "error": err.decode(errors="replace").strip()}


class PtcpTrigger(BaseTrigger):
    """Ends when the transfer has ended, or its server has not answered for an hour."""

    def __init__(self, name, options, poll_s, patience_s=3600):
        super().__init__()
        self.name, self.options, self.poll_s, self.patience_s = name, options, poll_s, patience_s

    def serialize(self):
        return "ptcp_airflow.PtcpTrigger", {"name": self.name, "options": self.options, "poll_s": self.poll_s, "patience_s": self.patience_s}

    async def run(self):
        silent_s = 0
        while True:
            event = await state_of(self.name, self.options)
            silent_s = 0 if event["state"] == "running" else silent_s + self.poll_s
            # 3: no connection. All other answers are final.
            if event["state"] in ("done", "failed") or event["state"] == "unknown" and (event["exit"] != 3 or silent_s > self.patience_s):
                yield TriggerEvent(event)
                return
            await asyncio.sleep(self.poll_s)


class PtcpOperator(BaseOperator):
    """Transfers `sources` of one server to `destination` on another. `options` are those of ptcp send, `status_options` those of
    ptcp status (--fingerprint, --timeout). The result is the final status; a failed transfer fails the task, and the next try
    resumes it."""

    template_fields = ("sources", "destination", "options")

    def __init__(self, *, sources, destination, options=(), status_options=(), poll_s=10, **kwargs):
        super().__init__(**kwargs)
        self.sources, self.destination = [sources] if isinstance(sources, str) else list(sources), destination
        self.options, self.status_options, self.poll_s = list(options), list(status_options), poll_s

    def execute(self, context):
        run = subprocess.run(["ptcp", "send", "--detach", *self.options, "--", *self.sources, self.destination], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        if run.returncode != 0:
            raise RuntimeError(run.stderr.strip() or f"ptcp send has ended with status {run.returncode}")
        self.defer(trigger=PtcpTrigger(run.stdout.strip(), self.status_options, self.poll_s), method_name="execute_complete")

    def execute_complete(self, context, event):
        if event["state"] != "done" or event["exit"]:
            raise RuntimeError(event["error"] or f"the transfer has ended with status {event['exit']}")
        return event
