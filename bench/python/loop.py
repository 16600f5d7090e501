"""The loop a careful script would run: keyset pages of 1,000, a version check, a commit a page."""

import sys

import psycopg

url, how = sys.argv[1:]
SELECT = "SELECT id, amount, version FROM accounts WHERE id > %s ORDER BY id LIMIT 1000"
UNNEST = """UPDATE accounts a SET amount = v.amount, version = a.version + 1
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS v(id, amount, version)
 WHERE a.id = v.id AND a.version = v.version"""
ONE = "UPDATE accounts SET amount = %s, version = version + 1 WHERE id = %s AND version = %s"

with psycopg.connect(url) as connection:
    cursor = connection.cursor()
    last = 0
    while rows := cursor.execute(SELECT, [last]).fetchall():
        last = rows[-1][0]
        raised = [(key, amount + 1, version) for key, amount, version in rows]
        if how == "unnest":
            cursor.execute(UNNEST, [list(column) for column in zip(*raised)])
        else:
            cursor.executemany(ONE, [(amount, key, version) for key, amount, version in raised])
        connection.commit()
