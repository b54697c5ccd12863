"""Tests of the operator with the packages of Airflow; tests/suites/adapters starts two servers and sets PTCP_A and PTCP_B, their
URLs, PTCP_A_ROOT and PTCP_B_ROOT, PTCP_A_FINGERPRINT and PTCP_TRUST, the options for both."""

import asyncio
import json
import os
import shlex

import pytest
from airflow.sdk.exceptions import TaskDeferred
from airflow.serialization.serde import serialize
from airflow.sdk import DAG
from ptcp_airflow import PtcpOperator, PtcpTrigger

A, B, A_ROOT, B_ROOT = (os.environ["PTCP_" + n] for n in ("A", "B", "A_ROOT", "B_ROOT"))
TRUST = shlex.split(os.environ["PTCP_TRUST"])


def run(**arguments):
    """As a worker, the triggerer and a worker again do."""
    operator = PtcpOperator(task_id="copy", options=TRUST, status_options=TRUST, poll_s=0.05, **arguments)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute({})
    path, kwargs = deferred.value.trigger.serialize()
    module, _, name = path.rpartition(".")
    assert (module, name) == ("ptcp_airflow", "PtcpTrigger")
    trigger = PtcpTrigger(**json.loads(json.dumps(kwargs)))  # travels through the database

    async def first():
        async for event in trigger.run():
            return event.payload

    event = json.loads(json.dumps(asyncio.run(first())))
    return getattr(operator, deferred.value.method_name)({}, event)


def test_one_server_sends_to_another():
    with open(os.path.join(A_ROOT, "file"), "w") as f:
        f.write("content")
    result = run(sources=A + "/file", destination=B + "/in/")
    with open(os.path.join(B_ROOT, "in", "file")) as f:
        assert f.read() == "content"
    assert (result["state"], result["files"], result["bytes"]) == ("done", 1, 7)


def test_a_failed_transfer_fails_the_task():
    with pytest.raises(RuntimeError, match="No such file|failed"):
        run(sources=A + "/none", destination=B + "/in/")


def test_what_ptcp_refuses():
    for arguments in {"sources": "/local", "destination": "ptcp://127.0.0.1:1/x"}, {"sources": ["--no-such-option"], "destination": B}:
        operator = PtcpOperator(task_id="copy", options=TRUST, **arguments)
        with pytest.raises(RuntimeError, match="."):
            operator.execute({})


def test_a_server_that_is_gone():
    trigger = PtcpTrigger("0123456789abcdef@127.0.0.1:1", TRUST, 0.05, patience_s=0.04)

    async def first():
        async for event in trigger.run():
            return event.payload

    event = asyncio.run(first())
    assert (event["state"], event["exit"]) == ("unknown", 3)
    with pytest.raises(RuntimeError, match="connect|refused"):
        PtcpOperator(task_id="copy", sources="a", destination="b").execute_complete({}, event)


def test_in_a_dag():
    with DAG("nightly", schedule=None) as dag:
        PtcpOperator(task_id="copy", sources="ptcp://a/{{ ds }}/", destination="ptcp://b/{{ ds }}/")
    assert dag.task_ids == ["copy"]
    assert set(PtcpOperator.template_fields) <= set(vars(dag.get_task("copy")))
