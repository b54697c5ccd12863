"""Exceptions: one class for each exit status of the command ptcp. A failure with a cause of the operating system, here or on
the other host, is in addition the built-in exception of that cause, such as FileNotFoundError or PermissionError."""

from __future__ import annotations

import functools
import os
from typing import Any, List, Optional, Tuple, Type

from .types import FailedFile


class Error(OSError):
    """A failure. str() is one sentence: what, why, what to do.

    code          name of the error, such as "PTCP_ECONNECT"
    exit_code     exit status of the command ptcp for the same failure
    errno         cause, such as errno.ENOENT, also of a failure of the other host; of several failures the cause that all of
                  them share; or None
    filename      path of the only file that failed, or None
    result        the TransferResult of a failed transfer, or None
    failed_files  the files that failed or vanished
    """

    exit_code = 1
    _plain: Optional[Type[Error]] = None  # the class without the cause

    def __init__(self, message: str, code: str = "PTCP_?", errno: Optional[int] = None):
        super().__init__(message)
        self.code = code
        self.errno = errno
        self.strerror = message
        self.result: Any = None
        self.failed_files: List[FailedFile] = []

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> Tuple[Any, ...]:
        return _made, (self._plain or type(self), self.args[0], self.code, self.errno, self.filename), self.__dict__


class UsageError(Error):
    exit_code = 2


class ConnectError(Error, ConnectionError):
    exit_code = 3


class RefusedError(Error):
    exit_code = 4


class VerifyError(Error):
    exit_code = 5


class PartialError(Error):
    """Some files failed, the others are complete."""

    exit_code = 6


class VanishedError(Error):
    """Files vanished before they were sent, the others are complete."""

    exit_code = 24


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


@functools.lru_cache(maxsize=None)
def _with_cause(plain: Type[Error], kind: Type[OSError]) -> Type[Error]:
    return type(plain.__name__, (plain, kind), {"__module__": plain.__module__, "_plain": plain})


def _made(plain: Type[Error], message: str, code: str, number: Optional[int], filename: Optional[str]) -> Error:
    kind = OSError if number is None else type(OSError(number, ""))
    e = (plain if issubclass(plain, kind) else _with_cause(plain, kind))(message, code, number)
    e.filename = filename
    return e


def error(lib: Any, err: Any, failed_files: Tuple[FailedFile, ...] = ()) -> Error:
    """The exception of a struct ptcp_err, after these failures."""
    code = lib.ptcp_err_name(err.code).decode()
    message = os.fsdecode(err.msg) or lib.ptcp_err_text(err.code).decode()
    filename = os.fsdecode(failed_files[0].path) if len(failed_files) == 1 else None
    e = _made(_CLASSES.get(code, Error), message, code, err.sys or None, filename)
    e.failed_files = list(failed_files)
    return e
