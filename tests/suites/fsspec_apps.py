"""Libraries of the Python data world, each of which reads and writes files of a ptcp server by fsspec: apps.py NAME. The
environment is that of contrib/python/tests. Exit status 77: the library is not installed."""
import importlib.util
import os
import sys

import fsspec

from ptcp.filesystem import PtcpFileSystem

URL, FINGERPRINT = os.environ["PTCP_URL"], os.environ["PTCP_FINGERPRINT"]
TRUST = {"fingerprints": [FINGERPRINT], "timeout_s": 20}
AS_TEXT = {"fingerprints": FINGERPRINT, "timeout_s": "20"}
fsspec.register_implementation("ptcp", PtcpFileSystem)
FS = fsspec.filesystem("ptcp", **PtcpFileSystem._get_kwargs_from_urls(URL), **TRUST)


def at(name):
    return f"{URL}/apps/{name}"


def use_pandas(pandas):
    frame = pandas.DataFrame({"a": range(1000), "b": [str(i) for i in range(1000)]})
    for kind in "csv", "json", "pickle":
        getattr(frame, f"to_{kind}")(at(f"p.{kind}"), storage_options=TRUST, **({"index": False} if kind == "csv" else {}))
        got = getattr(pandas, f"read_{kind}")(at(f"p.{kind}"), storage_options=TRUST)
        assert got["a"].sum() == frame["a"].sum() and len(got) == 1000, kind
    frame.to_csv(at("p.csv.gz"), storage_options=AS_TEXT)
    assert len(pandas.read_csv(at("p.csv.gz"), storage_options=AS_TEXT)) == 1000


def use_pyarrow(_):
    import pyarrow
    import pyarrow.dataset
    import pyarrow.parquet
    table = pyarrow.table({f"c{i}": list(range(20000)) for i in range(20)})
    with FS.open("/apps/t.parquet", "wb") as f:
        pyarrow.parquet.write_table(table, f, row_group_size=5000)
    assert pyarrow.parquet.read_table("/apps/t.parquet", filesystem=FS, columns=["c3"]).num_rows == 20000
    pyarrow.dataset.write_dataset(table, "apps/set", filesystem=FS, format="parquet", existing_data_behavior="delete_matching")
    found = pyarrow.dataset.dataset("/apps/set", filesystem=FS, format="parquet")
    assert found.to_table(filter=pyarrow.dataset.field("c1") < 10).num_rows == 10


def use_dask(_):
    import dask.bag
    import dask.bytes
    data = os.urandom(1 << 20)
    FS.pipe("/apps/blocks", data)
    _, [blocks] = dask.bytes.read_bytes(at("blocks"), blocksize=1 << 18, **TRUST)
    assert b"".join(dask.compute(*blocks)) == data and len(blocks) == 4
    dask.bag.from_sequence(["a", "b"], npartitions=2).to_textfiles([at("bag0"), at("bag1")], storage_options=TRUST)
    assert FS.cat("/apps/bag1") in (b"b", b"b\n")


def use_zarr(zarr):
    import numpy
    array = zarr.create_array(at("z"), shape=(100, 100), chunks=(10, 100), dtype="i4", storage_options=TRUST, overwrite=True)
    array[:] = numpy.arange(10000).reshape(100, 100)
    assert zarr.open_array(at("z"), mode="r", storage_options=TRUST)[37, 5] == 3705


def use_xarray(xarray):
    import numpy
    data = xarray.Dataset({"t": (("x", "y"), numpy.arange(12.0).reshape(3, 4))})
    data.to_zarr(at("x.zarr"), storage_options=TRUST, mode="w")
    assert float(xarray.open_zarr(at("x.zarr"), storage_options=TRUST)["t"][2, 3]) == 11


def use_h5py(h5py):
    with FS.open("/apps/h.h5", "wb") as f, h5py.File(f, "w") as h:
        h["d"] = list(range(1000))
    with FS.open("/apps/h.h5") as f, h5py.File(f, "r") as h:
        assert h["d"][999] == 999


def use_h5netcdf(_):
    """netCDF-4."""
    import numpy
    import xarray
    with FS.open("/apps/n.nc", "wb") as f:
        xarray.Dataset({"t": ("x", numpy.arange(9.0))}).to_netcdf(f, engine="h5netcdf")
    with FS.open("/apps/n.nc") as f:
        assert float(xarray.open_dataset(f, engine="h5netcdf")["t"].sum()) == 36


def use_duckdb(duckdb):
    import pandas
    pandas.DataFrame({"a": [1, 2, 3]}).to_parquet(at("d.parquet"), storage_options=TRUST)
    base = duckdb.connect()
    base.register_filesystem(FS)
    assert base.execute("select sum(a) from read_parquet('ptcp:///apps/d.parquet')").fetchone() == (6,)
    base.execute("copy (select 5 as a) to 'ptcp:///apps/copied.parquet'")
    assert base.execute("select a from read_parquet('ptcp:///apps/copied.parquet')").fetchone() == (5,)


def use_polars(polars):
    with FS.open("/apps/po.parquet", "wb") as f:
        polars.DataFrame({"a": [1, 2, 3]}).write_parquet(f)
    with fsspec.open(at("po.parquet"), **AS_TEXT) as f:
        assert polars.read_parquet(f)["a"].sum() == 6


def use_torch(torch):
    """A DataLoader whose workers are forked with a filesystem that has worked."""
    FS.pipe({f"/apps/torch/{i}": bytes([i]) for i in range(16)})

    class Samples(torch.utils.data.Dataset):
        files = FS.ls("/apps/torch", detail=False)

        def __len__(self):
            return len(self.files)

        def __getitem__(self, i):
            with FS.open(self.files[i]) as f:
                return f.read()[0] + 1000 * (len(FS.glob("/apps/torch/*")) == 16)

    loader = torch.utils.data.DataLoader(Samples(), num_workers=2, batch_size=4, multiprocessing_context="fork")
    assert sorted(int(x) for batch in loader for x in batch) == [1000 + i for i in range(16)]


def use_datasets(datasets):
    """Of Hugging Face."""
    data = datasets.Dataset.from_dict({"a": list(range(100))})
    data.save_to_disk(at("hf"), storage_options=TRUST)
    assert datasets.load_from_disk(at("hf"), storage_options=TRUST)["a"][99] == 99
    data.to_csv(at("hf.csv"), storage_options=TRUST)
    assert FS.cat("/apps/hf.csv").startswith(b"a\n0\n")


def main(name):
    if importlib.util.find_spec(name) is None:
        sys.exit(77)
    FS.makedirs("/apps", exist_ok=True)
    globals()[f"use_{name}"](importlib.import_module(name))


if __name__ == "__main__":
    main(sys.argv[1])
