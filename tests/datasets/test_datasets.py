"""The eight sets by name: from a folder, from archives behind a server, from the cache, and what is said where they fail."""

from __future__ import annotations

import csv
import io
import os
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest
from places import ROOT, SHARED
from pydantic import ValidationError
from waiting import PATIENCE

import octsvm
from octsvm import datasets
from octsvm.datasets import catalogue, convert, fetch
from octsvm.errors import DatasetUnavailable, InvalidData, InvalidParameter

SETS = ("australian", "breastcancer", "heart", "ionosphere", "monks", "parkinson", "sonar", "wholesale")
FOLDER = SHARED / "data"
here = pytest.mark.skipif(not FOLDER.is_dir(), reason="the real data sets are not here (../shared/data)")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the user's settings nor a proxy; no waiting before another try."""
    for name in ("OCTSVM_DATA", "OCTSVM_UCI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)


def members(name: str) -> dict[str, bytes]:
    """The original's files."""
    return {m: (FOLDER / "raw" / m).read_bytes() for m in datasets.info(name).original.members}


def zipped(content: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Index", "an archive holds other files, too")
        for name, data in content.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def place(site: Path, name: str) -> Path:
    about = datasets.info(name)
    file = site / "static" / "public" / str(about.uci_id) / about.original.archive
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


class Handler(SimpleHTTPRequestHandler):
    """Files of a folder, and a list of what was asked for."""

    asked: list[str]
    answer: Callable[[Handler], bool] = staticmethod(lambda handler: False)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if not self.answer(self):
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


class Server:
    """A server on loopback with UCI's paths."""

    def __init__(self, site: Path) -> None:
        self.site = site
        self.handler = type("Own", (Handler,), {"asked": []})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), partial(self.handler, directory=str(site)))
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.asked: list[str] = self.handler.asked


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    site = tmp_path / "site"
    site.mkdir()
    found = Server(site)
    thread = threading.Thread(target=found.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield found
    found.http.shutdown()
    found.http.server_close()
    thread.join()


# ------------------------------------------------------------------------------------------------- catalogue


def test_the_names_are_those_of_the_paper() -> None:
    assert datasets.names() == SETS
    assert octsvm.datasets is datasets
    assert "datasets" in dir(octsvm)


def test_importing_octsvm_loads_no_data_sets() -> None:
    code = "import sys, octsvm; print('octsvm.datasets' in sys.modules); octsvm.datasets.names(); print('pooch' in sys.modules)"
    root = ROOT
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == "False\nFalse\n", done.stderr


@here
def test_the_catalogue_agrees_with_the_list_of_the_ready_files() -> None:
    with (FOLDER / "datasets.csv").open(newline="") as lines:
        listed = {row["name"]: row for row in csv.DictReader(lines)}
    assert set(listed) == set(datasets.names())
    for name, row in listed.items():
        about = datasets.info(name)
        assert [str(v) for v in (about.n, about.p, about.positive, about.negative)] == [
            row[k] for k in ("n", "p", "pos", "neg")
        ]
        assert (about.sha256, about.uci_id) == (row["sha256"], int(row["uci_id"]))


@pytest.mark.parametrize("name", SETS)
def test_facts_agree_with_the_page_on_citing(root: Path, name: str) -> None:
    text = (root / "docs" / "citing.md").read_text(encoding="utf-8")
    about = datasets.info(name)
    assert f"| `{name}` | {about.title}, [UCI {about.uci_id}]({about.page}) | {about.n} × {about.p} |" in text
    entry = text.split(f"@misc{{uci_{name},")[1].split("\n}")[0]
    assert (f"doi = {{{about.doi}}}" in entry) if about.doi else ("doi" not in entry)
    assert (f"note = {{{about.licence}}}" in entry) if about.licence else ("note" not in entry)


def test_unknown_name() -> None:
    for call in (datasets.info, datasets.load):
        with pytest.raises(
            InvalidParameter, match=r"no data set 'hart'; there are australian.*mean 'heart'\?"
        ):
            call("hart")
    with pytest.raises(InvalidParameter, match="no data set 3"):
        datasets.info(3)  # type: ignore[arg-type]


def test_the_catalogue_is_validated() -> None:
    raw = datasets.info("heart").model_dump()
    for change, message in (
        ({"positive": 121}, "121 and 150 rows are not 270"),
        ({"p": 12}, "13 features are named, and p is 12"),
        ({"sha256": "abc"}, "sha256"),
        ({"colour": "red"}, "colour"),
        ({"original": raw["original"] | {"label": "clas"}}, "the original has no column clas"),
    ):
        with pytest.raises(ValidationError, match=message):
            catalogue.DatasetInfo.model_validate(raw | change)


# -------------------------------------------------------------------------------------------------- a folder


@here
@pytest.mark.parametrize("name", SETS)
def test_from_a_folder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTSVM_DATA", str(FOLDER))
    found = datasets.load(name)
    about = datasets.info(name)
    assert found.name == name
    assert found.info is about
    assert found.X.shape == (about.n, about.p)
    assert tuple(found.X.columns) == about.features
    assert found.y.name == "label"
    assert found.y.value_counts().to_dict() == {1: about.positive, -1: about.negative}
    assert all(kind.kind in "if" for kind in found.X.dtypes)
    assert not found.X.isna().any(axis=None)
    whole = pd.read_csv(FOLDER / f"{name}.csv")
    pd.testing.assert_frame_equal(found.X, whole.drop(columns="label"))
    pd.testing.assert_series_equal(found.y, whole["label"])


@here
def test_line_ends_of_another_system_do_no_harm(tmp_path: Path) -> None:
    content = (FOLDER / "heart.csv").read_bytes().replace(b"\n", b"\r\n")
    (tmp_path / "heart.csv").write_bytes(content)
    assert datasets.load("heart", tmp_path).X.shape == (270, 13)


@here
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("70.0", "70", 1), "size, names and counts are right, but some values"),
        (
            lambda t: t[: t[:-1].rfind("\n") + 1],
            "269 rows, expected 270; 119 rows with label 1, expected 120",
        ),
        (
            lambda t: t.replace(",1\n", ",-1\n", 1),
            "119 rows with label 1, expected 120; 151 rows with label -1",
        ),
        (lambda t: t.replace("age,", "years,", 1), "column 1 is called 'years', expected 'age'"),
        (lambda t: t.replace("thal,label", "thal,y", 1), "the last column is 'y', expected 'label'"),
        (lambda t: "\n".join(line.partition(",")[2] for line in t.splitlines()), "12 features, expected 13"),
        (lambda t: "", "it cannot be read as CSV"),
        (lambda t: 'a,"b\n1,2\n', "it cannot be read as CSV"),
    ],
)
def test_another_table_is_refused(tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    text = (FOLDER / "heart.csv").read_text()
    assert text.splitlines()[-1].endswith(",1")
    (tmp_path / "heart.csv").write_text(change(text), newline="")
    with pytest.raises(InvalidData) as refused:
        datasets.load("heart", tmp_path)
    assert message in str(refused.value)
    assert "heart.csv" in str(refused.value)


def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameter, match=r"data_dir='.*nowhere' is no folder"):
        datasets.load("heart", str(tmp_path / "nowhere"))
    monkeypatch.setenv("OCTSVM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InvalidParameter, match=r"OCTSVM_DATA=.*nowhere is no folder"):
        datasets.load("heart")


# ------------------------------------------------------------------------------------------------------- UCI


@here
@pytest.mark.parametrize("name", SETS)
def test_the_original_leads_to_the_ready_file_digit_for_digit(name: str) -> None:
    made = convert.to_csv(members(name), name, datasets.info(name))
    assert made == (FOLDER / f"{name}.csv").read_bytes()


@here
@pytest.mark.parametrize("name", SETS)
def test_from_uci_and_then_from_the_cache(name: str, server: Server, tmp_path: Path) -> None:
    content = members(name)
    if name == "parkinson":  # as UCI serves it
        content = {k: v.replace(b"\n", b"\r\n") for k, v in content.items()}
    place(server.site, name).write_bytes(zipped(content))
    cache = tmp_path / "cache"
    found = datasets.load(name, base_url=server.url + "/", cache_dir=cache)
    ready = datasets.load(name, FOLDER)
    pd.testing.assert_frame_equal(found.X, ready.X)
    pd.testing.assert_series_equal(found.y, ready.y)
    about = datasets.info(name)
    assert server.asked == [f"/static/public/{about.uci_id}/{about.original.archive}"]
    assert [f.name for f in cache.iterdir()] == [about.original.archive]
    again = datasets.load(name, base_url="http://127.0.0.1:9", cache_dir=cache)
    pd.testing.assert_frame_equal(again.X, ready.X)
    assert len(server.asked) == 1


@here
def test_environment_names_the_server_and_an_empty_folder_is_passed_over(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCTSVM_UCI", server.url)
    monkeypatch.setenv("OCTSVM_DATA", str(tmp_path))
    place(server.site, "heart").write_bytes(zipped(members("heart")))
    assert datasets.load("heart", cache_dir=tmp_path / "cache").X.shape == (270, 13)


@here
def test_a_damaged_file_in_the_cache_is_fetched_again(server: Server, tmp_path: Path) -> None:
    good = zipped(members("heart"))
    place(server.site, "heart").write_bytes(good)
    kept = tmp_path / datasets.info("heart").original.archive
    kept.write_bytes(good[: len(good) // 2])
    assert datasets.load("heart", base_url=server.url, cache_dir=tmp_path).X.shape == (270, 13)
    assert kept.read_bytes() == good


@here
def test_a_connection_that_breaks_off_once_is_tried_again(server: Server, tmp_path: Path) -> None:
    good = zipped(members("heart"))
    place(server.site, "heart").write_bytes(good)

    def answer(handler: Handler) -> bool:
        if len(handler.asked) > 1:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(good)))
        handler.end_headers()
        handler.wfile.write(good[:1000])
        return True

    server.handler.answer = staticmethod(answer)
    assert datasets.load("heart", base_url=server.url, cache_dir=tmp_path).X.shape == (270, 13)
    assert len(server.asked) == 2


def refused(url: str, cache: Path, name: str = "heart") -> str:
    """The message, which always says what can be done; nothing wrong stays in the cache."""
    with pytest.raises(DatasetUnavailable) as caught:
        datasets.load(name, base_url=url, cache_dir=cache)
    assert caught.value.__cause__ is None
    message = str(caught.value)
    archive = datasets.info(name).original.archive
    for part in (url, str(cache / archive), "data_dir=", "OCTSVM_DATA", datasets.info(name).page):
        assert part in message
    assert not cache.exists() or not list(cache.iterdir())
    return message


def test_the_server_refuses(server: Server, tmp_path: Path) -> None:
    assert "the server answered 404" in refused(server.url, tmp_path / "cache")
    assert len(server.asked) == 1 + fetch.RETRIES


def test_no_network(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # it listens to nobody
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert "there is no connection to the server, or" in refused(url, tmp_path / "cache")


def test_a_server_that_says_nothing(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TIMEOUT", 0.05)
    monkeypatch.setattr(fetch, "RETRIES", 0)
    done = threading.Event()
    server.handler.answer = staticmethod(lambda handler: done.wait(PATIENCE))
    try:
        assert "did not answer within 0.05 seconds" in refused(server.url, tmp_path / "cache")
    finally:
        done.set()


def test_an_answer_that_is_no_archive(server: Server, tmp_path: Path) -> None:
    place(server.site, "heart").write_text("<html>We are moving house.</html>")
    assert "it is no whole zip archive (33 bytes" in refused(server.url, tmp_path / "cache")


@here
def test_a_truncated_archive(server: Server, tmp_path: Path) -> None:
    place(server.site, "heart").write_bytes(zipped(members("heart"))[:2000])
    assert "it is no whole zip archive (2000 bytes" in refused(server.url, tmp_path / "cache")


@here
def test_an_archive_with_damaged_bytes(server: Server, tmp_path: Path) -> None:
    content = bytearray(zipped(members("heart")))
    middle = len(content) // 2
    content[middle : middle + 8] = bytes(8)
    place(server.site, "heart").write_bytes(content)
    assert "it is no whole zip archive" in refused(server.url, tmp_path / "cache")


@here
def test_another_content(server: Server, tmp_path: Path) -> None:
    content = members("heart")
    content["heart.dat"] = content["heart.dat"].replace(b"70.0", b"71.0", 1)
    place(server.site, "heart").write_bytes(zipped(content))
    message = refused(server.url, tmp_path / "cache")
    assert "its member 'heart.dat' (16461 bytes) is not the file that is known" in message
    assert datasets.info("heart").original.members["heart.dat"] in message


@here
def test_line_ends_count_where_the_original_is_known_to_the_byte(server: Server, tmp_path: Path) -> None:
    content = {k: v.replace(b"\n", b"\r\n") for k, v in members("heart").items()}
    place(server.site, "heart").write_bytes(zipped(content))
    assert "is not the file that is known" in refused(server.url, tmp_path / "cache")


@here
def test_a_member_that_is_missing(server: Server, tmp_path: Path) -> None:
    content = members("monks")
    del content["monks-2.train"]
    place(server.site, "monks").write_bytes(zipped(content))
    assert "it has no member 'monks-2.train'" in refused(server.url, tmp_path / "cache", "monks")


def test_a_cache_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetUnavailable, match=r"the cache .* cannot be used"):
        datasets.load("heart", base_url="http://127.0.0.1:9", cache_dir=tmp_path / "file")


def test_an_original_that_leads_elsewhere() -> None:
    about = datasets.info("heart")
    row = " ".join(["1.0"] * 13)
    with pytest.raises(DatasetUnavailable, match="another table than the known one: 1 rows"):
        convert.to_csv({"heart.dat": f"{row} 2\n".encode()}, "heart", about)
    for broken in (f"{row}\n", f"{row} 3\n"):  # a field too few; a class that is not known
        with pytest.raises(DatasetUnavailable, match="original of heart cannot be read as expected"):
            convert.to_csv({"heart.dat": broken.encode()}, "heart", about)
