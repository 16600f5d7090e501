"""The moto server, changed for concurrent use and with injected faults.

- DynamoDB requests run one at a time. moto checks a condition and writes without a lock between the two, so two
  concurrent writers would both find the same version.
- A failed transaction restores the records that it touched. moto copies every table of a transaction once per
  action instead, which takes seconds for a hundred records.
- POST /windlass/faults sets errors to return instead of moto's answers, by region and operation, before or after
  the request is executed.
- GET /windlass/requests/REGION/OPERATION returns the number of requests.
- SQS requests run one at a time, except those that wait for a message. moto rebuilds its list of messages at each
  deletion and loses concurrent changes.
- Queues may hold thousands of messages. moto counts all of them, with two clock calls each, for every message that
  it sends or receives.
- Requests with the credentials of an assumed role need its permissions. moto checks all requests or none, by their own
  names and for DynamoDB without the resource. Here a request of DynamoDB or SQS needs the actions that AWS documents,
  on each table, index or queue that it names: a transaction those of its parts, a batch of messages that of one.
- POST /windlass/functions names the URL of a Lambda function. Invocations of it are sent there; moto itself would need
  Docker.
- State machines are executed, also those with JSONata, for which moto's interpreter has no evaluator.
"""

import collections
import copy
import json
import threading
import time
import urllib.request

import jsonata
import moto.core.authorization as authorization
import moto.core.config
import moto.dynamodb.models as models
import moto.server
import moto.settings
import moto.sqs.models as queues
import moto.stepfunctions.parser.asl.jsonata.jsonata as expressions
from moto.core.exceptions import JsonRESTError
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table
from moto.iam.access_control import IAMRequest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.sts.models import sts_backends
from moto.utilities.utils import get_partition

lock = threading.Lock()
faults = []
functions = {}
requests = collections.Counter()
snapshots = None


class Copies:
    """Replaces the module `copy` where moto copies tables."""

    copy = staticmethod(copy.copy)

    @staticmethod
    def deepcopy(thing):
        if snapshots is not None and isinstance(thing, Table):
            return snapshots[thing.name]
        return copy.deepcopy(thing)


def snapshot(table, keys):
    saved = copy.copy(table)
    saved.items = collections.defaultdict(dict)
    for hash_key, found in table.items.items():
        saved.items[hash_key] = dict(found) if table.range_key_attr else found
    for key in keys:
        hash_key = DynamoType(key[table.hash_key_attr])
        if hash_key not in saved.items:
            continue
        if not table.range_key_attr:
            saved.items[hash_key] = copy.deepcopy(saved.items[hash_key])
            continue
        range_key = DynamoType(key[table.range_key_attr])
        if range_key in saved.items[hash_key]:
            saved.items[hash_key][range_key] = copy.deepcopy(saved.items[hash_key][range_key])
    return saved


def transact_write_items(self, transact_items):
    global snapshots
    touched = collections.defaultdict(list)
    for action in transact_items:
        for operation in action.values():
            touched[operation["TableName"]].append(operation.get("Key") or operation.get("Item"))
    known = {name: self.tables[name] for name in touched if name in self.tables}
    snapshots = {name: snapshot(table, touched[name]) for name, table in known.items()}
    try:
        return original(self, transact_items)
    finally:
        snapshots = None


original = models.DynamoDBBackend.transact_write_items
models.DynamoDBBackend.transact_write_items = transact_write_items
models.copy = Copies


uncounted = threading.local()


def without_counting(name):
    original = getattr(queues.SQSBackend, name)

    def call(self, *arguments, **named):
        uncounted.now = True
        try:
            return original(self, *arguments, **named)
        finally:
            uncounted.now = False

    setattr(queues.SQSBackend, name, call)


def counted_when_asked(name):
    count = getattr(queues.Queue, name).fget
    setattr(queues.Queue, name, property(lambda self: 0 if getattr(uncounted, "now", False) else count(self)))


for name in ("send_message", "is_message_valid_based_on_retention_period"):
    without_counting(name)
for kind in ("", "_delayed", "_not_visible"):
    counted_when_asked(f"approximate_number_of_messages{kind}")
queues.unix_time_millis = lambda: time.time() * 1000
queue_lock = threading.Lock()


def wait_for_messages(self, timeout):
    queue_lock.release()
    try:
        waiting(self, timeout)
    finally:
        queue_lock.acquire()


waiting = queues.Queue.wait_for_messages
queues.Queue.wait_for_messages = wait_for_messages


class Settings:
    """Replaces the module `settings` where moto decides whether to check permissions."""

    @property
    def INITIAL_NO_AUTH_ACTION_COUNT(self):
        return 0 if getattr(by_role, "now", False) else moto.settings.INITIAL_NO_AUTH_ACTION_COUNT


def authorize(self, kind, resource="*"):
    key = self.headers.get("Authorization", "").partition("Credential=")[2].split("/")[0]
    roles = sts_backends[self.current_account][get_partition(self.region)]
    by_role.now = roles.get_assumed_role_from_access_key(key) is not None
    try:
        authorizing(self, kind, resource)
    finally:
        by_role.now = False


def needed(service, action, request, arn):
    """The permissions that a request needs: pairs of an action and a resource."""
    if service == "sqs":
        name = request.get("QueueName") or request["QueueUrl"].split("/")[-1]
        return [(action.removesuffix("Batch"), arn + name)]
    if "TransactItems" in request:
        parts = [part for item in request["TransactItems"] for part in item.items()]
        names = {"ConditionCheck": "ConditionCheckItem", "Get": "GetItem", "Put": "PutItem", "Update": "UpdateItem",
                 "Delete": "DeleteItem"}
        return [(names[kind], f"{arn}table/{part['TableName']}") for kind, part in parts]
    if "RequestItems" in request:
        return [(action, f"{arn}table/{table}") for table in request["RequestItems"]]
    index = f"/index/{request['IndexName']}" if "IndexName" in request else ""
    return [(action, f"{arn}table/{request['TableName']}{index}")]


def check_each(self, resource):
    service, action = self._action.split(":")
    if service not in ("dynamodb", "sqs"):
        return check(self, resource)
    arn = f"arn:{get_partition(self._region)}:{service}:{self._region}:{self.account_id}:"
    for action, resource in needed(service, action, json.loads(self._body), arn):
        self._action, self.resource = f"{service}:{action}", resource
        check(self, resource)


def deny(self):
    who = self._access_key.arn
    raise JsonRESTError(
        "AccessDeniedException",
        f"User: {who} is not authorized to perform: {self._action} on resource: {getattr(self, 'resource', '*')}",
    )


by_role = threading.local()
authorization.settings = Settings()
authorizing = authorization.ActionAuthenticatorMixin._authenticate_and_authorize_action
authorization.ActionAuthenticatorMixin._authenticate_and_authorize_action = authorize
check = IAMRequest.check_action_permitted
IAMRequest.check_action_permitted = check_each
IAMRequest._raise_access_denied = deny


expressions._eval_jsonata = lambda expression: jsonata.Jsonata(expression).evaluate(None)
moto.core.config.default_user_config["stepfunctions"]["execute_state_machine"] = True


def invoke(url, event, start_response):
    """Invokes a function, whose server answers like Lambda."""
    request = urllib.request.Request(url, event, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        body, failed = response.read(), response.headers.get("X-Amz-Function-Error")
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response("200 OK", headers + ([("X-Amz-Function-Error", failed)] if failed else []))
    return [body]


def content(environ):
    return environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))


class Server(DomainDispatcherApplication):
    def __call__(self, environ, start_response):
        path, target = environ.get("PATH_INFO", ""), environ.get("HTTP_X_AMZ_TARGET", "")
        if path == "/windlass/faults":
            faults.append(json.loads(content(environ)))
            return answer(start_response, "200 OK", "{}")
        if path == "/windlass/functions":
            functions.update(json.loads(content(environ)))
            return answer(start_response, "200 OK", "{}")
        if path.startswith("/2015-03-31/functions/") and path.split("/")[3] in functions:
            return invoke(functions[path.split("/")[3]], content(environ), start_response)
        if path.startswith("/windlass/requests/"):
            region, operation = path.split("/")[3:5]
            return answer(start_response, "200 OK", str(requests[region, operation]))
        if target.startswith("AmazonSQS."):
            with queue_lock:
                return list(super().__call__(environ, start_response))
        if not target.startswith("DynamoDB_"):
            return super().__call__(environ, start_response)
        with lock:
            region = environ.get("HTTP_AUTHORIZATION", "///").split("/")[2]
            operation = target.split(".")[1]
            requests[region, operation] += 1
            fault = next(
                (f for f in faults if f["times"] > 0 and (f["region"], f["operation"]) == (region, operation)),
                None,
            )
            if fault is None:
                return list(super().__call__(environ, start_response))
            fault["times"] -= 1
            if fault["after"]:
                list(super().__call__(environ, lambda *_: None))
            return answer(start_response, fault["status"], json.dumps(fault["body"]))


def answer(start_response, status, body):
    body = body.encode()
    headers = [("Content-Type", "application/x-amz-json-1.0"), ("Content-Length", str(len(body)))]
    start_response(status, headers)
    return [body]


moto.server.DomainDispatcherApplication = Server
moto.server.main()
