import struct
import sys
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

from rindices.interop import torch_archive
from rindices.interop.torch_archive import read_archive
from tests.interop.archives import Global, Tensor, dump, peak_memory, refused, save, write_archive


def test_reads_tensors_arrays_and_plain_containers(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {kind: (10 * rng.standard_normal((3, 4))).astype(kind) for kind in ("f4", "f8", "i8", "f2", "b1")}
    plain = {"a": [1, 2.5, None, True, "text"], "b": (1, (2, 3)), 7: {}, "long": 2**70}
    by_columns = np.asfortranarray(rng.standard_normal((2, 5)))
    content = OrderedDict(
        plain=plain,
        tensors={kind: Tensor(array) for kind, array in arrays.items()},
        parameter=Tensor(arrays["f4"], parameter=True),
        by_columns=by_columns,
        again=[by_columns, by_columns],
        number=np.float64(0.1),
        empty=Tensor(np.zeros((0, 3), np.float32)),
    )
    found = read_archive(save(tmp_path / "model.pt", content))
    assert found["plain"] == plain
    for kind, array in arrays.items():
        np.testing.assert_array_equal(found["tensors"][kind], array)
        assert found["tensors"][kind].dtype == array.dtype
    np.testing.assert_array_equal(found["parameter"], arrays["f4"])
    for array in (found["by_columns"], *found["again"]):
        np.testing.assert_array_equal(array, by_columns)
    assert (found["number"], found["empty"].shape) == (0.1, (0, 3))
    assert "torch" not in sys.modules


def test_tensor_is_a_window_on_its_storage(tmp_path):
    window = Tensor(np.arange(20, dtype=np.float32), offset=3, size=(4, 2), strides=(1, 5))
    found = read_archive(save(tmp_path / "model.pt", [window]))[0]
    np.testing.assert_array_equal(found, [[3, 8], [4, 9], [5, 10], [6, 11]])


def test_notes_about_versions_are_passed_over(tmp_path):
    class Noted(OrderedDict):
        def __reduce__(self):
            return Global("collections", "OrderedDict"), (), {"_metadata": OrderedDict()}, None, iter(self.items())

    assert read_archive(save(tmp_path / "model.pt", Noted(a=1))) == {"a": 1}


@pytest.mark.parametrize(
    "window",
    [
        {"offset": -1},
        {"offset": 10},
        {"offset": 2**80},
        {"offset": True},
        {"size": (3, 5)},
        {"size": (-3, -4)},
        {"size": (3,)},
        {"size": [3, 4]},
        {"size": (3, 4.0)},
        {"size": (2**40, 2**40)},
        {"strides": (4, 2)},
        {"strides": (-4, -1)},
        {"strides": (2**50, 1)},
        {"size": (10**9,), "strides": (0,)},
        {"size": (13, 1), "strides": (0, 1)},
        {"size": (1,) * 40, "strides": (1,) * 40},
    ],
)
def test_windows_that_do_not_fit_are_refused(tmp_path, window):
    tensor = Tensor(np.zeros((3, 4), np.float32), **window)
    refused(save(tmp_path / "model.pt", [tensor]), "not read")


def test_storage_should_have_all_its_bytes(tmp_path):
    data, blocks = dump([Tensor(np.zeros(10, np.float32))])
    for length in (0, 39, 41, 80):
        refused(write_archive(tmp_path / "model.pt", data, {"0": bytes(length)}), "10 numbers of 4 bytes", str(length))
    refused(write_archive(tmp_path / "model.pt", data), "data/0 is missing")
    assert len(blocks["0"]) == 40


def test_storage_has_one_description(tmp_path):
    data = dump([Tensor(np.zeros(4, np.float32)), Tensor(np.zeros(2))])[0]
    assert data.count(b"X\x01\x00\x00\x001") == 1
    refused(
        write_archive(
            tmp_path / "model.pt", data.replace(b"X\x01\x00\x00\x001", b"X\x01\x00\x00\x000"), {"0": bytes(16)}
        ),
        "two ways",
    )


@pytest.mark.parametrize(
    "shape", [(3,), (2, 3), (2**63, 2**63), (-2, -1)], ids=["more", "another", "overflow", "negative"]
)
def test_numpy_arrays_should_have_all_their_bytes(tmp_path, shape):
    class Wrong:
        def __reduce__(self):
            reconstruct = Global("numpy._core.multiarray", "_reconstruct")
            return reconstruct, (Global("numpy", "ndarray"), (0,), b"b"), (1, shape, np.dtype("<f8"), False, b"\0" * 16)

    refused(save(tmp_path / "model.pt", [Wrong()]), "not read")


def test_byte_order_is_checked(tmp_path):
    content = [Tensor(np.arange(3, dtype=np.float32))]
    read_archive(save(tmp_path / "little.pt", content, **{"archive/byteorder": b"little"}))
    refused(save(tmp_path / "big.pt", content, **{"archive/byteorder": b"big"}), "byte order big")
    refused(save(tmp_path / "numpy.pt", [np.arange(3.0).astype(">f8")]), "state of a")


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_entries_of_one_name_are_refused(tmp_path):
    refused(save(tmp_path / "model.pt", {}, **{"archive/data.pkl": b"\x80\x02}."}), "same name")


def test_other_archives_are_refused(tmp_path):
    refused(save(tmp_path / "model.pt", {}, **{"second/data.pkl": b"\x80\x02}."}), "one folder")
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/file.txt", "text")
    refused(path, "one folder with a data.pkl, but has 0")


def test_zip_bomb_is_refused_unopened(tmp_path):
    data, _ = dump([Tensor(np.zeros(25_000_000, np.float32))])
    path = write_archive(tmp_path / "model.pt", data, {"0": bytes(100_000_000)}, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    assert peak_memory(lambda: refused(path, "compressed")) < 5e6


def test_entries_that_claim_more_than_the_file_are_refused(tmp_path):
    path = save(tmp_path / "model.pt", [Tensor(np.zeros(100, np.float32))])
    content = bytearray(path.read_bytes())
    place = content.index(b"archive/data/0", content.index(b"PK\x01\x02")) - 46
    content[place + 20 : place + 28] = struct.pack("<II", 2**31, 2**31)
    path.write_bytes(content)
    refused(path, "larger than the file")


def test_size_limits(tmp_path, monkeypatch):
    path = save(tmp_path / "model.pt", {"a": "b" * 100})
    read_archive(path)
    monkeypatch.setattr(torch_archive, "MOST_BYTES", 1)
    refused(path, "more than 1.")


def test_old_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "model.pt"
    for content in (b"", b"PK", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", b"hello"):
        path.write_bytes(content)
        refused(path, "not a zip archive", "since version 1.6")
    refused(tmp_path / "absent.pt", "There is no checkpoint")
    refused(tmp_path, "There is no checkpoint")
