"""Exceptions: one class for each exit status of the command ptcp."""

from __future__ import annotations

import os
from typing import Optional


class Error(Exception):
    """A failure. str() is one sentence: what, why, what to do.

    code       name of the error, such as "PTCP_ECONNECT"
    exit_code  exit status of the command ptcp for the same failure
    errno      of the failed system call, or None
    result     the TransferResult of a failed transfer, or None
    """

    exit_code = 1

    def __init__(self, message: str, code: str = "PTCP_?", errno: Optional[int] = None):
        super().__init__(message)
        self.code = code
        self.errno = errno
        self.result = None


class UsageError(Error):
    exit_code = 2


class ConnectError(Error):
    exit_code = 3


class RefusedError(Error):
    exit_code = 4


class VerifyError(Error):
    exit_code = 5


class PartialError(Error):
    """Some files failed, the others are complete: see `failed_files`, a list of FailedFile."""

    exit_code = 6

    def __init__(self, *args):
        super().__init__(*args)
        self.failed_files = []


class VanishedError(Error):
    """Files vanished before they were sent, the others are complete: see `failed_files`, a list of FailedFile."""

    exit_code = 24

    def __init__(self, *args):
        super().__init__(*args)
        self.failed_files = []


class InfeasibleError(Error):
    exit_code = 7


class CanceledError(Error):
    exit_code = 8


class StoppedError(Error):
    exit_code = 30


# As in src/cli/command.c; all other codes have exit status 1.
_CLASSES = {
    "PTCP_EUSAGE": UsageError, "PTCP_ECONFIG": UsageError, "PTCP_ENOTYET": UsageError, "PTCP_ERANGE": UsageError,
    "PTCP_ECONNECT": ConnectError, "PTCP_EREFUSED": RefusedError, "PTCP_EBUSY": RefusedError,
    "PTCP_EVERIFY": VerifyError, "PTCP_EPARTIAL": PartialError, "PTCP_EVANISHED": VanishedError,
    "PTCP_EINFEASIBLE": InfeasibleError, "PTCP_ECANCELED": CanceledError,
    "PTCP_ESTOPPED": StoppedError,
}


def error(lib, err) -> Error:
    """The exception of a struct ptcp_err."""
    code = lib.ptcp_err_name(err.code).decode()
    message = os.fsdecode(err.msg) or lib.ptcp_err_text(err.code).decode()
    return _CLASSES.get(code, Error)(message, code, err.sys or None)
