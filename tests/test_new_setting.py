"""A new setting takes one edit: a field becomes an option, a keyword, a line of run.toml and part of the page."""

import json
import tomllib
from dataclasses import dataclass, fields

import typer
from starlette.datastructures import QueryParams
from typer.testing import CliRunner

from rindices import OutputSettings, SearchSettings, TableSettings
from rindices.cli.console_and_exits import on_command_line
from rindices.cli.options import with_settings
from rindices.pages.server.page import Desk
from rindices.pages.server.query import form_of, options_of, pairs_of, read_query
from rindices.record import RunSettings, RunTable
from rindices.value_kinds import FLAG, choice, counts, setting, settings_of
from tests.pages.page import missing
from tests.refusal import refused_with


@dataclass(frozen=True)
class MoreSearch(SearchSettings):
    finder: str = setting(
        "surreal-gan", choice("surreal-gan", "linear"), "How patterns are found.", label="Finder", option="finder,way"
    )
    n_looks: tuple[int, ...] | str = setting("auto", counts("auto"), "Looks.", option="looks", label="Looks")
    gentle: bool = setting(False, FLAG, "Be gentle.", label="Gentle")


def call(*words):
    """Return the result of a command with these settings, and the settings it received."""
    got, app = [], typer.Typer()

    def command(*, columns: TableSettings, search: MoreSearch) -> None:
        got.append((columns, search))

    app.command()(with_settings(command))
    return CliRunner().invoke(app, list(words)), got[0] if got else None


def test_it_is_an_option_with_its_help_and_default():
    assert not missing(
        call("--help")[0].output,
        "--finder",
        "How patterns are found.",
        "surreal-gan",
        "--looks",
        "auto",
        "--gentle",
    )
    assert call()[1] == (TableSettings(), MoreSearch())
    _, (columns, search) = call("--finder", "linear", "--looks", "2-4", "--gentle", "--covariates", "hand")
    assert (search.finder, search.n_looks, search.gentle) == ("linear", (2, 3, 4), True)
    assert call("--way", "linear", "--looks", "auto")[1][1] == MoreSearch(finder="linear")
    assert columns.covariates == "hand"  # names may be wildcards, so they are resolved with the table


def test_it_is_a_keyword_and_a_line_of_run_toml():
    assert MoreSearch(n_looks=3).n_looks == (3,)

    class Document(RunSettings):
        training: MoreSearch

    document = Document(table=RunTable(path="people.csv"), training=MoreSearch(finder="linear", n_looks=3))
    training = tomllib.loads(document.text())["training"]
    assert (training["finder"], training["n_looks"], training["gentle"]) == ("linear", [3], False)
    again = Document.model_validate_json(json.dumps(tomllib.loads(document.text())), strict=True)
    assert (again.training, again.fingerprint()) == (document.training, document.fingerprint())
    assert (
        document.fingerprint()
        != Document(table=RunTable(path="people.csv"), training=MoreSearch(n_looks=3)).fingerprint()
    )


def test_it_is_in_the_form_and_the_address_of_the_page(tmp_path):
    desk = Desk(tmp_path, on_command_line, ())
    query = QueryParams("finder=linear&looks=2-4&gentle=yes&covariates=hand&covariates=foot")
    filled = {about.label: value for about, value in form_of(MoreSearch, query)}
    assert (filled["Finder"], filled["Looks"], filled["Gentle"]) == ("linear", "2-4", "yes")
    search, table = read_query(MoreSearch, query, desk), read_query(TableSettings, query, desk)
    assert (search, table) == (
        MoreSearch(finder="linear", n_looks=(2, 3, 4), gentle=True),
        TableSettings(covariates=("hand", "foot")),
    )
    assert pairs_of(table, desk) == [("covariates", "hand"), ("covariates", "foot")]
    assert call(*desk.words("fit", "people.csv", **options_of(search, desk))[2:])[1][1] == search


def test_every_setting_says_what_it_is_and_is_read_with_its_own_remedy():
    refused_with(
        "`n_looks` should be auto, a number such as 3, a list such as 2,3 or a range such as 2-5, but got 'many'",
        MoreSearch,
        n_looks="many",
    )
    for kind in (TableSettings, SearchSettings, OutputSettings):
        assert [one.name for one in settings_of(kind)] == [one.name for one in fields(kind)]
        assert all(one.help for one in settings_of(kind))
