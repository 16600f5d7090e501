"""The form on AWS as people write it with boto3: load a queue, and work its messages one by one.

aws.py make ENDPOINT ITEMS     makes the table and the queue, and prints the queue's URL
aws.py load ENDPOINT QUEUE     a message for each record; prints the CPU seconds it took
aws.py work ENDPOINT QUEUE     reads, writes back and deletes until the queue is empty; prints the same
aws.py wait ENDPOINT QUEUE     waits until the queue is empty
"""

import json
import resource
import sys
import time
import uuid

import boto3

command, endpoint, what = sys.argv[1:]
place = dict(endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="windlass", aws_secret_access_key="windlass")
sqs, dynamodb = boto3.client("sqs", **place), boto3.client("dynamodb", **place)
TABLE = "candidates"


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def make(items):
    dynamodb.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[dict(AttributeName="identifier", AttributeType="S")],
        KeySchema=[dict(AttributeName="identifier", KeyType="HASH")],
    )
    for first in range(0, items, 25):
        new = [
            dict(PutRequest=dict(Item=dict(identifier=dict(S=f"c{n}"), version=dict(N="1"), title=dict(S="a title " * 20))))
            for n in range(first, min(first + 25, items))
        ]
        dynamodb.batch_write_item(RequestItems={TABLE: new})
    # Short: an exiting worker may still receive messages that it does not process.
    return sqs.create_queue(QueueName="work", Attributes=dict(VisibilityTimeout="10"))["QueueUrl"]


def load(queue):
    job, entries = str(uuid.uuid4()), []

    def send():
        if entries:
            sqs.send_message_batch(QueueUrl=queue, Entries=entries)
            entries.clear()

    pages = dynamodb.get_paginator("scan").paginate(TableName=TABLE, ProjectionExpression="identifier")
    for page in pages:
        for item in page["Items"]:
            body = json.dumps(dict(type="REFRESH_CANDIDATE", identifier=item["identifier"]["S"]))
            attributes = dict(jobId=dict(DataType="String", StringValue=job))
            entries.append(dict(Id=str(len(entries)), MessageBody=body, MessageAttributes=attributes))
            if len(entries) == 10:
                send()
    send()


def work(queue):
    while True:
        messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["jobId"]).get("Messages")
        if not messages:
            return
        for message in messages:
            key = dict(identifier=dict(S=json.loads(message["Body"])["identifier"]))
            job = dict(S=message["MessageAttributes"]["jobId"]["StringValue"])
            record = dynamodb.get_item(TableName=TABLE, Key=key, ConsistentRead=True)["Item"]
            jobs = record.get("windlass_jobs", dict(L=[]))["L"]
            if job in jobs:
                continue
            dynamodb.update_item(
                TableName=TABLE,
                Key=key,
                UpdateExpression="SET #v = #v + :one, windlass_jobs = :jobs",
                ConditionExpression="#v = :seen AND NOT contains(windlass_jobs, :job)",
                ExpressionAttributeNames={"#v": "version"},
                ExpressionAttributeValues={
                    ":one": dict(N="1"), ":seen": record["version"], ":job": job, ":jobs": dict(L=[*jobs, job][-10:]),
                },
            )
        entries = [dict(Id=str(n), ReceiptHandle=message["ReceiptHandle"]) for n, message in enumerate(messages)]
        sqs.delete_message_batch(QueueUrl=queue, Entries=entries)


def wait(queue):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    while sum(int(n) for n in sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"].values()):
        time.sleep(0.05)


begun = cpu()
if command == "make":
    print(make(int(what)))
else:
    dict(load=load, work=work, wait=wait)[command](what)
    print(cpu() - begun)
