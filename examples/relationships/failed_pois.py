"""Creates the view `failed_pois` in the store, and prints its rows as JSON, one per line.

    python3 failed_pois.py                 the store windlass.db
    python3 failed_pois.py postgres://…    a store in PostgreSQL (by way of psql)
"""

import json
import pathlib
import sqlite3
import subprocess
import sys

COLUMNS = ["id", "originalJobId", "failedAt", "errorMessage", "errorContext", "originalPoiData", "status"]


def view(name):
    return pathlib.Path(__file__).with_name(name).read_text()


def of_sqlite(file):
    store = sqlite3.connect(file, timeout=60)
    store.executescript(view("failed_pois.sql"))
    for row in store.execute(f"SELECT {', '.join(COLUMNS)} FROM failed_pois ORDER BY id"):
        row = dict(zip(COLUMNS, row))
        print(json.dumps(row | {"originalPoiData": json.loads(row["originalPoiData"])}))


def of_postgres(url):
    rows = "SELECT to_json(failed_pois) FROM failed_pois ORDER BY id;"
    command = ["psql", "-XqtA", "-v", "ON_ERROR_STOP=1", url]
    subprocess.run(command, input=view("failed_pois.postgres.sql") + rows, check=True, text=True)


store = sys.argv[1] if len(sys.argv) > 1 else "windlass.db"
of_postgres(store) if store.startswith("postgres") else of_sqlite(store)
