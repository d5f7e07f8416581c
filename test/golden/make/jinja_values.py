"""Values formatted by the template engine of transformers, for cases in which Python and JavaScript differ.

Run: python test/golden/make/jinja_values.py  (needs transformers, jinja2)
Writes test/golden/chat/jinja-values.json: templates with the text rendered by each, or null if Python refuses the template.
"""
import json
import pathlib
from transformers.utils.chat_template_utils import render_jinja_template

target = pathlib.Path(__file__).resolve().parents[1] / "chat" / "jinja-values.json"
VALUES = ["''", "' '", "'a'", "'0'", "'1'", "'1.0'", "'True'", "false", "true", "none", "0", "1", "-1", "1.0", "0.0", "2.5", "[]", "[1]", "[1.0]", "['a']",
          "[[]]", "['']", "{}", "{'a': 1}", "{'a': true}", "(1, 'a')", "missing"]
PRINTED = VALUES + [
    "10000000000000000.0", "15000000000000000.0", "123456789012345680.0", "1000000000000000.0", "0.0001", "0.00001", "0.00000012", "2 ** -30", "-0.0", "1 / 3", "4 / 2", "7 // 2", "7.0 // 2", "-7 % 3", "7 % -3", "7.5 % 2",
    "2 ** 10", "2 ** -1", "3 * 1.0", "['it\\'s', \"x\", 'a\\nb\\tc\\\\', 'é', 'say \"it\\'s\"']", "[none, true, false, 1.0, missing]", "{'b': [1, {'c': none}], 'a': 'x'}",
    "['\u0007', '\u00a0', '\u200b', '\ufeff', '🙂']", "[(1, 2.0)]", "'x' ~ true ~ none ~ 1.0 ~ [1, 'a']", "'a' ~ missing ~ 'b'", "true | string", "none | string",
    "1.0 | string", "[1, 'a'] | string", "{'a': 1.0} | string", "[1, true, none, 1.0, 'a'] | join(',')", "['a', ['b']] | join", "true | lower", "none | upper", "true | trim",
    "1.0 | tojson", "[1.0, true, none, 'é<>&\\'\"'] | tojson", "{'b': 1.0, 'a': [2, {}]} | tojson(indent=2)", "{'b': 1, 'a': []} | tojson(sort_keys=true)",
    "'é🙂' | tojson(ensure_ascii=true)", "[1, [2]] | tojson(separators=(',', ':'))", "'hELLO wORLD' | capitalize", "'hELLO wORLD'.capitalize()",
    "'🙂é' | length", "'a🙂b'[1]", "'a🙂b'[1:]", "'a🙂b'[::-1]", "'a🙂b'[-1]", "'abc'[:2]", "'abc'[5]", "true and ''", "'' or none", "not ''", "not [0]",
    "'a' if '' else 'b'", "1.0 in [1]", "true in [1]", "'1' in [1]", "none in [none]", "missing in [none]", "[1] in [[1.0]]", "'' in 'abc'",
    "'a' in {'a': 1}", "1 in {'1': 1}", "'x' not in ['y']", "none is none", "missing is none", "1.0 is integer", "true is number", "true is boolean",
    "([{'k': 1}, {'k': true}, {'k': '1'}, {'k': none}] | selectattr('k', 'equalto', '1') | list)", "[{'k': ''}, {'k': 'x'}] | selectattr('k') | list",
    "[{'k': ''}, {'k': 'x'}] | rejectattr('k', 'equalto', '') | list", "[3, 1, 2] | sort", "[1, true, 1.0, 'a', 'a'] | unique | list", "{'a': 1}.items() | list",
    "'a,b'.split(',')", "'a b\\u0085c\\ufeffd'.split()", "' a  b c '.split(none, 1)", "' a b '.split(none, 0)", "' a b '.split(none, 5)", "'a,b,,c'.split(',', 2)", "{'x': none}['x']", "{'x': none}.get('y')", "{'x': 1}.get('y', false)", "range(3) | list", "'ab' * 2", "true + 1",
    "{'a': 1} | length", "[1.0, 2] | first", "[] | last", "namespace(a=1).a", "true == 1", "(true, 1) == (1, true)", "'%' ~ 5 % 3",
]
templates = [f"{{{{ {value} }}}}" for value in PRINTED]
templates += [f"{{{{ {a} {operator} {b} }}}}" for a in VALUES for b in VALUES for operator in ("==", "!=")]
templates += [f"{{% if {value} %}}yes{{% else %}}no{{% endif %}}" for value in VALUES]
templates += [
    "{% for x in [true, 1.0, none] %}{{ x }};{{ loop.first }};{{ loop.index0 % 2 == 0 }} {% endfor %}", "{% set x = true %}{{ x }}", "{% set x %}{{ true }}{% endset %}{{ x }}",
    "{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(none) }}{{ f(1.0) }}", "{% for m in messages %}{{ (m.role == 'user') != (loop.index0 % 2 == 0) }}{% endfor %}",
    "{% for m in messages %}{% if m['content'] != false %}{{ m['content'] }}{% endif %}{% endfor %}", "{{ messages }}", "{{ messages[0] }}",
    "{% set ns = namespace(found=false) %}{% for m in messages %}{% set ns.found = true %}{% endfor %}{{ ns.found }}", "{{ x if false }}", "{{ tools }}", "{{ documents }}",
    "{% filter upper %}{{ true }}{% endfilter %}", "{% for k, v in {'a': 1.0}.items() %}{{ k }}={{ v }}{% endfor %}", "{{ add_generation_prompt }}",
]
messages = [{"role": "user", "content": "it's"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "\"q\"\n"}]


def render(template):
    try:
        return render_jinja_template([messages], chat_template=template, add_generation_prompt=True, bos_token="<s>")[0][0]
    except Exception:
        return None


rows = ",\n".join(json.dumps([template, render(template)], ensure_ascii=True) for template in templates)
target.write_text(f'{{"messages": {json.dumps(messages)},\n"rendered": [\n{rows}\n]}}\n')
print(len(templates), "templates")
