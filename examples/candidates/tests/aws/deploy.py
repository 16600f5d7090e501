"""Deploys the example at an endpoint that speaks AWS: data.yaml and template.yaml, whole.

Prints one JSON object: the outputs of both, as `Resources` the types of template.yaml's resources by logical name, as
the endpoint lists them, and as `Roles` the roles of the functions with their policies and temporary credentials. The ledger's table is created as `windlass migrate` does, unless it exists. The tests run the
functions themselves, so the trigger is created disabled. moto's CloudFormation leaves out alarms, so they are created
from the template by their own API.
"""

import ast
import io
import json
import os
import pathlib
import sys
import zipfile

import boto3
from template import translated

folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]


def at(service):
    return boto3.client(service, region_name=os.environ["AWS_REGION"])


def deploy(stack, text, parameters):
    client = at("cloudformation")
    client.create_stack(
        StackName=stack, TemplateBody=text, Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
    )
    [created] = client.describe_stacks(StackName=stack)["Stacks"]
    if created["StackStatus"] != "CREATE_COMPLETE":
        raise SystemExit(f"{stack}: {created['StackStatus']}")
    return {output["OutputKey"]: output["OutputValue"] for output in created["Outputs"]}


def code(bucket):
    """The place of an uploaded function. What it contains does not matter here."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("bootstrap", "")
    at("s3").put_object(Bucket=bucket, Key="code.zip", Body=packed.getvalue())
    return f"s3://{bucket}/code.zip"


def ledger():
    client = at("dynamodb")
    try:
        client.create_table(
            TableName="windlass_ledger", BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "job", "KeyType": "HASH"}, {"AttributeName": "row", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("job", "row")],
        )
    except client.exceptions.ResourceInUseException:
        pass


def resolved(value, parameters, queues):
    """The value of a property, where it refers to a parameter, a queue's name or the condition of the alarms' topic."""
    match value:
        case {"Ref": "AWS::NoValue"}:
            return None
        case {"Ref": name}:
            return parameters[name]
        case {"Fn::GetAtt": [queue, "QueueName"]}:
            return queues[queue]
        case {"Fn::If": ["HasAlarmTopic", _, otherwise]}:
            return resolved(otherwise, parameters, queues)
        case dict():
            fields = {key: resolved(field, parameters, queues) for key, field in value.items()}
            return {key: field for key, field in fields.items() if field is not None}
        case list():
            return [resolved(one, parameters, queues) for one in value]
    return value


def alarms(template, queues):
    client = at("cloudwatch")
    defaults = {key: parameter.get("Default") for key, parameter in template["Parameters"].items()}
    for alarm, resource in template["Resources"].items():
        # Resources with a condition belong to the indexer, which is not deployed here.
        if resource["Type"] == "AWS::CloudWatch::Alarm" and "Condition" not in resource:
            properties = resolved(resource["Properties"], defaults, queues)
            client.put_metric_alarm(AlarmName=f"{name}-{alarm}", **properties)
    created = client.describe_alarms(AlarmNamePrefix=f"{name}-")["MetricAlarms"]
    return {alarm["AlarmName"].removeprefix(f"{name}-"): "AWS::CloudWatch::Alarm" for alarm in created}


def role(name):
    client = at("iam")
    [policy] = client.list_role_policies(RoleName=name)["PolicyNames"]
    # moto's CloudFormation keeps a policy as a Python expression, which its check of permissions cannot read.
    document = ast.literal_eval(client.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"])
    client.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=json.dumps(document))
    arn = client.get_role(RoleName=name)["Role"]["Arn"]
    credentials = at("sts").assume_role(RoleArn=arn, RoleSessionName="function")["Credentials"]
    return {
        "Name": name, "Policy": policy, "Document": document,
        "Environment": {
            "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
            "AWS_SESSION_TOKEN": credentials["SessionToken"],
        },
    }


ledger()
outputs = deploy(f"{name}-data", (folder / "data.yaml").read_text(), {})
parameters = outputs | {"ProcessingEnabled": "false", "MaximumConcurrency": "2"}
template = translated((folder / "template.yaml").read_text(), parameters, code(outputs["OriginalsBucket"]))
outputs |= deploy(name, json.dumps(template), parameters)
listed = at("cloudformation").list_stack_resources(StackName=name)["StackResourceSummaries"]
resources = {one["LogicalResourceId"]: one["ResourceType"] for one in listed if one["LogicalResourceId"]}
queues = {one["LogicalResourceId"]: one["PhysicalResourceId"].split("/")[-1] for one in listed
          if one["ResourceType"] == "AWS::SQS::Queue"}
roles = {one["LogicalResourceId"]: role(one["PhysicalResourceId"]) for one in listed
         if one["ResourceType"] == "AWS::IAM::Role"}
print(json.dumps(outputs | {"Resources": resources | alarms(template, queues), "Roles": roles}))
