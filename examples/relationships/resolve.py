"""Resolves points of interest: what a function calls and what a class inherits become rows of the
table `relationships`. A point that cannot be resolved is answered with an error, and becomes a dead
letter; the others of its batch are not touched by that.

What is computed at run time cannot be told from the source. overrides.json may tell it:
{"HANDLERS[kind]": ["pay_by_card"]}
"""

import ast
import json
import os
import sys
import textwrap
import traceback


def overrides():
    if not os.path.exists("overrides.json"):
        return {}
    with open("overrides.json") as file:
        return json.load(file)


def called(function):
    """The names that a call may mean."""
    if isinstance(function, ast.Name):
        return [function.id]
    if isinstance(function, ast.Attribute):
        return [function.attr]
    text = ast.unparse(function)
    known = overrides().get(text)
    if known is None:
        raise LookupError(f"what is called is computed: {text}")
    return known


def resolve(point, file_id):
    """The relationships of a point, each once."""
    tree = ast.parse(textwrap.dedent(point["rawCode"]))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found.update(("calls", name) for name in called(node.func))
        if isinstance(node, ast.ClassDef):
            found.update(("inherits", ast.unparse(base)) for base in node.bases)
    return [{"point": point["id"], "kind": kind, "name": name, "file_id": file_id}
            for kind, name in sorted(found)]


def answer(item, file_id):
    try:
        rows = resolve(item["record"], file_id)
    except Exception as error:
        context = {"type": type(error).__name__, "trace": traceback.format_exc()}
        return {"key": item["key"], "error": {"message": str(error), "context": context}}
    return {"key": item["key"], "insert": {"table": "relationships", "rows": rows}}


for line in sys.stdin:
    batch = json.loads(line)
    # The batch that is sent at the start has no items and no params.
    file_id = batch["params"].get("fileId")
    print(json.dumps({"results": [answer(item, file_id) for item in batch["items"]]}), flush=True)
