"""The tests that fsspec ships for file systems of others, applied to ptcp.filesystem. The environment is that of
contrib/python/tests: PTCP_URL, PTCP_FINGERPRINT."""
import os

import pytest
from fsspec.implementations.local import LocalFileSystem, make_path_posix
from fsspec.tests import abstract

from ptcp.filesystem import PtcpFileSystem


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self):
        at = PtcpFileSystem._get_kwargs_from_urls(os.environ["PTCP_URL"])
        return PtcpFileSystem(**at, fingerprints=[os.environ["PTCP_FINGERPRINT"]], timeout_s=20)

    @pytest.fixture
    def fs_path(self, fs):
        fs.makedirs("/abstract", exist_ok=True)
        yield "/abstract"
        fs.rm("/abstract", recursive=True)

    @pytest.fixture
    def local_fs(self):
        return LocalFileSystem(auto_mkdir=True)

    @pytest.fixture
    def local_path(self, tmpdir):
        return make_path_posix(str(tmpdir))


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    pass
