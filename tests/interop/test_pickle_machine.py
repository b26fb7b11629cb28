import pickle
import struct

import pytest

from rindices.interop.torch_archive import read_archive
from tests.interop.archives import peak_memory, refused, write_archive


def _texts(*words):
    return b"".join(b"\x8c" + bytes([len(word)]) + word for word in words)


# Each would make a file `marker` if it were run by Python's own reader.
def hostile_pickles(marker):
    touch = f"touch {marker}".encode()
    text = b"X" + struct.pack("<I", len(touch)) + touch
    code = f"open({str(marker)!r}, 'w').close()".encode()
    source = b"X" + struct.pack("<I", len(code)) + code
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
    return {
        "GLOBAL": (b"\x80\x02cos\nsystem\n" + text + b"\x85R.", "os.system"),
        "STACK_GLOBAL": (b"\x80\x04" + _texts(b"posix", b"system") + b"\x93" + text + b"\x85R.", "posix"),
        "eval": (b"\x80\x02cbuiltins\neval\n" + source + b"\x85R.", "builtins.eval"),
        "dotted": (b"\x80\x04" + _texts(b"collections", b"OrderedDict.fromkeys") + b"\x93.", "collections"),
        "INST": (b"(" + text + b"ios\nsystem\n.", "INST (os system)"),
        "OBJ": (b"(cos\nsystem\n" + text + b"o.", "os.system"),
        "OBJ of a known name": (b"(ccollections\nOrderedDict\no.", "OBJ"),
        "NEWOBJ": (b"\x80\x02csubprocess\nPopen\n" + text + b"\x85\x81.", "subprocess.Popen"),
        "NEWOBJ of a known name": (b"\x80\x02cnumpy\nndarray\n(K\x01t\x85\x81.", "NEWOBJ"),
        "NEWOBJ_EX": (b"\x80\x04cnumpy\nndarray\n)}\x92.", "NEWOBJ_EX"),
        "EXT": (b"\x80\x02\x82\x01.", "EXT1"),
        "partial": (b"\x80\x02cfunctools\npartial\n.", "functools.partial"),
        "getattr": (b"\x80\x02cbuiltins\ngetattr\n.", "builtins.getattr"),
        "numpy function": (b"\x80\x02cnumpy\nload\n" + text + b"\x85R.", "numpy.load"),
        "numpy test runner": (b"\x80\x02cnumpy.testing._private.utils\nrunstring\n.", "runstring"),
        "torch function": (b"\x80\x02ctorch\nload\n" + text + b"\x85R.", "torch.load"),
        "call of a storage type": (b"\x80\x02ctorch\nFloatStorage\n)R.", "torch.FloatStorage"),
        "call of an array type": (b"\x80\x02cnumpy\nndarray\n)R.", "numpy.ndarray"),
        "call of text": (b"\x80\x02" + text + b")R.", "call a str"),
        "BUILD of a list": (b"\x80\x02]}b.", "state of a list"),
        "BUILD of a name": (b"\x80\x02ccollections\nOrderedDict\n}b.", "state of a Name"),
        "BUILD with a list": (b"\x80\x02ccollections\nOrderedDict\n)R]b.", "state of a dict"),
        "objects": (array + b"(K\x01(K\x01tcnumpy\ndtype\n(X\x02\x00\x00\x00O8\x89\x88tR\x89](" + text + b"etb.", "O8"),
        "structure": (b"cnumpy\ndtype\n(X\x03\x00\x00\x00V16\x89\x88tR.", "V16"),
        "fields": (
            b"cnumpy\ndtype\n(X\x02\x00\x00\x00f8\x89\x88tR(K\x03X\x01\x00\x00\x00<N)}J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb.",
            "state of a",
        ),
        "codec": (b"c_codecs\nencode\n(" + text + b"X\x03\x00\x00\x00zip\x74R.", "_codecs.encode"),
        "PERSID": (b"P../../secret\n.", "PERSID"),
        "tuple as key": (b"\x80\x02}K\x01\x85K\x02s.", "tuple as key"),
        "dictionary of an array": (array + b"K\x01K\x02s.", "puts items"),
        "append to an array": (array + b"K\x01a.", "puts items"),
    }  # fmt: skip


@pytest.mark.parametrize("route", ["GLOBAL", "STACK_GLOBAL", "eval", "INST", "OBJ"])
def test_the_hostile_pickles_are_hostile(tmp_path, route):
    marker = tmp_path / "marker"
    pickle.loads(hostile_pickles(marker)[route][0])
    assert marker.exists()


@pytest.mark.parametrize("route", hostile_pickles("x"))
def test_nothing_in_a_pickle_is_run(tmp_path, route):
    marker = tmp_path / "marker"
    data, word = hostile_pickles(marker)[route]
    refused(write_archive(tmp_path / "model.pt", data), word, "Nothing in it was run")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("data", "word"),
    {
        "empty": (b"", "damaged"),
        "no end": (b"\x80\x02}", "damaged"),
        "after the end": (b"\x80\x02}.}", "after the end"),
        "stack empty": (b"\x80\x02.", "truncated"),
        "mark left": (b"\x80\x02(}.", "truncated"),
        "below the mark": (b"\x80\x02}(K\x01s.", "damaged"),
        "no such memo": (b"\x80\x02h\x07.", "damaged"),
        "odd pairs": (b"\x80\x02}(K\x01u.", "damaged"),
        "long text": (b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc.", "damaged"),
        "long bytes": (b"B\xff\xff\xff\x7fabc.", "damaged"),
        "not an instruction": (b"\xff.", "damaged"),
    }.values(),
)
def test_damaged_pickles_are_refused(tmp_path, data, word):
    refused(write_archive(tmp_path / "model.pt", data), word)


def test_far_memo_does_not_reserve_memory(tmp_path):
    path = write_archive(tmp_path / "model.pt", b"\x80\x02}r\xff\xff\xff\x7f.")
    assert peak_memory(lambda: read_archive(path)) < 10e6


def test_deep_and_shared_containers_do_no_harm(tmp_path):
    doubled = b"\x80\x02)" + b"".join(b"q\x00h\x00\x86" for _ in range(60))
    for data in (b"]" * 200_000 + b"a" * 199_999 + b".", b")" + b"\x85" * 300_000 + b"."):
        read_archive(write_archive(tmp_path / "deep.pt", data))
    for ending in (b"cnumpy\ndtype\nh\x00\x85R.", b"h\x00\x93.", b"Q.", b"}b.", b"0ccollections\nOrderedDict\nh\x00R."):
        refused(write_archive(tmp_path / "wide.pt", doubled + ending))


def test_too_many_instructions_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("rindices.interop.torch_archive.MOST_INSTRUCTIONS", 100)
    refused(write_archive(tmp_path / "model.pt", b"\x80\x02" + b"N0" * 60 + b"N."), "more than 100 instructions")


def test_text_cannot_be_made_into_bytes_again_and_again(tmp_path):
    text = b"X" + struct.pack("<I", 1 << 22) + b"a" * (1 << 22) + b"q\x00"
    again = b"c_codecs\nencode\n(h\x00X\x06\x00\x00\x00latin1tR"
    path = write_archive(tmp_path / "model.pt", b"(" + text + again * 5_000 + b"t.")
    assert peak_memory(lambda: refused(path, "bytes of text")) < 200e6
