"""Workflow templates: `--set`, default values, rendering, line positions and faults."""

from __future__ import annotations

import resource

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie.document.located import load
from coterie.errors import Fault, SpecErrors
from coterie.frontends.template import worker
from coterie.frontends.template.render import RenderedText, render
from tests.frontends.workflow.samples import refusal
from tests.random_examples import examples


def rendered(text: str, *sets: str, strings: tuple[str, ...] = ()) -> RenderedText:
    return render(text, "w.yaml", sets, strings)


def faults_of(text: str, *sets: str) -> tuple[Fault, ...]:
    with pytest.raises(SpecErrors) as caught:
        rendered(text, *sets)
    return caught.value.faults


def value_of(expression: str, *sets: str, strings: tuple[str, ...] = (), defaults: str = "{}") -> object:
    text = f"default-values: {defaults}\nworkflow:\n  a: {{{{ {expression} }}}}\n"
    return load(rendered(text, *sets, strings=strings).text, "w").data["workflow"]["a"]


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("a=1", 1),
        ("a=-1", -1),
        ("a=1.5", 1.5),
        ("a=1e3", 1000.0),
        ("a=x", "x"),
        ("a=b=c", "b=c"),
        ("a=nan", "nan"),
        ("a=1_000", "1_000"),
    ],
)
def test_set_takes_whole_numbers_then_numbers_then_text(pair: str, value: object) -> None:
    assert value_of("a", pair) == value
    assert value_of("a is string", pair) == isinstance(value, str)


def test_set_string_takes_text() -> None:
    assert value_of("a is string", strings=("a=1",)) is True
    assert value_of("a", strings=("a=b=c",)) == "b=c"


def test_an_empty_value_is_empty_text() -> None:
    assert value_of("a is string", "a=") is True


def test_dotted_names_set_nested_values_and_leave_their_neighbours() -> None:
    defaults = "{m: &m {x: 1, y: 2}, n: *m}"
    assert value_of("[m.x, m.y, n.x]", "m.x=5", defaults=defaults) == [5, 2, 1]
    assert value_of("p.q.r", "p.q.r=7") == 7


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("a", '"a" is not a name, "=" and a value'),
        ("=1", '"" is not a variable name'),
        (".".join("a" * 2000) + "=1", "a name has 2,000 parts, and at most 32 are allowed"),
        ("1a=1", '"1a" is not a variable name'),
        ("a..b=1", '"a..b" is not a variable name'),
        ("n.x=1", '"n" is a single value'),
    ],
)
def test_a_bad_set_is_a_fault_that_names_the_option(pair: str, message: str) -> None:
    (fault,) = faults_of("default-values: {n: 1}\nworkflow: {a: '{{ n }}'}\n", pair)
    assert message in fault.message
    assert fault.message.startswith("--set: ")
    assert fault.place is not None
    assert fault.place.file == f"--set {pair}"


def test_tokens_without_spaces_are_kept() -> None:
    text = "workflow:\n  a: '{{uuid}} {{workflow_id}} {{output}} {{input:0}} {{host:lead}} {{ n }}'\n"
    assert "{{uuid}} {{workflow_id}} {{output}} {{input:0}} {{host:lead}} 3" in rendered(text, "n=3").text


def test_tokens_survive_filters_loops_and_raw_blocks() -> None:
    text = "a: {% filter upper %}x{{uuid}}{% endfilter %}{% raw %}{{output}}{{ z }}{% endraw %}\n"
    assert rendered(text).text == "a: X{{uuid}}{{output}}{{ z }}\n"


def test_text_without_templates_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("a process was started"))
    found = rendered("workflow:\n  a: '{{output}}'\ndefault-values: {n: 1}\n")
    assert load(found.text, "w").data == {"workflow": {"a": "{{output}}"}}


@pytest.mark.parametrize("name", ["output", "uuid", "workflow_id"])
def test_a_token_with_spaces_is_an_undefined_variable_and_the_hint_spells_the_token(name: str) -> None:
    (fault,) = faults_of(f"workflow:\n  a: '{{{{ {name} }}}}'\n")
    assert fault.message == f'"{name}" is not defined'
    assert f"{{{{{name}}}}}" in fault.hint


def test_a_token_with_spaces_that_is_no_template_is_explained_too() -> None:
    (fault,) = faults_of("workflow:\n  a: '{{ host:lead }}'\n")
    assert "{{host:lead}}" in fault.hint


def test_a_token_name_with_a_default_is_a_variable() -> None:
    assert value_of("output", defaults="{output: here}") == "here"


def test_all_undefined_variables_are_named_with_place_and_suggestion() -> None:
    text = "workflow:\n  a: {{ wrokers }}\n  b: {{ x.y }} {{ workers }}\n  c: {{ z | default(1) }} {{ q is defined }}\n"
    first, second = faults_of(text, "workers=2")
    assert first.message == '"wrokers" is not defined'
    assert 'Variables are: workers. Did you mean "workers"?' in first.hint
    assert first.place is not None
    assert (first.place.line, first.place.column, first.place.length) == (2, 9, 7)
    assert first.place.frame == ((1, "workflow:"), (2, "  a: {{ wrokers }}"))
    assert second.message == '"x" is not defined'
    assert second.place is not None
    assert second.place.line == 3


def test_a_missing_attribute_is_named() -> None:
    (fault,) = faults_of("default-values: {n: {m: 1}}\nworkflow:\n  a: {{ n.k }}\n")
    assert "'k'" in fault.message
    assert fault.place is not None
    assert fault.place.line == 3


def test_indented_default_values_are_the_hint_when_a_variable_is_missing() -> None:
    (fault,) = faults_of("workflow:\n  default-values: {n: 1}\n  a: {{ n }}\n")
    assert "default-values is indented" in fault.hint


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("default-values: [1]\nworkflow: {}\n", "must be a mapping", 1),
        ("workflow: {}\ndefault-values:\n  a: [1\n", "not valid YAML", 3),
        ("default-values: {}\nworkflow: {}\ndefault-values: {}\n", "given twice", 3),
        ("workflow:\n  a: {{ n\n", "not a valid template", 2),
        ("workflow:\n  a: {% if x %}\n", "not a valid template", 2),
        ("workflow:\n  a: ${#list[@]}\n", "not a valid template", 2),
        ("workflow:\n  a: {{ 1/0 }}\n", "ZeroDivisionError", 2),
        ("workflow:\n  a: {{ " + "(" * 5000 + "1" + ")" * 5000 + " }}\n", "nested too deeply", 2),
    ],
)
def test_bad_templates_are_faults_with_a_place(text: str, message: str, line: int) -> None:
    (fault,) = faults_of(text)
    assert message in fault.message
    assert fault.place is not None
    assert fault.place.line == line
    assert fault.hint


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__",
        "''.__class__.__mro__[1].__subclasses__()",
        "lipsum.__globals__",
        "cycler.__init__.__globals__.os",
    ],
)
def test_the_sandbox_lets_nothing_out(expression: str) -> None:
    (fault,) = faults_of(f"workflow:\n  a: 1\n  b: {{{{ {expression} }}}}\n")
    assert "uses something that is not allowed" in fault.message
    assert fault.place is not None
    assert fault.place.line == 3


# Ways out of a template: attributes of Python's own, by every way to name one, and changes of values.
ESCAPES = [
    "''.__class__",
    "''.__class__.__mro__[1].__subclasses__()",
    "''['__class__']",
    "''|attr('__class__')",
    "''|attr('__cl' ~ 'ass__')",
    "''|attr('\\x5f\\x5fclass\\x5f\\x5f')",
    "(1).__class__.__base__",
    "[].__class__.__base__.__subclasses__()",
    "().__class__.__bases__[0]",
    "{}.__class__.__mro__",
    "true.__class__",
    "none.__class__",
    "value.__class__",
    "value|attr('__init__')",
    "value.__init__.__globals__",
    "value.keys.__self__.__class__",
    "lipsum.__globals__",
    "lipsum['__globals__']",
    "lipsum|attr('__globals__')",
    "lipsum.__globals__.os.popen('id').read()",
    "lipsum.__code__",
    "lipsum.__builtins__",
    "cycler.__init__.__globals__.os",
    "cycler('a').next.__func__.__globals__",
    "joiner.__init__.__globals__",
    "namespace.__init__.__globals__",
    "namespace().__class__",
    "range.__class__",
    "range(1).__class__.__mro__",
    "dict.mro()",
    "dict.__subclasses__()",
    "dict(a=1).__class__",
    "self.__init__.__globals__",
    "self._TemplateReference__context",
    "self._TemplateReference__context.environment",
    "self.__class__",
    "'{0.__class__}'.format(1)",
    "'{a.__class__.__mro__}'.format_map({'a': 1})",
    "'%s'|format(''.__class__)",
    "('{0.__class__.__init__}'|string).format(value)",
    "[value]|selectattr('__class__')|list",
    "[value]|sum(attribute='__class__')",
    "[value]|sort(attribute='__class__.__mro__')",
    "[value]|map(attribute='__init__.__globals__')|join",
    "value.update({'a': 2})",
    "[1].append(2)",
    "loop.__class__",
]
# Names of Python that a template does not know.
UNKNOWN = ["environ", "open('/etc/passwd').read()", "__import__('os')", "eval('1')"]


@pytest.mark.parametrize("expression", ESCAPES)
def test_no_way_out_of_the_sandbox_is_open(expression: str) -> None:
    assert _kind(expression) == "security"


@pytest.mark.parametrize("expression", UNKNOWN)
def test_a_template_knows_no_functions_of_python(expression: str) -> None:
    assert _kind(expression) == "undefined"


def _kind(expression: str) -> str:
    """Return why the worker does not render an expression; in this process, since there are many of them."""
    request = {"template": f"{{{{ {expression} }}}}", "variables": {"value": {"k": 1}}, "output": 1000}
    answer = worker.render(worker.sandbox(), request)
    return str(answer["error"][0]["kind"]) if "error" in answer else f"it renders {answer['text']}"


@pytest.mark.slow("lets templates run into their limits of time and memory")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "takes too long"),
        ("{{ 7 ** (10 ** 9) }}", "takes too long"),
        ("{{ 'a' * 10 ** 10 }}", "too much memory"),
        (
            "{% set n = namespace(s='a') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
            "too much memory",
        ),
        ("{{ 'a' * 10 ** 7 }}", "too much text"),
        ("{% for i in range(9999) %}{{ 'a' * 9999 }}{% endfor %}", "too much text"),
    ],
)
def test_bombs_end_in_a_clear_fault_within_the_limits(body: str, message: str) -> None:
    started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    (fault,) = faults_of(f"workflow:\n  a: {body}\n")
    assert message in fault.message
    assert fault.place is not None
    assert fault.place.line == 2
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - started < 20


def test_places_point_into_the_users_file_when_lines_stay_where_they_were() -> None:
    text = "default-values:\n  n: 3\nworkflow:\n  a: {{ n }}\n  b: 1\n"
    found = rendered(text)
    assert (found.file, found.shown) == ("w.yaml", text)
    place = load(found.text, found.file, shown=found.shown).place(("workflow", "a"))
    assert place.frame == ((3, "workflow:"), (4, "  a: {{ n }}"))


@pytest.mark.parametrize(
    "body",
    [
        "{% for i in range(2) %}\n  a{{ i }}: 1\n{% endfor %}\n  b: 1\n",
        "{% if false %}\n  a: 1\n  b: 1\n{% endif %}{{ '\n\n' }}\n  c: 1\n",
    ],
)
def test_places_speak_of_the_users_lines_when_lines_moved(body: str) -> None:
    text = f"workflow:\n{body}"
    found = rendered(text)
    last = body.split(": 1\n")[-2][-1]
    place = load(found.text, found.file, shown=found.shown, origins=found.origins).place(("workflow", last))
    assert (place.file, place.frame[-1]) == ("w.yaml", (text.count("\n"), f"  {last}: 1"))


def test_a_line_that_a_value_brings_is_one_of_the_rendered_text() -> None:
    found = rendered("workflow:\n{{ '  a: 1\n  b: 2\n' }}\n  c: 3\n")
    document = load(found.text, found.file, shown=found.shown, origins=found.origins)
    assert [document.place(("workflow", key)).file for key in "abc"] == ["w.yaml (rendered)"] * 2 + ["w.yaml"]


def test_a_template_that_looks_at_its_own_text_is_traced_no_further() -> None:
    """Marks in the lines would change what it counts, so its lines count in the rendered text."""
    found = rendered("{% set x %}ab\n{% endset %}\nworkflow: {a: {{ x | length }}}\n\n\n{{ '\n\n' }}\n")
    assert found.text.splitlines()[1] == "workflow: {a: 3}"
    assert found.origins is None or not any(found.origins)


def test_a_set_that_nothing_uses_is_noticed_with_a_suggestion() -> None:
    found = rendered("default-values: {workers: 2}\nworkflow: {a: {{ workers }} }\n", "wokers=3", "workers=4")
    assert [notice.code for notice in found.notices] == ["VariableUnused"]
    assert 'Did you mean "workers"?' in found.notices[0].message


def test_a_text_that_leaves_no_character_to_hide_tokens_behind_is_refused() -> None:
    (fault,) = faults_of("a: '{{output}}" + "".join(chr(code) for code in range(0xE000, 0xF900)) + "'\n")
    assert "every private-use character" in fault.message


def test_a_renderer_that_cannot_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    (fault,) = faults_of("workflow: {{ 1 }}\n")
    assert "cannot be rendered here" in fault.message


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="{}%#ab .|()'\n-", max_size=30))
def test_no_template_raises_anything_but_spec_errors(text: str) -> None:
    assert all(fault.place is not None for fault in refusal(lambda: rendered(f"workflow: {text}\n")))
