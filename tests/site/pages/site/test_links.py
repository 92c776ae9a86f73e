"""Detection of broken links."""

from __future__ import annotations

from pathlib import Path

from tests.site.pages.site.links import broken_links, documents

FOLD = '<details id="box-copy" data-fragment="data/list.html"></details>'


def test_link_is_valid_if_its_file_and_id_exist(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "list.html").write_text('<p id="box-copy-fast"></p><a href="a.csv">')
    alive = ["", "#it", "data/list.html#box-copy-fast", "#box-copy-fast", "https://elsewhere/"]
    broken = ["#box-copy-slow", "other/", "data/list.html#it"]
    links = "".join(f'<a href="{link}"></a>' for link in alive + broken)
    (tmp_path / "index.html").write_text(f'<p id="it">{links}</p>{FOLD}')
    found = broken_links(tmp_path, documents(tmp_path))
    assert found == ["data/list.html: a.csv", *(f"index.html: {link}" for link in broken)]
