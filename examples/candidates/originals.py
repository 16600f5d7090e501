"""Where the original publications lie, one JSON object each: a folder, or a bucket of S3.

ORIGINALS is file:FOLDER/ or s3://BUCKET/PREFIX/. The second needs the package boto3.
"""

import json
import os
import pathlib


def connect():
    """The place that ORIGINALS names."""
    url = os.environ["ORIGINALS"]
    kind, _, rest = url.partition(":")
    if kind == "file" and rest:
        return Folder(pathlib.Path(rest))
    bucket, _, prefix = rest.removeprefix("//").partition("/")
    if kind == "s3" and bucket:
        return Bucket(bucket, prefix)
    raise SystemExit(f"ORIGINALS={url}: file:FOLDER/ or s3://BUCKET/PREFIX/ would be right")


class Folder:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, identifier, original):
        (self.folder / f"{identifier}.json").write_text(json.dumps(original))

    def get(self, identifier):
        """An original, `None` if there is none."""
        try:
            return json.loads((self.folder / f"{identifier}.json").read_bytes())
        except FileNotFoundError:
            return None


class Bucket:
    def __init__(self, bucket, prefix):
        import boto3
        from botocore.config import Config

        # As many connections as a handler fetches at once.
        config = Config(max_pool_connections=16, retries={"mode": "standard"})
        self.client = boto3.client("s3", config=config, region_name=os.environ.get("AWS_REGION"))
        self.bucket, self.prefix = bucket, prefix

    def put(self, identifier, original):
        self.client.put_object(Bucket=self.bucket, Key=self.key(identifier),
                               Body=json.dumps(original))

    def get(self, identifier):
        """An original, `None` if there is none."""
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=self.key(identifier))
        except self.client.exceptions.NoSuchKey:
            return None
        return json.loads(answer["Body"].read())

    def key(self, identifier):
        return f"{self.prefix}{identifier}.json"
