"""Calls every function with odd values of its arguments and of every keyword, some at a time: an exception of Python is
right, a crash is not. Nothing listens where they connect to. Usage: fuzz.py SEED COUNT, in a directory of its own; prints
each call before it is made, as a crash prints nothing."""

import ctypes
import faulthandler
import inspect
import os
import random
import signal
import sys

import ptcp
from ptcp import _options

NOWHERE = "127.0.0.1:1"
URL = f"ptcp://{NOWHERE}/x"
ODD = [None, True, False, 0, 1, -1, 5, 127, 128, 2**31, 2**32 + 1, 2**63, 2**64, -2**63, 1.5, -0.5, float("nan"), float("inf"), "", "1",
       "x", NOWHERE, URL, "a,b", "auto", "none", "\0", "\udc80", "\ud800", "\U0010ffff", "0" * 500, b"", b"x", b"\xff", [], ["x"],
       [NOWHERE], ["SHA256:x"], [1.0], [1], [None], [[]], [b"x", "x"], [NOWHERE] * 40, (1, 2), [(0, 1)], [(None, -1)] * 3,
       [(False, "*")], [(True,)], {}, {"x": 1}, object(), print, ptcp, ctypes.c_int(5), memoryview(b"xyz"), os, ptcp.Host(),
       ptcp.RateLimit()]
ARGUMENTS = {"sources": ["file", URL], "dest": [URL, "out"], "urls": [URL], "url": [URL], "to": [URL], "ranges": [[(0, 1)]],
             "data": [b"x"], "target": [NOWHERE], "overlay": ["destination: D"], "text": [True]}
EXPECTED = (TypeError, ValueError, OSError, OverflowError, AttributeError, TimeoutError)
FUNCTIONS = [f for name, f in inspect.getmembers(ptcp, inspect.isfunction) if name in ptcp.__all__ and name != "version"]


def odd(r):
    value = r.choice(ODD)
    return [odd(r) for _ in range(r.randrange(4))] if r.random() < 0.1 else value


def fitting(o, r):
    """A value that the type and the range of the option permit."""
    if o.type == _options.SWITCH:
        return r.random() < 0.5
    if o.type in (_options.INT, _options.UNSIGNED, _options.UINT32, _options.UINT64):
        return int(r.choice([o.min, o.max, o.initial]))
    if o.type == _options.DOUBLE:
        return r.choice([o.min, o.initial])
    if o.type == _options.WORD or o.words:
        return r.choice(o.words)
    if o.type in (_options.TEXT, _options.TEXTS):
        texts = [r.choice(["", "x", NOWHERE, "1", "\udcff", "a" * 300, "*", "/", "."]) for _ in range(r.randrange(3))]
        return texts if o.type == _options.TEXTS else "".join(texts)
    return odd(r)


def call(r):
    """A function and its arguments, of which a few are odd."""
    function = r.choice(FUNCTIONS)
    arguments = {}
    for name, p in inspect.signature(function).parameters.items():
        if p.kind is p.VAR_KEYWORD:
            for k in r.sample(sorted(_options.table()), r.randrange(8)):
                arguments[k] = odd(r) if r.random() < 0.2 else fitting(_options.table()[k], r)
            arguments.update(timeout_s=0.5, retry_for_s=0, wait_s=0)
        elif name in ARGUMENTS:
            arguments[name] = odd(r) if r.random() < 0.3 else r.choice(ARGUMENTS[name])
        elif r.random() < 0.3:
            arguments[name] = odd(r)
    return function, arguments


def late(*_):
    raise TimeoutError


def main(seed, count):
    faulthandler.enable()
    signal.signal(signal.SIGALRM, late)
    for i in range(count):
        function, arguments = call(random.Random(seed + i))
        print(seed + i, function.__name__, ascii(arguments), flush=True)
        signal.alarm(5)
        try:
            function(**arguments)
        except EXPECTED:
            pass
        finally:
            signal.alarm(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
