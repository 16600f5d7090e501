"""The loop a careful script would run over `lineitem`: keyset pages of 1,000, a version check, another try for rows
that changed meanwhile, and a file with the last key, from which it continues after a restart.

backfill.py URL batches FILE ORDERS    writes a page in one statement and commits it
backfill.py URL rows FILE ORDERS       writes and commits row by row
"""

import os
import sys

import psycopg

url, how, file, orders = sys.argv[1:]
COLUMNS = "l_orderkey, l_linenumber, l_points, version"
PAGE = f"""SELECT {COLUMNS} FROM lineitem WHERE (l_orderkey, l_linenumber) > (%s, %s) AND l_orderkey < %s
  ORDER BY l_orderkey, l_linenumber LIMIT 1000"""
AGAIN = f"""SELECT {COLUMNS} FROM lineitem
  JOIN unnest(%s::bigint[], %s::int[]) AS k(o, l) ON l_orderkey = o AND l_linenumber = l"""
WRITE = """UPDATE lineitem t SET l_points = v.points, version = t.version + 1
  FROM unnest(%s::bigint[], %s::int[], %s::bigint[], %s::bigint[]) AS v(o, l, points, version)
 WHERE t.l_orderkey = v.o AND t.l_linenumber = v.l AND t.version = v.version
RETURNING t.l_orderkey, t.l_linenumber"""


def columns(rows):
    return [list(column) for column in zip(*rows)]


def write(cursor, rows):
    while rows:
        raised = [(order, line, points + 1, version) for order, line, points, version in rows]
        written = set(cursor.execute(WRITE, columns(raised)).fetchall())
        missed = [row[:2] for row in rows if row[:2] not in written]
        rows = cursor.execute(AGAIN, columns(missed)).fetchall() if missed else []


def position():
    if not os.path.exists(file):
        return -1, 0
    with open(file) as saved:
        return tuple(int(number) for number in saved.read().split())


def save(order, line):
    # Renaming replaces the file as a whole: a killed script leaves no half of it.
    with open(file + ".new", "w") as saved:
        saved.write(f"{order} {line}")
    os.replace(file + ".new", file)


with psycopg.connect(url) as connection:
    cursor = connection.cursor()
    last = position()
    while page := cursor.execute(PAGE, [*last, int(orders)]).fetchall():
        for rows in [page] if how == "batches" else [[row] for row in page]:
            write(cursor, rows)
            connection.commit()
            last = rows[-1][:2]
            save(*last)
