"""Deploys the example at an endpoint that speaks AWS: data.yaml as it is, and the queues of template.yaml.

Prints the outputs of both as one JSON object. Functions, roles and triggers are not made there: the tests
run the functions themselves.
"""

import json
import os
import pathlib
import sys

import boto3
from template import translated

folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
client = boto3.client("cloudformation", region_name=os.environ["AWS_REGION"])


def deploy(stack, text, parameters):
    client.create_stack(
        StackName=stack, TemplateBody=text,
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
    )
    [stack] = client.describe_stacks(StackName=stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


outputs = deploy(f"{name}-data", (folder / "data.yaml").read_text(), {})
template = translated((folder / "template.yaml").read_text(), outputs)
template["Resources"] = {name: resource for name, resource in template["Resources"].items()
                         if resource["Type"] == "AWS::SQS::Queue"}
template["Outputs"] = {name: output for name, output in template["Outputs"].items()
                       if output["Value"].get("Ref") in template["Resources"]}
outputs |= deploy(name, json.dumps(template), outputs)
print(json.dumps(outputs))
