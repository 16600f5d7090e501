"""Makes the table `people` in people.db, or makes it anew. Takes how many; 20 if not said."""

import sqlite3
import sys

count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
NAMES = ["ada", "Zoë", "GRACE", "linus", None, "Åsa", "", "李 wei", "Conan O'Brien", "barbara"]
TOWNS = ["London", "Malmö", "Rome"]

database = sqlite3.connect("people.db")
with database:
    # The file stays, because Windlass keeps its ledger in it too.
    database.execute("DROP TABLE IF EXISTS people")
    database.execute(
        """CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, town TEXT NOT NULL,
           version INTEGER NOT NULL DEFAULT 1)"""
    )
    people = [(i, NAMES[i % len(NAMES)], TOWNS[i % len(TOWNS)]) for i in range(1, count + 1)]
    database.executemany("INSERT INTO people (id, name, town) VALUES (?, ?, ?)", people)
database.close()
