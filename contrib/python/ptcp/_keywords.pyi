# Keywords of transfers, as contrib/python/keywords prints them from the library's table of options.
import os
from collections.abc import Iterable
from typing import Literal, TypedDict, Union

from ._task import RateLimit

Text = Union[str, bytes, os.PathLike[str]]

class FileOptions(TypedDict, total=False):
    fingerprints: Iterable[Text] | None
    timeout_s: float | None
    wait_s: float | None
    congestion: Literal["auto", "system", "cubic", "bbr", "reno"] | None
    bind: Text | None
    dscp: Text | None
    retry_for_s: float | None
    ssh: Text | None
    remote_ptcp: Text | None
    remote_port: int | None
    remote_port_or_any: bool | None
    config_dir: Text | None
    state_dir: Text | None
    family: int | None

class WriteOptions(FileOptions, total=False):
    exclusive: bool | None
    if_match: Text | None
    fsync: Literal["group", "none", "file"] | None
    no_mkpath: bool | None

class AdviceOptions(WriteOptions, total=False):
    update: bool | None
    size_only: bool | None
    ignore_existing: bool | None
    existing: bool | None
    checksum: bool | None
    ignore_times: bool | None
    delete_extra: bool | None
    max_delete: int | None
    backup: bool | None
    backup_dir: Text | None
    suffix: Text | None
    link_dest: Iterable[Text] | None
    compare_dest: Iterable[Text] | None
    copy_dest: Iterable[Text] | None
    delete_excluded: bool | None
    min_size: int | None
    max_size: int | None
    newer_than: Text | None
    older_than: Text | None
    max_depth: int | None
    stop_after_s: float | None
    stop_at: Text | None
    one_file_system: bool | None
    copy_links: bool | None
    copy_unsafe_links: bool | None
    dry_run: bool | None
    remove_sources: bool | None
    no_resume: bool | None
    no_growing: bool | None
    no_verify: bool | None
    direct_io: bool | None
    partial: bool | None
    dest_is_file: bool | None
    file_events: bool | None
    pipe_fd: int | None
    files: Iterable[Text] | None
    delta: Literal["auto", "on", "off"] | None
    compress: int | Literal["off", "auto"] | None
    detect_renames: bool | None
    no_preflight: bool | None
    inplace: bool | None
    digest: Literal["sha256", "sha512", "sha1", "md5", "blake2b", "adler32", "crc32c", "xxh3,.."] | None
    expect: Text | None
    modify_window_s: int | None
    preserve_chmod: Text | None
    preserve_chown: Text | None
    preserve_user_map: Text | None
    preserve_group_map: Text | None
    preserve_numeric_ids: bool | None
    detach: bool | None
    rate: Text | RateLimit | None
    streams: int | Literal["auto"] | None
    deadline: Text | None
    no_history: bool | None
    cipher: Literal["aes128gcm", "aes256gcm", "chacha20", "none"] | None
    remote_launch: Text | None
    paths: Iterable[Text] | None
    candidates: Iterable[Text] | None
    path_n_selected: int | None
    path_shares: Iterable[float] | None
    path_spool_bytes: Iterable[int] | None
    path_candidate_bps: Iterable[float] | None
    mover_command: Text | None
    mover_hosts: Iterable[Text] | None
    mover_file: Text | None
    mover_ptcp: Text | None
    mover_listen: Text | None
    mover_wait_s: float | None
    mover_stripe_bytes: int | None
    rules: Iterable[tuple[bool, Text] | Text] | None
    preserve_times: bool | None
    preserve_mode: bool | None
    preserve_links: bool | None
    preserve_owner: bool | None
    preserve_xattr: bool | None
    preserve_acl: bool | None
    preserve_setid: bool | None

class Options(AdviceOptions, total=False):
    impact_percent: float | None
    max_streams: int | None
