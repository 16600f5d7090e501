"""The reports' rows: one for every timesheet, or for every leave.

A line with a batch comes in, a line with its results goes out, until standard input ends. Windlass
gives it only rows that the submitter may see, so it need not know who asks.
"""

import json
import sys
from decimal import Decimal

HOURS_OF_A_WEEK = 168


def timesheet(record):
    hours = Decimal(record["hours"])
    if not 0 <= hours <= HOURS_OF_A_WEEK:
        raise ValueError(f"a week of {hours} hours")
    overtime = max(hours - 40, Decimal(0))
    return {
        "timesheet": record["timesheet_id"],
        "employee": record["employee_id"],
        "county": record["county"],
        "role": record["visible_to"],
        "month": record["month"],
        "week": record["week"],
        "hours": str(hours),
        "overtime": str(overtime),
    }


def leave(record):
    return {
        "leave": record["leave_id"],
        "employee": record["employee_id"],
        "county": record["county"],
        "role": record["visible_to"],
        "month": record["month"],
        "days": record["days"],
    }


def result(row_of, item):
    try:
        return {"key": item["key"], "emit": row_of(item["record"])}
    except ValueError as error:
        # This record is set aside with the reason, and the others go on.
        return {"key": item["key"], "error": str(error)}


def answer(row_of, batch):
    return {"results": [result(row_of, item) for item in batch["items"]]}


def main():
    row_of = {"timesheets": timesheet, "leave": leave}[sys.argv[1]]
    # Bytes, because JSON is UTF-8 whatever the machine's locale says.
    for line in sys.stdin.buffer:
        print(json.dumps(answer(row_of, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
