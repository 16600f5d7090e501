"""Replaces the policy of a role: policy.py ROLE NAME DOCUMENT."""

import sys

import boto3

role, name, document = sys.argv[1:]
boto3.client("iam").put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=document)
