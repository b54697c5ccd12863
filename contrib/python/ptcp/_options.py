"""Keywords of a transfer, from the library's own table: names, types, ranges and places in its struct."""

from __future__ import annotations

import ctypes as c
import functools
import itertools
import operator
import os

from . import _native as n

# enum ptcp_option_type
SWITCH, WORD, INT, UNSIGNED, UINT32, UINT64, DOUBLE, TEXT, TEXTS, DOUBLES, UINT64S, RULES, CALLBACK = range(13)
_CTYPES = {SWITCH: c.c_bool, WORD: c.c_int, INT: c.c_int, UNSIGNED: c.c_uint, UINT32: c.c_uint32, UINT64: n.u64,
           DOUBLE: n.f64, DOUBLES: n.f64, UINT64S: n.u64}
_ROOM = 1 << 16  # for the struct, whose size the library tells


class Option:
    def __init__(self, pointer):
        row, of_files = pointer.contents, n.ptcp().ptcp_option_of_files
        self.of_files, self.of_writing = of_files(pointer, False), of_files(pointer, True)
        self.member = row.member.decode()
        self.type, self.at, self.initial, self.min, self.max = row.type, row.at, row.initial, row.min, row.max
        self.value = row.value.decode() if row.value is not None else ""
        self.words = [w for w in self.value.split("|") if w[:1].islower()]


_UNNAMED = ("older.", "limits.", "wire.")  # inner structs whose members say enough


def _keyword(member):
    return next((member[len(p):] for p in _UNNAMED if member.startswith(p)), member).replace(".", "_")


@functools.lru_cache(maxsize=None)
def table():
    """The options by their keyword: the member of struct ptcp_transfer_opts, with _ for the dot of an inner struct. Two
    options with one keyword are an error."""
    lib = n.ptcp()
    rows = itertools.takewhile(bool, map(lib.ptcp_transfer_option, itertools.count()))
    options = [Option(row) for row in rows]
    out = {_keyword(o.member): o for o in options}
    assert len(out) == len(options)
    return out


def check_of_files(options, writes=False):
    """Of work on files of another host: TypeError for an option that only transfers have."""
    for keyword, value in options.items():
        o = table().get(keyword)
        if o is not None and value is not None and not (o.of_writing if writes else o.of_files):
            raise TypeError(f"{keyword}: an option of transfers only")


_SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def from_text(keyword, value):
    """An option that a configuration has as text, such as "8", "true" or "SHA256:..,SHA256:.."; other values as they are."""
    o = table().get(keyword)
    if o is None or not isinstance(value, str):
        return value
    try:
        if o.type == SWITCH:
            return _SWITCHES[value.lower()]
        if o.type in (INT, UNSIGNED, UINT32, UINT64):
            return value if value in o.words else int(value)
        if o.type == DOUBLE:
            return float(value)
        if o.type in (TEXTS, DOUBLES, UINT64S):
            of = {TEXTS: str, DOUBLES: float, UINT64S: int}[o.type]
            return [of(part.strip()) for part in value.split(",") if part.strip()]
    except (KeyError, ValueError):
        raise ValueError(f"{keyword}: {value!r} is not {'true or false' if o.type == SWITCH else 'a number'}") from None
    return value


def encoded(value):
    """A string or path as the library takes it."""
    value = os.fsencode(value)
    if b"\0" in value:
        raise ValueError("a string contains a null byte")
    return value


def strings(values):
    values = [encoded(v) for v in values]
    return (n.text * len(values))(*values), len(values)


def flag(keyword, value):
    if not isinstance(value, bool):
        raise TypeError(f"{keyword}: {value!r} is neither True nor False")
    return value


def number(keyword, value, least, most, whole=True):
    """A number in its range: ctypes would cut off what is too large."""
    if isinstance(value, bool) or not hasattr(value, "__index__" if whole else "__float__"):
        raise TypeError(f"{keyword}: {value!r} is not {'an integer' if whole else 'a number'}")
    value = operator.index(value) if whole else float(value)
    if not least <= value <= most:
        raise ValueError(f"{keyword}: {value} is not from {least:.10g} to {most:.10g}")
    return value


def items(keyword, value):
    if isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{keyword}: {value!r} is one text, not a list")
    return list(value)


def rule_of(keyword, rule):
    """A line of a filter, or a pair of whether to include, and a pattern."""
    if isinstance(rule, (str, bytes)):
        return n.Rule(filter=encoded(rule))
    if not isinstance(rule, (tuple, list)) or len(rule) != 2:
        raise TypeError(f"{keyword}: {rule!r} is neither a text nor a pair such as (False, '*.tmp')")
    return n.Rule(flag(keyword, rule[0]), encoded(rule[1]))


def word(keyword, value, words):
    if not isinstance(value, str):
        raise TypeError(f"{keyword}: {value!r} is not a string")
    if value not in words:
        raise ValueError(f"{keyword}: {value!r} is not one of {', '.join(words)}")
    return words.index(value)


class Opts:
    """A struct ptcp_transfer_opts, and all that it points to."""

    def __init__(self, lib, options):
        self.room = c.create_string_buffer(_ROOM)
        self.kept = []
        lib.ptcp_transfer_opts_init(self.room)
        for keyword, value in options.items():
            o = table().get(keyword)
            if o is None or o.type == CALLBACK:
                raise TypeError(f"unknown option {keyword!r}")
            if value is None:
                continue
            try:
                self._take(keyword, o, value, options)
            except (TypeError, ValueError) as e:
                if keyword in str(e):
                    raise
                raise type(e)(f"{keyword}: {e}") from e

    @property
    def pointer(self):
        return c.cast(self.room, c.c_void_p)

    def _put(self, at, ctype, value):
        ctype.from_buffer(self.room, at).value = value

    def _put_list(self, o, array, count=None):
        self.kept.append(array)
        self._put(o.at, c.c_void_p, c.cast(array, c.c_void_p).value)
        if count is not None:
            self._put(o.at + c.sizeof(c.c_void_p), c.c_size_t, count)

    def call(self, keyword, function):
        """Sets a callback."""
        self._put_list(table()[keyword], function)

    def _take(self, keyword, o, value, options):
        if o.type == SWITCH:
            self._put(o.at, c.c_bool, flag(keyword, value))
        elif o.type == WORD:
            self._put(o.at, c.c_int, word(keyword, value, o.words))
        elif o.type in (INT, UNSIGNED, UINT32, UINT64, DOUBLE):
            self._put(o.at, _CTYPES[o.type], self._number(keyword, o, value))
        elif o.type == TEXT:
            self._put_list(o, c.create_string_buffer(encoded(value)))
        elif o.type == TEXTS:
            self._put_list(o, *strings(items(keyword, value)))
        elif o.type == RULES:
            rules = [rule_of(keyword, rule) for rule in items(keyword, value)]
            self._put_list(o, (n.Rule * len(rules))(*rules), len(rules))
        else:
            self._put_list(o, self._numbers(keyword, o, value, options))

    @staticmethod
    def _number(keyword, o, value):
        if o.words and isinstance(value, str):
            word(keyword, value, o.words)
            return 0
        if not isinstance(value, bool) and value == o.initial:
            return type(o.initial)(value) if o.type == DOUBLE else operator.index(value)
        return number(keyword, value, o.min, o.max, o.type != DOUBLE)

    @staticmethod
    def _numbers(keyword, o, value, options):
        value = items(keyword, value)
        if len(value) != len(options.get(o.value) or ()):
            raise ValueError(f"{keyword}: needs one value for each of {o.value}")
        whole = o.type == UINT64S
        most = 2**64 - 1 if whole else float("inf")
        return (_CTYPES[o.type] * len(value))(*(number(keyword, v, 0, most, whole) for v in value))
