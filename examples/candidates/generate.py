"""Makes candidates, periods and originals; the same ones each time.

    python3 generate.py                              5,000 candidates of the years 2022 to 2025
    python3 generate.py --candidates N --missing N   so many, and so many of them without an original
    python3 generate.py --originals                  only the originals, of all of them

DATABASE_URL is a PostgreSQL database (by way of psql, so that no driver is needed). ORIGINALS is
file:FOLDER/ or s3://BUCKET/PREFIX/.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import originals

YEARS = ["2022", "2023", "2024", "2025"]
NAMES = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
CREATORS = ["Ada", "Blaise", "Carl", "Emmy", "Grace", "Sofia"]
STATUSES = ["approved", "pending", "rejected"]


def candidate(n):
    """A candidate as an application of long ago wrote it, without what its original has."""
    return {
        "identifier": str(uuid.uuid5(NAMES, f"candidate {n}")),
        "reporting_year": YEARS[n % len(YEARS)],
        "institution_id": f"institution {n % 7}",
        "status": STATUSES[n % len(STATUSES)],
        "document": {"creator": CREATORS[n % len(CREATORS)], "points": n % 10 / 2},
    }


def original(n):
    return {
        "title": f"On the matter of {n}",
        "channel": f"Journal of {n % 40}",
        "language": ["en", "nb", "nn"][n % 3],
        "pages": 5 + n % 30,
    }


def fill_postgres(url, candidates):
    here = pathlib.Path(__file__).parent
    script = [(here / "candidates.sql").read_text(), "COPY periods (year, closes) FROM STDIN;"]
    script += [f"{year}\t{int(year) + 1}-03-31" for year in YEARS]
    script += ["\\.", "COPY candidates (identifier, reporting_year, institution_id, status, document)"
               " FROM STDIN;"]
    for row in candidates:
        values = dict(row, document=json.dumps(row["document"]))
        script.append("\t".join(values.values()))
    script += ["\\.", "ANALYZE candidates, periods;"]
    command = ["psql", "-Xq", "-v", "ON_ERROR_STOP=1", url]
    if subprocess.run(command, input="\n".join(script) + "\n", text=True).returncode != 0:
        sys.exit("psql failed")


def main():
    parser = argparse.ArgumentParser(description="Makes candidates, periods and originals.")
    parser.add_argument("--candidates", type=int, default=5000)
    parser.add_argument("--missing", type=int, default=3, help="candidates without an original")
    parser.add_argument("--originals", action="store_true", help="only these, and of all candidates")
    arguments = parser.parse_args()

    numbers = range(1, arguments.candidates + 1)
    if not arguments.originals:
        fill_postgres(os.environ["DATABASE_URL"], [candidate(n) for n in numbers])
    place = originals.connect()
    there = numbers if arguments.originals else numbers[arguments.missing:]
    with ThreadPoolExecutor(16) as writers:
        list(writers.map(lambda n: place.put(candidate(n)["identifier"], original(n)), there))
    print(f"{len(numbers)} candidates, {len(there)} originals")


if __name__ == "__main__":
    main()
