"""Makes candidates, periods and originals; the same ones each time.

    python3 generate.py                              5,000 candidates of the years 2022 to 2025
    python3 generate.py --candidates N --missing N   N candidates, of which N have no original
    python3 generate.py --originals                  only the originals, of all of them

ORIGINALS is file:FOLDER/ or s3://BUCKET/PREFIX/. DATABASE_URL is a PostgreSQL database (by way of psql, so
that no driver is needed); or NVI_TABLE_NAME is a table of DynamoDB. What is on AWS needs the package
boto3.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

YEARS = ["2022", "2023", "2024", "2025"]
NAMES = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
CREATORS = ["Ada", "Blaise", "Carl", "Emmy", "Grace", "Sofia"]
STATUSES = ["approved", "pending", "rejected"]
WRITERS = 16


def candidate(n):
    """A candidate as an application of long ago wrote it, without what its original has."""
    return {
        "identifier": str(uuid.uuid5(NAMES, f"candidate {n}")),
        "reportingYear": YEARS[n % len(YEARS)],
        "institutionId": f"institution {n % 7}",
        "status": STATUSES[n % len(STATUSES)],
        "document": {"creator": CREATORS[n % len(CREATORS)], "points": n % 10 / 2},
    }


def period(year):
    return {"year": year, "closes": f"{int(year) + 1}-03-31"}


def original(n):
    return {
        "title": f"On the matter of {n}",
        "channel": f"Journal of {n % 40}",
        "language": ["en", "nb", "nn"][n % 3],
        "pages": 5 + n % 30,
    }


def fill_postgres(url, candidates, periods):
    def rows(table, columns, records):
        lines = [[json.dumps(value) if isinstance(value, dict) else value for value in row.values()]
                 for row in records]
        return [f"COPY {table} ({columns}) FROM STDIN;", *("\t".join(line) for line in lines), "\\."]

    script = [pathlib.Path(__file__).with_name("candidates.sql").read_text()]
    script += rows("periods", "year, closes", periods)
    columns = "identifier, reporting_year, institution_id, status, document"
    script += rows("candidates", columns, candidates)
    script += ["ANALYZE candidates, periods;"]
    command = ["psql", "-Xq", "-v", "ON_ERROR_STOP=1", url]
    if subprocess.run(command, input="\n".join(script) + "\n", text=True).returncode != 0:
        sys.exit("psql failed")


def fill_dynamodb(table, candidates, periods):
    """One table has both: a record's type is in its key and in `type`."""
    import boto3

    def row(type, pk, sk, record):
        record = {"pk": pk, "sk": sk, "type": type, "version": 1} | record
        # Fractions are decimals there.
        return json.loads(json.dumps(record), parse_float=Decimal)

    dynamodb = boto3.resource("dynamodb", region_name=os.environ.get("AWS_REGION"))
    with dynamodb.Table(table).batch_writer() as writer:
        for one in candidates:
            key = f"CANDIDATE#{one['identifier']}"
            writer.put_item(Item=row("CANDIDATE", key, key, one))
        for one in periods:
            one = one | {"reportingYear": one["year"]}
            writer.put_item(Item=row("PERIOD", "PERIOD", f"PERIOD#{one['year']}", one))


def put_originals(url, originals):
    kind, _, rest = url.partition(":")
    bucket, _, prefix = rest.removeprefix("//").partition("/")
    if kind == "file" and rest:
        folder = pathlib.Path(rest)
        folder.mkdir(parents=True, exist_ok=True)

        def put(name, text):
            (folder / name).write_text(text)
    elif kind == "s3" and bucket:
        import boto3
        from botocore.config import Config

        config = Config(max_pool_connections=WRITERS)
        client = boto3.client("s3", config=config, region_name=os.environ.get("AWS_REGION"))

        def put(name, text):
            client.put_object(Bucket=bucket, Key=prefix + name, Body=text)
    else:
        sys.exit(f"ORIGINALS={url}: file:FOLDER/ or s3://BUCKET/PREFIX/ would be right")
    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(lambda one: put(f"{one[0]}.json", json.dumps(one[1])), originals))


def main():
    parser = argparse.ArgumentParser(description="Makes candidates, periods and originals.")
    parser.add_argument("--candidates", type=int, default=5000)
    parser.add_argument("--missing", type=int, default=3, help="candidates without an original")
    parser.add_argument("--originals", action="store_true", help="only these, and of all candidates")
    arguments = parser.parse_args()

    numbers = range(1, arguments.candidates + 1)
    if not arguments.originals:
        records = [candidate(n) for n in numbers], [period(year) for year in YEARS]
        if "NVI_TABLE_NAME" in os.environ:
            fill_dynamodb(os.environ["NVI_TABLE_NAME"], *records)
        else:
            fill_postgres(os.environ["DATABASE_URL"], *records)
    there = numbers if arguments.originals else numbers[arguments.missing:]
    originals = ((candidate(n)["identifier"], original(n)) for n in there)
    put_originals(os.environ["ORIGINALS"], originals)
    print(f"{len(numbers)} candidates, {len(there)} originals")


if __name__ == "__main__":
    main()
