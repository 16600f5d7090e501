"""Finds the points of interest of source files. What it found and the job that resolves them are
committed in one transaction per file: both are there, or neither.

    python3 analyse.py            makes the tables
    python3 analyse.py FILE …     analyses files

DATABASE_URL is sqlite:FILE or postgres://… (by way of psql, so that no driver is needed).
"""

import ast
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import uuid

JOB_TYPE = "RESOLVE_RELATIONSHIPS"


def points_of(path):
    """The functions and classes of a file, with their source and what stands around them."""
    text = pathlib.Path(path).read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            kind = "class_declaration" if isinstance(node, ast.ClassDef) else "function_definition"
            around = lines[max(0, node.lineno - 3):node.lineno - 1]
            yield {
                "id": f"{path}:{node.name}:{node.lineno}",
                "fileId": path,
                "type": kind,
                "name": node.name,
                "filePath": path,
                "lineNumber": node.lineno,
                "rawCode": "\n".join(lines[node.lineno - 1:node.end_lineno]),
                "context": "\n".join(around),
            }


def save(database, path):
    """Commits the results of a file and the payload with its points, together."""
    points = list(points_of(path))
    job_id = str(uuid.uuid4())
    payload = json.dumps({"jobId": job_id, "fileId": path, "pois": points, "submittedBy": "analyse"})
    statements = [("DELETE FROM relationships WHERE file_id = ?", [path]),
                  ("DELETE FROM points WHERE file_id = ?", [path]),
                  ("DELETE FROM files WHERE id = ?", [path]),
                  ("INSERT INTO files (id, points) VALUES (?, ?)", [path, len(points)])]
    for point in points:
        values = [point["id"], path, point["type"], point["name"], point["lineNumber"]]
        statements.append(("INSERT INTO points VALUES (?, ?, ?, ?, ?)", values))
    # A file without points makes no job: the outbox takes no empty list, and gives no id.
    job = database.commit(statements, payload, path)
    print(f"{path}: {len(points)} points, {f'job {job}' if job else 'no job'}")


class Sqlite:
    def __init__(self, file):
        self.connection = sqlite3.connect(file, isolation_level=None, timeout=60)
        self.connection.execute("PRAGMA journal_mode = wal")

    def script(self, text):
        self.connection.executescript(text)

    def commit(self, statements, payload, path):
        run = self.connection.execute
        run("BEGIN IMMEDIATE")
        try:
            for sql, values in statements:
                run(sql, values)
            put = "INSERT INTO windlass_outbox (job_type, request) VALUES (?, ?) RETURNING id"
            row = run(put, [JOB_TYPE, payload]).fetchone()
            job = row and row[0]
            run("UPDATE files SET job = ? WHERE id = ?", [job, path])
            run("COMMIT")
        except sqlite3.Error:
            run("ROLLBACK")
            raise
        return job


class Postgres:
    def __init__(self, url):
        self.url = url

    def script(self, text):
        command = ["psql", "-XqtA", "-v", "ON_ERROR_STOP=1", self.url]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return done.stdout.strip()

    def commit(self, statements, payload, path):
        script = ["BEGIN;"]
        for sql, values in statements:
            for value in values:
                sql = sql.replace("?", self.literal(value), 1)
            script.append(sql + ";")
        put = f"windlass_enqueue('{JOB_TYPE}', {self.literal(payload)})"
        script.append(f"UPDATE files SET job = {put} WHERE id = {self.literal(path)} RETURNING job;")
        script.append("COMMIT;")
        return self.script("\n".join(script)) or None

    @staticmethod
    def literal(value):
        return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def main():
    url = os.environ["DATABASE_URL"]
    database = Sqlite(url[len("sqlite:"):]) if url.startswith("sqlite:") else Postgres(url)
    database.script(pathlib.Path(__file__).with_name("schema.sql").read_text())
    for path in sys.argv[1:]:
        try:
            save(database, path)
        except sqlite3.Error as error:
            sys.exit(f"{path}: {error}")


if __name__ == "__main__":
    main()
