"""Prints the rows of Parquet files as JSON lists of texts, each in the form in which a database reads it."""

import datetime
import decimal
import json
import math
import sys

import pyarrow.parquet as parquet


def text(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return repr(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, list):
        return json.dumps([text(element) for element in value])
    return str(value)


for name in sys.argv[1:]:
    for row in parquet.ParquetFile(name).read().to_pylist():
        print(json.dumps([text(value) for value in row.values()]))
