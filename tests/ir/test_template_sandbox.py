"""Chat templates of unknown origin: what they may do is what jinja does, and what is too much ends early."""

import gc
import itertools
import time
from contextlib import nullcontext

import jinja2.sandbox
import pytest

from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import InputError
from lmc.ir.tokens.template import ChatTemplate, Turn
from lmc.ir.tokens.template_sandbox import TemplateEnvironment, TemplateLimitError, budget_for
from lmc.ir.tokens.tokenizer import Tokenizer

USER = "{{ messages[0].content }}"

# Every one of these takes minutes, gigabytes or forever without a budget, or raises what is no jinja error.
FAILING = [
    "{{ 1 / 0 }}",
    "{{ range(10 ** 9) }}",
    "{{ 'a' * 10 ** 10 }}",
    "{{ 10 ** 10 * 'a' }}",
    "{{ ['a'] * 10 ** 10 }}",
    "{{ 10 ** 10 ** 10 }}",
    "{% set n = namespace(x=9) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{{ j }}{% endfor %}{% endfor %}",
    "{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x='aa') %}{% for i in range(99) %}{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x=(1,)) %}{% for i in range(99) %}{% set n.x = (n.x, n.x) %}{% endfor %}{{ n.x == n.x }}",
    "{% set n = namespace(x={}) %}{% for i in range(99) %}{% set n.x = {'a': n.x, 'b': n.x} %}{% endfor %}",
    "{% set n = namespace(x={}) %}{% for i in range(99) %}{% set n.x = dict(a=n.x, b=n.x) %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}",
    "{{ 'a' | center(10 ** 9) }}",
    "{{ 'a'.center(10 ** 9) }}",
    "{{ 'a'.ljust(width=10 ** 9) }}",
    "{{ 'a\\nb' | indent(10 ** 9) }}",
    "{{ ('\\n' * 99999) | indent(99999) }}",
    "{{ ('\\n' * 99999) | indent('a' * 99999) }}",
    "{{ ('\\t' * 99999).expandtabs(99999) }}",
    "{{ ('a' * 99999).translate({97: 'b' * 99999}) }}",
    "{{ ('a' * 99999).replace('a', 'b' * 99999) }}",
    "{{ ('a' * 99999) | replace('a', 'b' * 99999) }}",
    "{{ ('a' * 99999) | replace('', 'b' * 99999) }}",
    "{{ range(99999) | join('a' * 99999) }}",
    "{{ ('a' * 99999).join(range(99999) | map('string')) }}",
    "{{ ('a' * 99999).join('b' * 99999) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%(a)999999999s' % {'a': 1} }}",
    "{{ ('{0}' * 30000).format('x' * 90000) }}",
    "{{ range(99999) | map('list') | sum(start=()) }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ '%999999999d' | format(1) }}",
    "{{ '{:999999999}'.format(1) }}",
    "{{ '{:{}}'.format(1, 999999999) }}",
    "{{ [1] | tojson(indent=10 ** 9) }}",
    "{{ range(99999) | batch(10 ** 9, 'x') | list }}",
    "{{ lipsum(n=10 ** 6) }}",
    "{% set x = 'a' * 9999999 %}{% for i in range(99999) %}{% if x == x[:-1] ~ 'a' %}{% endif %}{% endfor %}",
    "{% set x = 'a' * 9999999 %}{% for i in range(99999) %}{% set y = x[1:] %}{% endfor %}",
    "{% set x = 'a' * 9999999 %}{% for i in range(99999) %}{% set y = x.upper() %}{% endfor %}",
    "{% set x = 'a' * 9999999 %}{% for i in range(99999) %}{% set y = x is eq('b') %}{% endfor %}",
    "{% include 'other' %}",
    "{% set n = namespace(x=('f' * 90000) | int(0, 16)) %}{% for i in range(90000) %}{% set y = n.x % 7 %}{% endfor %}",
    "{% set n = namespace(x=1) %}{% for i in range(60) %}{% set n.x = namespace(a=n.x, b=n.x) %}{% endfor %}"
    "{{ n.x | string }}",
    "{% set x = range(99999) | list %}{% for i in range(90000) %}{% if -2 is in x %}{% endif %}{% endfor %}",
    "{% set x = range(99999) | list %}{% for i in range(90000) %}{% set y = x | min %}{% endfor %}",
    "{{ range(99999) | select('in', range(99999) | list) | list }}",
    "{% for i in range(99999) %}" + "{{ messages[0].content }}" * 500 + "{% endfor %}",
    "{% for i in range(99999) %}" + "constant text" * 800 + "{% endfor %}",
    "{% for i in range(99999) %}{% if " + "-1" * 500 + " %}{% endif %}{% endfor %}",
    "{{ 'a' }}" * 200_000,
    "{% if messages %}a{% endif %}" * 5_000,
    "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
    "{{ range(99999) | sum }}" * 3_000,
]

TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "  What is <|x|> & 'y'?\n"},
    {"role": "assistant", "content": "A letter."},
    {"role": "user", "content": "Thanks {{ 1 }} {% raw %}"},
]

# As the templates of well-known model families are built.
ORDINARY = [
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "{%- set loop_messages = messages -%}{%- for message in loop_messages -%}{%- set content = '<|start|>' + "
    "message['role'] + '<|end|>\\n\\n' + message['content'] | trim + '<|eot|>' -%}{%- if loop.index0 == 0 -%}"
    "{%- set content = bos_token + content -%}{%- endif -%}{{- content -}}{%- endfor -%}",
    "{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] %}{% set rest = messages[1:] %}"
    "{% else %}{% set rest = messages %}{% endif %}{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 "
    "== 0) %}{{ raise_exception('alternate') }}{% endif %}{% if loop.last and first is defined %}{{ first }}"
    "{% endif %}[{{ m.content.strip() }}]{% endfor %}",
    "{%- set ns = namespace(last=0, text='') -%}{%- for m in messages -%}{%- if m.role == 'user' and m.content is "
    "string -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}{%- for m in messages[::-1] -%}"
    "{%- set ns.text = ns.text ~ (messages | length - loop.index) ~ m.content.split('?')[-1].lstrip('\\n') -%}"
    "{%- endfor -%}{{ ns.text }}|{{ ns.last }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | tojson }}"
    "{% for k, v in messages[0].items() %}{{ '%s: %s' % (k, v) }}{{ '{}={}'.format(k, v) }}{% endfor %}"
    "{{ {'b': 1, 'a': [1, 2]} | tojson(indent=2) }}{{ [3, 1, 2] | sort | join(', ') }}{{ 'x' * 3 }}{{ 7 // 2 ** 2 }}"
    "{{ messages[1].content | replace('y', 'z') | upper | indent(2) }}{{ 'a-b'.replace('-', '+') }}",
    "{% macro turn(m, last=false) %}<{{ m.role }}>{{ caller() if caller else m.content }}{% endmacro %}"
    "{% for m in messages if m.role != 'system' %}{{ turn(m, last=loop.last) }}{{ loop.length }}{{ loop.nextitem.role "
    "if loop.nextitem }}{% if loop.index > 5 %}{% break %}{% endif %}{% endfor %}{% call turn(messages[0]) %}x"
    "{% endcall %}{% set block %}a{{ messages | length }}{% endset %}{{ block }}{{ 'user' in ['user', 'system'] }}",
]


ALL = "{% for m in messages %}{{ m.content }}{% endfor %}"
BOMBS = [
    "{% set x = range(2000) | list %}{{ [x, x, x, x, x] | tojson(indent=100000) }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(300) %}{% set n.x = [n.x] %}{% endfor %}"
    "{{ n.x | tojson(indent=10000) }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(800) %}{% set n.x = [n.x] %}{% endfor %}"
    "{% for i in range(99) %}{{ n.x | tojson(indent=100) }}{% endfor %}",
    "{% set x = range(90000) | list %}{% for i in range(99) %}{% set y = x | groupby('real') %}{% endfor %}",
    "{% set t = 'X' * 90000 %}{% set x = [1] * 50000 %}{% set y = x | groupby('q', default=t) %}",
    "{% set x = range(60000) | list %}{% for i in range(99) %}{% set y = x | sort | unique | list %}{% endfor %}",
]


def raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def model(source: str, folder: str = "models/some") -> ChatTemplate:
    toy = toy_tokenizer()
    return ChatTemplate(Tokenizer(toy.definition, eos_ids=toy.eos_ids, chat_template=source, folder=folder))


@pytest.mark.parametrize("source", [*FAILING, *BOMBS])
def test_a_template_that_fails_or_takes_too_much_is_an_error_of_the_model_folder(source: str):
    with pytest.raises(InputError) as caught:
        model(USER + source).closed([Turn("user", "hi")])
    assert "chat template" in caught.value.cause
    assert caught.value.remedy


def test_the_error_names_the_folder_and_the_cause():
    with pytest.raises(InputError, match="chat template of models/some fails: ZeroDivisionError: division by zero"):
        model(USER + "{{ 1 / 0 }}").closed([Turn("user", "hi")])
    with pytest.raises(InputError, match="chat template of models/some fails: it takes too many steps"):
        model(USER + FAILING[7]).closed([Turn("user", "hi")])


@pytest.mark.parametrize("source", ["", "{{ bos_token }}", "{% for m in messages %}{{ m.role }}{% endfor %}"])
def test_a_template_that_drops_the_text_of_the_user_is_an_error(source: str):
    with pytest.raises(InputError, match="chat template of models/some drops the text of the user"):
        model(source).closed([Turn("user", "hi")])


def test_a_template_that_wants_a_system_turn_first_is_used():
    source = "{% if messages[0].role != 'system' %}{{ raise_exception('no system') }}{% endif %}" + ALL
    assert model(source).closed([Turn("system", "a"), Turn("user", "b")]) == "ab"


@pytest.mark.parametrize(
    ("source", "role"),
    [
        ("{% for m in messages if m.role != 'assistant' %}{{ m.content }}{% endfor %}", "assistant"),
        ("{{ messages[0].content }}{{ messages[1].content }}", "assistant"),
        ("{% for m in messages if 'probe' in m.content %}{{ m.content }}{% endfor %}", "user"),
    ],
)
def test_a_template_that_drops_turns_of_a_conversation_is_an_error(source: str, role: str):
    with pytest.raises(InputError, match=f"chat template of models/some drops the text of the {role}"):
        model(source).closed([Turn("user", "hi")])


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages if m.role != 'system' %}{{ m.content | trim }}{% endfor %}",
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + ALL,
        "{% if messages | length > 1 %}{{ raise_exception('one turn') }}{% endif %}{{ messages[0].content }}",
        "{% for m in messages %}{{ m.content if loop.last }}{% endfor %}",
        "{% for m in messages %}{{ m.content.split('</think>')[-1].lstrip() }}{% endfor %}",
    ],
)
def test_a_template_may_strip_text_and_refuse_roles(source: str):
    assert model(source).closed([Turn("user", "hi ")]).strip() == "hi"


@pytest.mark.parametrize("source", ORDINARY)
def test_an_ordinary_template_renders_as_jinja_renders_it(source: str):
    options = {"trim_blocks": True, "lstrip_blocks": True}
    variables = {
        "messages": TURNS,
        "add_generation_prompt": True,
        "bos_token": "<s>",
        "raise_exception": raise_exception,
    }
    plain = jinja2.sandbox.ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"], **options)
    ours = TemplateEnvironment(**options)
    for environment in (plain, ours):
        environment.filters["tojson"] = lambda value, indent=None: f"{value}{indent}"
    with budget_for(TURNS):
        assert ours.from_string(source).render(**variables) == plain.from_string(source).render(**variables)


@pytest.mark.parametrize("source", ORDINARY[:3])
def test_long_conversations_and_long_messages_are_within_the_budget(source: str):
    ours = TemplateEnvironment()
    roles = ["user", "assistant"] * 1000
    for turns in (
        [{"role": role, "content": "Some words of a turn. " * 20} for role in roles],
        [{"role": role, "content": "x" * 10_000_000} for role in roles[:3]],
    ):
        with budget_for(turns):
            shown = ours.from_string(source).render(messages=turns, bos_token="", raise_exception=raise_exception)
        assert len(shown) > sum(len(turn["content"].strip()) for turn in turns)


def test_the_budget_is_that_of_one_rendering():
    ours = TemplateEnvironment().from_string("{% for i in range(9999) %}{% endfor %}")
    for _ in range(50):
        with budget_for():
            ours.render()
    with budget_for(), pytest.raises(TemplateLimitError):
        render_often(ours)


def render_often(template: jinja2.Template) -> None:
    for _ in range(50):
        template.render()


@pytest.mark.parametrize("collects", [True, False])
def test_a_garbage_collection_takes_none_of_the_time(monkeypatch: pytest.MonkeyPatch, collects: bool):
    now = [0.0]
    for name in ("monotonic", "thread_time"):
        monkeypatch.setattr(time, name, lambda: now[0])
    (told,) = (each for each in gc.callbacks if getattr(each, "__module__", "") == TemplateEnvironment.__module__)
    template = TemplateEnvironment().from_string("{% for i in range(3) %}{{ [i, [i]] | tojson }}{% endfor %}")
    with budget_for(), nullcontext() if collects else pytest.raises(TemplateLimitError, match="too long"):
        if collects:
            told("start", {})
        now[0] += 3600.0
        if collects:
            told("stop", {})
        template.render()


def test_a_machine_that_is_busy_with_other_things_refuses_no_template(monkeypatch: pytest.MonkeyPatch):
    hours = itertools.count(0.0, 3600.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(hours))
    every = "{% for each in messages %}{{ each.content }}{% endfor %}"
    assert model(every).closed([Turn("user", "some text")]) == "some text"
