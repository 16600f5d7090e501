"""Lints a template as cfn-lint does, and prints what AWS makes of it: its resources after SAM's transform.

Prints one JSON object: `findings`, of which a template that can be deployed has none, and `template`.
"""

import json
import pathlib
import sys

import yaml
from cfnlint.api import lint
from cfnlint.config import ManualArgs
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

FOLDER_OF_CODE = "s3://bucket/code.zip"


class NoManagedPolicies:
    """A template that names its own permissions needs none of AWS's."""

    def load(self):
        return {}


def translated(text, parameters, code=FOLDER_OF_CODE):
    template = yaml_parse(text)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # Code is uploaded before a template is translated.
            resource["Properties"]["CodeUri"] = code
    return transform(template, parameters, NoManagedPolicies())


def main():
    path, *pairs = sys.argv[1:]
    parameters = dict(pair.split("=", 1) for pair in pairs)
    text = pathlib.Path(path).read_text()
    # Advice counts as well.
    options = ManualArgs(include_checks=["I"], regions=["us-east-1"])
    template = translated(text, parameters)
    # What stands in functions and their events is looked at in full only where it is translated.
    texts = [text, json.dumps(template)]
    findings = [str(finding) for one in texts for finding in lint(one, config=options)]
    # CloudFormation does not take them, and cfn-lint does not mind.
    events = yaml.parse(text)
    findings += [f"an alias: {event}" for event in events if isinstance(event, yaml.AliasEvent)]
    print(json.dumps({"findings": findings, "template": template}))


if __name__ == "__main__":
    main()
