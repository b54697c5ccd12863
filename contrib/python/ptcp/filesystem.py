"""An fsspec filesystem of files on a ptcp server: fsspec.open("ptcp://server/run7/data.csv"), for pandas, dask, torch
and other users of fsspec. Needs the package fsspec.

open() for reading, cat_file() and cat_ranges() request the bytes that they need, and no others but a read-ahead that grows
while a file is read from front to back. open() for writing sends the file when it is closed, and the file appears under
its name when all data is verified. get() and put() of a directory are one transfer. Files of up to 1 MiB are read and
written in one request each, on a connection that is kept.
"""

from __future__ import annotations

import datetime
import errno
import io
import ipaddress
import os
import posixpath
import stat
import sys
import tempfile
import time
from contextlib import contextmanager
from urllib.parse import quote

from fsspec.asyn import AsyncFileSystem, _run_coros_in_chunks, get_loop, reset_lock, sync, sync_wrapper
from fsspec.caching import BaseCache, caches
from fsspec.callbacks import NoOpCallback
from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.spec import AbstractBufferedFile
from fsspec.utils import stringify_path

import ptcp
from ptcp import aio
from ptcp._options import Opts, from_text, table
from ptcp._task import WRITE_MAX

_PORT = 7811
_RESERVED = ".ptcp-"  # names of unfinished files
_TYPES = {"symlink": "link"}
_LINKS_MAX = 16
_AHEAD = 256 << 10  # bytes of the first read-ahead
_SMALL = WRITE_MAX  # bytes of a file that is no transfer

# Options about streams and blocks, which a file in one request does not have.
_OF_BLOCKS = {"streams", "max_streams", "impact_percent", "no_history", "cipher", "compress", "delta", "no_resume",
              "no_preflight", "no_verify", "direct_io", "inplace"}
# Options by which a file that was written would not be there, or another one would not be any more.
_OF_OTHERS = {"dry_run", "remove_sources", "detach", "pipe_fd", "partial", "dest_is_file", "files", "rules", "exclusive",
              "if_match", "update", "existing", "ignore_existing", "size_only", "delete_extra", "delete_excluded", "min_size",
              "max_size", "newer_than", "older_than", "max_depth", "stop_after_s", "stop_at", "one_file_system", "link_dest",
              "compare_dest", "copy_dest", "file_events", "digest"}

os.register_at_fork(after_in_child=reset_lock)  # fsspec's loop has no thread there; older versions of fsspec forget that


@contextmanager
def _os_errors(path):
    """Failures are the OSError that fsspec and its users expect: with the path by which the caller knows the file."""
    try:
        yield
    except ptcp.Error as e:
        e.filename = path
        raise


def _creating(exclusive):
    """Options of send(): the server creates the file, or fails."""
    return {"exclusive": True} if exclusive else {}


def _has_wildcard(path):
    return any(c in path for c in "*?[")


class PtcpFileSystem(AsyncFileSystem):
    """Files on the server at `host`. Options of transfers, such as fingerprints=["SHA256:.."] or streams=8, have the
    names of ptcp.send(), and may be text, as in a configuration: fingerprints="SHA256:..,SHA256:..", streams="8".
    trust(host, fingerprint) decides about an unknown server. `temp_dir` is the directory of temporary files. Paths are
    literal, without escapes. A process that was forked may use a filesystem of its parent."""

    protocol = "ptcp"
    root_marker = "/"

    def __init__(self, host, port=None, trust=None, temp_dir=None, asynchronous=False, loop=None, batch_size=8,
                 **options):
        known = {"use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache", "dircache"}
        super().__init__(asynchronous=asynchronous, loop=loop, batch_size=int(batch_size),
                         **{k: options.pop(k) for k in known & set(options)})
        options = {k: from_text(k, v) for k, v in options.items() if v is not None}
        for keyword in sorted(_OF_OTHERS & set(options)):
            raise TypeError(f"{keyword}: an option of ptcp.send(), not of a filesystem")
        Opts(ptcp._native.ptcp(), options)  # TypeError now rather than at the first use
        self.host, self.port, self.temp_dir = host, int(port or _PORT), temp_dir
        self.options = {**options, "trust": trust}
        kept = {"trust": trust, "host": ptcp.Host()}  # one connection for one operation after the other
        self._here = {**{k: v for k, v in options.items() if table()[k].of_files}, **kept}
        self._small = {**{k: v for k, v in options.items() if table()[k].of_writing}, **kept}
        self._requests = set(self._small) | _OF_BLOCKS >= set(options)

    @property
    def loop(self):
        if self._pid != os.getpid():  # forked: the thread of the loop is that of the parent
            self._pid = os.getpid()
            self._loop = None if self.asynchronous else get_loop()
        return super().loop

    # ---- Paths ----

    @classmethod
    def _split(cls, path):
        """HOST[:PORT] (empty for a path alone), and the path."""
        path = stringify_path(path)
        if not path.startswith("ptcp://"):
            return "", path
        host, _, rest = path[len("ptcp://"):].partition("/")
        return host, "/" + rest

    @classmethod
    def _strip_protocol(cls, path):
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        return "/" + cls._split(path)[1].strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path):
        host, _ = PtcpFileSystem._split(path)
        if host.startswith("[") and "]" not in host:
            raise ValueError(f"ptcp://{host}: fsspec splits URLs at '::' (write the IPv6 address without '::', as in "
                             "ptcp://[0:0:0:0:0:0:0:1]/, or leave the host of the URL empty and add host='[..]')")
        name, colon, port = host.rpartition(":")
        if colon and port.isdigit() and (":" not in name or name.endswith("]")):
            return {"host": name, "port": int(port)}
        return {"host": host} if host else {}

    def unstrip_protocol(self, name):
        port, host = "" if self.port == _PORT else f":{self.port}", self.host
        if "::" in host:  # where fsspec would split the URL
            address, percent, zone = host.strip("[]").partition("%")
            groups = ipaddress.IPv6Address(address).exploded.split(":")
            host = f"[{':'.join(f'{int(g, 16):x}' for g in groups)}{percent}{zone}]"
        return f"ptcp://{host}{port}{self._strip_protocol(name)}"

    @property
    def fsid(self):
        return f"ptcp_{self.host}_{self.port}"

    def _url(self, path):
        return f"ptcp://{self.host}:{self.port}" + quote(os.fsencode(self._strip_protocol(path)))

    # ---- Listing ----

    def _details(self, folder, e):
        name = os.fsdecode(e.path)
        name = name if name.startswith("/") else posixpath.join(folder, name)
        info = {"name": name, "size": e.bytes if e.type == "file" else 0, "type": _TYPES.get(e.type, e.type),
                "mode": e.mode, "mtime": e.mtime_ns / 1e9, "islink": e.target is not None}
        if e.target is not None:
            info["destination"] = os.fsdecode(e.target)
        return info

    async def _listed(self, path, **how):
        with _os_errors(path):
            entries = await aio.ls(self._url(path), hidden=True, **how, **self._here)
        return [info for info in (self._details(path, e) for e in entries)
                if not posixpath.basename(info["name"]).startswith(_RESERVED)]

    async def _ls(self, path, detail=True, **kwargs):
        path = self._strip_protocol(path)
        found = [info for info in await self._listed(path)
                 if path in (info["name"], posixpath.dirname(info["name"]))]  # the server may expand wildcards
        return sorted(found, key=lambda info: info["name"]) if detail else sorted(info["name"] for info in found)

    async def _info(self, path, **kwargs):
        """A symbolic link has type and size of its target, as with local files; a dangling link has the type "link"."""
        path = at = self._strip_protocol(path)
        link = None
        for _ in range(_LINKS_MAX):
            try:
                found = info = await self._stat(at)
            except FileNotFoundError:
                if link is not None:
                    return link
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
            if link is not None:
                info = {**info, "name": path, "islink": True, "destination": link["destination"]}
            if info["type"] != "link":
                return info
            link = link or info
            at = self._target(at, found["destination"])
        return link

    async def _stat(self, path):
        """Of this name itself."""
        if posixpath.basename(path).startswith(_RESERVED):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        with _os_errors(path):
            return {**self._details("/", await aio.stat(self._url(path), **self._here)), "name": path}

    @staticmethod
    def _target(path, destination):
        return posixpath.normpath("/" + posixpath.join(posixpath.dirname(path), destination)).replace("//", "/")

    async def _find(self, path, maxdepth=None, withdirs=False, detail=False, **kwargs):
        if maxdepth is not None:
            return await super()._find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail, **kwargs)
        path = self._strip_protocol(path)
        prefix = path.rstrip("/") + "/"
        try:
            found = {info["name"]: info for info in await self._listed(path, recursive=True)
                     if info["name"] == path or info["name"].startswith(prefix)}
            if withdirs and path not in found:
                found[path] = await self._info(path)
        except FileNotFoundError:
            found = {}
        names = sorted(name for name, info in found.items() if withdirs or info["type"] != "directory")
        return {name: found[name] for name in names} if detail else names

    def modified(self, path):
        return datetime.datetime.fromtimestamp(self.info(path)["mtime"], datetime.timezone.utc)

    async def _checksum(self, path, algorithm="sha256"):
        path = self._strip_protocol(path)
        with _os_errors(path):
            if _has_wildcard(path):
                await aio.stat(self._url(path), **self._here)
            [entry] = await aio.sum(self._url(path), algorithm, **self._here)
        return int(entry.digests[algorithm], 16)

    def checksum(self, path, algorithm="sha256"):
        """A digest of the content as a number, which the server computes; ukey() tells versions by size and time."""
        return sync(self.loop, self._checksum, path, algorithm)

    # ---- Data ----

    def _temporary(self):
        return tempfile.TemporaryDirectory(prefix="ptcp-", dir=self.temp_dir)

    def _next_source(self, path, file):
        """The path to receive instead of `path`, whose copy `file` is a symbolic link; else None."""
        if os.path.islink(file):
            target = os.readlink(file)
            os.unlink(file)
            return self._target(path, target)
        if os.path.isdir(file):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return None

    def _received(self, folder):
        """Options and destination of a temporary copy."""
        return os.path.join(folder, "file"), {**self.options, "fsync": "none"}

    async def _fetch(self, path, folder):
        file, options = self._received(folder)
        source = self._strip_protocol(path)
        for _ in range(_LINKS_MAX):
            with _os_errors(path):
                if _has_wildcard(source):  # the server would send another file, if this one does not exist
                    await aio.stat(self._url(source), **self._here)
                await aio.recv([self._url(source)], file, **options)
            source = self._next_source(source, file)
            if source is None:
                return file
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    async def _read(self, path, ranges):
        path = self._strip_protocol(path)
        with _os_errors(path):
            try:
                return await aio.read_ranges(self._url(path), ranges, **self._here)
            except ptcp.RefusedError:
                target = await self._end_of_links(path)
                if target == path:
                    raise
                return await aio.read_ranges(self._url(target), ranges, **self._here)

    async def _end_of_links(self, path):
        """The server follows no absolute links, whose targets are beneath the root of the client."""
        info = await self._info(path)
        for _ in range(_LINKS_MAX):
            if not info["islink"]:
                return path
            path = self._target(path, info["destination"])
            info = await self._info(path)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    async def _cat_file(self, path, start=None, end=None, **kwargs):
        return (await self._read(path, [(start, end)]))[0]

    async def _cat_ranges(self, paths, starts, ends, max_gap=None, batch_size=None, on_error="return", **kwargs):
        """One request for each distinct path, some at a time; several ranges cost no more than one, so no gap is read."""
        starts = starts if isinstance(starts, (list, tuple)) else [starts] * len(paths)
        ends = ends if isinstance(ends, (list, tuple)) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError("paths, starts and ends must have one length")
        out, mine = [None] * len(paths), {}
        for i, path in enumerate(paths):
            mine.setdefault(path, []).append(i)

        async def read(path):
            try:
                got = await self._read(path, [(starts[i], ends[i]) for i in mine[path]])
            except Exception as e:
                if on_error != "return":
                    raise
                got = [e] * len(mine[path])
            for i, data in zip(mine[path], got):
                out[i] = data

        await _run_coros_in_chunks([read(path) for path in mine], batch_size=batch_size or self.batch_size)
        return out

    async def _get_file(self, rpath, lpath, callback=None, **kwargs):
        callback = callback or NoOpCallback()
        info = await self._info(rpath)
        if info["type"] == "directory":
            os.makedirs(lpath, exist_ok=True)
            return
        if os.path.isdir(lpath):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), lpath)
        callback.set_size(info["size"])
        if info["size"] <= _SMALL and self._requests and not info["islink"]:
            await self._get_small(rpath, os.fspath(lpath))
        elif info["islink"]:
            os.makedirs(os.path.dirname(lpath) or ".", exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".ptcp-", dir=os.path.dirname(lpath) or ".") as folder:
                os.replace(await self._fetch(rpath, folder), lpath)
        else:
            with _os_errors(rpath):
                await aio.recv([self._url(rpath)], os.fspath(lpath), **self._progress(callback))
        callback.absolute_update(info["size"])

    async def _get_small(self, rpath, lpath):
        opened = []
        with _os_errors(rpath):
            data, = await aio.read_ranges(self._url(rpath), [(None, None)], on_file=opened.append, **self._here)
        folder = os.path.dirname(lpath) or "."
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_RESERVED, dir=folder) as temporary:
            file = os.path.join(temporary, "file")
            with open(file, "wb") as f:
                f.write(data)
            os.chmod(file, opened[0].mode & 0o777)
            os.utime(file, ns=(time.time_ns(), opened[0].mtime_ns))
            os.replace(file, lpath)

    async def _put_small(self, path, data, mode, bits=None, mtime_ns=None):
        with _os_errors(path):
            await aio.write(self._url(self._literal(path)), data, mode=bits, mtime_ns=mtime_ns,
                            **{**self._small, **_creating(mode == "create")})

    def _literal(self, path):
        """A path that ends with a slash names no file."""
        if stringify_path(path).endswith("/"):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return path

    def _progress(self, callback):
        return {**self.options, "on_progress": lambda p: callback.absolute_update(p.bytes)}

    async def _put_file(self, lpath, rpath, callback=None, mode="overwrite", **kwargs):
        callback = callback or NoOpCallback()
        if os.path.isdir(lpath):
            await self._makedirs(rpath, exist_ok=True)
            return
        status = os.stat(lpath)
        callback.set_size(status.st_size)
        if status.st_size <= _SMALL and self._requests and stat.S_ISREG(status.st_mode) and not os.path.islink(lpath):
            with open(lpath, "rb") as f:
                data = f.read(_SMALL + 1)
            if len(data) <= _SMALL:
                await self._put_small(rpath, data, mode, bits=status.st_mode & 0o777, mtime_ns=status.st_mtime_ns)
                callback.absolute_update(len(data))
                return
        with _os_errors(rpath):
            await aio.send([os.fspath(lpath)], self._url(rpath), dest_is_file=True,
                           **{**self._progress(callback), **_creating(mode == "create")})
        callback.absolute_update(os.path.getsize(lpath))

    async def _pipe_file(self, path, value, mode="overwrite", **kwargs):
        if len(value) <= _SMALL and self._requests:
            return await self._put_small(path, value, mode)
        with self._temporary() as folder:
            file = os.path.join(folder, posixpath.basename(self._strip_protocol(path)) or "file")
            with open(file, "wb") as f:
                f.write(value)
            await self._put_file(file, path, mode=mode)

    async def _get(self, rpath, lpath, recursive=False, callback=None, maxdepth=None, **kwargs):
        """A whole directory is one transfer: names follow cp -r, as those of fsspec."""
        callback = callback or NoOpCallback()
        tree = recursive and maxdepth is None and isinstance(rpath, str) and isinstance(lpath, (str, os.PathLike))
        if not tree or _has_wildcard(rpath) or (await self._info(rpath))["type"] != "directory":
            more = {} if maxdepth is None else {"maxdepth": maxdepth}
            return await super()._get(rpath, lpath, recursive=recursive, callback=callback, **more, **kwargs)
        slash = "/" if rpath.endswith("/") and self._strip_protocol(rpath) != "/" else ""
        with _os_errors(rpath):
            await aio.recv([self._url(rpath) + slash], os.fspath(lpath), **self._progress(callback))

    async def _named(self, source, dest):
        """The name that a copy of a file gets, as with cp: beneath `dest` if that is, or as written means, a directory."""
        if dest.endswith("/") or await self._isdir(dest):
            return posixpath.join(dest, os.path.basename(os.fspath(source)))
        return dest

    async def _put(self, lpath, rpath, recursive=False, callback=None, maxdepth=None, **kwargs):
        callback = callback or NoOpCallback()
        tree = recursive and maxdepth is None and isinstance(lpath, (str, os.PathLike)) and isinstance(rpath, str)
        if not tree or not os.path.isdir(lpath):
            if isinstance(lpath, (str, os.PathLike)) and isinstance(rpath, str) and os.path.isfile(lpath):
                rpath = await self._named(lpath, rpath)
            more = {} if maxdepth is None else {"maxdepth": maxdepth}
            return await super()._put(lpath, rpath, recursive=recursive, callback=callback, **more, **kwargs)
        slash = "/" if rpath.endswith("/") and self._strip_protocol(rpath) != "/" else ""
        with _os_errors(rpath):
            await aio.send([os.fspath(lpath)], self._url(rpath) + slash, **self._progress(callback))

    # ---- Names ----

    async def _mkdir(self, path, create_parents=True, **kwargs):
        with _os_errors(path):
            try:
                await aio.mkdir(self._url(path), **self._here)
            except ptcp.Error as e:
                if not create_parents or e.errno != errno.ENOENT:
                    raise
                await aio.mkdir(self._url(path), parents=True, **self._here)

    async def _makedirs(self, path, exist_ok=False):
        if not exist_ok and await self._exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        with _os_errors(path):
            await aio.mkdir(self._url(path), parents=True, **self._here)

    async def _rmdir(self, path):
        """Of an empty directory."""
        with _os_errors(path):
            await aio.rmdir(self._url(path), **self._here)

    rmdir = sync_wrapper(_rmdir)

    async def _touch(self, path, truncate=True, **kwargs):
        """With `truncate` the file is empty afterwards, else it gets the present time only."""
        if truncate:
            return await self._pipe_file(path, b"")
        with _os_errors(path):
            await aio.touch(self._url(path), **self._here)

    touch = sync_wrapper(_touch)

    async def _rm_file(self, path, **kwargs):
        path = self._strip_protocol(path)
        await self._remove([path])

    async def _remove(self, paths, recursive=False):
        try:
            with _os_errors(paths[0]):
                await aio.rm([self._url(p) for p in paths], recursive=recursive, literal=True, **self._here)
        except IsADirectoryError as e:
            path = os.fsdecode(next((f.path for f in e.failed_files), e.filename))
            raise IsADirectoryError(errno.EISDIR, "Is a directory (remove it with recursive=True)", path) from e

    async def _rm(self, path, recursive=False, batch_size=None, maxdepth=None, **kwargs):
        paths = self._strip_protocol(path)
        paths = paths if isinstance(paths, list) else [paths]
        if maxdepth is not None:
            paths = await self._expand_path(paths, recursive=recursive, maxdepth=maxdepth)
        elif any(_has_wildcard(p) for p in paths):
            paths = await self._expand_path(paths)
        await self._remove(paths, recursive)

    async def _mv(self, path1, path2, recursive=False, maxdepth=None, **kwargs):
        """Renames on the server, directories as well."""
        with _os_errors(path1):
            await aio.mv(self._url(path1), self._url(path2), replace=True, **self._here)

    mv = move = rename = sync_wrapper(_mv)

    async def _cp_file(self, path1, path2, **kwargs):
        """Through this host: the server copies nothing itself."""
        info = await self._info(path1)
        if info["type"] == "directory":
            if info["islink"]:
                raise self._links_to_directory(path1)
            await self._makedirs(path2, exist_ok=True)
            return
        if info["size"] <= _SMALL and self._requests and not info["islink"]:
            opened = []
            with _os_errors(path1):
                data, = await aio.read_ranges(self._url(path1), [(None, None)], on_file=opened.append, **self._here)
            if len(data) <= _SMALL:
                return await self._put_small(path2, data, "overwrite", bits=opened[0].mode & 0o777,
                                             mtime_ns=opened[0].mtime_ns)
        with self._temporary() as folder:
            await self._put_file(await self._fetch(path1, folder), path2)

    @staticmethod
    def _links_to_directory(path):
        return IsADirectoryError(errno.EISDIR, "A symbolic link to a directory (copy its target)", path)

    async def _copy(self, path1, path2, recursive=False, on_error=None, maxdepth=None, **kwargs):
        """A whole directory is received and sent, with its links as links. Otherwise links to files are followed."""
        if isinstance(path1, str) and isinstance(path2, str) and not _has_wildcard(path1):
            info = await self._info(path1)
            if info["type"] != "directory":
                path2 = await self._named(path1, path2)
            elif recursive and maxdepth is None:
                return await self._copy_tree(path1, path2)
            elif info["islink"]:
                raise self._links_to_directory(path1)
        more = {} if maxdepth is None else {"maxdepth": maxdepth}
        await super()._copy(path1, path2, recursive=recursive, on_error=on_error or "raise", **more, **kwargs)

    async def _copy_tree(self, path1, path2):
        contents = path1.endswith("/")
        with self._temporary() as folder:
            tree = os.path.join(folder, posixpath.basename(self._strip_protocol(path1)) or "tree")
            await self._get(path1, tree, recursive=True)
            await self._put(tree + "/" * contents, path2, recursive=True)

    # ---- Files ----

    _end_of_links_now = sync_wrapper(_end_of_links)

    def _fetch_now(self, path, folder):
        """_fetch() in this thread, for open()."""
        file, options = self._received(folder)
        source = self._strip_protocol(path)
        for _ in range(_LINKS_MAX):
            with _os_errors(path):
                if _has_wildcard(source):
                    ptcp.stat(self._url(source), **self._here)
                ptcp.recv([self._url(source)], file, **options)
            source = self._next_source(source, file)
            if source is None:
                return file
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def _open(self, path, mode="rb", block_size=None, autocommit=True, cache_options=None, **kwargs):
        if mode == "rb":
            kwargs.setdefault("cache_type", _Ahead.name)
            return _Reader(self, path, mode, block_size or "default", cache_options=cache_options, **kwargs)
        if mode not in ("wb", "xb", "ab"):
            raise ValueError(f"mode {mode!r}: not one of r, w, x and a")
        return _Writer(self, path, mode, autocommit)

    def open(self, path, mode="rb", block_size=None, cache_options=None, compression=None, **kwargs):
        """As of AbstractFileSystem, with layers of text and compression that discard as _Writer does."""
        how = {"block_size": block_size, "cache_options": cache_options}
        if "r" in mode:
            return super().open(path, mode, compression=compression, **how, **kwargs)
        layer = {k: kwargs.pop(k) for k in ("encoding", "errors", "newline") if k in kwargs} if "b" not in mode else None
        file = super().open(path, mode.replace("t", "").replace("b", "") + "b", **how, **kwargs)
        compression = get_compression(self._strip_protocol(path), compression)
        if compression is not None:
            file = _Compressed(compr[compression], file)
        return file if layer is None else _Text(file, **layer)


class _Ahead(BaseCache):
    """The range read last, with the bytes that follow. Whoever reads a file from front to back gets twice as much ahead
    each time, whoever jumps gets what was asked for."""

    name = "ptcp-ahead"

    def __init__(self, blocksize, fetcher, size, **kwargs):
        super().__init__(blocksize, fetcher, size)
        self.start, self.data, self.ahead = 0, b"", 0

    def _fetch(self, start, end):
        start, end = start or 0, min(self.size if end is None else end, self.size)
        if start >= end:
            return b""
        last = self.start + len(self.data)
        if self.start <= start and end <= last:
            return self.data[start - self.start:end - self.start]
        goes_on = bool(self.data) and self.start <= start <= last
        known = self.data[start - self.start:] if goes_on else b""
        self.ahead = min(max(2 * self.ahead, _AHEAD), self.blocksize) if goes_on else 0
        at = start + len(known)
        got = self.fetcher(at, min(end + self.ahead, self.size))
        self.start, self.data = start, known + got if known else got
        return self.data[:end - start]


caches[_Ahead.name] = _Ahead


class _Reader(AbstractBufferedFile):
    """Reads ranges of one version of the file."""

    DEFAULT_BLOCK_SIZE = 16 << 20  # maximum of the read-ahead

    def __init__(self, fs, path, mode, block_size, **kwargs):
        self._link = self._seen = None
        super().__init__(fs, path, mode, block_size, **kwargs)
        if self.details["type"] == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if self.details["type"] != "file":
            raise OSError(errno.EINVAL, f"{self.details['type']}: not a regular file", path)

    def _opened(self, e):
        seen = e.bytes, e.mtime_ns / 1e9
        known = self._seen or (self.details["size"], self.details["mtime"])
        if seen[0] < known[0] or (seen[0] == known[0] and seen[1] != known[1]):
            raise OSError(errno.ESTALE, "changed since it was opened (open it again)", self.path)
        self._seen = seen

    def _fetch_range(self, start, end):
        url, options = self.fs._url, {**self.fs._here, "on_file": self._opened}
        with _os_errors(self.path):
            if self._link is None:
                try:
                    return ptcp.read_ranges(url(self.path), [(start, end)], **options)[0]
                except ptcp.RefusedError:
                    if not self.details["islink"]:
                        raise
                    self._link = self.fs._end_of_links_now(self.path)
            return ptcp.read_ranges(url(self._link), [(start, end)], **options)[0]


class _Sent:
    """A file that close() sends, unless an exception ends the with statement or the file is never closed."""

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.discard()
        else:
            self.close()

    def __del__(self):
        try:
            unclosed = not self.closed
        except (AttributeError, ValueError):  # the constructor failed
            return
        if unclosed:
            self.discard()


class _Writer(_Sent, io.BufferedRandom):
    """A temporary file."""

    def __init__(self, fs, path, mode, autocommit):
        self.fs, self.path, self.mode_of_open, self.autocommit = fs, path, mode, autocommit
        self._discarded, self._handled = False, sys.exc_info()[1]
        self._folder = fs._temporary()
        self._file = os.path.join(self._folder.name, "file")
        try:
            with _os_errors(path):
                self._refuse_existing()
            if mode == "ab":
                try:
                    fs._fetch_now(path, self._folder.name)
                except FileNotFoundError:
                    pass
            # the modification time is new even if the size is not
            super().__init__(open(self._file, "a+b" if mode == "ab" else "w+b", buffering=0))
        except BaseException:
            self._folder.cleanup()
            raise

    def _ends_by_exception(self):
        """Whether another object's with statement ends by an exception, as that of fsspec.open(), whose __exit__() calls
        close() without the exception. An exception that was handled before the file was opened does not count."""
        if sys.exc_info()[1] in (None, self._handled):
            return False
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != "__exit__":
            frame = frame.f_back
        return frame is not None

    def close(self):
        if self.closed:
            return
        if self._ends_by_exception():
            self._discarded = True
        super().close()
        if self._discarded:
            self._folder.cleanup()
        elif self.autocommit:
            self.commit()

    def commit(self):
        """Sends the closed file; a transaction calls commit() at its end."""
        if self._discarded:
            return
        try:
            with _os_errors(self.path):
                if os.path.getsize(self._file) <= _SMALL and self.fs._requests:
                    with open(self._file, "rb") as f:
                        ptcp.write(self.fs._url(self.fs._literal(self.path)), f.read(),
                                   **{**self.fs._small, **_creating(self.mode_of_open == "xb")})
                    return
                ptcp.send([self._file], self.fs._url(self.path), dest_is_file=True,
                          **{**self.fs.options, **_creating(self.mode_of_open == "xb")})
        finally:
            self._folder.cleanup()

    def _refuse_existing(self):
        if self.mode_of_open == "xb" and self._exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.path)

    def _exists(self):
        try:
            return bool(ptcp.stat(self.fs._url(self.path), **self.fs._here))
        except ptcp.Error as e:
            if e.errno != errno.ENOENT:
                raise
            return False

    def discard(self):
        self._discarded = True
        self.close()
        self._folder.cleanup()


class _Compressed(_Sent, io.RawIOBase):
    """Compresses into a _Writer, and closes it: the compressors of fsspec leave the file below open."""

    def __init__(self, compress, writer):
        self._writer, self._compressor = writer, compress(writer, mode="w")

    def writable(self):
        return True

    def write(self, data):
        return self._compressor.write(data)

    def close(self):
        if self.closed:
            return
        super().close()
        self._compressor.close()
        self._writer.close()

    def discard(self):
        self._writer._discarded = True
        self.close()


class _Text(_Sent, io.TextIOWrapper):
    def discard(self):
        self.buffer.discard()
