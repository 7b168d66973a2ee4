"""The catalogues are whole, fit what the code says, and say it only where a person reads it."""

from __future__ import annotations

import ast
import errno
import gettext
import importlib.util
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from advisor.i18n import (
    LANGUAGES,
    N_,
    SYSTEM_ERRORS,
    LanguageError,
    _,
    asked_language,
    choose,
    count_msg,
    english_page,
    joined,
    language_for,
    msg,
    ngettext,
    settle,
    spoken,
    translate,
    translated_page,
)
from advisor.report.layout import counted, listed
from tests.source_code import modules, nodes_of
from tests.trees import make_tree

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "advisor"
MODULES = modules()


@cache
def load_tool() -> Any:
    spec = importlib.util.spec_from_file_location("translate", ROOT / "docs" / "translate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load_tool()
OTHERS = tuple(TOOL.PLURALS)


def catalogue(language: str) -> Path:
    return PACKAGE / "locale" / language / "LC_MESSAGES" / "advisor.po"


@cache
def parsed(language: str) -> Any:
    return TOOL.parse_po(catalogue(language).read_text())


# -- the catalogues ----------------------------------------------------------------------------------------------------


def test_there_is_a_catalogue_for_each_language_but_english() -> None:
    assert set(OTHERS) == set(LANGUAGES) - {"en"}


def test_everything_in_locale_is_fresh_whole_and_fits() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "translate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run python docs/translate.py\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_has_the_texts_of_the_code_and_no_others(language: str) -> None:
    there = {text for text in parsed(language) if text.singular}
    assert there == set(TOOL.extracted())
    assert len(there) > 400


@pytest.mark.parametrize("language", OTHERS)
def test_the_compiled_catalogue_says_the_same_to_gettext(language: str) -> None:
    with catalogue(language).with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for text, forms in parsed(language).items():
        if text.plural:
            assert {compiled.ngettext(text.singular, text.plural, count) for count in (0, 1, 2, 100)} == set(forms)
        else:
            assert compiled.gettext(text.singular) == forms[0]


@pytest.mark.parametrize("language", OTHERS)
def test_msgfmt_finds_no_fault(language: str, tmp_path: Path) -> None:
    if not shutil.which("msgfmt"):
        pytest.skip("no msgfmt here")
    made = tmp_path / "advisor.mo"
    done = subprocess.run(
        ["msgfmt", "--check", "--check-format", "--no-hash", "-o", str(made), str(catalogue(language))],
        capture_output=True,
        text=True,
        check=False,
    )
    # Who translated last and when is the history's to say.
    found = [line for line in done.stderr.splitlines() if "missing in header" not in line]
    assert (done.returncode, found) == (0, [])
    with made.open("rb") as one, catalogue(language).with_suffix(".mo").open("rb") as other:
        theirs, ours = vars(gettext.GNUTranslations(one)), vars(gettext.GNUTranslations(other))
    assert theirs["_catalog"] == ours["_catalog"]


FAULTS = {
    "missing": ("Files", "", "", "not translated"),
    "another field": ("{count} of {all}", "", "{count} von {alle}", "other fields"),
    "a field less": ("{count} of {all}", "", "{count} von vielen", "other fields"),
    "a blank more": ("by hand:", "", "von Hand: ", "blanks"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_translation_that_does_not_fit_is_named(name: str) -> None:
    singular, plural, translation, phrase = FAULTS[name]
    found = list(TOOL.faults("de", {TOOL.Text(singular, plural): (translation,)}))
    assert len(found) == 1
    assert phrase in found[0]


def test_a_po_file_is_read_as_it_was_written_and_a_fuzzy_entry_is_refused() -> None:
    texts = {TOOL.Text('a "b"\n\\c\t{d}'): ["x.py"], TOOL.Text("{count} file", "{count} files"): ["y.py", "z.py"]}
    known = {
        next(iter(texts)): ('ä "ö"\n\\\t{d}',),
        TOOL.Text("{count} file", "{count} files"): ("{count} D", "{count} Dn"),
    }
    content = TOOL.po_text("de", texts, known)
    assert {text: forms for text, forms in TOOL.parse_po(content).items() if text.singular} == known
    # As other tools fold long texts.
    folded = content.replace('msgstr[0] "{count} D"', 'msgstr[0] ""\n"{count} "\n"D"')
    assert folded != content
    assert TOOL.parse_po(folded) == TOOL.parse_po(content)
    with pytest.raises(ValueError, match="fuzzy"):
        TOOL.parse_po(content.replace("#: x.py", "#: x.py\n#, fuzzy"))


def test_a_mistaken_argument_is_a_usage_error_and_writes_nothing() -> None:
    tool = str(ROOT / "docs" / "translate.py")
    assert subprocess.run([sys.executable, tool, "--chek"], capture_output=True, check=False).returncode == 2


# -- the code ----------------------------------------------------------------------------------------------------------


def imported(path: Path) -> set[str]:
    """What a module takes from advisor.i18n."""
    nodes = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in nodes if node.module == "advisor.i18n" for alias in node.names}


@cache
def translated() -> frozenset[Path]:
    words = {"_", "ngettext", "translate", "translated_page"}
    return frozenset(path for path in MODULES if imported(path) & words)


def test_only_what_prints_translates() -> None:
    """What is data stays English: records, journals, scripts and documents are made below these rooms."""
    assert {path.relative_to(PACKAGE).parts[0] for path in translated()} == {"report", "cli"}
    for path in translated():
        nodes = nodes_of(path)
        if any(isinstance(node, ast.alias) and node.name == "_" for node in nodes):
            names = [node for node in nodes if isinstance(node, ast.Name) and node.id == "_"]
            stored = [name.lineno for name in names if isinstance(name.ctx, ast.Store)]
            assert stored == [], f"{path}: _ is a function here"


@pytest.mark.parametrize("name", ["documents", "encode", "json", "steps", "monitoring"])
def test_what_is_read_by_programs_translates_nothing(name: str) -> None:
    assert PACKAGE / "report" / f"{name}.py" not in translated()


def error_texts(path: Path, errors: frozenset[str]) -> Iterator[ast.expr]:
    """The message and the hint of each error that is made."""
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in errors:
                yield from (*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "hint"))


def test_an_error_is_made_of_templates() -> None:
    """A formatted string has lost its template: no catalogue can have it."""
    errors = load_tool().error_classes(map(nodes_of, MODULES))
    found = [
        f"{path}:{text.lineno}"
        for path in MODULES
        for text in error_texts(path, errors)
        if isinstance(text, ast.JoinedStr)
    ]
    assert found == [], "use advisor.i18n.msg"


def test_a_template_has_the_fields_that_it_is_given() -> None:
    for path in MODULES:
        for node in nodes_of(path):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and name in ("msg", "count_msg") and path.name != "i18n.py":
                for template in node.args[: 2 if name == "count_msg" else 1]:
                    assert isinstance(template, ast.Constant), f"{path}:{node.lineno}"
                    given = {keyword.arg for keyword in node.keywords} | ({"count"} if name == "count_msg" else set())
                    assert {name for _text, name, *_rest in Formatter().parse(str(template.value)) if name} == given


# -- the choice --------------------------------------------------------------------------------------------------------

CHOICES: dict[str, tuple[list[str], Mapping[str, str], bool, str]] = {
    "nothing": (["scan"], {}, True, "en"),
    "the option": (["--lang", "de", "scan"], {"ADVISOR_LANG": "ja"}, False, "de"),
    "with =": (["--lang=ja", "scan"], {}, False, "ja"),
    "the last": (["--lang=ja", "--lang", "de", "scan"], {}, False, "de"),
    "after the command": (["scan", "--lang", "de"], {}, True, "en"),
    "the variable": (["scan"], {"ADVISOR_LANG": "ja"}, False, "ja"),
    "an empty variable": (["scan"], {"ADVISOR_LANG": ""}, True, "en"),
    "the locale": (["scan"], {"LANG": "de_DE.UTF-8"}, True, "de"),
    "the locale by another name": (["scan"], {"LANG": "ja_JP.utf8"}, True, "ja"),
    "the locale in a pipe": (["scan"], {"LANG": "de_DE.UTF-8"}, False, "en"),
    "LC_ALL first": (["scan"], {"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, True, "en"),
    "LC_MESSAGES before LANG": (["scan"], {"LANG": "en_US.UTF-8", "LC_MESSAGES": "de_AT.UTF-8"}, True, "de"),
    "a locale without these letters": (["scan"], {"LANG": "ja_JP.eucJP"}, True, "en"),
    "a locale of another language": (["scan"], {"LANG": "pt_BR.UTF-8"}, True, "en"),
    "the console": (["scan"], {"LANG": "ja_JP.UTF-8", "TERM": "linux"}, True, "en"),
    "the console in German": (["scan"], {"LANG": "de_DE.UTF-8", "TERM": "linux"}, True, "de"),
    "a document": (["--lang", "de", "scan", "--json"], {"ADVISOR_LANG": "ja"}, True, "en"),
    "a plugin": (["--lang", "de", "verify", "--nagios"], {}, False, "en"),
    "metrics": (["verify", "--prometheus=-"], {"ADVISOR_LANG": "de"}, False, "en"),
    "an unknown one": (["--lang", "xx", "scan", "--json"], {}, False, "xx"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_who_chooses_the_language(name: str) -> None:
    arguments, environment, is_terminal, language = CHOICES[name]
    assert language_for(arguments, environment, is_terminal=is_terminal) == language


def test_the_option_is_taken_out_before_the_command_only() -> None:
    assert asked_language(["--lang", "de", "plan", "x", "--lang", "ja"]) == ("de", ["plan", "x", "--lang", "ja"])
    assert asked_language(["--version", "--lang=de"]) == ("de", ["--version"])
    assert asked_language(["--lang"]) == (None, ["--lang"])
    assert asked_language(["--", "--lang", "de"]) == (None, ["--", "--lang", "de"])


@pytest.mark.parametrize("language", ["xx", "", "de-DE", "../de", "DE_at", "pt_BR.UTF-8"])
def test_a_language_without_a_catalogue_is_a_usage_error(language: str) -> None:
    if language == "DE_at":
        with spoken(language):
            assert _("Files") == "Dateien"
        return
    with pytest.raises(LanguageError) as caught:
        choose(language)
    assert caught.value.hint == "languages: en, de, ja"


def test_a_catalogue_that_is_gone_is_an_error_where_it_was_asked_for_and_else_english(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advisor.i18n.LOCALES", tmp_path)
    with spoken("en"):
        settle(["scan"], {"LANG": "de_DE.UTF-8"}, is_terminal=True)
        assert _("Files") == "Files"
        for arguments, environment in ((["--lang", "de"], {}), ([], {"ADVISOR_LANG": "de"})):
            with pytest.raises(LanguageError, match=r"advisor\.mo: No such file"):
                settle(arguments, environment, is_terminal=True)
    damaged = tmp_path / "de" / "LC_MESSAGES" / "advisor.mo"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"nonsense")
    with pytest.raises(LanguageError, match=r"advisor\.mo"):
        choose("de")


def test_what_was_spoken_before_is_spoken_again() -> None:
    with spoken("de"):
        with spoken("ja"):
            assert _("Files") == "ファイル"
        assert _("Files") == "Dateien"
        assert _("no such text") == "no such text"
        assert _("") == ""
    assert _("Files") == "Files"


def test_numbers_and_lists() -> None:
    assert [counted(count, "file") for count in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
    assert listed(("a", "b", "c")) == "a, b and c"
    with spoken("de"):
        assert [counted(count, "file") for count in (0, 1, 2)] == ["0 Dateien", "1 Datei", "2 Dateien"]
        assert listed(("a", "b", "c")) == "a, b und c"
        assert listed(("a",)) == "a"
        assert counted(2, "sheep", "sheep") == "2 sheep"
    with spoken("ja"):
        assert [counted(count, "file") for count in (0, 1, 2)] == [f"ファイル{count}件" for count in (0, 1, 2)]
        assert listed(("a", "b", "c")) == "a、b、c"
        assert ngettext("{count} no such thing", "{count} no such things", 2) == "{count} no such things"


def test_a_message_is_translated_by_its_template() -> None:
    english = msg("{root}: not a directory", root="/x {y}")
    assert english == "/x {y}: not a directory"
    assert translate(english) == english
    with spoken("de"):
        # One that was made before the language was chosen has no template.
        assert translate(english) == english
        assert translate(msg("{root}: not a directory", root="/x {y}")) == "/x {y}: kein Verzeichnis"
        assert translate("advisor status") == "advisor status"
        assert translate("") == ""
        assert translate(N_("was removed")) == "wurde entfernt"


def test_a_message_in_a_field_is_translated_and_a_name_is_not() -> None:
    with spoken("de"):
        why = msg("cannot be read: {why}", why="Permission denied")
        assert translate(why) == "nicht lesbar: Keine Berechtigung"
        found = translate(msg("nothing of this profile applies here: {reason}", reason=why))
        assert found == "nichts von diesem Profil gilt hier: nicht lesbar: Keine Berechtigung"
        assert translate(msg("{root}: not a directory", root="Files")) == "Files: kein Verzeichnis"
        two = joined("; ", (why, N_("was removed")))
        assert translate(two) == "nicht lesbar: Keine Berechtigung; wurde entfernt"


def test_a_counted_message_has_the_form_of_its_number() -> None:
    assert [count_msg("{count} host", "{count} hosts", count) for count in (0, 1, 2)] == [
        "0 hosts",
        "1 host",
        "2 hosts",
    ]
    with spoken("de"):
        made = [msg("capturing {hosts}", hosts=count_msg("{count} host", "{count} hosts", count)) for count in (1, 2)]
        assert [translate(one) for one in made] == ["Erfassung: 1 Host", "Erfassung: 2 Hosts"]


def test_a_message_that_is_not_whole_stays_english() -> None:
    with spoken("de"):
        for reason in ("nobody translates this", msg("nobody translates {what}", what="this")):
            message = msg("nothing of this profile applies here: {reason}", reason=reason)
            assert translate(message) == "nothing of this profile applies here: nobody translates this"
        assert translate("of a journal: {}") == "of a journal: {}"


@pytest.mark.parametrize("language", OTHERS)
def test_a_page_is_in_one_language(language: str) -> None:
    @translated_page
    def inner(message: str) -> str:
        return f"{_('Files')} {translate(message)}"

    @translated_page
    def outer(message: str) -> str:
        return f"{_('Files')} {inner(message)} {counted(2, 'file')}"

    @english_page
    def english() -> str:
        return f"{_('Files')} {inner('was removed')}"

    with spoken(language):
        assert "Files" not in outer("was removed")
        assert outer("was removed by nobody") == "Files Files was removed by nobody 2 files"
        assert english() == "Files Files was removed"
        assert _("Files") != "Files"
    assert outer("was removed") == "Files Files was removed 2 files"


# -- the whole program -------------------------------------------------------------------------------------------------


def advisor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("LANG", "LC_ALL", "LC_MESSAGES")}
    return subprocess.run(
        [sys.executable, "-m", "advisor", *arguments],
        env={**kept, "PYTHONUTF8": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> str:
    files: dict[str, str | bytes] = {
        "/proc/sys/net/core/rmem_max": "212992",
        "/proc/sys/net/core/wmem_max": "212992",
        "/proc/meminfo": "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n",
        "/sys/class/net/lo/mtu": "65536",
    }
    return str(make_tree(tmp_path_factory.mktemp("host") / "host", files))


@pytest.mark.parametrize("arguments", [("scan",), ("plan", "socket-buffers-8m"), ("recommend",), ("limits",)])
def test_a_document_is_the_same_bytes_in_every_language(host: str, arguments: tuple[str, ...]) -> None:
    call = (*arguments, "--json", "--root", host)
    plain = advisor(*call)
    assert json.loads(plain.stdout)
    for language in OTHERS:
        done = advisor("--lang", language, *call, ADVISOR_LANG=language, LANG="de_DE.UTF-8")
        assert untimed(done.stdout) == untimed(plain.stdout)
        assert (done.stderr, done.returncode) == (plain.stderr, plain.returncode)


def untimed(text: str) -> str:
    """Without the time at which the document was made."""
    return re.sub(r'"scanned_at": ?"[^"]*"', "", text)


def test_an_error_s_document_is_english() -> None:
    done = advisor("--lang", "ja", "plan", "no-such-profile", "--json")
    assert json.loads(done.stdout)["error"]["message"] == "there is no profile 'no-such-profile'"


ERRORS: dict[str, tuple[tuple[str, ...], str]] = {
    "no such profile": (("plan", "nothing-such"), "es gibt kein Profil 'nothing-such'\n  Hinweis: Profile: "),
    "no transaction": (("rollback-script", "9999"), "es gibt keine"),
    "no such command": (("pln",), "Kein solcher Befehl: 'pln'. War 'plan'"),
    "no such option": (("scan", "--qqq"), "Keine solche Option: --qqq\n  Hinweis: advisor scan --help sagt"),
    "no command": (("--lang", "de"), "Befehl fehlt\n  Hinweis: advisor --help sagt"),
    "a missing argument": (("plan",), "Argument 'PROFILE…' fehlt"),
    "no value": (("probe", "--mtu"), "Die Option '--mtu' braucht einen Wert"),
    "no number": (("probe", "--mtu", "x"), "--mtu: 'x' ist keine ganze Zahl"),
    "one too many": (("confirm", "a", "b"), "Überzähliges Argument: b"),
    "an option's value": (("scan", "--fail-on", "x"), "--fail-on x: keines von info, advice, warning, critical"),
}


@pytest.mark.parametrize(
    ("language", "words", "said"),
    [
        ("de", ("plan", "./missing.toml"), "missing.toml: Datei oder Verzeichnis nicht gefunden\n"),
        ("ja", ("plan", "./missing.toml"), "missing.toml: そのようなファイルやディレクトリはありません\n"),
        ("de", ("profiles", "lint", "/etc/hosts/x.toml"), "/etc/hosts/x.toml: Ist kein Verzeichnis\n"),
        ("de", ("scan", "--volumes", "/etc"), "/etc: Ist ein Verzeichnis\n"),
    ],
)
def test_what_the_system_refused_is_said_in_the_language_of_the_message(
    language: str, words: tuple[str, ...], said: str
) -> None:
    done = advisor(*words, ADVISOR_LANG=language)
    assert said in done.stderr
    assert done.returncode == 2


def test_an_error_of_the_system_is_translated_in_a_field_and_alone() -> None:
    known = {os.strerror(number) for number in errno.errorcode}
    assert {one for one in SYSTEM_ERRORS if one not in known} == {
        "Name or service not known",
        "Temporary failure in name resolution",
    }
    with spoken("de"):
        assert translate(msg("{path}: {error}", path="x", error=os.strerror(errno.EACCES))) == "x: Keine Berechtigung"
        assert translate(os.strerror(errno.EISDIR)) == "Ist ein Verzeichnis"
        assert translate(msg("{path}: {error}", path="x", error="no route to host")) == "x: Kein Weg zum Zielrechner"
        rare = os.strerror(errno.ELIBSCN)
        assert translate(msg("{path}: {error}", path="x", error=rare)) == f"x: {rare}"


def test_no_message_has_an_error_of_the_system_where_it_is_not_translated() -> None:
    inside = [
        f"{path}:{part.lineno}"
        for path in sorted((ROOT / "advisor").rglob("*.py"))
        if "ansible" not in path.parts  # that is Ansible's own, and English as all of it
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(part, ast.JoinedStr)
        if any(isinstance(one, ast.Attribute) and one.attr == "strerror" for one in ast.walk(part))
    ]
    assert inside == []


@pytest.mark.parametrize("name", ERRORS)
def test_the_commonest_errors(name: str) -> None:
    arguments, start = ERRORS[name]
    done = advisor(*arguments, ADVISOR_LANG="de")
    assert done.stderr.startswith(f"advisor: {start}")
    assert done.returncode == 2
    assert done.stdout == ""


def test_an_unknown_language_changes_nothing_and_names_those_there_are() -> None:
    for done, by in ((advisor("--lang", "xx", "scan"), "--lang"), (advisor("scan", ADVISOR_LANG="xx"), "ADVISOR_LANG")):
        assert done.stderr == f"advisor: {by} xx: no such language\n  hint: languages: en, de, ja\n"
        assert (done.returncode, done.stdout) == (2, "")
    assert json.loads(advisor("--lang", "xx", "scan", "--json").stdout)["error"]["code"] == 2
    after = advisor("scan", "--lang", "de")
    assert "hint: --lang stands before the command: advisor --lang LANGUAGE scan" in after.stderr


def on_terminal(*arguments: str, **environment: str) -> str:
    """What a command prints on a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "advisor", *arguments],
        env={"PATH": os.environ["PATH"], "TERM": "xterm", "PYTHONUTF8": "1", "NO_COLOR": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        printed += part
    os.close(ours)
    process.wait()
    return printed.decode()


def test_a_terminal_speaks_the_locale_s_language(host: str) -> None:
    call = ("plan", "nothing-such", "--root", host)
    assert "es gibt kein Profil 'nothing-such'" in on_terminal(*call, LANG="de_DE.UTF-8")
    assert "プロファイル'nothing-such'はありません" in on_terminal(*call, LC_ALL="ja_JP.UTF-8", LANG="de_DE.UTF-8")
    english = "there is no profile 'nothing-such'"
    assert english in on_terminal(*call, LANG="pt_BR.UTF-8")
    assert english in on_terminal("--lang", "en", *call, LANG="de_DE.UTF-8")
    piped = advisor(*call, LANG="de_DE.UTF-8", LC_ALL="de_DE.UTF-8")
    assert english in piped.stderr


ANSWERS = {("de", "j"): True, ("de", "ja"): True, ("de", "y"): True, ("de", "n"): False, ("de", ""): False} | {
    ("ja", "はい"): True,
    ("ja", "ja"): False,
    ("en", "y"): True,
    ("en", "j"): False,
}


@pytest.mark.parametrize(("language", "answer"), ANSWERS)
def test_a_question_is_answered_in_the_language_it_is_asked_in(language: str, answer: str) -> None:
    code = (
        "import sys\nfrom advisor.cli.change import ask_user\nfrom advisor.errors import RefusedError\n"
        "from advisor.i18n import _, choose\nchoose(sys.argv[1])\n"
        "try:\n    ask_user(_('Apply this?'))\n    print('agreed')\nexcept RefusedError:\n    print('refused')\n"
    )
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, "-c", code, language],
        stdin=theirs,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUTF8": "1"},
        cwd=ROOT,
        check=True,
    )
    os.close(theirs)
    os.close(ours)
    question = {"de": "Das anwenden? [j/N] ", "ja": "適用しますか? [y/N] ", "en": "Apply this? [y/N] "}
    assert done.stderr == question[language]
    assert done.stdout == ("agreed\n" if ANSWERS[language, answer] else "refused\n")


def test_english_loads_nothing_for_this() -> None:
    code = (
        "import sys\nimport advisor.i18n\nassert 'gettext' not in sys.modules\nfrom advisor.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(f\"\\n{'gettext' in sys.modules}\")\n"
    )
    for language, is_loaded in (("en", "False"), ("de", "True")):
        call = [sys.executable, "-c", code, "--lang", language, "plan", "no-such-profile"]
        done = subprocess.run(call, capture_output=True, text=True, cwd=ROOT, check=True)
        assert done.stderr.splitlines()[-1] == is_loaded
