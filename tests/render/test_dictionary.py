from harness.render import dictionary


def test_every_table_column_and_view_has_a_comment() -> None:
    assert dictionary.uncommented(dictionary.read()) == []


def test_a_missing_comment_is_named() -> None:
    table = dictionary.Relation("t", "", (("a", "INTEGER", ""), ("b", "INTEGER", "said")))
    view = dictionary.Relation("v", "", (("a", "INTEGER", ""),), sql="CREATE VIEW ...")
    assert dictionary.uncommented([table, view]) == ["t", "v", "t.a"]


def test_the_page_has_every_table_and_column_and_its_markup_is_escaped() -> None:
    page = dictionary.page()
    for relation in dictionary.read():
        assert f"### {relation.name} " in page
        assert all(f"<code>{column}</code>" in page for column, _, _ in relation.columns)
    assert "model&#x27;s config.json" in page
